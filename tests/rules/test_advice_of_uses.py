"""Each use of a value that a rule can meet has its advice."""

from __future__ import annotations

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.rules._advice import _READ
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.dataflow.destinations import Use
from perflint.semantics.project import Project
from perflint.source.text import Source

WRITTEN = """
import torch
import torchaudio

def write(name: str):
    wav = torch.rand(9, device="cuda")
    wav = wav / max(wav.abs().max().item(), 1)
    torchaudio.save(name, wav.cpu(), 16000)
"""


def test_each_use_of_a_number_has_advice() -> None:
    assert set(_READ) == set(Use) - {Use.TEST}


def test_a_number_on_the_way_to_a_file_is_reported() -> None:
    settings = Settings(profile=Profile.AUDIT)
    checked = check_source(Source("write.py", WRITTEN), Project(), RuleSet(all_rules()), settings)
    assert "TPF101" in {finding.code for finding in checked.findings}
