"""The kind of what each callable or attribute gives."""

from __future__ import annotations

import inspect
import math
import re
import types

import numpy
import torch

from torch_api import modules, overrides, stubs

NAMESPACES = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.linalg": torch.linalg,
    "torch.special": torch.special,
    "torch.fft": torch.fft,
    "torch.sparse": torch.sparse,
    "torch.nn.init": torch.nn.init,
}

_SIMPLE = {
    "Tensor": "tensor", "Self": "self", "S": "self", "None": "none", "_bool": "bool", "bool": "bool", "_int": "int",
    "int": "int", "_float": "float", "_dtype": "dtype", "_device": "device", "Size": "size", "str": "str",
    "list": "list", "numpy.ndarray": "array", "Number": "scalar", "_complex": "scalar", "Tensor | None": "tensor",
    "Storage": "any", "UntypedStorage": "any", "tuple[Tensor, ...]": "tensors", "Sequence[Tensor]": "tensors",
    "list[Tensor]": "tensors", "_int | SymInt": "int", "tuple[_int, ...]": "size",
}  # fmt: skip


def kinds() -> dict[str, dict[str, str]]:
    """Kind by name, by namespace."""
    return {
        namespace: dict(sorted(_namespace(namespace, holder).items())) for namespace, holder in NAMESPACES.items()
    } | {namespace: dict(sorted(names.items())) for namespace, names in overrides.EXTRA.items()}


def _namespace(namespace: str, holder: object) -> dict[str, str]:
    found: dict[str, str] = {}
    overloads = stubs.overloads(namespace)
    override = overrides.KIND.get(namespace, {})
    for name in sorted({*dir(holder), *override}):
        if name.startswith("_"):
            continue
        member = getattr(holder, name, None)
        if name not in override and not _is_fact(namespace, member):
            continue
        kind = (
            override.get(name)
            or _from_stub(namespace, name, overloads.get(name, []))
            or _guess(namespace, name, member)
        )
        if kind:
            found[name] = kind
    return found


def _is_fact(namespace: str, member: object) -> bool:
    if isinstance(member, (type, types.ModuleType)):
        return False
    return callable(member) or namespace == "torch.Tensor"


def _from_stub(namespace: str, name: str, overloads: list[stubs.Overload]) -> str:
    if not overloads:
        return ""
    if namespace == "torch.Tensor" and name.endswith("_") and not name.endswith("__"):
        return "self"
    found = [annotation(item.result) for item in overloads]
    return next((kind for kind in found if kind != "none"), "none")


def annotation(text: str) -> str:
    """The kind that an annotation stands for; "any" if it says nothing that matters."""
    if text in _SIMPLE:
        return _SIMPLE[text]
    if re.fullmatch(r"tuple\[Tensor(, Tensor)*\]", text):
        return f"tensors:{text.count('Tensor')}"
    if text.startswith("torch.return_types."):
        return _structure(text.rpartition(".")[2])
    return "any"


def _structure(name: str) -> str:
    structure = getattr(torch.return_types, name)
    return "any" if name == "histogramdd" else f"tensors:{structure.n_fields}"


def _guess(namespace: str, name: str, member: object) -> str:
    """A kind for what has no stub: the same function elsewhere, or the operator's schema."""
    if namespace == "torch.nn.init" and callable(member):
        return "tensor" if name.endswith("_") or name in overrides.OLD_INIT.split() else ""
    if not callable(member):
        return ""
    if namespace == "torch" and name.startswith(("is_", "are_")):
        return "bool"
    if namespace == "torch" and name.startswith("set_"):
        return "none"
    for prefix in ("", "linalg_", "special_", "fft_", "sparse_"):
        schemas = torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{name}")
        short = namespace.rpartition(".")[2]
        if (
            schemas
            and (prefix in ("", f"{short}_"))
            and (prefix or short in ("torch", "Tensor", "functional", "sparse"))
        ):
            return _schema(schemas[0])
    return ""


def _schema(schema: object) -> str:
    returns = [str(item.type) for item in schema.returns]  # type: ignore[attr-defined]
    if len(returns) == 1:
        return {"Tensor": "tensor", "List[Tensor]": "tensors", "bool": "bool", "int": "int"}.get(returns[0], "any")
    return f"tensors:{len(returns)}" if set(returns) == {"Tensor"} else "any"


def variants() -> dict[str, dict[str, str]]:
    """The rules for results that depend on arguments, by name, by namespace."""
    found: dict[str, dict[str, str]] = {}
    for names, rules in overrides.VARIANTS.items():
        for name in names.split():
            namespace, _, leaf = name.rpartition(".")
            found.setdefault(namespace, {})[leaf] = rules
    return found


def tensor_only() -> set[str]:
    """Names of Tensor members that nothing else commonly met with in such code has."""
    return _members() - set(overrides.ELSEWHERE.split())


def tensor_only_calls() -> set[str]:
    """Names that only tensors have as methods: elsewhere they are fields, `config.dim`."""
    return {name for name in overrides.FIELDS_ELSEWHERE.split() if hasattr(torch.Tensor, name)}


def _members() -> set[str]:
    others: set[str] = set(overrides.FIELDS_ELSEWHERE.split())
    for kind in (
        numpy.ndarray,
        numpy.generic,
        list,
        tuple,
        dict,
        set,
        frozenset,
        str,
        bytes,
        int,
        float,
        complex,
        slice,
        range,
    ):
        others |= set(dir(kind))
    # Array modules are passed as arguments too: `xp.maximum`.
    others |= {*dir(numpy), *dir(math), *dir(torch.nn.Module), *dir(torch.optim.Optimizer)}
    for cls in modules.classes().values():
        others |= set(inspect.signature(cls).parameters)
    return set(_namespace("torch.Tensor", torch.Tensor)) & set(dir(torch.Tensor)) - others
