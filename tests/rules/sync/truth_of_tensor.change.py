"""A condition that Python checks, and one that the device checks."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert (x >= 0).all()
        return x.relu()


def case_holds():
    return {"y": Net()(torch.ones(3, device="cuda"))}


def change_holds(waits):
    """checks on the GPU without waiting"""
    assert waits == (1, 0)


def case_fails():
    return {"y": Net()(-torch.ones(3, device="cuda"))}


def change_fails(error, waits):
    """When the condition fails, the error comes later"""
    assert error[0].startswith("AssertionError") and error[1].startswith("RuntimeError: Expected Tensor")


class Told(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert torch.all(x <= 1), "out of range"
        return x.relu()


def case_told():
    return {"y": Told()(torch.full((3,), 2.0, device="cuda"))}


def change_told(error, waits):
    """When the condition fails, the error comes later"""
    assert error == ("AssertionError: out of range", "RuntimeError: out of range")


class Empty(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert not x.byte().any()
        return x + 1


def case_bytes_of_zero():
    return {"y": Empty()(torch.zeros(3, device="cuda"))}


def case_bytes():
    return {"y": Empty()(torch.ones(3, device="cuda"))}


def change_bytes(error, waits):
    """When the condition fails, the error comes later"""
    assert error[0].startswith("AssertionError") and error[1].startswith("RuntimeError: Expected Tensor")


def asked(x: torch.Tensor, y: torch.Tensor, limit: int) -> list[str]:
    x, y = x.cuda(), y.cuda()
    found = []
    if (x > 0).any() or (y > 0).any():
        found.append("some")
    if limit > 0 and (x > 0).all() and (x < limit).all() and limit < 9:
        found.append("within")
    if not (x > 0).any() and not (y > 0).any():
        found.append("none")
    if x.min() < 0 or (x.max() > limit):
        found.append("outside")
    if bool((x > limit).all()) and bool((y > limit).all()):
        found.append("all")
    found.append("ends" if not (x > 0).all() or not (x < 3).all() else "inside")
    return found


def case_asked():
    grid = (-1.0, 0.0, 2.0, torch.nan)
    made = [(torch.full((3,), a), torch.full((2, 2), b)) for a in grid for b in grid]
    return {"found": [asked(x, y, limit) for x, y in made for limit in (-2, 1, 4)]}


def change_asked(waits):
    """The answer is the same."""
    assert waits[1] < waits[0]


def apart(x: torch.Tensor, y: torch.Tensor) -> list[str]:
    found = []
    if torch.any(x <= 0) or torch.any(y < 0):
        found.append("negative")
    count, total, *_ = x.reshape(-1)
    if count == 0 and total != 0:
        found.append("empty")
    return found


def case_apart():
    grid = (-1.0, 0.0, 2.0)
    made = [(torch.tensor([a, 1.0]), torch.full((2, 2), b)) for a in grid for b in grid]
    places = [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda"), ("cpu", "cpu")]
    return {"found": [apart(x.to(one), y.to(other)) for x, y in made for one, other in places]}


def change_apart(waits):
    """They must be on the device of the first one, or give one truth value each"""
    assert waits[1] < waits[0]


def first_and_last(rows: torch.Tensor, kept: torch.Tensor) -> list[bool]:
    rows, kept = rows.cuda(), kept.cuda() > 0
    found = []
    for row in rows:
        found.append(bool((row[0] == 1).all() and (row[1] == 1).all()))
    while kept.any() or (rows > 2).all():
        kept = kept & (rows.sum() < 0)
        rows = rows - 1
    return [*found, bool(rows.sum() > 0)]


def case_in_loops():
    rows = torch.tensor([[1, 1], [1, 2], [2, 1], [4, 4]])
    return {"found": [first_and_last(rows, kept) for kept in (torch.ones(2), torch.zeros(2), torch.zeros(0))]}


def change_in_loops(waits):
    """Tests in a row become one"""
    assert waits[1] <= waits[0]


def kept_where_the_first_test_is_needed(x: torch.Tensor, m: torch.Tensor) -> bool:
    x, m = x.cuda(), m.cuda() > 0
    if m.any() and x[m].max() > 1:
        return True
    if m.any() and x.max() > 1:
        return True
    return bool((m == 1).all() and (x == m.cpu().cuda()).all())


def case_empty():
    return {"found": kept_where_the_first_test_is_needed(torch.ones(0), torch.ones(0))}
