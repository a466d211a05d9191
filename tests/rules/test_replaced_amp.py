"""Old AMP names that a file replaces, or whose class it asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Safety
from perflint.rules.legacy.deprecated_amp import DeprecatedAmp
from perflint.rules.registry import RuleSet
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.rules.harness import lint

MAKES = "import torch\n\ndef make():\n    return torch.cuda.amp.GradScaler()\n"


@pytest.mark.parametrize(
    ("more", "safety"),
    [
        ("", Safety.SAFE),
        ('@mock.patch("torch.cuda.amp.GradScaler")\ndef test(made): make()', Safety.UNSAFE),
        ("def test(monkeypatch): monkeypatch.setattr(torch.cuda.amp, 'GradScaler', dict)", Safety.UNSAFE),
        ("def test():\n    with mock.patch.object(torch.cuda.amp, 'GradScaler'): make()", Safety.UNSAFE),
        ("torch.cuda.amp.GradScaler = dict", Safety.UNSAFE),
        ("kept, torch.cuda.amp.GradScaler = torch.cuda.amp.GradScaler, dict", Safety.UNSAFE),
        ("def old(made): return type(made) is torch.cuda.amp.GradScaler", Safety.UNSAFE),
        ("def old(made): return made.__class__ != GradScaler", Safety.UNSAFE),
        ("match make():\n    case torch.cuda.amp.GradScaler(): pass", Safety.UNSAFE),
        ("def old(made): return isinstance(made, torch.cuda.amp.GradScaler)", Safety.UNSAFE),
        ("kept = torch.cuda.amp.GradScaler()\nassert kept is not None", Safety.SAFE),
        ("if make() == torch.amp.GradScaler('cuda'): pass", Safety.SAFE),
        ("NAMES = {'torch.cuda.amp.GradScaler': 'a scaler'}", Safety.SAFE),
    ],
)
def test_a_name_that_is_replaced_or_asked_for(more: str, safety: Safety) -> None:
    finding = lint(f"{MAKES}\n{more}\n", [DeprecatedAmp], "audit")[0]
    assert finding.fix is not None and finding.fix.safety is safety


@pytest.mark.parametrize(
    ("other", "safety"),
    [
        ("from made import make\n@mock.patch('torch.cuda.amp.GradScaler')\ndef test(made): make()\n", Safety.UNSAFE),
        ("from made import make\ndef test(): make()\n", Safety.SAFE),
    ],
)
def test_a_name_that_a_test_replaces(tmp_path: Path, other: str, safety: Safety) -> None:
    (tmp_path / "made.py").write_text(MAKES)
    (tmp_path / "test_made.py").write_text(other)
    project = Project([tmp_path / "made.py", tmp_path / "test_made.py"])
    settings = Settings(profile=Profile.AUDIT, torch_version=(2, 4))
    report = check_source(Source(str(tmp_path / "made.py"), MAKES), project, RuleSet([DeprecatedAmp()]), settings)
    (finding,) = report.findings
    assert finding.fix is not None and finding.fix.safety is safety
