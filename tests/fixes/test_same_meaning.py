"""Safe fixes mean what they say: code runs before and after them, and gives the same bit for bit.

`tests/rules/<family>/<rule>.run.py` holds functions `case_…` without parameters. Each returns
what its fixed self must return too: tensors (with their gradients), modules (with their state
and gradients), optimizers, numbers, and containers of these. The code runs on the device
where there is one, on the CPU otherwise. Functions `kept_…` look alike, but safe fixes must leave
them as they are.
"""

from __future__ import annotations

import ast
import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perflint.findings import Finding, Safety
from perflint.fixes.apply import apply_fixes
from tests.rules.harness import Case, lint, parse_fixture, source_cases

CASES = source_cases()


def runs(case: Case) -> Path:
    return case.fixture.with_suffix(".run.py")


def functions(text: str, prefix: str = "case_") -> dict[str, str]:
    """The functions of a file whose names start alike, each as the text of its tree."""
    return {
        node.name: ast.dump(node)
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith(prefix)
    }


def fixed(case: Case, text: str) -> str:
    """A text after the safe fixes of a rule."""

    def relint(now: str) -> list[Finding]:
        return lint(now, [case.rule], "audit")

    return apply_fixes(text, relint(text), relint, (Safety.SAFE,)).text


def run(path: Path, text: str, name: str) -> dict[str, object]:
    """What a case of a text returns and prints."""
    import torch

    namespace: dict[str, Callable[[], object]] = {}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as printed:
        # What is deprecated warns; that is why it is fixed.
        warnings.simplefilter("ignore")
        exec(compile(text, str(path), "exec"), namespace)
        torch.manual_seed(0)
        value = namespace[name]()
    return {"printed": printed.getvalue(), **dict(leaves("result", value))}


def leaves(path: str, value: object) -> Iterator[tuple[str, object]]:
    """The parts of a result by path, down to bytes."""
    import torch

    if isinstance(value, torch.Tensor):
        yield path, (value.dtype, value.shape, value.stride(), value.device.type, value.requires_grad, value.is_leaf)
        yield f"{path}.bytes", value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        yield from leaves(f"{path}.grad", value.grad if value.is_leaf else None)
    elif isinstance(value, torch.nn.Module):
        yield path, (type(value).__name__, value.training)
        yield from leaves(f"{path}.state", value.state_dict())
        yield from leaves(f"{path}.grads", {name: parameter.grad for name, parameter in value.named_parameters()})
    elif isinstance(value, torch.optim.Optimizer):
        yield from leaves(f"{path}.state", value.state_dict())
    elif isinstance(value, dict):
        yield f"{path}.keys", (type(value).__name__, list(value))
        for key, item in value.items():
            yield from leaves(f"{path}[{key!r}]", item)
    elif isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        yield f"{path}.length", (type(value).__name__, len(value))
        for index, item in enumerate(value):
            yield from leaves(f"{path}[{index}]", item)
    else:
        assert isinstance(value, (bool, int, float, str, type(None), torch.dtype, torch.device, torch.Size)), (
            f"{path}: do not know how to compare a {type(value).__name__}"
        )
        yield path, (type(value).__name__, repr(value))


def has_safe_fix(case: Case) -> bool:
    findings = lint(parse_fixture(case.fixture.read_text(encoding="utf-8")).text, [case.rule], "audit")
    return any(finding.fix is not None and finding.fix.safety is Safety.SAFE for finding in findings)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rules_with_safe_fixes_have_code_to_run(case: Case) -> None:
    if has_safe_fix(case):
        assert runs(case).exists(), f"{case} has safe fixes: write {runs(case).name} with a case for each kind"
        assert functions(runs(case).read_text(encoding="utf-8"))
    else:
        assert not runs(case).exists(), f"{case} has no safe fix; {runs(case).name} proves nothing"


SNIPPETS = [
    (case, name) for case in CASES if runs(case).exists() for name in functions(runs(case).read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("case", "name"), SNIPPETS, ids=lambda value: str(value).removeprefix("case_"))
def test_same_meaning(case: Case, name: str) -> None:
    path = runs(case)
    before = path.read_text(encoding="utf-8")
    after = fixed(case, before)
    assert functions(before)[name] != functions(after)[name], f"the safe fixes of {case} leave {name} as it is"
    first, again, second = run(path, before, name), run(path, before, name), run(path, after, name)
    assert first == again, f"{name} is not the same twice by itself"
    different = [
        f"{key}: {first.get(key)!r} became {second.get(key)!r}"
        for key in first.keys() | second.keys()
        if first.get(key) != second.get(key)
    ]
    assert not different, "\n".join(sorted(different))


@pytest.mark.parametrize("case", [case for case in CASES if runs(case).exists()], ids=str)
def test_safe_fixes_keep_what_they_must(case: Case) -> None:
    before = runs(case).read_text(encoding="utf-8")
    assert functions(before, "kept_") == functions(fixed(case, before), "kept_")


def test_leaves_see_every_bit() -> None:
    import torch

    zero, minus = torch.tensor([0.0]), torch.tensor([-0.0])
    assert dict(leaves("x", zero)) != dict(leaves("x", minus))
    assert dict(leaves("x", zero)) != dict(leaves("x", zero.double()))
    assert dict(leaves("x", zero)) != dict(leaves("x", zero.clone().requires_grad_()))
    assert dict(leaves("x", [zero])) != dict(leaves("x", (zero,)))
    assert dict(leaves("x", torch.tensor([float("nan")]))) == dict(leaves("x", torch.tensor([float("nan")])))
    layer, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    other.load_state_dict(layer.state_dict())
    assert dict(leaves("x", layer)) == dict(leaves("x", other))
    other(torch.ones(2)).sum().backward()
    assert dict(leaves("x", layer)) != dict(leaves("x", other))
    assert dict(leaves("x", 1)) != dict(leaves("x", 1.0)) != dict(leaves("x", True))
