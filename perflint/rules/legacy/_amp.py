"""The uses of the AMP names of `torch.cuda.amp` and `torch.cpu.amp` in a file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from perflint.frozen import dataclass
from perflint.semantics.structure import walk
from perflint.semantics.symbols import Symbols

MENTIONED = r"\b(?:cuda|cpu)(?:\.amp\b|\s+import\b[^;]*?\bamp\b)"
_DEPRECATED = re.compile(r"torch\.(cuda|cpu)\.amp(?:\.autocast_mode|\.grad_scaler)?\.(\w+)")
_MEMBERS = {
    "cuda": frozenset({"autocast", "GradScaler", "custom_fwd", "custom_bwd"}),
    "cpu": frozenset({"autocast", "GradScaler"}),
}
_MODERN = re.compile(r"torch\.(autocast|GradScaler)|torch\.amp\.\w+")


@dataclass(frozen=True, slots=True)
class Reference:
    """One expression that names a deprecated class or function.

    `member` is "autocast", "GradScaler", "custom_fwd" or "custom_bwd", `device` "cuda" or "cpu".
    """

    node: ast.Name | ast.Attribute
    device: str
    member: str

    @property
    def root(self) -> ast.Name:
        """The name that the expression starts with."""
        node: ast.expr = self.node
        while isinstance(node, ast.Attribute):
            node = node.value
        assert isinstance(node, ast.Name)
        return node

    @property
    def modern(self) -> str:
        """The full name to use instead."""
        return f"torch.amp.{self.member}"


def references(tree: ast.Module, names: Symbols) -> Iterator[Reference]:
    """The references to deprecated names, in no particular order."""
    for node in walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            match = _DEPRECATED.fullmatch(names.full_name(node))
            if match and match[2] in _MEMBERS[match[1]]:
                yield Reference(node, match[1], match[2])


def offers_modern(nodes: Iterable[ast.AST], device: str, names: Symbols) -> bool:
    """True if some code uses `torch.amp` for `device` or for a device from an argument, or names it without a call."""
    called: set[ast.AST] = set()
    for root in nodes:
        for node in walk(root):
            if isinstance(node, ast.Call):
                called.add(node.func)
                if _MODERN.fullmatch(names.full_name(node.func)) and _device_type(node) in (device, None):
                    return True
            elif isinstance(node, ast.Attribute) and node not in called and _MODERN.fullmatch(names.full_name(node)):
                # `partial(torch.amp.custom_fwd, device_type="cuda")`
                return True
    return False


def _device_type(call: ast.Call) -> str | None:
    """The device type in a call of today's AMP; None if it is not a literal."""
    given = [keyword.value for keyword in call.keywords if keyword.arg in ("device_type", "device")] or call.args[:1]
    if given and isinstance(given[0], ast.Constant) and isinstance(given[0].value, str):
        return given[0].value
    return None
