"""The bounds on torch that texts state: lists of requirements, lists of conda, commands and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perflint.config.settings import Version

_MOST_ALTERNATIVES = 20
_REST = r"[^;)#\n]*+"
_PIP = re.compile(
    rf"\s*+(?:[\w.-]++\s*+[=:]\s*+)?torch\s*+(?:\[[^\]\n]*+\])?\s*+\(?(?P<bounds>[^\w@.\n-]{_REST})", re.IGNORECASE
)
"""`torch>=1.8`, also behind `install_requires =`."""
_CONDA = re.compile(
    rf"\s*+-\s*+[\"']?(?:[\w.-]++::)?(?:py)?torch(?:-[cg]pu)?(?P<bounds>(?:\s++\d|[^\w@.\n-]){_REST})", re.IGNORECASE
)
"""`- pytorch=1.8`, `- conda-forge::pytorch 1.8.*`, and `- torch>=1.8` of pip."""
_CLAUSE = re.compile(
    r"(?<![\w.])(?P<operator>===?|~=|>=|<=|!=|[~^<>=])?\s*+v?"
    r"(?P<major>\d{1,9}+)(?!\d)(?:\.(?P<minor>\d{1,9}+)(?!\d)(?:\.(?P<patch>\d{1,9}+)(?!\d))?)?"
)
_LAST_OF_ONE: Version = (1, 13)
"""The last release before torch 2.0."""

_MARKUP = re.compile(r"\]\([^)\s]*+\)|\[[\w,-]*+\](?=[ \t]*+[=<>~])|[`*\"'()\[\]|]")
"""The address of a link, the extras of a requirement, quotes, brackets and emphasis."""
_NAME = r"(?<![\w.@/-])(?:py)?torch(?:-[cg]pu|[-_]version)?[ \t]*+(?:version[ \t]*+)?"
_NUMBER = r"v?\d\.\d[\w.+]*+"
_STATED = re.compile(
    rf"{_NAME}(?P<bounds>(?:[=:][ \t]*+)?(?:[=~>]=[ \t]*+v?\d(?!\d)[\w.+]*+|[=:>~^][ \t]*+{_NUMBER})"
    rf"(?:[ \t]*+,[ \t]*+[<>=!~]*+[ \t]*+v?\d[\w.+]*+)*+)",
    re.IGNORECASE,
)
"""`pip install torch==1.7.1+cu110`, `TORCH_VERSION=1.9`, `torch: 1.9, 2.0`, `PyTorch >= 1.8`."""
_OR_LATER = re.compile(
    rf"{_NAME}(?P<bounds>v?\d\.\d[\d.]*+)(?:\+|[ \t]++(?:or|and)[ \t]++(?:higher|later|newer|above|greater|up)\b)",
    re.IGNORECASE,
)
_ALONE = re.compile(rf"[ \t]*+(?:[-+][ \t]*+)?{_NAME}(?P<bounds>{_NUMBER})[ \t]*+", re.IGNORECASE)
"""A line of a list or table with a version, and nothing else."""
_PLACED = re.compile(r"pytorch/pytorch:(?P<image>\d\.\d[\d.]*+)|\btorch-(?P<wheel>\d\.\d[\d.]*+)")
"""The image of a container, and the file of a wheel."""


def lower_bound(bounds: str) -> Version | None:
    """The lower bound of `>=1.8,<2`, `^1.8`, `1.8.*`; of an upper bound alone, the last version below it."""
    found = [_of_one(each) for each in bounds.split("|")[:_MOST_ALTERNATIVES]]
    return min((bound for bound in found if bound is not None), default=None)


def _of_one(bounds: str) -> Version | None:
    lower: list[Version] = []
    upper: list[Version] = []
    for clause in _CLAUSE.finditer(bounds):
        version = int(clause["major"]), int(clause["minor"] or 0)
        if clause["operator"] == "<=" or (clause["operator"] == "<" and int(clause["patch"] or 0)):
            upper.append(version)
        elif clause["operator"] == "<":
            upper += _before(version)
        elif clause["operator"] != "!=":
            lower.append(version)
    return max(lower) if lower else min(upper, default=None)


def _before(version: Version) -> list[Version]:
    """The last minor version before another one, if it is known."""
    major, minor = version
    if minor:
        return [(major, minor - 1)]
    return [_LAST_OF_ONE] if major == 2 else []


def in_requirements(text: str) -> Iterator[str]:
    """The bounds in lines of requirements, as pip reads them."""
    for line in _code(text):
        if found := _PIP.match(line):
            yield found["bounds"].partition(" --")[0]
        else:
            yield from _placed(line)


def in_conda(text: str) -> Iterator[str]:
    """The bounds in a list of packages of conda, or of pip in it."""
    for line in _code(text):
        if found := _CONDA.match(line):
            yield found["bounds"]


def in_words(text: str) -> Iterator[str]:
    """The bounds in commands that install torch, in settings of containers and CI, and in what a README asks for."""
    for line in _code(text):
        yield from _placed(line)
        plain = _MARKUP.sub("", line.replace("≥", ">="))
        if found := _STATED.search(plain):
            # A list without operators has alternatives.
            yield re.sub(r",[ \t]*+(?=v?\d)", "|", found["bounds"])
        elif found := _OR_LATER.search(plain) or _ALONE.fullmatch(plain):
            yield found["bounds"]


def _placed(line: str) -> Iterator[str]:
    for found in _PLACED.finditer(line):
        yield found["image"] or found["wheel"]


_LONGEST = 2000


def _code(text: str) -> Iterator[str]:
    """The lines that name torch, without comments and headings, and without those that no one wrote by hand."""
    if "torch" in text.lower():
        for line in text.splitlines():
            if len(line) <= _LONGEST and "torch" in line.lower() and not line.lstrip().startswith("#"):
                yield line
