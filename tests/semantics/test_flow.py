"""Where the values of names go: programs run with values that remember where they were bound."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from random import Random

import pytest

from perflint.semantics.dataflow.scope_flow import flow_of
from tests.growth import calls, is_linear

NAMES = ("a", "b", "c")
MOST = 10_000


class Writer:
    """Writes a random function. `put(n)` makes a value and `see(n, v)` uses one, by the number of their lines."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = []

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text.replace("@", str(len(self.lines) + 1)))

    def simple(self, depth: int) -> None:
        name, other = self.random.choice(NAMES), self.random.choice(NAMES)
        texts = [
            *[f"{name} = put(@)"] * 3,
            *[f"see(@, {name})"] * 4,
            f"{name}, {other} = {other}, {name}",
            f"{name} = {other}",
            f"{name} += step()",
            f"see(@, [choose() and ({name} := put(@)), {name}][1])",
            f"see(@, [{name} for {name} in [put(@), put(@)]][0])",
            f"del {name}",
            "risk()",
        ]
        self.line(depth, self.random.choice(texts))

    def block(self, depth: int, in_loop: bool) -> None:
        for _ in range(self.random.randint(1, 3)):
            if depth > 3 or self.random.random() < 0.6:
                self.simple(depth)
            else:
                self.compound(depth, in_loop)
        if self.random.random() < 0.15:
            self.line(depth, self.random.choice(["break", "continue"] if in_loop else ["return", "raise Failed"]))

    def compound(self, depth: int, in_loop: bool) -> None:
        kind = self.random.choice(["if", "if", "for", "while", "try", "with", "match"])
        if kind == "if":
            self.line(depth, "if choose():")
            self.block(depth + 1, in_loop)
            if self.random.random() < 0.4:
                self.line(depth, "elif choose():")
                self.block(depth + 1, in_loop)
            if self.random.random() < 0.4:
                self.line(depth, "else:")
                self.block(depth + 1, in_loop)
        elif kind in ("for", "while"):
            name = self.random.choice(NAMES)
            self.line(depth, "while choose():" if kind == "while" else f"for {name} in [put(@), put(@)]:")
            self.block(depth + 1, True)
            if self.random.random() < 0.3:
                self.line(depth, "else:")
                self.block(depth + 1, in_loop)
        elif kind == "try":
            self.line(depth, "try:")
            self.block(depth + 1, in_loop)
            self.line(depth, "except Failed:")
            self.block(depth + 1, in_loop)
            if self.random.random() < 0.3:
                self.line(depth, "else:")
                self.block(depth + 1, in_loop)
            if self.random.random() < 0.4:
                self.line(depth, "finally:")
                self.simple(depth + 1)
        elif kind == "with":
            name = self.random.choice(NAMES)
            self.line(depth, f"with swallow(put(@)) as {name}:")
            self.block(depth + 1, in_loop)
        else:
            name = self.random.choice(NAMES)
            self.line(depth, "match put(@):")
            self.line(depth + 1, f"case {name} if choose():")
            self.block(depth + 2, in_loop)
            self.line(depth + 1, "case _:")
            self.block(depth + 2, in_loop)


class Failed(Exception):
    pass


class Stop(Exception):
    pass


class Mark:
    """A value that knows the line in which it was made."""

    def __init__(self, line: int) -> None:
        self.line = line

    def __iadd__(self, other: object) -> Mark:
        return self


def program(seed: int) -> str:
    writer = Writer(Random(seed))
    writer.line(0, "def run(a, b, c):")
    writer.block(1, False)
    return "\n".join(writer.lines) + "\n"


