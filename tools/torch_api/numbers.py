"""The arguments of torch's functions that are read from the GPU if a tensor is passed for the number.

Torch's argument parser reads a tensor without dimensions by `item()` if it is passed for a number (`Scalar`, `float`,
`int` or `int[]` in the schema of the operator): `x.add(y, alpha=t)` waits. `x.mul(t)` does not, because another form
of the operator takes a tensor there. So each candidate is called on small CPU tensors, once with numbers and once with
a tensor in place of one, under a mode that sees `aten::_local_scalar_dense`, which every read dispatches. The reads of
the parser and of Python code are the same on any device. A candidate without a sample that works is taken as its
schema says: it is read unless some form takes a tensor in its place.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torch_api import kinds, operands

_NUMBERS = ("number", "float", "int", "SymInt", "Scalar")
_LEFT_OUT = frozenset(
    """generator dtype out_dtype layout memory_format device pin_memory requires_grad mode compute_mode reduction
    interpolation_mode padding_mode _stacklevel""".split()
)
"""Arguments that are numbers in schemas only, or that code always writes down; so are dimensions."""
_DIMENSIONS = ("dim", "axis", "axes")
_INTERNAL = ("cudnn_", "miopen_", "mkldnn_", "quantized_", "fbgemm_", "native_", "fake_quantize_", "fused_")
_BY_HAND = {
    # The operators read them, below the mode that sees reads.
    "torch.linspace": "start@0 end@1 steps@2",
    "torch.logspace": "start@0 end@1 steps@2",
    # Its dimensions are sizes.
    "torch.tile": "dims@1",
    "torch.Tensor.tile": "dims@0+",
    # Its form for tensors reads the start, too.
    "torch.narrow": "start@2 length@3",
    "torch.Tensor.narrow": "start@1 length@2",
    # Tensors are operands, unless a size is given.
    "torch.normal": "",
}
_OF_PYTHON = {"torch.nn.utils": {"clip_grad_norm_": "max_norm@1", "clip_grad_value_": "clip_value@1"}}
"""Functions of Python that make a number of an argument: `float(max_norm)`."""
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, AssertionError, AttributeError, ArithmeticError)
_UNFIT = frozenset(
    """item tolist numpy storage untyped_storage backward set_ share_memory_ register_hook retain_grad
    register_post_accumulate_grad_hook data_ptr save load compile manual_seed seed set_num_threads
    set_num_interop_threads get_device from_dlpack""".split()
)
"""Functions that are not called: they read by themselves, change the process or wait for something."""


class Reads(TorchDispatchMode):
    """Counts the numbers that are read from tensors."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def numbers() -> dict[str, dict[str, str]]:
    """The arguments that are read, by name, by namespace.

    "alpha" goes by keyword only, "value@3" has a position, and "size@0+" takes all positions from there on.
    """
    found: dict[str, dict[str, str]] = {}
    for namespace, name, member in functions():
        by_hand = _BY_HAND.get(f"{namespace}.{name}")
        facts = dict.fromkeys(fact for fact, is_read in arguments(namespace, name, member) if is_read)
        if fact := " ".join(facts) if by_hand is None else by_hand:
            found.setdefault(namespace, {})[name] = fact
    return {**found, **_OF_PYTHON}


