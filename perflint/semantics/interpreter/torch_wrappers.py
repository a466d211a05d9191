"""Functions of torch that call, or wrap, the functions and modules they are given."""

from __future__ import annotations

from collections.abc import Callable

from perflint.frozen import replace
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.lattice import union
from perflint.semantics.values import (
    BY_GRAPHED,
    NONE,
    UNKNOWN,
    Function,
    Instance,
    Mapping,
    Name,
    Partial,
    Sequence,
    Tensor,
    Union,
    Value,
)

Special = Callable[[Frame, Arguments], Value]


def _compiled(frame: Frame, arguments: Arguments) -> Value:
    """A compiled module or function stays the same, but may run as CUDA graphs; without an argument, a decorator."""
    given, mode = arguments.get("model", 0), arguments.literal("mode", None)
    if given is None:
        return UNKNOWN
    if mode in ("reduce-overhead", "max-autotune"):
        return as_graphs(given, f'torch.compile(…, mode="{mode}")')
    if arguments.literal("backend", None) == "cudagraphs":
        return as_graphs(given, 'torch.compile(…, backend="cudagraphs")')
    return given


def _graphed(frame: Frame, arguments: Arguments) -> Value:
    """The functions and modules that are recorded as CUDA graphs: one, or a tuple of them."""
    return as_graphs(arguments.at(0), BY_GRAPHED)


def as_graphs(value: Value, by: str) -> Value:
    """A function or module, or a tuple of them, that a call makes run as CUDA graphs."""
    if isinstance(value, (Function, Instance)):
        return replace(value, graphs=by)
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple([as_graphs(each, by) for each in value.items])
        return Sequence(value.type, as_graphs(value.element, by), items)
    if isinstance(value, Union):
        return union([as_graphs(each, by) for each in value.members])
    return Instance("torch.nn.Module", graphs=by) if value.is_unknown else value


def _parallel(frame: Frame, arguments: Arguments) -> Value:
    """A module that takes its inputs along to its GPU, otherwise the given one; an unknown one is a module."""
    return _taking_along(arguments.at(0))


def _distributed(frame: Frame, arguments: Arguments) -> Value:
    """A parallel module. It takes its inputs along if it has one device, which `device_ids` names."""
    ids = arguments.get("device_ids", 1)
    return _taking_along(arguments.at(0), ids is not None and NONE not in ids.members)


def _taking_along(value: Value, takes: bool = True) -> Value:
    if isinstance(value, Union):
        return union([_taking_along(each, takes) for each in value.members])
    if isinstance(value, Instance):
        return replace(value, takes_inputs_along=takes)
    return Instance("torch.nn.Module", takes_inputs_along=takes) if value.is_unknown else value


def _checkpoint(frame: Frame, arguments: Arguments) -> Value:
    rest = Arguments(arguments.positional[1:], (), arguments.unpacked, arguments.rest)
    return frame.apply(arguments.at(0), rest)


def _checkpoint_sequential(frame: Frame, arguments: Arguments) -> Value:
    return frame.apply(arguments.at(0), Arguments((arguments.get("input", 2) or UNKNOWN,)))


def _functional_call(frame: Frame, arguments: Arguments) -> Value:
    given, named = arguments.get("args", 2), arguments.get("kwargs", 3)
    positional = given.items if isinstance(given, Sequence) else () if given is None else (given,)
    keywords = named.items if isinstance(named, Mapping) else ()
    return frame.apply(arguments.at(0), Arguments(positional or (), keywords, positional is None))


def _made(name: str) -> Special:
    """A function that is made of another: `torch.vmap(f)`."""
    return lambda frame, arguments: Partial(Name(f"{name}.__call__"), (arguments.at(0),))


def _mapped(frame: Frame, arguments: Arguments) -> Value:
    """`vmap(f)(x)`: `f` gets tensors with one dimension less, and its results get one more."""
    seen = Arguments(tuple([_one(value) for value in arguments.positional[1:]]), arguments.keywords)
    return _ranked(frame.apply(arguments.at(0), seen))


def _one(value: Value) -> Value:
    if isinstance(value, Tensor):
        return value.with_(rank=None if value.rank is None else max(value.rank - 1, 0), leaf="")
    return value


def _ranked(value: Value) -> Value:
    if isinstance(value, Tensor):
        return value.with_(rank=None if value.rank is None else value.rank + 1, leaf="")
    if isinstance(value, Sequence):
        items = None if value.items is None else tuple(map(_ranked, value.items))
        return Sequence(value.type, _ranked(value.element), items)
    return value


def _gradient(frame: Frame, arguments: Arguments) -> Value:
    """`grad(f)(x)` is like `x`."""
    over = arguments.at(1).tensor
    return UNKNOWN if over is None else over.with_(leaf="")


def _gradient_and_value(frame: Frame, arguments: Arguments) -> Value:
    rest = Arguments(arguments.positional[1:], arguments.keywords)
    pair = (_gradient(frame, arguments), frame.apply(arguments.at(0), rest))
    return Sequence("tuple", union(pair), pair)


FUNCTIONS: dict[str, Special] = {
    "torch.compile": _compiled,
    **{f"torch.{name}.make_graphed_callables": _graphed for name in ("cuda", "cuda.graphs", "xpu", "xpu.graphs")},
    "torch.nn.DataParallel": _parallel,
    "torch.nn.parallel.DataParallel": _parallel,
    "torch.nn.parallel.DistributedDataParallel": _distributed,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.utils.checkpoint.checkpoint_sequential": _checkpoint_sequential,
    "torch.func.functional_call": _functional_call,
    "torch.nn.utils.stateless.functional_call": _functional_call,
    **{name: _made("torch.vmap") for name in ("torch.vmap", "torch.func.vmap")},
    "torch.vmap.__call__": _mapped,
    "torch.func.grad": _made("torch.func.grad"),
    "torch.func.grad.__call__": _gradient,
    "torch.func.grad_and_value": _made("torch.func.grad_and_value"),
    "torch.func.grad_and_value.__call__": _gradient_and_value,
}
