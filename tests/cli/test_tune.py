"""`perflint tune`: the patch, the report, the budget and the log, with runs that never ran."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perflint.cli import tune
from perflint.frozen import replace
from perflint.tracer.file import read_trace
from perflint.verify.execution import Run
from tests.cli.command import Command
from tests.verify.runs import run

PROGRAM = """import torch
from torch.utils.data import DataLoader

loader = DataLoader(data, batch_size=4)
for x in loader:
    pass
"""


class Simulated:
    """A program whose loader takes half of a step without workers. Runs take three seconds of a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.runs = 0
        self.share = 0.5
        self.calls: list[Any] = []
        monkeypatch.setattr(tune, "Program", lambda *_: self)
        monkeypatch.setattr(tune, "time", self)

    def monotonic(self) -> float:
        return self.now

    def run(self, changes: dict[str, bytes], seconds: float, reseed: bool, deterministic: bool) -> Run:
        self.now += 3.0
        self.runs += 1
        has_workers = any(b"num_workers" in text for text in changes.values())
        share = 0.0 if has_workers else self.share
        done = run([1.0, 0.5], times=[10.0 * (1 - self.share + share)] * 3)
        assert done.seen is not None
        look = {"calls": self.calls, "steps": [], "loaders": [["train.py", 4, 0, share]], "busy_ms": None}
        return replace(done, seen=replace(done.seen, look=look))

    def close(self) -> None:
        pass

    def follow(self, run: Run) -> None:
        pass


