"""The mark of a step, for several models with CUDA graphs or several calls of one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perflint.tracer.events import Experiment, ModuleCall
from tests.cli.command import Command
from tests.tracer.changes.recorded import SHAPE, call, experiment, place
from tests.tracer.changes.test_changes import GRAPHS, NET, fixed

MODE = 'compile(mode="reduce-overhead")'
MARK = "torch.compiler.cudagraph_mark_step_begin()"
GAN = """import sys
generator = Net().cuda()
critic = Net( ).cuda()
for_generator = torch.optim.Adam(generator.parameters(), fused=True)
for_critic = torch.optim.Adam(critic.parameters(), fused=True)
for epoch in range(2):
    for real in []:

        # The generator.
        for_generator.zero_grad()
        made = generator(torch.rand(4, 8))
        loss = critic(made).sum()
        loss.backward()
        for_generator.step()
        for_critic.zero_grad()
        both = critic(real).sum() - critic(made.detach()).sum()
        both.backward()
        for_critic.step()
        print(loss.item(), both.item())
"""
ACCUMULATED = """model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(batches):
    for batch in batches:
        optimizer.zero_grad()
        for part in batch.split(4):
            loss = model(part).sum()
            loss.backward()
        optimizer.step()
"""
IN_FUNCTION = """model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(batch):
    optimizer.zero_grad()
    for part in batch.split(4):
        loss = model(part).sum()
        loss.backward()
    optimizer.step()
for batch in []:
    train(batch)
