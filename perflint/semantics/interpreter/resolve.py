"""The meaning of names: in a module, as a builtin, through imports."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from functools import partial

from perflint.semantics.binders import Binding, How
from perflint.semantics.facts import libraries, torch_api
from perflint.semantics.interpreter.decorators import captured
from perflint.semantics.interpreter.frame import Budget, Frame, Names
from perflint.semantics.interpreter.memory import ClassFacts
from perflint.semantics.interpreter.settled import by_code
from perflint.semantics.interpreter.top_levels import take_over
from perflint.semantics.lattice import union
from perflint.semantics.module import Module
from perflint.semantics.values import (
    FLOAT,
    NEVER,
    UNKNOWN,
    Class,
    Dtype,
    Function,
    Mapping,
    Name,
    Scalar,
    Sequence,
    Union,
    Value,
    scalar_type,
)
from perflint.semantics.view import View

_BUILTINS = frozenset(dir(builtins))
_MOST_STARS = 32
_DTYPES = frozenset(
    """bool uint8 int8 int16 int32 int64 short int long half float double bfloat16 float16 float32
    float64 complex64 complex128 cfloat cdouble uint16 uint32 uint64 float8_e4m3fn float8_e5m2""".split()
)


def global_name(frame: Frame, module: Module, name: str) -> Value:
    """The meaning of a name at the top level of a module, or as a builtin."""
    state = frame.view.state(module)
    known = state.meanings.get(name)
    if known is not None:
        return known
    value = _own_name(frame, module, name)
    if value is not None:
        found = _with_rebindings(frame, module, name, resolve(frame, module, value))
        if (state.names is None or state.is_run) and _is_final(frame, value):
            state.meanings[name] = found
        return found
    if name in _BUILTINS:
        return Name(f"builtins.{name}")
    return _from_stars(frame, module, name) or UNKNOWN


def _is_final(frame: Frame, value: Value) -> bool:
    """True if the meaning of a value no longer depends on a question that is being answered."""
    resolved = frame.view.memory.resolved
    return all(
        member.receiver is not None or member.name in resolved for member in value.members if isinstance(member, Name)
    )


def _with_rebindings(frame: Frame, module: Module, name: str, value: Value) -> Value:
    """A variable of the top level for code that runs later: a function may have bound it by `global`."""
    state = frame.view.state(module)
    if state.is_running:
        return value
    value = by_code(frame, module.name.rpartition(".")[2], name, _filled(value))
    bound = module.symbols.rebound.get(name, ())
    if not bound:
        return value

    def later() -> Value:
        # The names of that function stay unknown.
        inner = Frame(frame.view, module, frame.budget, names={})
        return union(_rebound(inner, each) for each in bound)

    return union([value, frame.view.memory.remembered(state.rebound, name, later, NEVER)])


def _filled(value: Value) -> Value:
    """A container of the top level for code that runs later: an empty list or dict is there to be filled."""
    if isinstance(value, Mapping) and value.element is NEVER and not value.items:
        return Mapping(UNKNOWN)
    if isinstance(value, Sequence) and value.type in ("list", "set") and value.element is NEVER:
        return Sequence(value.type, UNKNOWN)
    return value


def _rebound(frame: Frame, binding: Binding) -> Value:
    """The value that a function binds to a name of the top level."""
    if binding.value is None or not binding.whole or binding.how not in (How.ASSIGNED, How.NAMED, How.AUGMENTED):
        return UNKNOWN if binding.how is not How.DECLARED else NEVER
    value = frame.evaluate(binding.value)
    if binding.how is not How.AUGMENTED:
        return value
    kind = scalar_type(value)
    return Scalar(kind) if kind in ("int", "float") else UNKNOWN


def _defined(frame: Frame, module: Module, name: str) -> Value | None:
    own = _own_name(frame, module, name)
    return _from_stars(frame, module, name) if own is None else own


def _own_name(frame: Frame, module: Module, name: str) -> Value | None:
    state = frame.view.state(module)
    names = state.names
    if names is not None and not state.is_run and name in module.assigned:
        frame.view.memory.assumes(_running(module))
    if names is not None and name in names:
        return names[name]
    statement = module.definitions.get(name)
    if isinstance(statement, ast.ClassDef):
        return class_at(frame.view, module, statement)
    if statement is not None:
        return function_value(module, statement)  # type: ignore[arg-type]
    if name in module.imports:
        return Name(module.imports[name])
    if names is None and name in module.constants:
        # Running the top level would give the same.
        return Frame(frame.view, module, frame.budget, names={}).evaluate(module.constants[name])
    if names is None and name in module.assigned:
        found = run_top_level(frame.view, module, frame.budget).get(name)
        if found is not None:
            return found
    return None


_CUSTOMARY = {
    "torch": "torch",
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "np": "numpy",
    "tqdm": "tqdm.tqdm",
    "trange": "tqdm.trange",
    "DataLoader": "torch.utils.data.DataLoader",
}
"""The usual meaning of names, for files that get them from an `import *` of an unknown module."""


def _from_stars(frame: Frame, module: Module, name: str) -> Value | None:
    """A name that `import *` brings; packages that re-export hundreds of modules are not searched."""
    if name.startswith("_") or not 0 < len(module.stars) <= _MOST_STARS:
        return None
    starred = frame.view.state(module).starred
    return frame.view.memory.remembered(starred, name, partial(_starred, frame, module, name), None)


def _starred(frame: Frame, module: Module, name: str) -> Value | None:
    for star in module.stars:
        source = frame.view.find(star, module)
        if source is None and name in _CUSTOMARY:
            return Name(_CUSTOMARY[name])
        found = None if source is None or source is module else _defined(frame, source, name)
        if source is not None and found is not None:
            return resolve(frame, source, found)
    return None


def run_top_level(view: View, module: Module, budget: Budget) -> Names:
    """The names of a module after its top level, which is run unless another check has done so."""
    return take_over(view, module, budget, _run_here)


def _run_here(view: View, module: Module, budget: Budget) -> int:
    frame = Frame(view, module, budget, names={})
    return run_module(frame, lambda: frame.run(module.tree.body))


def run_module(frame: Frame, run: Callable[[], None]) -> int:
    """Run the top level of a frame's module. Until the end, answers that use its variables are provisional.

    The result is the outermost open question that its variables rest on, or `WHOLE`.
    """
    state, memory, mark = frame.view.state(frame.module), frame.view.memory, _running(frame.module)
    state.names = frame.names
    state.meanings.clear()
    start = memory.begin(mark)
    try:
        with memory.run(mark):
            run()
    finally:
        # The values of its variables are final now.
        rests_on = memory.end(mark, start)
        state.names = frame.names or {}
        state.is_run = True
    return rests_on


def _running(module: Module) -> tuple[str, str]:
    """The question of a module's variables, as `Memory.open` has it."""
    return "top level", module.name