@pytest.fixture
def program(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> Simulated:
    perflint.write("train.py", PROGRAM)
    perflint.write("pyproject.toml", "")
    return Simulated(monkeypatch)


def tuned(perflint: Command, *options: str) -> tuple[int, str, str]:
    ran = perflint("tune", "--repeat", "2", *options, "--", sys.executable, "train.py")
    return ran.code, ran.out, ran.err


def test_a_patch_is_left_and_the_files_stay(perflint: Command, program: Simulated) -> None:
    code, out, _ = tuned(perflint)
    assert code == 0 and out.startswith("perflint tune: 2.00 × as fast: a step takes 5.000 ms, not 10.000 ms\n")
    assert "  loader: batches are prepared by worker processes, 2.00 ×\n" in out
    assert "  graph: the steps use no GPU\n" in out
    assert (perflint.folder / "train.py").read_text() == PROGRAM
    subprocess.run(["git", "apply", "perflint-tune.patch"], cwd=perflint.folder, check=True)
    loader = "DataLoader(data, batch_size=4, num_workers="
    assert loader in (perflint.folder / "train.py").read_text()


def test_the_patch_of_a_file_with_form_feeds_can_be_applied(perflint: Command, program: Simulated) -> None:
    perflint.write("train.py", "import torch  # \f\u2028\n" + PROGRAM.partition("\n")[2] + "\f\nprint('\u0085')")
    assert tuned(perflint)[0] == 0
    subprocess.run(["git", "apply", "perflint-tune.patch"], cwd=perflint.folder, check=True)
    assert "num_workers=" in (perflint.folder / "train.py").read_text()


@pytest.mark.parametrize(
    "contents",
    [
        b"\xef\xbb\xbf" + PROGRAM.encode(),
        b"# coding: latin-1 \xe9\n" + PROGRAM.partition("\n")[2].encode() + b"# \xe9",
        PROGRAM.replace("\n", "\r\n").encode(),
    ],
    ids=["bom", "latin-1", "crlf"],
)
def test_the_patch_has_the_encoding_of_the_file(perflint: Command, program: Simulated, contents: bytes) -> None:
    (perflint.folder / "train.py").write_bytes(contents)
    code, _, err = tuned(perflint)
    assert code == 0, err
    subprocess.run(["git", "apply", "perflint-tune.patch"], cwd=perflint.folder, check=True)
    new = (perflint.folder / "train.py").read_bytes()
    assert re.sub(rb", num_workers=.*\)", b")", new) == contents != new


def test_a_link_of_the_default_name_leads_nowhere(
    perflint: Command, program: Simulated, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    for name in ("perflint-tune.patch", "perflint-tune.html"):
        (outside / name).write_text("mine")
        (perflint.folder / name).symlink_to(outside / name)
    assert tuned(perflint)[0] == 0
    assert [each.read_text() for each in outside.iterdir()] == ["mine", "mine"]
    assert "num_workers" in (perflint.folder / "perflint-tune.patch").read_text()


def test_outputs_are_whole_or_as_they_were(
    perflint: Command, program: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tuned(perflint)[0] == 0
    files = [perflint.folder / f"perflint-tune.{kind}" for kind in ("patch", "html")]
    before = [each.read_bytes() for each in files]

    def full(*_: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    code, _, err = tuned(perflint)
    assert code == 2 and "perflint-tune.patch cannot be written: No space left on device" in err
    assert [each.read_bytes() for each in files] == before


def test_a_file_that_the_program_itself_makes_hinders_changes(perflint: Command, program: Simulated) -> None:
    program.calls = [["train.py", 4, "made.py", 1]]
    code, out, _ = tuned(perflint)
    assert code == 0 and "  loader: made.py ran, but cannot be read: no such file or folder\n" in out


def test_a_file_that_changes_meanwhile_is_not_written(
    perflint: Command, program: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "close", lambda: perflint.write("train.py", "mine"))
    code, _, err = tuned(perflint, "--apply")
    assert code == 2 and "train.py changed while it was being fixed; it was left as it is" in err
    assert (perflint.folder / "train.py").read_text() == "mine"


def test_files_that_are_linked_are_not_changed(
    perflint: Command, program: Simulated, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "train.py"
    (perflint.folder / "train.py").rename(outside)
    (perflint.folder / "train.py").symlink_to(outside)
    code, out, _ = tuned(perflint, "--apply")
    assert code == 0 and program.runs == 1
    assert "  loader: train.py is a link or shared, and the original must stay as it is\n" in out
    assert outside.read_text() == PROGRAM


def test_apply_writes_the_files(perflint: Command, program: Simulated) -> None:
    assert tuned(perflint, "--apply")[0] == 0
    assert (
        "persistent_workers=True, pin_memory=torch.cuda.is_available())" in (perflint.folder / "train.py").read_text()
    )


def test_a_second_search_uses_the_runs_of_the_first(perflint: Command, program: Simulated) -> None:
    first = tuned(perflint)[1]
    runs = program.runs
    code, out, err = tuned(perflint)
    assert (code, out, program.runs) == (0, first, runs) and "from the last search" in err


@pytest.mark.parametrize("other", ["text", "seed", "gpu"])
def test_runs_of_another_program_or_gpu_are_not_used(
    perflint: Command, program: Simulated, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned(perflint)
    runs, options = program.runs, ["--seed", "3"] * (other == "seed")
    if other == "text":
        perflint.write("train.py", f"{PROGRAM}print()\n")
    if other == "gpu":
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    assert "from the last search" not in tuned(perflint, *options)[2] and program.runs == 2 * runs


@pytest.mark.parametrize(
    "text", ["notes\nmore", '{"key": 1}\n', "[1]\n", '{"key": "a", "run": {"seen": {}}}\n', "\xff\n"]
)
def test_another_file_in_place_of_the_log_stays(perflint: Command, program: Simulated, text: str) -> None:
    perflint.write("perflint-tune.runs.jsonl", text.encode("latin-1"))
    code, _, err = tuned(perflint)
    assert code == 2 and "perflint-tune.runs.jsonl does not have the runs of a search" in err
    assert (perflint.folder / "perflint-tune.runs.jsonl").read_bytes() == text.encode("latin-1")


def test_outputs_that_cannot_be_written(perflint: Command, program: Simulated) -> None:
    code, _, err = tuned(perflint, "--output", "none/a.patch")
    assert code == 2 and "crashed" not in err and program.runs == 0


def test_the_budget_ends_with_the_best_so_far(perflint: Command, program: Simulated) -> None:
    code, out, _ = tuned(perflint, "--budget", "7s")
    assert code == 1 and "stopped: the budget of 7 s is spent. This is the best so far.\n" in out
    assert not (perflint.folder / "perflint-tune.patch").exists()


def test_a_dry_run_tries_nothing(perflint: Command, program: Simulated) -> None:
    code, out, _ = tuned(perflint, "--dry-run")
    assert code == 0 and program.runs == 1
    assert "loader: batches are prepared by worker processes; at most 50% of a step\n" in out


def test_with_nothing_to_gain(perflint: Command, program: Simulated) -> None:
    program.share = 0.01
    code, out, _ = tuned(perflint, "--only", "loader")
    assert code == 0 and program.runs == 1
    assert "nothing was gained: a step takes 10.000 ms\n" in out and "wait for batches 1% of their time" in out


TRAINING = """import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.Adam(model.parameters())
for x in DataLoader(data, batch_size=4):
    noise = torch.rand(4).to("cuda")
    loss = (model(x) * torch.zeros(4).to("cuda") * noise).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_fix_that_changes_the_numbers_does_not_take_the_others_with_it(perflint: Command, program: Simulated) -> None:
    def run_of(changes: dict[str, bytes], seconds: float, reseed: bool, deterministic: bool) -> Run:
        text = b"".join(changes.values())
        is_faster, draws_others = b"torch.zeros(4, device" in text, b"torch.rand(4, device" in text
        done = run([2.0 if draws_others else 1.0, 0.5], times=[9.0 if is_faster else 10.0] * 3)
        assert done.seen is not None
        look = {"calls": [], "steps": [["train.py", 12, 9]], "loaders": [], "busy_ms": 9.5}
        return replace(done, seen=replace(done.seen, look=look))

    program.run = run_of  # type: ignore[method-assign]
    perflint.write("train.py", TRAINING)
    code, out, err = tuned(perflint, "--only", "fixes")
    patch = (perflint.folder / "perflint-tune.patch").read_text()
    assert code == 0 and out.startswith("perflint tune: 1.11 × as fast"), out
    assert "torch.zeros(4, device" in patch and "fused=True" in patch and "torch.rand(4, device" not in patch
    assert err.count("kept fixes: 1.11 × as fast: a step takes 9.000 ms, not 10.000 ms\n") == 2
    # The whole, the safe ones, the others, and these one by one.
    titles = [line.rpartition(",")[0] for line in out.splitlines() if line.startswith("  fixes: ")]
    rules = ["TPF204", "TPF601", "`perflint fix --unsafe-fixes`", "TPF204, TPF601", "TPF204"]
    assert titles == [f"  fixes: the fixes of {each}" for each in rules]


def test_a_busy_gpu_leaves_little_and_that_is_said_after_few_runs(perflint: Command, program: Simulated) -> None:
    runs = []

    def run_of(changes: dict[str, bytes], seconds: float, reseed: bool, deterministic: bool) -> Run:
        runs.append(b"".join(changes.values()))
        done = run([1.0, 0.5], times=[10.0 - 0.001 * len(runs)] * 3)
        assert done.seen is not None
        look = {
            "calls": [],
            "steps": [["train.py", 12, 9]],
            "loaders": [["train.py", 7, 0, 0.0]],
            "busy_ms": 9.7,
        }
        model = ["train.py", 9, "train.py", 9, "model", 1]
        return replace(done, seen=replace(done.seen, look=look | {"models": [model]}))

    program.run = run_of  # type: ignore[method-assign]
    perflint.write("train.py", TRAINING)
    ran = perflint("tune", "--", sys.executable, "train.py")
    assert ran.code == 0 and ran.out.startswith("perflint tune: nothing was gained: a step takes")
    assert "works 97% of a step" in ran.out and "never idle, a step would be 1.03 × as fast.\n" in ran.out
    assert any(b".compile(" in text for text in runs) and any(b"fused=True" in text for text in runs)
    # A step of 20 ms makes a run of about 15 seconds, most of them to start.
    assert len(runs) <= 14


@pytest.mark.parametrize(("stated", "guarded"), [("1.13", True), ("2.2", False)])
def test_a_patch_leaves_the_oldest_torch_of_the_project_alone(
    perflint: Command, program: Simulated, stated: str, guarded: bool
) -> None:
    run, texts = program.run, []

    def run_of(changed: dict[str, bytes], *arguments: Any) -> Run:
        texts.append(b"".join(changed.values()))
        done = run(changed, *arguments)
        assert done.seen is not None
        look = {"calls": [], "steps": [["train.py", 12, 9]], "loaders": [], "busy_ms": 5.0}
        model = ["train.py", 9, "train.py", 9, "model", 1]
        return replace(done, seen=replace(done.seen, look=look | {"models": [model]}))

    program.run = run_of  # type: ignore[method-assign]
    perflint.write("pyproject.toml", f'[project]\nname = "a"\nversion = "1"\ndependencies = ["torch>={stated}"]\n')
    perflint.write("train.py", TRAINING)
    assert perflint("tune", "--only", "compile", "--", sys.executable, "train.py").code == 0
    assert any(b".compile(" in text for text in texts)
    assert any(b'hasattr(model, "compile"):' in text for text in texts) == guarded


def test_tf32_is_tried_where_other_numbers_are_allowed(perflint: Command, program: Simulated) -> None:
    def run_of(changes: dict[str, bytes], seconds: float, reseed: bool, deterministic: bool) -> Run:
        is_faster = b"set_float32_matmul_precision" in b"".join(changes.values())
        done = run([2.0 if is_faster else 1.0, 0.5], times=[5.0 if is_faster else 10.0] * 3)
        assert done.seen is not None
        look = {"calls": [], "steps": [["train.py", 12, 9]], "loaders": [], "busy_ms": 9.5}
        return replace(done, seen=replace(done.seen, look=look))

    program.run = run_of  # type: ignore[method-assign]
    perflint.write("train.py", TRAINING)
    code, _, err = tuned(perflint, "--only", "tf32")
    assert code == 2 and "`tf32` changes the numbers" in err and "add `--allow precision`" in err
    code, out, _ = tuned(perflint, "--only", "tf32", "--allow", "precision")
    assert code == 0 and out.startswith("perflint tune: 2.00 × as fast"), out
    assert "tf32: float32 matrices are multiplied in TF32, 2.00 ×" in out and "changes the numbers" in out
    patch = (perflint.folder / "perflint-tune.patch").read_text()
    assert '+torch.set_float32_matmul_precision("high")' in patch


def test_faults_in_the_usage(perflint: Command, program: Simulated) -> None:
    assert tuned(perflint, "--only", "magic")[0] == 2
    assert tuned(perflint, "--budget", "soon")[0] == 2
    assert perflint("tune").code == 2


RECORDED = Path(__file__).parents[1] / "tracer" / "data" / "straggler-gpu.rank0.jsonl.gz"


def test_a_trace_gives_forecasts_without_a_run(perflint: Command, program: Simulated) -> None:
    code, out, _ = tuned(perflint, "--dry-run", "--trace", str(RECORDED))
    assert code == 0 and program.runs == 0
    assert re.search(r"^loader: batches are prepared by worker processes; at most \d+% of a step$", out, re.M)


def test_a_trace_names_a_script_of_the_project(
    perflint: Command, program: Simulated, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "evil.py"
    outside.touch()
    trace = read_trace(RECORDED)
    for words, code in (
        (("train.py", "--lr", "1"), 0), (("-c", "1"), 2), (("-m", "timeit"), 2), (("timeit", "1"), 2),
        ((str(outside),), 2), (("none.py",), 2),
    ):  # fmt: skip
        given = replace(trace, header=replace(trace.header, program=words))
        monkeypatch.setattr(tune, "read_trace", lambda _, given=given: given)
        program.runs = 0
        ran = perflint("tune", "--repeat", "2", "--seed", str(len(words[0])), "--trace", str(RECORDED))
        assert ran.code == code and (program.runs > 0) == (code == 0), words
        assert code == 0 or f"the program of the trace, {words[0]}, is no script of the project" in ran.err


def test_what_cannot_pay_by_a_trace_is_not_tried(perflint: Command, program: Simulated) -> None:
    code, out, _ = tuned(perflint, "--only", "loader,graph", "--trace", str(RECORDED))
    assert code == 0 and "  loader: by the trace it could save 0.0% of a step at most\n" in out


def test_the_page_is_left_beside_the_patch(perflint: Command, program: Simulated) -> None:
    assert tuned(perflint)[0] == 0
    page = (perflint.folder / "perflint-tune.html").read_text("utf-8")
    assert "2.00 × as fast" in page and "num_workers=" in page


def test_a_run_that_went_on_to_its_end_does_not_tell_how_long_others_take() -> None:
    assert tune._seconds_of(run(times=[1.0] * 5, stopped=True), 5) == 3.0
    assert tune._seconds_of(run(times=[1.0] * 4), 5) == 3.0
    assert tune._seconds_of(run(times=[1.0] * 5), 5) == 1.0
