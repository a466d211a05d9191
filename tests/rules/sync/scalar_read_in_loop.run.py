import torch

VALUES = (-1.0, 0.0, 1.0, 2.5, torch.nan, torch.inf)


def case_answers():
    found = []
    for value in VALUES:
        for shape in ((), (3,), (0,), (2, 2)):
            x = torch.full(shape, value).cuda()
            found.append((x >= 0).all().item() and (x <= 1).all().item())
            found.append(torch.isnan(x).any().item() or torch.isinf(x).any().item())
    return found


def case_of_whole_numbers():
    found = []
    for dtype in (torch.uint8, torch.int64, torch.bool):
        x = torch.arange(3).to(dtype).cuda()
        found.append((x == 2).any().item() or (x == 1).all().item())
    return found


def kept_where_they_may_be_numbers(x: torch.Tensor):
    x = x.cuda().byte()
    return x.any().item() and x.all().item()
