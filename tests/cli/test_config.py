"""Settings from all places, `perflint config`, and the options that show what a run would do."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from perflint.config.keys import KEYS
from perflint.config.outside import variable
from perflint.config.settings import Options, Settings
from perflint.engine.rulebook import settings_schema
from tests.cli.command import Command

pytestmark = pytest.mark.usefixtures("stated_torch")
BAD = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"


def values(perflint: Command, *arguments: str) -> dict[str, str]:
    """The settings as TOML texts by name."""
    ran = perflint("config", "--output-format=json", *arguments)
    assert ran.code == 0, ran.err
    return {name: each["toml"] for name, each in json.loads(ran.out).items()}


def origins(perflint: Command, name: str, *arguments: str) -> list[str]:
    """The places that set a setting."""
    found: list[str] = json.loads(perflint("config", name, "--output-format=json", *arguments).out)[name]["origins"]
    return found


def test_every_setting_is_in_the_table() -> None:
    options = {field for field in Options.__dataclass_fields__ if field != "selection"}
    apart = {"select", "extend-select", "ignore", "extend"}
    assert {key.attribute for key in KEYS.values() if key.name not in apart} == options
    assert options - {"extend_exclude"} <= set(Settings.__dataclass_fields__)


@pytest.mark.parametrize("name", KEYS)
def test_examples_and_defaults_are_values(name: str) -> None:
    key = KEYS[name]
    value = tomllib.loads(f"x = {key.example}")["x"]
    read = key.kind.read(value, name)
    assert key.kind.read(tomllib.loads(f"x = {key.kind.shown(read)}")["x"], name) == read
    jsonschema.Draft7Validator(settings_schema()).validate({name: value})
    if key.default is not None:
        assert key.kind.read(tomllib.loads(f"x = {key.kind.shown(key.default)}")["x"], name) == key.default


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    jsonschema.Draft7Validator.check_schema(settings_schema())
    schema = jsonschema.Draft7Validator(settings_schema())
    assert schema.is_valid({"rule": {"TPF351": {"multiple": 16}, "many-scalars": {"fewest": 4}}})
    for bad in (
        {"rule": {"TPF351": {"multipel": 16}}},
        {"rule": {"TPF351": {"multiple": "a"}}},
        {"rule": {"TPF351": 1}},
    ):
        assert not schema.is_valid(bad), bad
    for bad in ({"selct": []}, {"select": "TPF1"}, {"profile": "x"}, {"severity": {"TPF1": "high"}}):
        assert not schema.is_valid(bad), bad


def test_defaults_are_those_of_a_run(perflint: Command) -> None:
    settings = Settings()
    for key in KEYS.values():
        if hasattr(settings, key.attribute):
            assert getattr(settings, key.attribute) == key.default, key.name


def test_files_of_its_own_win_over_pyproject(perflint: Command) -> None:
    perflint.write("pyproject.toml", '[tool.perflint]\nprofile = "pedantic"\n')
    perflint.write(".perflint.toml", 'profile = "audit"\n')
    assert values(perflint)["profile"] == '"audit"'
    perflint.write("perflint.toml", 'min-severity = "error"\n')
    assert values(perflint)["profile"] == '"default"'
    perflint.write("src/perflint.toml", 'profile = "pedantic"\n')
    assert values(perflint, "--path", "src")["profile"] == '"pedantic"'
    perflint.write("src/perflint.toml", 'profil = "pedantic"\n')
    ran = perflint("check", "src")
    assert ran.code == 2 and "unknown key `profil` in the settings" in ran.err


def test_extend(perflint: Command) -> None:
    perflint.write(
        "company.toml",
        'profile = "audit"\nignore = ["TPF101"]\nextend-exclude = ["a"]\n[severity]\nTPF1 = "info"\n',
    )
    perflint.write("team/pyproject.toml", '[tool.perflint]\nextend = "../company.toml"\nmin-severity = "warning"\n')
    perflint.write(
        "team/app/perflint.toml",
        'extend = "../pyproject.toml"\nprofile = "pedantic"\nignore = ["TPF102"]\nextend-exclude = ["b"]\n',
    )
    found = values(perflint, "--path", "team/app")
    assert found["profile"] == '"pedantic"'
    assert found["min-severity"] == '"warning"'
    assert found["ignore"] == '["TPF101", "TPF102"]'
    assert found["extend-exclude"] == '["a", "b"]'
    assert found["severity"] == '{ "TPF1" = "info" }'
    team = str(perflint.folder / "team/app/../pyproject.toml")
    assert origins(perflint, "min-severity", "--path", "team/app") == [team]
    # Patterns are relative to the folder of the nearest file.
    perflint.write("team/app/b/x.py", BAD)
    perflint.write("team/app/y.py", BAD)
    assert perflint("check", "team/app", "--show-files").out == "team/app/y.py\n"


def test_faults_of_extend(perflint: Command) -> None:
    perflint.write("perflint.toml", 'extend = "missing.toml"\n')
    assert "`extend` names a file that does not exist" in perflint("check").err
    perflint.write("perflint.toml", 'extend = "b.toml"\n')
    perflint.write("b.toml", 'extend = "perflint.toml"\n')
    assert "`extend` goes round in a circle" in perflint("check").err
    perflint.write("b.toml", "profile = 3\n")
    assert "b.toml:1: `profile` in the settings must be one of" in perflint("check").err


def test_the_order_of_places(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def profile(*arguments: str) -> tuple[str, list[str]]:
        return values(perflint, *arguments)["profile"], origins(perflint, "profile", *arguments)

    assert profile() == ('"default"', ["default"])
    perflint.write("perflint.toml", 'profile = "pedantic"\n')
    assert profile() == ('"pedantic"', [str(perflint.folder / "perflint.toml")])
    monkeypatch.setenv("PERFLINT_PROFILE", "audit")
    assert profile() == ('"audit"', ["the environment"])
    assert profile("--config", "profile=default") == ('"default"', ["--config"])
    assert profile("--isolated") == ('"audit"', ["the environment"])
    monkeypatch.setenv("PERFLINT_PROFILE", "")
    assert profile() == ('"pedantic"', [str(perflint.folder / "perflint.toml")])
    perflint.write("other.toml", 'profile = "audit"\n')
    assert profile("--config", "other.toml") == ('"audit"', [str(perflint.folder / "other.toml")])
    shown = perflint("check", "--show-settings", "--profile=audit", "--config", "profile=pedantic").out
    assert 'profile = "audit"  # the command line\n' in shown


TEXTS = [
    ("select", "TPF1, TPF3", '["TPF1", "TPF3"]'),
    ("select", '["TPF1"]', '["TPF1"]'),
    ("torch-version", "2.6", '"2.6"'),
    ("torch-version", '"2.6"', '"2.6"'),
    ("require-reasons", "true", "true"),
    ("require-reasons", "0", "false"),
    ("severity", '{TPF1 = "error"}', '{ "TPF1" = "error" }'),
    ("per-file-ignores", '{"tests/**" = ["ALL"]}', '{ "tests/**" = ["ALL"] }'),
    ("rule-url", "https://x/{name}?a=b", '"https://x/{name}?a=b"'),
]


@pytest.mark.parametrize(("name", "text", "expected"), TEXTS)
def test_values_as_texts(
    perflint: Command, monkeypatch: pytest.MonkeyPatch, name: str, text: str, expected: str
) -> None:
    assert values(perflint, "--config", f"{name}={text}")[name] == expected
    monkeypatch.setenv(variable(name), text)
    assert values(perflint)[name] == expected


FAULTS = [
    ("profil=audit", "unknown key `profil` in `--config profil=audit`\n  help: did you mean `profile`?"),
    ("profile=loud", "`profile` of `--config` must be one of"),
    ("severity=high", "must be a table from rules to severities"),
    ("select=[", "`select` of `--config`: not valid TOML"),
    ("select=[TPF1]", 'texts in lists: `["a", "b"]`'),
    (
        'severity.TPF101="info"',
        '`--config severity.TPF101="info"` names an entry of `severity`\n  help: `severity={TPF101="info"}`',
    ),
    ("nonsense.TPF101=1", "unknown key `nonsense.TPF101`"),
    ("require-reasons=maybe", 'must be true or false, not "maybe"'),
    ("missing.toml", "missing.toml: no such file"),
    ("extend=a.toml", "`extend` stands in files only"),
]


@pytest.mark.parametrize(("given", "message"), FAULTS)
def test_faults_of_config(perflint: Command, given: str, message: str) -> None:
    ran = perflint("check", "--config", given)
    assert ran.code == 2 and message in ran.err


def test_faults_of_the_environment(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFLINT_MIN_SEVERITY", "high")
    ran = perflint("check")
    assert ran.code == 2 and ran.err.startswith("error: PERFLINT_MIN_SEVERITY must be one of")


def test_settings_hold(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    perflint.write("a.py", BAD)
    assert perflint("check", "a.py", "--config", "ignore=TPF902").code == 0
    monkeypatch.setenv("PERFLINT_OUTPUT_FORMAT", "concise")
    assert perflint("check", "a.py").out.startswith("a.py:3:10: TPF902")
    monkeypatch.setenv("PERFLINT_IGNORE", "deprecated-amp")
    assert perflint("check", "a.py").code == 0


def test_the_torch_of_the_requirements_has_its_own_place(perflint: Command) -> None:
    perflint.write("pyproject.toml", '[project]\ndependencies = ["torch>=2.1"]\n')
    assert origins(perflint, "torch-version") == ["the requirements of the project"]
    perflint.write("base.toml", 'torch-version = "2.4"\n')
    perflint.write("perflint.toml", 'extend = "base.toml"\n')
    assert values(perflint)["torch-version"] == '"2.4"'


def test_config_prints_toml_and_explains(perflint: Command) -> None:
    perflint.write("perflint.toml", 'ignore = ["TPF101"]\n')
    ran = perflint("config")
    table = tomllib.loads(ran.out)
    assert table["ignore"] == ["TPF101"] and table["profile"] == "default" and "baseline" not in table
    ran = perflint("config", "ignore", "min-confidence")
    assert ran.code == 0
    assert "ignore\n  Not these rules.\n" in ran.out
    assert '  example: min-confidence = "high"\n  variable: PERFLINT_MIN_CONFIDENCE\n' in ran.out
    ran = perflint("config", "ignor")
    assert (ran.code, ran.err) == (2, "error: no setting `ignor`\n  help: did you mean `ignore`?\n")
    assert json.loads(perflint("config", "--schema").out) == settings_schema()


def test_quiet_and_verbose(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    quiet = perflint("check", "a.py", "-q")
    assert quiet.code == 1 and "TPF902" in quiet.out and "Found" not in quiet.out
    assert perflint("check", "a.py", "-q", "--select=TPF1") == type(quiet)(0, "", "")
    loud = perflint("check", "a.py", "-v", "--config", "profile=audit")
    assert 'profile = "audit"  # --config\n' in loud.err and "Checked 3 lines with " in loud.err
    assert "+scaler" in perflint("fix", "a.py", "--torch-version=2.9", "-q").out
    assert perflint("fix", "a.py", "--torch-version=2.9", "-q").err == ""


def test_show_files(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    perflint.write("b/c.py", BAD)
    perflint.write("build/d.py", BAD)
    assert perflint("check", "--show-files").out == "a.py\nb/c.py\n"
    assert perflint("check", "--show-files", "missing").code == 2


def test_documents_are_generated(perflint: Command) -> None:
    root = Path(__file__).parents[2]
    assert json.loads((root / "docs" / "settings-schema.json").read_text(encoding="utf-8")) == settings_schema()
    text = (root / "docs" / "guide" / "settings.md").read_text(encoding="utf-8")
    assert all(f"\n## {name}\n" in text for name in KEYS)


LAYERS = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(1000, 1000)
        self.down = nn.Linear(1000, 1000)
        self.last = nn.Linear(1000, 10001)

    @torch.autocast("cuda", dtype=torch.bfloat16)
    def forward(self, x):
        return self.last(self.down(self.up(x)))
"""
READS = """\
import torch


def stats(x: torch.Tensor):
    x = x.cuda()
    low = x.min().item()
    high = x.max().item()
    return low, high
"""
WATCH = "import wandb\n\n\ndef start(model):\n    wandb.watch(model, log='all', log_freq=150)\n"