"""


def of_gan(text: str, calls: int = 6) -> tuple[Experiment | ModuleCall, ...]:
    """Experiments and calls of the two models: two steps call the critic `calls` times."""
    makers = place(text, "Net()"), place(text, "Net( )")
    called = place(text, "generator("), place(text, "critic(")
    tried = (experiment(GRAPHS, at, 2.0, called=by) for at, by in zip(makers, called, strict=True))
    return (*tried, call(makers[0], *SHAPE), replace(call(makers[1], *SHAPE), count=calls))


def of_one(text: str, calls: int = 8) -> tuple[Experiment | ModuleCall, ...]:
    """The same for one model."""
    at = place(text, "Net(")
    found = (place(text, "model(", function) for function in ("train",))
    return (experiment(GRAPHS, at, 2.0, called=next(found)), replace(call(at, *SHAPE), count=calls))


def test_both_models_of_a_gan_replay_graphs_between_marks(perflint: Command) -> None:
    text = NET + GAN
    # Experiments with optimizers and layers have places in the file, too.
    others = (
        experiment("fused-optimizer", place(text, "torch.optim.Adam(generator"), scope="optimizer"),
        experiment("bias-before-norm", place(text, "nn.Linear(", "Net.__init__"), scope="layer"),
        experiment("fused-optimizer", place(text, "torch.rand("), scope="optimizer"),
    )
    lines, ran = fixed(perflint, text, *of_gan(text), *others)
    assert [line.strip("+ ") for line in lines] == [
        f"generator.{MODE}",
        f"critic.{MODE}",
        MARK,
        "for_critic.zero_grad()",
    ], ran.err + ran.out
    assert f"     for real in []:\n \n+        {MARK}\n" in ran.out
    assert "was not written" not in ran.err


def test_steps_of_several_calls_are_marked(perflint: Command) -> None:
    text = NET + ACCUMULATED
    lines, ran = fixed(perflint, text, *of_one(text))
    assert lines == [f"+model.{MODE}", f"+        {MARK}"], ran.err
    assert f"     for batch in batches:\n+        {MARK}\n" in ran.out


REFUSED_OF_GAN = [
    (
        "for_critic.zero_grad()\n",
        "if epoch:\n            for_critic.zero_grad()\n",
        "of `for_critic` live from one step",
    ),
    ("for_critic.zero_grad()", "for_critic.zero_grad(set_to_none=False)", "of `for_critic` live from one step"),
    ("print(loss.item(), both.item())", "print(critic.layer.weight.grad)", "the file uses gradients itself"),
    ("both.backward()", "both.backward(retain_graph=True)", "the file uses `retain_graph`"),
    ("import sys", "from sys import exit\nclip = nn.utils.clip_grad_norm_", "before it sets them to None"),
    ("both.item())\n", "both.item())\nlast = lambda: print(critic(1))\n", "in a loop or function outside of the step"),
    (
        "both.item())\n",
        "both.item())\nfor x in []:\n    print(critic(x))\n",
        "in a loop or function outside of the step",
    ),
    ("import sys", "def check():\n    return [critic]", "hands the model on, and other code may call it"),
    (
        "print(loss.item()",
        "for _ in real:\n            critic(real).sum()\n        print(loss.item()",
        "without a backward",
    ),
    ("print(loss.item()", "torch.save([critic(x) for x in real], 'f')\n        print(loss.item()", "comprehension"),
    ("print(loss.item()", "critic.sample(real)\n        print(loss.item()", "calls a method of it"),
    ("for_critic = torch.optim.Adam(critic.parameters(), fused=True)", "for_critic = Other(critic)", "hands the model"),
    ("for_critic = torch", "critics = [critic.parameters()]\nfor_critic = fast", "does not show its optimizer"),
    ("        for_critic.step()\n", "", "does not show a step of its optimizer"),
    ("        # The gen", "        torch.compiler.cudagraph_mark_step_begin\n        # The gen", ""),
    ("for_generator.step()", "for_generator.step(); torch.compiler.cudagraph_mark_step_begin()", "marks its steps at"),
]


@pytest.mark.parametrize(("old", "new", "reason"), REFUSED_OF_GAN)
def test_without_proof_the_critic_gets_no_graphs(perflint: Command, old: str, new: str, reason: str) -> None:
    assert old in GAN
    text = NET + GAN.replace(old, new)
    lines, ran = fixed(perflint, text, *of_gan(text))
    has_graphs = f"+critic.{MODE}" in lines
    assert has_graphs == (not reason) and reason in ran.err, (lines, ran.err)


def test_a_model_in_another_loop_shares_no_step(perflint: Command) -> None:
    text = NET + GAN.replace(
        "        for_critic.zero_grad()\n", "        for _ in range(2):\n            critic(made)\n"
    )
    lines, ran = fixed(perflint, text, *of_gan(text, 8))
    assert not lines and "without a backward pass" in ran.err


REFUSED_OF_ONE = [
    ("model(part)", "model(part)", 40, "a step calls it 20 times"),
    ("for part in batch.split(4):", "if batch:\n            part = batch", 8, "calls it 4 times, and the file shows 1"),
    ("        optimizer.zero_grad()\n", "", 8, "live from one step to the next"),
    (
        "        optimizer.zero_grad()",
        "        if len(batch):\n            optimizer.zero_grad()",
        8,
        "live from one step",
    ),
    ("        optimizer.step()", "    optimizer.step()", 8, "live from one step to the next"),
    ("model = Net()\n", "model = holder.model = Net()\n", 8, "bound to several names"),
    (
        "    for batch in batches:\n        opt",
        "    for batch in batches:\n        'step'\n        opt",
        8,
        "or is a text",
    ),
]


@pytest.mark.parametrize(("old", "new", "calls", "reason"), REFUSED_OF_ONE)
def test_without_proof_several_calls_get_no_mark(
    perflint: Command, old: str, new: str, calls: int, reason: str
) -> None:
    assert old in ACCUMULATED
    text = NET + ACCUMULATED.replace(old, new)
    lines, ran = fixed(perflint, text, *of_one(text, calls))
    assert not lines and reason in ran.err, (lines, ran.err)


def test_a_function_that_makes_one_step_begins_with_the_mark(perflint: Command) -> None:
    text = NET + IN_FUNCTION
    lines, ran = fixed(perflint, text, *of_one(text))
    assert lines == [f"+model.{MODE}", f"+    {MARK}"], ran.err


def test_the_mark_needs_a_torch_that_has_it(perflint: Command) -> None:
    text = NET + ACCUMULATED
    for version, number in (("2.1", 0), ("2.2", 2)):
        perflint.write("pyproject.toml", f'[tool.perflint]\ntorch-version = "{version}"\n')
        lines, ran = fixed(perflint, text, *of_one(text))
        assert len(lines) == number, ran.err


def test_the_marked_change_is_risky(perflint: Command) -> None:
    text = NET + ACCUMULATED
    fixed(perflint, text, *of_one(text))
    options = ("--trace", "trace.jsonl.gz", "--experiments", "program.py")
    assert perflint("fix", "--unsafe-fixes", *options).out == ""
