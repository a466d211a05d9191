"""The evaluation rules take steps in proportion to the size of a file."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

from perflint.rules.evaluation.eval_without_no_grad import EvalWithoutNoGrad
from perflint.rules.evaluation.missing_eval_mode import MissingEvalMode
from perflint.rules.evaluation.no_grad_instead_of_inference_mode import NoGradInsteadOfInferenceMode
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.sites import FileSite
from perflint.source.text import Source

IMPORTS = "import copy\nimport torch\nfrom torch import nn\nfrom torch.optim import AdamW\nfrom engine import helper\n"
RULES = (EvalWithoutNoGrad(), MissingEvalMode(), NoGradInsteadOfInferenceMode())
LEAST = 8


def _many(pattern: str, count: int) -> str:
    return "".join(f"{pattern.replace('#', str(n)).replace('$', str(n + 1))}\n" for n in range(count))


def _models_in_one_loop(n: int) -> str:
    made = _many("m# = nn.Linear(2, 2)\no# = AdamW(m#.parameters())", n)
    step = " loss = m#(x.cuda()).sum()\n print(loss.item())\n o#.zero_grad()\n loss.backward()\n o#.step()"
    return f"{made}for x in loader:\n{_many(step, n)}"


def _evaluations(n: int) -> str:
    body = " t = 0\n for x, y in loader:\n  t += (model(x.cuda()) == y.cuda()).sum().item()\n return t"
    return _many(f"def evaluate#(model, loader):\n{body}", n)


def _evaluations_that_switch(n: int) -> str:
    body = " model.eval()\n rows = []\n for x in loader:\n  rows.append(model(x))\n return torch.cat(rows).tolist()"
    return _many(f"def evaluate#(model, loader):\n{body}", n)


def _evaluations_with_a_trainer(n: int) -> str:
    trainer = "def train(net, loader, opt):\n for x in loader:\n  net(x).sum().backward()\n  opt.step()\n"
    calls = _many("evaluate#(net, val_loader)", n)
    return trainer + _evaluations(n).replace("model", "net") + calls


def _methods(n: int) -> str:
    method = " def evaluate#(self, loader):\n  self.net.eval()\n  return [self.net(x).tolist() for x in loader]"
    return f"class A:\n{_many(method, n)}"


def _modules(n: int) -> str:
    method = " def evaluate#(self, loader):\n  self.n#.eval()\n  return [self.n#(x).tolist() for x in loader]"
    init = " def __init__(self):\n" + _many("  self.n# = nn.Linear(2, 2)", n)
    return f"class A:\n{init}{_many(method, n)}"


def _agents(n: int) -> str:
    init = " def __init__(self):\n  self.net = nn.Linear(2, 2)\n  self.slow = copy.deepcopy(self.net)\n"
    init += "  self.opt = AdamW(self.net.parameters())"
    act = " def act(self, x):\n  return self.net(torch.as_tensor(x)).argmax().item()"
    learn = " def learn(self, x):\n  (self.net(x) - self.slow(x)).square().mean().backward()\n  self.opt.step()"
    return _many(f"class A#:\n{init}\n{act}\n{learn}", n)


def _helpers(n: int) -> str:
    return "def f0(x):\n return x\n" + _many("def f$(x):\n return f#(x).sum()", n) + _evaluations(2)


def _callers(n: int) -> str:
    return "def predict(net, x):\n net.eval()\n return net(x)\n" + _many(
        "def run#(net, x):\n print(predict(net, x))", n
    )


def _contexts(n: int) -> str:
    body = " with torch.no_grad():\n  y# = model(x)\n print(y#.argmax(1).tolist())"
    return f"def evaluate(model, x):\n model.eval()\n{_many(body, n)}"


def _reads(n: int) -> str:
    return (
        f"def act(x):\n net = nn.Linear(2, 2)\n{_many(' y# = net(x).detach()', n)}{_many(' print(y#.sum().item())', n)}"
    )


def _lists(n: int) -> str:
    return f"def act(x):\n net = nn.Linear(2, 2)\n rows = []\n{_many(' rows.append(net(x))', n)} return len(rows)"


def _aliases(n: int) -> str:
    return f"def act(x):\n net = nn.Linear(2, 2)\n a0 = []\n{_many(' a$ = a#', n)} a{n}.append(net(x).detach())\n"


def _uses_in_one_statement(n: int) -> str:
    return f"net = nn.Linear(2, 2)\nnet.eval()\nrows = [{', '.join(['net(x).detach()'] * n)}]\n"


def _frozen_parts(n: int) -> str:
    return _many("t# = nn.Linear(2, 2)\nt#.requires_grad_(False)\nprint(t#(x).detach().sum().item())", n)


def _loaded(n: int) -> str:
    return _many("n# = Net()\nn#.load_state_dict(torch.load('a'))\nprint(n#(torch.ones(2)).tolist())", n)


GROWING: dict[str, Callable[[int], str]] = {
    name.strip("_").replace("_", " "): program
    for name, program in globals().copy().items()
    if name.startswith("_") and callable(program) and getattr(program, "__module__", "") == __name__ and name != "_many"
}


def _steps(text: str) -> int:
    """The lines of code that the rules run for a file, once the interpreter is through with it."""
    path = "growing.py"
    model = Model(Source(path, IMPORTS + text), Project([Path(path)]))
    for each in (model, model.for_any_caller):
        assert each.steps
        for node in model.everything():
            each.heat(node)
    site = FileSite(model, cast("ast.expr", model.source.tree))
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        for rule in RULES:
            list(rule.check(site))
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", GROWING)
def test_steps_grow_with_the_size(name: str) -> None:
    _steps(GROWING[name](2))  # what is read and imported once
    small, large = _steps(GROWING[name](LEAST)), _steps(GROWING[name](8 * LEAST))
    assert large < 9 * small
