"""Changes over records of programs on an H200: their steps, calls and experiments, at places of short programs.

The programs failed, hung or got faster with the changes that were written first. Each record in `data` was traced with
torch 2.11; only the names and places in it are others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perflint.tracer.events import Experiment, ModuleCall, Place, Step
from perflint.tracer.file import read_trace
from tests.cli.command import Command, Ran
from tests.tracer.changes.recorded import place, record

DATA = Path(__file__).parent / "data"
NET = """import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x


"""
CLASSIFIER = """model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in []:
    scores, more = model(images)
    loss = nn.functional.cross_entropy(scores, labels)
    total = loss + more * 0.1
    print(f"{loss.item():.3f} {more.item():.3f}")
    total.backward()
    optimizer.step()
"""
GAN = """generator = Net()
discriminator = Net()
for real in []:
    made = generator(torch.rand(64, 100))
    loss = discriminator(made).sum()
    loss.backward()
    both = discriminator(real).sum() + discriminator(made.detach()).sum()
    both.backward()
"""
DECODING = """model = Net()
def decode(tokens):
    for _ in range(9):
        scores = model(tokens)
        tokens = torch.cat([tokens, scores.argmax(-1)], dim=1)
"""
EVALUATION = """model = Net()
if torch.cuda.is_available():
    model = torch.nn.DataParallel(model).cuda()
for images in []:
    print(model(images).argmax(1))
"""


def fixed(perflint: Command, name: str, text: str, made: Sequence[str], called: Sequence[str]) -> tuple[list[str], Ran]:
    """The changed lines of a program with a record, whose models are made and called by some code, in order."""
    trace = read_trace(DATA / f"{name}.jsonl.gz")
    tried = trace.of(Experiment)
    places = [
        dict(zip(dict.fromkeys(found), (place(text, code) for code in codes), strict=True))
        for found, codes in (((each.place for each in tried), made), ((each.called for each in tried), called))
    ]

    def moved(each: Experiment | ModuleCall | Step) -> Experiment | ModuleCall | Step:
        if isinstance(each, Experiment):
            return replace(each, place=places[0][each.place], called=places[1][each.called])
        return replace(each, made=_of(places[0], each.made)) if isinstance(each, ModuleCall) else each

    records = [moved(each) for each in (*trace.of(Step), *trace.of(ModuleCall), *tried)]
    record(perflint.folder, text, *records, steps=trace.header.step_source)
    ran = perflint("fix", "--trace", "trace.jsonl.gz", "--experiments", "--risky-fixes", "program.py")
    return [line for line in ran.out.splitlines() if re.match(r"[+-](?![+-])", line)], ran


def _of(places: dict[Place | None, Place], made: Place | None) -> Place | None:
    return places.get(made, made)


def test_the_data_are_those_of_a_gpu() -> None:
    names = sorted(path.name.partition(".")[0] for path in DATA.glob("*.jsonl.gz"))
    assert names == ["classifier", "decoding", "evaluation", "gan", "graph", "recurrent"]
    for name in names:
        trace = read_trace(DATA / f"{name}.jsonl.gz")
        assert trace.header.devices == ("NVIDIA H200",) and trace.of(Experiment) and trace.of(ModuleCall)


def test_a_classifier_is_compiled_with_graphs_while_its_outputs_are_used_up(perflint: Command) -> None:
    lines, ran = fixed(perflint, "classifier", NET + CLASSIFIER, ["Net("], ["model(images)"])
    assert '+model.compile(mode="reduce-overhead")' in lines, ran.err
    kept = CLASSIFIER.replace("total.backward()", "total.backward()\n    model.last = scores")
    lines, ran = fixed(perflint, "classifier", NET + kept, ["Net("], ["model(images)"])
    assert "+model.compile()" in lines and "keeps `scores` for later" in ran.err


def test_the_two_models_of_a_gan_share_no_graphs(perflint: Command) -> None:
    text = NET + GAN.replace("discriminator = Net()", "discriminator = Net(  )")
    lines, ran = fixed(perflint, "gan", text, ["Net()", "Net(  )"], ["generator(", "discriminator("])
    assert lines == ["+generator = generator.to(memory_format=torch.channels_last)"]
    assert len(re.findall("reduce-overhead.* was not written: the program calls 2 models", ran.err)) == 2


def test_the_two_models_of_a_gan_replay_graphs_if_the_file_shows_the_steps(perflint: Command) -> None:
    steps = "    first.zero_grad()\n    second.zero_grad()\n"
    made = "first = torch.optim.SGD(generator.parameters())\nsecond = torch.optim.SGD(discriminator.parameters())\n"
    text = GAN.replace("    made", f"{steps}    made").replace("for real", f"{made}for real")
    text = (
        NET + text.replace("discriminator = Net()", "discriminator = Net(  )") + "    first.step()\n    second.step()\n"
    )
    lines, ran = fixed(perflint, "gan", text, ["Net()", "Net(  )"], ["generator(", "discriminator("])
    for added in ("generator.compile", "discriminator.compile", "    torch.compiler.cudagraph_mark_step_begin()"):
        assert any(line.startswith(f"+{added}(") or line == f"+{added}" for line in lines), (lines, ran.err)


def test_a_decoder_that_grows_is_not_compiled(perflint: Command) -> None:
    lines, ran = fixed(perflint, "decoding", NET + DECODING, ["Net("], ["model(tokens)"])
    assert not lines
    assert "reduce-overhead" in ran.err and "each call of a model as a step" in ran.err
    assert "the recorded steps called the model with 2 different shapes" in ran.err


def test_a_model_in_data_parallel_is_compiled_on_one_gpu(perflint: Command) -> None:
    lines, ran = fixed(perflint, "evaluation", NET + EVALUATION, ["torch.nn.DataParallel("], ["model(images)"])
    assert lines == ["+    if len(model.device_ids) < 2:", "+        model.module.compile()"], ran.err


@pytest.mark.parametrize(("name", "added"), [("graph", ["+model.compile()"]), ("recurrent", [])])
def test_the_default_mode_where_graphs_are_slower_and_nothing_where_both_are(
    perflint: Command, name: str, added: list[str]
) -> None:
    text = NET + "model = Net()\nfor x in []:\n    out = model(x)\n    (out * 2).sum().backward()\n"
    lines, ran = fixed(perflint, name, text, ["Net("], ["model(x)"])
    assert lines == added and "reduce-overhead" not in ran.err, ran.err
