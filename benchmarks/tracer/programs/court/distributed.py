"""Makes each fact about processes and GPUs happen once: `torchrun --nproc-per-node 2`, on two GPUs."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
alone = [dist.new_group([each]) for each in range(2)][rank]


class Half(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.spare = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.used(x)


x = torch.ones(2, 4, device="cuda")
model = DDP(nn.Linear(4, 4).cuda(), find_unused_parameters=True)  # fact: ddp.all-used, ddp.of-plain
half = DDP(Half().cuda(), find_unused_parameters=True)  # fact: ddp.unused
fast = DDP(torch.compile(nn.Linear(4, 4).cuda()))  # fact: ddp.of-compiled
copied = nn.DataParallel(nn.Linear(4, 4).cuda(0), device_ids=[0, 1])  # fact: dataparallel.replicated
single = nn.DataParallel(nn.Linear(4, 4).cuda(rank), device_ids=[rank])  # fact: dataparallel.one-device
optimizer = torch.optim.SGD([*model.parameters(), *half.parameters(), *fast.parameters()], lr=0.1)
for step in range(8):
    loss = (model(x) + half(x) + fast(x)).sum()
    loss.backward()  # fact: backward.reduced, backward.reduced-again
    dist.all_reduce(loss.detach())  # fact: collective.number
    dist.all_reduce(x.clone())  # fact: collective.tensor
    dist.barrier()  # fact: collective.barrier
    dist.all_gather_object([None, None], step)  # fact: collective.objects
    dist.barrier(group=alone)  # fact: collective.alone
    if step % 2:
        optimizer.step()
with model.no_sync(), half.no_sync(), fast.no_sync():
    (model(x) + half(x) + fast(x)).sum().backward()  # fact: backward.not-reduced
if rank == 0:
    copied(x.cuda(0))
single(x)
dist.destroy_process_group()
