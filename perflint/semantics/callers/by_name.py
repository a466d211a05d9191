"""The calls of methods of objects that the calling file does not know: of a class that a text chooses, of a parameter.

The name of the method and the arguments tell which methods of the project such a call may run.
"""

from __future__ import annotations

import io
from functools import cache

from perflint.semantics.binders import defaults, parameters
from perflint.semantics.facts import torch_api
from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.interpreter.lineage import is_static
from perflint.semantics.structure import FunctionInfo


@cache
def _of_other_objects() -> frozenset[str]:
    """The methods of Python's own objects and of tensors: a call of one may be of anything."""
    types = (str, bytes, list, tuple, dict, set, int, float, io.TextIOWrapper, io.BytesIO)
    return torch_api.tensor_methods().union(*map(dir, types))


def tells(method: str) -> bool:
    """True if a call of a method of an unknown object may be told by its name: neither private, nor of objects that
    each program has.
    """
    return not method.startswith("_") and method not in _of_other_objects()


def accepts(info: FunctionInfo, given: Arguments) -> bool:
    """True if a method can be called with some arguments: there are neither too many nor too few, nor other names."""
    args, named = info.node.args, dict(given.keywords)
    own = [arg.arg for arg in (*args.posonlyargs, *args.args)][0 if is_static(info) else 1 :]
    if args.vararg is None and len(given.positional) > len(own):
        return False
    if args.kwarg is None and not named.keys() <= parameters(info.node).keys():
        return False
    missing = {*own[len(given.positional) :], *(arg.arg for arg in args.kwonlyargs)} - named.keys()
    return given.unpacked or missing <= defaults(info.node).keys()
