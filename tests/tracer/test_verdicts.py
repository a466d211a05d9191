"""Findings held against traces."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from perflint.findings import Span
from perflint.tracer.events import (
    AllocatorChurn,
    CandidateLine,
    Experiment,
    Gap,
    GraphBreak,
    Header,
    Hits,
    Observation,
    PageableCopy,
    Place,
    Recompile,
    Record,
    SourceFile,
    Step,
    Sync,
)
from perflint.tracer.file import write_trace
from perflint.tracer.moved import MovedLines
from perflint.tracer.places import source_file
from perflint.tracer.trace import Trace
from tests.cli.command import Command

TRAIN = """\
import torch


def train(model: torch.nn.Module, loader, optimizer):
    for images, labels in loader:
        loss = model(images.cuda(non_blocking=True)).mean()
        loss.backward()
        optimizer.step()
        if loss.item() > 3:
            break
        print(loss)
        total = float(loss)
        if len(labels) % 100 == 0:
            log(labels.cuda().sum().tolist())
        if loss.isnan():
            raise ValueError
"""
READ, PRINT, FLOAT, BRANCH = "loss.item()", "print(loss)", "float(loss)", "loss.isnan()"
SELDOM = "labels.cuda().sum().tolist()"
STEPS = 10


def place(text: str, what: str, file: str = "train.py") -> Place:
    """The place of an expression of a text."""
    lines = text.splitlines()
    number, line = next((number, line) for number, line in enumerate(lines, 1) if what in line)
    column = line.index(what) + 1
    return Place(file, number, column, number, column + len(what), "train", line.strip())


class Traced:
    """A trace of a text, made up record by record."""

    def __init__(self, root: Path, text: str = TRAIN, file: str = "train.py", step_ms: float = 10.0) -> None:
        self.text = text
        self.file = file
        self.header = Header(
            perflint="0", python="3.12", torch="2.11", devices=("GPU",), program=(file,), root=str(root), started="",
            step_source="optimizer", warmup=5, steps=STEPS, steps_per_window=1, ended="finished", lines_recorded=True,
        )  # fmt: skip
        self.records: list[Record] = [source_file(file, text.splitlines(keepends=True)), Step(0, STEPS, step_ms)]

    def ran(self, *lines: int, in_steps: bool = True, watched: bool = True) -> Traced:
        """Some lines ran."""
        self.records += [CandidateLine(self.file, line, in_steps, not in_steps, watched=watched) for line in lines]
        return self

    def sync(self, what: str, steps: int = STEPS, outside: int = 0, kind: str = "implicit", **facts: str) -> Traced:
        """An expression synchronised."""
        self.records.append(Sync(place(self.text, what, self.file), kind, Hits(steps, outside), **facts))
        return self

    def profiled(self, **costs: float) -> Traced:
        """The profiler ran for a step; what each expression cost in it, in milliseconds."""
        self.records.append(Step(STEPS, 1, 10.0, True, 8.0, 2.0))
        for what, ms in costs.items():
            at = place(self.text, {"read": READ, "print": PRINT, "float": FLOAT}[what], self.file)
            self.records.append(Gap(STEPS, "sync", at, 1, ms, ms))
        return self

    def write(self, path: Path) -> str:
        """The file with it."""
        write_trace(path, Trace(self.header, tuple(self.records)))
        return str(path)


@pytest.fixture
def traced(perflint: Command) -> Traced:
    perflint.write("train.py", TRAIN)
    return Traced(perflint.folder).ran(5, 6, 7, 8, 9, 11, 12)


def check(
    perflint: Command, *traces: Traced, profile: str = "audit", text: str = TRAIN
) -> dict[str, dict[str, object]]:
    """The findings of the command by the code that they stand at, in the order of the output."""
    names = [trace.write(perflint.folder / f"{number}.gz") for number, trace in enumerate(traces)]
    options = [part for name in names for part in ("--trace", name)]
    done = perflint("check", "train.py", "--output-format", "json", "--profile", profile, *options)
    assert done.code in (0, 1), done.err
    lines = text.splitlines()
    found = {}
    for finding in json.loads(done.out)["findings"]:
        line = lines[finding["line"] - 1]
        end = finding["end_column"] - 1 if finding["end_line"] == finding["line"] else None
        found[line[finding["column"] - 1 : end].strip()] = finding
    return found


def ruling(finding: dict[str, object]) -> object:
    verdict = finding["verdict"]
    assert isinstance(verdict, dict)
    return verdict["ruling"]


def test_waits_of_few_steps_are_no_average(perflint: Command, traced: Traced) -> None:
    traced.sync(READ, 60).sync(FLOAT)
    rare = next(record for record in traced.records if isinstance(record, Sync))
    traced.records[traced.records.index(rare)] = replace(rare, hits=Hits(60, windows=(0, 0, 60)))
    found = check(perflint, traced)
    read, printed = found[READ]["verdict"], found[FLOAT]["verdict"]
    assert isinstance(read, dict) and isinstance(printed, dict)
    assert read["why"] == "60 times in 1 of 10 steps; what it costs was not measured"
    assert printed["why"] == "once a step; what it costs was not measured"


@pytest.mark.parametrize(
    ("windows", "why"),
    [((0,) * STEPS + (3,), "3 times after the last of 10 steps"), ((0, *(1,) * STEPS), "9 times in 9 of 10 steps")],
)
def test_waits_after_the_last_step(perflint: Command, traced: Traced, windows: tuple[int, ...], why: str) -> None:
    traced.sync(READ)
    traced.records[-1] = replace(traced.records[-1], hits=Hits(sum(windows), windows=windows))  # type: ignore[call-arg]
    verdict = check(perflint, traced)[READ]["verdict"]
    assert isinstance(verdict, dict)
    assert (verdict["ruling"], verdict["why"]) == ("confirmed", f"{why}; what it costs was not measured")


CONDITIONS = """\
import torch


