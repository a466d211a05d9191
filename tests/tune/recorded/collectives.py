"""Two processes with a GPU, which reduce the gradient of each parameter by a collective of its own, and two numbers."""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
device = "cpu"
if torch.cuda.is_available():
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
torch.set_num_threads(1)
torch.manual_seed(0)
layers = [nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU()) for _ in range(12)]
model = nn.Sequential(*layers, nn.Linear(64, 10)).to(device)
inputs = torch.randn(16, 32, 64, generator=torch.Generator().manual_seed(rank)).to(device)
targets = torch.randint(0, 10, (16, 32), generator=torch.Generator().manual_seed(rank)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(200):
    x, y = inputs[step % 16], targets[step % 16]
    optimizer.zero_grad()
    logits = model(x)
    loss = nn.functional.cross_entropy(logits, y)
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= size
    optimizer.step()
    mean, correct = loss.detach().clone(), (logits.argmax(1) == y).float().mean()
    dist.all_reduce(mean)
    dist.all_reduce(correct)
dist.destroy_process_group()
