import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def case_elements():
    matrix = torch.eye(3, device=DEVICE)
    matrix[0, 2] = 0.1
    matrix[-1, 0] = -0.1 * 2
    return matrix


def case_dtypes():
    counts = torch.arange(3, device=DEVICE)
    counts[0] = 2.7
    flags = torch.eye(2, dtype=torch.bool, device=DEVICE)
    flags[0, 1] = 2
    halves = torch.eye(2, dtype=torch.float16, device=DEVICE)
    halves[1, 1] = 0.1
    return counts, flags, halves


def case_gradients():
    x = torch.eye(3, device=DEVICE, requires_grad=True)
    y = x * 2
    y[0, 0] = 5.0
    (y * y).sum().backward()
    return x, y


def case_several_lines():
    matrix = torch.eye(2, device=DEVICE)
    matrix[0, 1] = (  # the angle
        1.0
        + 2.0
    )
    return matrix


def kept_slices():
    matrix = torch.eye(3, device=DEVICE)
    matrix[:, 0] = 1.0
    matrix[1] = 2.0
    return matrix
