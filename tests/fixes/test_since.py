"""Fixes state the first torch version that has what they write.

All that fixes add in the rules' fixtures and scenarios, calls and keyword arguments, is looked up here: it is
either as old as torch 1.8, or the fix states a bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from perflint.findings import Edit, Finding, Fix
from perflint.source.text import Source
from tests.fixes.scenarios import changes, runs
from tests.rules.harness import Case, lint, parse_fixture, source_cases

_CALLED = re.compile(r"(\w+)\s*\(")
_NAMED = re.compile(r"[(,\s](\w+)\s*=(?!=)\s*[\w\"']")
_ASSIGNED = re.compile(r"^\s*(\w+(?:, \w+)*) = ", re.MULTILINE)
"""Names of variables, as fixes write them in statements of their own."""

OF_ANY_TORCH = frozenset(
    # Calls.
    """arange array as_tensor cat clamp clone contiguous count_nonzero copy_ detach double expand eye fill_ flatten
    float int is_available linspace log_softmax long masked_fill maximum minimum no_grad nonzero ones rand randint randn
    requires_grad_ stack tolist train zeros full_like new_full logical_not empty long half bfloat16 bool short
    update index_fill_ DataLoader""".split()
    # Arguments.
    + """as_tuple bias capturable_ device dim drop_last dtype generator ignore_index layout logging_nan_inf_filter
    map_location memory_format need_weights non_blocking num_workers persistent_workers pin_memory requires_grad
    retain_graph validate_args min max out""".split()
)
"""What torch 1.8 has, or what is not torch's."""

NEWER = {
    "_assert_async": (1, 9),
    "autocast": (1, 10),
    "capturable": (1, 12),
    "cholesky_ex": (1, 9),
    "compile": (2, 2),
    "custom_bwd": (2, 4),
    "custom_fwd": (2, 4),
    "device_type": (1, 10),
    "full": (1, 7),
    "fused": (2, 0),
    "get_total_norm": (2, 6),
    "GradScaler": (2, 3),
    "inference_mode": (1, 9),
    "inv_ex": (1, 9),
    "is_causal": (2, 0),
    "ldl_factor_ex": (1, 11),
    "lu_factor_ex": (1, 11),
    "memory_is_causal": (2, 0),
    "scaled_dot_product_attention": (2, 0),
    "sdpa_kernel": (2, 3),
    "solve_ex": (1, 12),
    "tgt_is_causal": (2, 0),
    "use_reentrant": (1, 11),
    "where": (1, 12),
}
"""The least that a fix must state which writes this."""


@cache
def written() -> list[tuple[str, Source, Finding, Fix]]:
    """All fixes of the fixtures and scenarios, with the rule's name."""
    return [
        (str(case), Source("example.py", text), finding, finding.fix)
        for case in source_cases()
        for text in texts(case)
        for finding in lint(text, [case.rule], "audit")
        if finding.fix is not None
    ]


def texts(case: Case) -> Iterator[str]:
    yield parse_fixture(case.fixture.read_text(encoding="utf-8")).text
    yield from (path.read_text(encoding="utf-8") for path in (runs(case), changes(case)) if Path(path).exists())


def added(source: Source, edit: Edit) -> set[str]:
    """The calls and arguments that an edit writes and that were not there."""
    before = source.segment(edit.span)
    new = set(_CALLED.findall(edit.text)) | set(_NAMED.findall(_ASSIGNED.sub("", edit.text)))
    return {name for name in new if not re.search(rf"(?<!\w){name}(?!\w)", before)}


def least(name: str, found: str) -> tuple[int, int] | None:
    """The first torch that has what a fix writes, where `found` is the code of the finding."""
    if name == "fused" and "SGD(" in found:
        return 2, 3
    return None if name == "full" and re.search(r"dtype=|\.(?:to|type|type_as)\(", found) else NEWER.get(name)


def test_every_fix_states_the_torch_that_it_needs() -> None:
    wrong = []
    for rule, source, finding, fix in written():
        for name in {name for edit in fix.edits for name in added(source, edit)}:
            needed = least(name, source.segment(finding.span))
            if needed is not None and (fix.since or (0, 0)) < needed:
                wrong.append(f"{rule}:{finding.span.line}: writes `{name}` (torch {needed}) and states {fix.since}")
    assert not wrong, "\n".join(wrong)


def test_all_that_fixes_write_is_known() -> None:
    names = {
        (rule, name)
        for rule, source, _, fix in written()
        for edit in fix.edits
        for name in added(source, edit)
        if name not in OF_ANY_TORCH and name not in NEWER and name not in source.text
    }
    assert not names, f"since which torch? put each into OF_ANY_TORCH or NEWER: {sorted(names)}"


def test_the_newest_are_written_by_some_fix() -> None:
    """The table is not about what no fix writes."""
    all_added = {name for _, source, _, fix in written() for edit in fix.edits for name in added(source, edit)}
    assert {"fused", "get_total_norm", "inference_mode", "_assert_async", "sdpa_kernel", "full"} <= all_added