def functions() -> Iterator[tuple[str, str, Any]]:
    """The public functions and methods of torch, and those for lists of tensors: namespace, name, function."""
    for namespace, names in kinds.kinds().items():
        holder = kinds.NAMESPACES.get(namespace)
        grouped = [name for name in dir(torch) if name.startswith("_foreach_")] if holder is torch else []
        for name in (*names, *grouped) if holder is not None else ():
            member = getattr(holder, name, None)
            if callable(member) and name not in _UNFIT and not name.startswith(_INTERNAL):
                yield namespace, name, member


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function, or an argument in the schema of its operator."""

    name: str
    kind: str
    by_keyword: bool
    has_default: bool

    @property
    def is_number(self) -> bool:
        """True if it takes a number, or a list of numbers, that code may compute."""
        if self.name in _LEFT_OUT or any(part in self.name for part in _DIMENSIONS) or "bool" in self.kind.lower():
            return False
        return "Tensor" not in self.kind and any(part in self.kind for part in _NUMBERS)

    @property
    def is_list(self) -> bool:
        """True if it takes a list."""
        return "list" in self.kind.lower() or "[]" in self.kind

    def sample(self, whole: int, side: int) -> object:
        """An argument of its type: tensors with `side` dimensions, 0 or 1 (`whole`) for numbers."""
        if "Tensor" in self.kind:
            tensor = torch.full((4,) * side, 0.5)
            if self.name in ("index", "indices", "target") and whole:
                tensor = torch.zeros((4,) * min(side, 1), dtype=torch.long)
            return [tensor, tensor] if self.is_list else tensor
        if self.is_list:
            return [1] * max(side, 1)
        if "bool" in self.kind.lower():
            return False
        if "int" in self.kind.lower():
            return 0 if "dim" in self.name or self.name == "start" else 1
        return 1 if whole else 0.5


Form = list[Parameter]
"""One way to call a function."""


def forms_of(namespace: str, name: str, member: Any) -> list[Form]:
    try:
        written = list(inspect.signature(member).parameters.values())
    except (TypeError, ValueError):
        written = []
    if any(each.annotation is not each.empty for each in written):
        named = [each for each in written if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
        return [[Parameter(each.name, str(each.annotation), each.kind is each.KEYWORD_ONLY,
                           each.default is not each.empty) for each in named]]  # fmt: skip
    forms: list[Form] = []
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{operands.PREFIXES.get(namespace, '')}{name}"):
        if not any("Tensor" in str(each.type) for each in (*schema.arguments, *schema.returns)):
            # TorchScript's form of a function of Python.
            continue
        if namespace != "torch.Tensor" or (schema.arguments and schema.arguments[0].name == "self"):
            given = [each for each in schema.arguments if not each.is_out]
            forms.append([Parameter("input" if each.name == "self" else each.name, str(each.type), each.kwarg_only,
                                    each.has_default_value()) for each in given])  # fmt: skip
    return forms


def arguments(namespace: str, name: str, member: Any) -> Iterator[tuple[str, bool]]:
    """The arguments of a function that are numbers, and whether a tensor for one is read."""
    forms = forms_of(namespace, name, member)
    for form in forms:
        for position, parameter in enumerate(form):
            if not parameter.is_number:
                continue
            rivals = [each.kind for other in forms for at, each in enumerate(other) if at == position]
            # A tensor in this place is an operand of the other form, unless the name of the number is given.
            asked = replace(parameter, by_keyword=parameter.by_keyword or any("Tensor" in kind for kind in rivals))
            is_read = _is_read(member, [asked if each is parameter else each for each in form], asked)
            if is_read is None:
                named = [each.kind for other in forms for each in other if each.name == parameter.name]
                is_read = not any("Tensor" in kind for kind in (*rivals, *named))
            at = position - (namespace == "torch.Tensor")
            several = "+" if parameter.is_list and at == 0 else ""
            yield parameter.name if asked.by_keyword else f"{parameter.name}@{at}{several}", is_read


Call = tuple[list[object], dict[str, object]]


def calls(form: Form, parameter: Parameter) -> Iterator[tuple[Call, Call]]:
    """Calls that may work, each with a number for a parameter and with a tensor in its place."""
    for side, whole in product((2, 1, 3, 4, 0), (0, 1)):
        number = parameter.sample(whole, side)
        tensor = [torch.tensor(number[0]), *number[1:]] if isinstance(number, list) else torch.tensor(number)
        samples = {each: each.sample(whole, side) for each in form}
        yield (
            _call(form, {**samples, parameter: number}, parameter),
            _call(form, {**samples, parameter: tensor}, parameter),
        )


def _call(form: Form, samples: dict[Parameter, object], wanted: Parameter) -> Call:
    positional: list[object] = []
    named: dict[str, object] = {}
    for at, each in enumerate(form):
        if each.by_keyword or len(positional) < at:
            if each is wanted or not each.has_default:
                named[each.name] = samples[each]
        elif each is wanted or not each.has_default:
            positional.append(samples[each])
    return positional, named


def _is_read(member: Any, form: Form, parameter: Parameter) -> bool | None:
    """True if a tensor for a number is read, False if it is not, or refused; None if no sample works."""
    refused = False
    for number, tensor in calls(form, parameter):
        before = _reads(member, number)
        after = None if before is None else _reads(member, tensor)
        if before is not None and after is not None:
            return after > before
        refused = refused or before is not None
    return False if refused else None


def _reads(member: Any, call: Call) -> int | None:
    """How many numbers a call reads; None if it raises."""
    # Functions that draw until a number fits read as often as they draw. `torch.manual_seed` would format a stack.
    torch.default_generator.manual_seed(0)
    with Reads() as mode:
        try:
            member(*call[0], **call[1])
        except REFUSALS:
            return None
    return mode.count