def train(model: torch.nn.Module, loader, limit, verbose):
    for batch in loader:
        loss = model(batch.cuda(non_blocking=True)).mean()
        if limit and loss.amin() > limit:
            break
        if loss.amax() > 3 and limit:
            break
        last = loss.item() if verbose else 0.0
        if verbose: print(loss.tolist())
        if (
            verbose
            and loss.argmax().item()
        ):
            break
        assert loss.numel(), f"{float(loss)}"
        total = sum([loss.cpu() for _ in range(3)])
"""


LOOP = """\
import torch


def train(model: torch.nn.Module, loader):
    for images in loader:
        images = images.cuda()
        loss = model(images).mean()
        count = loss.nonzero().sum().item()
        print(float(loss))
"""


def test_a_wait_of_an_iterator_is_not_one_of_the_body(perflint: Command) -> None:
    perflint.write("train.py", LOOP)
    traced = Traced(perflint.folder, LOOP).ran(5, 6, 7, 8, 9)
    whole = Place("train.py", 5, 5, 9, 27, "train", "for images in loader:")
    traced.records.append(Sync(whole, "implicit", Hits(STEPS)))
    found = check(perflint, traced, text=LOOP)
    assert ruling(found["float(loss)"]) == ruling(found["loss.nonzero().sum().item()"]) == "refuted"
    head = [finding for finding in found.values() if finding["line"] == 5]
    assert [(finding["end_line"], ruling(finding)) for finding in head] == [(5, "confirmed")]


UNPACKS = """\
import torch


def corners(boxes: torch.Tensor):
    for box in boxes.cuda():
        left, top = map(int, box)
"""


def test_a_wait_of_an_iterator_that_is_unpacked(perflint: Command) -> None:
    perflint.write("train.py", UNPACKS)
    traced = Traced(perflint.folder, UNPACKS).ran(5, 6).sync("left, top")
    found = check(perflint, traced, text=UNPACKS)
    assert {what: ruling(finding) for what, finding in found.items()} == {"map(int, box)": "confirmed"}


def test_two_findings_in_one_chain_have_their_own_waits(perflint: Command) -> None:
    perflint.write("train.py", LOOP)
    traced = Traced(perflint.folder, LOOP).ran(5, 6, 7, 8, 9)
    windows = (*(1,) * STEPS, 4)
    for what in ("loss.nonzero()", "loss.nonzero().sum().item()"):
        traced.records.append(Sync(place(LOOP, what), "implicit", Hits(STEPS + 4, windows=windows)))
    found = check(perflint, traced, text=LOOP)
    for what in ("loss.nonzero()", "loss.nonzero().sum().item()"):
        verdict = found[what]["verdict"]
        assert isinstance(verdict, dict)
        assert (verdict["why"], verdict["per_step"]) == ("once a step; what it costs was not measured", 1.0)


SOFTMAX = """\
import torch


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = torch.nn.Softmax(dim=-1)

    def forward(self, q, k, v):
        dots = torch.matmul(q, k.transpose(-1, -2)) * 0.125
        weights = self.attend(dots)
        return torch.matmul(weights, v)
