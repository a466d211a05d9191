"""What rules know of the memory of tensors, held against torch, and how long they take to find out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
import torch

from perflint.findings import Finding
from perflint.rules._memory import operators
from perflint.rules.base import Rule
from perflint.semantics.sites import Site
from tests.growth import calls, is_linear
from tests.rules.harness import lint, source_cases

if TYPE_CHECKING:
    pass

RULES = {case.rule.code: case.rule for case in source_cases()}
Operands = tuple[torch.Tensor, ...]


def numbers(*shape: int) -> torch.Tensor:
    return (torch.arange(float(torch.Size(shape).numel())) / 7 - 1).reshape(shape)


INDEX = torch.tensor([[0, 1, 1], [1, 0, 1]])
MASK = torch.tensor([[True, False, True], [False, False, True]])
ONE, TWO = numbers(2, 3), numbers(2, 3) * 2
NAMED: dict[str, Callable[..., object]] = {
    "gather": lambda x, index: x.gather(0, index),
    "take_along_dim": lambda x, index: x.take_along_dim(index, 0),
    "index_select": lambda x, index: x.index_select(0, index[0]),
    "masked_fill": lambda x, mask: x.masked_fill(mask, 3.0),
    "masked_fill_": lambda x, mask: (x * 1).masked_fill_(mask, 3.0),
    "masked_select": lambda x, mask: x.masked_select(mask),
    "scatter": lambda x, index, y: x.scatter(0, index, y),
    "scatter_": lambda x, index, y: (x * 1).scatter_(0, index, y),
    "index_add_": lambda x, index, y: (x * 1).index_add_(0, index[:, 1], y),
    "embedding": lambda index, x: torch.nn.functional.embedding(index, x),
    "one_hot": lambda index: torch.nn.functional.one_hot(index),
    "copy_": lambda x, y: (x * 1).copy_(y),
    "add_": lambda x, y: (x * 1).add_(y),
    "sub_": lambda x, y: (x * 1).sub_(y),
    "mul_": lambda x, y: (x * 1).mul_(y),
    "div_": lambda x, y: (x * 1).div_(y),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1),
    "full_like": lambda x: torch.full_like(x, 2.0),
    "item": lambda x: x[0, 0].item(),
}
OPERANDS: dict[str, Operands] = {
    **dict.fromkeys(("gather", "take_along_dim", "index_select"), (ONE, INDEX)),
    **dict.fromkeys(("scatter", "scatter_", "index_add_"), (ONE, INDEX, TWO)),
    **dict.fromkeys(("masked_fill", "masked_fill_", "masked_select"), (ONE, MASK)),
    "embedding": (INDEX, ONE),
    "one_hot": (INDEX,),
    **dict.fromkeys(("bitwise_and", "bitwise_or"), (INDEX, INDEX.flip(0))),
    "bitwise_not": (INDEX,),
}


def function_of(name: str) -> Callable[..., object]:
    if name in NAMED:
        return NAMED[name]
    if name in operators.JOINS:
        return lambda *given: getattr(torch, name)(given)
    return getattr(torch, name)


def operands_of(name: str) -> Operands:
    """Operands of an operator, as many as it takes."""
    if name in OPERANDS:
        return OPERANDS[name]
    for given in ((ONE, TWO), (ONE,)):
        try:
            function_of(name)(*given)
        except (TypeError, RuntimeError):
            continue
        return given
    raise AssertionError(name)


def is_kept(name: str, position: int) -> bool:
    """True if a write to an operand before the backward pass is an error."""
    given = [each.clone() for each in operands_of(name)]
    leaves = [each.requires_grad_() if each.is_floating_point() else each for each in given]
    used = [each.view_as(each) if each.requires_grad else each for each in leaves]
    result = function_of(name)(*used)
    if not isinstance(result, torch.Tensor) or not result.requires_grad:
        return False
    with torch.no_grad():
        used[position].zero_()
    try:
        result.sum().backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        return True
    return False


SAVED = sorted(
    {(name, i) for name in operators.SAVES_NOTHING for i in range(len(operands_of(name)))}
    | {(name, 0) for name in operators.SAVES_OTHERS}
)


@pytest.mark.parametrize(("name", "position"), SAVED)
def test_autograd_does_not_keep_operands(name: str, position: int) -> None:
    assert not is_kept(name, position)


@pytest.mark.parametrize("name", ["mul", "div", "maximum", "abs", "gather", "masked_fill", "index_select"])
def test_autograd_keeps_other_operands(name: str) -> None:
    assert any(is_kept(name, i) for i in range(len(operands_of(name))))


def laid_out_anew(x: torch.Tensor) -> torch.Tensor:
    """The same values with other strides."""
    return x.t().contiguous().t()


def strides(name: str, given: list[torch.Tensor]) -> object:
    result = function_of(name)(*given)
    return result.stride() if isinstance(result, torch.Tensor) else result


LAID_OUT = sorted(
    {(name, i) for name in operators.LAYOUT_OF_NONE for i in range(len(operands_of(name)))}
    | {(name, i) for name in operators.LAYOUT_OF_FIRST for i in range(1, len(operands_of(name)))}
)


@pytest.mark.parametrize(("name", "position"), LAID_OUT)
def test_strides_do_not_come_from_operands(name: str, position: int) -> None:
    given = list(operands_of(name))
    before = strides(name, given)
    given[position] = laid_out_anew(given[position])
    assert strides(name, given) == before


def test_strides_come_from_other_operands() -> None:
    given = [ONE, TWO]
    assert strides("add", [laid_out_anew(ONE), TWO]) != strides("add", given)
    assert strides("mul_", [laid_out_anew(ONE), TWO]) != strides("mul_", given)


@pytest.mark.parametrize("name", sorted(operators.JOINS & operators.ELEMENTWISE))
@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((1, 4), (3, 4)),
        ((4, 1), (4, 3)),
        ((1, 4, 5), (3, 4, 5)),
        ((2, 1, 5), (2, 3, 5)),
        ((2, 4, 1), (2, 4, 3)),
        ((2, 3, 1, 1), (2, 3, 4, 5)),
        ((2, 1, 4, 5), (2, 3, 4, 5)),
        ((1, 3, 4, 5), (2, 3, 4, 5)),
        ((1, 1, 4, 5), (2, 3, 4, 5)),
        ((2, 3, 1, 4, 5), (2, 3, 6, 4, 5)),
    ],
)
def test_joins_of_expanded_tensors_have_the_same_strides(
    name: str, shape: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    given = numbers(*shape)
    expanded = given.expand(sizes)
    repeated = given.repeat(*(size // old for size, old in zip(sizes, shape, strict=True)))
    for others in ([], [numbers(*sizes)], [laid_out(numbers(*sizes))]):
        for before, after in (([repeated, *others], [expanded, *others]), ([*others, repeated], [*others, expanded])):
            one, other = (getattr(torch, name)(each) for each in (before, after))
            assert one.stride() == other.stride() and torch.equal(one, other)


def laid_out(x: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.contiguous(memory_format=formats[x.dim()]) if x.dim() in formats else x.mT.contiguous().mT


def clones(count: int) -> str:
    lines = [
        "import torch",
        "def run(x: torch.Tensor, model, steps: int):",
        "    total = 0",
        "    for step in range(steps):",
    ]
    for i in range(count):
        lines += [f"        a{i} = x.clone()", f"        total = total + a{i}"]
    return "\n".join([*lines, "    return total", ""])


def repeats(count: int) -> str:
    lines = ["import torch", "def run(x: torch.Tensor, others: list, steps: int):", "    for step in range(steps):"]
    for i in range(count):
        lines += [f"        a{i} = x[None].repeat(4, 1, 1)", f"        others.append(torch.cat([a{i}, x]))"]
    return "\n".join([*lines, ""])


def counted(rule: type[Rule], counts: list[int]) -> type[Rule]:
    """The rule, whose checks add to the last of some counts how many functions they call."""

    def check(self: Rule, site: Site) -> Iterator[Finding]:
        # How often a place runs is no matter of the rule.
        assert site.heat
        found: list[Finding] = []
        counts[-1] += calls(lambda: found.extend(rule.check(self, site)))
        yield from found

    return type(rule.__name__, (rule,), {"check": check})


@pytest.mark.parametrize(("code", "text"), [("TPF213", clones), ("TPF212", repeats)])
def test_time_is_linear(code: str, text: Callable[[int], str]) -> None:
    lint(text(4), [RULES[code]], "audit")
    counts: list[int] = []
    for size in (25, 50, 100):
        counts.append(0)
        assert len(lint(text(size), [counted(RULES[code], counts)], "audit")) == size
    assert is_linear(counts), counts


def _repeated(reads: int, after: str) -> str:
    lines = "\n".join(f"    total = total + rows[:, {i}] * 2 + 1" for i in range(reads))
    return f"""
import torch

def spread(size):
    rows = torch.tensor([[[0, 0], [1, 0]]]).repeat(size, 1, 1)
    total = 0
{lines}
    {after}
    return total
"""


def test_uses_of_what_is_computed_from_a_tensor_do_not_hide_those_of_the_tensor() -> None:
    rule = RULES["TPF212"]
    assert [each.code for each in lint(_repeated(25, "pass"), [rule], "audit")] == ["TPF212"]
    assert not lint(_repeated(25, "rows[0] = 1"), [rule], "audit")


def test_a_tensor_with_too_many_uses_counts_as_kept() -> None:
    assert not lint(_repeated(60, "pass"), [RULES["TPF212"]], "audit")


CALLED = """
import torch

def sampled(logits, points):
    scores = logits(points)
    return scores.topk(2)

def losses(size):
    rows = torch.tensor([[[0.0, 0.0], [1.0, 0.0]]], device="cuda").repeat(size, 1, 1)
    sampled(rows, 2)
"""


def test_a_tensor_that_is_called_counts_as_kept() -> None:
    assert not lint(CALLED, [RULES["TPF212"]], "audit")
