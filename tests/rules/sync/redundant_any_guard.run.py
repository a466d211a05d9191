import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def hide(labels, limit):
    labels = labels.to(DEVICE).long()
    outside = labels >= limit
    if outside.any():
        # The padding row.
        labels[outside] = -100
    return labels


def case_some_are_hidden():
    labels = hide(torch.arange(12).reshape(3, 4), limit=7)
    outside = labels < 0
    if outside.sum() > 0:
        labels.masked_fill_(outside, 0)
    return labels


def case_none_is_hidden():
    labels = hide(torch.arange(12).reshape(3, 4), limit=70)
    outside = labels < 0
    if torch.any(outside).item():
        labels.masked_fill_(outside, 0)
    return labels


def case_nothing_is_there():
    labels = torch.zeros(0, dtype=torch.long).to(DEVICE)
    if (labels < 0).any(): labels[labels < 0] = -100
    return labels


def kept_where_autograd_would_see_it(x: torch.Tensor):
    x = x.to(DEVICE).relu()
    mask = x > 3
    if mask.any():
        x[mask] = 0.0
    return x
