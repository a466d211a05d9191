"""Lines that fixes make too long are broken as black would."""

from __future__ import annotations

import ast

import pytest

from perflint.fixes.layout import breaks
from perflint.fixes.rewrite import rewrite
from perflint.source.text import Source

LONG = "a" * 30

CASES = {
    "arguments that fit into a line": (
        f"x = torch.zeros({LONG}, {LONG}, device=device_of_it)\n",
        f"x = torch.zeros(\n    {LONG}, {LONG}, device=device_of_it\n)\n",
    ),
    "one in a line, with a comma at the end": (
        f"x = torch.zeros({LONG}, {LONG}, {LONG}, device=d)\n",
        f"x = torch.zeros(\n    {LONG},\n    {LONG},\n    {LONG},\n    device=d,\n)\n",
    ),
    "the outer bracket": (
        f"x = torch.zeros(f({LONG}, {LONG}), g({LONG}))\n",
        f"x = torch.zeros(\n    f({LONG}, {LONG}),\n    g({LONG}),\n)\n",
    ),
    "the last bracket that holds something": (
        f"x = torch.zeros({LONG}).where({LONG}, {LONG}).contiguous()\n",
        f"x = torch.zeros({LONG}).where(\n    {LONG}, {LONG}\n).contiguous()\n",
    ),
    "a generator takes no comma": (
        f"x = torch.stack_of_all_of_them({LONG} for {LONG} in {LONG})\n",
        f"x = torch.stack_of_all_of_them(\n    {LONG} for {LONG} in {LONG}\n)\n",
    ),
    "a subscript of one element takes no comma": (
        f"x = table[{LONG} + {LONG} + {LONG} + {LONG}]\n",
        f"x = table[\n    {LONG} + {LONG} + {LONG} + {LONG}\n]\n",
    ),
    "one argument takes no comma": (
        f"x = table({LONG} + {LONG} + {LONG} + {LONG})\n",
        f"x = table(\n    {LONG} + {LONG} + {LONG} + {LONG}\n)\n",
    ),
    "a comment stays at the end": (
        f"x = torch.zeros({LONG}, {LONG}, device=device)  # why\n",
        f"x = torch.zeros(\n    {LONG}, {LONG}, device=device\n)  # why\n",
    ),
    "within a block, with tabs": (
        f"if x:\n\tx = torch.full_like({LONG}, {LONG}, device=d)\n",
        f"if x:\n\tx = torch.full_like(\n\t\t{LONG}, {LONG}, device=d\n\t)\n",
    ),
    "line ends of Windows": (
        f"x = torch.zeros({LONG}, {LONG}, device=device_of_it)\r\n",
        f"x = torch.zeros(\r\n    {LONG}, {LONG}, device=device_of_it\r\n)\r\n",
    ),
    "a line that is part of a call": (
        f"f(\n    torch.full_like({LONG}, {LONG}, device=d),\n)\n",
        f"f(\n    torch.full_like(\n        {LONG}, {LONG}, device=d\n    ),\n)\n",
    ),
    "no bracket": (f"x = {LONG} + {LONG} + {LONG}\n", f"x = {LONG} + {LONG} + {LONG}\n"),
    "brackets in strings": (f"x = f'{{({LONG}, {LONG}, {LONG})}}'\n", f"x = f'{{({LONG}, {LONG}, {LONG})}}'\n"),
    "arguments beside a generator": (
        f"x = fold((y for y in {LONG}), {LONG}, {LONG})\n",
        f"x = fold(\n    (y for y in {LONG}),\n    {LONG},\n    {LONG},\n)\n",
    ),
    "all arguments of a call in one line": (
        f"x = f(\n    {LONG}, size=({LONG}, 1), other={LONG}\n)\n",
        f"x = f(\n    {LONG},\n    size=({LONG}, 1),\n    other={LONG},\n)\n",
    ),
    "all arguments of a call in one line, with a comma": (
        f"x = f(\n    {LONG}, {LONG}, {LONG},\n)\n",
        f"x = f(\n    {LONG},\n    {LONG},\n    {LONG},\n)\n",
    ),
    "brackets that other lines open and close": (
        f"x = f(g(\n    {LONG}), h({LONG}, {LONG}\n))\n",
        f"x = f(g(\n    {LONG}), h({LONG}, {LONG}\n))\n",
    ),
    "all indices in one line": (
        f"x = f()[\n    {LONG}, size({LONG}, 1), other, {LONG}\n]\n",
        f"x = f()[\n    {LONG}, size({LONG}, 1), other, {LONG}\n]\n",
    ),
    "some arguments of a call": (
        f"x = f({LONG},\n      size=g({LONG}, 1), other={LONG}, last={LONG})\n",
        f"x = f({LONG},\n      size=g({LONG}, 1), other={LONG}, last={LONG})\n",
    ),
    "a bracket that starts too late": (
        f"x = Normal({LONG}, {LONG}, validate_args=False).rsample(sample_shape)\n",
        f"x = Normal(\n    {LONG}, {LONG}, validate_args=False\n).rsample(sample_shape)\n",
    ),
    "a bracket behind which too much stands": (
        f"x = f({LONG}).g({LONG}).{LONG}_{LONG}\n",
        f"x = f({LONG}).g(\n    {LONG}\n).{LONG}_{LONG}\n",
    ),
    "a comment for a tool": (
        f"x = torch.zeros({LONG}, {LONG}, device=device)  # type: ignore\n",
        f"x = torch.zeros({LONG}, {LONG}, device=device)  # type: ignore\n",
    ),
    "operands": (
        f"x = torch.full({LONG}, {LONG}, device=d) * {LONG}\n",
        f"x = torch.full({LONG}, {LONG}, device=d) * {LONG}\n",
    ),
    "one operand before a bracket": (
        f"x = {LONG} * torch.full({LONG}, {LONG}, device=d)\n",
        f"x = {LONG} * torch.full(\n    {LONG}, {LONG}, device=d\n)\n",
    ),
    "a product of a sum before a bracket": (
        f"x = {LONG} + y * torch.full({LONG}, {LONG}, device=d)\n",
        f"x = {LONG} + y * torch.full(\n    {LONG}, {LONG}, device=d\n)\n",
    ),
    "two sums before a bracket": (
        f"x = {LONG} + y + torch.full({LONG}, {LONG}, device=d)\n",
        f"x = {LONG} + y + torch.full({LONG}, {LONG}, device=d)\n",
    ),
    "the last choice on its line": (
        f"x = (\n    {LONG}\n    if y\n    else torch.full_like({LONG}, {LONG}, device=d)\n)\n",
        f"x = (\n    {LONG}\n    if y\n    else torch.full_like(\n        {LONG}, {LONG}, device=d\n    )\n)\n",
    ),
    "the last operand on its line": (
        f"x = (\n    {LONG}\n    + torch.full_like({LONG}, {LONG}, device=device)\n)\n",
        f"x = (\n    {LONG}\n    + torch.full_like(\n        {LONG}, {LONG}, device=device\n    )\n)\n",
    ),
    "one operand in brackets": (
        f"x = (\n    {LONG} * torch.full({LONG}, {LONG}, device=d)\n)\n",
        f"x = (\n    {LONG} * torch.full({LONG}, {LONG}, device=d)\n)\n",
    ),
    "several targets": (
        f"first, second = torch.full({LONG}, {LONG}, device=d)\n",
        f"first, second = torch.full(\n    {LONG}, {LONG}, device=d\n)\n",
    ),
    "a value that fits into the next line": (
        f"{LONG}, {LONG}, last = torch.stack_of_all_of_them([a, b, c])\n",
        f"{LONG}, {LONG}, last = (\n    torch.stack_of_all_of_them([a, b, c])\n)\n",
    ),
    "targets that fill the line": (
        f"{LONG}, {LONG}, {LONG} = torch.stack([a, b, c]).tolist()\n",
        f"(\n    {LONG},\n    {LONG},\n    {LONG},\n) = torch.stack([a, b, c]).tolist()\n",
    ),
    "all arguments of a call that is a statement": (
        f"f(\n    {LONG}, {LONG}, {LONG}\n)\n",
        f"f(\n    {LONG},\n    {LONG},\n    {LONG},\n)\n",
    ),
    "all arguments of a call of a result": (
        f"x = f()(\n    {LONG}, {LONG}, {LONG}\n)\n",
        f"x = f()(\n    {LONG},\n    {LONG},\n    {LONG},\n)\n",
    ),
    "keywords among targets and in the value": (
        f"{LONG}, {LONG}[f(k=1)] = torch.stack_of_all(abc, dim=0)\n",
        f"{LONG}, {LONG}[f(k=1)] = (\n    torch.stack_of_all(abc, dim=0)\n)\n",
    ),
    "an asynchronous loop": (
        f"async def f():\n    async for x in torch.full({LONG}, {LONG}, d=d):\n        pass\n",
        f"async def f():\n    async for x in torch.full(\n        {LONG}, {LONG}, d=d\n    ):\n        pass\n",
    ),
    "a membership of a sum": (
        f"x = {LONG} in y + torch.full({LONG}, {LONG}, device=d)\n",
        f"x = {LONG} in y + torch.full({LONG}, {LONG}, device=d)\n",
    ),
    "a tuple that ends in a name": (
        f"x = torch.full({LONG}, {LONG}, device=device), b\n",
        f"x = torch.full({LONG}, {LONG}, device=device), b\n",
    ),
    "two targets": (
        f"{LONG}_{LONG}, last = torch.stack_of_all_of_them([a, b, c])\n",
        f"{LONG}_{LONG}, last = (\n    torch.stack_of_all_of_them([a, b, c])\n)\n",
    ),
    "one target that is unpacked": (
        f"{LONG}_{LONG}, = torch.stack_of_all_of_them([a, b, c])\n",
        f"{LONG}_{LONG}, = torch.stack_of_all_of_them([a, b, c])\n",
    ),
    "one target": (f"{LONG}.{LONG}.{LONG} = f(x)\n", f"{LONG}.{LONG}.{LONG} = f(x)\n"),
    "two assignments in one": (f"{LONG}, {LONG}, b = {LONG} = f(x)\n", f"{LONG}, {LONG}, b = {LONG} = f(x)\n"),
    "members": (
        f"x, y, z = torch.full({LONG}, d), last, torch.full({LONG}, device=device)\n",
        f"x, y, z = torch.full({LONG}, d), last, torch.full({LONG}, device=device)\n",
    ),
    "a choice": (
        f"x = f({LONG}, {LONG}) if condition else g({LONG})\n",
        f"x = f({LONG}, {LONG}) if condition else g({LONG})\n",
    ),
    "the head of a loop": (
        f"for x in torch.full({LONG}, {LONG}, device=device):\n    pass\n",
        f"for x in torch.full(\n    {LONG}, {LONG}, device=device\n):\n    pass\n",
    ),
    "a bracket behind the end of another": (
        f"x = f(\n    1\n).g(torch.full({LONG}, {LONG}, device=d))\n",
        f"x = f(\n    1\n).g(\n    torch.full({LONG}, {LONG}, device=d)\n)\n",
    ),
    "a line that fits": ("x = torch.zeros(1, device=device)\n", "x = torch.zeros(1, device=device)\n"),
}


