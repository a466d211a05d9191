"""The action, the job and the choice of a format, as services of continuous integration use them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from perflint.config.settings import OutputFormat
from perflint.output.formats import of_environment
from tests.cli.command import ROOT, Command

pytestmark = pytest.mark.usefixtures("stated_torch")
BAD = """\
import torch


def train(model, loader):
    for x in loader:
        with torch.cuda.amp.autocast():
            model(x).backward()
"""
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}
JOB: dict[str, Any] = yaml.safe_load((ROOT / "docs" / "ci" / "gitlab.yml").read_text(encoding="utf-8"))["perflint"]
SERVICES = ("GITHUB_ACTIONS", "TF_BUILD", "GITLAB_CI", "CI")


@pytest.mark.parametrize(
    ("variables", "format", "in_file"),
    [
        ({}, OutputFormat.FULL, OutputFormat.FULL),
        ({"CI": "true"}, OutputFormat.CONCISE, OutputFormat.CONCISE),
        ({"CI": "true", "GITHUB_ACTIONS": "true"}, OutputFormat.GITHUB, OutputFormat.GITHUB),
        ({"TF_BUILD": "True"}, OutputFormat.AZURE, OutputFormat.AZURE),
        ({"CI": "true", "GITLAB_CI": "true"}, OutputFormat.CONCISE, OutputFormat.GITLAB),
        ({"GITHUB_ACTIONS": "", "CI": ""}, OutputFormat.FULL, OutputFormat.FULL),
    ],
)
def test_the_format_of_a_service(variables: dict[str, str], format: OutputFormat, in_file: OutputFormat) -> None:
    assert of_environment(variables, to_file=False) is format
    assert of_environment(variables, to_file=True) is in_file


def test_auto(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SERVICES:
        monkeypatch.delenv(name, raising=False)
    perflint.write("train.py", BAD)
    perflint.write("pyproject.toml", '[tool.perflint]\noutput-format = "auto"\n')
    assert "--> train.py:6:14" in perflint("check", "train.py").out
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert perflint("check", "train.py").out.startswith("::warning title=TPF902")
    monkeypatch.delenv("GITHUB_ACTIONS")
    monkeypatch.setenv("GITLAB_CI", "true")
    assert perflint("check", "train.py").out.startswith("train.py:6:14: TPF902")
    perflint("check", "train.py", "--output-file", "found.json")
    assert json.loads((perflint.folder / "found.json").read_text())[0]["check_name"] == "deprecated-amp"


def test_ci(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SERVICES:
        monkeypatch.delenv(name, raising=False)
    perflint.write("train.py", BAD)
    perflint.write("pyproject.toml", '[tool.perflint]\noutput-format = "junit"\n')
    assert "--> train.py:6:14" in perflint("ci").out
    monkeypatch.setenv("TF_BUILD", "True")
    found = perflint("ci", "--select=TPF902", "train.py")
    assert found.code == 1 and found.out.startswith("##vso[task.logissue type=warning;sourcepath=train.py;")
    assert perflint("ci", "--ignore=TPF902").code == 0
    assert perflint("ci", "--output-format=concise").out.startswith("train.py:6:14: TPF902")
    assert "default: auto" in perflint("ci", "--help").out


# The action


def test_the_action_is_whole() -> None:
    assert ACTION["runs"]["using"] == "composite" and set(ACTION) == {
        "name",
        "description",
        "branding",
        "inputs",
        "runs",
    }
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.(\w+)", text)) == set(ACTION["inputs"])
    for given in ACTION["inputs"].values():
        assert set(given) == {"description", "default"} and isinstance(given["default"], str)
    for step in STEPS.values():
        assert ("run" in step) != ("uses" in step)
        # An expression in a script would let an input run commands.
        assert "${{" not in step.get("run", "") and ("run" not in step or step["shell"] == "bash")


def step(name: str, folder: Path, paths: str, args: str = "") -> subprocess.CompletedProcess[str]:
    """Run a step of the action as the runner does, with this perflint as the one that is installed."""
    binary = folder / "temp" / "perflint" / "bin" / "perflint"
    if not binary.exists():
        binary.parent.mkdir(parents=True)
        binary.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m perflint "$@"\n')
        binary.chmod(0o755)
    script = folder / "step.sh"
    script.write_text(STEPS[name]["run"])
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "PERFLINT_NO_CACHE": "1",
        "GITHUB_ACTIONS": "true",
        "RUNNER_TEMP": str(folder / "temp"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GITHUB_ACTION_PATH": str(folder / "none"),
        "PYTHON": sys.executable,
        "PATHS": paths,
        "ARGS": args,
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a bad file, and one whose name has a bad character."""
    (tmp_path / "train.py").write_text(BAD)
    (tmp_path / "clean.py").write_text("x = 1\n")
    return tmp_path


def test_check_annotates_and_fails(project: Path) -> None:
    ran = step("Check", project, "clean.py\ntrain.py", "--select TPF902")
    assert ran.returncode == 1 and ran.stdout.startswith(
        "::warning title=TPF902 (deprecated-amp),file=train.py,line=6,"
    )
    assert step("Check", project, "train.py", "--select=TPF902 --exit-zero").returncode == 0
    assert step("Check", project, "clean.py").returncode == 0
    assert step("Check", project, "$(touch evil) missing.py").returncode == 2
    assert not (project / "evil").exists()


def test_sarif_and_summary_do_not_fail(project: Path) -> None:
    assert step("Write SARIF", project, ". missing.py").returncode == 0
    results = json.loads((project / "temp" / "perflint.sarif").read_text())["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["TPF902"]
    assert step("Write the summary", project, ".").returncode == 0
    summary = (project / "summary.md").read_text()
    assert summary.startswith("## perflint\n") and "train.py:6" in summary


def test_the_installation_runs_nothing_of_the_repository(project: Path) -> None:
    mark = f"open({str(project / 'MARK')!r}, 'a').write(__name__)\n"
    for name in ("venv", "pip", "ensurepip", "logging", "shutil", "site", "sitecustomize", "runpy", "zipfile"):
        (project / f"{name}.py").write_text(mark)
        (project / name).mkdir()
        (project / name / "__init__.py").write_text(mark)
        (project / name / "__main__.py").write_text(mark)
    ran = step("Install perflint", project, ".")
    assert "none" in ran.stderr and (project / "temp" / "perflint" / "bin" / "pip").exists()
    assert not (project / "MARK").exists()


# GitLab


def test_the_job_of_gitlab(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITLAB_CI", "true")
    for name in ("GITHUB_ACTIONS", "TF_BUILD"):
        monkeypatch.delenv(name, raising=False)
    perflint.write("train.py", BAD)
    install, check = JOB["script"]
    assert "$PERFLINT_PACKAGE" in install and JOB["artifacts"]["when"] == "always"
    for name, value in JOB["variables"].items():
        check = check.replace(f"${name}", value)
    command, *arguments = check.split()
    assert command == "perflint" and perflint(*arguments).code == 1
    report = perflint.folder / JOB["artifacts"]["reports"]["codequality"]
    assert [each["check_name"] for each in json.loads(report.read_text())] == ["deprecated-amp"]
