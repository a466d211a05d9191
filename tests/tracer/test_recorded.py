"""Traces and profiles recorded on an H200 with torch 2.11."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.accuracy.recorded import unpacked
from perflint.cli.main import main
from perflint.output.terminal import Style
from perflint.output.trace import trace_text
from perflint.tracer.events import Activity, CandidateLine, Experiment, Kernel, ModuleCall, Place, Step, Sync
from perflint.tracer.experiments.layers import per_step
from perflint.tracer.file import read_trace
from perflint.tracer.gaps import Analysis, analyse

DATA = Path(__file__).parent / "data"
PLACE = Place("planted.py", 34, 9, 34, 23, "<module>", "z[0, 0].item()")


def profile(name: str) -> Analysis:
    with gzip.open(DATA / f"{name}.events.json.gz", "rt") as file:
        events: list[dict[str, Any]] = json.load(file)
    return analyse(events, [PLACE])


def test_a_planted_sync_before_host_work() -> None:
    """A step of 19.3 ms, which takes 16.2 ms without the sync."""
    analysis = profile("drain")
    assert [step.ms for step in analysis.steps] == pytest.approx([19.5] * 2, abs=0.3)
    costs = [gap.cost_ms for gap in analysis.gaps if gap.place == PLACE]
    assert costs == pytest.approx([19.3 - 16.2] * 2, rel=0.1)
    assert max(gap.ms for gap in analysis.gaps if gap.cause != "sync") < 0.05


def test_a_planted_sync_on_another_stream() -> None:
    """The main stream's queue of 16.2 ms per step never drains."""
    analysis = profile("side")
    assert [step.ms for step in analysis.steps] == pytest.approx([16.2] * 2, abs=0.3)
    assert [(gap.count, gap.cost_ms) for gap in analysis.gaps if gap.place == PLACE] == [(1, 0.0), (1, 0.0)]
    assert all(step.idle_ms < 0.2 for step in analysis.steps)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs that were recorded."""
    return unpacked("programs", tmp_path_factory.mktemp("recorded") / "benchmarks" / "accuracy")


def test_a_training_program(programs: Path) -> None:
    trace = read_trace(DATA / "trainer_hooks.jsonl.gz")
    assert (trace.header.step_source, trace.header.devices) == ("optimizer", ("NVIDIA H200",))
    assert trace.header.steps == 32 and trace.profiled_steps == 3
    assert trace.step_ms == pytest.approx(9.6, abs=0.2)
    syncs = trace.of(Sync)
    assert len(syncs) == 11 and {sync.kind for sync in syncs} == {"implicit"}
    with gzip.open(programs / "truth.json.gz", "rt") as file:
        rows = [row for row in json.load(file)["syncs"] if row["file"] == "trainer_hooks.py"]
    places = {(sync.place.line, sync.place.column, sync.place.end_line, sync.place.end_column) for sync in syncs}
    assert places == {(row["line"], row["col"] + 1, row["end_line"], row["end_col"] + 1) for row in rows}
    assert {line.line for line in trace.of(CandidateLine)} >= {sync.place.line for sync in syncs}
    assert all(0 <= (trace.cost_ms(sync.place) or 0.0) < 0.1 for sync in syncs)
    assert all(step.idle_ms > 0.8 * step.ms for step in trace.of(Step) if step.profiled)
    assert {call.type for call in trace.of(ModuleCall)} >= {
        "torch.nn.modules.rnn.GRU",
        "torch.nn.modules.linear.Linear",
    }
    assert sum(kernel.count for kernel in trace.of(Kernel)) == len(trace.of(Activity))


def test_a_check_with_the_trace_of_a_training_program(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, programs: Path
) -> None:
    """Every sync of the recorded steps is a confirmed finding; what did not run is said not to have run."""
    monkeypatch.chdir(programs.parents[2])
    name = "benchmarks/accuracy/programs/trainer_hooks.py"
    path = DATA / "trainer_hooks.jsonl.gz"
    command = ["check", name, "--trace", str(path), "--profile", "audit", "--isolated", "--output-format", "json"]
    assert main(command) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("Found ") and "changed since" not in captured.err, "the program is as it was"
    findings = json.loads(captured.out)["findings"]
    waited = {sync.place.line for sync in read_trace(path).of(Sync) if sync.hits.steps and not sync.origin}
    confirmed = {"confirmed", "confirmed, no cost"}
    happened = {finding["line"] for finding in findings if (finding["verdict"] or {}).get("ruling") in confirmed}
    assert happened >= waited
    unseen = {finding["message"] for finding in findings if finding["code"] == "TPF199"}
    assert len(unseen) == 1 and "torch.save(" in unseen.pop(), "the rules know all others"
    refuted = {finding["line"] for finding in findings if (finding["verdict"] or {}).get("ruling") == "refuted"}
    assert not refuted & waited


LAYERS = {
    "conv_bias": {"2": {"channel-multiples", "bias-before-norm"}, "0": {"bias-before-norm"}},
    "conv_eval": {"0": {"conv-bn-fusion"}},
}
"""The experiments of layers that recorded programs had, by the first of the layers."""


@pytest.mark.parametrize("name", LAYERS)
def test_the_layers_of_a_recorded_program_have_the_experiments_that_were_made(name: str) -> None:
    from perflint.tracer.experiments.run import LAYERS as EXPERIMENTS

    trace = read_trace(DATA / f"{name}.jsonl.gz")
    calls = trace.of(ModuleCall)
    proposals = [proposal for experiment in EXPERIMENTS for proposal in experiment.propose(calls)]
    made = [each for each in trace.of(Experiment) if each.scope == "layer"]
    # Equal layers share an experiment, and have a record for each place.
    assert {(each.name, each.change) for each in made} <= {(each.name, each.change) for each in proposals}
    assert {each.name for each in made} == {each.name for each in proposals}
    for first, names in LAYERS[name].items():
        assert {each.name for each in made if each.subject.split()[0] == first} == names
    often = sum(each.calls_per_step for each in made if each.name == made[0].name)
    assert often == sum(per_step(call) for each in proposals if each.name == made[0].name for call in each.calls)


def test_the_guide_shows_a_recorded_summary() -> None:
    """12 equal layers with biases and 60 channels, on the GPU."""
    text = trace_text(read_trace(DATA / "conv_bias.jsonl.gz"), None, Style(False))
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "tracing.md").read_text(encoding="utf-8")
    assert text in guide
    assert text.splitlines()[3].startswith("  2.29 x (2.28-2.29)     4.471 ms/step  benchmarks/tracer/changes/")