def laid_out(before: str, after: str, line_length: int | None = None) -> str:
    """A text after its lines have been broken."""
    edited = Source("a.py", after)
    return rewrite(edited, breaks(Source("a.py", before), edited, line_length)).text


@pytest.mark.parametrize("case", CASES)
def test_breaks(case: str) -> None:
    text, expected = CASES[case]
    found = laid_out("x = 1\n", text)
    assert found == expected
    assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(text))
    assert laid_out("x = 1\n", found) == found


def test_lines_that_were_there_stay() -> None:
    text = CASES["the outer bracket"][0]
    assert laid_out("pass\n" * 200 + text, "pass\n" * 200 + text) == "pass\n" * 200 + text


def test_a_file_of_long_lines_keeps_them() -> None:
    text = CASES["the outer bracket"][0]
    assert laid_out(f"x = {'b' * 150}\n", text) == text
    assert laid_out(f"x = {'b' * 110}\n", text) == text


@pytest.mark.parametrize("line", ["x = f({}, a)", "from a import {}, b", "x = y[{}] + z"])
def test_a_long_line_that_could_be_broken_shows_a_higher_limit(line: str) -> None:
    text = f"x = torch.zeros({LONG}, {LONG}, device=of_it)\n"
    assert 88 < len(text) - 1 <= 100
    longer = line.format("b" * (100 - len(line))) + "\n"
    assert 88 < len(longer) - 1 <= 100
    assert laid_out("x = 1\n" * 200 + longer, text) == text
    for kept in (f"x = {'b' * 94}\n", f"{longer[:-1]}  # b\n", f"x = '{'(b) ' * 24}'\n"):
        assert laid_out("x = 1\n" * 200 + kept, text) != text


