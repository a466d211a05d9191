"""Rules are found, checked for clashes and handed out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import perflint.rules
from perflint.rules import base
from perflint.rules.collecting import RegistryError, collect
from perflint.rules.registry import RuleSet, all_rules, names
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.sites import CallSite, FileSite
from perflint.source.text import Source
from tests.engine.toys import Files, Picky, Toy, Truths, Zeros

RULE = '''
from perflint.rules.base import Calls, Rule
from perflint.findings import Effect, Severity
class Found(Rule):
    """Page."""
    code, name = "{code}", "{name}"
    effect, severity = Effect.SYNC, Severity.INFO
    listens = (Calls("torch.zeros"),)
    def check(self, site):
        yield from ()
'''


class Package:
    """A package of rules that a test writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "toyrules"
        self.write("__init__.py", "")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def rule(self, name: str, code: str, rule_name: str) -> None:
        self.write(name, RULE.format(code=code, name=rule_name))
        self.write(str(Path(name).parent / "__init__.py"), "")

    def module(self) -> ModuleType:
        return import_module("toyrules")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    monkeypatch.syspath_prepend(tmp_path)
    yield Package(tmp_path)
    for name in [name for name in sys.modules if name.split(".")[0] == "toyrules"]:
        del sys.modules[name]


def test_rules_are_found_by_walking(package: Package) -> None:
    package.rule("b/second.py", "TPF102", "second")
    package.rule("a/first.py", "TPF101", "first")
    package.rule("a/third.py", "TPF103", "third")
    package.write("a/_helper.py", "raise AssertionError")
    package.write("_family/hidden.py", "raise AssertionError")
    package.write("_family/__init__.py", "")
    package.write("base.py", "raise AssertionError")
    package.write("a/data.toml", "")
    assert [rule.code for rule in collect(package.module())] == ["TPF101", "TPF102", "TPF103"]


def test_imported_rules_are_not_the_modules_own(package: Package) -> None:
    package.rule("a/first.py", "TPF101", "first")
    package.rule("a/second.py", "TPF102", "second")
    path = package.folder / "a" / "second.py"
    path.write_text(path.read_text() + "\nfrom toyrules.a.first import Found as Other\n")
    assert [rule.name for rule in collect(package.module())] == ["first", "second"]


@pytest.mark.parametrize(("code", "name", "clash"), [("TPF101", "other", "TPF101"), ("TPF102", "first", "first")])
def test_codes_and_names_are_unique(package: Package, code: str, name: str, clash: str) -> None:
    package.rule("a/first.py", "TPF101", "first")
    package.rule("b/second.py", code, name)
    with pytest.raises(RegistryError, match=f"^{clash} is both"):
        collect(package.module())


def test_a_module_holds_one_rule(package: Package) -> None:
    package.rule("a/first.py", "TPF101", "first")
    package.write("a/empty.py", "x = 1\n")
    with pytest.raises(RegistryError, match=r"toyrules\.a\.empty must hold one rule, not 0"):
        collect(package.module())


def test_perflints_own_rules() -> None:
    rules = all_rules()
    assert len(rules) > 3
    assert [rule.code for rule in rules] == sorted(names())
    files = Path(perflint.rules.__file__).parent.glob("[!_]*/[!_]*.py")
    assert len(rules) == len(list(files))


def test_handing_out() -> None:
    zeros, truths, files, picky = Zeros(), Truths(), Files(), Picky()
    rules = RuleSet([picky, files, truths, zeros])
    assert rules.rules == (zeros, truths, picky, files)
    smaller = rules.without({"TPF101", "TPF201"})
    assert smaller.rules == (truths, picky)
    assert rules.without(set()) is rules


class Words(Toy):
    """Files of a text."""

    code, name = "TPF202", "words"
    listens = (base.Files("a(", "b(", also=("c(", "d("), without=("e(", "f(")), base.Files("g("))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a(c(1))", True),
        ("b(1)\nd(2)", True),
        ("a(1)", False),
        ("c(1)", False),
        ("a(c(1))\nf(2)", False),
        ("g(1)", True),
        ("g(a(c(1)))", True),
    ],
)
def test_a_rule_for_files_of_a_text(text: str, expected: bool) -> None:
    words = Words()
    (site,) = (site for site in Model(Source("a.py", text), Project()).sites() if isinstance(site, FileSite))
    assert list(RuleSet([words]).listening(site)) == [words] * expected


def test_importing_the_rules_does_not_import_libcst() -> None:
    script = (
        "import sys; from perflint.rules.registry import all_rules; assert all_rules(); "
        "heavy = {'libcst', 'torch', 'numpy'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


CONDITIONS = [
    (base.Mentions("a(", "b("), ["a(1)", "x b("], ["", "c("]),
    (base.Mentions("a(", also=("b(", "c(")), ["a( b(", "c( a("], ["a(", "b( c("]),
    (base.Mentions(without=("a(", "b(")), ["", "c("], ["a(", "c( b("]),
    (base.Mentions(pattern=r"\bab+\b"), ["abb", "x.ab"], ["", "abc"]),
    (base.Mentions(unlike=r"\bab+\b"), ["", "abc"], ["abb", "x.ab"]),
    (base.Mentions("a(", pattern="b$", unlike="c"), ["a( b"], ["a(", "b", "c a( b"]),
]


@pytest.mark.parametrize(("condition", "fitting", "other"), CONDITIONS)
def test_a_condition_on_texts(condition: base.Mentions, fitting: list[str], other: list[str]) -> None:
    assert all(map(condition.fits, fitting)) and not any(map(condition.fits, other))


def test_a_rule_looks_only_at_files_that_it_mentions() -> None:
    class Limited(Zeros):
        mentions = base.Mentions("ones", without=("empty",))

    limited, zeros = Limited(), Zeros()
    text = "import torch\nx = torch.zeros(3)\n"
    for more, expected in (("", [zeros]), ("y = torch.ones(3)\n", [limited, zeros]), ("# ones, empty\n", [zeros])):
        model = Model(Source("a.py", text + more), Project())
        (site,) = (each for each in model.sites() if isinstance(each, CallSite) and each.target == "torch.zeros")
        assert list(RuleSet([limited, zeros]).listening(site)) == expected
