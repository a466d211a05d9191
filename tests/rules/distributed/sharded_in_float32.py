"""Sharded models under autocast: in float32, and with a policy."""

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision, MixedPrecisionPolicy, fully_shard


def shard(model: nn.Module) -> None:
    for block in model.blocks:
        fully_shard(block)  # audit: TPF934
    fully_shard(model)


def train(model: nn.Module, x: torch.Tensor) -> None:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x).mean()
    loss.backward()


def of_old_without(model: nn.Module) -> FSDP:
    return FSDP(model, use_orig_params=True)  # audit: TPF934


class Trainer:
    def __init__(self, model: nn.Module):
        self.model = model
        fully_shard(self.model, reshard_after_forward=True)  # audit: TPF934


# Look-alikes


def with_a_policy(model: nn.Module) -> None:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    fully_shard(model, mp_policy=policy)


def as_given(model: nn.Module, **options: object) -> None:
    fully_shard(model, **options)


def of_old(model: nn.Module) -> FSDP:
    return FSDP(model, mixed_precision=MixedPrecision(param_dtype=torch.bfloat16))


def not_sharded(model: nn.Module) -> nn.Module:
    return nn.parallel.DistributedDataParallel(model)


def by_settings(blocks, net, x: torch.Tensor):
    settings = {"reshard_after_forward": True}
    for block in blocks:
        fully_shard(block, **settings)  # audit: TPF934
    fully_shard(net, **settings)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return net(x).mean()


def by_settings_of_the_caller(net, x: torch.Tensor, settings):
    fully_shard(net, **settings)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return net(x).mean()
