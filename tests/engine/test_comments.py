"""Comments that silence findings: unused, misspelt, without a reason; for blocks; and what `fix` does to them."""

from __future__ import annotations

import pytest

from tests.cli.command import Command

HEAD = "import torch\n\n\n"
LOOP = HEAD + "def train(model, loader, optimizer):\n    for batch in loader:\n        loss = model(batch.cuda())\n"
STEP = "        loss.backward()\n        optimizer.step()\n"
READ = "        total = loss.item()"
RULES = "--select=TPF101,TPF98"


def codes(perflint: Command, text: str, *options: str) -> list[str]:
    """The line and code of each finding in a text."""
    perflint.write("a.py", text)
    ran = perflint("check", "a.py", "--output-format=concise", *options)
    return [":".join(line.split(":")[1:2]) + line.split(":")[3][:7] for line in ran.out.splitlines()]


def fixed(perflint: Command, text: str, *options: str) -> str:
    """A text after all safe fixes."""
    perflint.write("a.py", text)
    perflint("fix", "a.py", "--apply", *options)
    return (perflint.folder / "a.py").read_text()


CASES = [
    (f"{READ}  # perflint: ignore[TPF101] shown to the user\n", []),
    (f"{READ}\n", ["7 TPF101"]),
    (f"{READ}  # perflint: ignore[TPF1]\n", []),
    (f"{READ}  # perflint: ignore[tpf101]\n", []),
    (f"{READ}  # perflint: ignore\n", []),
    (f"{READ}  # perflint: ignore[TPF1O1]\n", ["7 TPF101", "7 TPF982"]),
    (f"{READ}  # perflint: ignore[scalar-read-in-lop]\n", ["7 TPF101", "7 TPF982"]),
    (f"{READ}  # perflint: ignore[TPF101, TPF999]\n", ["7 TPF982"]),
    (f"{READ}  # perflint: ignore[]\n", ["7 TPF101", "7 TPF981"]),
    (f"{READ}  # perflint: ignore[ALL]\n", []),
    (f"{READ}  # perflint: ignore[TPF]\n", []),
    (f"{READ}  # perflint: ignore[T]\n", ["7 TPF101", "7 TPF982"]),
    # Not all rules are on.
    ("        total = loss  # perflint: ignore[ALL]\n", []),
    (f"{READ}  # perflint: disable=TPF101\n", ["7 TPF101", "7 TPF982"]),
    (f"{READ}  # perflint: ignore-line[TPF101]\n", ["7 TPF101", "7 TPF982"]),
    (f"{READ}  # perflint: ignore TPF101\n", ["7 TPF982"]),
    (f"{READ}  # perflint: ignore TPF999\n", ["7 TPF101", "7 TPF982"]),
    (f"{READ}  # perflint: sync-free\n", ["7 TPF101"]),
    ("        total = loss  # perflint: ignore[TPF101] was needed\n", ["7 TPF981"]),
    # TPF204 is not selected, so nobody can say that it is unused.
    ("        total = loss  # perflint: ignore[TPF204]\n", []),
    ("        total = loss  # perflint: ignore\n", []),
    ("        total = loss  # noqa: TPF101\n", []),
    # Only a trace has findings of TPF192.
    ("        total = loss  # perflint: ignore[TPF192]\n", []),
    ("        text = '# perflint: ignore[TPF101]'\n", []),
]


def test_each_fault_of_a_comment_has_its_rule(perflint: Command) -> None:
    text = LOOP + "        total = loss  # perflint: ignore[TPF101, TPF999]\n" + STEP
    assert codes(perflint, text, "--select=TPF101,TPF981") == ["7 TPF981"]
    assert codes(perflint, text, "--select=TPF101,TPF982") == ["7 TPF982"]
    everything = LOOP + "        total = loss  # perflint: ignore[ALL]\n" + STEP
    assert "7 TPF981" in codes(perflint, everything, "--select=ALL")


@pytest.mark.parametrize(("line", "expected"), CASES)
def test_comments_on_a_line(perflint: Command, line: str, expected: list[str]) -> None:
    assert codes(perflint, LOOP + line + STEP, RULES) == expected


def test_a_comment_without_a_list_is_judged_only_if_all_rules_are_on(perflint: Command) -> None:
    assert "1 TPF981" in codes(perflint, "x = 1  # perflint: ignore\n")
    assert codes(perflint, "x = 1  # perflint: ignore\n", "--ignore=TPF101") == []
    assert "1 TPF981" in codes(perflint, "# perflint: ignore-file\nx = 1\n")


def test_what_a_stricter_profile_finds_counts_as_used(perflint: Command) -> None:
    cold = HEAD + "x = torch.ones(3, device='cuda').sum().item()  # perflint: ignore[TPF101] once\n"
    assert codes(perflint, cold, RULES) == []
    assert codes(perflint, cold.replace("  # perflint: ignore[TPF101] once", ""), RULES, "--profile=audit") != []