"""


@pytest.mark.parametrize(("windows", "often"), [((0, 6), "6 times"), ((6, 6), "6 times"), ((2, 4), "3 times")])
def test_modules_that_are_not_watched_in_the_first_step(
    perflint: Command, windows: tuple[int, ...], often: str
) -> None:
    perflint.write("train.py", SOFTMAX)
    traced = Traced(perflint.folder, SOFTMAX).ran(10, 11, 12)
    hits = Hits(sum(windows), windows=windows)
    seen = Observation(place(SOFTMAX, "self.attend(dots)"), "softmax.module", hits, 1 << 20, detail="1 × 8 float32")
    traced.records.append(seen)
    found = [each for each in check(perflint, traced, text=SOFTMAX).values() if each["code"] == "TPF303"]
    assert len(found) == 1 and f"were written to memory, {often} a step" in str(found[0]["verdict"])


def test_a_wait_in_code_that_the_line_calls(perflint: Command, traced: Traced) -> None:
    inner = Place("batch.py", 7, 1, 7, 9, "NestedBatch.item", "self.data.item()")
    stack = ("batch.py:7 NestedBatch.item", "train.py:9 train")
    traced.records.append(Sync(inner, "implicit", Hits(STEPS), stack=stack))
    found = check(perflint, traced)
    read, other = found[READ]["verdict"], found[FLOAT]["verdict"]
    assert isinstance(read, dict) and isinstance(other, dict)
    assert (read["ruling"], other["ruling"]) == ("refuted", "refuted")
    assert read["why"] == (
        "the code ran and the CPU did not wait here, but at batch.py:7 NestedBatch.item, which the line calls"
    )
    assert other["why"] == "the code ran and the CPU did not wait here"


def test_a_part_of_a_line_may_have_been_skipped(perflint: Command) -> None:
    perflint.write("train.py", CONDITIONS)
    traced = Traced(perflint.folder, CONDITIONS).ran(5, 6, 7, 9, 11, 12, 13, 14, 15, 18, 19)
    found = check(perflint, traced, text=CONDITIONS)
    lines = {finding["line"]: ruling(finding) for finding in found.values() if str(finding["code"]).startswith("TPF1")}
    expected = {7: "undecided", 9: "refuted", 11: "undecided", 12: "undecided", 15: "refuted", 18: "undecided"}
    assert lines == expected | {19: "refuted"}
    assert "a condition in the line" in str(found["loss.item()"]["verdict"])
    confirmed = check(perflint, traced.sync("loss.item()"), text=CONDITIONS)
    assert ruling(confirmed["loss.item()"]) == "confirmed"


def test_silence_after_the_recorded_steps_refutes_nothing(perflint: Command) -> None:
    perflint.write("train.py", TRAIN)
    watched = Traced(perflint.folder).ran(5, 6, 7, 8, 9, 11)
    found = check(perflint, watched.ran(12, in_steps=False, watched=False).sync(READ))
    verdict = found[FLOAT]["verdict"]
    assert isinstance(verdict, dict) and "only after the recorded steps" in verdict["why"]
    assert (ruling(found[FLOAT]), ruling(found[READ]), ruling(found["loss"])) == ("undecided", "confirmed", "refuted")


def test_without_a_trace_there_is_no_verdict(perflint: Command, traced: Traced) -> None:
    assert {finding["verdict"] for finding in check(perflint).values()} == {None}


def test_rulings(perflint: Command, traced: Traced) -> None:
    found = check(perflint, traced.sync(READ).sync(PRINT).profiled(read=1.5))
    by_ruling = {what: ruling(found[what]) for what in found if "verdict" in found[what]}
    assert by_ruling[READ] == "confirmed"
    assert by_ruling["loss"] == "confirmed, no cost"
    assert by_ruling[FLOAT] == "refuted"
    assert by_ruling[BRANCH] == "not executed"
    verdict = found[READ]["verdict"]
    assert isinstance(verdict, dict)
    assert (verdict["ms"], verdict["share"], verdict["per_step"]) == (1.5, 0.15, 1.0)
    assert verdict["why"] == "1.5 ms of 10 ms a step (15%), once a step"


def test_what_costs_most_comes_first(perflint: Command, traced: Traced) -> None:
    found = check(perflint, traced.sync(READ).sync(FLOAT).profiled(read=0.5, float=1.5))
    assert list(found)[:2] == [FLOAT, READ]
    assert ruling(list(found.values())[-1]) == "refuted"


@pytest.mark.parametrize(("ms", "severity"), [(3.0, "error"), (0.5, "warning"), (0.1, "info")])
def test_the_cost_decides_the_severity(perflint: Command, traced: Traced, ms: float, severity: str) -> None:
    finding = check(perflint, traced.sync(READ).profiled(read=ms), profile="default")[READ]
    assert (finding["severity"], ruling(finding)) == (severity, "confirmed")


def test_the_default_profile_trusts_the_trace(perflint: Command, traced: Traced) -> None:
    traced.sync(READ).sync(PRINT).profiled(read=1.5)
    assert set(check(perflint, profile="default")) >= {READ, FLOAT}
    assert set(check(perflint, traced, profile="default")) == {READ, BRANCH}
    assert set(check(perflint, traced, profile="pedantic")) >= {READ, "loss", BRANCH}


def test_a_cold_line_that_costs_is_shown(perflint: Command, traced: Traced) -> None:
    assert SELDOM not in check(perflint, profile="default")
    assert SELDOM in check(perflint, traced.ran(14).sync(SELDOM), profile="default")


def test_costs_that_nobody_measured(perflint: Command, traced: Traced) -> None:
    verdict = check(perflint, traced.sync(READ, steps=5))[READ]["verdict"]
    assert isinstance(verdict, dict)
    assert (verdict["ruling"], verdict["ms"], verdict["per_step"]) == ("confirmed", None, 0.5)
    assert verdict["why"] == "0.5 times a step; what it costs was not measured"


def test_a_simulated_trace_says_so(perflint: Command, traced: Traced) -> None:
    traced.header = replace(traced.header, simulated=True)
    found = check(perflint, traced.sync(READ))
    assert "simulated" in str(found[READ]["verdict"])
    assert "would not have waited" in str(found[FLOAT]["verdict"])


def test_a_run_without_a_gpu_refutes_no_wait(perflint: Command, traced: Traced) -> None:
    traced.header = replace(traced.header, devices=())
    found = check(perflint, traced)
    assert ruling(found[READ]) == ruling(found[FLOAT]) == "undecided"
    ran = perflint("check", "train.py", "--trace", "0.gz")
    assert "warning: the trace is of a run without a GPU" in ran.err and "--simulate" in ran.err
    traced.header = replace(traced.header, simulated=True)
    assert ruling(check(perflint, traced)[FLOAT]) == "refuted"


def test_a_sync_outside_the_steps_costs_no_step(perflint: Command, traced: Traced) -> None:
    assert ruling(check(perflint, traced.sync(READ, steps=0, outside=3).profiled())[READ]) == "confirmed, no cost"


def test_lines_of_few_steps(perflint: Command, traced: Traced) -> None:
    traced.header = replace(traced.header, line_steps=STEPS)
    for steps, expected in ((1, True), (2, False)):
        traced.records = [
            replace(record, steps=steps) if isinstance(record, CandidateLine) else record for record in traced.records
        ]
        found = check(perflint, traced.sync(READ))
        assert ("; the line ran in 1 of 10 steps" in str(found[READ]["verdict"])) is expected


SETTING = """\
import torch


