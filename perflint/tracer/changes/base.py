"""An experiment that won, and the answer of a module that writes its change."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from perflint.findings import Fix, Span
from perflint.fixes.imports import Spelling, spell
from perflint.frozen import dataclass
from perflint.rules.base import TracedRule
from perflint.semantics.symbols import Symbols
from perflint.source.text import Source
from perflint.tracer.events import Experiment
from perflint.tracer.trace import Trace


@dataclass(frozen=True, slots=True)
class Won:
    """An experiment whose change is faster beyond its spread, and the place that makes or calls the model."""

    source: Source
    span: Span
    experiment: Experiment
    trace: Trace
    called: Span | None = None
    """The recorded call of the model, if it is in the same file."""
    beside: Sequence[tuple[Span, Span | None]] = ()
    """The places that make and call each model of the file that was tried with CUDA graphs."""


class Refused(Exception):
    """A change is not written; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Change:
    """A kind of change that can be written."""

    rule: type[TracedRule]
    experiments: tuple[str, ...]
    """Their names; the one with the greatest gain is written."""
    help: str
    write: Callable[[Won], Fix | None]
    """The fix; None if the source has the change already. Raises Refused."""
    for_process: bool = False
    """True if it acts on the whole program, so that one place of a file is enough."""
    at_call: bool = False
    """True if it is written at the call of the model, not where the model is made."""
    hinders: Callable[[Won], str] = lambda _: ""
    """The reason why one of the experiments does not hold for the program, so that the next best is written.

    Raises Refused if none can be written.
    """


def spelled(symbols: Symbols, name: str, at: ast.AST) -> Spelling:
    """The spelling of a name of torch at a node. Raises Refused."""
    spelling = spell(symbols, name, at)
    if spelling is None:
        raise Refused("the name `torch` means something else there")
    return spelling


def quote(source: Source) -> str:
    """The quotation mark that a file uses more often."""
    return "'" if source.text.count("'") > source.text.count('"') else '"'
