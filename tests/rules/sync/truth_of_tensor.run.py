import torch

VALUES = (-1.0, 0.0, 1.0, 2.5, torch.nan, torch.inf)
SHAPES = ((), (3,), (2, 2))


def case_within():
    found = []
    for value in VALUES:
        for shape in SHAPES:
            x = torch.full(shape, value).cuda()
            if (x > 0).any() and (x < 3).all():
                found.append(1)
            if not (x == 0).any() and not (x == 1).any():
                found.append(2)
            if x.min() < 0 or x.max() > 1:
                found.append(3)
            found.append(bool(x.any()) or bool((x == 0).all()))
    return found


def case_of_no_elements():
    x = torch.zeros(0).cuda()
    if (x > 0).any() or (x < 3).all():
        return "all"
    return x.min() < 0 or x.max() > 1


def case_no_least_element():
    x = torch.zeros(0).cuda()
    return 1 if x.min() < 0 or x.max() > 1 else 2


def case_of_other_dtypes():
    found = []
    for dtype in (torch.uint8, torch.bool, torch.float16, torch.int64):
        x = torch.ones(3).to(dtype).cuda()
        if (x == 0).any() or x.any() or torch.all(x):
            found.append(dtype)
    return found


def case_without_an_order():
    x = torch.ones(2, dtype=torch.complex64).cuda()
    return 1 if (x > 0).any() and (x < 3).all() else 2


def kept_where_only_the_second_test_needs_an_order():
    x = torch.zeros(2, dtype=torch.complex64).cuda()
    return 1 if x.any() and (x < 3).all() else 2


def kept_where_two_tensors_are_asked(x: torch.Tensor, y: torch.Tensor):
    return 1 if x.cuda().any() and y.cuda().any() else 2
