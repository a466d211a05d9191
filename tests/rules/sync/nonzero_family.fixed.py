import numpy as np
import torch
import torch as th
from torch import nn
from torch.utils.data import Dataset


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        y = self.linear(x)
        keep = y > 0
        keep_at = keep.nonzero(as_tuple=True) if keep.ndim else keep
        picked = y[keep_at]
        rows = torch.nonzero(keep)
        where = torch.where(keep)
        pairs = keep.argwhere()
        chosen = y.masked_select(keep)
        same = th.masked_select(y, keep)
        columns = y[:, keep[0]]
        y[keep_at] = x[keep_at] * 2
        y[~keep] *= 2.0
        y[keep[0], lengths] = 1.0
        return picked, rows, where, pairs, chosen, same, columns, y


class StoresByPositions(nn.Module):
    def forward(self, x: torch.Tensor, labels: torch.Tensor):
        x[x > 1] = 0.0
        x[x < 0] = -1
        x[labels] = 0
        x[torch.where(x > 2)] = labels
        found = (x > 3).nonzero()
        return x, found


class NamedMask(nn.Module):
    def forward(self, x: torch.Tensor, attention_mask: torch.Tensor, values: torch.Tensor):
        x[attention_mask] = 0.0
        return values[attention_mask]


def library(x: torch.Tensor):
    return x[x > 0]


def unknown_value(x: torch.Tensor, value):
    x[x > 0] = value
    return x


def named_mask(table, atom_mask: torch.Tensor, atoms: torch.Tensor):
    for name, value in table.items():
        table[name] = value[atom_mask]
        table[name] = value[atoms], value[atoms.cpu()], value[0]


def masked_of_unknown(points, labels: torch.Tensor, weight: torch.Tensor):
    embedded = points.embed()
    embedded[labels == 0] += weight
    embedded[labels == 1] = 0.0
    return embedded


def unknown_or_number(x: torch.Tensor, value=None):
    if value is None:
        value = 0
    x[x > 0] = value
    x[x < 0] = value if isinstance(value, torch.Tensor) else torch.zeros(3)
    return x


def selected_again(x: torch.Tensor, y: torch.Tensor, keep: torch.Tensor):
    """One search of the mask does for all three; the second one is written to, and the third is bound twice."""
    near, far = keep.bool(), keep.bool()
    other = x > 0
    if y.shape[0]:
        other = y > 0
    far_at = far.nonzero(as_tuple=True) if far.ndim else far
    y[far_at] = x[far_at]
    near_at = near.nonzero(as_tuple=True) if near.ndim else near
    return x[near_at], y[near_at], x[other], x[near_at].sum()


class SelectsTwice(nn.Module):
    def forward(self, x: torch.Tensor, labels: torch.Tensor):
        scores = x.flatten()
        classes = labels.flatten()
        valid = classes != 255
        valid_at = valid.nonzero(as_tuple=True)
        scores = scores[valid_at]
        classes = classes[valid_at]
        return scores, classes


class SelectsInBranches(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, pad: int):
        kept_at = 0
        rows, kept = x.flatten(), y.flatten() != pad
        if pad:
            kept_at2 = kept.nonzero(as_tuple=True)
            rows[kept_at2] = rows[kept_at2] * 2
            for _ in range(3):
                rows[kept, ...] = 0.0
        first = rows[~kept].sum() if pad else 0
        found_2 = (~kept).nonzero(as_tuple=True)
        second = rows[found_2].sum()
        return (
            first,
            second,
            kept_at,
            rows[found_2],
            [rows[found_2] for _ in range(2)],
        )


class WrittenInBetween(nn.Module):
    """The mask of the second selection has other elements, or another value, than that of the first."""

    def forward(self, x: torch.Tensor, y: torch.Tensor):
        rows, kept = x.flatten(), y.flatten() > 0
        a = rows[kept]
        kept[0] = True
        b = rows[kept]
        kept = rows > 1
        c = rows[kept]
        self.change(kept)
        d = rows[kept]
        view = kept[1:]
        view.fill_(False)
        e = rows[kept]
        for row in x:
            rows[kept] = rows[kept[:]] + row
            kept = rows > 2
        return a, b, c, d, e, rows[kept]

    def change(self, mask):
        mask[0] = False