def train(model: torch.nn.Module, loader):
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
"""


def test_the_line_of_a_setting_does_not_decide(perflint: Command) -> None:
    perflint.write("train.py", SETTING)
    traced = Traced(perflint.folder, SETTING).ran(6, 7, 8).ran(5, in_steps=False)
    found = [each for each in check(perflint, traced, text=SETTING).values() if each["code"] == "TPF601"]
    assert [ruling(each) for each in found] == ["undecided"]


def test_lines_that_were_not_recorded_are_unknown(perflint: Command, traced: Traced) -> None:
    traced.header = replace(traced.header, lines_recorded=False)
    found = check(perflint, traced.sync(READ))
    assert found[BRANCH]["verdict"] is None
    assert ruling(found[FLOAT]) == "refuted"


COPY = """\
import torch


def step(array):
    return torch.from_numpy(array).to("cuda", non_blocking=True)
"""


def test_a_pageable_copy(perflint: Command) -> None:
    copied = 'torch.from_numpy(array).to("cuda", non_blocking=True)'
    perflint.write("train.py", COPY)
    assert check(perflint, text=COPY)[copied]["code"] == "TPF202"
    traced = Traced(perflint.folder, COPY).ran(5)
    assert ruling(check(perflint, traced, text=COPY)[copied]) == "undecided", "what is not seen may be there"
    traced.records.append(PageableCopy(place(COPY, copied), "host-to-device", 4096, Hits(STEPS)))
    finding = check(perflint, traced, text=COPY)[copied]
    assert ruling(finding) == "confirmed"


COMPILED = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        print("forward")
        return self.linear(x) / x.max().item()


net = torch.compile(Net().cuda())
"""
COUNT, PRINTED, DIVIDED = "self.calls", 'print("forward")', "x.max().item()"


