"""Models that torchao quantizes, in a file that compiles nothing."""

import torchao
from torch import nn
from torchao.float8 import convert_to_float8_training
from torchao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_


def train(model: nn.Module, loader, optimizer):
    model = convert_to_float8_training(model.cuda())  # error: TPF947
    for x in loader:
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()


def build(model: nn.Module):
    model = model.cuda().eval()
    quantize_(model, Int8WeightOnlyConfig())  # error: TPF947
    return model


def by_module(model: nn.Module):
    torchao.quantization.quantize_(model, torchao.quantization.Float8DynamicActivationFloat8WeightConfig())  # error: TPF947


# Look-alikes


def plain(model: nn.Module):
    return model.cuda().eval()


def for_memory(model: nn.Module):
    quantize_(model, Int4WeightOnlyConfig(group_size=32))


def in_half(model: nn.Module):
    return model.half()


def of_another_library(library, model: nn.Module):
    return library.quantize_(model)


def configured():
    return Int8WeightOnlyConfig()
