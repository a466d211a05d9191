"""Packages that give many definitions are read once for a check, however many of their names a file imports."""

from __future__ import annotations

from pathlib import Path

from perflint.engine.active import active_rules
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.source.text import Source
from tests.engine.work import AUDIT
from tests.growth import calls, is_linear

CHECKED = "class Buffer:\n    def sample(self, size):\n        return self.data[size].item()\n"
USER = "from project import Part0\nfrom project.buffers import Buffer\nPart0().train(Buffer(), 3)\n"
PART = "class Part{}:\n    def train(self, buffer, size):\n        return buffer.sample(size)\n"


def work(folder: Path, parts: int) -> int:
    """The calls of functions in a check of a file, whose user imports from a package of a package of many parts."""
    below = folder / "project" / "parts"
    below.mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    names = range(parts)
    (folder / "project" / "__init__.py").write_text("".join(f"from .parts import Part{name}\n" for name in names))
    (below / "__init__.py").write_text("".join(f"from .part{name} import Part{name}\n" for name in names))
    for name in names:
        (below / f"part{name}.py").write_text(PART.format(name))
    (folder / "project" / "main.py").write_text(USER)
    path = folder / "project" / "buffers.py"
    path.write_text(CHECKED)
    rules, source = active_rules(AUDIT), Source(str(path), CHECKED)
    return calls(lambda: check_source(source, Projects(AUDIT).of(path), rules, AUDIT))


def test_packages_of_packages(tmp_path: Path) -> None:
    work(tmp_path / "first", 2)
    assert is_linear([work(tmp_path / str(parts), parts) for parts in (40, 80)])
