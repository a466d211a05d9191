"""Reasons at a place to doubt that its tensor is on a GPU, where nothing waits for tensors on the CPU."""

from __future__ import annotations

import ast

from perflint.findings import Confidence, Effect, Finding
from perflint.frozen import replace
from perflint.semantics.model import Model
from perflint.semantics.purpose.purpose import prepares_data
from perflint.semantics.sites import FileSite, Site
from perflint.semantics.structure import FUNCTIONS, last_name, walk
from perflint.semantics.values import Device, Dtype

OF_THE_DEVICE = (Effect.SYNC, Effect.TRANSFER, Effect.ALLOCATION)
"""Effects that only tensors on the GPU have."""
_OF_TENSORS = ("TPF1", "TPF2")
"""The families of rules about waits for tensors and about their copies; the others cost time on a CPU, too."""


def doubted(finding: Finding, site: Site) -> Finding | None:
    """The finding with less confidence where its tensor may be on the CPU; None at a place that makes a module."""
    if finding.effect not in OF_THE_DEVICE:
        return finding
    model, is_guess = site.model, finding.confidence is Confidence.MEDIUM
    if not isinstance(site, FileSite):
        if finding.confidence is not Confidence.HIGH and model.makes_module(site.node):
            return None
        if is_guess and prepares_data(model, site.node):
            return replace(finding, confidence=Confidence.LOW)
        if model.host_code.holds(site.node) and (is_guess or not _is_moved(model, site.node)):
            # The device of a module that serves a dataset is the CPU.
            return replace(finding, confidence=Confidence.LOW)
        if _is_for_half_precision(model, site.node):
            return replace(finding, confidence=Confidence.LOW)
    on_cpu = model.host_code.is_whole_program or model.host_code.trains_on_cpu
    if finding.code.startswith(_OF_TENSORS) and on_cpu:
        # A program that names no device computes on the CPU, and so does a training that fails on a GPU.
        return replace(finding, confidence=Confidence.LOW)
    return finding


def _is_moved(model: Model, node: ast.AST) -> bool:
    """True if code says that a tensor of an expression is on a GPU."""
    values = (model.value(part) for part in walk(node) if isinstance(part, ast.expr))
    return any(value.tensor is not None and value.tensor.device is Device.CUDA for value in values)


def _is_for_half_precision(model: Model, node: ast.AST) -> bool:
    """True for code behind `x.dtype == torch.float16`, which does not run with the other dtypes."""
    inner = node
    for outer in model.ancestors(node):
        if isinstance(outer, FUNCTIONS):
            return False
        if isinstance(outer, ast.BoolOp) and isinstance(outer.op, ast.And) and inner in outer.values:
            tests = outer.values[: outer.values.index(inner)]
        else:
            tests = [outer.test] if isinstance(outer, ast.If) and inner in outer.body else []
        if any(_asks_for_half(model, test) for test in tests):
            return True
        inner = outer
    return False


def _asks_for_half(model: Model, test: ast.expr) -> bool:
    """True for `x.dtype == torch.float16`, also with a further condition."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_asks_for_half(model, part) for part in test.values)
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return False
    value = model.value(test.comparators[0])
    return last_name(test.left) == "dtype" and isinstance(value, Dtype) and value.name in ("float16", "half")
