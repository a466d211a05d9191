"""Facts about packages other than torch, read from `libraries.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from perflint.semantics.facts import arrays, distributions, frameworks, packed_sequence, torch_api
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.values import (
    BOOL,
    UNKNOWN,
    Array,
    Const,
    Device,
    DeviceValue,
    Instance,
    Kind,
    Name,
    Scalar,
    Sequence,
    Tensor,
    Value,
)


@cache
def _facts() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("libraries.toml").read_text("utf-8"))


@cache
def _returns() -> tuple[dict[str, str], dict[str, str]]:
    exact: dict[str, str] = {}
    below: dict[str, str] = {}
    for kind, names in _facts()["returns"].items():
        for name in names.split():
            if name.endswith(".*"):
                below[name[:-2]] = kind
            else:
                exact[name] = kind
    return exact, below


def returns(name: str) -> str:
    """The kind of a function's result as in the file's `[returns]`, empty when unknown."""
    exact, below = _returns()
    if name in exact:
        return exact[name]
    parent = name
    while "." in parent:
        parent = parent.rpartition(".")[0]
        if parent in below:
            return below[parent]
    return ""


@cache
def _wrappers() -> frozenset[str]:
    return frozenset(_facts()["iterates"]["same"].split())


def is_transparent(name: str) -> bool:
    """Whether a callable yields what its first argument yields."""
    return name in _wrappers()


def public(name: str) -> Name:
    """A name outside the project under the name that the facts use."""
    return Name(_facts()["aliases"].get(name, name))


@cache
def bases(name: str) -> tuple[str, ...]:
    """The known bases of a class outside the project, nearest first."""
    facts = torch_api.module(name)
    if facts is not None:
        rest = () if name == "torch.nn.Module" else ("torch.nn.Module",)
        return (*facts.bases, *rest) if "torch.nn.Module" not in facts.bases else facts.bases
    base = _facts()["bases"].get(name)
    if base is not None:
        return (base, *bases(base))
    if torch_api.is_optimizer(name) and name != "torch.optim.Optimizer":
        return ("torch.optim.Optimizer",)
    if name == "torch.nn.Parameter":
        return ("torch.Tensor",)
    return ()


_MODULE_FLAGS = {"training": BOOL}


def attribute(cls: str, value: Instance, name: str) -> Value | None:
    """An attribute of an object of a class outside the project; None when the class does not know it."""
    if cls == "torch.nn.Module":
        if name in _MODULE_FLAGS:
            return _MODULE_FLAGS[name]
        if name in _module_methods():
            return Name(f"torch.nn.Module.{name}", value)
        return None
    held = frameworks.attribute(cls, value, name)
    if held is not None:
        return held
    if cls == "torch.optim.Optimizer":
        return Name(f"torch.optim.Optimizer.{name}", value)
    if torch_api.is_module(cls):
        if name in ("weight", "bias", "in_proj_weight", "in_proj_bias"):
            return Tensor(Device.MODEL, Kind.FLOAT, leaf="parameter")
        if name in ("running_mean", "running_var"):
            return Tensor(Device.MODEL, Kind.FLOAT, 1, leaf="buffer")
        given = value.argument(name)
        if given is not None:
            return given
        if name in (torch_api.parameters(cls) or ()):
            default = torch_api.defaults(cls).get(name, ...)
            return Const(default) if isinstance(default, (int, float, bool, str)) else UNKNOWN
        return None
    if cls.startswith("torch.distributions."):
        return distributions.attribute(cls, value, name)
    if cls == packed_sequence.CLASS:
        return packed_sequence.attribute(value, name)
    if name in ("device",) and cls == "lightning.LightningModule":
        return DeviceValue(Device.MODEL)
    if name == "add_state" and cls == "torchmetrics.Metric":
        return Name("torchmetrics.Metric.add_state", value)
    return None


@cache
def _module_methods() -> frozenset[str]:
    return frozenset(
        """forward parameters named_parameters buffers named_buffers modules named_modules children named_children
        state_dict load_state_dict eval train to cuda cpu half float double bfloat16 type apply zero_grad
        requires_grad_ register_buffer register_parameter register_module register_forward_hook
        register_forward_pre_hook register_full_backward_hook compile add_module get_submodule get_parameter
        get_buffer share_memory extra_repr to_empty ipu xpu set_extra_state get_extra_state""".split()
    )


def indexed(value: Instance) -> Value:
    """The result of indexing an object of a class outside the project."""
    if value.cls == "torch.nn.ParameterList" or value.cls == "torch.nn.ParameterDict":
        return Tensor(Device.MODEL, Kind.FLOAT, leaf="parameter")
    return UNKNOWN


def result(name: str, arguments: Arguments) -> Value | None:
    """The result of a function outside the project; None if it is not in the facts."""
    kind, first = returns(name), arguments.at(0)
    if kind == "array":
        return _array(name, arguments)
    if kind in ("follow", "beside"):
        tensor = first.tensor
        if tensor is None and isinstance(first, Sequence):
            tensor = first.element.tensor
        if tensor is None:
            return Tensor()
        # "beside": where it is, with other numbers in it.
        return Tensor(tensor.device, tensor.kind if kind == "follow" else Kind.UNKNOWN, evidence=tensor.evidence)
    if kind == "host":
        return Tensor(Device.CPU)
    if kind in ("float", "int", "str", "bool"):
        return Scalar(kind)
    if kind == "module":
        return Instance("torch.nn.Module")
    cls = _facts()["objects"].get(name)
    return None if cls is None else Instance(cls)


def _array(name: str, arguments: Arguments) -> Value:
    """The result of a function of arrays: an array, or one number."""
    shaped_by = _numbers().get(name)
    if shaped_by is None:
        rule = _arrays().get(name)
        return Array() if rule is None else arrays.made(rule, arguments)
    argument, position, holds = shaped_by
    if arguments.unpacked or arguments.get(argument, position) is not None:
        dimensions = f"size {position}" if argument == "size" else _DIMENSIONS[argument]
        return arrays.made(f"{dimensions} {holds}", arguments)
    return Scalar("int" if holds == "int" else "float")


_DIMENSIONS = {"axis": "reduced", "each": "each"}


@cache
def _arrays() -> dict[str, str]:
    """The rules for functions that return arrays, by name."""
    return {name: rule for rule, names in _facts()["arrays"].items() for name in names.split()}


@cache
def _numbers() -> dict[str, tuple[str, int, str]]:
    """The argument that makes an array of a function's number, by name and position, and what the array holds."""
    found: dict[str, tuple[str, int, str]] = {}
    for rule, names in _facts()["numbers"].items():
        argument, position, holds = rule.split()
        found.update(dict.fromkeys(names.split(), (argument, int(position), holds)))
    return found
