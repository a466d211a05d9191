"""A wrapped model that uses all of its parameters, and one that does not."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

ON_A_GPU = False


class Net(nn.Module):
    def __init__(self, skips: bool):
        super().__init__()
        self.used, self.other, self.skips = nn.Linear(3, 2), nn.Linear(2, 2), skips

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.used(x) if self.skips else self.other(self.used(x))


def trained(skips: bool):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        model = DDP(Net(skips), find_unused_parameters=True)
        for _ in range(2):
            model(torch.ones(4, 3)).square().sum().backward()
        return model
    finally:
        dist.destroy_process_group()


def case_unused():
    return {"gradient": trained(skips=True).module.used.weight.grad}


def change_unused(error):
    """the second step raises "Expected to have finished reduction in the prior iteration\""""
    assert error[0] is None and "Expected to have finished reduction in the prior iteration" in error[1]


def case_all_used():
    model = trained(skips=False)
    return {"module": model.module, "keys": list(model.state_dict())}
