"""Numbers that are written through a mask of which nobody knows what it holds."""

import torch


def fill(x: torch.Tensor, where: torch.Tensor):
    x = x.cuda()
    x[torch.where(where.cuda())] = 0.5
    return x


def case_mask():
    return {"x": fill(torch.zeros(4), torch.tensor([True, False, False, True]))}


def case_whole_numbers():
    return {"x": fill(torch.zeros(4), torch.tensor([1, 0, 0, 3])).tolist()}


def change_whole_numbers(x):
    """an integer `m` would be taken as positions"""
    assert x == ([0.5, 0, 0, 0.5], [0.5, 0.5, 0, 0.5])


def first(x: torch.Tensor, count: int):
    x = x.cuda()
    few = (torch.arange(count, device="cuda") > 0).cuda()
    x[torch.where(few)] = 0.5
    return x


def case_as_long():
    return {"x": first(torch.zeros(4), 4)}


def case_shorter():
    return {"x": first(torch.zeros(4), 2).tolist()}


def change_shorter(error):
    """may be shorter than `x`, which raises an error"""
    assert error[0] is None and error[1].startswith("IndexError: The shape of the mask [2]")


def case_written():
    x = torch.ones(3, requires_grad=True)
    y = x.cuda() * 2
    few = torch.arange(3, device="cuda") > 0
    y[torch.where(few)] = 0.5
    few.zero_()
    y.sum().backward()
    return {"grad": x.grad.tolist()}


def change_written(error):
    """is written before `backward()`, which raises one there"""
    assert error[0] is None and "modified by an inplace operation" in error[1]


def case_no_dimensions():
    return {"x": fill(torch.zeros(3), torch.tensor(True)).tolist()}


def change_no_dimensions(x):
    """a boolean `m` without dimensions as all of `x`"""
    assert x == ([0.5, 0, 0], [0.5, 0.5, 0.5])


def twice(x: torch.Tensor, y: torch.Tensor, kept: torch.Tensor):
    x, y, kept = x.flatten().cuda(), y.flatten().cuda(), kept.flatten().cuda() > 0
    first = x[kept]
    return first, y[kept, :].sum() if x.ndim > 1 else y[kept], y[kept]


def case_selected_twice():
    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    first, _, second = twice(x, y, torch.tensor([1, 0, 2, 0] * 3))
    (first * second).sum().backward()
    return {"first": first, "second": second, "x": x, "y": y}


def case_nothing_selected():
    first, all_of_it, second = twice(torch.ones(4), torch.ones(4), torch.zeros(4))
    return {"first": first, "all": all_of_it, "second": second}


def case_shorter_mask():
    first, _, second = twice(torch.arange(2.0), torch.arange(4.0), torch.ones(2))
    return {"lengths": [len(first), len(second)]}


def change_shorter_mask(error):
    """a mask that is shorter than the tensor raises no error any more"""
    assert error[0].startswith("IndexError: The shape of the mask [2]")


def rows_of(x: torch.Tensor, y: torch.Tensor, kept: torch.Tensor):
    x, y = x.cuda(), y.cuda()
    kept = kept.cuda() > 0
    x[kept] = x[kept] * 2
    return x, y[kept]


def case_stored_in_rows():
    x, y = rows_of(torch.randn(4, 3), torch.randn(4, 2, 2), torch.tensor([1, 0, 0, 1]))
    return {"x": x, "y": y}


def case_stored_in_elements():
    x, y = rows_of(torch.randn(4, 3), torch.randn(4, 3), torch.randn(4, 3))
    return {"x": x, "y": y}


def case_mask_without_dimensions():
    x, y = rows_of(torch.ones(2), torch.ones(2), torch.tensor(1.0))
    return {"x": x.tolist(), "y": y.tolist()}


def written_out(x: torch.Tensor, y: torch.Tensor, kept: torch.Tensor):
    x, y, kept = x.cuda(), y.cuda(), kept.cuda()
    first = x[kept > 0]
    return first, y[kept > 0]


def case_written_out():
    first, second = written_out(torch.randn(4, 3), torch.randn(4, 2), torch.tensor([1, 0, 0, 1]))
    return {"first": first, "second": second}


def case_written_out_without_dimensions():
    first, second = written_out(torch.ones(2), torch.ones(2), torch.tensor(1.0))
    return {"first": first.tolist(), "second": second.tolist()}


def change_written_out_without_dimensions(first, second):
    """For a mask without a name … the fix is risky instead."""
    assert first == second == ([[1, 1]], [1])


def by_mask(x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor):
    x, y, mask = x.cuda(), y.cuda(), mask.cuda()
    selected = x[mask]
    y[mask] = y[mask] * 2
    return selected, y, x[mask]


