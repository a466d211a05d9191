"""Fixes applied to texts: whole or not at all, to a fixpoint, and never for the worse.

The rules of these tests are toys that look for words, so that every way to go wrong can be had.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from perflint.findings import Confidence, Edit, Effect, Finding, Fix, Heat, Safety, Severity, Span
from perflint.fixes.apply import Outcome, apply_fixes
from perflint.source.text import Source

Toy = Callable[[Source], list[Finding]]
SAFE, UNSAFE, DISPLAY = Safety.SAFE, Safety.UNSAFE, Safety.DISPLAY


def word(
    pattern: str, new: str | None, code: str = "TPF001", safety: Safety = SAFE, imports: tuple[str, ...] = ()
) -> Toy:
    """A toy rule that finds a pattern in each line and replaces it; `new` None: it has no fix."""

    def check(source: Source) -> list[Finding]:
        found = []
        for number, line in enumerate(source.lines, 1):
            for match in re.finditer(pattern, line):
                span = Span(number, match.start() + 1, number, match.end() + 1)
                fix = None if new is None else Fix(code, safety, (Edit(span, match.expand(new)),), imports)
                found.append(finding(span, code, fix))
        return found

    return check


def finding(span: Span, code: str, fix: Fix | None) -> Finding:
    return Finding("x.py", span, code, code, code, Severity.WARNING, Confidence.HIGH, Heat.HOT, Effect.SYNC, fix=fix)


def fix(text: str, *toys: Toy, safeties: Sequence[Safety] = (SAFE,)) -> Outcome:
    def relint(now: str) -> list[Finding]:
        compile(now, "now", "exec")
        return [found for toy in toys for found in toy(Source("x.py", now))]

    return apply_fixes(text, relint(text), relint, safeties)


def attempts(text: str, *toys: Toy) -> tuple[Outcome, int]:
    """The outcome, and how many texts were checked for it."""
    checked: list[str] = []

    def relint(now: str) -> list[Finding]:
        checked.append(now)
        return [found for toy in toys for found in toy(Source("x.py", now))]

    return apply_fixes(text, relint(text), relint), len(checked)


def reasons(outcome: Outcome) -> list[str]:
    return [skipped.reason for skipped in outcome.skipped]


def test_nothing_to_do() -> None:
    outcome = fix("a = 1\n", word("b", "c"))
    assert outcome == Outcome("a = 1\n", (), (), ())


def test_all_at_once() -> None:
    outcome = fix("old = old + 1\nold = 2\n", word("old", "new"))
    assert outcome.text == "new = new + 1\nnew = 2\n"
    assert len(outcome.applied) == 3 and not outcome.remaining


def test_a_fix_must_not_bring_what_another_cures() -> None:
    outcome = fix("a = 1\n", word("a", "b", "TPF001"), word("b", "c", "TPF002"))
    assert outcome.text == "a = 1\n" and reasons(outcome) == ["it would bring TPF002"]


def test_a_fix_may_leave_a_comment_without_use() -> None:
    """The comment is removed in the next round, so that a second run changes nothing."""
    toys = word("old", "new"), word(r"(?<=new)  # silent", "", "TPF981")
    outcome = fix("x = old  # silent\n", *toys)
    assert outcome.text == "x = new\n" and not outcome.remaining
    assert fix(outcome.text, *toys).text == outcome.text


def test_a_fix_must_cure() -> None:
    outcome = fix("x = old\n", word("old", "old + 0"))
    assert outcome.text == "x = old\n" and reasons(outcome) == ["it does not remove the finding"]
    outcome = fix("x = old\n", word("old", "old"))
    assert reasons(outcome) == ["it changes nothing"]


@pytest.mark.parametrize(
    ("before", "pattern", "new", "after"),
    [
        ("def f():\n    return(a)\n", r"\(a\)", "b", None),
        ("def f():\n    return(a)\n", r"\(a\)", " b", "def f():\n    return b\n"),
        ("def f():\n    return(a)\n", r"\(a\)", "(b)", "def f():\n    return(b)\n"),
        ("x = (a)if 1 else 2\n", r"\(a\)", "b", None),
        ("x = (a)if 1 else 2\n", r"\(a\)", "[b]", "x = [b]if 1 else 2\n"),
        ("x = not-a\n", "-", "", None),
        ("x = 1 if-a else 2\n", "-", "+", "x = 1 if+a else 2\n"),
        # Part of a word.
        ("x = old_name\n", "old", "new", "x = new_name\n"),
        ("x = a.name_old\n", "old", "new", "x = a.name_new\n"),
        ("x = -a\n", "-", "", "x = a\n"),
    ],
)
def test_a_fix_joins_no_words(before: str, pattern: str, new: str, after: str | None) -> None:
    outcome = fix(before, word(pattern, new))
    assert outcome.text == (after or before)
    assert reasons(outcome) == ([] if after else ["it would join two words"])


@pytest.mark.parametrize(
    ("line", "is_fixed"),
    [
        ("x = y[[-1]]  # note: using list [-1] to keep the dimension\n", False),
        ("x = y[[-1]]  # the last one\n", True),
        ('x = y[[-1]] + f("# [-1]")  # the last one\n', True),
        ("x = y[[-1]]\n# [-1] is the last one\n", True),
    ],
)
def test_a_comment_that_quotes_the_code_keeps_it(line: str, is_fixed: bool) -> None:
    outcome = fix(line, word(r"\[-1\](?=\])", "-1:"))
    assert outcome.text == (line.replace("[[-1]]", "[-1:]", 1) if is_fixed else line)
    assert reasons(outcome) == ([] if is_fixed else ["a comment on the line quotes the code that it replaces"])


def test_overlapping_fixes_wait_for_the_next_round() -> None:
    outcome = fix("x = f(g(1))\n", word(r"f\((.*)\)$", r"\1"), word(r"g\((\d)\)", r"\1", "TPF002"))
    assert outcome.text == "x = 1\n"
    assert [found.code for found in outcome.applied] == ["TPF001", "TPF002"]


def test_a_rejected_fix_does_not_block_those_that_overlap_it() -> None:
    outcome = fix("x = f(g(1))\n", word(r"f\((.*)\)$", r"f(("), word(r"g\((\d)\)", r"\1", "TPF002"))
    assert outcome.text == "x = f(1)\n"
    assert reasons(outcome) == ["it would leave invalid Python"]


def test_the_culprit_is_found_and_the_others_stay() -> None:
    text = "".join(f"v{n} = old\n" for n in range(40)) + "bad = 1\n"
    outcome = fix(text, word("old", "new"), word("bad", "if", "TPF002"))
    assert outcome.text == text.replace("old", "new")
    assert [skipped.finding.code for skipped in outcome.skipped] == ["TPF002"]


def many(*kinds: str) -> str:
    return "".join(f"v{n} = {kinds[n % len(kinds)]}\n" for n in range(800))


def test_fixes_that_do_harm_where_they_are_cost_few_checks() -> None:
    outcome, checked = attempts(many("old", "stays"), word("old", "new"), word("stays", "stays + 0", "TPF002"))
    assert outcome.text == many("new", "stays")
    assert set(reasons(outcome)) == {"it does not remove the finding"} and len(outcome.skipped) == 400
    assert checked < 15
    outcome, checked = attempts(many("stays"), word("stays", "stays + 0", "TPF002"))
    assert len(outcome.skipped) == 800 and checked < 15


def test_fixes_that_drop_comments_are_put_aside_before_a_check() -> None:
    def call(source: Source) -> list[Finding]:
        starts = [number for number, line in enumerate(source.lines, 1) if "f(" in line]
        spans = [Span(line, source.lines[line - 1].index("f(") + 1, line + 1, 3) for line in starts]
        return [finding(span, "TPF002", Fix("f", SAFE, (Edit(span, "g(1)"),))) for span in spans]

    text = many("f(  # why\n1)", "f(  # type: ignore\n1)", "old  # type: ignore", "f(\n1)  # type: ignore")
    outcome, checked = attempts(text, call, word("old", "new"))
    assert checked == 2
    assert outcome.text.count("# why\nv") == outcome.text.count("g(1)  # type: ignore\n") == 200
    assert outcome.text.count("f(  # type: ignore\n1)") == outcome.text.count("new") == 200
    assert reasons(outcome) == ["it would drop a comment"] * 200


def test_two_fixes_that_keep_each_other_from_curing() -> None:
    def rivals(source: Source) -> list[Finding]:
        found = word("old", "new")(source)
        if source.text.count("new") == 2:
            # Both stay where they were.
            found += [finding(Span(n, 5, n, 8), "TPF001", None) for n in (1, 2)]
        return found

    outcome = fix("x = old\ny = old\n", rivals)
    assert outcome.text == "x = new\ny = old\n"


def test_a_search_for_fixes_that_do_no_harm_has_an_end() -> None:
    outcome, checked = attempts(many("bad"), word("bad", "if"))
    assert checked == 1 and outcome.text == many("bad")
    assert set(reasons(outcome)) == {"it would leave invalid Python", "too many other fixes of this file do harm"}


def test_a_few_culprits_among_many_are_found() -> None:
    culprits = ("old",) * 131 + ("bad",)
    outcome = fix(many(*culprits), word("old", "new"), word("bad", "if", "TPF002"))
    assert outcome.text == many(*culprits).replace("old", "new")
    assert reasons(outcome) == ["it would leave invalid Python"] * 6


def test_fixes_that_only_hurt_together_are_not_both_applied() -> None:
    def both(source: Source) -> list[Finding]:
        return [finding(Span(1, 1, 1, 2), "TPF009", None)] if source.text.count("new") == 2 else []

    outcome = fix("x = old\ny = old\n", word("old", "new"), both)
    assert outcome.text == "x = new\ny = old\n"
    assert reasons(outcome) == ["it would bring TPF009"]


def test_a_fix_may_not_bring_a_finding_elsewhere() -> None:
    def elsewhere(source: Source) -> list[Finding]:
        return [finding(Span(2, 1, 2, 2), "TPF002", None)] if "new" in source.text else []

    outcome = fix("x = old\ny = 1\n", word("old", "new"), elsewhere)
    assert outcome.text == "x = old\ny = 1\n"
    assert reasons(outcome) == ["it would bring TPF002"]


def test_findings_that_only_move_are_not_new() -> None:
    toys = word("old", "longer\\\n    + 1"), word("stays", None, "TPF002")
    outcome = fix("x = old; y = stays\nz = stays\n", *toys)
    assert outcome.text == "x = longer\\\n    + 1; y = stays\nz = stays\n"
    assert [found.code for found in outcome.remaining] == ["TPF002"] * 2


def leaving(pattern: str, new: str, *leaves: str) -> Toy:
    """A toy rule whose fix says what it leaves."""

    def check(source: Source) -> list[Finding]:
        found = word(pattern, new)(source)
        return [replace(f, fix=replace(f.fix, leaves=leaves)) for f in found if f.fix is not None]

    return check


def test_a_fix_may_leave_what_it_says() -> None:
    toys = word("small", None, "TPF002"), leaving("big", "f(small)", "TPF002")
    outcome = fix("x = big + big\n", *toys)
    assert outcome.text == "x = f(small) + f(small)\n"
    assert [found.code for found in outcome.remaining] == ["TPF002"] * 2


def test_a_fix_may_leave_no_more_than_it_says() -> None:
    toys = word("small", None, "TPF002"), leaving("big", "f(small, small)", "TPF002")
    assert reasons(fix("x = big\n", *toys)) == ["it would bring TPF002"]
    toys = word("other", None, "TPF003"), leaving("big", "f(other)", "TPF002")
    assert reasons(fix("x = big\n", *toys)) == ["it would bring TPF003"]


def test_what_a_fix_leaves_stands_where_the_cured_finding_was() -> None:
    def elsewhere(source: Source) -> list[Finding]:
        return [finding(Span(2, 1, 2, 2), "TPF002", None)] if "new" in source.text else []

    assert reasons(fix("x = old\ny = 1\n", leaving("old", "new", "TPF002"), elsewhere)) == ["it would bring TPF002"]
    assert fix("x = 1\nold = 1\n", leaving("old", "new", "TPF002"), elsewhere).text == "x = 1\nnew = 1\n"


def test_fixes_that_undo_each_other_end() -> None:
    outcome = fix("x = old\n", leaving("old", "new", "TPF001"), leaving("new", "old", "TPF001"))
    assert outcome.text in ("x = old\n", "x = new\n")


def test_a_finding_inside_what_is_rewritten_may_stay() -> None:
    outcome = fix("x = f(stays)\n", word(r"f\((.*)\)", r"(\1)"), word("stays", None, "TPF002"))
    assert outcome.text == "x = (stays)\n"


def test_only_the_wanted_safeties() -> None:
    toys = word("aa", "x"), word("bb", "y", "TPF002", UNSAFE), word("cc", "z", "TPF003", DISPLAY)
    text = "aa = bb = cc = 1\n"
    assert fix(text, *toys).text == "x = bb = cc = 1\n"
    assert fix(text, *toys, safeties=(SAFE, UNSAFE)).text == "x = y = cc = 1\n"
    assert fix(text, *toys, safeties=(SAFE, UNSAFE, DISPLAY)).text == "x = y = cc = 1\n"


WHOLE = Span(2, 9, 4, 7)


def commented(comment: str, new: str = "g(1, 2)") -> Outcome:
    text = f"if y:\n    x = f(\n    1,  {comment}\n    2)\n"

    def toy(source: Source) -> list[Finding]:
        return [finding(WHOLE, "TPF001", Fix("f", SAFE, (Edit(WHOLE, new),)))] if " f(" in source.text else []

    return fix(text, toy)


def test_a_comment_goes_above_its_statement() -> None:
    assert commented("# why").text == "if y:\n    # why\n    x = g(1, 2)\n"
    assert commented("# why", "g(\n1,  # why\n2)").text == "if y:\n    x = g(\n1,  # why\n2)\n"


@pytest.mark.parametrize("comment", ["# type: ignore", "# noqa: TPF101", "# perflint: ignore[TPF101]", "# fmt: off"])
def test_a_comment_that_speaks_of_its_line_is_not_moved(comment: str) -> None:
    assert reasons(commented(comment)) == ["it would drop a comment"]


def test_the_comment_of_an_argument_that_goes_stays() -> None:
    gone = Span(1, 4, 2, 4)
    text = "f(1,  # one\n  2, 3)  # all\n"

    def toy(source: Source) -> list[Finding]:
        return [finding(gone, "TPF001", Fix("f", SAFE, (Edit(gone, ""),)))] if "one\n  2" in source.text else []

    assert fix(text, toy).text == "# one\nf(1, 3)  # all\n"


def at_once(text: str, *edits: Edit, brings: tuple[str, ...] = ()) -> Outcome:
    """The outcome of one fix with some edits, as long as the text is as it was."""

    def toy(source: Source) -> list[Finding]:
        if source.text != text:
            return []
        return [finding(edits[0].span, "TPF001", Fix("f", SAFE, edits, brings=brings))]

    return fix(text, toy, word("worse", None, "TPF102"))


def test_a_comment_that_the_fix_itself_moves() -> None:
    text = "f(1,  # one\n  2)\n"
    moved = Edit(Span(1, 1, 1, 1), "# one\n")
    assert at_once(text, moved, Edit(Span(1, 4, 2, 4), ", 2")).text == "# one\nf(1, 2)\n"


def test_a_comment_of_a_statement_whose_beginning_goes() -> None:
    text = "a()\nf(1,  # one\n  2)\n"
    outcome = at_once(text, Edit(Span(1, 1, 2, 2), "g"), Edit(Span(2, 4, 3, 4), ", 2"))
    assert outcome.text == text and reasons(outcome) == ["it would drop a comment"]


def test_a_finding_that_a_fix_may_bring() -> None:
    edit = Edit(Span(1, 5, 1, 8), "worse")
    assert reasons(at_once("x = bad\n", edit)) == ["it would bring TPF102"]
    assert reasons(at_once("x = bad\n", edit, brings=("TPF2",))) == ["it would bring TPF102"]
    assert at_once("x = bad\n", edit, brings=("TPF1",)).text == "x = worse\n"


def test_fixes_that_border_on_each_other_are_tried_together() -> None:
    outcome, checks = attempts("x = f[0][1][2]\n", word(r"\[0\]", "[3]"), word(r"\[1\]", "[4]"), word(r"\[2\]", "[5]"))
    assert outcome.text == "x = f[3][4][5]\n" and checks == 2


def test_a_fix_between_the_edits_of_another() -> None:
    outer = tuple(Edit(Span(1, column, 1, column + 1), "n") for column in (1, 9))

    def toy(source: Source) -> list[Finding]:
        return [finding(outer[0].span, "TPF001", Fix("f", SAFE, outer))] if source.text[0] == "a" else []

    outcome, checks = attempts("a = b + c\n", toy, word("b", "m", "TPF002"))
    assert outcome.text == "n = m + n\n" and checks == 2


def test_brackets_within_each_other_are_broken_five_deep() -> None:
    """Each level has two arguments, of which the second is the next level."""
    name = "a" * 20
    new = "".join(f"f({name}, " for _ in range(8)) + name + ")" * 8
    text = "x = old\n"
    findings = word("old", new)(Source("x.py", text))
    outcome = apply_fixes(text, findings, lambda now: [], line_length=40)
    compile(outcome.text, "fixed", "exec")
    deepest = max(len(line) - len(line.lstrip()) for line in outcome.text.splitlines())
    assert deepest == 5 * 4


def test_a_deleted_statement_takes_its_comment_along() -> None:
    line = Span(1, 1, 2, 1)

    def toy(source: Source) -> list[Finding]:
        return [finding(line, "TPF001", Fix("f", SAFE, (Edit(line, ""),)))] if "gone" in source.text else []

    assert fix("gone()  # and this\nx = 1  # not this\n", toy).text == "x = 1  # not this\n"


def test_imports_are_added_once() -> None:
    outcome = fix('"""Doc."""\nx = old\ny = old\n', word("old", "torch.new", imports=("import torch",)))
    assert outcome.text == '"""Doc."""\n\nimport torch\nx = torch.new\ny = torch.new\n'
    assert len(outcome.applied) == 2


def test_imports_go_when_their_fix_does() -> None:
    outcome = fix("x = old\n", word("old", "torch.", imports=("import torch",)))
    assert outcome.text == "x = old\n"


def test_one_fix_of_several_findings() -> None:
    shared = Fix("both", SAFE, (Edit(Span(1, 1, 1, 2), "b"), Edit(Span(2, 1, 2, 2), "b")))

    def toy(source: Source) -> list[Finding]:
        lines = [number for number, line in enumerate(source.lines, 1) if line.startswith("a")]
        return [finding(Span(number, 1, number, 2), "TPF001", shared) for number in lines]

    outcome = fix("a = 1\na = 2\n", toy)
    assert outcome.text == "b = 1\nb = 2\n" and len(outcome.applied) == 2


@pytest.mark.parametrize(
    ("text", "new", "refused"),
    [
        ("f(n := 1)\n", "f(-1)", True),
        ("f(n := 1)\n", "g((n := 1))", False),
        ("async def f():\n    await g()\n", "pass", True),
        ("def f():\n    yield g()\n", "pass", True),
        ("yields(1)\n", "g(1)", False),
    ],
)
def test_a_fix_that_drops_a_name_or_a_yield_is_refused(text: str, new: str, refused: bool) -> None:
    def toy(source: Source) -> list[Finding]:
        if source.text != text:
            return []
        number = len(source.lines)
        span = Span(number, 1 if number == 1 else 5, number, len(source.lines[-1]))
        return [finding(span, "TPF001", Fix("other", SAFE, (Edit(span, new),)))]

    expected = ["it would drop a name that is bound there, or an `await` or `yield`"] if refused else []
    assert reasons(fix(text, toy)) == expected


def test_a_fix_whose_edits_overlap_is_refused() -> None:
    torn = Fix("torn", SAFE, (Edit(Span(1, 1, 1, 3), "b"), Edit(Span(1, 2, 1, 4), "c")))

    def toy(source: Source) -> list[Finding]:
        return [finding(Span(1, 1, 1, 4), "TPF001", torn)]

    assert reasons(fix("abc\n", toy)) == ["its edits overlap"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_new_lines_end_as_the_others_do(newline: str) -> None:
    text = f"x = old{newline}y = 1{newline}"
    outcome = fix(text, word("old", "(1,\n    2)"))
    assert outcome.text == f"x = (1,{newline}    2){newline}y = 1{newline}"


def test_text_without_a_last_newline() -> None:
    assert fix("x = 1\ny = old", word("old", "new")).text == "x = 1\ny = new"


def test_code_that_only_parses_is_fixed_too() -> None:
    def toy(source: Source) -> list[Finding]:
        return word("old", "new")(source)

    text = "return old\n"
    outcome = apply_fixes(text, toy(Source("x.py", text)), lambda now: toy(Source("x.py", now)))
    assert outcome.text == "return new\n"


def test_what_no_longer_compiles_is_refused_though_it_parses() -> None:
    outcome = fix("def f():\n    return old\n", word("def f\\(\\):", "if f:"))
    assert reasons(outcome) == ["it would leave invalid Python"]


def test_what_cannot_be_checked_is_refused() -> None:
    toy = word("old", "new")
    text = "x = old\n"
    outcome = apply_fixes(text, toy(Source("x.py", text)), lambda now: None)
    assert outcome.text == text and reasons(outcome) == ["perflint cannot check what it would leave"]
