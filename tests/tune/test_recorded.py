"""Searches on a GPU, made again from their runs: the report, the patch and the exit status are the same."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from tests.tune.recording import RECORDED, searched

PROGRAMS = sorted(path.name.removesuffix(".runs.xz") for path in RECORDED.glob("*.runs.xz"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_search_is_made_again(name: str, tmp_path: Path, update_golden: bool) -> None:
    folder, log = tmp_path / "program", tmp_path / "log"
    folder.mkdir()
    log.write_bytes(lzma.decompress((RECORDED / f"{name}.runs.xz").read_bytes()))
    found = searched(name, folder, log)
    for suffix, text in ((".txt", found.golden(name)), (".patch", found.patch)):
        if update_golden:
            (RECORDED / name).with_suffix(suffix).write_text(text, encoding="utf-8")
        assert text == (RECORDED / name).with_suffix(suffix).read_text("utf-8")
    assert (folder / "perflint-tune.html").exists()
