"""Questions that may come back to themselves, and their answers: the one mechanism for circles.

Imports, base classes, class bodies, calls and the work of functions go round in circles. A question that is asked while
it is being answered gets an *assumed* answer. Once it is answered, the answer is compared with the assumed one. If they
differ, the question is answered again with the new assumption, until both are the same. So the answers of a circle are
a fixed point. Of several circles that share a question, the outermost question goes round for all of them, so that the
number of rounds does not depend on how deep they nest.

An answer that rests on an assumption is *provisional*: it serves while the question behind the assumption is open. It
is final if that question's answer turns out as assumed, and is forgotten otherwise. So no answer depends on which
question of a circle was asked first. An answer that rests on a call that was not followed, for lack of budget, is
provisional too.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

from perflint.frozen import dataclass, field

_Key = TypeVar("_Key", bound=Hashable)
_Answer = TypeVar("_Answer")

WHOLE = sys.maxsize
"""The provisional mark of an answer that rests on no assumption and on no cut."""
_CUT = 0
"""The provisional mark of an answer that rests on a call that was not followed."""
_MOST_REPEATS = 5
"""Answers that are not kept for one question. The next one is kept, so that no question takes more than linear time."""
_MOST_ROUNDS = 8
"""Times that a question is answered until its answer is the assumed one. The last answer is taken if it never is."""


@dataclass(slots=True)
class _Open:
    """A question that is being answered."""

    number: int
    assumed: Any = None
    is_assumed: bool = False
    """True if its assumed answer was given since the current round began."""
    is_unsettled: bool = False
    """True if a question that rests on it was answered otherwise than assumed since the current round began."""


class _Provisional(NamedTuple):
    """An answer that rests on an open question."""

    answer: Any
    rests_on: int
    """The number of the outermost open question that it rests on."""
    table: dict[Any, Any] | None = None
    """The table that gets the answer when it is final; None if nothing keeps it."""


@dataclass(slots=True)
class Questions:
    """The questions that are being answered, and their provisional answers."""

    provisional: int = WHOLE
    """The outermost open question whose assumed answer was used since the innermost one was opened."""
    open: dict[Hashable, _Open] = field(default_factory=dict)
    """The questions that are being answered, numbered in their order."""
    passing: dict[Hashable, _Provisional] = field(default_factory=dict)
    """Provisional answers, each with the outermost open question that it rests on."""
    closed: dict[int, int] = field(default_factory=dict)
    """The questions that got a provisional answer, each with the outermost question that it rests on."""
    repeats: dict[Hashable, int] = field(default_factory=dict)
    """How often a question got a provisional answer."""
    carried: dict[Hashable, Any] = field(default_factory=dict)
    """The assumptions for questions of inner circles in the next round of the outermost one."""
    asked: int = _CUT
    """The number of the last question."""

    def remembered(
        self,
        table: dict[_Key, _Answer],
        key: _Key,
        compute: Callable[[], _Answer],
        meanwhile: _Answer,
        join: Callable[[_Answer, _Answer], _Answer] | None = None,
    ) -> _Answer:
        """The entry of a table, computed on first use, and kept unless it is provisional.

        `meanwhile` is the first assumption for questions while it is being computed. The next assumption is the answer,
        or the `join` of the last assumption and the answer.
        """
        if key in table:
            return table[key]
        mark = (id(table), key)
        if self.assumes(mark):
            return self.open[mark].assumed  # type: ignore[no-any-return]
        if mark in self.passing:
            return self.passed(mark)  # type: ignore[no-any-return]
        start = self.begin(mark, meanwhile)
        is_settled = False
        try:
            answer, is_settled = self._settled(mark, start, compute, join)
        finally:
            rests_on = self.end(mark, start, is_settled)
        if rests_on == WHOLE or self.repeats.get(mark, 0) >= _MOST_REPEATS:
            table[key] = answer
        else:
            self.repeats[mark] = self.repeats.get(mark, 0) + 1
            self.keep(mark, answer, rests_on, table)
        return answer

    def _settled(
        self,
        mark: Hashable,
        start: tuple[int, int],
        compute: Callable[[], _Answer],
        join: Callable[[_Answer, _Answer], _Answer] | None,
    ) -> tuple[_Answer, bool]:
        """The answer to an open question, and True if all assumptions that it rests on have come true."""
        question = self.open[mark]
        for _ in range(_MOST_ROUNDS):
            answer = compute()
            if join is not None and question.is_assumed:
                answer = join(question.assumed, answer)
            came_true = not question.is_assumed or answer == question.assumed
            if self.provisional < question.number:
                if not came_true:
                    self.carried[mark] = answer
                    question.is_unsettled = True
                return answer, False
            if came_true and not question.is_unsettled:
                return answer, True
            self.again(mark, start, answer)
        return answer, False

    def begin(self, mark: Hashable, assumed: Any = None) -> tuple[int, int]:
        """Open a question. `end` needs the result, which is the state of the question around it."""
        start = self.provisional, len(self.passing)
        self.asked += 1
        self.open[mark] = _Open(self.asked, self.carried.get(mark, assumed))
        self.provisional = WHOLE
        return start

    def again(self, mark: Hashable, start: tuple[int, int], assumed: Any) -> None:
        """Begin another round of an open question with another assumption, and forget the answers that rest on it."""
        question = self.open[mark]
        question.assumed, question.is_assumed, question.is_unsettled = assumed, False, False
        self.provisional = WHOLE
        self._forget(start[1])

    def end(self, mark: Hashable, start: tuple[int, int], is_settled: bool = False) -> int:
        """Close a question; the result is the outermost open question that its answer rests on, or WHOLE.

        If it `is_settled`, the provisional answers that rest on it are final, too.
        """
        around, passing = start
        question = self.open.pop(mark)
        rests_on = self.provisional
        if rests_on >= question.number:
            # It rests at most on itself.
            rests_on = WHOLE
            if is_settled:
                self._publish(passing)
            self._forget(passing)
        else:
            self.closed[question.number] = rests_on
            if question.is_unsettled:
                for each in self.open.values():
                    each.is_unsettled = each.is_unsettled or each.number == rests_on
        if not self.open:
            self.passing.clear()
            self.closed.clear()
            self.carried.clear()
        self.provisional = min(around, rests_on)
        return rests_on

    def assumes(self, mark: Hashable) -> bool:
        """True if a question is being answered, so that its assumed answer is used."""
        question = self.open.get(mark)
        if question is None:
            return False
        question.is_assumed = True
        self.provisional = min(self.provisional, question.number)
        return True

    def keep(self, mark: Hashable, answer: object, rests_on: int, table: dict[Any, Any] | None = None) -> None:
        """Keep a provisional answer while the question is open that it rests on."""
        if self.open:
            self.passing[mark] = _Provisional(answer, rests_on, table)

    def passed(self, mark: Hashable) -> Any:
        """A provisional answer."""
        known = self.passing[mark]
        rests_on = known.rests_on
        while rests_on in self.closed:
            rests_on = self.closed[rests_on]
        self.passing[mark] = known._replace(rests_on=rests_on)
        self.provisional = min(self.provisional, rests_on)
        return known.answer

    def _publish(self, passing: int) -> None:
        """Enter all provisional answers but the oldest ones into their tables."""
        for mark, known in itertools.islice(self.passing.items(), passing, None):
            if known.table is not None:
                known.table[mark[1]] = known.answer  # type: ignore[index]

    def _forget(self, passing: int) -> None:
        """Drop all provisional answers but the oldest ones."""
        while len(self.passing) > passing:
            self.passing.popitem()

    def cut(self) -> None:
        """Note that a call was not followed."""
        self.provisional = _CUT
