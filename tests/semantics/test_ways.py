"""Where tensors come from, and where values go."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from perflint.semantics.dataflow.destinations import Use
from perflint.semantics.dataflow.origins import Source as Origin
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source


def model_of(text: str) -> Model:
    source = Source("example.py", text)
    project = Project([Path(source.path)])
    project.adopt(source)
    model = Model(source, project)
    list(model.sites())
    return model


def call_of(model: Model, method: str) -> ast.Call:
    """The last call of a method."""
    return [
        node for node in model.nodes(ast.Call) if isinstance(node.func, ast.Attribute) and node.func.attr == method
    ][-1]


USES = [
    ("print(x.item())", Use.LOG),
    ("logger.info('%s', x.item())", Use.LOG),
    ("writer.add_scalar('loss', x.item(), 1)", Use.LOG),
    ("meter.update(x.item(), 3)", Use.LOG),
    ("print(f'{x.item():.3f}')", Use.LOG),
    ("metrics['loss'] = x.item()", Use.LOG),
    ("loss_log.append(float(x.item()))", Use.LOG),
    ("losses = {'a': x.item()}\nlogger.info(losses)", Use.LOG),
    ("value = x.item()\nprint(value)", Use.LOG),
    ("if x.item() > 3:\n    f()", Use.TEST),
    ("y = 1 if x.item() else 2", Use.TEST),
    ("value = x.item()\nif not math.isfinite(value):\n    f()\nprint(value)", Use.TEST),
    ("while x.item():\n    f()", Use.TEST),
    ("y = [a for a in b if x.item()]", Use.TEST),
    ("y = torch.zeros(x.item())", Use.SIZE),
    ("y = z[:, : x.item()]", Use.SIZE),
    ("for i in range(int(x.item())):\n    f()", Use.SIZE),
    ("n = x.item()\ny = z.view(n, -1)", Use.SIZE),
    ("y = z[x.item()]", Use.INDEX),
    ("i = x.item()\ny = names[i]", Use.INDEX),
    ("table = {}\ntable[x.item()] = 3", Use.KEY),
    ("names = ['a', 'b']\nprint(names[x.item()])", Use.KEY),
    ("y = {x.item(): 3}", Use.KEY),
    ("y = {x.item(): v for v in vs}", Use.KEY),
    ("losses = {3: x.item()}\nlogger.info(losses)", Use.LOG),
    ("name = f'{x.item()}.png'\nself.names[3] = name", Use.KEPT),
    ("raise ValueError(f'{x.item()}')", Use.LOG),
    ("def f(x):\n    return f'{x.item()}'", Use.LOG),
    ("lines.append(f'{x.item()}')", Use.LOG),
    ("total += x.item()", Use.SUM),
    ("total += x.item() * 3", Use.SUM),
    ("state, reward = env.step(x.item())", Use.ACTION),
    ("action = x.item()", Use.ACTION),
    ("def act(x):\n    return x.item()", Use.ACTION),
    ("outputs.append(x.item())", Use.LIST),
    ("outputs += [x.item()]", Use.LIST),
    ("self.value = x.item()", Use.KEPT),
    ("def f(x):\n    return x.item()", Use.RETURNED),
    ("f(x.item())", Use.OTHER),
    ("evaluator.update({1: x.item()})", Use.OTHER),
    ("scheduler.step(x.item())", Use.OTHER),
    ("x.item()", Use.OTHER),
    ("y = math.log(x.item())\nprint(y)", Use.LOG),
]


@pytest.mark.parametrize(("text", "use"), USES)
def test_use(text: str, use: Use) -> None:
    model = model_of(text + "\n")
    assert model.destinations.of(call_of(model, "item")) is use


PRELUDE = """
import torch
from torch.utils.data import DataLoader
model = torch.nn.Linear(8, 8).cuda()
loader = DataLoader(dataset)
a = torch.zeros(8)
"""
ORIGINS = [
    ("for x, y in loader:\n    x.item()", Origin.BATCH, "x"),
    ("for i, (x, y) in enumerate(loader):\n    z = y + 1\n    z.item()", Origin.BATCH, "z"),
    ("for x, y in loader:\n    for k, v in zip(x, y):\n        v.item()", Origin.BATCH, "v"),
    ("for x in loader:\n    for k, v in enumerate(x):\n        v.item()", Origin.BATCH, "v"),
    ("for batch in loader:\n    {k: v.item() for k, v in batch.items()}", Origin.BATCH, "v"),
    ("def f(x: torch.Tensor):\n    x.sum().item()", Origin.PARAMETER, "x"),
    ("loss = model(a).sum()\nloss.item()", Origin.MODEL, "loss"),
    ("x = a.to('cuda')\nx.item()", Origin.MOVED, "x"),
    ("x = torch.zeros(8)\nx.item()", Origin.MADE, "x"),
    ("torch.zeros(8).item()", Origin.MADE, ""),
    ("for p in model.parameters():\n    p.grad.item()", Origin.ELEMENT, "p.grad"),
    ("class A(torch.nn.Module):\n    def forward(self, x):\n        self.weight.item()", Origin.STATE, "self.weight"),
    ("x = 1\nx = x + 1\ndef f(x: torch.Tensor):\n    x.item()\n    x = x + 1", Origin.PARAMETER, "x"),
]


@pytest.mark.parametrize(("text", "origin", "name"), ORIGINS)
def test_origin(text: str, origin: Origin, name: str) -> None:
    model = model_of(PRELUDE + text + "\n")
    call = call_of(model, "item")
    assert isinstance(call.func, ast.Attribute)
    found = model.origins.of(call.func.value)
    assert (found.source, found.name) == (origin, name)
