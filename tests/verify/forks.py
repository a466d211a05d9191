"""Programs whose runs are forked."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perflint.tracer.probe import ProbeOptions
from perflint.verify import execution
from perflint.verify.execution import Program, Run
from perflint.verify.workspace import Workspace

TRAINING = """
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.utils.data.DataLoader(torch.rand(40, 4), batch_size=4, num_workers=1):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
"""
FACTS = (
    """
import json, os, sys, light, torch, own
facts = {"path": sys.path, "file": __file__, "argv": sys.argv, "folder": os.getcwd(), "own": own.value}
facts |= {"main": vars(sys.modules["__main__"]) is globals(), "spec": __spec__, "name": __name__}
facts |= {"random": torch.rand(1).item(), "leads": os.getpgrp() == os.getpid(), "input": sys.stdin.read()}
print(json.dumps(facts))
print("told", file=sys.stderr)
"""
    + TRAINING
)


def program_in(folder: Path, light: str, patch: pytest.MonkeyPatch) -> Program:
    """A program in an empty folder that imports a package whose module `light` has some text."""
    root = folder / "project"
    (root / "below").mkdir(parents=True)
    (root / "below" / "program.py").write_text(FACTS)
    (root / "below" / "own.py").write_text("value = 1\n")
    packages = folder / "packages"
    packages.mkdir()
    (packages / "light.py").write_text(light)
    patch.chdir(root)
    patch.setenv("PYTHONPATH", str(packages))
    patch.setattr(execution, "_WORTH", 0.0)
    copy = Workspace(root)
    options = ProbeOptions(str(copy.output), str(root), str(copy.folder), (), 2, 5, 1)
    return Program([sys.executable, "-u", "below/program.py", "a"], copy, options)


def close(program: Program) -> None:
    """End what there is for a program."""
    program.close()
    program._workspace.close()


@dataclass(frozen=True)
class Ran:
    """A program, the run that started it with what it imported, and the first run that was forked."""

    folder: Path
    program: Program
    first: Run
    imported: Mapping[str, Any]
    again: Run


def changed(text: str, path: str = "below/program.py") -> dict[str, bytes]:
    return {path: text.encode()}


def forked_run(program: Program, text: str, seconds: float = 120, reseed: bool = False, **options: Any) -> Run:
    """A run of another text, with other options of the probe."""
    kept = program._options
    program._options = ProbeOptions(kept.output, kept.original, kept.copy, kept.shared, **options)
    try:
        return program.run(changed(text), seconds, reseed)
    finally:
        program._options = kept
