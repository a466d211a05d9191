"""bfloat16 autocast around the call of a model and the loss."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from perflint.findings import Edit, Fix, Safety
from perflint.fixes.edits import under
from perflint.frozen import dataclass
from perflint.rules._since import AMP_AUTOCAST
from perflint.rules.traced.measured_autocast import MeasuredAutocast
from perflint.semantics.scanning import scan
from perflint.semantics.structure import block_in, path_of
from perflint.semantics.symbols import Symbols
from perflint.source.text import Source
from perflint.tracer.changes.base import Change, Refused, Won, quote, spelled
from perflint.tracer.changes.made import has_own_lines
from perflint.tracer.experiments.models import Autocast

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign)
FORMATS = re.compile(r"\bautocast\b|\bGradScaler\b|\.half\(|\bb?float16\b")
"""The words of a file that chooses formats itself."""
_UNSUPPORTED = re.compile(r"\bBCELoss\b|\bbinary_cross_entropy\(|\.numpy\(")
"""The loss that autocast rejects, and the conversion that does not know bfloat16."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Statements under autocast."""

    edits: tuple[Edit, ...]
    imports: tuple[str, ...]
    end: int
    """The line of the last of them."""


def _write(won: Won) -> Fix:
    """The fix for the step that calls one model. Raises Refused."""
    source = won.source
    call = next((each for each in scan(source.tree).every(ast.Call) if source.span(each) == won.span), None)
    cast = under_autocast(source, call)
    return Fix(
        "Compute forward and loss in bfloat16",
        Safety.RISKY,
        cast.edits,
        imports=cast.imports,
        since=AMP_AUTOCAST,
        proof="a trace timed it and compared the outputs",
    )


def under_autocast(source: Source, node: ast.AST | None) -> Cast:
    """The statements from the one that calls a model, which has or is a node, to the loss. Raises Refused."""
    if FORMATS.search(source.text):
        raise Refused("the file chooses formats itself")
    if found := _UNSUPPORTED.search(source.text):
        raise Refused(f"the file uses `{found[0].strip('(.')}`, which does not work with autocast to bfloat16")
    structure = scan(source.tree)
    while node is not None and not isinstance(node, ast.stmt):
        node = structure.parents.get(node)
    block = block_in(structure.parents.get(node), node) if node is not None else []
    if not isinstance(node, _SIMPLE) or not block:
        raise Refused("the model is not called in an assignment")
    stretch = _up_to_the_loss(source, block[block.index(node) :])
    symbols = Symbols(source.tree, structure)
    context, dtype = (spelled(symbols, f"torch.{name}", stretch[0]) for name in ("autocast", "bfloat16"))
    mark = quote(source)
    head = f"with {context.text}({mark}cuda{mark}, dtype={dtype.text}):"
    edits = under(source, stretch, head)
    if edits is None:
        raise Refused("a text of several lines, or another statement, stands there")
    return Cast(edits, (*context.imports, *dtype.imports), stretch[-1].end_lineno or stretch[-1].lineno)


def _up_to_the_loss(source: Source, following: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """The simple statements up to the loss that a later one backpropagates. Raises Refused."""
    for index, statement in enumerate(following):
        loss = _backpropagated(statement)
        if loss:
            return _up_to(source, following[:index], loss)
    raise Refused("no later statement of the block calls `backward` of a name")


def _up_to(source: Source, statements: Sequence[ast.stmt], loss: str) -> Sequence[ast.stmt]:
    """The statements up to the last that binds the loss. Raises Refused."""
    binding = [index for index, each in enumerate(statements) if loss in _targets(each)]
    if not binding:
        raise Refused(f"`{loss}` is not computed in the block that calls the model")
    stretch = statements[: binding[-1] + 1]
    if not all(isinstance(each, _SIMPLE) and has_own_lines(source, each) for each in stretch):
        raise Refused("other statements stand between the call of the model and the loss")
    return stretch


def _backpropagated(statement: ast.stmt) -> str:
    """The name in `NAME.backward()` or `engine.backward(NAME)`; empty for other statements."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(value, ast.Call):
        return ""
    if isinstance(value.func, ast.Attribute) and value.func.attr == "backward":
        given = value.args[0] if value.args else value.func.value
        return path_of(given)
    return ""


def _targets(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    found = [each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return {path_of(each) for each in found if each is not None}


CHANGE = Change(
    MeasuredAutocast, (Autocast.name,), "Compute forward and loss under `torch.autocast`.", _write, at_call=True
)
