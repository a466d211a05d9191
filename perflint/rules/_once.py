"""Answers that are asked for again and again: at one site by several rules, of one stretch of code at many sites."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from perflint.semantics.model import Model
from perflint.semantics.sites import Site

_Asked = TypeVar("_Asked", bound=Site)
_Answer = TypeVar("_Answer")
_Node = TypeVar("_Node", bound=ast.AST)


def once_per_site(ask: Callable[[_Asked], _Answer]) -> Callable[[_Asked], _Answer]:
    """Remember the answer for the last site; sites are compared by identity, since hashing is slower."""
    last: list[tuple[_Asked, _Answer]] = []

    @wraps(ask)
    def remembered(site: _Asked) -> _Answer:
        if not last or last[0][0] is not site:
            last[:] = [(site, ask(site))]
        return last[0][1]

    return remembered


def once_per_node(ask: Callable[[Model, _Node], _Answer]) -> Callable[[Model, _Node], _Answer]:
    """Remember the answers for the nodes of a file as long as its model lives.

    A rule that looks through the loop, function or file around each of its sites takes time that is quadratic in
    them; so it asks what it needs of all of that code once.
    """
    answers: WeakKeyDictionary[Model, dict[_Node, _Answer]] = WeakKeyDictionary()

    @wraps(ask)
    def remembered(model: Model, node: _Node) -> _Answer:
        known = answers.get(model)
        if known is None:
            known = answers[model] = {}
        if node not in known:
            known[node] = ask(model, node)
        return known[node]

    return remembered


@lru_cache(maxsize=64)
def says(text: str, pattern: re.Pattern[str]) -> bool:
    """Whether a pattern occurs in the text of a file, which is searched once for all of its sites."""
    return pattern.search(text) is not None
