"""What holds of every set of edits on every text."""

from __future__ import annotations

import ast
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity, Span
from perflint.fixes.apply import Outcome, apply_fixes
from perflint.fixes.edits import replace
from perflint.fixes.rewrite import Offsets, rewrite
from perflint.source.text import Source

ALPHABET = "ab é\t\N{GRINNING FACE}\f"
texts = st.lists(st.tuples(st.text(ALPHABET, max_size=8), st.sampled_from(["\n", "\r\n", "\r"])), max_size=6).flatmap(
    lambda lines: st.text(ALPHABET, max_size=5).map(lambda last: "".join(map("".join, lines)) + last)
)


def position(source: Source, offset: int) -> tuple[int, int]:
    """Line and column of an offset, found by counting."""
    line, start = 1, 0
    for text in source.lines:
        if offset < start + len(text):
            break
        start += len(text)
        line += 1
    return line, offset - start + 1


def span(source: Source, start: int, end: int) -> Span:
    return Span(*position(source, start), *position(source, end))


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, list[tuple[int, int, str]]]:
    """A text and edits by offset that do not overlap, in their order."""
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=10)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return text, [(start, end, draw(st.text("xyzé\r\n", max_size=4))) for start, end in pairs]


@given(texts)
def test_offsets_and_positions_agree(text: str) -> None:
    source = Source("x.py", text)
    offsets = Offsets(source)
    assert "".join(source.lines) == text
    assert [offsets.of(*position(source, offset)) for offset in range(len(text) + 1)] == list(range(len(text) + 1))


@given(edited(), st.randoms())
def test_rewrite_does_each_edit_and_nothing_else(case: tuple[str, list[tuple[int, int, str]]], random: Random) -> None:
    text, changes = case
    source = Source("x.py", text)
    expected, shift = text, 0
    for start, end, new in changes:
        expected = expected[: start + shift] + new + expected[end + shift :]
        shift += len(new) - (end - start)
    edits = [Edit(span(source, start, end), new) for start, end, new in changes]
    if len({(start, end) for start, end, _ in changes}) == len(changes):
        random.shuffle(edits)
    assert rewrite(source, edits).text == expected


@given(edited())
def test_places_agree_before_and_after(case: tuple[str, list[tuple[int, int, str]]]) -> None:
    text, changes = case
    source = Source("x.py", text)
    changed = rewrite(source, [Edit(span(source, start, end), new) for start, end, new in changes])
    before = {
        changed.place_before(offset): offset for offset in range(len(text)) if changed.place_before(offset)[0] < 0
    }
    after = {changed.place_after(o): o for o in range(len(changed.text)) if changed.place_after(o)[0] < 0}
    assert before.keys() == after.keys()
    assert all(text[offset] == changed.text[after[place]] for place, offset in before.items())


lines = st.lists(st.text(ALPHABET, max_size=8), min_size=1, max_size=6)


@given(lines, lines, st.sampled_from(["\n", "\r\n", "\r"]), st.integers(0, 60), st.integers(0, 60))
def test_replace_gives_what_was_asked_for(old: list[str], new: list[str], newline: str, one: int, other: int) -> None:
    # A node never ends behind the last line, nor within a line's end.
    text = newline.join(old) + "."
    start, end = sorted((min(one, len(text) - 1), min(other, len(text) - 1)))
    assume("\r\n" not in (text[start - 1 : start + 1], text[end - 1 : end + 1]))
    source = Source("x.py", text)
    edit = replace(source, span(source, start, end), "\n".join(new))
    used = newline if newline in text else "\n"
    assert rewrite(source, [edit]).text == text[:start] + used.join(new) + text[end:]


NAMES = ("good", "bad", "größe", "ünbad")
statements = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(lambda names: " + ".join(names))
programs = st.tuples(
    st.lists(st.tuples(statements, st.sampled_from(["", "  # bad", "  # é", ";"])), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "    ", "\t"]),
    st.booleans(),
)


def program(lines: list[tuple[str, str]], newline: str, indent: str, last: bool) -> str:
    head = "if x:" + newline if indent else ""
    return head + newline.join(indent + text + end for text, end in lines) + (newline if last else "")


def bad(place: Span, code: str, new: str) -> Finding:
    fix = Fix("m", Safety.SAFE, (Edit(place, new),))
    return Finding("x.py", place, code, "n", "m", Severity.INFO, Confidence.LOW, Heat.HOT, Effect.SYNC, fix=fix)


def bads(source: Source) -> list[Finding]:
    """A toy rule: the name `bad` becomes another, or a call over two lines."""
    spans = [source.span(node) for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == "bad"]
    return [bad(place, "TPF001", "f(\n  größe)" if place.column % 2 else "good") for place in spans]


def fix(text: str) -> Outcome:
    return apply_fixes(text, bads(Source("x.py", text)), lambda now: bads(Source("x.py", now)))


@given(programs)
def test_programs_come_out_valid_clean_and_stable(parts: tuple[list[tuple[str, str]], str, str, bool]) -> None:
    text = program(*parts)
    outcome = fix(text)
    ast.parse(outcome.text)
    assert not outcome.remaining and not outcome.skipped
    assert len(outcome.applied) == len(bads(Source("x.py", text)))
    assert outcome.text.count("#") == text.count("#")
    assert ("\r\n" in text) == ("\r\n" in outcome.text) or "\n" not in text
    assert outcome.text.count("\n") == outcome.text.count(parts[1]) or "\n" not in text
    assert fix(outcome.text).text == outcome.text


@given(texts, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted), min_size=1, max_size=6))
def test_overlapping_fixes_never_mix(text: str, ranges: list[list[int]]) -> None:
    """Over arbitrary stretches of a string, what comes out is the work of whole fixes only."""
    quoted = f'"""{text}"""'
    source = Source("x.py", quoted)
    findings = []
    for number, (start, end) in enumerate(ranges):
        place = span(source, min(start, len(text)) + 3, min(end, len(text)) + 3)
        findings.append(bad(place, f"TPF{number:03}", f"<{number}>"))
    outcome = apply_fixes(quoted, findings, lambda now: ())
    expected = quoted
    for found in sorted(outcome.applied, key=lambda found: found.span, reverse=True):
        assert found.fix is not None
        (edit,) = found.fix.edits
        start, end = Offsets(source).range(edit.span)
        expected = expected[:start] + edit.text + expected[end:]
    assert outcome.text == expected
    assert outcome.applied


def test_a_place_that_a_later_stage_replaces() -> None:
    source = Source("x.py", "abcdef")
    first = rewrite(source, [Edit(span(source, 0, 0), "XX"), Edit(span(source, 2, 3), "")])
    assert first.text == "XXabdef"
    between = Source("x.py", first.text)
    both = first.then(rewrite(between, [Edit(span(between, 5, 6), "!")]))
    assert both.text == "XXabd!f"
    assert [both.place_before(offset) for offset in range(6)] == [(-1, 0), (-1, 1), (0, 1), (-1, 3), (1, 0), (-1, 5)]
    assert [both.place_after(offset) for offset in range(7)] == [
        *((0, 0), (0, 0), (-1, 0), (-1, 1), (-1, 3), (1, 0), (-1, 5)),
    ]


def test_positions_behind_the_text_are_its_end() -> None:
    """A house rule may make any edit."""
    source = Source("x.py", "ab\ncd")
    offsets = Offsets(source)
    assert [offsets.of(*place) for place in ((2, 3), (2, 99), (3, 1), (99, 1))] == [5, 5, 5, 5]
    assert rewrite(source, [Edit(Span(2, 2, 99, 1), "!")]).text == "ab\nc!"
