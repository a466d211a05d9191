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
    x = torch.ones(3, device=DEVICE, requires_grad=True)
    y = torch.zeros(2, 3, device=DEVICE)
    y[1] = x
    y[1, 0] = 5.0
    (y * y).sum().backward()
    return x, y


def kept_where_an_error_may_go():
    """A position outside of a tensor raises an error, and a slice there is empty."""
    size = (2, 3)
    table = torch.zeros(2, 3, device=DEVICE)
    table[2, 3] = 1.0
    table[-3, -4] = 1.0
    square = torch.eye(3, m=2, device=DEVICE)
    square[0, 2] = 1.0
    other = torch.zeros(*size, device=DEVICE)
    other[0, 2] = 1.0
    twice = table * 2
    twice[0, 0] = 1.0
    return table, square, other, twice


def case_one_position_outside():
    table = torch.zeros(2, 3, device=DEVICE)
    try:
        table[0, 3] = 1.0
    except IndexError:
        table[1, 0] = 2.0
    return table


def case_positions_that_are_there():
    table = torch.zeros((2, 3), device=DEVICE)
    cube = torch.full([2, 2, 2], 0.5, device=DEVICE)
    table[0, -3] = 1.0
    table[1, 2] = 2.0
    cube[1, -1, 0] = 3.0
    return table, cube


def case_several_lines():
    matrix = torch.eye(2, device=DEVICE)
    matrix[0, 1] = (  # the angle
        1.0
        + 2.0
    )
    return matrix


class Counter:
    def __init__(self) -> None:
        self.n = 0

    def bump(self) -> float:
        self.n += 1
        return 9.0


def case_order():
    counter, n, queue, i = Counter(), 0, [1.0, 2.0], 1
    table = torch.zeros(3, 2, device=DEVICE)
    table[i, 0] = counter.bump()
    table[counter.n, 1] = counter.bump()
    table[len(queue), 0] = float(queue.pop())
    table[n, 1] = (n := n + 1)
    return table, counter.n


def case_numbers():
    table = torch.zeros(3, 4, dtype=torch.float16, device=DEVICE)
    table[0, 0] = -1e9
    table[0, 1] = 70000
    table[0, 2] = float("nan")
    table[0, (3)] = float("-inf")
    table[
        1,  # the row
        -1,
    ] = 65504
    first = last = torch.arange(3, device=DEVICE)
    first[0] = last[2] = 7
    return table, first


def case_too_large():
    table = torch.zeros(3, 2, device=DEVICE)
    table[0, 1] = 9223372036854775808
    return table


def case_complex():
    table = torch.zeros(3, 2, device=DEVICE)
    table[0, 1] = 1j
    return table


def kept_booleans(flag: bool = True):
    table = torch.zeros(3, 2, device=DEVICE)
    table[True, 0] = 1.0
    table[flag, 1] = 1.0
    return table


def kept_where_a_tuple_stays_one():
    table, place = torch.zeros(3, 2, device=DEVICE), (0, 1)
    table[place] = 1.0
    table[(1, 1)] = 2.0
    return table


def kept_slices():
    matrix = torch.eye(3, device=DEVICE)
    matrix[:, 0] = 1.0
    matrix[1] = 2.0
    return matrix