def test_what_the_compiler_noted(perflint: Command) -> None:
    perflint.write("train.py", COMPILED)
    traced = Traced(perflint.folder, COMPILED)
    assert {finding["verdict"] for finding in check(perflint, text=COMPILED).values()} == {None}
    traced.records += [
        # As torch 2.13 says it.
        GraphBreak(replace(place(COMPILED, PRINTED), column=1, end_column=1), "Failed to trace\n  Hint: none.", 1),
        Recompile("train.py", 9, "Net.forward", "self.calls == 0      # self.calls += 1  # train.py:10 in forward", 4),
    ]
    found = check(perflint, traced, text=COMPILED)
    assert "confirmed" == ruling(found[PRINTED]) == ruling(found[COUNT])
    assert "ended a graph here: Failed to trace'" in str(found[PRINTED]["verdict"])
    assert "again where `self.calls == 0` did not hold" in str(found[COUNT]["verdict"])
    assert found[DIVIDED]["verdict"] is None or ruling(found[DIVIDED]) != "confirmed"
    other = Recompile("train.py", 9, "Net.forward", "self.other == 0      # self.calls += 1  # train.py:10", 4)
    traced.records[-1] = other
    assert found.keys() == check(perflint, traced, text=COMPILED).keys()
    assert "did not hold" not in str(check(perflint, traced, text=COMPILED)[COUNT]["verdict"])


def test_a_graph_break_that_waits_has_its_cost(perflint: Command) -> None:
    perflint.write("train.py", COMPILED)
    traced = Traced(perflint.folder, COMPILED).sync(DIVIDED)
    at = place(COMPILED, DIVIDED)
    traced.records += [
        GraphBreak(replace(at, column=1, end_column=1), "Tensor.item() called", 1),
        Step(STEPS, 1, 10.0, True, 8.0, 2.0),
        Gap(STEPS, "sync", at, 1, 1.5, 1.5),
    ]
    finding = check(perflint, traced, text=COMPILED)[DIVIDED]
    assert finding["severity"] == "warning" and finding["effect"] == "graph-break"
    assert "Tensor.item() called; 1.5 ms of 10 ms a step" in str(finding["verdict"])


def test_syncs_that_no_rule_found(perflint: Command, traced: Traced) -> None:
    finding = check(perflint, traced.sync("optimizer.step()").profiled(), profile="audit")["optimizer.step()"]
    assert (finding["code"], finding["severity"]) == ("TPF199", "info")
    assert finding["message"] == "`optimizer.step()` makes the CPU wait for the GPU"
    assert "optimizer.step()" not in check(perflint, traced, profile="default"), "it costs nothing"


def test_operators_that_fell_back_to_the_cpu(perflint: Command, traced: Traced) -> None:
    finding = check(perflint, traced.sync("optimizer.step()", kind="fallback"))["optimizer.step()"]
    assert finding["code"] == "TPF199"
    assert finding["message"] == "`optimizer.step()` runs on the CPU: the GPU has no kernel for it"


