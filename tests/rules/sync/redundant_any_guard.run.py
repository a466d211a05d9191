import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
IGNORED = -100


def case_some_are_hidden():
    labels = torch.eye(5, device=DEVICE).argmax(-1)
    outside = labels >= 3
    if outside.any():
        # The padding row.
        labels[outside] = IGNORED
    return labels


def case_none_is_hidden():
    labels = torch.eye(5, device=DEVICE).argmax(-1)
    outside = labels >= 70
    if outside.any():
        labels[outside] = IGNORED
    return labels


def case_nothing_is_there():
    labels = torch.zeros(0, dtype=torch.long, device=DEVICE)
    if (labels < 0).any():
        labels[labels < 0] = -100
    return labels


def case_saved_afterwards():
    table = torch.ones(3, 2, device=DEVICE, requires_grad=True)
    rows = []
    for limit in (1, 9):
        labels = torch.arange(3, device=DEVICE)
        outside = labels >= limit
        if torch.any(outside).item():
            labels.masked_fill_(outside, 0)
        rows.append(torch.nn.functional.embedding(labels, table))
    torch.stack(rows).sum().backward()
    return rows, table


def case_copies_of_what_is_given(given=((1, 2), (3, 9))):
    labels = torch.tensor(given, device=DEVICE)
    first = labels[:, 0].clone()
    outside = first > 2
    if outside.sum() > 0:
        first[outside] = 2
    return labels, first


def kept_where_autograd_would_see_it(x: torch.Tensor):
    x = x.to(DEVICE).relu()
    mask = x > 3
    if mask.any():
        x[mask] = 0.0
    return x


def kept_where_the_caller_may_have_used_it(labels: torch.Tensor):
    labels = labels.to(DEVICE).long()
    outside = labels >= 3
    if outside.any():
        labels[outside] = 0
    return labels


def kept_where_it_was_saved_before(table: torch.Tensor):
    labels = torch.arange(3, device=DEVICE)
    rows = torch.nn.functional.embedding(labels, table)
    outside = labels >= 3
    if outside.any():
        labels[outside] = 0
    return rows, labels


def kept_where_it_was_saved_by_another_name(table: torch.Tensor):
    labels = torch.arange(3, device=DEVICE)
    index = labels[None]
    rows = torch.gather(table, 0, index)
    outside = labels >= 3
    if outside.any():
        labels[outside] = 0
    return rows, labels


def kept_where_the_next_turn_writes_to_it(table: torch.Tensor):
    labels = torch.arange(3, device=DEVICE)
    total = 0
    for limit in (4, 3):
        outside = labels >= limit
        if outside.any():
            labels[outside] = 0
        total = total + table[labels].sum()
    return total


def kept_where_a_mask_was_saved(x: torch.Tensor, y: torch.Tensor):
    keep = torch.zeros(3, dtype=torch.bool, device=DEVICE)
    found = torch.where(keep, x, y)
    none = keep.logical_not()
    if none.any():
        keep[none] = True
    return found, keep


def kept_where_indices_were_saved(x: torch.Tensor):
    best, labels = x.to(DEVICE).max(-1)
    outside = labels >= 3
    if outside.any():
        labels[outside] = 0
    return best, labels


def kept_where_others_see_it(table: torch.Tensor):
    global LABELS
    LABELS = torch.arange(3, device=DEVICE)
    outside = LABELS >= 3
    if outside.any():
        LABELS[outside] = 0
    return table


def kept_where_the_mask_is_of_another_shape(x: torch.Tensor):
    labels = torch.arange(3, device=DEVICE)
    outside = x.to(DEVICE) >= 3
    if outside.any():
        labels[outside] = 0
    return labels


def kept_where_the_number_may_not_fit(number: int):
    labels = torch.arange(3, device=DEVICE)
    outside = labels >= 3
    if outside.any():
        labels[outside] = number
    if outside.any():
        labels[outside] = 300
    return labels


def kept_where_the_next_turn_of_an_outer_loop_writes_to_it(table: torch.Tensor):
    labels = torch.arange(3, device=DEVICE)
    total = 0
    for limit in (4, 3):
        for _ in range(2):
            outside = labels >= limit
            if outside.any():
                labels[outside] = 0
        total = total + table[labels].sum()
    return total


def kept_where_it_was_made_in_inference_mode():
    with torch.inference_mode():
        labels = torch.arange(3, device=DEVICE)
    outside = labels >= 3
    if outside.any():
        labels[outside] = 0
    return labels
