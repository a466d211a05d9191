"""Steps that become a function: the same results on the CPU bit for bit, and refusals with their reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from perflint.frozen import replace
from perflint.tune.changes import graph
from perflint.tune.evidence import Evidence
from perflint.tune.graphs.outlining import Model, Seen, outlined, outlined_backward
from perflint.tune.graphs.reached import Called
from perflint.tune.refused import Refused
from tests.tune.simulated import tuned

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

HEAD = """
import random
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
np.random.seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
shown = []
scale = 2.0
"""
LOOP = """
for epoch in range(2):
    for index in range(3):
        x = torch.tensor(np.random.rand(5, 4), dtype=torch.float32)
        out = model(x)
        loss = scale * out.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown.append(loss.item())
"""
METHOD = """
class Trainer:
    def __init__(self):
        self.net = nn.Linear(4, 1)
        self.target = nn.Linear(4, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.1)
        self.count = 0
        self.every = 2
        self.tau = 0.1

    def update(self, x):
        self.count += 1
        loss = (self.net(x) - self.target(x).detach()).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.count % self.every == 0:
            for one, other in zip(self.net.parameters(), self.target.parameters()):
                other.data.copy_(self.tau * one.data + (1 - self.tau) * other.data)
        return loss

    def load(self, state):
        self.target = nn.Linear(4, 1)


trainer = Trainer()
model, optimizer = trainer.net, trainer.optimizer
for _ in range(5):
    shown.append(trainer.update(torch.rand(3, 4)).item())
"""
FUNCTION = """
def train(model, optimizer, batches):
    total = 0.0
    for number, x in enumerate(batches):
        optimizer.zero_grad()
        loss = model(x).abs().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.detach()
    return total / (number + 1)


for _ in range(2):
    shown.append(train(model, optimizer, [torch.rand(5, 4) for _ in range(3)]).item())
