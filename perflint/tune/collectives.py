"""Joins collectives that each reduce one tensor: neighbours in a block, and those of a loop over tensors."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby

from perflint.findings import Edit, Span
from perflint.fixes.edits import delete_statement, indentation, insert
from perflint.fixes.imports import import_edits
from perflint.frozen import dataclass
from perflint.semantics.scanning import scan
from perflint.semantics.structure import block_in, names_in
from perflint.semantics.symbols import Symbols
from perflint.source.text import Source
from perflint.tracer.changes.made import has_own_lines
from perflint.tune.edited import behind_imports, edited
from perflint.tune.evidence import Evidence
from perflint.tune.refused import Refused

_HELPER = '''

def all_reduce_together(tensors, *options, **named):
    """Reduces several tensors in place over all processes, those of one format up to 32 MB in one collective."""
    tensors, parts, size = list(tensors), {}, 0
    is_shared = len({x.untyped_storage().data_ptr() for x in tensors}) < len(tensors)
    for x in tensors:
        # Tensors that share memory are reduced one after the other.
        key = len(parts) if is_shared else (x.dtype, x.device, size >> 25)
        parts.setdefault(key, []).append(x.detach())
        size += x.numel() * x.element_size()
    for part in parts.values():
        flat = torch.cat([x.flatten() for x in part])
        torch.distributed.all_reduce(flat, *options, **named)
        for x, new in zip(part, flat.split([x.numel() for x in part])):
            x.copy_(new.view_as(x))

'''
_NAME = "all_reduce_together"
_SINCE = (2, 0)
"""The first torch with `torch.Tensor.untyped_storage`."""


def joined(texts: Mapping[str, str], evidence: Evidence) -> dict[str, str]:
    """The files that reduce several tensors one after the other, which become one call. Raises Refused."""
    if not evidence.seen.distributed:
        raise Refused("the process is alone", 1)
    if evidence.oldest is not None and evidence.oldest < _SINCE:
        raise Refused("the project allows a torch older than 2.0", 1)
    found = {}
    for path in sorted(evidence.seen.lines.keys() & texts.keys()):
        source, lines = Source(path, texts[path]), evidence.seen.lines[path]
        line, _ = behind_imports(source.tree.body) or (0, ())
        edits = list(_Joining(source, lines).edits())
        if edits and line and _NAME not in source.text:
            edits += [*import_edits(source, ["import torch"]), insert(line, 1, _HELPER)]
            found[path] = edited(source, edits)
    if not found:
        raise Refused("no collectives that ran can be joined", 1)
    return found


@dataclass(frozen=True, slots=True)
class _Reduction:
    """A statement that reduces a tensor in place."""

    statement: ast.stmt
    tensor: ast.expr
    options: str
    """The text of the other arguments, each behind a comma."""


class _Joining:
    """The collectives of a file, of which some lines made calls."""

    def __init__(self, source: Source, lines: Collection[int]) -> None:
        self._source = source
        self._lines = lines
        self._structure = scan(source.tree)
        self._symbols = Symbols(source.tree, self._structure)

    def edits(self) -> Iterator[Edit]:
        """The edits that join them."""
        found = {each.statement: each for call in self._structure.every(ast.Call) for each in self._reduction(call)}
        blocks = {id(block): block for each in found for block in [self._block(each)]}
        for block in blocks.values():
            for options, group in groupby(block, lambda each: found[each].options if each in found else None):
                near = list(group)
                if options is not None and len(near) > 1:
                    tensors = ", ".join(self._source.written(found[each].tensor) for each in near)
                    yield self._call(near[0], near[-1], f"({tensors})", options)
                elif options is not None:
                    yield from self._in_loop(found[near[0]], block)

    def _reduction(self, call: ast.Call) -> Iterator[_Reduction]:
        statement = self._structure.parents[call]
        keywords = {each.arg: each.value for each in call.keywords}
        if (
            isinstance(statement, ast.Expr)
            and call.lineno in self._lines
            and has_own_lines(self._source, statement)
            and self._symbols.full_name(call.func) == "torch.distributed.all_reduce"
            and 0 < len(call.args) < 4
            and keywords.keys() <= {"op", "group"}
            and all(map(_is_plain, (*call.args, *keywords.values())))
        ):
            written = self._source.written
            others = [*map(written, call.args[1:]), *(f"{name}={written(each)}" for name, each in keywords.items())]
            yield _Reduction(statement, call.args[0], "".join(f", {each}" for each in others))

    def _block(self, statement: ast.stmt) -> list[ast.stmt]:
        return block_in(self._structure.parents[statement], statement)

    def _in_loop(self, one: _Reduction, block: list[ast.stmt]) -> Iterator[Edit]:
        """The edits that take the first statement of a loop's turns out of it."""
        loop, test = self._structure.parents[one.statement], ""
        if isinstance(loop, ast.If) and not loop.orelse and _asks_for_none(loop.test):
            test, branch = f" if {self._source.written(loop.test)}", loop
            loop = self._structure.parents[branch]
            if isinstance(loop, ast.For) and loop.body != [branch]:
                return
        if not isinstance(loop, ast.For) or loop.orelse or block[0] is not one.statement:
            return
        rest = block[1:]
        over, name = loop.iter, ast.unparse(loop.target)
        is_literal = isinstance(over, (ast.Tuple, ast.List)) and all(map(_is_plain, over.elts)) and not rest
        if not (is_literal or _are_parameters(over)) or names_in(one.tensor) != {name}:
            return
        written = self._source.written
        listed = f"[{written(one.tensor)} for {name} in {written(over)}{test}]"
        if is_literal and written(one.tensor) == name and not test:
            listed = written(over)
        if not rest and not self._is_used_behind(loop, name):
            yield self._call(loop, loop, listed, one.options)
        elif rest and all(self._stays(each, one.tensor) for each in rest):
            yield self._call(loop, None, listed, one.options)
            yield delete_statement(self._source, one.statement, block)

    def _call(self, first: ast.stmt, last: ast.stmt | None, tensors: str, options: str) -> Edit:
        """The joined call in the place of some statements, or in front of the first."""
        end = first.lineno if last is None else (last.end_lineno or last.lineno) + 1
        margin = indentation(self._source, first.lineno)
        return Edit(Span(first.lineno, 1, end, 1), f"{margin}{_NAME}({tensors}{options})\n")

    def _is_used_behind(self, loop: ast.For, name: str) -> bool:
        around = ast.walk(self._symbols.scope_around(loop).node)
        names = (each for each in around if isinstance(each, ast.Name) and each.lineno > (loop.end_lineno or 0))
        return any(each.id == name and isinstance(each.ctx, ast.Load) for each in names)

    def _stays(self, statement: ast.stmt, tensor: ast.expr) -> bool:
        """True if a statement only changes the tensor of its turn: `p.grad /= size`, `p.grad.div_(size)`."""
        if isinstance(statement, ast.AugAssign):
            target: ast.expr = statement.target
            given = [statement.value]
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            function, given = statement.value.func, statement.value.args
            if statement.value.keywords or not isinstance(function, ast.Attribute) or function.attr[-1] != "_":
                return False
            target = function.value
        else:
            return False
        own, changed = (ast.unparse(each).removesuffix(".data") for each in (tensor, target))
        return own == changed and all(_is_plain(each) or self._is_size(each) for each in given)

    def _is_size(self, node: ast.expr) -> bool:
        called = self._symbols.full_name(node.func) if isinstance(node, ast.Call) else ""
        return called == "torch.distributed.get_world_size"


def _is_plain(node: ast.expr) -> bool:
    """True for names, their attributes and elements by constants, and for constants."""
    if isinstance(node, ast.Attribute):
        return _is_plain(node.value)
    if isinstance(node, ast.Subscript):
        return _is_plain(node.value) and isinstance(node.slice, ast.Constant)
    return isinstance(node, (ast.Name, ast.Constant))


def _are_parameters(node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) and not node.args and not node.keywords else None
    return isinstance(function, ast.Attribute) and function.attr == "parameters" and _is_plain(function.value)


def _asks_for_none(test: ast.expr) -> bool:
    """True for `p.requires_grad` and `p.grad is not None`."""
    if isinstance(test, ast.BoolOp):
        return all(map(_asks_for_none, test.values))
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], (ast.Is, ast.IsNot)) and _is_plain(test.left) and _is_plain(test.comparators[0])
    return isinstance(test, ast.Attribute) and test.attr == "requires_grad" and _is_plain(test)
