"""Parts of torch that are retired, and their successors."""

import intel_extension_for_pytorch as ipex
import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import fully_shard
from torchao.quantization import Int8WeightOnlyConfig, quantize_


def for_the_cpu(model: nn.Module):
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)  # audit: TPF906


def on_the_gpu(model: nn.Module):
    model = model.cuda()
    return torch.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)  # error: TPF906


def of_intel(model: nn.Module, optimizer: torch.optim.Optimizer):
    return ipex.optimize(model.to("xpu"), optimizer=optimizer)  # audit: TPF906


def sharded(model: nn.Module, policy):
    return FSDP(model, auto_wrap_policy=policy)  # audit: TPF906


# Look-alikes


def sharded_anew(model: nn.Module):
    for layer in model.layers:
        fully_shard(layer)
    return fully_shard(model)


def by_torchao(model: nn.Module):
    quantize_(model, Int8WeightOnlyConfig())
    return torch.compile(model)


def of_xpu(model: nn.Module):
    return model.to("xpu")


def of_another_library(library, model: nn.Module):
    return library.optimize(model), library.quantization.quantize(model)


def is_sharded(model: nn.Module) -> bool:
    return isinstance(model, FSDP)
