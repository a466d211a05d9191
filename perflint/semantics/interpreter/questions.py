"""Questions that may come back to themselves, and the rule for keeping their answers.

Imports, base classes, class bodies and calls go round in circles. A question that is asked while it is being answered
gets a placeholder. An answer that rests on a placeholder is *provisional*: it serves until the question behind the
placeholder is answered, and is then forgotten. So no answer depends on which question of a circle was asked first.
An answer that rests on a call that was not followed, for lack of budget, is provisional too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from perflint.frozen import dataclass, field

_Key = TypeVar("_Key", bound=Hashable)
_Answer = TypeVar("_Answer")

WHOLE = sys.maxsize
"""The provisional mark of an answer that rests on no placeholder and on no cut."""
_CUT = 0
"""The provisional mark of an answer that rests on a call that was not followed."""
_MOST_REPEATS = 3
"""Answers that are not kept for one question. The next one is kept, so that no question takes more than linear time."""


@dataclass(slots=True)
class Questions:
    """The questions that are being answered, and their provisional answers."""

    provisional: int = WHOLE
    """The outermost open question whose placeholder was used since the innermost one was opened."""
    open: dict[Hashable, int] = field(default_factory=dict)
    """The questions that are being answered, numbered in their order."""
    passing: dict[Hashable, tuple[Any, int]] = field(default_factory=dict)
    """Provisional answers, each with the outermost open question that it rests on."""
    closed: dict[int, int] = field(default_factory=dict)
    """The questions that got a provisional answer, each with the outermost question that it rests on."""
    repeats: dict[Hashable, int] = field(default_factory=dict)
    """How often a question got a provisional answer."""
    asked: int = _CUT
    """The number of the last question."""

    def remembered(
        self, table: dict[_Key, _Answer], key: _Key, compute: Callable[[], _Answer], meanwhile: _Answer
    ) -> _Answer:
        """The entry of a table, computed on first use, and kept unless it is provisional.

        `meanwhile` is the placeholder for questions while it is being computed.
        """
        if key in table:
            return table[key]
        mark = (id(table), key)
        if self.assumes(mark):
            return meanwhile
        if mark in self.passing:
            return self.passed(mark)  # type: ignore[no-any-return]
        start = self.begin(mark)
        try:
            answer = compute()
        finally:
            rests_on = self.end(mark, start)
        if rests_on == WHOLE or self.repeats.get(mark, 0) >= _MOST_REPEATS:
            table[key] = answer
        else:
            self.repeats[mark] = self.repeats.get(mark, 0) + 1
            self.keep(mark, answer, rests_on)
        return answer

    def begin(self, mark: Hashable) -> tuple[int, int]:
        """Open a question. `end` needs the result, which is the state of the question around it."""
        start = self.provisional, len(self.passing)
        self.asked += 1
        self.open[mark] = self.asked
        self.provisional = WHOLE
        return start

    def end(self, mark: Hashable, start: tuple[int, int]) -> int:
        """Close a question; the result is the outermost open question that its answer rests on, or WHOLE."""
        around, passing = start
        number = self.open.pop(mark)
        rests_on = self.provisional
        if rests_on >= number:
            # It rests at most on itself.
            rests_on = WHOLE
            self.forget(passing)
        else:
            self.closed[number] = rests_on
        if not self.open:
            self.passing.clear()
            self.closed.clear()
        self.provisional = min(around, rests_on)
        return rests_on

    def assumes(self, mark: Hashable) -> bool:
        """True if a question is being answered, so that its placeholder is used."""
        number = self.open.get(mark)
        if number is None:
            return False
        self.provisional = min(self.provisional, number)
        return True

    def keep(self, mark: Hashable, answer: object, rests_on: int) -> None:
        """Keep a provisional answer while the question is open that it rests on."""
        if self.open:
            self.passing[mark] = answer, rests_on

    def passed(self, mark: Hashable) -> Any:
        """A provisional answer."""
        answer, rests_on = self.passing[mark]
        while rests_on in self.closed:
            rests_on = self.closed[rests_on]
        self.passing[mark] = answer, rests_on
        self.provisional = min(self.provisional, rests_on)
        return answer

    def forget(self, passing: int) -> None:
        """Drop all provisional answers but the oldest ones."""
        while len(self.passing) > passing:
            self.passing.popitem()

    def cut(self) -> None:
        """Note that a call was not followed."""
        self.provisional = _CUT
