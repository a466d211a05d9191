"""Comments that silence findings."""

from __future__ import annotations

import time

import pytest

from perflint.findings import Confidence, Effect, Finding, Heat, Severity, Span
from perflint.source.suppressions import Suppressions
from perflint.source.text import Source


def finding(line: int = 1, end_line: int | None = None) -> Finding:
    """A finding of TPF101, scalar-read-in-loop, on some lines."""
    return Finding(
        "a.py",
        Span(line, 1, end_line or line, 2),
        "TPF101",
        "scalar-read-in-loop",
        "message",
        Severity.WARNING,
        Confidence.HIGH,
        Heat.HOT,
        Effect.SYNC,
    )


def silenced(text: str, line: int = 1, end_line: int | None = None) -> bool:
    """True if a finding on some lines is silenced."""
    return Suppressions(Source("a.py", text)).cover(finding(line, end_line))


COMMENTS = [
    ("# noqa", True),
    ("#noqa", True),
    ("# NOQA", True),
    ("# NoQA: TPF101", True),
    ("# noqa:TPF101", True),
    ("# noqa: tpf101", False),
    ("# noqa : TPF101", True),
    ("# noqa: E501, TPF101", True),
    ("# noqa: E501,TPF101", True),
    ("# noqa: E501 TPF101", True),
    ("# noqa: TPF1", True),
    ("# noqa: TPF", True),
    ("# noqa: TPF102", False),
    ("# noqa: E501", False),
    ("# noqa: scalar-read-in-loop", True),
    ("# noqa: other-rule", False),
    ("# noqa: the loop is short", True),
    ("# noqa: TPF101 the loop is short", True),
    ("# type: ignore  # noqa: TPF101", True),
    ("# noqa: E501  # noqa: TPF101", True),
    ("# noqa-other", False),
    ("# noqathing", False),
    ("# about noqa", False),
    ("# perflint: ignore", True),
    ("#perflint:ignore", True),
    ("# perflint: ignore the loop is short", True),
    ("# perflint: ignore[TPF101]", True),
    ("# perflint: ignore[TPF101] the loop is short", True),
    ("# perflint: ignore [TPF101]", True),
    ("# perflint: ignore[TPF102, TPF101]", True),
    ("# perflint: ignore[scalar-read-in-loop]", True),
    ("# perflint: ignore[TPF1]", True),
    ("# perflint: ignore[ALL]", True),
    ("# perflint: ignore[TPF102]", False),
    ("# perflint: ignore[]", False),
    ("# perflint: ignored", False),
    ("# perflint: ignore-line", False),
    ("# perflint: off", False),
    ("# type: ignore", False),
    ("# fine", False),
]


@pytest.mark.parametrize(("comment", "expected"), COMMENTS)
def test_comments(comment: str, expected: bool) -> None:
    assert silenced(f"x.item()  {comment}\n") is expected


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r", ""])
def test_newlines(ending: str) -> None:
    assert silenced(f"a = 1{ending or chr(10)}x.item()  # noqa{ending}", 2)


def test_only_its_own_line() -> None:
    text = "a = 1  # noqa\nx.item()\nb = 2  # noqa\n"
    assert [silenced(text, line) for line in (1, 2, 3)] == [True, False, True]


def test_the_first_or_the_last_line() -> None:
    text = "f(  # noqa\n    x,\n    y,\n)\n"
    assert silenced(text, 1, 4)
    assert not silenced(text, 2)
    text = "f(\n    x,  # noqa\n    y,\n)  # perflint: ignore[TPF101]\n"
    assert silenced(text, 1, 4)
    assert silenced(text, 2)
    assert not silenced(text, 3)


def test_the_end_of_a_string() -> None:
    text = "a = f'''\n{x.item()}\n'''  # noqa\nb = 1\n"
    assert silenced(text, 1)
    assert silenced(text, 2)
    assert not silenced(text, 4)
    assert not silenced("a = f'''\n{x.item()}\n'''\nb = 1  # noqa\n", 2)


def test_the_end_of_joined_lines() -> None:
    text = "a = x.item() + \\\n    y + \\\n    z  # noqa\nb = 1\n"
    assert [silenced(text, line) for line in (1, 2, 3, 4)] == [True, True, True, False]


def test_strings_and_backslashes_together() -> None:
    text = "a = x.item(), \\\n  '''\n''', '''\n'''  # noqa\n"
    assert [silenced(text, line) for line in (1, 2, 3, 4)] == [True, True, True, True]


def test_a_backslash_that_ends_a_comment_joins_nothing() -> None:
    assert not silenced("x.item()  # a \\\nb = 1  # noqa\n", 1)


@pytest.mark.parametrize(
    "text",
    ["x.item(); s = '# noqa'\n", 's = """\n# perflint: ignore-file\n"""\nx.item()\n', "x.item()\n# noqa\n"],
)
def test_what_is_no_comment_of_the_line(text: str) -> None:
    assert not any(silenced(text, line) for line in range(1, text.count("\n")) or (1,))
    assert not silenced(text)


FILES = [
    ("# perflint: ignore-file\n", True),
    ("# perflint: ignore-file[TPF1] generated\n", True),
    ("# perflint: ignore-file[scalar-read-in-loop]\n", True),
    ("# perflint: ignore-file[TPF102]\n", False),
    ("# perflint: ignore-files\n", False),
]


@pytest.mark.parametrize(("comment", "expected"), FILES)
def test_whole_files(comment: str, expected: bool) -> None:
    assert silenced(f"{comment}\n\nx.item()\n", 3) is expected
    assert silenced(f"x.item()\nb = 1\n\n{comment}", 1) is expected


def test_text_that_tokenize_does_not_understand_keeps_what_was_read() -> None:
    assert silenced("x.item()  # noqa\ny = (\n", 1)


def test_files_without_the_words_are_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    import tokenize

    def unexpected(*_: object) -> object:
        raise AssertionError

    monkeypatch.setattr(tokenize, "generate_tokens", unexpected)
    assert not silenced("x.item()  # fine\n")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("# flake8: noqa", True),
        ("  # FLAKE8=NOQA", True),
        ("# flake8:noqa: E501", True),
        ("x = 1  # flake8: noqa", False),
        ("# flake8: no", False),
    ],
)
def test_a_file_that_flake8_leaves_out(line: str, expected: bool) -> None:
    assert silenced(f"if x:\n    y.item()\n{line}\n", 2) is expected


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# perflint: ignore TPF101", True),
        ("# perflint: ignore TPF999", False),
        ("# perflint: ignore(TPF101, TPF105) why", True),
        ("# perflint: ignore: TPF105", False),
        ("# perflint: ignore the H200 and GPT2 need it", True),
    ],
)
def test_codes_without_brackets(comment: str, expected: bool) -> None:
    assert silenced(f"x.item()  {comment}\n", 1) is expected


@pytest.mark.parametrize(
    "open_bracket", ["# perflint: ignore[", "# perflint: ignore-file[", "# noqa: TPF", "# noqa: a-"]
)
def test_a_line_of_comments_without_an_end(open_bracket: str) -> None:
    text = "x.item()  " + open_bracket * 20_000
    start = time.process_time()
    silenced(text)
    assert time.process_time() - start < 2


def test_many_comments_are_looked_through_once() -> None:
    text = "".join(f"x.item()  # perflint: ignore-file[TPF9{n}] ignore[TPF{n}] noqa: TPF8{n}\n" for n in range(4000))
    suppressions = Suppressions(Source("a.py", text))
    start = time.process_time()
    for line in range(1, 4001):
        suppressions.cover(finding(line))
    assert time.process_time() - start < 2
