"""Decides if a base class may call the methods of its subclasses again and again: `for i in …: x = self.step(x)`."""

from __future__ import annotations

import ast

from perflint.semantics.memo import once_per_node
from perflint.semantics.model import Model
from perflint.semantics.structure import children

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)


@once_per_node
def is_called_in_loops(model: Model, cls: ast.ClassDef) -> bool:
    """True if a base class of the project calls a method that a class of the file defines in a loop."""
    info = next((each for each in model.module.structure.classes.values() if each.node is cls), None)
    lineage = model.lineage(f"{model.module.name}.{info.qualname}")[1:] if info is not None else ()
    for base in lineage:
        facts = model.view.memory.classes.get(base)
        module = model.view.loaded(facts.module) if facts is not None else None
        found = module.klass(facts.qualname) if module is not None and facts is not None else None
        if found is not None and info is not None and not _called_in_loops(found.node).isdisjoint(info.methods):
            return True
    return False


def _called_in_loops(cls: ast.ClassDef) -> set[str]:
    """The names of the own methods that a class calls in a loop."""
    found: set[str] = set()
    waiting: list[tuple[ast.AST, bool]] = [(cls, False)]
    while waiting:
        node, in_loop = waiting.pop()
        in_loop = in_loop or isinstance(node, _LOOPS)
        if in_loop and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "self":
                found.add(node.func.attr)
        waiting += ((child, in_loop) for child in children(node))
    return found
