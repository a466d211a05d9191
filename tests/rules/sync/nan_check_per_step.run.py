import torch

VALUES = (-1.0, 0.0, torch.nan, torch.inf, -torch.inf)


def case_checked():
    found = []
    for value in VALUES:
        for shape in ((), (3,), (0,), (2, 2)):
            x = torch.full(shape, value).cuda()
            if torch.isnan(x).any() or torch.isinf(x).any():
                found.append(1)
            elif torch.isfinite(x).all() and (x.isnan() == 0).all():
                found.append(2)
    return found


def case_of_other_dtypes():
    found = []
    for dtype in (torch.uint8, torch.bool, torch.complex64, torch.int64):
        x = torch.ones(3).to(dtype).cuda()
        found.append(1 if not x.isnan().any() and not x.isinf().any() else 2)
    return found


def case_with_gradients():
    x = torch.randn(3, requires_grad=True)
    y = x.cuda() * 2
    if y.isnan().any() or y.isinf().any():
        y = y.nan_to_num()
    y.sum().backward()
    return x, y


def kept_where_bounds_are_tensors(x: torch.Tensor, limit: torch.Tensor):
    x = x.cuda()
    return 1 if torch.isnan(x).any() or (x > limit.cuda()).any() else 2