@pytest.mark.parametrize(
    ("text", "code", "options", "message"),
    [
        (LAYERS, "TPF351", "multiple = 16", "1000 are not multiples of 16"),
        (LAYERS, "TPF352", "pad-to = 8", "Pad it to 10008."),
        (LAYERS.replace("10001", "4001"), "TPF352", "smallest = 4000", "out_features 4001 is not a multiple"),
        (READS, "TPF102", "fewest = 2", "is the first of 2 reads"),
        (WATCH, "TPF605", "interval = 200", "log_freq=150"),
    ],
)
def test_options_of_rules(perflint: Command, text: str, code: str, options: str, message: str) -> None:
    perflint.write("a.py", text)
    check = ("check", ".", f"--select={code}", "--profile=audit")
    assert message not in perflint(*check).out
    perflint.write("pyproject.toml", f"[tool.perflint.rule.{code}]\n{options}\n")
    ran = perflint(*check)
    assert message in ran.out, ran.out + ran.err
    assert message not in perflint(*check, "--isolated").out
    name, _, value = options.partition(" = ")
    assert f'rule = {{ "{code}" = {{ "{name}" = {value} }} }}' in perflint("config").out
    page = perflint("rule", code).out
    assert "## Options" in page and f"`{name}` (default: " in page


def test_places_join_options_of_rules(perflint: Command) -> None:
    perflint.write("base.toml", "[rule.TPF351]\nmultiple = 16\nsmallest = 2000\n")
    perflint.write("perflint.toml", 'extend = "base.toml"\n[rule.dims-not-multiple]\nsmallest = 100\n')
    perflint.write("a.py", LAYERS)
    assert "1000 are not multiples of 16" in perflint("check", ".", "--select=TPF351").out
    ran = perflint("check", ".", "--select=TPF351", "--config", "rule={TPF351={multiple=8}}")
    assert "multiples" not in ran.out


@pytest.mark.parametrize(
    ("table", "message", "help"),
    [
        ("[rule.TPF351]\nmultipel = 16", "unknown option `multipel` of TPF351", "did you mean `multiple`?"),
        ("[rule.TPF351]\nmultiple = 1", "`multiple` of TPF351 in `rule` must be a whole number from 2", ""),
        ("[rule.TPF351]\nmultiple = '16'", "must be a whole number", ""),
        ("[rule.TPF351]\nmultiple = 1.5", "must be a number, text, list of strings", ""),
        ("[rule.TPF101]\nmost = 1", "unknown option `most` of TPF101", "TPF101 has no options"),
        ("[rule.dims-not-multipel]\nmultiple = 16", "unknown rule `dims-not-multipel`", "did you mean `dims-not-multi"),
        ("[rule.TPF3]\nmultiple = 16", "unknown rule `TPF3`", ""),
        ("[rule]\nTPF351 = 16", "must be a table from rules to tables of options", ""),
    ],
)
def test_faults_in_options_of_rules(perflint: Command, table: str, message: str, help: str) -> None:
    perflint.write("perflint.toml", table)
    perflint.write("a.py", "")
    ran = perflint("check", ".")
    assert ran.code == 2 and message in ran.err and help in ran.err
