"""Models that are compiled: the place of the call, equal results of eager code, and refusals with their reason."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from perflint.tracer.look import _is_distributed
from perflint.tracer.optimizer_steps import listen
from perflint.tracer.step_calls import StepCalls
from perflint.tune.changes import COMPILE, GRAPH, KERNELS
from perflint.tune.compiled import compiled
from perflint.tune.evidence import Evidence
from perflint.tune.graphs.outlining import Model, Seen, outlined
from perflint.tune.refused import Refused

HEAD = """
import torch
from torch import nn

shown = []
"""
SCRIPT = """
net = nn.Linear(4, 1)
net = net.to("cpu")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    loss = net(torch.ones(2, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown.append(loss.item())
"""
FUNCTIONS = """
def train(steps, model, optimizer):
    for _ in range(steps):
        loss = model(torch.ones(2, 4)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown.append(loss.item())


def main():
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        train(3, net, optimizer)


main()
"""
METHOD = """
class Trainer:
    def __init__(self):
        self.net = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def update(self, x):
        loss = self.net(x).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


trainer = Trainer()
for _ in range(3):
    shown.append(trainer.update(torch.ones(2, 4)).item())
"""
WRAPPED = FUNCTIONS.replace("optimizer = torch.optim.SGD(net.parameters(), lr=0.1)", "optimizer = Scheduled(net)")
WRAPPED = WRAPPED.replace("optimizer.step()", "optimizer.step_and_update()")
WRAPPED = (
    """
class Scheduled:
    def __init__(self, net):
        self.inner, self.count = torch.optim.SGD(net.parameters(), lr=0.1), 0

    def zero_grad(self):
        self.inner.zero_grad()

    def step_and_update(self):
        self.count += 1
        self.inner.step()

"""
    + WRAPPED
)
PASSED = METHOD.replace("self.net(x).mean()", "score(self.net, x)").replace(
    "class Trainer", "def score(net, x):\n    return net(x).mean()\n\n\nclass Trainer"
)
INNER = METHOD.replace("self.net = nn.Linear(4, 1)", "self.net = nn.ModuleDict({'head': nn.Linear(4, 1)})")
INNER = INNER.replace("self.net(x)", "self.net.head(x)")
TWO = SCRIPT.replace("optimizer =", "other = nn.Linear(1, 1)\noptimizer =", 1).replace("net(torch", "other(net)(torch")
TWO = TWO.replace("other(net)(torch.ones(2, 4))", "other(net(torch.ones(2, 4)))")


def seen(text: str) -> Seen:
    """The models and the steps of a run."""
    import torch

    with TemporaryDirectory() as folder:
        calls = StepCalls(folder)
        forget = listen(lambda each: calls.stepped(sys._getframe(1), each))
        calls.start()
        try:
            exec(compile(text, os.path.join(folder, "a.py"), "exec"), {"__name__": "program", "torch": torch})
        finally:
            calls.stop()
            forget()
    steps = {"a.py": [line for _, line, _ in calls.report()["steps"]]}
    report = calls.report()
    models = tuple(Model(*each) for each in report["models"])
    facts = Seen(steps, (), models, report["evaluations"], distributed=_is_distributed(), reduces=report["reduces"])
    return replace(facts, lines={"a.py": {line for _, line in report["lines"]}})


def written(text: str, busy: float | None = 1.0) -> str:
    return compiled({"a.py": text}, Evidence(seen(text), (), 10.0, busy))["a.py"]


def ran(text: str, patch: pytest.MonkeyPatch, has_gpu: bool = True) -> tuple[list[float], list[Any]]:
    """The numbers that a program shows, and the modules that it compiles, which stay eager."""
    import torch

    torch.manual_seed(0)
    modules: list[Any] = []
    patch.setattr(torch.nn.Module, "compile", lambda module, mode: modules.append((type(module).__name__, mode)))
    patch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    patch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: None)
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, "a.py", "exec"), names)
    return names["shown"], modules


PARTS = """
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 2), nn.Linear(2, 1)

    def encode(self, x):
        return self.outer(self.inner(x))

coder = Coder()
optimizer = torch.optim.SGD(coder.parameters(), lr=0.1)

def train():
    for _ in range(3):
        optimizer.zero_grad()
        coder.encode(torch.ones(2, 4)).mean().backward()
        optimizer.step()

def evaluate(coder):
    return coder

train()
"""


def test_the_name_of_what_holds_a_model() -> None:
    """A model may be called by other methods than its own call, which are called by its name."""
    names = [{line: name for _, line, name in each.names} for each in seen(HEAD + PARTS).models]
    lines = (HEAD + PARTS).splitlines()
    encode, module = lines.index("    def encode(self, x):") + 1, 1
    assert [each[encode] for each in names] == ["self.inner", "self.outer"]
    assert [each[module] for each in names] == ["coder", "coder"]


def test_the_mark_of_a_step_stands_in_the_file_with_its_loop() -> None:
    model, loop = PARTS.split("coder = Coder()")
    texts = {"a.py": f"from b import Coder\ncoder = Coder(){loop}", "b.py": HEAD + model}
    facts = seen(HEAD + PARTS)
    shift = (HEAD + model).count("\n") - 1
    models = tuple(
        replace(each, path="b.py", holder="b.py", holder_line=each.line, name=f"self.{part}")
        for each, part in zip(facts.models, ("inner", "outer"), strict=True)
    )
    facts = replace(facts, models=models, steps={"a.py": [line - shift for line in facts.steps["a.py"]]}, lines={})
    new = compiled(texts, Evidence(facts, (), 10.0, 1.0))
    assert "    for _ in range(3):\n        torch.compiler.cudagraph_mark_step_begin()\n" in new["a.py"]
    assert "self.inner.compile" in new["b.py"] and "self.outer.compile" in new["b.py"]


@pytest.mark.parametrize(
    ("body", "line", "before"),
    [
        (SCRIPT, 'net.compile(mode="reduce-overhead")', "for epoch in range(3):"),
        (FUNCTIONS, '    net.compile(mode="reduce-overhead")', "    for _ in range(2):"),
        (METHOD, '        self.net.compile(mode="reduce-overhead")', "        self.optimizer = torch"),
        (WRAPPED, '    net.compile(mode="reduce-overhead")', "    for _ in range(2):"),
        (PASSED, '        self.net.compile(mode="reduce-overhead")', "        self.optimizer = torch"),
        (INNER, '        self.net.head.compile(mode="reduce-overhead")', "        self.optimizer = torch"),
        (TWO, 'other.compile(mode="reduce-overhead")', "for epoch in range(3):"),
    ],
    ids="SCRIPT FUNCTIONS METHOD WRAPPED PASSED INNER TWO".split(),
)
def test_the_model_is_compiled_where_it_is_made(
    body: str, line: str, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = written(HEAD + body)
    assert f"{line}\n" in new and new.index(line) < new.index(before)
    assert new.count("cudagraph_mark_step_begin") == (body is TWO)
    shown, modules = ran(new, monkeypatch)
    assert shown == ran(HEAD + body, monkeypatch)[0]
    assert modules == [("Linear", "reduce-overhead")] * (2 if body is TWO else 1)
    # A compiler for the CPU may not be there, and takes long.
    assert ran(new, monkeypatch, has_gpu=False) == (shown, [])


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("    loss = net", "    net = net.train()\n    loss = net", "`net` is bound again in the loop"),
        ("net(torch", "[net][0].forward(torch", "calls no model"),
        (
            "loss.backward()",
            "loss.backward(retain_graph=True)",
            "`loss.backward(retain_graph=True)` (a.py:13) keeps what a compiled model does not",
        ),
    ],
)
def test_refusals(old: str, new: str, reason: str) -> None:
    with pytest.raises(Refused, match=re.escape(reason)):
        written(HEAD + SCRIPT.replace(old, new))


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("net = make()\nnet(x)\n", "", "no name for the model of a.py:2 was found"),
        ("net = make()\nx = 1; net(x)\n", "net", "two statements share a line"),
        ("net = make()\n", "net", "the source is another one than that which ran"),
    ],
)
def test_a_model_needs_a_name_and_a_line(text: str, name: str, reason: str) -> None:
    facts = Evidence(Seen({}, (), (Model("a.py", 2, "a.py", 2, name),)), (), 10.0, 5.0)
    with pytest.raises(Refused, match=reason):
        compiled({"a.py": text}, facts)


def test_several_models_without_a_loop_are_refused() -> None:
    models = tuple(Model("a.py", line, "a.py", line, name) for line, name in ((3, "one"), (4, "two")))
    with pytest.raises(Refused, match="several models are called outside of a loop"):
        compiled(
            {"a.py": "one = make()\ntwo = make()\none(x)\ntwo(x)\n"}, Evidence(Seen({}, (), models), (), 10.0, 5.0)
        )


def test_other_changes_leave_a_step_as_it_is() -> None:
    texts = {"a.py": SCRIPT}
    facts = Evidence(Seen({}, (), (Model("a.py", 6, "a.py", 6, "net"),)), (), 10.0, 5.0)
    with pytest.raises(Refused, match="no line of the project steps an optimizer"):
        GRAPH.write(texts, facts)
    made = compiled(texts, facts)
    with pytest.raises(Refused, match="a compiled model has graphs of its own"):
        GRAPH.write(made, facts)
    with pytest.raises(Refused, match="the compiled models have no graphs"):
        KERNELS.write({"a.py": f"{SCRIPT}\n\nclass GraphedStep:\n    pass\n"}, facts)


def test_models_of_other_places_are_refused() -> None:
    with pytest.raises(Refused, match="is passed as an expression, not by a name"):
        written(HEAD + FUNCTIONS.replace("train(3, net", "train(3, nn.Sequential(net)"))
    with pytest.raises(Refused, match="is not made in one method of its class"):
        written(
            HEAD
            + METHOD.replace(
                "    def __init__", "    def reset(self):\n        self.net = nn.Linear(4, 1)\n\n    def __init__"
            )
        )


def test_a_model_is_compiled_where_a_method_makes_it() -> None:
    built = METHOD.replace("__init__(self)", "build(self)").replace("Trainer()", "Trainer(); trainer.build()")
    assert 'self.net.compile(mode="reduce-overhead")\n' in written(HEAD + built)


def test_several_models_of_a_function_that_makes_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + METHOD.replace(
        "        self.optimizer =", "        self.other = nn.Linear(1, 1)\n        self.optimizer =", 1
    )
    text = re.sub(r"self\.net\((.*?)\)\.", r"self.other(self.net(\1)).", text, count=1)
    new = written(text)
    assert new.count(".compile(") == 2 and new.count("cudagraph_mark_step_begin") == 1
    assert ran(new, monkeypatch)[0] == ran(text, monkeypatch)[0]


def test_kernels_without_graphs_need_no_mark() -> None:
    evidence = Evidence(seen(HEAD + TWO), (), 10.0, 9.0)
    new = KERNELS.write({"a.py": HEAD + TWO}, evidence)["a.py"]
    assert new.count(".compile()\n") == 2 and "cudagraph_mark" not in new
    assert KERNELS.forecast(evidence) == 0.45 and [each.name for each in COMPILE.parts()] == ["compile"]
    with pytest.raises(Refused, match="have no graphs"):
        KERNELS.write({"a.py": f"{HEAD}{TWO}class GraphedStep: pass\n"}, evidence)


def test_an_old_torch_runs_the_program_as_it_is() -> None:
    evidence = Evidence(seen(HEAD + SCRIPT), (), 10.0, 1.0, (1, 1))
    assert (
        'if torch.cuda.is_available() and hasattr(net, "compile"):\n'
        in compiled({"a.py": HEAD + SCRIPT}, evidence)["a.py"]
    )
    evidence = Evidence(seen(HEAD + TWO), (), 10.0, 1.0, (1, 1))
    assert (
        '    if hasattr(torch, "compiler"):\n        torch.compiler.cudagraph'
        in compiled({"a.py": HEAD + TWO}, evidence)["a.py"]
    )


def test_a_model_is_compiled_in_the_block_that_makes_it() -> None:
    text = FUNCTIONS.replace("    for _ in range(2):\n", "    try:\n").replace(
        "\n\n\nmain", "\n    finally:\n        pass\n\n\nmain"
    )
    text = text.replace("def main():", 'if __name__ == "program":').replace("main()\n", "")
    new = written(HEAD + text)
    assert '    if torch.cuda.is_available():\n        net.compile(mode="reduce-overhead")\n    try:\n' in new


def test_a_model_that_another_file_calls_is_compiled_where_its_holder_is() -> None:
    holder = "import torch\nnet = torch.nn.Linear(4, 1)\nfor _ in range(2):\n    update(net)\n"
    model = Model("b.py", 2, "a.py", 4, "net")
    evidence = Evidence(Seen({"b.py": [3]}, (), (model,)), (), 10.0, 1.0)
    new = compiled({"a.py": holder, "b.py": "def update(net):\n    net()\n    step()\n"}, evidence)
    assert (
        list(new) == ["a.py"]
        and '1)\nif torch.cuda.is_available():\n    net.compile(mode="reduce-overhead")\nfor' in new["a.py"]
    )


def test_the_model_inside_of_a_wrapper_that_does_not_copy_it_is_compiled() -> None:
    text = HEAD + SCRIPT.replace("net = net.to", "net = nn.DataParallel(net)\nnet = net.to")
    assert '\n    net.module.compile(mode="reduce-overhead")\nfor' in written(text)
    models = tuple(replace(each, copies=2) for each in seen(text).models)
    with pytest.raises(Refused, match="the model is replicated"):
        compiled({"a.py": text}, Evidence(Seen({"a.py": [3]}, (), models), (), 10.0, 1.0))


def test_a_group_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch.distributed as group

    group.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        text = HEAD + SCRIPT.replace("net = net.to", "net = nn.parallel.DistributedDataParallel(net)\nnet = net.to")
        new = written(text)
        assert '\n    net.module.compile(mode="reduce-overhead")\nfor' in new
        assert ran(new, monkeypatch)[0] == ran(text, monkeypatch)[0]
        with pytest.raises(Refused, match="hooks that add up gradients run in each step"):
            outlined("a.py", {"a.py": text}, seen(text))
        assert not _is_distributed()
        monkeypatch.setattr(group, "get_world_size", lambda: 2)
        assert _is_distributed()
    finally:
        group.destroy_process_group()


def test_models_of_a_program_that_steps_no_optimizer() -> None:
    evaluation = "net = nn.Linear(4, 1)\nfor _ in range(2):\n    shown.append(net(torch.ones(1, 4)).item())\n"
    assert '1)\nif torch.cuda.is_available():\n    net.compile(mode="reduce-overhead")\nfor' in written(
        HEAD + evaluation
    )


def test_a_program_that_compiles_or_is_one_of_a_group_is_refused() -> None:
    for seen, reason in (
        (Seen({"a.py": {3}}, (), compiles=True), "the program compiles by itself"),
        (Seen({"a.py": {3}}, (), distributed=True), "the process is one of a group"),
    ):
        with pytest.raises(Refused, match=reason):
            compiled({"a.py": SCRIPT}, Evidence(seen, (), 10.0, 1.0))


def test_evaluations_stay_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = "\n\n@torch.no_grad()\ndef evaluate(model):\n    shown.append(model(torch.ones(1, 4)).item())\n"
    text = HEAD + evaluation + FUNCTIONS.replace("        train(3, net", "        evaluate(net)\n        train(3, net")
    new = written(text)
    assert '@torch.no_grad()\n@torch.compiler.set_stance("force_eager")\ndef evaluate(model):\n' in new
    assert ran(new, monkeypatch)[0] == ran(text, monkeypatch)[0] and new.count("set_stance") == 1
    older = compiled({"a.py": text}, Evidence(seen(text), (), 10.0, 1.0, (2, 5)))["a.py"]
    assert "set_stance" not in older and "net.compile(" in older


def test_a_function_for_training_and_evaluation_is_compiled() -> None:
    shared = "\n\ndef forward(model):\n    return model(torch.ones(2, 4))\n"
    text = HEAD + shared + FUNCTIONS.replace("model(torch.ones(2, 4))", "forward(model)")
    text = text.replace(
        "        train(3, net", "        with torch.no_grad():\n            forward(net)\n        train(3, net"
    )
    assert "set_stance" not in written(text) and written(text).count(".compile(") == 1


def test_a_pass_that_never_ran_does_not_count() -> None:
    idle = "    loss.backward(retain_graph=True) if epoch > 9 else 0\n"
    text = SCRIPT.replace("    loss.backward()", f"{idle}    loss.backward()")
    assert ".compile(" in written(HEAD + text)


def test_a_program_without_a_gpu_is_refused() -> None:
    with pytest.raises(Refused, match="no GPU"):
        written(HEAD + SCRIPT, busy=None)
