"""The effect of the project's own decorators on a function."""

from __future__ import annotations

from functools import partial

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.lattice import widen
from perflint.semantics.module import Module
from perflint.semantics.structure import FunctionInfo, last_name
from perflint.semantics.values import UNKNOWN, Function, Instance, Partial, Value

_KEEPING = frozenset(
    """property cached_property staticmethod classmethod abstractmethod overload override final contextmanager
    asynccontextmanager no_grad inference_mode enable_grad setter getter deleter wraps cache lru_cache compile
    script jit disable unused ignore export custom_fwd custom_bwd fixture dataclass""".split()
)
"""Decorators that are read where they matter, or that keep the function."""
_MOST_WRAPPERS = 16
"""Of one function; a wrapper holds the one below it, and so on, which takes long to compare."""
_MOST_CAPTURED = 100
"""The weight of a captured value beyond which it is unknown."""


def call(frame: Frame, module: Module, info: FunctionInfo, function: Function, arguments: Arguments) -> Value:
    """The result of a decorated function; UNKNOWN if its decorators are not the project's."""
    made = _wrapper(frame, module, info, function)
    if made is None:
        return UNKNOWN
    if function.receiver is not None:
        positional = (function.receiver, *arguments.positional)
        arguments = Arguments(positional, arguments.keywords, arguments.unpacked, arguments.rest)
    # The wrapper does not count as one more call in depth.
    asker = Frame(frame.view, frame.module, frame.budget, names={}, depth=max(frame.depth - 1, 0))
    asker.constructs = frame.constructs
    value = asker.apply(made, arguments)
    # If the wrapper hides the result, the function itself shows it.
    return UNKNOWN if value.is_open else value


def is_wrapped(info: FunctionInfo) -> bool:
    """True if a function has decorators that may change its result."""
    if info.wrapped is None:
        info.wrapped = any(last_name(node) not in _KEEPING for node in getattr(info.node, "decorator_list", ()))
    return info.wrapped


def _wrapper(frame: Frame, module: Module, info: FunctionInfo, function: Function) -> Value | None:
    # A decorator may call the function that it decorates.
    key = (module.name, function.line, function.column)
    compute = partial(_decorated, frame, module, info, function)
    return frame.view.memory.remembered(frame.view.memory.wrappers, key, compute, None)


def _decorated(frame: Frame, module: Module, info: FunctionInfo, function: Function) -> Value | None:
    plain = Function(
        function.module, function.qualname, function.line, function.column, function.owner, plain=True
    )  # fmt: skip
    value: Value = plain
    inner = Frame(frame.view, module, frame.budget, names={})
    wrapped = 0
    for decorator in reversed(getattr(info.node, "decorator_list", ())):
        made = inner.evaluate(decorator)
        if isinstance(made, (Function, Partial)):
            wrapped += 1
            if wrapped > _MOST_WRAPPERS:
                return UNKNOWN
            changed = inner.apply(made, Arguments((value,)))
            value = changed if isinstance(changed, (Function, Partial, Instance)) else value
    return None if value == plain else value


def captured(frame: Frame, info: FunctionInfo | None) -> tuple[tuple[str, Value], ...]:
    """The free variables of a function that the activation which makes it binds, as they are then."""
    if info is None or frame.function is None or frame.names is None:
        return ()
    found = [(name, frame.get(name)) for name in sorted(info.names)]
    return tuple([(name, _kept(value)) for name, value in found if value is not None])


def _kept(value: Value) -> Value:
    """A captured value; of one that holds too much, nothing: functions that capture functions stay small."""
    return UNKNOWN if value.weight > _MOST_CAPTURED else widen(value)
