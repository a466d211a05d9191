"""Effects of functions on the Python values that they reach."""

from __future__ import annotations

import types
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

HEAD = """
import collections, functools, heapq, itertools, operator, queue, random
class Counts:
    n = 0
    def __call__(self):
        self.n += 1
class Slots:
    __slots__ = ("n",)
    def __init__(self):
        self.n = 0
def numbers():
    k = 0
    while True:
        k += 1
        yield k
def made():
    n = [0]
    def inner():
        n[0] += 1
    return inner
seen, counts, slots, inner, generated = {"n": 0}, Counts(), Slots(), made(), numbers()
values, times, drawn = iter([1.0] * 99), itertools.count(), random.Random(1)
waiting, missing, known = queue.Queue(), collections.defaultdict(list), [3, 1, 2]
uniform = functools.partial(drawn.uniform, 0, 1)
def kept(log={}):
    log[len(log)] = 1
"""
EFFECTS = """
seen["n"] += 1
counts()
slots.n += 1
inner()
generated.send(None)
values.__next__()
sum(itertools.islice(values, 2))
list(zip(times, range(1)))
drawn.random()
uniform()
waiting.put(1)
missing[len(missing)]
operator.setitem(known, 0, known[0] + 1)
heapq.heappush(known, 4)
kept()
setattr(Counts, "n", Counts.n + 1)
"""


def step(text: str) -> Callable[[], object]:
    names: dict[str, Any] = {"__name__": "program"}
    exec(f"{HEAD}\ndef step():\n    {text}\n", names)
    found = names["step"]
    assert isinstance(found, types.FunctionType)
    return found


@pytest.mark.parametrize("text", EFFECTS.strip().splitlines())
def test_effects(text: str) -> None:
    from perflint.tracer.held import Held

    function = step(text)
    before = Held(function)
    # Looking changes nothing.
    assert not before.changed(Held(function))
    function()
    assert before.changed(Held(function))


@pytest.mark.parametrize(
    "text", ["sorted(known)", "[*seen]", "dict(seen, n=2)", "len(missing)", "float('nan')", "Counts()"]
)
def test_no_effects(text: str) -> None:
    from perflint.tracer.held import Held

    function = step(text)
    before = Held(function)
    function()
    assert not before.changed(Held(function))


def test_each_step_must_change_a_value() -> None:
    from perflint.tracer.replays import run_whole

    filled: dict[int, int] = {}

    def caching(at: int) -> None:
        filled.setdefault(at // 2, at)

    for at in range(20):
        run_whole(caching, (at,))
    counted = [0]

    def counting() -> None:
        counted[0] += 1

    with pytest.raises(ValueError, match=r"each step changes `counted\[0\]`"):
        for _ in range(9):
            run_whole(counting, ())
    assert counted == [5]
