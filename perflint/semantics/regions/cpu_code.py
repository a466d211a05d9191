"""Code whose tensors are on the CPU: drivers of other processes, helpers of datasets, programs that name no device."""

from __future__ import annotations

import ast
import re
import sys
import weakref
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from perflint.frozen import dataclass
from perflint.semantics.facts import conventions
from perflint.semantics.heat.work import goes_backward_by_name
from perflint.semantics.structure import last_name, path_of, root_of, walk

if TYPE_CHECKING:
    from perflint.semantics.heated import Heated
    from perflint.semantics.module import Module
    from perflint.semantics.view import View

_MOST_USES = 20
"""Uses of a function in other files that are looked at."""
_ON_GPU = frozenset({"cuda", "backward"})
"""Methods that only code with tensors on the GPU calls."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NO_WORD = r"(?<![a-z])(?:mps|[xnh]pu|xla)(?![a-z])"
"""Names of devices that other words contain: `input`, `timestamps`."""
_NAMES_DEVICE = re.compile(rf"(?i)cuda|gpu|device|accelerat|default_tensor|{_NO_WORD}|\.to\(|\bload\(")
"""Text of code that may put tensors or modules on a device, or gets them from a file, which knows their device."""
_LEAVES_DEVICE = frozenset(
    "torch torchvision torchaudio numpy scipy pandas sklearn matplotlib PIL cv2 tqdm gym gymnasium".split()
)
"""Packages that put nothing on a device unless they are told to."""
_OF_TRAINERS = frozenset("pytorch_lightning lightning torchmetrics".split())
"""Packages whose trainers move models. Modules that derive from their classes move nothing by themselves."""
_CHOOSES = r"""["']device|(?<![a-z])(?:args?|opts?|options|conf\w*|cfg|\w*params|settings)\.device"""
"""A device that settings choose."""
_MAY_MOVE = re.compile(rf"(?i)cuda|gpu|accelerat|default_tensor|default_dev|{_NO_WORD}|trainer|{_CHOOSES}|\bload\(")
"""Text of a module that may choose a device. Those that are given a tensor or a device choose none."""
_NAMES_ANY = re.compile(rf"(?i)cuda|gpu|device|accelerat|default_tensor|{_NO_WORD}|\.to\(|\.cpu\(")
"""Text of a project that knows of devices."""
_MOST_MODULES = 40
"""Modules of the project behind a program that are looked at."""


class HostCode:
    """The functions of one file that work on the CPU."""

    def __init__(self, model: Heated) -> None:
        # The model owns this: no circle, so that both go when the file is done.
        self._model: Heated = weakref.proxy(model)
        self._known: dict[ast.AST, bool] = {}

    def holds(self, node: ast.AST) -> bool:
        """True if the tensors at a place are on the CPU, unless something else says where they are."""
        unit = unit_of(self._model.module, node)
        if unit is None:
            return False
        if self._collates(node):
            return True
        known = self._known.get(unit)
        if known is None:
            module = self._model.module
            known = drives_processes(module, unit) or _is_transform(module, unit) or self._is_for_data(unit)
            self._known[unit] = known
        return known

    @cached_property
    def is_whole_program(self) -> bool:
        """True if the file is a program that names no device, nor does any module of the project that it imports."""
        model = self._model
        module = model.module
        if model.matches(_NAMES_DEVICE) or model.is_imported:
            return False
        if not (module.is_program or _loops_backward(module)):
            return False
        behind = _modules_behind(model.view, module)
        return behind is not None and not any(model.view.finds(each.path, _MAY_MOVE) for each in behind)

    @cached_property
    def trains_on_cpu(self) -> bool:
        """True if the file, or a module that it imports, has a training that raises an error on the GPU.

        The training converts its loss to NumPy without a copy to the CPU, and no file of the project names a device.
        """
        view, module = self._model.view, self._model.module
        imported = (view.find(name, module) for names in _imports(module) for name in names)
        if not any(each is not None and _converts_loss(each) for each in (module, *imported)):
            return False
        is_known = view.project.is_whole and view.project.lists(module.path)
        return is_known and not (self._model.matches(_NAMES_ANY) or view.matching(_NAMES_ANY))

    def _collates(self, node: ast.AST) -> bool:
        """True if a function around a place joins items to a batch for a loader, and moves nothing to the GPU."""
        functions = (outer for outer in self._model.ancestors(node) if isinstance(outer, _FUNCTIONS))
        found = next((outer for outer in functions if conventions.joins_items(outer.name)), None)
        return found is not None and not _goes_to_gpu(found)

    def _is_for_data(self, unit: ast.AST) -> bool:
        """True if a function or class is only used by code that works on the CPU, in this file and in others.

        A class that moves something to the GPU does not count.
        """
        if not isinstance(unit, (*_FUNCTIONS, ast.ClassDef)):
            return False
        if isinstance(unit, ast.ClassDef) and _goes_to_gpu(unit):
            return False
        # Where uses go round in a circle, none of them tells.
        self._known[unit] = False
        module = self._model.module
        variable = module.symbols.resolve(module.symbols.module, unit.name)
        here = [use for use in variable.uses if unit_of(module, use) is not unit]
        elsewhere = list(islice(uses_of(self._model.view, module.name, unit.name), _MOST_USES + 1))
        if not (here or elsewhere) or len(here) + len(elsewhere) > _MOST_USES:
            return False
        return all(_is_on_cpu(module, use) or self.holds(use) for use in here) and all(
            _is_on_cpu(use.module, use.node) for use in elsewhere
        )


def _modules_behind(view: View, program: Module) -> list[Module] | None:
    """The modules of the project that a program imports, also through others.

    None if these are many, or if one of them imports a package that may put something on a device.
    """
    found: dict[str, Module] = {}
    waiting = [program]
    for module in waiting:
        leaves = _LEAVES_DEVICE | sys.stdlib_module_names | (frozenset() if module is program else _OF_TRAINERS)
        for names in _imports(module):
            if names[0].partition(".")[0] in leaves:
                continue
            own = [each for name in names if (each := view.find(name, module)) is not None]
            if not own:
                return None
            new = [each for each in own if each is not program and each.name not in found]
            found.update((each.name, each) for each in new)
            waiting += new
        if len(found) > _MOST_MODULES:
            return None
    return list(found.values())


def _imports(module: Module) -> Iterator[list[str]]:
    """The modules that a file may import from, for each name that it imports."""
    for node in module.structure.every(ast.Import, ast.ImportFrom):
        yield from _imported(module, node)


def _imported(module: Module, node: ast.Import | ast.ImportFrom) -> list[list[str]]:
    """The modules that a statement may import from: for each name that of the whole, and that of the name itself."""
    if isinstance(node, ast.Import):
        return [[alias.name] for alias in node.names]
    base = module.absolute(node.module, node.level)
    return [[base, f"{base}.{alias.name}"] for alias in node.names]


def _loops_backward(module: Module) -> bool:
    """True if a loop at the top level of a file runs a backward pass."""
    loops = (node for node in module.tree.body if isinstance(node, (ast.For, ast.While)))
    return any(goes_backward_by_name(node) for loop in loops for node in walk(loop))


def _converts_loss(module: Module) -> bool:
    """True if the loss of a backward pass is also converted to NumPy where it is: `loss.detach().numpy()`."""
    calls = module.structure.every(ast.Call)
    converted = [call for call in calls if last_name(call) == "numpy" and _is_detached(call)]
    if not converted:
        return False
    backward = (call for call in calls if path_of(call.func).split(".")[1:] == ["backward"])
    losses = {(root_of(call), unit_of(module, call)) for call in backward}
    return any((root_of(call), unit_of(module, call)) in losses for call in converted)


def _is_detached(call: ast.Call) -> bool:
    """True if the tensor of a method is cut off from the graph: `loss.data.numpy()`. Nothing else has `detach`."""
    return any(isinstance(node, ast.Attribute) and node.attr in ("detach", "data") for node in walk(call.func))


@dataclass(frozen=True, slots=True)
class _Use:
    """A name or attribute in another file that may stand for a function."""

    module: Module
    node: ast.expr


def uses_of(view: View, module: str, name: str) -> Iterator[_Use]:
    """The names and attributes in other files that may stand for something of a module."""
    for file in view.importers(module, name):
        home = view.at(file.path)
        if home is not None:
            yield from _uses_in(home, name)


def _uses_in(module: Module, name: str) -> Iterator[_Use]:
    for node in module.structure.every(ast.Name):
        if module.imports.get(node.id, node.id).rpartition(".")[2] == name:
            yield _Use(module, node)
    for each in module.structure.every(ast.Attribute):
        if each.attr == name:
            yield _Use(module, each)


def _is_on_cpu(module: Module, node: ast.AST) -> bool:
    """True if a place in another file belongs to a dataset, a collate function or a driver."""
    unit = unit_of(module, node)
    if unit is None:
        return False
    if isinstance(unit, ast.ClassDef):
        return any(map(conventions.is_dataset, map(last_name, unit.bases))) or drives_processes(module, unit)
    return isinstance(unit, _FUNCTIONS) and (bool(conventions.is_item(unit.name)) or drives_processes(module, unit))


def _is_transform(module: Module, unit: ast.AST) -> bool:
    """True if a class changes the items of a dataset, and moves nothing to the GPU."""
    bases = unit.bases if isinstance(unit, ast.ClassDef) else []
    is_transform = any(conventions.is_transform(module.full_name(path_of(base))) for base in bases if path_of(base))
    return is_transform and not _goes_to_gpu(unit)


def _goes_to_gpu(unit: ast.AST) -> bool:
    """True if code calls what only code with tensors on the GPU calls."""
    return any(isinstance(node, ast.Call) and last_name(node) in _ON_GPU for node in walk(unit))


def unit_of(module: Module, node: ast.AST) -> ast.AST | None:
    """The outermost class or function around a node, or None at the top level of the file."""
    parents = module.structure.parents
    found: ast.AST | None = None
    outer: ast.AST | None = node
    while outer is not None:
        if isinstance(outer, (*_FUNCTIONS, ast.ClassDef)):
            found = outer
        outer = parents.get(outer)
    return found


def drives_processes(module: Module, unit: ast.AST) -> bool:
    """True if a class or function drives actors of Ray and holds no model: the tensors it gets were sent to it.

    Actors themselves do not count, nor does code that moves tensors to the GPU or runs a backward pass.
    """
    if "ray" not in module.packages or not isinstance(unit, (*_FUNCTIONS, ast.ClassDef)):
        return False
    if any(last_name(node) == "remote" for node in unit.decorator_list):
        return False
    drives = False
    for node in walk(unit):
        if isinstance(node, ast.Call):
            name = last_name(node)
            if name in _ON_GPU:
                return False
            drives = drives or name == "remote" or (root_of(node) == "ray" and name in ("get", "put", "wait"))
        elif isinstance(node, ast.Attribute):
            drives = drives or bool(conventions.is_worker_group(node.attr))
    return drives
