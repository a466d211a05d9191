"""A wrapper of the project sets the rate and steps the optimizer; gradients add up over batches of two sizes."""

import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(
    device
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


class Scheduled:
    def __init__(self, inner):
        self.inner = inner
        self.count = 0

    def advance(self):
        self.count += 1
        for group in self.inner.param_groups:
            group["lr"] = 0.01 / self.count
        self.inner.step()


scheduled = Scheduled(optimizer)
shown = []
for index in range(14):
    x = torch.rand(6 if index % 4 else 8, 4, device=device)
    loss = model(x).square().mean() / 2
    if not torch.isfinite(loss):
        raise SystemExit("the loss is not finite")
    loss.backward()
    if (index + 1) % 2 == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scheduled.advance()
        optimizer.zero_grad(set_to_none=index % 3 == 0)
    shown.append(loss.item())
