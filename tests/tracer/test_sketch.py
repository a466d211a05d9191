"""Sketches tell equal tensors from others, and how far these are apart."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import pytest

from perflint.tracer.sketch import distance, first_other, norm, same_bits, sketched

if find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch


def state(**tensors: torch.Tensor) -> Any:
    return {name: sketched(tensor)() for name, tensor in tensors.items()}


KINDS = [
    torch.randn(5, 7),
    torch.randn(1 << 17),
    torch.tensor(3.5),
    torch.empty(0),
    torch.arange(9),
    torch.tensor([True, False]),
    torch.randn(4, 4).to(torch.bfloat16),
    torch.randn(4, 4).double().t(),
    torch.randn(3, 3).to(torch.float8_e4m3fn),
    torch.randn(6, dtype=torch.complex64).conj(),
    torch.eye(4).to_sparse(),
]


@pytest.mark.parametrize("tensor", KINDS, ids=lambda tensor: f"{tensor.dtype} {tuple(tensor.shape)}")
def test_equal_tensors_have_equal_sketches(tensor: torch.Tensor) -> None:
    assert state(x=tensor) == state(x=tensor.clone())


def test_the_last_bit_and_the_order_count() -> None:
    tensor = torch.randn(1000)
    near = tensor.clone()
    near[617] = torch.nextafter(near[617], torch.tensor(9.0))
    assert first_other(state(x=tensor), state(x=near)) == "x"
    assert not same_bits(state(x=tensor), state(x=tensor.flip(0)))
    assert not same_bits(state(x=torch.zeros(3)), state(x=torch.zeros(4)))
    assert first_other(state(x=tensor), state(x=tensor, y=tensor)) == "y"
    assert 0 < distance(state(x=tensor), state(x=near)) < 1e-5


@pytest.mark.parametrize("by", [1e-4, 0.1, 3.0])
def test_the_distance_is_about_that_of_the_tensors(by: float) -> None:
    one = {f"{index}": torch.randn(500) for index in range(20)}
    other = {name: tensor + by * torch.randn(500) for name, tensor in one.items()}
    apart = math.sqrt(sum(float((one[name] - other[name]).square().sum()) for name in one))
    assert distance(state(**one), state(**other)) == pytest.approx(apart, rel=0.4)
    assert norm(state(**one)) == pytest.approx(100, rel=0.4)


def test_a_tensor_that_is_not_there_is_zeros() -> None:
    assert distance(state(x=torch.zeros(5)), {}) == 0 and distance({}, state(x=torch.full((1,), 3.0))) == 3


def test_a_factor_is_taken_out() -> None:
    tensor = torch.randn(100)
    scaled = {"x": sketched(tensor * 1024, torch.tensor(1024.0))()}
    assert distance(state(x=tensor), scaled) < 1e-5 * norm(state(x=tensor))


def test_no_random_number_is_drawn_and_settings_stay() -> None:
    before = torch.get_rng_state()
    torch.use_deterministic_algorithms(True)
    try:
        with torch.inference_mode():
            state(x=torch.ones(3))
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(before, torch.get_rng_state()) and torch.is_grad_enabled()