def case_by_mask_of_any_kind():
    """Masks with and without dimensions, bytes, positions: all but the first kind select as before."""
    masks = (
        torch.tensor([True, False, True]),
        torch.tensor([False, False, False]),
        torch.tensor([[True, False], [False, True], [True, True]]),
        torch.tensor(True),
        torch.tensor(False),
        torch.tensor([2, 0, -1]),
        torch.tensor(1),
        torch.tensor([[0, 1], [2, 0]]),
        torch.zeros(0, dtype=torch.int64),
    )
    found = []
    for mask in masks:
        x, y = torch.randn(3, 2, requires_grad=True), torch.randn(3, 2, requires_grad=True)
        selected, stored, again = by_mask(x, y * 1, mask)
        (selected.sum() * 2 + (stored * stored).sum() + again.sum()).backward()
        found.append((selected, stored, again, x.grad, y.grad))
    return {"found": found}


def change_by_mask_of_any_kind(waits):
    """the new line asks: `m_at = m.nonzero(as_tuple=True) if m.dtype == torch.bool and m.ndim else m`"""
    assert waits[1] < waits[0]


def kept_where_the_mask_may_be_none(x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor | None):
    x, y = x.cuda(), y.cuda()
    return x[mask], y[mask]


@torch.jit.script
def kept_where_it_is_scripted(x: torch.Tensor, y: torch.Tensor):
    kept = x.flatten() > 0
    return x.flatten()[kept], y.flatten()[kept]


def kept_where_the_mask_is_written(x: torch.Tensor):
    x = x.flatten().cuda()
    kept = x > 0
    first = x[kept]
    kept[0] = False
    return first, x[kept]


def case_selected_in_loops():
    x = torch.arange(8.0).cuda().flatten()
    found = []
    for turn in range(3):
        kept = x > turn
        found.append(x[kept].sum())
        if turn:
            x[kept] = x[kept] - 1
    return {"found": found, "x": x}


def kept_where_the_error_is_handled(x: torch.Tensor, y: torch.Tensor):
    x = x.flatten().cuda()
    kept = x > 0
    try:
        return x[kept], y.cuda()[kept]
    except IndexError:
        return x, y


def first_ends(ids, end: int):
    is_end = ids == end
    at = torch.full((is_end.size(0),), is_end.size(1), device=is_end.device)
    at[is_end.any(dim=1)] = is_end.int().argmax(dim=1)[is_end.any(dim=1)]
    return at


def case_searched_computed_masks():
    return {"at": first_ends(torch.tensor([[1, 2, 2], [3, 3, 3], [2, 1, 1]]).cuda(), 2)}


def change_searched_computed_masks(waits):
    """`m_at = m.nonzero(as_tuple=True)` in front of them searches it once"""
    assert waits[1] < waits[0]


def kept_where_masks_are_drawn(x: torch.Tensor):
    x = x.flatten().cuda()
    return x[torch.rand_like(x) > 0.5], x[torch.rand_like(x) > 0.5]


def kept_where_objects_index_by_themselves(x, y, scores: torch.Tensor):
    kept = scores.flatten().cuda() > 0
    return x[kept], y[kept]


def kept_where_the_tensor_of_the_mask_changes(x: torch.Tensor):
    x = x.flatten().cuda()
    first = x[torch.isfinite(x)]
    x[0] = torch.nan
    return first, x[torch.isfinite(x)]


def kept_where_the_mask_is_of_a_part(x: torch.Tensor, y: torch.Tensor):
    x, y = x.cuda(), y.cuda()
    short = x[:3] > 0
    x[torch.where(short)] = 0
    y[(y[:, 1:] > 0).nonzero(as_tuple=True)] = 1
    return x, y


SCORES = torch.arange(12.0).reshape(3, 4).cuda()
LABELS = SCORES.exp()
KEEP = SCORES > 3
KEPT = SCORES[KEEP], LABELS[KEEP]


def case_top_level():
    return {"kept": KEPT}


SEEN = SCORES > 5


def narrowed():
    global SEEN
    SEEN = SEEN & (SCORES > 7)
    return SCORES


def kept_where_a_function_binds_the_mask():
    global SEEN
    SEEN = SCORES > 5
    return SCORES[SEEN], narrowed()[SEEN]


def case_average():
    x = torch.arange(-3.0, 9.0).cuda().requires_grad_()
    (x.square().sum() / torch.nonzero(x > 0).size(0)).backward()
    return {"gradient": x.grad, "average": x.sum() / (x > 2).nonzero().shape[0]}
