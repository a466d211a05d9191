"""Searches in the texts of a project's files, which are not parsed."""

from __future__ import annotations

import ast
import re

from perflint.semantics.model import Model


def some_file_says(model: Model, pattern: re.Pattern[str]) -> bool:
    """True if a pattern matches in a file, or in one that may run in the same process."""
    return model.matches(pattern) or bool(model.view.beside(model.module, pattern))


# Patterns that begin with letters are searched thirty times as fast as those that begin with `\b`.
_TRACES = re.compile(r"jit\.trace\w*\("), re.compile(r"onnx\.export\(")


def may_be_traced(model: Model) -> bool:
    """True if some code of the project makes a graph of a run.

    `x.type_as(y)` follows its input there, `device=` is a constant. The file that traces need not import this one: the
    model is passed to it.
    """
    return project_says(model, *_TRACES)


_APPLE = tuple(map(re.compile, (r'"mps\b', r"'mps\b", r"backends\.mps\b", r"torch\.mps\b")))


def names_apple_gpus(model: Model) -> bool:
    """True if the device of a file may be a GPU of Apple: if the file names one, or another that may pass a device.

    For a program, these are the files that run with it; for other files, all files of the project. GPUs of Apple have
    no doubles. A copy to them that does not block the CPU may read memory that is free already.
    """
    if model.module.is_program:
        return any(some_file_says(model, pattern) for pattern in _APPLE)
    return project_says(model, *_APPLE)


def project_says(model: Model, *patterns: re.Pattern[str]) -> bool:
    """True if one of some patterns matches in any file of the project."""
    return any(model.matches(pattern) or bool(model.view.matching(pattern)) for pattern in patterns)


def first_match(model: Model, pattern: re.Pattern[str]) -> str:
    """The first place of the project where a pattern matches, as in "line 3 of train.py"; empty if there is none.

    The file itself comes first.
    """
    name, text = "this file", model.module.text
    if not model.matches(pattern):
        files = model.view.matching(pattern)
        if not files:
            return ""
        name, text = files[0].path.name, model.view.text(files[0])
    found = pattern.search(text)
    assert found is not None
    line = text.count("\n", 0, found.start()) + 1
    return f"line {line} of {name}"


_RECORDS = ("torch.jit.trace", "torch.fx.symbolic_trace", "torch.fx.experimental.proxy_tensor.make_fx")


def is_recorded(model: Model, node: ast.AST) -> bool:
    """True if a lambda around a node is written to be recorded as a graph, which may be there for its steps alone."""
    for outer in model.ancestors(node):
        call = model.parent(outer) if isinstance(outer, ast.Lambda) else None
        if isinstance(call, ast.Call) and model.target(call) in _RECORDS:
            return True
    return False