class SelectedLater(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        rows, kept, other = x.flatten(), y.flatten() > 0, y.flatten() > 1
        a = rows[kept]
        later = lambda: rows[kept]
        kept = kept & (rows > 0)
        b = rows[other]
        each = (rows[other] for _ in range(2))
        other = other & kept
        return a, b, later, each


class SelectsByUnknownMasks(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor, mask_of_rows: torch.Tensor | None):
        mask_at = mask.nonzero(as_tuple=True) if mask.dtype == torch.bool and mask.ndim else mask
        a, b = x[mask_at], y[mask_at]
        return a, b, x[mask_of_rows], y[mask_of_rows]


class NotSelectedByTorch(nn.Module):
    """The indexed value may be an object with another meaning of `[]`."""

    def forward(self, boxes, x: torch.Tensor):
        kept = x.flatten() > 0
        return boxes[kept], boxes[kept].area

def selects_rows(x: torch.Tensor, y: torch.Tensor):
    """A sum over the second dimension leaves at least one; so does a slice."""
    summed = x.sum(1) > 0
    summed_at = summed.nonzero(as_tuple=True)
    a, b = x[summed_at], y[summed_at]
    least, _ = x.min(dim=1)
    near = ~(least < 0.5)
    near_at = near.nonzero(as_tuple=True)
    c, d = x[near_at], y[near_at]
    half = (y[:, 0] > 1) & (y[:, 1] > 1)
    half_at = half.nonzero(as_tuple=True)
    e, f = x[half_at], y[half_at]
    return a, b, c, d, e, f


def may_select_with_one_number(x: torch.Tensor, y: torch.Tensor):
    """These masks may have no dimensions."""
    last = x.amax(-1) > 2
    last_at = last.nonzero(as_tuple=True) if last.ndim else last
    a, b = x[last_at], y[last_at]
    norm = x.norm(2) > 1
    c, d = x[norm], y[norm]
    squeezed = y[:, 0] > 1
    squeezed.squeeze_()
    squeezed_at = squeezed.nonzero(as_tuple=True) if squeezed.ndim else squeezed
    e, f = x[squeezed_at], y[squeezed_at]
    return a, b, c, d, e, f


# Look-alikes.


class FilledWithNumbers(nn.Module):
    def forward(self, x: torch.Tensor):
        mask = x > 0
        x[mask] = 0
        x[mask] = -1.5
        x[:, mask[0]] = 2.0
        x.masked_fill_(mask, 3.0)
        return x


class Chosen(nn.Module):
    def forward(self, x: torch.Tensor, other: torch.Tensor):
        return torch.where(x > 0, x, other) + torch.where(x > 1, x, 0.0) + x.where(x > 2, other)


class Gathered(nn.Module):
    def forward(self, x: torch.Tensor, other: torch.Tensor):
        order = x.argsort(dim=0)
        return x[order], x[0], x[1:3], x[..., None], x.gather(0, order), other[order[:, 0]]


class OnHost(Dataset):
    def __getitem__(self, index):
        boxes = torch.zeros(10, 4)
        keep = boxes[:, 0] >= 0
        return boxes[keep], torch.nonzero(keep), torch.where(keep)


def on_host():
    scores = torch.rand(100)
    return scores[scores > 0.5], scores.nonzero()


def arrays(values: np.ndarray):
    values[values > 0] = values[values > 0] * 2
    return np.nonzero(values), np.where(values > 1)


def host_mask(model: nn.Module, x):
    mask = torch.rand(10) > 0.5
    return model(x).cuda()[mask]


def lists(names: list[str], index: int):
    return names[index], names[names.index("a")], {True: 1}[len(names) > 2]


class FixedSize(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.nonzero_static(x > 0, size=4), x.topk(3), x.masked_fill(x > 0, 0.0)


class MaybeNone(nn.Module):
    def forward(self, x: torch.Tensor, labels=None):
        return len(torch.nonzero(labels)) * labels.float().mean()


class Decoded(nn.Module):
    """Results on their way to the CPU are left to audit."""

    def forward(self, scores: torch.Tensor, boxes: torch.Tensor):
        results = []
        for image in range(scores.shape[0]):
            keep = scores[image] > 0.5
            kept = self.largest(boxes[image][keep])
            results.append(kept.cpu().numpy())
        return results

    def largest(self, boxes: torch.Tensor):
        return boxes[boxes[:, 0] > 0.1]


class Copied(nn.Module):
    def forward(self, x: torch.Tensor):
        found = torch.nonzero(x)
        found = found.detach().cpu()
        return found, x[x > 0].cpu(), x[x > 1].tolist()


class Suppressed(nn.Module):
    """Detections that stay on the GPU, for the next part of the model."""

    def forward(self, scores: torch.Tensor, boxes: torch.Tensor):
        kept = self.kept(boxes[scores > 0.5])
        return kept, boxes.shape[0]

    def kept(self, boxes: torch.Tensor):
        return boxes[boxes[:, 0] > 0.1]


class Predicted(nn.Module):
    """A model runs here: the copy comes after it."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        y = self.net(x[x[:, 0] > 0])
        return y.cpu().numpy()


def windows(model: nn.Module, volume: torch.Tensor, size: int):
    """Selections before and after the loop run once for all windows."""
    total, counts = torch.zeros_like(volume), torch.zeros_like(volume)
    with torch.no_grad():
        for start in range(0, volume.shape[0] - size, size):
            part = model(volume[start : start + size])
            total[start : start + size] += part[part > 0].sum()
            counts[start : start + size] += 1
    return total[counts > 0]


def through_layers(layers: list[nn.Linear], x: torch.Tensor):
    """A loop over layers is part of a step."""
    for layer in layers:
        x = layer(x)
    for index in range(3):
        x = layers[index](x)
    return x[x > 0]


def without_model(x: torch.Tensor):
    for scale in (1, 2):
        x = x * scale
    return x[x > 0]


class Slices(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        batch_mask = slice(int(x.shape[0] * 0.5), None)
        y = self.layer(x)
        y[batch_mask, ...] = y[batch_mask, ...] + 1
        return y[batch_mask], y[batch_mask, ...]


def of_parts(parts: list, threshold: float):
    """The results of torch on an unknown device: what is selected from is computed from data."""
    scores = torch.cat(parts)
    return scores[scores > threshold], torch.nonzero(scores)


def of_arrays(parts: list[np.ndarray], values):
    scores = np.concatenate(parts)
    return scores[scores > 0.5], values[values > 0.5], torch.from_numpy(scores).nonzero()


def of_used(scores, values):
    kept = scores.detach() > 0.5
    return scores[kept], values[values > 0.5]


def averaged(x: torch.Tensor, mask: torch.Tensor, scale: float):
    x, total = x.cuda(), mask.cuda().float().sum()
    keep = x > 0
    a = x.sum() / torch.count_nonzero(keep)
    b = total / torch.count_nonzero(keep) + total / torch.count_nonzero(keep)
    c = scale / keep.nonzero().size(0)
    d = total / keep.nonzero().size(1)
    e = range(keep.nonzero().size(0)), total / torch.nonzero(keep, as_tuple=True)[0].size(0)
    return a, b, c, d, e
