import operator

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def leaf(*shape: int):
    count = torch.Size(shape).numel()
    return (torch.arange(float(count), device=DEVICE) / 7).reshape(shape).requires_grad_()


def case_joined():
    x: torch.Tensor = leaf(4, 3, 5)
    token = torch.zeros(1, 1, 5, device=DEVICE, requires_grad=True)
    both = torch.cat([token.repeat(x.shape[0], 1, 1), x], dim=1)
    both.square().sum().backward()
    return both, x, token


def case_masked():
    x = leaf(2, 4, 3, 3)
    mask = torch.tensor([[1, 0, 1], [1, 1, 0]], device=DEVICE)
    heads = mask[:, None, None, :].repeat(1, 4, 3, 1)
    filled = x.masked_fill(heads == 0, -1.0)
    filled.square().sum().backward()
    return filled, x


def case_transposed_masks():
    x = leaf(2, 4, 3, 3).transpose(2, 3)
    mask = torch.tensor([[1, 0], [1, 1], [0, 1]], device=DEVICE).t()
    filled = x.masked_fill(mask[:, None, None, :].repeat(1, 4, 3, 1) == 0, -1.0)
    return filled, filled.contiguous()


def case_stacked():
    rows = torch.ones(3, 5, device=DEVICE, requires_grad=True)
    both = torch.stack([rows.unsqueeze(0).repeat((4, 1, 1)), rows.repeat(4, 1, 1) * 2])
    (both * leaf(2, 4, 3, 5)).sum().backward()
    return both, rows


def case_stored():
    out = torch.zeros(2, 4, 3, device=DEVICE)
    index = torch.arange(3, device=DEVICE)
    out[0] = index.repeat(4, 1)
    out[1, :2].copy_(index[None].repeat(2, 1))
    return out


def case_counted():
    column = torch.tensor([[1], [0]], device=DEVICE)
    return (column.repeat(1, 3) > 0).any(), column.repeat(1, 3).shape


def kept_where_the_rank_may_be_less(x: torch.Tensor):
    return torch.cat([x[None].repeat(2, 1, 1, 1), torch.ones(1, 2, 3, 4, device=DEVICE)])


def kept_where_it_is_written():
    x: torch.Tensor = leaf(3, 5)
    first = x.detach()[None].repeat(4, 1, 1)
    first[0] = 1
    second = x[None].repeat(4, 1, 1).view(12, 5) + 1
    return first, second, x.repeat(2, 1) + 1


def kept_where_strides_follow_the_other_operand(z: torch.Tensor):
    row = torch.ones(5, device=DEVICE)
    return row.repeat(4, 1) + z.t()


def kept_where_strides_are_asked_for():
    row = torch.ones(5, device=DEVICE)
    rows = row.repeat(4, 1)
    return rows.stride(), rows.is_contiguous(), (rows > 0).any()


def kept_where_it_is_transposed(z: torch.Tensor):
    row = torch.ones(5, device=DEVICE)
    return row.repeat(4, 1).t() * 2


def kept_where_gradients_are_added_in_another_order(x: torch.Tensor):
    row = torch.ones(5, device=DEVICE, requires_grad=True)
    return torch.cat([row.repeat(4, 3, 1), x])


def kept_where_the_tensor_is_written_to(x: torch.Tensor):
    row = torch.ones(5, device=DEVICE)
    rows = row.repeat(4, 1)
    row.add_(1)
    return torch.cat([rows, x])


def kept_where_a_view_of_it_is_written_to(x: torch.Tensor):
    rows = torch.ones(1, 5, device=DEVICE)
    first = rows[0]
    rows = rows.repeat(4, 1)
    first[0] = 3
    return torch.cat([rows, x])


def kept_where_it_is_stored_into_itself():
    x = torch.ones(4, 5, device=DEVICE)
    first = x[:1]
    x += first.repeat(4, 1)
    return x


def kept_where_other_code_runs(token: torch.Tensor, advance, x: torch.Tensor):
    tokens = token[None].repeat(4, 1, 1)
    advance()
    return torch.cat([tokens, x])


def kept_where_autograd_keeps_it(x: torch.Tensor, index: torch.Tensor):
    picked = torch.gather(x, 1, index[:, :, None].repeat(1, 1, 5))
    return picked, x * x.mean(-1, keepdim=True).repeat(1, 1, 5)


def kept_where_others_see_it(x: torch.Tensor):
    global ROWS
    ROWS = torch.ones(5, device=DEVICE).repeat(4, 1)
    return torch.cat([ROWS, x])


def kept_where_a_function_of_python_writes():
    row = torch.ones(1, 5, device=DEVICE)
    rows = row.repeat(4, 1)
    operator.setitem(row, 0, 5.0)
    more = row.repeat(4, 1)
    list(map(torch.Tensor.zero_, [row]))
    last = row.repeat(4, 1)
    getattr(row, "add_")(1)
    return torch.cat([rows, rows]), torch.cat([more, more]), torch.cat([last, last])


def kept_where_a_method_is_called_later():
    row = torch.ones(1, 5, device=DEVICE)
    step = row.add_
    rows = row.repeat(4, 1)
    step(1)
    return torch.cat([rows, rows])


def kept_where_an_optimizer_steps():
    row = torch.ones(1, 5, device=DEVICE, requires_grad=True)
    optimizer = torch.optim.SGD([row], lr=1.0)
    rows = row.repeat(4, 1)
    optimizer.step()
    return torch.cat([rows, rows])


def kept_where_a_generator_writes(stepping):
    row = torch.ones(1, 5, device=DEVICE)
    steps = stepping(row)
    rows = row.repeat(4, 1)
    next(steps)
    return torch.cat([rows, rows])


def kept_where_a_count_may_be_negative():
    """`repeat` raises an error for -1, and `expand` leaves the dimension as it is."""
    count = int("-1")
    row = torch.zeros(1, 2, device=DEVICE)
    rows = torch.ones(3, 2, device=DEVICE)
    return torch.cat([row.repeat(count, 1), rows]), torch.cat([row.repeat(rows.shape[0] - 4, 1), rows])


def case_counts_of_other_tensors():
    row = torch.zeros(1, 2, device=DEVICE)
    rows = torch.ones(3, 2, device=DEVICE)
    count, width = rows.shape
    length, _ = rows.size()
    number = len(rows)
    parts = torch.cat([row.repeat(count, 1), rows]), torch.cat([row.repeat(number, 1), rows])
    return *parts, torch.cat([row.repeat(length, 1), rows]), torch.cat([row.repeat(0, 1), rows]), width
