"""Trains on several GPUs, one of which is slower, under torchrun.

    torchrun --nproc-per-node 2 ddp.py [--straggler RANK] [--by host|gpu]

`host`: that rank works 8 ms longer before each step, as a slow loader does, and reads its loss;
`gpu`: its GPU has some 8 ms more to do in each step.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

SLOWER = 0.008


def main() -> None:
    """Train for some steps."""
    parser = argparse.ArgumentParser(description="train with a straggler")
    parser.add_argument("--straggler", type=int, default=-1)
    parser.add_argument("--by", choices=("host", "gpu"), default="host")
    parser.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    rank = distributed.get_rank()
    device = torch.device("cuda", rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    torch.manual_seed(rank)
    size = 4096 if on_gpu else 64
    layers = [layer for _ in range(4) for layer in (nn.Linear(size, size), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*layers).to(device), device_ids=[rank] if on_gpu else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = torch.randn(512, size, device=device)
    more = torch.randn(size, size, device=device)
    for _ in range(options.steps):
        if rank == options.straggler and options.by == "host":
            until = time.perf_counter() + SLOWER
            while time.perf_counter() < until:
                pass
        loss = model(x).square().mean()
        if rank == options.straggler and options.by == "gpu":
            for _ in range(3):
                more @ more
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if rank == options.straggler and options.by == "host":
            loss.item()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
