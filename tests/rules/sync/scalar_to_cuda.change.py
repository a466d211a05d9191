"""Numbers of which the source does not say everything."""

import numpy as np
import torch


def given(number: float, x: torch.Tensor):
    if isinstance(number, (int, float, complex)):
        return torch.tensor(number, device=x.device)
    return x


def cast(x: torch.Tensor):
    return torch.tensor(0.1).to(x.device, torch.float64)


def flag(x: torch.Tensor):
    return torch.tensor(True, device=x.device)


def case_of_python():
    x = torch.ones(2, device="cuda")
    return {"values": [given(0.1, x), given(3, x), given(1 + 2j, x)], "flag": flag(x)}


def case_of_numpy():
    made = given(np.float64(0.1), torch.ones(2, device="cuda"))
    return {"dtype": made.dtype, "value": f"{made.item():.6f}"}


def change_of_numpy(dtype):
    """a variable, which may hold a NumPy scalar with a dtype of its own"""
    assert dtype == (torch.float64, torch.float32)


def case_rounded():
    made = cast(torch.ones(2, device="cuda"))
    return {"made": made}


def change_rounded(made):
    """if the move also changed the dtype, because the number was rounded twice"""
    assert made[0].item() == torch.tensor(0.1).double().item() and made[1].item() == 0.1


def large(x: torch.Tensor):
    return torch.tensor(1e300, device=x.device)


def case_large():
    return {"made": large(torch.ones(2, device="cuda"))}


def change_large(error):
    """`torch.tensor` turns a number that the dtype cannot hold into infinity, while `torch.full` raises an error on a GPU"""
    assert error[0] is None and "without overflow" in error[1]


def signed(x: torch.Tensor):
    return torch.tensor(-1, dtype=torch.uint64, device=x.device)


def case_of_uint64():
    return {"dtype": signed(torch.ones(2, device="cuda")).dtype}


def change_of_uint64(error):
    """for integers beyond int64 and numbers of `uint64`, because other numbers raise"""
    assert error[0].startswith("OverflowError") and error[1] is None


def case_moved():
    x = torch.ones(2, device="cuda")
    return {
        "made": [torch.tensor(4.0).cuda(), torch.tensor(5).to(x.device), torch.as_tensor(2, device="cuda")],
        "cast": [torch.tensor(6).to(x.device, torch.float16), torch.tensor(7).to(x), torch.tensor(8.0).type_as(x)],
    }
