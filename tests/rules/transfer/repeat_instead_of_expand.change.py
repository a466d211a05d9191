import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def case_products():
    x: torch.Tensor = torch.arange(12.0, device=DEVICE).reshape(3, 4)
    product = x[None].repeat(2, 1, 1) @ torch.ones(2, 4, 5, device=DEVICE)
    return {"product": product}


def case_slices():
    x: torch.Tensor = torch.arange(12.0, device=DEVICE).reshape(3, 4)
    return {"ends": torch.cat([x, x[-1:].repeat(2, 1)])}


def case_empty_slices():
    x: torch.Tensor = torch.zeros(0, 4, device=DEVICE)
    return {"ends": torch.cat([x, x[-1:].repeat(2, 1)])}


def change_empty_slices(error):
    """if a slice is repeated: for an empty slice, `repeat` returns an empty tensor, and `expand` raises"""
    before, after = error
    assert before is None
    assert "RuntimeError" in after


def case_added():
    x = torch.arange(60.0, device=DEVICE).reshape(4, 3, 5).requires_grad_()
    rows = torch.ones(3, 5, device=DEVICE, requires_grad=True)
    table = rows.unsqueeze(0).repeat((4, 1, 1))
    total = x * table - rows.repeat(4, 1, 1)
    (total * total).sum().backward()
    return {"total": total, "x": x, "rows": rows}


def case_gathered():
    x = torch.arange(24.0, device=DEVICE).reshape(2, 4, 3).requires_grad_()
    index = torch.tensor([[3, 0], [1, 1]], device=DEVICE)
    best = torch.gather(x, 1, index.unsqueeze(-1).repeat(1, 1, 3))
    rows = torch.arange(2, device=DEVICE).unsqueeze(-1).repeat(1, 2)
    picked = x[rows, index]
    (best.square().sum() + picked.sum()).backward()
    return {"best": best, "picked": picked, "x": x}


def case_strides():
    row = torch.arange(3.0, device=DEVICE)
    total = row.repeat(2, 1) + torch.ones(3, 2, device=DEVICE).t()
    return {"values": total.tolist(), "total": total}


def change_strides(total):
    """strides of its results can be observed, which may follow those of the other operand"""
    assert total[0].stride() == (3, 1) and total[1].stride() == (1, 2)


def case_written_before_the_backward_pass():
    x = torch.ones(2, 3, device=DEVICE, requires_grad=True)
    row = torch.ones(3, device=DEVICE)
    total = (x * row.repeat(2, 1)).sum()
    row += 1
    total.backward()
    return {"x": x}


def change_written_before_the_backward_pass(error):
    """autograd keeps it, so that a write to the tensor before the backward pass raises an error"""
    assert error[0] is None and "modified by an inplace operation" in error[1]


class Tokens(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.token = torch.nn.Parameter(torch.zeros(1, 1, 3, device=DEVICE))

    @torch.no_grad()
    def step(self):
        for parameter in self.parameters():
            parameter.add_(1)

    def forward(self, x: torch.Tensor):
        tokens = self.token.repeat(len(x), 1, 1)
        self.step()
        return torch.cat([tokens, x], dim=1)


def case_stepped_in_between():
    model = Tokens()
    return {"joined": model(torch.ones(2, 1, 3, device=DEVICE)), "model": model}


def change_stepped_in_between(joined):
    """Risky if code runs while it is in use that may have the tensor … would show in the result"""
    assert joined[0][0, 0, 0] == 0 and joined[1][0, 0, 0] == 1
