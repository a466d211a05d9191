"""Compiling a model and calling what comes of it, or what was there before."""

import torch
from torch import nn

ON_A_GPU = False


class Double(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x) * 2


class Net(nn.Module):
    def __init__(self, backend):
        super().__init__()
        self.inner = Double()
        torch.compile(self.inner, backend=backend)

    def forward(self, x):
        return self.inner(x)


def counted():
    graphs = []

    def note(graph, inputs):
        graphs.append(len(inputs))
        return graph.forward

    torch._dynamo.reset()
    return graphs, note


def case_calls():
    graphs, note = counted()
    model = Double()
    torch.compile(model, backend=note)
    return {"y": model(torch.ones(3)), "graphs": len(graphs)}


def change_calls(graphs):
    """compilation really begins"""
    assert graphs == (0, 1)


def case_attribute():
    graphs, note = counted()
    model = Net(note)
    return {"y": model(torch.ones(3)), "graphs": len(graphs), "keys": list(model.state_dict())}


def change_attribute(graphs, keys):
    """the keys of the compiled module's state dict get the prefix `_orig_mod.`"""
    assert keys[0] == ["inner.layer.weight", "inner.layer.bias"]
    assert keys[1] == ["inner._orig_mod.layer.weight", "inner._orig_mod.layer.bias"]


class Stops(nn.Module):
    def forward(self, x):
        torch._dynamo.graph_break()
        return -x


def case_cannot():
    torch._dynamo.reset()
    model = Stops()
    torch.compile(model, backend="eager", fullgraph=True)
    return {"y": model(torch.ones(3))}


def change_cannot(error):
    """code that cannot be compiled shows"""
    assert error[0] is None and error[1].startswith("Unsupported")


def case_in_place():
    graphs, note = counted()
    layers = nn.ModuleList([Double(), Double()])
    for layer in layers:
        layer = torch.compile(layer, backend=note)
    x = torch.ones(3)
    for layer in layers:
        x = layer(x)
    return {"compiled": bool(graphs), "x": x, "keys": list(layers.state_dict())}


def change_in_place(compiled):
    """a loop variable are compiled in place by `.compile()`, which keeps the keys"""
    assert compiled == (False, True)


MODEL = Double()


def kept_a_global_name():
    torch.compile(MODEL)
    return MODEL(torch.ones(3))


def kept_torchs_own_classes():
    layers = nn.ModuleList([nn.Linear(3, 3)])
    for layer in layers:
        layer = torch.compile(layer)
    return layers
