"""The watch of calls sees those of the program, and leaves torch as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest

from perflint.tracer.places import Locator
from perflint.tracer.recording import Recording
from perflint.tracer.witnesses._calls import CallWatch
from perflint.tracer.witnesses.base import Call
from perflint.tracer.witnesses.watching import Witnesses, witness_classes

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@contextmanager
def watching(*watched: tuple[Any, str]) -> Iterator[list[Call]]:
    calls: list[Call] = []
    watch = CallWatch(Recording(Locator(Path.cwd())))
    watch.start((owner, name, calls.append) for owner, name in watched)
    watch.start_builtins()
    try:
        yield calls
    finally:
        watch.stop()


@pytest.mark.parametrize("every_call", [True, False])
def test_a_program_without_torch_ends_in_order(every_call: bool) -> None:
    witnesses = Witnesses(Recording(Locator(Path.cwd())), lambda do: do, lambda module: None, every_call)
    witnesses.rest()
    witnesses.stop()
    assert witnesses.call_steps == 0


def test_methods_functions_and_builtins() -> None:
    import torch
    from torch.nn import functional

    x = torch.ones(3)
    special = torch.Tensor.__dict__.get("__getitem__")
    with watching((torch.Tensor, "__getitem__"), (torch.Tensor, "clone")) as calls:
        assert torch.Tensor.__dict__.get("__getitem__") is special
        x[:2].clone()
    assert [tuple(call.result.shape) for call in calls] == [(2,), (2,)]
    with watching((torch.Tensor, "clone"), (torch, "cat"), (functional, "softmax")) as calls:
        x.clone()
        torch.cat([x, x])
        functional.softmax(x, 0)
        functional.relu(x)
    assert [tuple(call.result.shape) for call in calls] == [(3,), (6,), (3,)]
    assert all(call.where.place is not None and call.where.place.file.endswith("test_calls.py") for call in calls)


def test_calls_inside_of_torch_are_not_the_programs() -> None:
    import torch

    with watching((torch, "cat"), (torch.Tensor, "reshape"), (torch.Tensor, "clone")) as calls:
        torch.nn.Bilinear(2, 2, 2)(torch.ones(1, 2), torch.ones(1, 2))
        torch.nn.utils.parameters_to_vector([torch.ones(2)])
        torch.stack([torch.ones(1)])
    assert not calls


def test_torch_is_left_as_it_was() -> None:
    import torch

    before = torch.Tensor.clone, torch.Tensor.__dict__.get("clone"), torch.cat, torch.norm
    with watching((torch.Tensor, "clone"), (torch, "cat"), (torch, "norm")):
        assert torch.cat is before[2]
    assert (torch.Tensor.clone, torch.Tensor.__dict__.get("clone"), torch.cat, torch.norm) == before
    assert torch._C._len_torch_function_stack() == 0  # type: ignore[attr-defined]


def test_modes_of_the_program_may_end_in_any_order() -> None:
    import torch
    from torch.overrides import BaseTorchFunctionMode

    outer = BaseTorchFunctionMode()
    with torch.device("meta"):
        outer.__enter__()
        with watching((torch, "cat")) as calls:
            made = torch.cat([torch.ones(1)])
            outer.__exit__(None, None, None)
            again = torch.cat([torch.ones(1)])
    assert (made.device.type, again.device.type, len(calls)) == ("meta", "meta", 2)
    with watching((torch, "cat")) as calls:
        with torch.device("meta"):
            made = torch.cat([torch.ones(1)])
        after = torch.cat([torch.ones(1)])
    assert (made.device.type, after.device.type, len(calls)) == ("meta", "cpu", 2)


def test_tables_of_overrides_are_found() -> None:
    import torch

    class Logged(torch.Tensor):
        seen: ClassVar[list[Any]] = []

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]

    x = torch.ones(2).as_subclass(Logged)
    with watching((torch.Tensor, "clone"), (torch, "cat")) as calls:
        table = {torch.Tensor.clone: "clone", torch.cat: "cat"}
        x.clone()
        torch.cat([x])
    assert [table[func] for func in Logged.seen if func in table] == ["clone", "cat"]
    assert len(calls) == 2


def test_each_witness_describes_its_facts() -> None:
    names = [name for witness in witness_classes() for name in witness.facts]
    assert names and len(names) == len(set(names))
    assert all(meaning for witness in witness_classes() for meaning in witness.facts.values())


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_torchscript_compiles_functions_that_are_watched() -> None:
    import torch
    from torch.nn import functional

    def weighed(x: torch.Tensor) -> torch.Tensor:
        return torch.norm(functional.softmax(x, dim=-1), dim=-1) + x.sum(-1)

    with watching((functional, "softmax"), (torch, "norm"), (torch.Tensor, "sum")):
        scripted = torch.jit.script(weighed)
        result = scripted(torch.ones(2, 4))
    assert result.tolist() == weighed(torch.ones(2, 4)).tolist()


def test_an_operator_is_seen_although_its_method_is_wrapped() -> None:
    import torch

    x = torch.ones(2)
    with watching((torch.Tensor, "add_"), (torch.Tensor, "__iadd__")) as calls:
        x += 1
        assert len(calls) == 1
        x.add_(1)
        assert len(calls) == 2
    with watching((torch.Tensor, "__iadd__"), (torch.Tensor, "add_")) as calls:
        x += 1
        x.add_(1)
    assert len(calls) == 2
