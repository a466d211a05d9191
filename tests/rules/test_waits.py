"""The operators that wait by themselves: those that a GPU was seen to wait in, and no others."""

from __future__ import annotations

import pytest

from perflint.findings import Effect
from perflint.rules.base import Calls
from perflint.rules.registry import all_rules
from perflint.rules.sync.transformer_causal_detect import TransformerCausalDetect
from perflint.rules.sync.waiting_operator import WaitingOperator
from perflint.semantics.facts import torch_api
from perflint.semantics.facts.torch_api.waits import Argument, Requirement, waits

MEASURED = torch_api.table("measured")
COPIES = frozenset({"TPF119", "TPF134"})
"""Rules that listen to an operator for what it copies or reads of its arguments."""
HEARD = frozenset(
    name
    for rule in all_rules()
    if rule.effect in (Effect.SYNC, Effect.TRANSFER) and rule.code not in COPIES
    for listen in rule.listens
    if isinstance(listen, Calls)
    for name in listen.names
)
REMOVED = frozenset({"torch.Tensor.eig", "torch.Tensor.solve"})


def measured(way: str, verdict: str) -> frozenset[str]:
    return frozenset(MEASURED[way][verdict].split())


@pytest.mark.parametrize("way", ["forward", "inplace"])
def test_some_rule_hears_of_all_that_always_wait(way: str) -> None:
    assert measured(way, "always") - REMOVED <= HEARD


@pytest.mark.parametrize("way", ["forward", "inplace"])
def test_nothing_is_claimed_of_what_never_waits(way: str) -> None:
    assert not measured(way, "never") & set(waits())


@pytest.mark.parametrize(
    "name",
    """torch.linalg.qr torch.qr torch.linalg.det torch.linalg.slogdet torch.multinomial torch.Tensor.multinomial
    torch.masked_scatter torch.Tensor.masked_scatter_ torch.clamp torch.Tensor.clamp torch.quantile torch.nanmedian
    torch.searchsorted torch.nn.functional.embedding_bag torch.cdist torch.stft""".split(),
)
def test_no_rule_believes_what_is_told_of_these(name: str) -> None:
    assert name not in HEARD


def test_the_page_lists_every_operator() -> None:
    page = (WaitingOperator.__doc__ or "") + (TransformerCausalDetect.__doc__ or "")
    for rows in waits().values():
        for wait in rows:
            assert f"`{(wait.of or wait.name).rpartition('.')[2]}" in page or (wait.of or wait.name) in page


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("torch.sparse_coo_tensor", 0, Requirement(Argument("size", 2), absent=True)),
        ("torch.nn.utils.rnn.pack_sequence", 0, Requirement(Argument("enforce_sorted", 1), value="False")),
        (
            "torch.nn.utils.rnn.pad_packed_sequence",
            0,
            Requirement(Argument("sequence", 0), field="enforce_sorted", value="False"),
        ),
        ("torch.masked.mean", 0, Requirement(Argument("mask"))),
    ],
)
def test_conditions_are_read(name: str, number: int, expected: Requirement) -> None:
    assert waits()[name][0].when[number] == expected