@pytest.mark.parametrize("facts", [{"allowed": "logged"}, {"origin": "compile"}, {"origin": "module-move"}])
def test_syncs_that_are_no_findings(perflint: Command, traced: Traced, facts: dict[str, str]) -> None:
    assert "optimizer.step()" not in check(perflint, traced.sync("optimizer.step()", **facts))


def test_an_unseen_sync_is_silenced_by_a_comment(perflint: Command, traced: Traced) -> None:
    perflint.write("train.py", TRAIN.replace("optimizer.step()", "optimizer.step()  # noqa: TPF199"))
    assert "optimizer.step()" not in check(perflint, traced.sync("optimizer.step()"))


def test_a_silenced_finding_is_no_unseen_sync(perflint: Command, traced: Traced) -> None:
    perflint.write("train.py", TRAIN.replace("> 3:", "> 3:  # noqa: TPF101"))
    assert READ not in check(perflint, traced.sync(READ))


def test_several_traces(perflint: Command, traced: Traced) -> None:
    """One rank prints, the other does not; neither gets to the branch."""
    other = Traced(perflint.folder).ran(5, 6, 7, 8, 9, 12).sync(READ).profiled(read=2.5)
    found = check(perflint, traced.sync(READ).sync(PRINT).profiled(read=1.0), other)
    assert (ruling(found["loss"]), ruling(found[BRANCH])) == ("confirmed, no cost", "not executed")
    assert "2.5 ms" in str(found[READ]["verdict"])


def test_a_file_of_which_nothing_ran(perflint: Command, traced: Traced) -> None:
    perflint.write("other.py", TRAIN)
    name = traced.write(perflint.folder / "t.gz")
    done = perflint("check", "other.py", "--trace", name, "--output-format", "json", "--profile", "audit")
    assert {ruling(finding) for finding in json.loads(done.out)["findings"]} == {"not executed"}


# Experiments

NET = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(64, 64, 3, padding=1)
        self.norm = nn.BatchNorm2d(64)

    def forward(self, x):
        return self.norm(self.conv(x))
