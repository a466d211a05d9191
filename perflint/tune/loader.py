"""Prepares batches in worker processes: the arguments of the loader that the steps wait for."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping

from perflint.findings import Edit
from perflint.fixes.edits import indentation, insert
from perflint.semantics.structure import keyword, path_of
from perflint.source.text import Source
from perflint.tune.edited import edited
from perflint.tune.evidence import Evidence, Loader
from perflint.tune.refused import Refused

LEAST = 0.05
"""The share of a step that waits for a batch from which on workers are tried."""
MOST = 16


def with_workers(texts: Mapping[str, str], evidence: Evidence) -> dict[str, str]:
    """The file that makes the slowest loader, with workers. Raises Refused."""
    slowest = max(evidence.loaders, key=lambda each: each.share, default=None)
    if slowest is None or slowest.share < LEAST:
        share = slowest.share if slowest is not None else 0.0
        raise Refused(f"steps wait for batches {share:.0%} of their time", 1)
    if not slowest.path:
        raise Refused("the loader is made outside of the project", 1)
    source = Source(slowest.path, texts[slowest.path])
    call = next(
        (
            node
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Call) and node.lineno <= slowest.line <= (node.end_lineno or 0) and _makes(node)
        ),
        None,
    )
    if call is None:
        raise Refused("the loader is not made by a call of a class", slowest.line)
    text = edited(source, _edits(source, call, slowest))
    if text == source.text:
        raise Refused("the loader has such workers already", slowest.line)
    return {slowest.path: text}


def _makes(call: ast.Call) -> bool:
    return path_of(call.func).rpartition(".")[2].endswith("Loader")


def _workers(share: float, now: int) -> int:
    """As many workers as can prepare the batches in the rest of a step, and one more for each four; at least four.

    A worker takes longer for a batch than the process itself, which it also sends.
    """
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    rest = max(1 - share, 0.05)
    # Those that there are take a whole step; the process itself takes the share of it.
    wanted = round(now / rest * 1.25) if now else round(share / rest * 1.25) + 1
    return max(min(max(wanted, min(4, cpus // 2), now * 2), cpus, MOST), now, 1)


def _edits(source: Source, call: ast.Call, loader: Loader) -> list[Edit]:
    workers = _workers(loader.share, loader.workers)
    wanted = {"num_workers": str(workers), "persistent_workers": "True", "pin_memory": "torch.cuda.is_available()"}
    if any(each.arg is None for each in call.keywords):
        if not loader.workers or _is_in_dictionary(source.tree, "persistent_workers"):
            raise Refused("the arguments of the loader are in a dictionary", call)
        wanted = {"persistent_workers": "True"}
    edits, missing = [], []
    for name, value in wanted.items():
        given = keyword(call, name)
        if given is None:
            missing.append(f"{name}={value}")
        elif name == "num_workers" and workers != loader.workers:
            edits.append(Edit(source.span(given), value))
    given_torch = any(
        isinstance(each, ast.Import) and any(alias.name == "torch" and not alias.asname for alias in each.names)
        for each in source.tree.body
    )
    missing = [each for each in missing if given_torch or "torch." not in each]
    if missing:
        last = max(
            [*call.args, *(each.value for each in call.keywords)], key=lambda each: (each.lineno, each.col_offset)
        )
        end = source.span(last)
        close = source.span(call)
        if end.end_line == close.end_line:
            edits.append(insert(end.end_line, end.end_column, "".join(f", {each}" for each in missing)))
        else:
            margin = indentation(source, end.line if not _is_bracketed(source, last) else last.lineno)
            text = ",".join(["", *(f"\n{margin}{each}" for each in missing)])
            edits.append(insert(end.end_line, end.end_column, text))
    return edits


def _is_in_dictionary(tree: ast.Module, name: str) -> bool:
    """True if a file writes a key as a text, or by `dict(name=…)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value == name:
            return True
        if isinstance(node, ast.Call) and path_of(node.func) == "dict" and keyword(node, name) is not None:
            return True
    return False


def _is_bracketed(source: Source, node: ast.expr) -> bool:
    return source.lines[node.lineno - 1].strip()[:1] in "([{"
