"""House rules as a company uses them: the package of the guide, installed in a folder, in processes of their own."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest

from perflint.config.settings import OutputFormat
from tests.cli.command import ROOT, Ran, python
from tests.cli.forks import perflint

GUIDE = (ROOT / "docs" / "guide" / "house-rules.md").read_text(encoding="utf-8")
PACKAGE, TESTS = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
SETTINGS = '[tool.perflint]\nhouse-rules = ["acme_rules"]\n'
TRAIN = """\
import acme
import torch


def train(model, loader):
    for batch in loader:
        loss = model(batch.cuda()).sum()
        loss.backward()
        acme.log("loss", loss)
        print(loss.item())
"""
HOUSE, OWN = ("train.py:9", "ACM001"), ("train.py:10", "TPF101")


@dataclass(frozen=True)
class Company:
    """A project, and a folder of installed packages."""

    project: Path
    site: Path

    def __call__(self, *arguments: str, module: str = "perflint", **environment: str) -> Ran:
        """Run a command in the project."""
        paths = os.pathsep.join([str(ROOT), str(self.site)])
        given = {"PYTHONPATH": paths, "PERFLINT_CACHE_DIR": str(self.site / "cache")} | environment
        if module == "perflint":
            return perflint(self.project, *arguments, **given)
        return python("-m", module, *arguments, cwd=self.project, **given)

    def found(self, *options: str) -> list[tuple[str, str]]:
        """The places and codes of a check, without those of the other rules of perflint."""
        ran = self("check", ".", "--output-format=concise", "--ignore=TPF2", *options)
        assert ran.code in (0, 1), ran.err
        lines = [line.split(": ") for line in ran.out.splitlines()]
        return [(line[0].rpartition(":")[0], line[1].split()[0]) for line in lines]

    def install(self, text: str, name: str = "acme_rules") -> None:
        """Write a package."""
        folder = self.site / name
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text(text)


@pytest.fixture
def acme(tmp_path: Path) -> Company:
    """A project with the rules of the guide, and one finding of them."""
    company = Company(tmp_path / "project", tmp_path / "site")
    company.project.mkdir()
    company.site.mkdir()
    company.install(PACKAGE)
    (company.project / "pyproject.toml").write_text(SETTINGS)
    (company.project / "train.py").write_text(TRAIN)
    return company


def test_findings_fixes_and_the_page(acme: Company) -> None:
    assert acme.found() == [HOUSE, OWN]
    ran = acme("check", "train.py", "--select=ACM")
    assert "warning[ACM001] [*] `acme.log` waits for `loss`" in ran.out and "= help: Log it later, or" in ran.out
    assert '+        acme.log_later("loss", loss)' in acme("fix", "train.py", "--select=ACM").out
    page = acme("rule", "ACM001")
    assert page.out.startswith("# log-each-tensor (ACM001)\n\nSeverity warning, effect sync, safe fixes, a house rule")
    assert "## When it is fine" in page.out and "Measured" not in page.out
    assert acme("rule", "log-each-tensor").out == page.out
    assert "ACM001  log-each-tensor" in acme("rules").out
    assert "ACM001" in acme("rule", "ACM").out
    assert "ACM001 log-each-tensor: shown" in acme("explain", "train.py:9").out


def test_a_module_that_is_only_installed_is_not_imported(acme: Company) -> None:
    marker = acme.project / "imported"
    acme.install(f"{PACKAGE}\nopen({str(marker)!r}, 'w').close()\n")
    (acme.project / "pyproject.toml").write_text("[tool.perflint]\n")
    assert acme.found() == [OWN] and not marker.exists()
    assert acme.found("--config", 'house-rules=["acme_rules"]') == [HOUSE, OWN] and marker.exists()


def test_selection_and_comments(acme: Company) -> None:
    assert acme.found("--select=ACM") == [HOUSE]
    assert acme.found("--ignore=log-each-tensor") == [OWN]
    assert acme.found("--ignore=ACM") == [OWN]
    assert "info[ACM001]" in acme("check", ".", "--config", "severity={ACM0='info'}").out
    unknown = acme("check", ".", "--select=ACM0O1")
    assert (unknown.code, "did you mean `ACM001`?" in unknown.err) == (2, True)
    silenced = TRAIN.replace("loss)\n        print", "loss)  # perflint: ignore[ACM001]\n        print")
    unused = silenced.replace("loss.item())", "loss.item())  # perflint: ignore[ACM001] # perflint: ignore[ACM01]")
    (acme.project / "train.py").write_text(unused)
    ran = acme("check", ".", "--output-format=concise", "--select=ACM,TPF98", "--profile=pedantic")
    assert "`ACM001` silences no finding here" in ran.out and "no rule has the code or name `ACM01`" in ran.out
    assert ":9:" not in ran.out


@pytest.mark.parametrize("format", [OutputFormat.JSON, OutputFormat.SARIF, OutputFormat.GITHUB, OutputFormat.MARKDOWN])
def test_formats(acme: Company, format: OutputFormat) -> None:
    ran = acme("check", ".", f"--output-format={format.value}")
    assert ran.code == 1 and "ACM001" in ran.out
    if format is OutputFormat.JSON:
        jsonschema.validate(json.loads(ran.out), json.loads((ROOT / "docs" / "json-schema.json").read_text()))
    if format is OutputFormat.SARIF:
        rules = {rule["id"]: rule for rule in json.loads(ran.out)["runs"][0]["tool"]["driver"]["rules"]}
        assert rules["ACM001"]["fullDescription"]["text"].startswith("Finds tensors on the GPU")


def test_an_edit_of_a_rule_counts_at_once(acme: Company) -> None:
    assert "waits for `loss`" in acme("check", ".").out
    assert "waits for `loss`" in acme("check", ".").out
    acme.install(PACKAGE.replace("waits for", "reads"))
    assert "reads `loss`" in acme("check", ".").out
    # A file beside the rules may hold their data.
    (acme.site / "acme_rules" / "names.txt").write_text("log")
    assert "reads `loss`" in acme("check", ".").out


def test_workers(acme: Company) -> None:
    for name in ("a", "b", "c"):
        (acme.project / f"{name}.py").write_text(TRAIN + "\n".join(f"x{n} = {n}  # {'y' * 60}" for n in range(600)))
    alone = acme("check", ".", "--jobs=1", "--no-cache")
    assert alone.out.count("[ACM001]") == 4
    assert acme("check", ".", "--jobs=2", "--no-cache").out == alone.out


def test_a_crash_names_the_rule_and_keeps_the_other_findings(acme: Company) -> None:
    other = "\n\nclass Broken(Rule):\n    'Crashes.'\n    code, name = 'ACM002', 'broken'\n"
    other += "    effect, severity = Effect.SYNC, Severity.WARNING\n    listens = (Calls('acme.log'),)\n"
    acme.install(f"{PACKAGE}{other}    def check(self, site):\n        return iter([1 // 0])\n")
    ran = acme("check", ".", "--output-format=concise")
    assert ran.code == 2 and "ACM001" in ran.out and "TPF101" in ran.out
    assert "rule ACM002 (broken) crashed: ZeroDivisionError" in ran.err and "the authors of `acme_rules`" in ran.err
    acme.install(f"{PACKAGE}{other}    def check(self, site):\n        yield 'a text'\n")
    assert "yields 'a text', which is not a `Finding`" in acme("check", ".").err
    assert acme.found("--ignore=ACM002") == [HOUSE, OWN]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PACKAGE.replace("ACM001", "TPF101"), "the letters TPF belong to perflint"),
        (PACKAGE.replace("ACM001", "acme1"), "two to four capital letters and three digits"),
        (PACKAGE.replace("log-each-tensor", "scalar-read-in-loop"), "is a rule of `acme_rules` and of `perflint`"),
        (PACKAGE.replace('Calls("acme.log"),', "str,"), "`listens` must be a tuple"),
        (PACKAGE.replace("Effect.SYNC, ", "'sync', "), "`effect` must be a member"),
        (re.sub(r'    """.*?"""\n', "", PACKAGE, flags=re.DOTALL), "has no docstring"),
        (PACKAGE.replace("    listens =", "    replaces = ('TPF100',)\n    listens ="), "replaces TPF100, which"),
        ("import perflint.api, perflint_is_not_this", "No module named 'perflint_is_not_this'"),
        ("from perflint import api\nRULES = []", "holds no rules"),
        ("import perflint.api\nraise SystemExit(3)", "it ends perflint with `sys.exit(3)`"),
        ("RULES = []  # perflint: ignore", "which does not import `perflint.api`"),
    ],
)
def test_faults_of_a_package(acme: Company, text: str, message: str) -> None:
    acme.install(text)
    ran = acme("check", ".")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err and "acme_rules" in ran.err


def test_the_working_directory_is_not_searched(acme: Company) -> None:
    (acme.site / "acme_rules").rename(acme.project / "acme_rules")
    (acme.project / "acme_rules" / "__init__.py").write_text("raise SystemExit('ran')\n")
    for module, arguments in (("perflint", ("check", ".")), ("flake8", ("--select=TPF,ACM", "train.py"))):
        ran = acme(*arguments, module=module)
        assert "`house-rules` names `acme_rules`, which is not installed" in ran.err + ran.out


def test_flake8_shows_them_if_they_are_selected(acme: Company) -> None:
    ran = acme("--extend-select=ACM", "train.py", module="flake8")
    assert "train.py:9:9: ACM001 `acme.log` waits for `loss`" in ran.out


def test_the_tests_of_the_guide(acme: Company) -> None:
    (acme.project / "test_rules.py").write_text(TESTS)
    ran = acme("-q", "-p", "no:cacheprovider", "test_rules.py", module="pytest")
    assert "2 passed" in ran.out, ran.out


def test_options(acme: Company) -> None:
    options = '    options = (Option("names", ("log",), "Functions of acme."),)\n'
    text = PACKAGE.replace("    listens =", f"{options}    listens =").replace("api import", "api import Option,")
    test = '        if site.target[5:] not in self.option("names"):\n            return\n'
    acme.install(text.replace("        value = site", f"{test}        value = site"))
    assert acme.found() == [HOUSE, OWN]
    assert acme.found("--config", "rule={ACM001={names=['other']}}") == [OWN]
    assert '`names` (default: `["log"]`)' in acme("rule", "ACM001").out
    assert "did you mean `names`" in acme("check", ".", "--config", "rule={ACM001={nmes=['other']}}").err