def resolve(frame: Frame, module: Module, value: Value) -> Value:
    """The meaning of an imported name: a definition of the project if there is one."""
    if isinstance(value, Union):
        # `try: from ops import read`, and `read = None` if that fails.
        return union([resolve(frame, module, member) for member in value.members])
    if not isinstance(value, Name) or value.receiver is not None:
        return value
    name = value.name
    resolved = frame.view.memory.resolved
    known = resolved.get(name)
    if known is None:
        # Imports may go round in circles: while one is resolved it is a plain name.
        known = frame.view.memory.remembered(resolved, name, lambda: _resolve(frame, module, name), value)
    return known


def _resolve(frame: Frame, module: Module, name: str) -> Value:
    if name.startswith(("torch.", "builtins.")):
        return _torch_name(torch_api.canonical(name))
    if "." not in name or frame.view.find(name, module) is not None:
        return Name(name)
    base, _, last = name.rpartition(".")
    owner = frame.view.find(base, module)
    if owner is None:
        return _resolve_below(frame, module, base, last)
    found = _defined(frame, owner, last)
    if found is None:
        return UNKNOWN
    return by_code(frame, base.rpartition(".")[2], last, resolve(frame, owner, found))


def _resolve_below(frame: Frame, module: Module, base: str, last: str) -> Value:
    """A member of a member: `package.module.Class.attribute`."""
    if "." in base and frame.view.find(base.split(".", 1)[0], module) is not None:
        value = resolve(frame, module, Name(base))
        if value != Name(base):
            return frame.attribute(value, last)
    full = f"{base}.{last}"
    return FLOAT if full in _NUMBERS else libraries.public(full)


_NUMBERS = {f"{module}.{name}" for module in ("torch", "math", "numpy") for name in ("inf", "nan", "pi", "e")}


def _torch_name(name: str) -> Value:
    if name in _NUMBERS:
        return FLOAT
    if name.startswith("torch.") and name[6:] in _DTYPES:
        return Dtype(name[6:])
    return Name(name)


def imported(frame: Frame, base: str, name: str) -> Value:
    """The object that `from base import name` binds; resolved when it is used."""
    return Name(f"{base}.{name}" if base else name)


# Definitions


def function_value(
    module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, frame: Frame | None = None
) -> Function:
    """The function that a definition makes, in the activation that it is in."""
    info = module.defined_by(node)
    qualname = info.qualname if info is not None else "<lambda>"
    owner = f"{module.name}.{info.owner}" if info is not None and info.owner else ""
    seen = () if frame is None else captured(frame, info)
    return Function(module.name, qualname, node.lineno, node.col_offset, owner, None, seen)


def class_value(frame: Frame, node: ast.ClassDef) -> Class:
    """The class that a definition makes."""
    return class_at(frame.view, frame.module, node)


def class_at(view: View, module: Module, node: ast.ClassDef) -> Class:
    """The class defined at a node, entered into the project's knowledge."""
    info = module.structure.classes_at[node.lineno, node.col_offset]
    name = f"{module.name}.{info.qualname}"
    if name not in view.memory.classes:
        view.memory.classes[name] = ClassFacts(name, module.name, info.qualname, info.moved)
    return Class(name)
