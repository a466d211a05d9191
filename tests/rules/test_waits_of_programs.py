"""Waits in small programs, by all rules of waits: each block is a project, and `# wait` marks each line that waits.

A line that `# audit` marks is found by the profile audit alone. No other line may be found.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Effect
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.rules.harness import NEWEST

_WAITING = {Effect.SYNC, Effect.TRANSFER}


def projects(text: str) -> list[dict[str, str]]:
    """The files of each project, which a line of equal signs ends; the first file may lack a `# file:` line."""
    return [_files(part) for part in re.split(r"^===+\n", text.lstrip("\n"), flags=re.MULTILINE)]


def _files(text: str) -> dict[str, str]:
    text = text if text.startswith("# file: ") else f"# file: main.py\n{text}"
    parts = re.split(r"^# file: (.*)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def waits(files: dict[str, str], folder: Path, profile: Profile) -> set[tuple[str, int]]:
    """The lines that are found to wait."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    project = Project(folder / name for name in files)
    settings = Settings(profile=profile, torch_version=NEWEST)
    rules = RuleSet(rule for rule in all_rules() if rule.effect in _WAITING)
    found = set()
    for name, text in files.items():
        report = check_source(Source(str(folder / name), text), project, rules, settings)
        found |= {(name, each.span.line) for each in report.findings if each.effect in _WAITING}
    return found


def marked(files: dict[str, str], *marks: str) -> set[tuple[str, int]]:
    """The lines with one of some marks."""
    return {
        (name, number)
        for name, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if line.rpartition("#")[2].strip() in marks
    }


def check(files: dict[str, str], folder: Path) -> None:
    """Compare findings and marks."""
    assert waits(files, folder, Profile.AUDIT) == marked(files, "wait", "audit")
    assert waits(files, folder, Profile.DEFAULT) == marked(files, "wait")


LOSS_OR_LOSSES = """
import lightning.pytorch as pl
class Classifier(pl.LightningModule):
    def __init__(self, loss_fn):
        super().__init__()
        self.loss_fn = loss_fn
    def training_step(self, batch, index):
        loss = self.loss_fn(self(batch), batch)
        shown = {}
        if isinstance(loss, dict):
            for name, part in loss.items():
                shown[name] = part.item()                   # wait
            loss = loss["total"]
        else:
            shown["loss"] = loss.item()                     # wait
        return {"loss": loss, "shown": shown}
===
import lightning.pytorch as pl
class Base(pl.LightningModule):
    def __init__(self, loss_fn):
        super().__init__()
        self.loss_fn = loss_fn
    def forward(self, batch):
        raise NotImplementedError
    def training_step(self, batch, index):
        out = self(batch)
        loss = self.loss_fn(out, batch)
        if not isinstance(loss, (dict, list)):
            self.seen = loss.item()                         # wait
        else:
            self.seen = loss["total"].item()                # wait
        return loss
===
def show(loss):
    if isinstance(loss, float):
        return loss
    return loss.item()
"""


@pytest.mark.parametrize("files", projects(LOSS_OR_LOSSES))
def test_a_loss_or_a_dict_of_losses(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)
