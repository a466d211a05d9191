import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Boxes(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.order = [3, 2, 1, 0]

    def forward(self, x: torch.Tensor):
        boxes = self.linear(x)
        left = boxes[:, [0, 2]]  # error: TPF118
        right = boxes[[0, 2]]  # error: TPF118
        both = boxes[[0, 1], [2, 3]]  # error: TPF118
        kept = boxes[..., self.order]  # error: TPF118
        some = boxes[range(2)]  # error: TPF118
        made = boxes[:, torch.tensor([0, 2])]  # error: TPF118
        boxes[:, [1, 3]] = left  # error: TPF118
        boxes[[0]] += 1  # error: TPF118
        return left, right, both, kept, some, made, boxes


class Ranges(nn.Module):
    def forward(self, x: torch.Tensor, labels: torch.Tensor, count: int, unknown):
        a = x[torch.arange(x.size(0)), labels]  # error: TPF118
        b = x[torch.arange(0, len(labels)), labels] - x[range(len(x)), labels]  # error: TPF118, TPF118
        c = x[list(range(count)), labels]  # error: TPF118
        d = x[..., 0][torch.arange(count, dtype=torch.int32), labels]  # error: TPF118
        e = x[torch.arange(unknown), labels]  # error: TPF118
        f = x[torch.arange(count), [1] * count]  # error: TPF118
        x[torch.arange(count), labels] = 0.5  # error: TPF118
        return a, b, c, d, e, f


class EvenlySpaced(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor):
        last = self.head(x[:, [-1], :])  # error: TPF118
        less = x < x.topk(3)[0][:, [-1]]  # error: TPF118
        spaced = x[:, [4, 6, 8]] * 2  # error: TPF118
        ends = x[..., [-3, -2]].sum()  # error: TPF118
        falls = (x[[2, 1]] > 0).any()  # error: TPF118
        middle = x[0, [1, 2]].abs()  # error: TPF118
        mixed = x[[-1, 0]].exp()  # error: TPF118
        longer = x[[3, 1, 0, 2, 4]]  # error: TPF118
        new = x[[1], None].exp()  # error: TPF118
        true = x[[True, False]].exp()  # error: TPF118
        return last, less, spaced, ends, falls, middle, mixed, longer, new, true


class Written(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, kept: list):
        part = x[:, [0, 1]]  # error: TPF118
        x.add_(1)
        mine = y[[0, 1]]  # error: TPF118
        mine.zero_()
        kept.append(y[[1]])  # error: TPF118
        x[:, [1, 2]] = x[:, [0, 1]]  # error: TPF118, TPF118
        x[:, [1, 2]] = y  # error: TPF118
        return part * 2


def sampled(x: torch.Tensor, indices: np.ndarray):
    chosen = torch.randperm(100)[:10]
    y = x.cuda()
    return y[chosen], y[indices]  # error: TPF118, TPF118


def host_mask(x: torch.Tensor):
    mask = torch.rand(10) > 0.5
    y = x.cuda()
    y[mask] = 0.0  # error: TPF118
    return y


class Mask:
    def __init__(self, size, device="cpu"):
        self.mask = torch.ones(size, size).triu(1).to(device)


class Attention(nn.Module):
    """A tensor that takes positions from the GPU is there, too; one number or positions of the CPU do not show it."""

    def forward(self, q: torch.Tensor, place):
        rows = torch.arange(q.shape[0])[:, None]
        scores = q @ q.transpose(-2, -1)
        top = scores.topk(3)[1]
        mask = Mask(q.shape[1], device=place).mask
        chosen = mask[rows, top]  # error: TPF118
        best = mask[rows, scores.sum().argmax()]  # audit: TPF118
        return chosen, best, mask[rows, rows.T]  # audit: TPF118


# Look-alikes.


def of_slices(x: torch.Tensor, count: int):
    y = x.cuda()
    most = [slice(None)] * y.ndim
    most[0] = slice(0, count)
    return y[most], y[[slice(None), 3, ...]], y[[slice(0, 3) for _ in y.shape]]


class Slices(nn.Module):
    def forward(self, x: torch.Tensor):
        return x[:, 0], x[:, 1:3], x[0, 2], x[..., None], x[(0, 2)], x[:, ::2]


class OnDevice(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("order", torch.tensor([3, 2, 1, 0]))

    def forward(self, x: torch.Tensor):
        order = torch.randperm(x.shape[0], device=x.device)
        return x[order], x[:, self.order], x[x.argsort(0)]


def selected_by_host_mask(x: torch.Tensor):
    mask = torch.rand(10) > 0.5
    return x.cuda()[mask]


def on_host():
    table = torch.zeros(10, 4)
    table[:, [0, 2]] = 1.0
    return table[[1, 2]], table[torch.randperm(10)]


def arrays(values: np.ndarray):
    return values[[0, 1]], values[:, [2, 3]]


def host_number(x: torch.Tensor):
    return x.cuda()[torch.tensor(3)]


def mappings(table: dict[tuple[int, ...], int], names: list[str]):
    return table[tuple([1, 2])], names[len([0])]


def one_of_an_array(x: torch.Tensor):
    rows = x.cuda()
    return [rows[i] for i in np.arange(3)], rows[np.arange(9).argmax()]


def slices_along_a_dimension(x: torch.Tensor, dim: int, part: slice):
    index = [slice(None)] * len(x.shape)
    index[dim] = part
    return x[index]


def the_same_rows(x: torch.Tensor, rows: list[int], count: int):
    x = x.cuda()
    rows = sorted(rows)
    first = x[rows]  # error: TPF118
    several = np.random.permutation(count)
    return first, x[several], x[:, several]  # error: TPF118, TPF118


class Unpacked(nn.Module):
    def forward(self, x: torch.Tensor, count: int, places: tuple, rows: torch.Tensor):
        lower = x[(..., *torch.tril_indices(count, count))]  # error: TPF118
        pair = [0, 1], [1, 0]
        listed = x[(..., *pair)]  # error: TPF118
        upper = x[(..., *torch.triu_indices(count, count, device=x.device))]
        one = 0, 1
        numbers = x[(*one, ...)]
        sliced = x[(*[slice(None)] * count, 0)]
        unknown = x[(*places, 0)]
        on_gpu = x[(..., *rows)]
        return lower, listed, upper, numbers, sliced, unknown, on_gpu


def built(x: torch.Tensor, rows: list[int], dim: int, at: torch.Tensor):
    some = x[(slice(None),) * dim + (rows,)]  # error: TPF118
    if dim:
        rows = None
    maybe = x[(slice(None),) * dim + (rows,)]  # error: TPF118
    first = x[(slice(None),) * dim + (0,)]
    rest = x[(slice(None),) * dim + (slice(1, None),)]
    on_gpu = x[(slice(None),) * dim + (at,)]
    whole = x[(slice(None),) * dim]
    return some, maybe, first, rest, on_gpu, whole


class Tuples(nn.Module):
    def forward(self, x: torch.Tensor, i: int, places: tuple, sizes: tuple[int, ...]):
        pair = x[:, (i, i + 2)]  # error: TPF118
        first = x[0, (2, 0)]  # error: TPF118
        given = x[:, sizes]  # error: TPF118
        whole = x[(i, i + 2)]
        named = i, 0
        also = x[named]
        nested = x[:, places]
        sliced = x[(slice(None), i)]
        return pair, first, given, whole, also, nested, sliced


def rows_by_annotation(x: torch.Tensor, rows: list[int]):
    x = x.cuda()
    return x[rows]  # error: TPF118


def reflected(x, weight):
    zeros = torch.zeros(1, device=x.device) if x.shape[2] == 0 else None
    rows = np.arange(x.shape[2])[::-1]
    return zeros, F.conv2d(x[:, :, rows], weight)  # error: TPF118


def reflected_if_tensor(x, weight):
    zeros = torch.zeros(1, device=x.device) if x.shape[2] == 0 else None
    rows = np.arange(x.shape[2])[::-1]
    return zeros, weight.convolve(x[:, :, rows])  # audit: TPF118


def views_of_ranges(x: torch.Tensor, index: torch.Tensor, start: int):
    x, index = x.cuda(), index.cuda()
    n, m, _ = x.shape
    a = x[torch.arange(n)[:, None], index]  # error: TPF118
    b = x[torch.arange(n).unsqueeze(1), index]  # error: TPF118
    c = x[torch.arange(m).unsqueeze(0).expand(n, m)[:, :], 0]  # error: TPF118
    d = x[torch.arange(n)[start:], 0]  # error: TPF118
    e = x[(torch.arange(n) + start)[:, None], index]  # error: TPF118
    return a, b, c, d, e


def moved_and_indexed(x, y, model, optimizer):
    x, y = x.cuda(), y.to("cuda")
    for _ in range(100):
        order = torch.randperm(len(x))
        for i in range(0, len(x), 64):
            rows = order[i : i + 64]
            loss = (model(x[rows]) - y[rows]).square().mean()  # error: TPF118 # error: TPF118
            loss.backward()
            optimizer.step()


def moved_and_indexed_by_a_number(layers, x: torch.Tensor):
    layers = layers.cuda()
    for i in range(3):
        x = layers[i](x)
    return x
