import numpy as np
import torch


def case_of_one_dtype():
    rows = [np.ones(3, dtype=np.float32), np.zeros(3, dtype=np.float32)]
    return {"rows": torch.tensor(rows), "doubles": torch.tensor([np.ones(2), np.zeros(2)])}


def case_cast():
    rows = [np.arange(3), np.arange(3)]
    return {"rows": torch.as_tensor(rows, dtype=torch.float32), "floats": torch.FloatTensor(rows)}


def case_of_two_dtypes():
    return {"rows": torch.tensor([np.ones(3, dtype=np.float32), np.arange(3)])}


def change_of_two_dtypes(rows):
    """the list goes through `numpy.array` first … for several dtypes, torch and NumPy apply different promotion rules"""
    before, after = rows
    assert before.dtype is torch.float32
    assert after.dtype is torch.float64


def case_ragged():
    return {"rows": torch.tensor([np.ones(3), np.ones(2)])}


def change_ragged(error):
    """Arrays that do not fit together raise an error with another text"""
    before, after = error
    assert before.startswith("ValueError: expected sequence of length 3")
    assert after.startswith("ValueError: setting an array element")
