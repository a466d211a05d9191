"""libcst, imported when it is first used: a file with nothing to report never pays for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst as cst
else:

    class _OnDemand:
        """Stands for the module until an attribute of it is asked for."""

        def __getattr__(self, name: str) -> object:
            import libcst

            found = getattr(libcst, name)
            setattr(self, name, found)
            return found

    cst = _OnDemand()

__all__ = ["code", "cst", "parse_expression"]


def parse_expression(text: str) -> cst.BaseExpression:
    """The expression in `text`, which may span lines that an outer bracket joins in its file.

    Raises libcst.ParserSyntaxError if `text` is not an expression.
    """
    if "\n" not in text and "\r" not in text:
        try:
            return cst.parse_expression(text)
        except cst.ParserSyntaxError:
            # `x := y` and `yield` stand alone only where a statement's grammar lets them.
            pass
    wrapped = cst.parse_expression(f"({text})")
    return wrapped.with_changes(lpar=wrapped.lpar[1:], rpar=wrapped.rpar[:-1])


def code(node: cst.CSTNode) -> str:
    """The text of a node, with its own comments and white space."""
    return cst.Module([]).code_for_node(node)
