"""Signatures in comments."""

from __future__ import annotations

import ast

import pytest

from perflint.source.text import Source

SIGNATURE = """\
def f(self, é, size=2):
    # type: (List[Tensor], int) -> Tensor
    return é
"""
BESIDE = """\
def f(
    self,
    x,  # type: Tensor
    y: int,  # type: str
    z,  # type: ignore[thing]
    w=1,
):
    return x
"""


def function(text: str) -> tuple[Source, ast.FunctionDef]:
    """The only function of a text."""
    source = Source("a.py", text)
    (node,) = source.tree.body
    assert isinstance(node, ast.FunctionDef)
    return source, node


def said(source: Source, node: ast.FunctionDef) -> dict[str, str]:
    """The annotations, as they stand in the text."""
    found = {arg.arg: arg.annotation for arg in node.args.args} | {"return": node.returns}
    return {name: source.segment(source.span(kind)) for name, kind in found.items() if kind is not None}


def test_a_signature_below_the_def_leaves_self_out() -> None:
    assert said(*function(SIGNATURE)) == {"é": "List[Tensor]", "size": "int", "return": "Tensor"}


def test_types_beside_parameters_do_not_overrule_annotations() -> None:
    assert said(*function(BESIDE)) == {"x": "Tensor", "y": "int"}


@pytest.mark.parametrize(
    "comment",
    ["(Tensor) -> Tensor", "(...) -> Tensor", "(int, int, int, int) -> Tensor"],
)
def test_a_signature_of_other_length_tells_the_result_only(comment: str) -> None:
    assert said(*function(f"def f(a, b, c):\n    # type: {comment}\n    return a\n")) == {"return": "Tensor"}


@pytest.mark.parametrize("comment", ["a number", "(Tensor", "ignore", "(->)"])
def test_other_comments_say_nothing(comment: str) -> None:
    text = f"def f(a):\n    # type: {comment}\n    return a  # type: {comment}\n"
    assert said(*function(text)) == {}


@pytest.mark.parametrize("comment", ["# type: ignore", "#type:ignore", "# type:  ignore[thing]"])
def test_a_file_whose_comments_only_silence_a_type_checker_is_parsed_without_them(comment: str) -> None:
    # Python's parser collects them if it is asked for types, which takes longer.
    assert Source("a.py", f"x = f()  {comment}\n").tree.type_ignores == []


def test_functions_in_all_blocks_get_their_types() -> None:
    signature = "# type: (Tensor) -> Tensor"
    blocks = ["if c:", "else:", "for i in c:", "while c:", "with c:", "try:", "except E:", "finally:", "class A:"]
    text = "".join(f"{block}\n    def f(a):\n        {signature}\n        return a\n" for block in blocks)
    text += f"match c:\n    case 1:\n        async def f(a):\n            {signature}\n            return a\n"
    functions = [node for node in ast.walk(Source("a.py", text).tree) if hasattr(node, "returns")]
    assert len(functions) == len(blocks) + 1
    assert all(node.returns is not None and node.args.args[0].annotation is not None for node in functions)
