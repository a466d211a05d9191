"""Lists that are filled on the GPU, or that go through pinned memory."""

import numpy as np
import torch


def rows(x: torch.Tensor, step: int, count: int):
    if isinstance(step, (int, float)):
        return torch.tensor([step] * count, device=x.device)
    return x


def case_rows():
    return {"rows": rows(torch.ones(2, device="cuda"), 7, 3)}


def case_of_numpy():
    return {"dtype": rows(torch.ones(2, device="cuda"), np.float64(0.5), 2).dtype}


def change_of_numpy(dtype):
    """a variable, which may hold a NumPy scalar with a dtype of its own"""
    assert dtype == (torch.float64, torch.float32)


def case_without_elements():
    return {"rows": rows(torch.ones(2, device="cuda"), 7, 0)}


def change_without_elements(rows):
    """a list without elements becomes a tensor of the default dtype"""
    assert rows[0].dtype is torch.float32 and rows[1].dtype is torch.int64


class Tables(torch.nn.Module):
    def forward(self, x: torch.Tensor, sizes: list[int], table: np.ndarray):
        return [
            torch.tensor(list(sizes), device=x.device),
            torch.tensor(list(sizes), dtype=x.dtype, device=x.device),
            torch.as_tensor([0.5, 1.5], device="cuda"),
            torch.tensor(table, device=x.device),
            torch.tensor([1, 2, 3]).to(x.device),
            torch.tensor([1.5, 2.5]).cuda(),
            torch.tensor([1, 2, 3]).to(x.device, torch.float16),
            x.new_tensor([1, 2]),
            torch.cuda.FloatTensor([1.0, 2.0]),
            torch.LongTensor([1, 2]).cuda(),
            torch.cuda.FloatTensor([1]),
            torch.LongTensor([3]).cuda(),
            torch.IntTensor([3, 3]).to(x.device),
            torch.FloatTensor([1]).to(x),
            torch.Tensor([1]).to(x.device),
            x.new([1]).expand(2, 2),
            x.long().new([2.5, 2.5]),
        ]


def case_pinned():
    x = torch.ones(2, device="cuda", dtype=torch.float64)
    return {"tables": Tables()(x, [1, 2, 3], np.arange(4.0))}


def on_the_cpu(x: torch.Tensor, sizes: list[int]):
    return torch.tensor(list(sizes), device=x.device)


def case_on_the_cpu():
    return {"tables": on_the_cpu(torch.ones(2), [1, 2, 3])}


def counted(x: torch.Tensor, count: int):
    return torch.tensor([1, count], device=x.device) * 2


def case_default_device():
    x = torch.zeros(2, device="cuda")
    with torch.device("meta"):
        return {"counted": counted(x, 3)}


def numbered(x: torch.Tensor, n: int):
    return torch.tensor(range(n), device=x.device), torch.LongTensor(range(len(x))).to(x.device)


def case_numbered():
    x = torch.ones(2, device="cuda")
    return {"some": numbered(x, 3), "none": numbered(x, 0)[0].dtype}


def change_numbered(none, waits):
    """without elements and dtype the tensor held floats"""
    assert none == (torch.float32, torch.int64)
    assert waits[0] > waits[1]


def numbered_in_floats(x: torch.Tensor, n: int):
    return torch.Tensor(list(range(n))).to(x.device), torch.tensor(range(n), dtype=torch.float64, device=x.device)


def case_floats():
    return {"some": numbered_in_floats(torch.ones(2, device="cuda"), 5)}


def change_floats(waits):
    """becomes `torch.arange(n, dtype=torch.float32, device=d)`"""
    assert waits[0] > waits[1]


def case_floats_of_another_default():
    torch.set_default_dtype(torch.float64)
    try:
        return {"dtype": numbered_in_floats(torch.ones(2, device="cuda"), 5)[0].dtype}
    finally:
        torch.set_default_dtype(torch.float32)


def change_floats_of_another_default(dtype, waits):
    """also if the program changed the default dtype"""
    assert dtype == (torch.float64, torch.float32)
    assert waits[0] > waits[1]


def case_negative():
    return {"rows": numbered(torch.ones(2, device="cuda"), -1)[0].numel()}


def change_negative(error):
    """a negative length raises an error"""
    assert error[0] is None and "step sign" in error[1]


def case_of_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        return {"floats": torch.Tensor([0.1] * 2).to("cuda"), "zero": torch.Tensor([0.0]).cuda()}
    finally:
        torch.set_default_dtype(torch.float32)
