"""torch's containers of modules: Sequential, ModuleList and ModuleDict."""

from __future__ import annotations

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.lattice import join, union, with_key
from perflint.semantics.values import Const, Device, Instance, Kind, Mapping, Name, Sequence, Tensor, Value

_LIST, _DICT, _SEQUENTIAL = "torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.Sequential"
CONTAINERS = frozenset({_LIST, _DICT, _SEQUENTIAL})
PARAMETERS = frozenset({"torch.nn.ParameterList", "torch.nn.ParameterDict"})
_PARAMETER = Tensor(Device.MODEL, Kind.FLOAT, leaf="parameter")
_ANY = Instance("torch.nn.Module")


def spread(name: str, arguments: Arguments) -> tuple[tuple[str, Value], ...] | None:
    """The arguments of a Sequential of a list of any length, `Sequential(first, *rest)`; None for anything else."""
    if name != _SEQUENTIAL or arguments.keywords or not arguments.rest.members:
        return None
    first = [(str(index), module) for index, module in enumerate(arguments.positional)]
    return (*first, ("modules", Sequence("list", arguments.rest)))


def children(container: Instance) -> Value:
    """Any of the modules in a container."""
    inner: list[Value] = []
    for _, argument in container.arguments or ():
        if isinstance(argument, Sequence):
            inner.append(argument.element)
        elif isinstance(argument, Mapping):
            inner += [argument.element, *(value for _, value in argument.items)]
        else:
            inner.append(argument)
    found = union(inner)
    return found if found.members else _ANY


def child(container: Instance, index: Value, bounds: slice | None = None) -> Value:
    """The result of indexing a container: a module, or a container of some of them."""
    if index == Name("builtins.slice"):
        within = (("modules", Sequence("list", children(container))),)
        return Instance(container.cls, within if container.cls == _LIST else _part(container, bounds))
    key = index.value if isinstance(index, Const) else None
    if isinstance(key, str):
        held = as_mapping(container)
        return held.get(key) if held.get(key).members else _ANY
    modules = _one_by_one(container)
    if isinstance(key, int) and modules is not None and -len(modules) <= key < len(modules):
        return modules[key]
    return children(container)


def _part(container: Instance, bounds: slice | None) -> tuple[tuple[str, Value], ...] | None:
    """The arguments of a Sequential of some of the modules of another."""
    modules = _one_by_one(container)
    if modules is None or bounds is None:
        return None
    return tuple([(str(index), module) for index, module in enumerate(modules[bounds])])


def _one_by_one(container: Instance) -> list[Value] | None:
    """The modules of a container in order, None if they are not all known."""
    modules: list[Value] = []
    for _, argument in container.arguments or ():
        if not isinstance(argument, Sequence):
            modules.append(argument)
        elif argument.items is None:
            return None
        else:
            modules += argument.items
    return modules


def as_mapping(container: Instance) -> Mapping:
    """The modules of a ModuleDict by their keys."""
    if container.cls in PARAMETERS:
        return Mapping(_PARAMETER)
    for _, argument in container.arguments or ():
        if isinstance(argument, Mapping):
            return argument
    return Mapping(children(container))


def grown(container: Instance, name: str, arguments: Arguments, element: Value) -> Instance | None:
    """A ModuleList after `append`, `insert` or `extend` (by a sequence of `element`); None for anything else."""
    added = {"append": arguments.at(0), "insert": arguments.at(1), "extend": element}.get(name)
    if container.cls != _LIST or added is None:
        return None
    modules = Sequence("list", join(children(container), added) if container.arguments else added)
    return Instance(_LIST, (("modules", modules),), container.origin)


def with_item(container: Instance, key: Value, module: Value) -> Instance | None:
    """A ModuleDict after `modules[key] = module`; None for other containers."""
    if container.cls != _DICT:
        return None
    held = as_mapping(container) if container.arguments else Mapping(union(()))
    if isinstance(key, Const) and isinstance(key.value, str):
        return Instance(_DICT, (("modules", with_key(held, key.value, module)),), container.origin)
    return Instance(_DICT, (("modules", Mapping(join(held.element, module), held.items)),), container.origin)
