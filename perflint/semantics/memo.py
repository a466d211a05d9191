"""Answers that are needed again and again while a file is checked.

The model of the file keeps them until it is closed. No module of perflint remembers a file, so no check depends on
earlier checks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

Memo = dict[object, Any]


class Remembers(Protocol):
    """The model of a file, or an object that shares its memo."""

    @property
    def memo(self) -> Memo:
        """The answers by the functions that gave them."""


class AboutModel(Protocol):
    """A site, which knows its model."""

    @property
    def model(self) -> Remembers:
        """The model of the file."""


_About = TypeVar("_About", bound=Remembers)
_Node = TypeVar("_Node", bound=ast.AST)
_Key = TypeVar("_Key", bound=Hashable)
_Asked = TypeVar("_Asked", bound=AboutModel)
_Answer = TypeVar("_Answer")
_Self = TypeVar("_Self")
_Keys = ParamSpec("_Keys")


def once(ask: Callable[[_About], _Answer]) -> Callable[[_About], _Answer]:
    """Remember the answer for an object with a memo."""

    @wraps(ask)
    def remembered(about: _About) -> _Answer:
        memo = about.memo
        if remembered not in memo:
            memo[remembered] = ask(about)
        answer: _Answer = memo[remembered]
        return answer

    return remembered


def once_per_node(ask: Callable[[_About, _Node], _Answer]) -> Callable[[_About, _Node], _Answer]:
    """Remember the answer for each node.

    A rule that looks through the loop, function or file around each of its sites takes time that is quadratic in
    them. So it asks each question about that code once.
    """
    return once_per_key(ask)


def once_per_key(ask: Callable[[_About, _Key], _Answer]) -> Callable[[_About, _Key], _Answer]:
    """Remember the answer for each of other things that can be hashed, such as the name of a class."""

    @wraps(ask)
    def remembered(about: _About, key: _Key) -> _Answer:
        known: dict[_Key, _Answer] | None = about.memo.get(remembered)
        if known is None:
            known = about.memo[remembered] = {}
        if key not in known:
            known[key] = ask(about, key)
        return known[key]

    return remembered


def remembered(
    ask: Callable[Concatenate[_Self, _Keys], _Answer],
) -> Callable[Concatenate[_Self, _Keys], _Answer]:
    """Remember the answers of a method in its object, as long as that lives, for all arguments."""
    name = f"_answers_of_{ask.__name__}"

    @wraps(ask)
    def answered(self: _Self, /, *key: _Keys.args, **named: _Keys.kwargs) -> _Answer:
        known: dict[object, _Answer] | None = vars(self).get(name)
        if known is None:
            known = vars(self)[name] = {}
        if key not in known:
            known[key] = ask(self, *key, **named)
        return known[key]

    return answered


def once_per_site(ask: Callable[[_Asked], _Answer]) -> Callable[[_Asked], _Answer]:
    """Remember the answer for the last site of a file; sites are compared by identity, since hashing is slower."""

    @wraps(ask)
    def remembered(site: _Asked) -> _Answer:
        memo = site.model.memo
        last: tuple[_Asked, _Answer] | None = memo.get(remembered)
        if last is None or last[0] is not site:
            last = memo[remembered] = (site, ask(site))
        return last[1]

    return remembered