"""
MADE = "nn.Conv2d(64, 64, 3, padding=1)"


def experiment(ratio: float, low: float, device: str = "cuda:0", code: str = "TPF301") -> Experiment:
    """The bias of the convolution was left out."""
    return Experiment(
        "bias-before-norm", (code,), "layer", place(NET, MADE), "conv Conv2d(64, 64, …)", "bias=False",
        ((8, 64, 56, 56),), "float32", device, ratio, 1.0, ratio, low, ratio + 0.01, 9, 1.0, 0.0,
    )  # fmt: skip


def tried(perflint: Command, *records: Experiment) -> dict[str, object] | None:
    perflint.write("train.py", NET)
    traced = Traced(perflint.folder, NET).ran(7, 8, 11)
    traced.records += records
    (finding,) = check(perflint, traced, text=NET).values()
    assert finding["code"] == "TPF301"
    verdict = finding["verdict"]
    assert verdict is None or isinstance(verdict, dict)
    return verdict


def test_an_experiment_that_shows_a_gain(perflint: Command) -> None:
    verdict = tried(perflint, experiment(1.5, 1.45))
    assert verdict is not None
    assert (verdict["ruling"], verdict["ratio"], verdict["ms"]) == ("confirmed", 1.5, 0.5)
    assert verdict["why"] == (
        "1.50 × (1.45-1.51) the time of bias=False, for 8 × 64 × 56 × 56 in float32; 0.5 ms of 10 ms a step (5%)"
    )


def test_several_layers_of_one_place(perflint: Command) -> None:
    verdict = tried(perflint, experiment(1.2, 1.1), experiment(1.5, 1.45), experiment(1.01, 0.98))
    assert verdict is not None
    assert verdict["ms"] == pytest.approx(0.7)
    assert "for 8 × 64 × 56 × 56 in float32 and 2 other layers; 0.7 ms of" in str(verdict["why"])


def test_an_experiment_that_shows_none(perflint: Command) -> None:
    verdict = tried(perflint, experiment(1.01, 0.98))
    assert verdict is not None and verdict["ruling"] == "confirmed, no cost"


@pytest.mark.parametrize("facts", [{"device": "cpu"}, {"code": "TPF351"}])
def test_experiments_that_say_nothing_of_it(perflint: Command, facts: dict[str, str]) -> None:
    verdict = tried(perflint, experiment(1.5, 1.45, **facts))
    assert verdict is not None and verdict["ruling"] == "undecided"


# Files that have changed


def test_moved_lines(perflint: Command, traced: Traced) -> None:
    """Functions above, a block around: the lines are found, those that were written are unknown."""
    head, _, body = TRAIN.partition("        if loss.item()")
    text = f"{head}        if True:\n            if loss.item(){body}".replace(
        "            break\n", "                break\n"
    ).replace("import torch\n", "import torch\n\nLIMIT = 4\n")
    text = text.replace("total = float(loss)", "total = float(loss) + 1")
    perflint.write("train.py", text)
    name = traced.sync(READ).sync(FLOAT).profiled(read=1.5).write(perflint.folder / "t.gz")
    done = perflint("check", "train.py", "--trace", name, "--output-format", "json", "--profile", "audit")
    found = {(finding["line"], finding["column"]): finding for finding in json.loads(done.out)["findings"]}
    assert ruling(found[12, 16]) == "confirmed"
    assert found[15, 17]["verdict"] is None, "the line is another"
    assert "train.py has changed since the trace" in done.err


def test_a_trace_of_the_project_on_another_machine(perflint: Command, traced: Traced, tmp_path: Path) -> None:
    """Also where its folder is one here, of another copy."""
    for root in ("/nowhere/project", str(tmp_path.parent)):
        traced.header = replace(traced.header, root=root)
        assert ruling(check(perflint, traced.sync(READ))[READ]) == "confirmed"


def test_a_trace_of_other_files(perflint: Command, traced: Traced) -> None:
    perflint.write("other.py", TRAIN)
    done = perflint("check", "other.py", "--trace", traced.write(perflint.folder / "t.gz"))
    assert "warning: the trace is of a program that used none of these files" in done.err


def test_an_unchanged_file_is_not_stale(perflint: Command, traced: Traced) -> None:
    done = perflint("check", "train.py", "--trace", traced.write(perflint.folder / "t.gz"))
    assert "changed" not in done.err


def test_line_ends_do_not_make_a_file_stale(perflint: Command, traced: Traced) -> None:
    (perflint.folder / "train.py").write_bytes(TRAIN.replace("\n", "\r\n").encode())
    assert "changed" not in perflint("check", "train.py", "--trace", traced.write(perflint.folder / "t.gz")).err


def test_lines_that_are_found_again() -> None:
    then = ["a\n", "    b = f(x)\n", "c\n", "d\n"]
    moved = MovedLines(source_file("a.py", then), ["new\n", "a\n", "        b = f(x)\n", "d\n"])
    assert [moved.then(line) for line in (1, 2, 3, 4)] == [None, 1, 2, 4]
    assert moved.span(Place("a.py", 2, 9, 2, 13, "f", "b = f(x)")) == Span(3, 13, 3, 17)
    assert moved.span(Place("a.py", 3, 1, 3, 2, "f", "c")) is None
    assert moved.span(Place("a.py", 2, 5, 4, 2, "f", "b = f(x)")) is None, "a line between is gone"


def test_a_trace_of_lines_without_digests() -> None:
    moved = MovedLines(SourceFile("a.py", "0123"), ["a\n"])
    assert moved.is_changed and moved.then(1) is None


# Text, and fixing


def test_text(perflint: Command, traced: Traced) -> None:
    name = traced.sync(READ).sync(PRINT).profiled(read=1.5).write(perflint.folder / "t.gz")
    out = perflint("check", "train.py", "--trace", name).out
    assert "  = trace: confirmed: 1.5 ms of 10 ms a step (15%), once a step\n" in out
    assert "\nTrace: 1 confirmed; 1 confirmed, no cost; 1 refuted; 1 not executed.\n" in out
    concise = perflint("check", "train.py", "--trace", name, "--output-format", "concise").out
    assert concise.splitlines()[0].endswith("(confirmed: 1.5 ms of 10 ms a step (15%), once a step)")


SUM = """\
import torch


