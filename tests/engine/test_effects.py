"""The findings that a file had before a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.effects import Effects, Past
from perflint.source.text import Source

AUDIT = Settings(profile=Profile.AUDIT)
TEXT = "import torch\n\nfor x in range(3):\n    print(torch.ones(3, device='cuda').item())\n"


@pytest.mark.parametrize(("before", "known"), [(TEXT.encode(), True), (b"x = 1\n", False), (b"\xff\xfe", False)])
def test_a_file_as_it_was(tmp_path: Path, before: bytes, known: bool) -> None:
    path = str(tmp_path / "a.py")
    found = Effects(AUDIT, active_rules(AUDIT)).before(Source(path, TEXT), Past({path: before}, {}))
    assert ("TPF101" in {code for code, _ in found}) is known