BLOCKS = [
    ("def train(model, loader, optimizer):  # perflint: ignore-block[TPF101] a report", []),
    ("def train(  # perflint: ignore-block[TPF101] a report\n    model, loader, optimizer\n):", []),
    ("def train(\n    model, loader, optimizer\n):  # perflint: ignore-block[TPF101] a report", []),
    ("def train(model, loader, optimizer):  # perflint: ignore-block[TPF102] a report", ["TPF101"]),
    ("x = 1  # perflint: ignore-block[TPF101]\ndef train(model, loader, optimizer):", ["TPF982", "TPF101"]),
    (
        "def other():  # perflint: ignore-block[TPF101]\n    pass\ndef train(model, loader, optimizer):",
        ["TPF981", "TPF101"],
    ),
]


@pytest.mark.parametrize(("head", "expected"), BLOCKS)
def test_blocks(perflint: Command, head: str, expected: list[str]) -> None:
    text = LOOP.replace("def train(model, loader, optimizer):", head) + READ + "\n" + STEP
    assert [found.split(" ")[1] for found in codes(perflint, text, RULES)] == expected


def test_a_block_ends_where_it_ends(perflint: Command) -> None:
    text = LOOP.replace("loader:", "loader:  # perflint: ignore-block[TPF101] a report") + READ + "\n" + STEP
    again = text + "    for batch in loader:\n        print(model(batch).item())\n"
    assert codes(perflint, text, RULES) == []
    assert len(codes(perflint, again, RULES)) == 1


def test_reasons_may_be_required(perflint: Command) -> None:
    perflint.write("pyproject.toml", "[tool.perflint]\nrequire-reasons = true\n")
    assert codes(perflint, LOOP + f"{READ}  # perflint: ignore[TPF101]\n" + STEP, RULES) == ["7 TPF983"]
    assert codes(perflint, LOOP + f"{READ}  # perflint: ignore[TPF101]: #12\n" + STEP, RULES) == []


FIXES = [
    ("x = 1  # perflint: ignore[TPF101] the scheduler needs #12\n", "x = 1\n"),
    ("x = 1  # perflint: ignore[TPF101] why # type: ignore\n", "x = 1 # type: ignore\n"),
    ("x = 1  # type: ignore  # perflint: ignore[TPF101]\n", "x = 1  # type: ignore\n"),
    ("# perflint: ignore-file[TPF101]\nx = 1\n", "x = 1\n"),
    ("# perflint: ignore-file[TPF101]\r\nx = 1\r\n", "x = 1\r\n"),
    ("x = 1\n# perflint: ignore-file[TPF101]", "x = 1\n"),
    ("x = 1  # perflint: ignore[zzz, qqq]\n", "x = 1\n"),
    (f"{HEAD}s = torch.cuda.amp.GradScaler()  # perflint: ignore[TPF101, TPF902, TPF103] why\n", None),
]


@pytest.mark.parametrize(("before", "after"), FIXES)
def test_fix_removes_what_is_unused(perflint: Command, before: str, after: str | None) -> None:
    expected = before.replace("TPF101, TPF902, TPF103", "TPF902") if after is None else after
    perflint.write("a.py", before.encode())
    perflint("fix", "a.py", "--apply")
    assert (perflint.folder / "a.py").read_bytes() == expected.encode()


def test_fix_corrects_a_misspelt_code(perflint: Command) -> None:
    text = fixed(perflint, LOOP + f"{READ}  # perflint: ignore[TPF1O1] why\n" + STEP, RULES)
    assert "ignore[TPF101] why" in text
    assert "ignore" not in fixed(perflint, "x = 1  # perflint: ignore[TPF1O1] why\n", RULES)


@pytest.mark.parametrize(
    ("word", "meant"),
    [("scalar-read-in-lop", "scalar-read-in-loop"), ("Scalar_Read_In_Loop", "scalar-read-in-loop"), ("scalar", None)],
)
def test_fix_corrects_a_misspelt_name(perflint: Command, word: str, meant: str | None) -> None:
    text = LOOP + f"{READ}  # perflint: ignore[{word}] why\n" + STEP
    perflint.write("a.py", text)
    assert (f"did you mean `{meant}`?" in perflint("check", "a.py", RULES).out) == (meant is not None)
    assert (f"ignore[{meant}] why" in fixed(perflint, text, RULES)) == (meant is not None)


@pytest.mark.parametrize("comment", ["# perflint: ignore[TPF101] why", "# perflint: ignore"])
def test_a_comment_above_its_line_is_not_removed(perflint: Command, comment: str) -> None:
    text = LOOP + f"        {comment}\n{READ}\n" + STEP
    perflint.write("a.py", text)
    assert "help: a comment silences findings on its own line" in perflint("check", "a.py").out
    assert comment in fixed(perflint, text)
    assert comment not in fixed(perflint, LOOP + f"        total = loss  {comment}\n" + STEP)


def test_comments_may_be_left_out(perflint: Command) -> None:
    text = LOOP + f"{READ}  # perflint: ignore[TPF101] why\n" + STEP
    assert codes(perflint, text, RULES, "--no-ignores") == ["7 TPF101"]
    assert codes(perflint, text, RULES, "--config", "respect-comments=false") == ["7 TPF101"]
    assert codes(perflint, text.replace("perflint: ignore[TPF101] why", "noqa"), RULES, "--no-ignores") == ["7 TPF101"]