def train(model: torch.nn.Module, loader, optimizer):
    total = 0.0
    count = 0.0
    for images, labels in loader:
        loss = model(images.cuda()).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
        count += labels.cuda().sum().item()
    return total, count
"""


def test_fixes_what_was_confirmed(perflint: Command) -> None:
    perflint.write("train.py", SUM)
    without = perflint("fix", "train.py", "--unsafe-fixes").out
    traced = Traced(perflint.folder, SUM).ran(*range(7, 13))
    name = traced.sync("loss.item()").write(perflint.folder / "t.gz")
    done = perflint("fix", "train.py", "--unsafe-fixes", "--trace", name)
    removed = [line for line in done.out.splitlines() if line.startswith("-  ")]
    assert any("loss.item()" in line for line in removed)
    assert not any("count +=" in line for line in removed)
    assert "-        count += labels" in without or "count" not in without


def test_a_trace_that_cannot_be_read(perflint: Command) -> None:
    perflint.write("train.py", TRAIN)
    done = perflint("check", "train.py", "--trace", "nowhere.gz")
    assert done.code == 2 and "nowhere.gz cannot be read" in done.err


CHECKPOINT = """\
from torch.utils.checkpoint import checkpoint


def forward(blocks, x):
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    return x
"""
GIGABYTE = 10**9


@pytest.mark.parametrize(
    ("peak", "again", "simulated", "expected"),
    [(20, 10, False, True), (45, 1, False, False), (30, 40, False, False), (20, 10, True, False)],
)
def test_recomputation_with_memory_to_spare(
    perflint: Command, peak: int, again: int, simulated: bool, expected: bool
) -> None:
    """The peak of the memory of 80 GB, and the activations that are computed again, in GB."""
    called = "checkpoint(block, x, use_reentrant=False)"
    perflint.write("train.py", CHECKPOINT)
    traced = Traced(perflint.folder, CHECKPOINT).ran(5, 6, 7)
    traced.header = replace(traced.header, simulated=simulated)
    at = place(CHECKPOINT, called)
    traced.records += [
        Observation(at, "recomputation.called", Hits(STEPS * 12)),
        Observation(None, "recomputation.kept", Hits(2), bytes=again * GIGABYTE),
        Observation(None, "memory.device", Hits(1), bytes=80 * GIGABYTE),
        AllocatorChurn(0, STEPS, 100, 0, 0, 0, peak * GIGABYTE),
    ]
    finding = check(perflint, traced, text=CHECKPOINT).get(called)
    assert (finding is not None) is expected
    if finding is not None:
        assert (finding["code"], ruling(finding)) == ("TPF194", "confirmed")
        why = "12 times a step; the peak was 20 GB of 80 GB, and the recomputed activations take 10 GB"
        assert why in str(finding["verdict"])


RESUMED = """\
import torch


def train(model, path):
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(torch.load(path, map_location="cuda"))


def resume(model, other):
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(torch.load(other, map_location="cuda"))
"""


def test_what_the_process_did_is_no_evidence_about_code_that_did_not_run(perflint: Command) -> None:
    perflint.write("train.py", RESUMED)
    traced = Traced(perflint.folder, RESUMED).ran(4, 5, 6)
    traced.records.append(Observation(None, "optimizer.counters-on-cpu", Hits(STEPS), detail="Adam"))
    found = check(perflint, traced, text=RESUMED)
    loads = {what: ruling(finding) for what, finding in found.items() if finding["code"] == "TPF608"}
    assert loads == {
        'torch.load(path, map_location="cuda")': "refuted",
        'torch.load(other, map_location="cuda")': "not executed",
    }


UNFUSED = """\
import torch


def train(model: torch.nn.Module, loader):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    for images in loader:
        model(images.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
"""


def test_a_wait_says_nothing_of_a_finding_about_computation(perflint: Command) -> None:
    perflint.write("train.py", UNFUSED)
    optimizer = "torch.optim.AdamW(model.parameters(), lr=0.001)"
    traced = Traced(perflint.folder, UNFUSED).ran(5, 6, 7, 8).sync(optimizer)
    finding = check(perflint, traced, text=UNFUSED)[optimizer]
    assert (finding["code"], ruling(finding)) == ("TPF601", "undecided")
