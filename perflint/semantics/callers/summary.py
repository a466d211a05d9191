"""The summary of one file for the files that it calls.

A summary follows from the texts of the project alone, and is the same whoever asks for it, so that all checks of a run
share it. It is made in rounds. In round 0 the file is run without knowledge of its own callers; in each further one it
is run with what they pass as their summaries of the round before show. So files that call each other in a circle need
no order.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from perflint.findings import Heat
from perflint.frozen import dataclass
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.regions.compiled import Compiled
from perflint.semantics.view import Record


class FunctionKey(NamedTuple):
    """A function of the project: its file, and its qualified name there."""

    path: Path
    qualname: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of the project, as its file shows it."""

    callee: FunctionKey
    caller: FunctionKey | None
    """The function around the call; None at the top level."""
    heat: Heat
    """How often the call runs. WARM: as often as its caller, which may be called from other files.

    This, `iterated` and `trains` are worked out in the last round only, as only checks ask for them.
    """
    iterated: Heat
    """How often the body of the loop over the result of the call runs; as often as the call if no loop goes over it."""
    path: Path
    line: int
    trains: bool
    """True if it belongs to a training: to a loop that trains, or to a function that may be part of a step."""
    arguments: Arguments | None = None
    """None if the call is made by other code, which is given the function."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The calls of one file, and what its classes override."""

    path: Path
    round: int
    """How often what callers pass was taken from their files: 0 if the file was run alone."""
    calls: Mapping[FunctionKey, tuple[Call, ...]]
    overrides: Mapping[FunctionKey, tuple[FunctionKey, ...]]
    """The methods of base classes of the project that a method of the file overrides."""
    on_unknown: Mapping[str, tuple[Call, ...]]
    """The calls of methods of objects that the file does not know, by the name of the method."""
    compiled: Mapping[FunctionKey, Compiled]
    """The functions of other files that the file compiles, or that its compiled functions call; in the last round."""
    foreign: frozenset[str]
    """The classes of the file that have a base outside of the project, whose code may call their methods."""
    classes: Mapping[str, FunctionKey]
    """The places of the classes of the project that arguments may be objects of, by full name."""
    modules: Mapping[str, Path]
    """The files of the modules that arguments may be functions of, by full name."""
    record: Record
    """The reads that the summary rests on."""
