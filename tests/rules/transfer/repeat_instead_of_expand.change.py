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
    """where a slice is repeated: if it is empty, `repeat` gives an empty tensor, and `expand` raises"""
    before, after = error
    assert before is None
    assert "RuntimeError" in after
