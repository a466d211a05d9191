"""Scores sync findings against what a GPU did.

A site is a place where the recorded runs synchronised on the device. Recall is the share of
sites that some finding's lines touch. Precision is the share of findings on executed lines
whose lines touch a place that synchronised; findings on lines that never ran are not judged.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The lines of a finding or a sync; `what` is its code or the function that it is in."""

    file: str
    line: int
    end_line: int
    what: str = ""

    @property
    def package(self) -> str:
        """The top folder of the file."""
        return self.file.split("/", 1)[0]

    @property
    def lines(self) -> range:
        """The lines that it covers."""
        return range(self.line, self.end_line + 1)


@dataclass(slots=True)
class Truth:
    """What the recorded runs did."""

    sites: list[Place] = field(default_factory=list)
    ran: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    synced: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))


@dataclass(frozen=True, slots=True)
class Score:
    """The outcome for some packages."""

    sites: int
    judged: int
    missed: tuple[Place, ...]
    false: tuple[Place, ...]

    @property
    def recall(self) -> float:
        """The share of sites found."""
        return 1 - len(self.missed) / max(1, self.sites)

    @property
    def precision(self) -> float:
        """The share of judged findings that are right."""
        return 1 - len(self.false) / max(1, self.judged)

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.recall * self.precision / max(1e-9, self.recall + self.precision)


def load(path: Path) -> Truth:
    """Read the recording."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        recording: dict[str, Any] = json.load(file)
    truth = Truth()
    for lines_of in recording["lines"].values():
        for name, lines in lines_of.items():
            truth.ran[name].update(lines)
    for sync in recording["syncs"]:
        place = Place(sync["file"], sync["line"], sync["end_line"], sync["func"])
        truth.synced[place.file].update(place.lines)
        if sync["phases"].get("cuda") and not sync.get("excluded"):
            truth.sites.append(place)
    return truth


def score(truth: Truth, findings: Iterable[Place], packages: Container[str]) -> Score:
    """How well findings agree with the truth in some packages."""
    by_file: dict[str, list[Place]] = defaultdict(list)
    for finding in findings:
        if finding.package in packages:
            by_file[finding.file].append(finding)
    sites = [site for site in truth.sites if site.package in packages]
    missed = [site for site in sites if not any(_touch(site, finding) for finding in by_file[site.file])]
    judged = [
        finding
        for file, places in by_file.items()
        for finding in places
        if not truth.ran[file].isdisjoint(finding.lines)
    ]
    false = [finding for finding in judged if truth.synced[finding.file].isdisjoint(finding.lines)]
    return Score(len(sites), len(judged), tuple(missed), tuple(false))


def _touch(left: Place, right: Place) -> bool:
    return left.line <= right.end_line and right.line <= left.end_line
