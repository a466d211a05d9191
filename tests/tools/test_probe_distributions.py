"""What a GPU said of torch's distributions, held against the installed torch: on the host, too, each check reads."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

from perflint.semantics.facts import torch_api
from tests.tools.loading import load_tool

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
FACTS = torch_api.table("distributions")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load_tool("probe_distributions")


@pytest.fixture(autouse=True)
def checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distributions check their arguments, as they do unless somebody in this process has changed it."""
    from torch.distributions import Distribution

    monkeypatch.setattr(Distribution, "_validate_args", True)


def reads(call: Callable[[], Any]) -> int:
    """How many values of tensors Python asks for while `call` runs."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        found = 0

        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.found += operator._schema.name == "aten::_local_scalar_dense"
            return operator(*args, **(kwargs or {}))

    with Count() as mode:
        call()
    return mode.found


@pytest.mark.parametrize("label", FACTS["constructors"])
def test_the_checks_of_a_constructor_are_those_of_the_installed_torch(tool: ModuleType, label: str) -> None:
    import torch

    make, device = tool.samples()[label], torch.device("cpu")
    checked, unchecked = (reads(lambda: make(device, options)) for options in tool.OPTIONS)  # noqa: B023
    assert checked - unchecked == FACTS["constructors"][label][0] - FACTS["constructors"][label][1]


def test_every_distribution_was_measured(tool: ModuleType) -> None:

    measured = {f"torch.distributions.{label.partition(':')[0]}" for label in FACTS["constructors"]}
    abstract = {"torch.distributions.Distribution", "torch.distributions.ExponentialFamily"}
    modules = load_tool("torch_api.modules")
    assert measured == set(modules.distributions()) - abstract
    assert measured == {f"torch.distributions.{name.partition(':')[0]}" for name in tool.samples()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["methods", "properties", "distributions"])
def test_members_are_what_the_table_says(tool: ModuleType, kind: str) -> None:
    import torch

    seen: set[str] = set()
    for label, make in tool.samples().items():
        name = label.partition(":")[0]
        for member in set(FACTS[kind].split()) & set(tool.members(name)):
            try:
                made = make(torch.device("cpu"), {})
                value = getattr(made, member)
                if kind == "methods":
                    value = value(made.sample()) if member in ("log_prob", "cdf", "icdf") else value()
            except (AttributeError, NotImplementedError, TypeError, RuntimeError, ValueError):
                continue
            assert tool.kind_of(name, member, value) == kind
            seen.add(member)
    assert seen == set(FACTS[kind].split())
