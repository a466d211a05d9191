"""The settings of a run, and what one place (a file, the command line) says of them."""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import Any

from perflint.config.disk import absolute
from perflint.config.errors import ConfigurationError
from perflint.config.patterns import Patterns
from perflint.config.selection import Selection
from perflint.findings import Confidence, Severity
from perflint.frozen import dataclass, field, fields

DEFAULT_EXCLUDES = tuple(
    """.bzr .direnv .eggs .git .hg .hypothesis .ipynb_checkpoints .mypy_cache .nox .perflint_cache .pyenv .pytest_cache
    .ruff_cache .svn .tox .venv .vscode __pycache__ __pypackages__ _build build dist node_modules site-packages
    venv""".split()
)

Version = tuple[int, int]
PerFileIgnores = tuple[tuple[str, tuple[str, ...]], ...]
SeverityTable = tuple[tuple[str, Severity], ...]
OptionValue = bool | int | str | tuple[str, ...]
RuleOptions = tuple[tuple[str, tuple[tuple[str, OptionValue], ...]], ...]
"""Pairs of a rule and its options, which are pairs of a name and a value."""


class Profile(Enum):
    """How much is shown."""

    DEFAULT = "default"
    """Medium confidence and up, not cold, not info."""
    PEDANTIC = "pedantic"
    """Also cold code and info."""
    AUDIT = "audit"
    """Everything."""


class OutputFormat(Enum):
    """How findings are written."""

    FULL = "full"
    """Blocks of lines with the source, the reason, the help and the cost."""
    CONCISE = "concise"
    """A line for each finding."""
    GROUPED = "grouped"
    """Lines below the path of their file."""
    JSON = "json"
    """One document, described by docs/json-schema.json."""
    JSONL = "jsonl"
    """A JSON object in each line, as files are checked."""
    SARIF = "sarif"
    """SARIF 2.1.0, for code scanning."""
    GITHUB = "github"
    """Annotations of GitHub Actions."""
    GITLAB = "gitlab"
    """A Code Quality report of GitLab."""
    JUNIT = "junit"
    """JUnit XML, for servers that show tests."""
    RDJSON = "rdjson"
    """The JSON of reviewdog."""
    AZURE = "azure"
    """Logging commands of Azure Pipelines."""
    MARKDOWN = "markdown"
    """A table for a pull request or a job summary."""
    AUTO = "auto"
    """That of the service that runs the job; `full` elsewhere."""


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of one place; None or empty for those that it does not set.

    Except for the selection, each field is the setting of that name in `keys.KEYS`.
    """

    selection: Selection = Selection()
    profile: Profile | None = None
    torch_version: Version | None = None
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    per_file_ignores: PerFileIgnores = ()
    output_format: OutputFormat | None = None
    rule_url: str | None = None
    baseline: str | None = None
    severity: SeverityTable = ()
    min_severity: Severity | None = None
    min_confidence: Confidence | None = None
    fixable: tuple[str, ...] | None = None
    unfixable: tuple[str, ...] = ()
    require_reasons: bool | None = None
    respect_comments: bool | None = None
    time_limit: int | None = None
    hot_functions: tuple[str, ...] = ()
    cold_functions: tuple[str, ...] = ()
    sync_functions: tuple[str, ...] = ()
    gpu_functions: tuple[str, ...] = ()
    sync_free_functions: tuple[str, ...] = ()
    src: tuple[str, ...] = ()
    house_rules: tuple[str, ...] = ()
    rule: RuleOptions = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run; by default, those of a project that sets none.

    `root` is the folder, absolute, that patterns are relative to. `torch_version` is the oldest
    torch that the code must run with; None stands for the newest.
    """

    selections: tuple[Selection, ...] = ()
    profile: Profile = Profile.DEFAULT
    torch_version: Version | None = None
    exclude: tuple[str, ...] = DEFAULT_EXCLUDES
    per_file_ignores: PerFileIgnores = ()
    output_format: OutputFormat = OutputFormat.FULL
    rule_url: str | None = None
    baseline: str | None = None
    severity: SeverityTable = ()
    min_severity: Severity = Severity.INFO
    min_confidence: Confidence = Confidence.LOW
    fixable: tuple[str, ...] = ("ALL",)
    unfixable: tuple[str, ...] = ()
    require_reasons: bool = False
    respect_comments: bool = True
    time_limit: int = 300
    hot_functions: tuple[str, ...] = ()
    cold_functions: tuple[str, ...] = ()
    sync_functions: tuple[str, ...] = ()
    gpu_functions: tuple[str, ...] = ()
    sync_free_functions: tuple[str, ...] = ()
    src: tuple[str, ...] = ()
    house_rules: tuple[str, ...] = ()
    rule: RuleOptions = ()
    root: str = field(default_factory=os.getcwd)

    def relative(self, path: str) -> str | None:
        """A path relative to the root, with "/" between names; None for paths outside it."""
        relative = os.path.relpath(absolute(path), self.root).replace(os.sep, "/")
        return None if relative == ".." or relative.startswith("../") else relative

    def ignored_selectors(self, path: str) -> tuple[str, ...]:
        """The selectors that `per-file-ignores` turns off in a file."""
        if not self.per_file_ignores:
            return ()
        relative = self.relative(path)
        return tuple(
            selector
            for pattern, selectors in self.per_file_ignores
            if relative is not None and Patterns([pattern]).covers(relative)
            for selector in selectors
        )


def combine(*places: Options, root: str | None = None) -> Settings:
    """The settings that some places make on top of the defaults; a later place wins over an earlier one.

    Lists that extend others and tables are joined.
    """
    values: dict[str, Any] = {}
    for each in fields(Options):
        stated = [getattr(place, each.name) for place in places]
        if each.default == ():
            values[each.name] = tuple(item for items in stated for item in items)
        elif each.name != "selection":
            last = next((value for value in reversed(stated) if value is not None), None)
            if last is not None:
                values[each.name] = last
    extended = values.pop("extend_exclude")
    values["exclude"] = (*values.get("exclude", DEFAULT_EXCLUDES), *extended)
    return Settings(selections=tuple(place.selection for place in places), root=root or os.getcwd(), **values)


def parse_version(text: str, where: str = "") -> Version:
    """The major and minor number of a torch version such as 2.6 or 2.6.1; `where` begins the error otherwise."""
    found = re.fullmatch(r"(\d{1,9})\.(\d{1,9})(?:\.\d+)?(?:[-+a-z]\S*|\.\*)?", text)
    if found is None:
        raise ConfigurationError(f"{where}`{text}` is not a torch version", "write it as 2.6 or 2.6.1")
    return int(found.group(1)), int(found.group(2))
