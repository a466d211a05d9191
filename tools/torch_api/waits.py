"""The operators that make the host wait by themselves, and under which conditions.

What a GPU was measured to do at each sample (`measured.toml`) is taken as it is. Where only some samples
synchronised, the condition is from torch's source, and stands here. What a rule of its own listens to is left out.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perflint.findings import Effect
from perflint.rules.base import Calls
from perflint.rules.registry import all_rules
from perflint.semantics.facts import torch_api

_MEASURED = Path(__file__).parents[2] / "perflint" / "semantics" / "facts" / "torch_api" / "measured.toml"
_OF_ARGUMENTS = ("waiting-operator", "tensor-as-python-int")
"""The rule that reads the table, and the rule of what is passed for a number, whatever the operator does."""

# Functions that torch has removed; calling them raises.
_GONE = frozenset("torch.Tensor.eig torch.Tensor.solve torch.Tensor.lstsq".split())

# Why those wait that do so at each call; the others read while they work.
_WHY = {
    "size": "torch.combinations torch.Tensor.to_sparse",
    "check": "torch.cov torch.Tensor.cov torch.corrcoef torch.Tensor.corrcoef torch.nn.functional.gaussian_nll_loss",
    "copy": "torch.unravel_index torch.nn.functional.ctc_loss",
}

_MASKED = (
    "amax amin argmax argmin cumprod cumsum log_softmax logsumexp mean median norm prod softmax softmin std sum var"
)
_WINDOWS = "blackman general_cosine general_hamming hamming hann nuttall"
_NORMS = "BatchNorm1d BatchNorm2d BatchNorm3d"


def _rows() -> Iterator[dict[str, Any]]:
    """What waits under conditions, or was measured as a statement."""
    yield _row("torch.istft", "input@0", "check")
    yield _row("torch.Tensor.istft", "self", "check")
    yield _row("torch.Tensor.to_sparse_csr", "self", "size")
    yield _row("torch.sparse_csr_tensor", "crow_indices@0", "check")
    yield _row("torch.sparse_coo_tensor", "indices@0", "size", when=["!size@2"])
    yield _row("torch.normal", "std@1", "check")
    yield _row("torch.index_fill", "value@3", "read")
    yield _row("torch.Tensor.index_fill", "value@2", "read")
    yield _row("torch.Tensor.index_fill_", "value@2", "read")
    for name in _MASKED.split():
        yield _row(f"torch.masked.{name}", "input@0", "copy", when=["mask"])
    for name in _WINDOWS.split():
        yield _row(f"torch.signal.windows.{name}", "device", "copy")
    yield _row("torch.nn.utils.clip_grad_norm_", "", "check", when=["error_if_nonfinite@3"])
    yield _row("torch.nn.utils.rnn.pack_padded_sequence", "input@0", "copy", when=["enforce_sorted@3=False"])
    yield _row("torch.nn.utils.rnn.pack_sequence", "sequences@0", "copy", when=["enforce_sorted@1=False"])
    yield _row("torch.nn.utils.rnn.pad_packed_sequence", "sequence@0", "copy", when=["sequence@0.enforce_sorted=False"])
    yield _row("torch.nn.utils.rnn.unpad_sequence", "lengths@1", "read")
    yield from _of_modules()
    for name in ("Adafactor", "ASGD", "LBFGS"):
        yield _row("torch.optim.Optimizer.step", "", "read", of=f"torch.optim.{name}")
    yield _row("torch.optim.lr_scheduler.ReduceLROnPlateau.step", "metrics@0", "read")


def _of_modules() -> Iterator[dict[str, Any]]:
    call = "torch.nn.Module.__call__"
    # With fewer arguments, the object is another loss of the program.
    yield _row(call, "log_probs@0", "copy", of="torch.nn.CTCLoss", when=["input_lengths@2"])
    yield _row(call, "input@0", "check", of="torch.nn.GaussianNLLLoss")
    for name in _NORMS.split():
        yield _row(call, "input@0", "read", of=f"torch.nn.{name}", when=["self.momentum=None"])


def _row(name: str, operand: str, why: str, *, of: str = "", when: list[str] | None = None) -> dict[str, Any]:
    return {"name": name, "of": of, "operand": operand, "when": when or [], "why": why}


def _always() -> Iterator[dict[str, Any]]:
    """What waited at every sample."""
    why = {name: reason for reason, names in _WHY.items() for name in names.split()}
    for name in tomllib.loads(_MEASURED.read_text(encoding="utf-8"))["forward"]["always"].split():
        if name in _GONE or name.startswith("torch.masked."):
            continue
        names = torch_api.parameters(name)
        first = f"{names[0]}@0" if names else "input@0"
        yield _row(name, "self" if name.startswith("torch.Tensor.") else first, why.get(name, "read"))


def heard_elsewhere() -> frozenset[str]:
    """What the other rules listen to that look for waits."""
    return frozenset(
        name
        for rule in all_rules()
        if rule.effect in (Effect.SYNC, Effect.TRANSFER) and rule.name not in _OF_ARGUMENTS
        for listen in rule.listens
        if isinstance(listen, Calls)
        for name in listen.names
    )


def lines() -> list[str]:
    """The TOML lines: one operator a line."""
    elsewhere = heard_elsewhere()
    # A call of a module is heard for its class.
    rows = [row for row in (*_always(), *_rows()) if row["of"] or row["name"] not in elsewhere]
    rows.sort(key=lambda row: (row["name"], row["of"], row["when"]))
    return ["", "operators = [", *(f"    {{ {_written(row)} }}," for row in rows), "]"]


def _written(row: dict[str, Any]) -> str:
    """The fields that say something; JSON's notation of texts and lists is TOML's."""
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in row.items() if value)
