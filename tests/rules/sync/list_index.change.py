"""Lists of numbers that become slices or stacks."""

import contextlib

import numpy as np
import torch


def layout(x: torch.Tensor):
    return x.cuda()[:, [1, 3]] * 2


def case_layout():
    made = layout(torch.arange(20.0).reshape(5, 4).t().contiguous().t())
    return {"values": made.contiguous(), "strides": made.stride()}


def change_layout(strides):
    """It is unsafe for products, sums and layers, which may round differently for another layout."""
    assert strides == ((2, 1), (1, 5))


def case_stacked(x: torch.Tensor = torch.arange(24.0).reshape(4, 3, 2)):
    x = x.cuda()
    return {"values": [x[:, [2, 1, 0]], x[[3, 0], :], x[..., [1, 0]], x[:, [0, 0, 1]]]}


def stored(x: torch.Tensor):
    x[:, [1, 3]] = 0.5
    x[[-1]] = x.new_ones(4)
    return x


def case_stored():
    return {"values": stored(torch.zeros(3, 4, device="cuda"))}


def case_expanded():
    return {"values": stored(torch.zeros(1, 4, device="cuda").expand(3, 4))}


def change_expanded(error):
    """it raises for an expanded tensor"""
    assert error[0] is None and "single memory location" in error[1]


def case_outside(x: torch.Tensor = torch.arange(6.0)):
    x = x.cuda()
    return {"values": x[[6]] > 0}


def change_outside(error):
    """Positions outside of the tensor raise no error any more: the slice ends before them."""
    assert "out of bounds" in error[0] and error[1] is None


def picked(x: torch.Tensor, rows: list[int], turns: int):
    x, rows = x.cuda(), list(rows)
    y, z = x * 2, x.exp()
    order = torch.randperm(4)
    found = [x[:, order]]
    for _ in range(turns):
        found.append(y[:, order])
    several = np.arange(4)[1:]
    found += [x[several], z[several, 1:]]
    y[rows] += 1
    z[rows] = x[rows, ...]
    return [*found, y, z, len(rows)]


def case_picked():
    torch.manual_seed(0)
    x = torch.arange(16.0).reshape(4, 4).requires_grad_()
    found = picked(x, [2, -1, 0], 2)
    sum(each.sum() for each in found).backward()
    nothing = picked(x, [], 0)
    return {"values": [each.detach() for each in found[:-1]], "gradient": x.grad, "nothing": nothing[-2].detach()}


def change_picked(waits):
    """The positions are copied once … from pinned memory"""
    assert waits[1] < waits[0]


