"""Fixes that save nothing, or take a choice from callers, are not written."""

from __future__ import annotations

import pytest

from perflint.findings import WRITABLE, Finding, Safety
from perflint.fixes.apply import apply_fixes
from perflint.rules.base import Rule
from perflint.rules.legacy.pin_memory_device import PinMemoryDevice
from perflint.rules.optimizer.optimizer_step_on_gpu import OptimizerStepOnGpu
from perflint.rules.sync.distributions_validate import DistributionsValidate
from perflint.rules.sync.number_store import NumberStore
from perflint.rules.sync.scalar_read_in_loop import ScalarReadInLoop
from tests.rules.harness import lint


def safeties(rule: type[Rule], text: str) -> list[Safety | None]:
    """The degrees of the fixes of a rule in a text, by position; None for a finding without one."""
    return [None if each.fix is None else each.fix.safety for each in lint(text, [rule], "audit")]


def fixed(rule: type[Rule], text: str) -> str:
    """A text after all fixes of a rule that may be written."""

    def relint(now: str) -> list[Finding]:
        return lint(now, [rule], "audit")

    return apply_fixes(text, relint(text), relint, WRITABLE).text


TRAIN = """
import torch

def train(model: torch.nn.Module, loader, optimizer, bar, log):
    model.cuda()
    losses = []
    total = 0.0
    for step, x in enumerate(loader):
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        {gathers}
        {then}
    return total, losses
"""
LIST, SUM = "losses.append(loss.item())", "total += loss.item()"


@pytest.mark.parametrize("gathers", [LIST, SUM])
@pytest.mark.parametrize(
    ("then", "is_kept"),
    [
        ("pass", True),
        ("bar.set_postfix(loss=loss.item())", False),
        ("bar.set_postfix(loss=float(loss))", False),
        ("print(f'{loss:.3f}')", False),
        ("print({'loss': f'{loss.item():.3f}'})", False),
        ("if bar is not None:\n            bar.set_postfix(loss=loss.item())", False),
        ("if step % 100 == 0:\n            print(loss.item())", True),
        ("bar.set_postfix(norm=x.max().item())", True),
        ("print(loss.shape, loss.device)", True),
        ("bar.set_postfix(size=len(x))", True),
    ],
)
def test_a_number_that_each_turn_needs_anyway_is_not_kept(gathers: str, then: str, is_kept: bool) -> None:
    """The CPU waits for the second read instead of the first one."""
    text = fixed(ScalarReadInLoop, TRAIN.format(gathers=gathers, then=then))
    assert (gathers not in text) is is_kept


def test_a_number_in_a_sum_and_in_a_list_is_kept_twice() -> None:
    text = fixed(ScalarReadInLoop, TRAIN.format(gathers=LIST, then=SUM))
    assert LIST not in text and SUM not in text


STORE = """
import torch

def table(x: torch.Tensor, names: dict):
    rows = torch.zeros(2, 9, device="cuda")
    x = x.cuda()
    for i in range(9):
        rows[0, i] = {value}
    return rows
"""


@pytest.mark.parametrize(
    ("value", "safety"),
    [("1.0", Safety.SAFE), ("float(i)", Safety.SAFE), ("x[i].item()", None), ("float(x.max())", None)],
)
def test_a_store_of_a_number_that_is_read_has_no_fix(value: str, safety: Safety | None) -> None:
    assert safeties(NumberStore, STORE.format(value=value)) == [safety]


SAMPLER = """
import torch
from torch.distributions import Categorical
from torch import distributions

class Sampler:
    def __init__(self, kind=Categorical):
        self.kind = kind

    def sample(self, logits: torch.Tensor, kind=Categorical):
        own = Categorical
        return {made}(logits=logits.cuda()).sample()
"""


@pytest.mark.parametrize(
    ("made", "safety"),
    [
        ("Categorical", Safety.UNSAFE),
        ("distributions.Categorical", Safety.UNSAFE),
        ("torch.distributions.Categorical", Safety.UNSAFE),
        ("self.kind", None),
        ("kind", None),
    ],
)
def test_a_class_that_callers_choose_may_take_other_arguments(made: str, safety: Safety | None) -> None:
    found = safeties(DistributionsValidate, SAMPLER.format(made=made))
    assert found in ([safety], [] if safety is None else [safety])


