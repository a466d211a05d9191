import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def relative(x: torch.Tensor, centre: torch.Tensor):
    return x.clone() * centre


def case_values():
    x = torch.arange(6.0, device=DEVICE).requires_grad_()
    centre = torch.ones(6, device=DEVICE, requires_grad=True)
    y = relative(x, centre)
    y.sum().backward()
    return {"y": y, "x": x.grad, "centre": centre.grad}


def case_stored():
    ids = torch.arange(12, device=DEVICE).reshape(3, 4)
    out = ids.new_zeros(ids.shape)
    out[:, 1:] = ids[:, :-1].clone()
    return {"out": out, "ids": ids}


def case_laid_out():
    ids = torch.arange(12, device=DEVICE).reshape(3, 4)
    rows = torch.arange(4, device=DEVICE).unsqueeze(0).expand(3, 4).contiguous() + 2
    return {"rows": rows, "same": ids[:, 1:].contiguous() == ids[:, :-1].contiguous()}


def case_written_before_backward():
    leaf = torch.ones(3, device=DEVICE, requires_grad=True)
    x = leaf * 2
    centre = torch.ones(3, device=DEVICE, requires_grad=True)
    y = relative(x, centre)
    x.add_(1)
    y.sum().backward()
    return {"centre": centre.grad}


def change_written_before_backward(error):
    """if a caller writes to it before `backward()`, that raises an error"""
    before, after = error
    assert before is None
    assert "modified by an inplace operation" in after


def kept_where_values_are_shared(s: torch.Tensor, t: torch.Tensor):
    first = s.coalesce().values().clone()
    s.values().mul_(2)
    second = t.crow_indices().clone()
    third = t.sum_to_size(t.shape).clone()
    t.values().mul_(2)
    fourth = t.to_sparse_csr().clone()
    t.mul_(2)
    return first + 1, second + 1, third + 1, fourth + 1


def case_values_are_not_written():
    s = torch.sparse_coo_tensor(torch.tensor([[0, 1]], device=DEVICE), torch.ones(2, device=DEVICE), (3,)).coalesce()
    first = s.coalesce().values().clone()
    return {"first": first + 1, "values": s.values()}
