"""Lines that a fix makes longer than the formatter of the project allows."""

from __future__ import annotations

import ast
from itertools import takewhile

from perflint.fixes.layout import line_length_of
from perflint.semantics.sites import Site

_WITHIN = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Attribute)
_LONGEST, _LONGEST_CHAIN = 120, 88
"""Characters of a line if the file shows no limit: the most, and those that all formatters leave in one line."""


def makes_long_line(site: Site, new: str) -> bool:
    """True if an expression becomes so long that formatters would break a larger expression around it.

    Lines are broken at their last bracket, which does not help inside of an operator or of code in several lines.
    """
    model, node = site.model, site.node
    is_chain = isinstance(model.parent(node), ast.Attribute)
    limit = line_length_of(model.source) or (_LONGEST_CHAIN if is_chain else _LONGEST)
    lines, old = new.splitlines(), site.text(node)
    if "\n" in old or "\n" in new:
        longest = max(site.span.column - 1 + len(lines[0]), *map(len, lines[1:])) if lines[1:] else len(lines[0])
        return is_chain or longest > limit
    line = model.source.lines[site.span.line - 1].rstrip()
    length = len(line) + len(new) - len(old)
    around = takewhile(lambda each: not isinstance(each, ast.stmt), model.ancestors(node))
    return length > limit and any(isinstance(each, _WITHIN) for each in around)