"""
TWO = """
other = nn.Linear(1, 1)
second = torch.optim.SGD(other.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    made = model(torch.ones(3, 4))
    first_loss = other(made).mean()
    first_loss.backward()
    optimizer.step()

    noise = torch.from_numpy(np.random.rand(3, 1)).float()
    second.zero_grad()
    second_loss = (other(made.detach()) - other(noise)).square().mean()
    second_loss.backward()
    second.step()
    print(first_loss.item(), second_loss.item())
shown.append(second_loss.item())
"""
LISTS = """
for index in range(4):
    x = torch.rand(5, 4)
    loss = model(x).square().mean()
    with torch.no_grad():
        largest = loss.max()
        shown += [(loss * 2).mean().item()]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
shown.append(largest.item())
"""


def seen(text: str, calls: Sequence[Called] = ()) -> Seen:
    """The facts of a run in which each call of a method `step` was one of an optimizer."""
    lines = {
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step"
    }
    return Seen({"a.py": lines}, calls)


def line_of(text: str, part: str) -> int:
    return text.count("\n", 0, text.index(part)) + 1


def outline(text: str, calls: Sequence[Called] = ()) -> str:
    return outlined("a.py", {"a.py": text}, seen(text, calls))


def ran(text: str) -> tuple[list[Any], list[Any], Any]:
    """What a program shows, its parameters and its random numbers at the end."""
    import torch

    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, "a.py", "exec"), names)
    tensors = [each.tolist() for each in names["model"].state_dict().values()]
    return names["shown"], tensors, torch.get_rng_state().tolist()


def functions(text: str) -> Iterator[str]:
    """The texts of the outlined function, without the helper."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("training_step"):
            yield ast.unparse(node)


@needs_torch
@pytest.mark.parametrize("body", [LOOP, METHOD, FUNCTION, TWO, LISTS], ids="LOOP METHOD FUNCTION TWO LISTS".split())
def test_on_the_cpu_all_is_the_same_bit_for_bit(body: str) -> None:
    text = HEAD + body
    new = outline(text)
    assert new.count("class GraphedStep") == 1 and "perflint" not in new
    assert ran(new) == ran(text)


@pytest.mark.parametrize(
    ("copy", "goes_on"),
    [
        ("x.to(device)", False),
        ("x.to(device, non_blocking=True)", True),
        ("x.cuda(non_blocking=True).to(torch.float32)", False),
        ("x", False),
    ],
)
@pytest.mark.parametrize("outline", [outlined, outlined_backward])
def test_pinned_memory_may_be_written_to_after_the_step(outline: Any, copy: str, goes_on: bool) -> None:
    text = HEAD + LOOP.replace("model(x)", f"model({copy})")
    new = tuned(text, outline)
    assert new.count("copy.copy_(x, non_blocking=True)") == goes_on
    assert new.count("copy.copy_(x, non_blocking=x.is_cuda or not x.is_pinned())") == (not goes_on)


VIEW = """
buffer = torch.zeros(5, 4)
drop = nn.Dropout(0.5)
for index in range(6):
    x = torch.ones(5, 4)
    MADE
    with torch.no_grad():
        part[0] = float(np.random.rand())
    loss = first + part.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())
"""


@needs_torch
@pytest.mark.parametrize(
    ("made", "moves"),
    [
        ("first = model(x + buffer).mean()\n    part = torch.zeros(4)", True),
        ("first = model(x + buffer).mean()\n    part = buffer.view(-1)", False),
        ("first = drop(model(x)).mean()\n    part = torch.rand_like(x)", False),
        ("part = torch.rand_like(x)\n    first = drop(model(x)).mean()", False),
    ],
)
@pytest.mark.parametrize("outline", [outlined, outlined_backward])
def test_what_moves_in_front_gives_nothing_else_to_what_it_passes(outline: Any, made: str, moves: bool) -> None:
    text = HEAD + VIEW.replace("MADE", made)
    try:
        new = tuned(text, outline)
    except Refused:
        assert not moves
        return
    assert ran(new) == ran(text)


@needs_torch
def test_random_numbers_of_the_gpu_stay_in_their_order() -> None:
    drawn = 'noise = torch.rand(5, 1, device="cpu")\n        times = torch.rand((), device="cpu").item()\n        '
    text = HEAD + LOOP.replace("out = model(x)", f"{drawn}out = model(x) * noise * times")
    with suppress(Refused):
        assert ran(tuned(text)) == ran(text)


PASSED = """
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 4))
other, optimizer = nn.Linear(4, 4), torch.optim.Adam(model.parameters(), lr=0.05)
second = torch.optim.Adam(other.parameters(), lr=0.05)
memory = torch.ones(2, 4)
view = memory[0]
weights, pairs, first = [*model.parameters()], [*zip(other.parameters(), model.parameters())], other.weight
Bernoulli = torch.distributions.Bernoulli
counts, alpha = torch.ones(4), torch.zeros(1, requires_grad=True)
third = torch.optim.Adam([alpha], lr=0.05)


def updated(target, source):
    with torch.no_grad():
        for one, two in zip(target.parameters(), source.parameters()):
            one.mul_(0.5).add_(two.mean())


def noisy(x):
    return x[x > 0.5].mean() + torch.rand(5, device=x.device)


def called(x):
    return model(x)


def counted(into, x):
    into.add_(x[x > 0.5].mean())
    return into.sum()


def size(parts):
    return torch.stack([each.detach()[each > 0].norm() for each in parts]).sum()


class Scale:
    def __init__(self):
        self.value = torch.ones(4)

    def grow(self, x):
        self.value.mul_(x[x > 0.5].mean())

    def of(self, y):
        return y * self.value


scale = Scale()


def loss_of(y):
    return scale.of(y).square().mean()


for index in range(6):
    x = torch.rand(5, 4)
    BODY
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())
"""
FILL = """goal = torch.zeros(5)
    with torch.no_grad():
        goal[x[:, 0] > 0.3] = other(x[x[:, 0] > 0.3]).max(1)[0]  # fails
    loss = (y[:, 0] - goal).square().mean()"""
STEP = """loss = y.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()"""
SECOND = """loss = (other(x) - 1).square().mean()
    second.zero_grad()
    loss.backward()
    second.step()"""
THIRD = """loss = (alpha * (y.detach() + 1)).mean()
    third.zero_grad()
    loss.backward()
    third.step()"""


@needs_torch
@pytest.mark.parametrize(
    "lines",
    [
        ["y = model(x)", "updated(other, model)", FILL],
        ["y = model(x)", "for one, two in pairs:\n        one.data.mul_(0.5).add_(two.data.mean())", FILL],
        [
            "y = other(x)",
            SECOND.replace("other(x) - 1", "y"),
            "y = model(x)",
            FILL.replace("other", "(lambda: other)()"),
        ],
        ["y = called(x)", FILL.replace("other", "model")],
        ["y = model(x)", STEP, THIRD, "value = alpha.item()", SECOND, "shown.append(value)", "loss = model(x).mean()"],
        ["y = model(x)", "counts.add_(x[x > 0.5].mean())  # fails", "loss = (y * counts).square().mean()"],
        ["y = model(x)", "memory[0] = x[x > 0.5].mean()  # fails", "loss = (y * view).square().mean()"],
        ["y = model(x)", "counted(counts, x)  # fails", "loss = (y * counts).square().mean()"],
        ["y = model(x) * counts.sum()", "total = counted(counts, x)  # fails", "loss = y.mean()"],
        ["y = model(x)[:, 0]", "goal = noisy(x)  # fails", "loss = (y - goal).square().mean()"],
        [
            "y = model(x)",
            "part = Bernoulli(torch.ones(2, device=x.device) / 2).sample().sum().item()",
            "loss = y.mean() + part",
        ],
        ["y = model(x)", "scale.grow(x)  # fails", "loss = loss_of(y)"],
        [
            "y = model(x)",
            STEP,
            "total = size(weights)  # fails",
            SECOND,
            "shown.append(total.item())",
            "loss = model(x).mean()",
        ],
        [
            "y = model(x)",
            STEP,
            "if index % 2 == 0:\n        shown.append(float(first.detach().sum()))",
            SECOND,
            "loss = model(x).mean()",
        ],
    ],
)
@pytest.mark.parametrize("outline", [outlined, outlined_backward])
def test_what_moves_past_changes_of_tensors_computes_the_same(outline: Any, lines: list[str]) -> None:
    text = HEAD + PASSED.replace("BODY", "\n    ".join(lines))
    with suppress(Refused):
        assert ran(tuned(text, outline)) == ran(text)


@pytest.mark.parametrize(
    "lines", ["rate = scheduler.get_last_lr()[0]\n        out = rate * model(x)", "out = scaled(model(x))"]
)
@pytest.mark.parametrize("outline", [outlined, outlined_backward])
def test_the_rate_of_a_scheduler_is_no_constant_of_a_graph(outline: Any, lines: str) -> None:
    made = "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)\n\n\n"
    function = "def scaled(y):\n    return y * scheduler.get_last_lr()[0]\n\n\n"
    loop = LOOP.replace("out = model(x)", lines).replace(
        "optimizer.step()", "optimizer.step()\n        scheduler.step()"
    )
    with suppress(Refused):
        new = tuned(HEAD + made + function + loop, outline)
        graph = re.search(r"def (training_step|forward_backward)\(.*?return", new, re.DOTALL)
        assert graph is not None and not re.search("get_last_lr|scaled", graph[0])


@pytest.mark.parametrize(
    ("reading", "keeps"),
    [
        ("now = model[0].weight.grad", True),
        ("shown.append(model[0].weight.grad.data.view(-1))", True),
        ("part = model[0].weight.grad[0]", True),
        ("norms = [p.grad.data.norm(2) for p in model.parameters() if p.grad is not None]", False),
        ("model[0].weight.grad.mul_(2)", False),
        ("model[0].weight.grad = model[0].weight.grad * 2", False),
        ("pass", False),
    ],
)
def test_kept_gradients_are_copies(reading: str, keeps: bool) -> None:
    new = tuned(HEAD + LOOP + f"        {reading}\n", outlined_backward)
    assert ("x.grad = new.clone()" in new) == keeps


def test_a_loop_of_a_module() -> None:
    new = outline(HEAD + LOOP)
    (function,) = functions(new)
    assert function == (
        "def training_step(x):\n    out = model(x)\n    loss = scale * out.square().mean()\n    optimizer.zero_grad()\n"
        "    loss.backward()\n    optimizer.step()\n    return (loss,)"
    )
    assert "graphed_step = GraphedStep(training_step, optimizer)\n\nfor epoch in range(2):" in new
    assert "        (loss,) = graphed_step(x)\n        shown.append(loss.item())" in new


@needs_torch
def test_elements_of_a_batch_are_arguments() -> None:
    text = HEAD + LOOP.replace("x = torch", "batch = {}\n        batch['image'] = torch")
    text = text.replace("model(x)", "model(batch['image'] + batch['image'])")
    new = outline(text)
    (function,) = functions(new)
    assert function.startswith("def training_step(image):\n    out = model(image + image)")
    assert "graphed_step(batch['image'])" in new and ran(new) == ran(text)


@needs_torch
def test_an_element_that_the_step_reads_is_not_written_behind_it() -> None:
    made = "parts = {}\n        parts['x'] = torch.from_numpy(x.numpy())\n        out = model(parts['x'])"
    text = HEAD + LOOP.replace("out = model(x)", made)
    assert ran(outline(text)) == ran(text)


def test_a_number_that_is_kept_is_read_behind_the_step() -> None:
    text = HEAD + LOOP.replace("loss.backward()", "model.last = loss.item()\n        loss.backward()")
    new = outline(text)
    assert "    (loss,) = graphed_step(x)\n        model.last = loss.item()\n" in new


def test_a_method_gets_what_another_method_replaces_and_the_condition() -> None:
    new = outline(HEAD + METHOD)
    (function,) = functions(new)
    assert function.startswith("def training_step(self, x, is_due, target):")
    assert "if is_due:" in function and "zip(self.net.parameters(), target.parameters())" in function
    assert "(loss,) = self.graphed_step(x, self.count % self.every == 0, self.target)" in new
    assert "        self.graphed_step = GraphedStep(self.training_step, self.optimizer)" in new


@needs_torch
def test_a_method_right_behind_the_constructor() -> None:
    text = HEAD + METHOD.replace("        self.tau = 0.1\n\n", "        self.tau = 0.1\n")
    new = outline(text)
    assert new.index("        self.graphed_step = ") < new.index("    def training_step(self")
    assert ran(new) == ran(text)


def test_a_scheduler_between_the_passes_never_moves_behind_the_step() -> None:
    text = (Path(__file__).parent / "programs" / "not_scheduled.py").read_text()
    new = tuned(text)
    assert "(training_step if (scheduler is not None) else graphed_step)" in new
    # A run that has no record of idle lines cannot say that the scheduler never steps.
    with pytest.raises(Refused, match=r"scheduler\.step"):
        tuned(text.replace("  # not run", ""))


def test_the_call_of_a_model_does_not_move_in_front() -> None:
    """Its result needs gradients, which end at the inputs of a graph."""
    text = """
class Net(nn.Module):
    def __init__(self):
        self.line, self.scale = nn.Linear(4, 1), 1.0

    def forward(self, x):
        return self.line(x) * self.scale

model = Net()
optimizer = torch.optim.Adam(model.parameters())
for step in range(8):
    model.scale = 1.0 + step
    made = model(torch.rand(6, 4))
    loss = criterion(made)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    line = {each: number for number, each in enumerate(text.splitlines(), 1)}
    call, step = line["    made = model(torch.rand(6, 4))"], line["    optimizer.step()"]
    seen = Seen(
        {"a.py": [step]},
        [Called("a.py", call, "a.py", line["    def forward(self, x):"])],
        [Model("a.py", call, "a.py", call, "model", names=[("a.py", 1, "model")])],
        backwards=[("a.py", step - 1)],
    )
    for outline_one in (outlined, outlined_backward):
        with pytest.raises(Refused, match=r"`self\.scale` is read, which a\.py:\d+ changes"):
            outline_one("a.py", {"a.py": text}, seen)


def test_statements_for_the_cpu_move_in_front_and_behind() -> None:
    new = outline(HEAD + TWO)
    (function,) = functions(new)
    assert "from_numpy" not in function and "print" not in function and function.count(".step()") == 2
    at = new.index("for _ in range(4)")
    assert new.index("noise = torch.from_numpy", at) < new.index("= graphed_step(", at) < new.index("print(first", at)


def test_the_tensor_of_a_read_is_computed_in_the_step() -> None:
    new = outline(HEAD + LISTS)
    (function,) = functions(new)
    assert "shown_value = (loss * 2).mean()\n" in function and "shown += [shown_value.item()]" in new


def test_a_branch_on_sizes_of_what_the_step_computes() -> None:
    check = 'if loss.dim() != 0 or loss.shape[0] > len(x):\n        raise ValueError(f"{loss.shape}")\n    '
    new = outline(HEAD + LISTS.replace("loss.backward()", f"{check}loss.backward()"))
    (function,) = functions(new)
    assert "raise ValueError" in function


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("loss.backward()", "loss.backward()\n        if loss > 3:\n            loss = loss * 2", "branches on `loss`"),
        ("loss.backward()", "loss.backward()\n        best = loss.item()\n        optimizer.zero_grad(best)", "waits"),
        ("optimizer.zero_grad()", "pass", "does not clear the gradients"),
        ("optimizer.step()", "optimizer.step(lambda: loss)", "closure"),
        ("out = model(x)", "out = model(x) * random.random()", "may do something else in each step"),
        ("out = model(x)", "out = model(x + torch.rand(5, 1).add(1).to(x.device))", "copies from the CPU"),
        ("out = model(x)", "out = model(x) + index", "a number that changes each time"),
        ("out = model(x)", "out = model(x) + torch.rand(1, generator=own)", "a generator of its own"),
        ("loss.backward()", "accelerator.backward(loss)", "has an effect"),
        ("out = model(x)", "norm = model[0].weight.grad.norm()\n        out = model(x)", "reads a gradient"),
        ("loss.backward()", "print(model[0].weight)\n        loss.backward()", "has an effect"),
        ("loss.backward()", "print(out)\n        out.mul_(2)\n        loss.backward()", "has an effect"),
        ("for epoch", "model[0].register_forward_hook(print)\nfor epoch", "a hook runs Python"),
        ("    for index", "    optimizer = torch.optim.Adam(model.parameters())\n    for index", ""),
    ],
)
def test_preconditions(old: str, new: str, reason: str) -> None:
    text = (HEAD + LOOP).replace(old, new)
    assert text != HEAD + LOOP
    if not reason:
        # The function is made again for each optimizer.
        assert "    graphed_step = GraphedStep(training_step, optimizer)\n\n    for index" in outline(text)
        return
    with pytest.raises(Refused, match=re.escape(reason)):
        outline(text)


_ALL, _STEP, _PASS = (outlined, outlined_backward), (outlined,), (outlined_backward,)


@pytest.mark.parametrize(
    ("outlines", "old", "new", "reason"),
    [
        (
            _ALL,
            "        loss = ",
            "        if scale:\n            kind = out\n        loss = ",
            "bound in only one branch",
        ),
        (_ALL, "out = model(x)", "with open(str(index)):\n            out = model(x)", "has an effect"),
        (_ALL, "out = model(x)", "with torch.enable_grad() as on:\n            out = model(x)", "do more than compute"),
        (_ALL, "loss = scale", "assert out.mean() > 0\n        loss = scale", "which the step computes"),
        (_ALL, "out = model(x)", "out = (made := model(x))", "`(made := model(x))` cannot be part of a graph"),
        (_ALL, "loss = scale", "import math\n        loss = scale", "`import math` cannot be part of a graph"),
        (_ALL, "optimizer.zero_grad()", "optimizer.zero_grad(); out.size()", "two statements share a line"),
        (_ALL, "loss = scale", 'name = """a\nb"""\n        loss = scale', "a text of several lines"),
        (
            _STEP,
            "        optimizer.step()",
            "        made = optimizer.step()",
            "the result of the optimizer's step is used",
        ),
        (_PASS, "        loss.backward()", "        made = loss.backward()", "part of another statement"),
        (
            _PASS,
            "        optimizer.zero_grad()",
            "        if scale:\n            optimizer.zero_grad()\n            out = out * 2",
            "gradients are cleared in the middle of other work",
        ),
    ],
)
def test_preconditions_of_both_forms(outlines: Sequence[Any], old: str, new: str, reason: str) -> None:
    text = (HEAD + LOOP).replace(old, new)
    text += "        kind.size()\n" if "kind" in new else ""
    for each in outlines:
        with pytest.raises(Refused, match=re.escape(reason)):
            tuned(text, each)


@pytest.mark.parametrize("each", _ALL)
def test_a_step_has_a_loop_and_names_of_its_own(each: Any) -> None:
    step = "x = torch.rand(5, 4)\nloss = model(x).mean()\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()\n"
    with pytest.raises(Refused, match="the step is not in a loop"):
        tuned(HEAD + step, each)
    inner = step.replace("\n", "\n        ").rstrip()
    with pytest.raises(Refused, match="binds a name that is not its own"):
        tuned(f"{HEAD}def train():\n    global loss\n    for _ in range(3):\n        {inner}\n\n\ntrain()\n", each)


def test_a_file_with_a_graph_of_its_step_gets_no_other_one() -> None:
    text = tuned(HEAD + LOOP)
    with pytest.raises(Refused, match="the file has a graph of its step"):
        tuned(text)
    with pytest.raises(Refused, match="no backward pass began in the file"):
        tuned(tuned(HEAD + LOOP, outlined_backward), outlined_backward)


def test_gradients_that_another_file_reads() -> None:
    texts = {"a.py": HEAD + LOOP, "b.py": "print(model.weight.grad)\n"}
    with pytest.raises(Refused, match=re.escape("a gradient is read (b.py:1)")):
        outlined("a.py", texts, seen(HEAD + LOOP))


def test_a_process_of_a_group_is_refused() -> None:
    with pytest.raises(Refused, match="one of a group"):
        outlined("a.py", {"a.py": HEAD + LOOP}, Seen({"a.py": {20}}, (), distributed=True))


def test_a_replicated_model_is_refused() -> None:
    copied = Model("a.py", 3, "a.py", 9, "model.module", 2)
    with pytest.raises(Refused, match="the model is replicated"):
        outlined("a.py", {"a.py": HEAD + LOOP}, Seen({"a.py": [9]}, (), (copied,)))


def test_hooks_of_functions_that_did_not_run_do_not_count() -> None:
    hook = "def watch():\n    model[0].register_forward_hook(print)\n\n\ndef used():\n    pass\n\n\n"
    text = HEAD + hook + LOOP
    used = Called("a.py", line_of(text, "torch.manual_seed"), "a.py", line_of(text, "def used"))
    watch = Called("a.py", line_of(text, "torch.manual_seed"), "a.py", line_of(text, "def watch"))
    assert "GraphedStep" in outline(text, [used])
    for calls in ([], [used, watch]):
        with pytest.raises(Refused, match="a hook runs Python in each step"):
            outline(text, calls)


def test_autocast_around_the_step() -> None:
    inner = LOOP[LOOP.index("        out") : LOOP.index("        shown")]
    around = "        with torch.autocast('cpu'):\n" + "".join(f"    {line}\n" for line in inner.splitlines())
    text = HEAD + LOOP.replace(inner, around)
    assert "def training_step(x):\n    with torch.autocast('cpu'):\n" in outline(text)
    if find_spec("torch") is not None:
        assert ran(outline(text)) == ran(text)
    # What cannot be in the graph stays in front of it.
    inside = outline(text.replace("            out =", "            model.count = 1\n            out ="))
    assert "            model.count = 1\n" in inside and "def training_step(x):\n    out = " in inside


HELPERS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)
        self.calls = 0

    def forward(self, x):
        {body}
        return self.fc(x)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("self.calls += 1", "`self.calls` is assigned"),
        ("x = x * random.random()", "may do something else in each step"),
        ("print(x.shape)", "has an effect"),
        ("self.seen.append(x)", "changes a Python object"),
        ("global scale; scale = 1", "changes a Python variable"),
        ("x = x * self.strength", "`self.strength` is read"),
        ("seen = []; seen.append(x)", ""),
        ("x = torch.add(x, 1)", ""),
        ("x = x * torch.strength.size", ""),
        ("x = x * self.calls", ""),
        ("x = x + torch.zeros(1).to(x.device)", "copies from the CPU"),
        ("x = x + torch.zeros(1, dtype=torch.int8).to(torch.float32)", ""),
        ("x = x + torch.zeros(1, device=x.device).to(x.device)", ""),
    ],
)
def test_functions_that_the_step_calls(body: str, reason: str) -> None:
    text = HEAD + HELPERS.format(body=body) + LOOP.replace("out = ", "model.strength = epoch\n        out = ")
    call = Called("a.py", line_of(text, "out = model"), "a.py", line_of(text, "def forward"))
    if not reason:
        assert "GraphedStep" in outline(text, [call])
        return
    with pytest.raises(Refused, match=re.escape(reason)):
        outline(text, [call])


@pytest.mark.parametrize("is_shown", [False, True])
def test_messages_below_the_level_are_not_logged(is_shown: bool) -> None:
    text = "import logging\n" + HEAD + HELPERS.format(body="logging.debug(x)") + LOOP
    call = Called("a.py", line_of(text, "out = model"), "a.py", line_of(text, "def forward"))
    logs = (("a.py", line_of(text, "logging.debug")),) if is_shown else ()
    known = replace(seen(text, [call]), logs=logs)
    if not is_shown:
        assert "GraphedStep" in outlined("a.py", {"a.py": text}, known)
    with pytest.raises(Refused, match="logs a message" if is_shown else "may do something else"):
        outlined("a.py", {"a.py": text}, known if is_shown else replace(known, logs=None))


def test_what_loops_of_constructors_assign_stays() -> None:
    body = "x = self.fc(x) * self.fc.factor"
    made = "self.calls = 0\n        for each in (self.fc,):\n            each.factor = 2.0"
    text = HEAD + HELPERS.format(body=body).replace("self.calls = 0", made) + LOOP
    text = text.replace("return self.fc(x)", "return x")
    call = Called("a.py", line_of(text, "out = model"), "a.py", line_of(text, "def forward"))
    assert "GraphedStep" in outline(text, [call])
    with pytest.raises(Refused, match=re.escape("`self.fc.factor` is read")):
        outline(text + "    model.fc.factor = 3.0\n", [call])


def test_a_branch_that_did_not_run_leaves_the_step_eager() -> None:
    branches = (
        "if mixed:\n            print(loss)\n            loss.backward()\n        else:\n            loss.backward()"
    )
    text = HEAD + "mixed = False\nmodel.zero_grad()\n" + LOOP.replace("loss.backward()", branches)
    ran_lines = {node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)}
    branch = {line_of(text, "print(loss)"), line_of(text, "print(loss)") + 1}
    known = replace(seen(text), lines={"a.py": ran_lines - branch})
    assert "(training_step if mixed else graphed_step)(x)" in outlined("a.py", {"a.py": text}, known)
    varying = text.replace("if mixed:", "if mixed and epoch:")
    for each, facts in ((text, replace(known, lines={"a.py": ran_lines})), (text, seen(text)), (varying, known)):
        with pytest.raises(Refused):
            outlined("a.py", {"a.py": each}, facts)
    if find_spec("torch") is not None:
        assert ran(outlined("a.py", {"a.py": text}, known)) == ran(text)


@pytest.mark.parametrize(
    ("body", "holds"),
    [
        ("if self.noisy and random.random() < 0.5: x = x * 2", True),
        ("x = x * random.random() if self.noisy else x", True),
        ("if self.noisy:\n            print(x)", True),
        ("if x.shape[0] > 9 and random.random() < 0.5: x = x * 2", False),
        ("if self.training and random.random() < 0.5: x = x * 2", False),
    ],
)
def test_code_of_a_function_that_an_option_keeps_from_running(body: str, holds: bool) -> None:
    text = HEAD + HELPERS.format(body=body).replace("self.calls = 0", "self.noisy = False") + LOOP
    call = Called("a.py", line_of(text, "out = model"), "a.py", line_of(text, "def forward"))
    first = line_of(text, "def forward") + 1
    idle = set(range(first, first + 1 + body.count("\n")))
    ran_lines = {node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)} - idle
    known = replace(seen(text, [call]), lines={"a.py": ran_lines})
    varying = text + "    model.fc.noisy = epoch > 3\n"
    if holds:
        assert "GraphedStep" in outlined("a.py", {"a.py": text}, known)
    for each, facts in ((text, replace(known, lines={"a.py": ran_lines | idle})), (varying, known)):
        with pytest.raises(Refused):
            outlined("a.py", {"a.py": each}, facts)
    if not holds:
        with pytest.raises(Refused):
            outlined("a.py", {"a.py": text}, known)


def test_gradients_that_a_caller_clears() -> None:
    body = "".join(f"    {line}\n" for line in LOOP.splitlines())
    text = HEAD + f"def train():\n{body}\n\ndef main():\n    model.zero_grad()\n    train()\n\n\nmain()\n"
    inner, outer = (line_of(text, f"def {name}") for name in ("train", "main"))
    calls = [
        Called("a.py", text.count("\n"), "a.py", outer),
        Called("a.py", line_of(text, "    train()"), "a.py", inner),
    ]
    assert "GraphedStep" in outline(text, calls)
    again = Called("a.py", line_of(text, "shown.append(loss"), "a.py", outer)
    for known in ([], [*calls, again]):
        with pytest.raises(Refused, match="frees gradients that a graph may write to"):
            outline(text, known)


def test_what_a_step_reads_of_a_meter_is_not_updated_behind_it() -> None:
    meter = (
        "class Meter:\n    last = 1.0\n\n    def update(self, value):\n        self.last = value\n\n\nmeter = Meter()\n"
    )
    updates = "meter.update(float(index))\n        loss = meter.last * scale"
    text = HEAD + meter + LOOP.replace("loss = scale", updates)
    update = Called("a.py", line_of(text, "meter.update("), "a.py", line_of(text, "def update"))
    for calls in ([], [update]):
        with pytest.raises(Refused):
            outline(text, calls)
    # Where only code behind the step reads it, it may move.
    after = HEAD + meter + LOOP.replace("loss = scale", "meter.update(index)\n        loss = scale")
    after += "        shown.append(meter.last)\n"
    assert "meter.update(index)\n        shown.append" in outline(after, [update])


def test_what_a_method_of_the_constructor_makes() -> None:
    made = "    def __init__(self):\n        self.build()\n\n    def build(self):"
    built = METHOD.replace("    def __init__(self):", made).replace(
        "    def load(self, state):\n        self.target = nn.Linear(4, 1)\n", ""
    )
    new = outline(HEAD + built)
    assert "        self.build()\n        self.graphed_step = GraphedStep(self.training_step, self.optimizer)\n" in new
    if find_spec("torch") is not None:
        assert ran(new) == ran(HEAD + built)
    # Other code may make them again, or a condition may leave them out.
    again = built + "trainer.build()\n"
    under = built.replace("        self.build()", "        if scale:\n            self.build()")
    for each in (again, under):
        with pytest.raises(Refused, match="is not made in `__init__`"):
            outline(HEAD + each)


def test_a_function_that_gets_its_model_or_finds_it() -> None:
    function = "def update(model, x):\n    loss = model(x).mean()\n    loss.backward()\n    return loss\n"
    loop = "for _ in range(5):\n    optimizer.zero_grad()\n    shown.append(update(model, torch.rand(5, 4)).item())\n"
    loop += "    optimizer.step()\n"
    found = function.replace("model, x", "x")
    cases = [
        (HEAD + function + loop, True),
        (HEAD + found + loop.replace("model, torch", "torch"), True),
        (found + HEAD + loop.replace("model, torch", "torch"), False),
    ]
    for text, holds in cases:
        line = line_of(text, "    loss = model")
        model = Model("a.py", line, "a.py", line, "model", 1, (("a.py", line_of(text, "def update"), "model"),))
        known = replace(seen(text), models=(model,), backwards=(("a.py", line + 1),))
        if holds:
            new = outlined_backward("a.py", {"a.py": text}, known)
            assert f"GraphedBackward(forward_backward{'' if 'update(model' in text else ', model'})\n" in new
            if find_spec("torch") is not None:
                assert ran(new) == ran(text)
        else:
            with pytest.raises(Refused):
                outlined_backward("a.py", {"a.py": text}, known)


@pytest.mark.parametrize("own", [False, True])
def test_a_model_of_the_module(own: bool) -> None:
    function = "def update(x):\n    loss = model(x).mean()\n    loss.backward()\n    return loss\n"
    loop = "for _ in range(5):\n    optimizer.zero_grad()\n    shown.append(update(torch.rand(5, 4)).item())\n"
    loop += "    optimizer.step()\n"
    text = HEAD + (function.replace("loss = ", "model = globals()['model']\n    loss = ") if own else function) + loop
    line = line_of(text, "    loss = model")
    model = Model("a.py", line, "a.py", line, "model", 1, (("a.py", 1, "model"),))
    known = replace(seen(text), models=(model,), backwards=(("a.py", line + 1),))
    if own:
        with pytest.raises(Refused, match="has no name in the function"):
            outlined_backward("a.py", {"a.py": text}, known)
    else:
        assert "GraphedBackward(forward_backward, model)\n" in outlined_backward("a.py", {"a.py": text}, known)


@pytest.mark.parametrize("ended", [False, True])
def test_a_second_pass_through_what_a_model_made(ended: bool) -> None:
    """A graph gets copies of its inputs, so that no gradients go on in front of it."""
    given = "made.detach()" if ended else "made"
    text = HEAD + (
        "for _ in range(5):\n    x = torch.rand(5, 4)\n    first = model(x).mean()\n    first.backward()\n"
        "    optimizer.step()\n    optimizer.zero_grad()\n    made = model(x)\n    shown.append(len(shown))\n"
        f"    made = shown and {given}\n    loss = model(torch.cat([x, made + x])).mean()\n    loss.backward()\n"
        "    optimizer.step()\n"
    )
    once = tuned(text, outlined_backward)
    if ended:
        assert "graphed_backward_2 = GraphedBackward(forward_backward_2, model)" in tuned(once, outlined_backward)
    else:
        with pytest.raises(Refused, match="goes on through `made`"):
            tuned(once, outlined_backward)


def test_a_later_pass_goes_through_what_the_first_one_made() -> None:
    text = HEAD + (
        "for _ in range(5):\n    x = torch.rand(5, 4)\n    optimizer.zero_grad()\n    made = model(x)\n"
        "    made.mean().backward(retain_graph=True)\n    if made.max().item() > 0:\n"
        "        (made * 2).square().mean().backward()\n    optimizer.step()\n"
    )
    with pytest.raises(Refused, match="the gradients of a later backward pass go through `made`"):
        tuned(text, outlined_backward)


@pytest.mark.parametrize("ended", [False, True])
def test_a_loss_of_what_a_model_made_in_front_of_the_step(ended: bool) -> None:
    made = "with torch.no_grad():\n        made = model(x)" if ended else "made = model(x)"
    text = HEAD + (
        f"for _ in range(5):\n    x = torch.rand(5, 4)\n    {made}\n    x.tolist()\n"
        "    loss = (made + model(x)).mean()\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    )
    if ended:
        assert "GraphedStep(training_step, optimizer)" in tuned(text)
    else:
        with pytest.raises(Refused, match="goes on through `made`, in front of the graph"):
            tuned(text)


def test_a_device_that_code_assigns_does_not_count() -> None:
    text = (
        HEAD
        + HELPERS.format(body="x = x.to(x.device)")
        + LOOP.replace("out = ", "model.device = epoch\n        out = ")
    )
    call = Called("a.py", line_of(text, "out = model"), "a.py", line_of(text, "def forward"))
    assert "GraphedStep" in outline(text, [call])


@pytest.mark.parametrize(("reads", "holds"), [("float(len(str(x)))", True), ("float(model[0].weight[0, 0])", False)])
def test_what_functions_of_a_moved_statement_read(reads: str, holds: bool) -> None:
    function = f"def note(x):\n    shown.append({reads} + random.random())\n\n\n"
    text = (
        HEAD
        + function
        + LOOP.replace(
            "        optimizer.zero_grad()",
            "        note(index)\n        float(len([1]))\n        optimizer.zero_grad()",
        )
    )
    call = Called("a.py", line_of(text, "        note(index)"), "a.py", line_of(text, "def note"))
    if holds:
        new = outline(text, [call])
        assert "out = model(x)" in new[new.index("def training_step") : new.index("graphed_step = ")]
    else:
        with pytest.raises(Refused, match="it calls `note`"):
            outline(text, [call])


def test_a_function_that_calls_the_model_is_known_from_the_run() -> None:
    head = "from losses import registry\n" + HEAD
    text = head + LOOP.replace("out = model(x)", "out = registry['a'](model, x)")
    texts = {"a.py": text, "losses.py": "def mean(model, x):\n    return model(x)\n"}
    call = Called("a.py", line_of(text, "out = "), "losses.py", 1)
    model = Model("losses.py", 2, "a.py", line_of(text, "out = "), "model")
    assert "GraphedStep" in outlined("a.py", texts, replace(seen(text, [call]), models=(model,)))
    with pytest.raises(Refused):
        outlined("a.py", texts, seen(text, [call]))


def test_a_loop_in_another_function_is_refused() -> None:
    body = "    loss = model(x).mean()\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    with pytest.raises(Refused, match="the loop of the step is in another function"):
        outline(HEAD + "def step(x, optimizer):\n" + body)
    with pytest.raises(Refused, match="the loop of the step is in another function"):
        outline(HEAD + "def step(x):\n" + body + "\n\noptimizer = torch.optim.SGD(model.parameters(), 0.2)\n")


def test_accumulated_gradients_are_refused() -> None:
    text = HEAD + LOOP.replace(
        "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n",
        "        loss.backward()\n        if index % 2:\n"
        "            optimizer.step()\n            optimizer.zero_grad()\n",
    )
    with pytest.raises(Refused):
        outline(text)


def test_both_reasons_are_told_where_neither_form_can_be_a_graph() -> None:
    text = HEAD + LOOP.replace("loss.backward()", "loss.backward(create_graph=True)").replace(
        "scale *", "random.random() *"
    )
    facts = replace(seen(text), backwards=[("a.py", line_of(text, "loss.backward"))])
    with pytest.raises(Refused) as refused:
        graph({"a.py": text}, Evidence(facts, (), 10.0, 5.0))
    whole, passes = refused.value.reason.split("; without the optimizer's step: ")
    assert whole.endswith("`random.random()` may do something else in each step")
    assert passes.endswith("gradients of gradients may be wanted")


CRITIC = """
class Module:
    def __init__(self):
        self.net = nn.Linear(4, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.1)
        self.scale = 1.0

    def update(self, batch):
        self.scale = 1.0 + len(shown)
        criterion = nn.MSELoss()
        for _ in range(3):
            self.optimizer.zero_grad()
            loss = (self.net(batch) * self.scale).square().mean()
            loss.backward()
            self.optimizer.step()
        shown.append(loss.item())


module = Module()
model, optimizer = module.net, module.optimizer
list(map(module.update, torch.rand(4, 5, 4)))
"""


def test_a_graph_outlives_the_calls_of_a_function_if_each_has_few_steps() -> None:
    text = HEAD + CRITIC
    known = seen(text)
    short = replace(known, again=[("a.py", line_of(text, "def update"))])
    made = "        graphed_step = GraphedStep(training_step, self.optimizer)\n\n        for _ in range(3)"
    assert made in outlined("a.py", {"a.py": text}, known)
    new = outlined("a.py", {"a.py": text}, short)
    assert "        self.graphed_step = GraphedStep(self.training_step, self.optimizer)\n\n    def" in new
    # A library calls the method again, so an attribute that it assigns in front of the loop is another one.
    assert "(loss,) = self.graphed_step(batch, self.scale)" in new
    if find_spec("torch") is not None:
        assert ran(new) == ran(text)
    # A loss that each call makes would have a graph for each call.
    each = text.replace("(self.net(batch) * self.scale).square().mean()", "criterion(self.net(batch), self.scale)")
    assert "\n        graphed_step = GraphedStep(" in outlined("a.py", {"a.py": each}, short)


def test_a_graph_is_made_in_front_of_the_decorators_of_a_function() -> None:
    body = LOOP[LOOP.index("        out") : LOOP.index("        shown")].replace("        ", "    ")
    text = f"{HEAD}\n\n@print\ndef update(x):\n{body}"
    assert "optimizer)\n\n@print\ndef update(x):" in outline(text)


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ("", 'for group in optimizer.param_groups:\n            group["lr"] *= 0.9'),
        ("groups = optimizer.param_groups\n", 'group = groups[0]\n        group["lr"] *= 0.9'),
        ("", "seen = shown\n        seen += [1.0]"),
    ],
)
def test_a_change_of_an_object_that_was_there_is_no_part_of_a_graph(before: str, change: str) -> None:
    text = HEAD + before + LOOP.replace("loss.backward()", f"{change}\n        loss.backward()")
    with pytest.raises(Refused, match="outside of the step is changed"):
        outline(text)
    own = HEAD + LOOP.replace(
        "loss = ", "parts = {}\n        parts['a'] = out * 2\n        loss = parts['a'].mean() + "
    )
    assert "GraphedStep" in outline(own)


@needs_torch
@pytest.mark.parametrize(
    "made", ["from math import pi as factor", "def factor():\n        pass", "class factor:\n        pass"]
)
def test_names_that_a_function_imports_or_defines_are_its_own(made: str) -> None:
    body = ["def update(x):", made, "loss = model(x).mean()", "loss = loss * factor" if "pi" in made else "factor()"]
    body += ["optimizer.zero_grad()", "loss.backward()", "optimizer.step()", "return loss"]
    loop = "for _ in range(3):\n    shown.append(update(torch.rand(5, 4)).item())\n"
    text = HEAD + "\n\n" + "\n    ".join(body) + "\n\n\n" + loop
    try:
        new = outline(text)
    except Refused:
        assert "pi" not in made
    else:
        assert ran(new) == ran(text)


def test_an_optimizer_whose_step_is_no_part_of_the_graph_is_refused() -> None:
    text = HEAD + "class Own(torch.optim.SGD):\n    def step(self):\n        print()\n\n\n" + LOOP
    call = Called("a.py", line_of(text, "optimizer.step()"), "a.py", line_of(text, "def step"))
    with pytest.raises(Refused):
        outline(text, [call])


@needs_torch
def test_inputs_have_names_of_their_own() -> None:
    text = HEAD + LOOP.replace("loss.backward()", "loss = loss * model.a.x * model.b.x\n        loss.backward()")
    text = text.replace("for epoch", "model.a, model.b = nn.Identity(), nn.Identity()\nfor epoch")
    text = text.replace("    for index", "    model.a.x, model.b.x = 1.0 + epoch, 2.0\n    for index")
    new = outline(text)
    assert "def training_step(x, x_2, x_2_2):" in new and ran(new) == ran(text)


@needs_torch
def test_names_of_comprehensions_are_no_results() -> None:
    text = HEAD + LOOP.replace(
        "loss.backward()", "loss = loss + sum([loss * k for k in range(3)])\n        loss.backward()"
    )
    text = text.replace("        shown.append(", "        k = 1\n        shown.append(k * ")
    new = outline(text)
    assert "return (loss,)" in new and ran(new) == ran(text)
