"""Tensors that are made on the host and moved, and tensors that are made on the device."""

import torch


def leaf(x: torch.Tensor):
    return torch.zeros(3, requires_grad=True).to(x.device)


def noise(x: torch.Tensor):
    return torch.randn(3).to(x.device), torch.linspace(0, 1, 5).to(x.device), torch.hann_window(8).to(x.device)


def case_leaf():
    made = leaf(torch.ones(1, device="cuda"))
    (made * 2).sum().backward()
    kept = made.grad if made.is_leaf else None
    return {"leaf": made.is_leaf, "kept": None if kept is None else kept.tolist(), "values": made.detach()}


def change_leaf(leaf, kept):
    """with `requires_grad=True`, because the result becomes a leaf"""
    assert leaf == (False, True) and kept == (None, [2.0, 2.0, 2.0])


def case_values():
    made = noise(torch.ones(1, device="cuda"))
    return {"made": [(one.shape, one.dtype, one.device.type) for one in made]}


def case_moved():
    x = torch.ones(2, dtype=torch.float64, device="cuda")
    return {
        "moved": [torch.zeros(2).cuda(), torch.ones(3, dtype=torch.int32).to("cuda"), torch.eye(2).to(device=x.device)],
        "cast": [torch.zeros(3).type_as(x), torch.ones(3).to(x), torch.eye(2).to(x.device, torch.float16)],
        "behind": [torch.arange(6).view(2, 3).float().to(x.device), torch.zeros(2).half().to(x.device)],
    }


def rows(x: torch.Tensor):
    return torch.arange(3).unsqueeze(0).expand(2, 3).to(x.device)


def case_expanded():
    made = rows(torch.ones(1, device="cuda"))
    made[0, 1] = 5
    return {"made": made}


def case_expanded_on_the_host():
    made = rows(torch.ones(1))
    return {"stride": made.stride(), "values": made.tolist()}


def change_expanded_on_the_host(stride):
    """`.to` copies nothing, and `.contiguous()` takes more memory"""
    assert stride == ((0, 1), (3, 1))


def case_cast_identity():
    x = torch.ones(2, device="cuda")
    # There is no `torch.eye` of uint16: the cast stays behind it.
    return {"eye": [torch.eye(2).to(x.device, torch.complex64), torch.eye(2).to(x), torch.eye(3).to("cuda", torch.uint16)]}


def kept_where_indices_have_no_such_dtype(x: torch.Tensor):
    return torch.triu_indices(3, 3).to(x.device, torch.float32), torch.tril_indices(3, 3).to(x)


def case_written_view():
    weight = torch.ones(3, device="cuda", requires_grad=True)
    with torch.no_grad():
        grid = torch.zeros(6).view(2, 3).cuda()
    grid += weight
    return {"grid": grid.detach()}


def change_written_view(error):
    """Autograd allows no write to a view from `torch.no_grad()` elsewhere"""
    assert error[0] is None and "created in no_grad mode" in error[1]
