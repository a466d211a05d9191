"""A convolution before a batch norm, with a bias and without."""

import torch
from torch import nn

from tests.fixes.unseen import load, load_optimizer


def network(width: int = 8):
    return nn.Sequential(nn.Conv2d(3, width, 3), nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, 2, 1))


def case_new_model():
    model = network()
    return {"keys": list(model.state_dict()), "first": model[0].weight, "last": model[3].weight}


def change_new_model(keys, last, random):
    """the state dict loses a key … later layers draw other initial weights"""
    assert set(keys[0]) - set(keys[1]) == {"0.bias"} and set(keys[1]) < set(keys[0])


def case_old_checkpoint():
    checkpoint = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Identity(), nn.ReLU(), nn.Conv2d(8, 2, 1)).state_dict()
    norm = nn.BatchNorm2d(8).state_dict()
    model = network()
    load(model, checkpoint | {f"1.{key}": value for key, value in norm.items()})
    return {}


def change_old_checkpoint(error):
    """strict loading of an older checkpoint fails"""
    assert error[0] is None and 'Unexpected key(s) in state_dict: "0.bias"' in error[1]


def case_old_optimizer_state():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = optimizer.state_dict()
    state["param_groups"][0]["params"] = list(range(6))
    load_optimizer(optimizer, state)
    return {}


def change_old_optimizer_state(error):
    """as does loading an older optimizer state"""
    assert error[0] is None and "doesn't match the size of optimizer's group" in error[1]


def stepped(model):
    torch.manual_seed(1)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name != "0.bias":
                value.copy_(torch.randn(value.shape))
    x = torch.randn(4, 3, 6, 6, requires_grad=True)
    y = model(x)
    y.square().mean().backward()
    gradients = {name: value.grad for name, value in model.named_parameters() if name != "0.bias"}
    running = {name: value for name, value in model.named_buffers()}
    return y, x.grad, gradients, running


def case_one_step():
    model = network()
    y, of_input, gradients, running = stepped(model)
    return {"y": y, "of_input": of_input, "gradients": gradients, "mean": running.pop("1.running_mean"), "other": running}


def change_one_step(y, of_input, gradients, mean, other):
    """results differ in the last bits, and the running means differ by the bias"""
    torch.testing.assert_close(*y)
    torch.testing.assert_close(*of_input)
    torch.testing.assert_close(*gradients)
    torch.testing.assert_close(*other)
    assert (mean[0] - mean[1]).abs().max() > 1e-4