def seen_by_running(text: str, seed: int) -> set[tuple[int, int]]:
    """The lines of values and of their uses, from some runs with random choices."""
    random = Random(seed)
    found: set[tuple[int, int]] = set()
    budget = [0]

    def choose() -> bool:
        budget[0] += 1
        if budget[0] > 200:
            raise Stop
        return random.random() < 0.5

    def risk() -> None:
        if random.random() < 0.5:
            raise Failed

    def see(line: int, value: object) -> None:
        if isinstance(value, Mark):
            found.add((value.line, line))

    @contextlib.contextmanager
    def swallow(value: object) -> Iterator[object]:
        with contextlib.suppress(Failed):
            yield value

    names = {"choose": choose, "risk": risk, "see": see, "swallow": swallow, "put": Mark, "step": object}
    exec(compile(text, "program", "exec"), {**names, "Failed": Failed}, names_out := {})
    for _ in range(30):
        budget[0] = 0
        with contextlib.suppress(Failed, Stop, UnboundLocalError):
            eval("run", {}, names_out)(Mark(1), Mark(1), Mark(1))
    return found


def seen_by_reading(text: str) -> set[tuple[int, int]]:
    """The lines of values and of the uses that they may have, also by assignments of names to names."""
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    flow = flow_of(function)
    found: set[tuple[int, int]] = set()
    for bound in flow.bounds:
        lines = {1} if isinstance(bound.node, ast.arg) else made_in(bound.value)
        if not lines:
            continue
        waiting, seen = [bound], set()
        while waiting:
            each = waiting.pop()
            if each in seen:
                continue
            seen.add(each)
            reach = flow.reach(each, MOST)
            assert reach is not None
            uses = set(reach.uses)
            found |= {(line, use.lineno) for use in uses for line in lines}
            waiting += [other for other in flow.bounds if other.value in uses or _is_in(other.value, uses)]
    return found


def made_in(value: ast.expr | None) -> set[int]:
    """The lines of the calls of `put` in an expression."""
    calls = [] if value is None else [each for each in ast.walk(value) if isinstance(each, ast.Call)]
    return {each.lineno for each in calls if isinstance(each.func, ast.Name) and each.func.id == "put"}


def _is_in(value: ast.expr | None, uses: set[ast.Name]) -> bool:
    return value is not None and any(part in uses for part in ast.walk(value))


@pytest.mark.parametrize("seed", range(300))
def test_a_value_gets_nowhere_that_is_not_seen(seed: int) -> None:
    text = program(seed)
    missed = seen_by_running(text, seed) - seen_by_reading(text)
    assert not missed, f"{sorted(missed)} of\n" + "\n".join(f"{i:3} {s}" for i, s in enumerate(text.splitlines(), 1))


REBOUND = """
def run(loader, model):
    for images, labels in loader:
        if labels is None:
            continue
        images = images.cuda()
        model(images)
"""


def test_a_name_that_is_bound_anew_ends_a_value() -> None:
    function = ast.parse(REBOUND).body[0]
    assert isinstance(function, ast.FunctionDef)
    flow = flow_of(function)
    reached = {
        getattr(bound.node, "lineno", 0): flow.reach(bound, MOST) for bound in flow.bounds if bound.name == "images"
    }
    assert reached[3] is not None and [use.lineno for use in reached[3].uses] == [6] and not reached[3].loops
    assert reached[6] is not None and [use.lineno for use in reached[6].uses] == [7]


def grown(kind: str, size: int) -> str:
    """A function of about a size in which something is repeated."""
    lines = ["def run(x, c):"]
    for i in range(size):
        lines += {
            "names": [f"    a{i} = x", f"    use(a{i})"],
            "rebound": ["    x = f(x)"],
            "branches": ["    if c: x = f(x)", "    use(x)"],
            "jumps": [
                *(["    for y in x:"] if i == 0 else []),
                f"        if y: z{i} = y; continue",
                f"        use(z{i})",
            ],
            "chain": [f"    {'el' if i else ''}if c == {i}: y{i} = x"],
            "tries": ["    try: x = f(x)", "    except E: use(x)"],
            "withs": ["    with c: x = f(x)", "    use(x)"],
        }[kind]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("kind", ["names", "rebound", "branches", "jumps", "chain", "tries", "withs"])
def test_reading_takes_linear_time(kind: str) -> None:
    counts = []
    for size in (100, 200, 400):
        function = ast.parse(grown(kind, size)).body[0]
        assert isinstance(function, ast.FunctionDef)
        counts.append(calls(lambda function=function: flow_of(function)))  # type: ignore[misc]
    assert is_linear(counts), counts
