"""The statements of the founding articles as small programs, also in loops, and what perflint says of each.

`docs/coverage.md` answers the statements; each rule that speaks here is named there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perflint.config.settings import Profile
from tests.seeds.test_seeds import check

FOLDER = Path(__file__).with_name("statements")
COVERAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
FOUND = {
    "0a_script_compile": ("18:TPF378", "17:TPF901 22:TPF108"),
    "0b_script_then_compile": ("", "5:TPF901"),
    "0c_forward_direct": ("9:TPF108", ""),
    "0d_reduce_overhead_outputs": ("7:TPF805", ""),
    "1a_article": ("11:TPF378 20:TPF601", "12:TPF204 18:TPF501 19:TPF108"),
    "1b_outputs_kept": ("11:TPF805", "8:TPF502 10:TPF213"),
    "1c_dynamic_callable": ("11:TPF801 13:TPF801", ""),
    "1d_shapes_vary": ("", "6:TPF407"),
    "1e_input_freed": ("11:TPF810", ""),
    "1f_warmup_no_wait": ("", "6:TPF817"),
    "1g_functorch": ("", ""),
    "2a_backends": ("", "13:TPF204"),
    "2b_hub_inductor": ("", ""),
    "2c_cudagraphs_on_cpu": ("", ""),
    "2d_bert": ("", "8:TPF201"),
    "2e_timm": ("6:TPF503", ""),
    "2f_reset_in_loop": ("8:TPF711", ""),
    "2g_onnxrt": ("3:TPF378", ""),
    "2h_compile_debug": ("", "3:TPF715"),
    "3a_get_trace": ("3:TPF378", ""),
    "3b_trace_compile": ("", "5:TPF901"),
    "3c_load_inline": ("", "5:TPF375 10:TPF375"),
    "3d_no_grad": ("8:TPF501", ""),
    "3e_decorator_before_model": ("", ""),
    "3f_loading": ("9:TPF201", "6:TPF401 6:TPF402"),
    "4a_print": ("9:TPF108 10:TPF101 11:TPF110 12:TPF109 13:TPF105", ""),
    "4b_half": ("", ""),
    "4c_int8": ("5:TPF906", ""),
    "4d_layernorm_bias": ("5:TPF301", "5:TPF351"),
    "4e_channels": ("9:TPF351 20:TPF354", ""),
    "4f2_optimize_for_inference": ("", "3:TPF377 3:TPF901"),
    "4f_script_freeze": ("", "5:TPF901 6:TPF377"),
    "4g_no_eval": ("", "6:TPF502"),
    "4h_benchmark": ("", ""),
    "4i_channels_last": ("9:TPF354", ""),
    "4j_depthwise": ("5:TPF301", ""),
    "4k_tensorrt": ("", "6:TPF901"),
    "4l_conv_bn": ("8:TPF301", ""),
    "x1_infer_no_eval": ("9:TPF503", "7:TPF502"),
    "x2_validate_chain": ("", "4:TPF502 11:TPF101"),
    "x3_bert_hot": ("12:TPF201 13:TPF946", "13:TPF501"),
    "x4_timm_hot": ("12:TPF503", "12:TPF501"),
    "x5_listcomp_reduce_overhead": ("7:TPF805", ""),
    "x6_yield": ("12:TPF805", ""),
    "x7_graphed_instance_item": ("11:TPF801", ""),
    "x8_ragged_graphed": ("", "6:TPF407"),
    "x9_half_channels": ("9:TPF354", ""),
    "z1": ("5:TPF503", ""),
    "z2": ("10:TPF201 10:TPF503", ""),
    "z3": ("10:TPF201", "10:TPF501 17:TPF501"),
}
"""The findings by program, as line:code: those of the default profile, and the others of the audit profile.

A program runs most of its lines once, so that many are silent by default; programs without any finding are answered by
a run, or advise what perflint does not (1g, 2b, 2c, 3e, 4b, 4h).
"""


def findings(name: str, profile: Profile) -> list[str]:
    path = FOLDER / f"{name}.py"
    return [f"{line}:{code}" for line, code in sorted(set(check(path.name, path.read_text("utf-8"), profile)))]


def test_each_statement_has_its_findings() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == FOUND.keys()


@pytest.mark.parametrize("name", FOUND)
def test_statement(name: str) -> None:
    shown, hidden = (each.split() for each in FOUND[name])
    assert findings(name, Profile.DEFAULT) == shown
    assert sorted(findings(name, Profile.AUDIT)) == sorted([*shown, *hidden])


def test_coverage_names_each_rule_that_speaks_by_default() -> None:
    codes = {code for shown, _ in FOUND.values() for code in re.findall(r"TPF\d+", shown)}
    text = COVERAGE.read_text(encoding="utf-8")
    assert not {code for code in codes if code not in text}
