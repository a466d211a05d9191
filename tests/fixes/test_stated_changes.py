"""Unsafe and risky fixes change what their pages say, and nothing else.

`scenarios` tells what `NAME.change.py` holds. Its cases run on a simulated GPU, or, where the file says
`ON_A_GPU = False`, on the CPU as it is.
"""

from __future__ import annotations

import pytest

from perflint.findings import Safety
from tests.fixes.scenarios import ALL, Scenario, changes, fixed, functions, needs_plain_cpu, scenarios
from tests.fixes.simulated import LACKS, judged
from tests.fixes.test_same_meaning import fixes_of
from tests.rules.harness import Case, sections, source_cases

CASES = source_cases()
NOT_SHOWN = {
    "cudagraph/optimizer_not_capturable": ["steps outside of graphs become slower"],
    "compile/compile_result_dropped": ["The first calls take seconds to minutes, results differ in the last bits"],
    "data/pin_memory_off": ["A thread of the loader then copies each batch once more"],
    "model/unused_attention_weights": ["With dropout they draw other random numbers"],
    "optimizer/for_loop_optimizer": ["the default needs more memory at its peak"],
    "sync/device_to_host_copy_in_loop": ["all of them take memory of the GPU until then", "shows up after the loop"],
    "sync/empty_cache_in_loop": ["other processes on the GPU may miss it"],
    "sync/gradscaler_host_reads": ["parameters on a device without fused optimizers raise"],
    "sync/many_scalars": ["tensors on different devices raise"],
    "sync/multinomial_on_cpu": ["the GPU's generator draws other numbers than the CPU's"],
    "sync/nan_check_per_step": ["at some other call, and the CUDA context cannot be used any more"],
    "sync/number_store": ["on a GPU it raises where float16 cannot hold the number"],
    "sync/scalar_read_in_loop": ["the error of a failing kernel shows up later"],
    "sync/tensor_of_tensors": ["elements on different devices raise"],
    "sync/truth_of_tensor": ["at some other call, and the CUDA context cannot be used any more"],
    "transfer/create_then_move": [
        "random numbers come from the GPU's generator",
        "linspace, windows and arange of floats or as floats may differ in the last bit",
        "a cast of a tensor that `full` filled may round differently",
        "that raises an error only on a GPU",
    ],
}
"""What pages say of changes that only a GPU has: its memory, its generator and its own kernels, its errors,
which come late, its speed, and operators that refuse what is on two devices."""

by_case = pytest.mark.parametrize("case", CASES, ids=str, scope="session")
with_changes = pytest.mark.parametrize("case", [case for case in CASES if changes(case).exists()], ids=str)


@by_case
def test_rules_with_unsafe_fixes_show_what_changes(case: Case) -> None:
    if not fixes_of(case, Safety.UNSAFE) and not fixes_of(case, Safety.RISKY):
        assert not changes(case).exists(), f"{case} has no unsafe or risky fix; {changes(case).name} proves nothing"
        return
    assert changes(case).exists(), (
        f"{case} has unsafe or risky fixes: write {changes(case).name} (see tests/fixes/scenarios.py)"
    )
    text = changes(case).read_text(encoding="utf-8")
    shown = {name.removeprefix("change_") for name in functions(text, "change_")}
    cases = {name.removeprefix("case_") for name in functions(text)}
    assert shown, f"{changes(case).name} shows no change"
    assert shown <= cases, f"{changes(case).name} has no case for {sorted(shown - cases)}"


@pytest.mark.parametrize("scenario", scenarios(safe=False), ids=str)
def test_stated_changes(scenario: Scenario, request: pytest.FixtureRequest) -> None:
    if needs_plain_cpu(scenario.path):
        wrong = judged(scenario)
    else:
        wrong = request.getfixturevalue("on_a_simulated_gpu")[str(scenario)]
    if wrong.startswith(LACKS):
        pytest.skip(wrong)
    assert not wrong, wrong


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_what_is_not_shown_is_on_its_page(name: str) -> None:
    (rule,) = (case.rule for case in CASES if str(case) == name)
    page = " ".join(sections(rule)["Fix safety"].split())
    assert not [words for words in NOT_SHOWN[name] if words not in page]


@with_changes
def test_unsafe_fixes_keep_what_they_must(case: Case) -> None:
    before = changes(case).read_text(encoding="utf-8")
    assert functions(before, "kept_") == functions(fixed(case, before, ALL), "kept_")
