"""The verb `report`: its options, its faults and what it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from perflint.tracer.events import CandidateLine, Gap, SourceFile, Sync
from perflint.tracer.file import write_trace
from perflint.tracer.trace import Trace
from tests.cli.command import ROOT, Command
from tests.output.traces import CODE, TRACE, header, project, without

RECORDED = ROOT / "tests" / "tracer" / "data" / "trainer_hooks.jsonl.gz"


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """The name of a trace in the working directory, beside its source."""
    project(tmp_path)
    write_trace(tmp_path / "trace.jsonl.gz", replace(TRACE, header=header(root=str(tmp_path))))
    return "trace.jsonl.gz"


def test_a_page_is_written(perflint: Command, trace: str) -> None:
    ran = perflint("report", trace, "-o", "page.html")
    assert (ran.code, ran.out, ran.err) == (0, "", "Written to page.html.\n")
    html = (perflint.folder / "page.html").read_text(encoding="utf-8")
    assert "<mark>loss.item()</mark>" in html and "scalar-read-in-loop" in html and "confirmed" in html
    assert not [path for path in perflint.folder.iterdir() if path.name.startswith(".")]


def test_the_default_names(perflint: Command, trace: str) -> None:
    assert perflint("report", trace).code == 0 and perflint("report", trace, "--format", "chrome").code == 0
    assert (perflint.folder / "perflint-report.html").is_file()
    assert json.loads((perflint.folder / "perflint-chrome.json").read_text())["traceEvents"]


def test_a_link_of_the_default_name_leads_nowhere(
    perflint: Command, trace: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "mine.html"
    outside.write_text("mine")
    for name in ("perflint-report.html", "named.html"):
        (perflint.folder / name).symlink_to(outside)
    assert perflint("report", trace).code == 0 and outside.read_text() == "mine"
    assert (perflint.folder / "perflint-report.html").read_text().startswith("<!DOCTYPE html>")
    assert perflint("report", trace, "-o", "named.html").code == 0 and outside.read_text() != "mine"


def test_the_page_may_go_to_standard_output(perflint: Command, trace: str) -> None:
    ran = perflint("report", trace, "-o", "-")
    assert ran.code == 0 and ran.out.startswith("<!DOCTYPE html>") and ran.err == ""


def test_text_is_the_summary_of_the_trace(perflint: Command, trace: str) -> None:
    ran = perflint("report", "--format", "text", trace)
    assert ran.code == 0 and ran.out.startswith("perflint trace: 12 steps of 9.10 ms (counted by optimizer.step())")
    assert "1.260        1.00  train.py:11" in ran.out


def test_a_recorded_trace(perflint: Command) -> None:
    ran = perflint("report", str(RECORDED), "-o", "page.html")
    html = (perflint.folder / "page.html").read_text(encoding="utf-8")
    assert ran.code == 0 and "trainer_hooks.py" in html and "NVIDIA H200" in html and len(html) < 200_000
    assert perflint("report", str(RECORDED), "--format", "chrome", "-o", "a.json").code == 0
    assert len(json.loads((perflint.folder / "a.json").read_text())["traceEvents"]) > 3000


def test_ranks_come_in_their_order(perflint: Command) -> None:
    for rank in (1, 0):
        write_trace(perflint.folder / f"{rank}.gz", replace(TRACE, header=header(rank=rank, world_size=2)))
    ran = perflint("report", "1.gz", "0.gz", "-o", "-")
    assert ran.code == 0 and 0 < ran.out.index("Rank 0 of 2") < ran.out.index("Rank 1 of 2")


@pytest.mark.parametrize("form", ["text", "html"])
def test_the_rank_that_the_others_wait_for(perflint: Command, form: str) -> None:
    traces = [str(RECORDED.with_name(f"straggler-host.rank{rank}.jsonl.gz")) for rank in (1, 0)]
    ran = perflint("report", *traces, "--format", form, "-o", "-", "--no-check")
    assert ran.code == 0 and "Rank 1 makes the others wait, 10.40 ms per step" in ran.out
    assert "Only rank 1 synchronizes: ddp.py:54  loss.item()" in ran.out
    alone = perflint("report", traces[0], "--format", form, "-o", "-", "--no-check")
    assert "makes the others wait" not in alone.out


def test_what_is_checked(perflint: Command, trace: str) -> None:
    claims = "Findings of the linter"
    assert claims in perflint("report", trace, "-o", "-").out
    assert claims not in perflint("report", trace, "-o", "-", "--no-check").out
    perflint.write("other/a.py", "x = 1\n")
    assert "The linter finds nothing" in perflint("report", trace, "-o", "-", "--check", "other").out
    assert "scalar-read-in-loop" not in perflint("report", trace, "-o", "-", "--ignore", "TPF1").out


def test_what_the_trace_refutes_is_shown(perflint: Command) -> None:
    """The line ran in recorded steps, and nobody waited."""
    (perflint.folder / "train.py").write_text(CODE)
    quiet = without(Sync, Gap)
    ran = (CandidateLine("train.py", line, True) for line in (11, 12))
    records = (*quiet.records, *ran)
    write_trace(perflint.folder / "a.gz", Trace(header(root=str(perflint.folder)), records))
    out = perflint("report", "a.gz", "-o", "-").out
    assert "refuted" in out and "the CPU did not wait" in out


def test_without_the_source_nothing_is_checked(perflint: Command) -> None:
    write_trace(perflint.folder / "a.gz", TRACE)
    out = perflint("report", "a.gz", "-o", "-").out
    assert "Findings of the linter" not in out and "Source not available" in out


def test_the_root_may_be_elsewhere(perflint: Command, tmp_path: Path) -> None:
    write_trace(perflint.folder / "a.gz", TRACE)
    (tmp_path / "copy").mkdir()
    project(tmp_path / "copy")
    out = perflint("report", "a.gz", "-o", "-", "--root", "copy").out
    assert "<mark>loss.item()</mark>" in out and "scalar-read-in-loop" in out


FAULTS = [
    (("none.gz",), "none.gz cannot be read", "`perflint trace SCRIPT` records one"),
    (("cut.gz",), "cut.gz is cut off", "copy it whole"),
    (("train.py",), "train.py is not a trace", "record it anew"),
    (("trace.jsonl.gz", "-o", "trace.jsonl.gz"), "trace.jsonl.gz is a trace to read", "`--output`"),
    (("trace.jsonl.gz", "-o", "none/page.html"), "there is no folder", "create it"),
    (("trace.jsonl.gz", "-o", "folder"), "folder cannot be written", "`--output`"),
    (("trace.jsonl.gz", "--root", "none"), "there is no folder none", "`--root`"),
    (("trace.jsonl.gz", "--no-check", "--check", "a.py"), "exclude each other", "leave one"),
    (("trace.jsonl.gz", "--select", "TPF999"), "TPF999", ""),
    (("plain.gz", "--format", "chrome"), "there is no timeline", "`perflint trace --window 3`"),
]


@pytest.mark.parametrize(("arguments", "message", "help"), FAULTS, ids=[message for _, message, _ in FAULTS])
def test_faults(perflint: Command, trace: str, arguments: tuple[str, ...], message: str, help: str) -> None:
    (perflint.folder / "folder").mkdir()
    whole = (perflint.folder / trace).read_bytes()
    (perflint.folder / "cut.gz").write_bytes(whole[:-20])
    write_trace(perflint.folder / "plain.gz", Trace(header(), (SourceFile("train.py", ""),)))
    before = sorted(perflint.folder.iterdir())
    ran = perflint("report", *arguments)
    assert ran.code == 2 and message in ran.err and help in ran.err and ran.out == ""
    assert sorted(perflint.folder.iterdir()) == before and (perflint.folder / trace).read_bytes() == whole


def test_usage(perflint: Command) -> None:
    assert perflint("report").code == 2
    assert perflint("report", "a", "--format", "pdf").code == 2
    assert "perflint report" in perflint("report", "--help").out


@pytest.mark.skipif(os.name == "nt", reason="permissions are POSIX's")
def test_the_page_has_the_permissions_of_any_file(perflint: Command, trace: str) -> None:
    perflint("report", trace, "-o", "page.html", "--no-check")
    (perflint.folder / "other").touch()
    assert (perflint.folder / "page.html").stat().st_mode == (perflint.folder / "other").stat().st_mode


def test_neither_torch_nor_libcst_is_needed_to_show_a_trace(perflint: Command, trace: str) -> None:
    code = (
        "import sys; from perflint.cli.main import main\n"
        f"assert main(['report', {trace!r}, '-o', 'page.html', '--no-check']) == 0\n"
        "assert not {'torch', 'numpy', 'libcst'} & set(sys.modules)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], cwd=perflint.folder, check=True, env=environment, capture_output=True)