RESUME = """
import torch

def resume(path, model: torch.nn.Module, {parameter}):
    optimizer = torch.optim.Adam(model.parameters())
    state = torch.load(path, map_location={place})
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    {then}
    return {given}
"""


@pytest.mark.parametrize(
    ("parameter", "place", "then", "given", "safety"),
    [
        ("device", '"cuda"', "pass", 'state["epoch"]', Safety.UNSAFE),
        ("device", "device", "model.to(device)", 'state["epoch"]', Safety.UNSAFE),
        ("device='cuda'", "device", "pass", 'state["epoch"]', Safety.DISPLAY),
        ("device", '"cuda"', "pass", "state", Safety.DISPLAY),
        ("device", '"cuda"', "pass", '{"checkpoint": state, "epoch": state["epoch"]}', Safety.DISPLAY),
        ("device", '"cuda"', "model.state = state", "model", Safety.DISPLAY),
        ("device", '"cuda"', "print(len(state))", '"epoch" in state', Safety.UNSAFE),
    ],
)
def test_a_checkpoint_stays_where_callers_want_it(
    parameter: str, place: str, then: str, given: str, safety: Safety
) -> None:
    text = RESUME.format(parameter=parameter, place=place, then=then, given=given)
    assert safeties(OptimizerStepOnGpu, text) == [safety]


OPTIONS = """
import torch

def resume(path):
    model = torch.nn.Linear(3, 2).cuda()
    optimizer = torch.optim.Adam({options})
    optimizer.load_state_dict(torch.load(path, map_location="cuda")["optimizer"])
    return optimizer
"""


@pytest.mark.parametrize(
    ("options", "safety"),
    [
        ("model.parameters(), lr=0.1", Safety.SAFE),
        ("[{'params': model.parameters(), 'weight_decay': 0.1}], lr=0.1", Safety.SAFE),
        ("model.parameters(), lr=torch.tensor(0.1, device='cuda')", Safety.UNSAFE),
        ("model.parameters(), betas=(torch.tensor(0.9, device='cuda'), 0.99)", Safety.UNSAFE),
        ("[{'params': model.parameters(), 'scale': torch.ones(2, device='cuda')}], lr=0.1", Safety.UNSAFE),
    ],
)
def test_tensors_among_the_options_of_an_optimizer_stay_as_they_are_loaded(options: str, safety: Safety) -> None:
    assert safeties(OptimizerStepOnGpu, OPTIONS.format(options=options)) == [safety]


LOADER = """
import torch
from torch.utils.data import DataLoader

def loader(data):
    made = DataLoader(data, batch_size=4, pin_memory=True, pin_memory_device="cuda")
    {then}
    return made
"""


@pytest.mark.parametrize(
    ("then", "safety"),
    [
        ("pass", Safety.SAFE),
        ("print(made.pin_memory)", Safety.SAFE),
        ("print(made.pin_memory_device)", Safety.UNSAFE),
        ("print(vars(made))", Safety.UNSAFE),
        ("print(getattr(made, 'pin_memory_device', ''))", Safety.UNSAFE),
    ],
)
def test_the_device_of_a_loader_may_be_read(then: str, safety: Safety) -> None:
    assert safeties(PinMemoryDevice, LOADER.format(then=then)) == [safety]


@pytest.mark.parametrize(
    ("count", "kept"),
    [
        ("(out > 0).sum().item()", "(out > 0).sum()"),
        ("out.gt(0).sum().item()", "out.gt(0).sum()"),
        ("out.argmax(1).eq(x[:, 0]).sum().item()", "out.argmax(1).eq(x[:, 0]).sum()"),
        ("out.clamp(0).sum().item()", "out.clamp(0).sum().detach().double()"),
    ],
)
def test_the_sum_of_a_comparison_has_no_graph(count: str, kept: str) -> None:
    text = f"""
import torch

def count(model: torch.nn.Module, loader):
    model.cuda()
    total = {"0.0" if "clamp" in count else "0"}
    for x in loader:
        out = model(x.cuda())
        total += {count}
    return total
"""
    assert f"total += {kept}\n" in fixed(ScalarReadInLoop, text)
