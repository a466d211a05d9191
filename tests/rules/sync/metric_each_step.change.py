"""A metric that is computed for each batch, and one that only adds it."""

import torch
import torchmetrics
from torch import nn


def evaluate(model: nn.Module, loader):
    accuracy = torchmetrics.MeanSquaredError()
    for x, y in loader:
        accuracy(model(x), y)
    return accuracy


def case_metric():
    metric = evaluate(nn.Identity(), [(torch.ones(4), torch.zeros(4)), (torch.ones(2), torch.ones(2))])
    return {"value": metric.compute(), "state": dict(metric.metric_state), "last": metric._forward_cache}


def change_metric(last):
    """the value of the last batch is not kept, so code that reads it from the object would miss it"""
    assert last[0].item() == 0.0 and last[1] is None