def test_the_length_of_the_formatter_decides() -> None:
    text, expected = f"made = f({LONG}, {LONG}, device=d)\n", f"made = f(\n    {LONG}, {LONG}, device=d\n)\n"
    assert laid_out("x = 1\n", text, len(text) - 1) == text
    assert laid_out("x = 1\n", text, len(text) - 2) == expected
    assert laid_out(f"x = '{'b' * 150}'\n" * 9, text, 60) != text


def test_narrow_lines_stay_narrow() -> None:
    text = f"made = f({LONG}, {LONG}, device=d)\n"
    broken = f"made = f(\n    {LONG}, {LONG}, device=d\n)\n"
    assert 80 < len(text) - 1 <= 88
    nearly = f"y = '{'b' * 74}'\n"
    assert laid_out("x = 1\n" * 100 + nearly * 5, text) == broken
    assert laid_out("x = 1\n" * 100 + nearly, text) == text
    assert laid_out(nearly * 5, text) == text


@pytest.mark.parametrize(
    "long",
    [
        f'"""Made of {"words " * 20}"""\n',
        f'"""Made of\n\n{"words " * 20}\n"""\n',
        f"# Made of {'words ' * 20}\n",
        f"raise ValueError('made of {'words ' * 20}')\n",
    ],
)
def test_lines_of_text_may_be_longer(long: str) -> None:
    text, expected = CASES["the outer bracket"]
    assert laid_out("x = 1\n" * 10 + long, text) == expected
    code = f"x = {'b' * 140}\n"
    assert laid_out("x = 1\n" * 10 + code, text) == text
    # Text below or above makes no text of the code.
    assert laid_out("x = 1\n" * 10 + code + long, text) == text
    assert laid_out("x = 1\n" * 10 + long + code, text) == text


@pytest.mark.parametrize(("length", "is_text"), [(37, False), (38, True)])
def test_a_string_of_forty_characters_is_text(length: int, is_text: bool) -> None:
    text, expected = CASES["the outer bracket"]
    line = f"raise ValueError({'b' * 100} + '{'w' * length}')\n"
    assert laid_out("x = 1\n" * 10 + line, text) == (expected if is_text else text)