def epochs(x: torch.Tensor, settings):
    """Positions of an array that is counted up or drawn: of floats, if the number of rows is one."""
    x = x.cuda()
    y = x * 2
    found = []
    rows = np.arange(settings.rows)
    for start in range(0, 4, 2):
        some = rows[start : start + 2]
        found += [x[some] + y.long()[some], y[some]]
    drawn = np.random.permutation(settings.count)
    few = drawn[: settings.count // 2]
    found += [x[few].exp(), y[few]]
    return [*found, range(settings.count)]


class Settings:
    count = 4

    def __init__(self, rows):
        self.rows = rows


def case_epochs():
    x = torch.arange(8.0).reshape(4, 2)
    np.random.seed(3)
    return {"whole": epochs(x, Settings(4))[:-1], "floats": epochs(x, Settings(4.0))[:-1]}


def change_epochs(waits):
    """is copied with `dtype=torch.long`, which cuts floats as an index does"""
    assert waits[1] < waits[0]


HEIGHTS = torch.arange(8.0).reshape(4, 2).cuda()
WIDTHS = HEIGHTS * 3
ORDER = np.arange(3)
FIRST = HEIGHTS[ORDER]
SECOND = WIDTHS[ORDER]


def case_top_level():
    return {"first": FIRST, "second": SECOND}


SHARED = np.arange(3)
THIRD = HEIGHTS[SHARED] + WIDTHS[SHARED]


def kept_where_a_function_sees_it():
    SHARED[0] = 2
    return HEIGHTS[SHARED], WIDTHS[SHARED]


def kept_where_arrays_may_be_masks(x: torch.Tensor, settings, given: np.ndarray):
    x, y = x.cuda(), x.exp().cuda()
    some = np.arange(settings.rows, dtype=settings.dtype)
    drawn = np.random.permutation(given)
    other = np.random.permutation(settings.mask)
    bent = np.arange(settings.rows)[given]
    first = x[some] + y[some], x[drawn] + y[drawn]
    return first, x[other] + y[other], x[bent] + y[bent]


def kept_where_the_whole_array_changes(x: torch.Tensor, settings, agent):
    x, y = x.cuda(), x.exp().cuda()
    rows = np.arange(settings.rows)
    some = rows[0:2]
    found = [x[some]]
    np.random.shuffle(rows)
    found.append(y[some])
    drawn = np.random.permutation(4)
    part = drawn[settings.first :]
    found.append(x[part])
    agent.reorder(drawn)
    found.append(y[part])
    either = np.arange(settings.rows)
    if settings.masks:
        either = either > 1
    return found, x[either] + y[either]


def short_numbers(x: torch.Tensor):
    x = x.cuda()
    rows = np.arange(2, dtype=np.int16)
    return x[rows] + x[rows]


def case_short_numbers():
    return {"values": short_numbers(torch.arange(6.0))}


def change_short_numbers(error):
    """an array of 8-bit or 16-bit numbers raises an error"""
    assert error[0] is None and "IndexError" in error[1]


def kept_where_floats_are_cut(x: torch.Tensor, given: np.ndarray):
    x = x.cuda()
    rows = np.array([0.0, 1.0])
    return x[rows] + x[rows], x[given] + x[given]


def kept_where_it_changes(x: torch.Tensor, rows: list[int], change):
    x, rows = x.cuda(), list(rows)
    several = np.arange(4)
    found = [x[several]]
    several[0] = 2
    found.append(x[several])
    other = several
    found.append(x[several])
    other += 1
    found.append(x[several])
    np.random.shuffle(several)
    found.append(x[several])
    order = torch.arange(4)
    found.append(x[order])
    order.clamp_(max=1)
    found.append(x[order])
    order = order.flip(0)
    found.append(x[order])
    change(several, order)
    return [*found, x[several], x[order], *(x[change(rows), rows] for _ in range(2))]


def kept_where_others_know_it(x: torch.Tensor, several: np.ndarray, change):
    x = x.cuda()
    order = torch.arange(4)

    def later():
        nonlocal order
        order = order.flip(0)

    found = [x[several], x[order]]
    change()
    later()
    return [*found, x[several], x[order]]


def kept_where_it_is_a_mask(x: torch.Tensor, rows: list[bool], parts: list[list[int]], either: list[int | bool]):
    x = x.cuda()
    return x[rows], x[parts], x[either]


def kept_where_devices_differ(x: torch.Tensor, y: torch.Tensor):
    order = torch.randperm(4)
    return x.cuda()[order], y.cpu()[order]


def kept_where_an_error_is_handled(x: torch.Tensor):
    x = x.cuda()
    several = np.array([0.0, 7.0])
    with contextlib.suppress(IndexError):
        return x[several] + x[several]
    return x


def kept_where_a_number_is_stored(x: torch.Tensor, rows: list[int]):
    x = x.cuda()
    x[rows] = 1.0
    return x


def kept_where_nothing_is_saved(x: torch.Tensor):
    x = x.cuda()
    order, several = torch.randperm(4), np.arange(3)
    return x[order], x[several]


def kept_where_it_may_be_no_tensor(x, y, rows: list[int]):
    return x[rows].cuda(), y[rows].cuda()


def kept_in_a_script(x: torch.Tensor):
    @torch.jit.script
    def select(x: torch.Tensor, rows: list[int]):
        return x[rows]

    return select(x.cuda(), [0])
