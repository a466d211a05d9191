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
        picked = y[keep]  # error: TPF110
        rows = torch.nonzero(keep)  # error: TPF110
        where = torch.where(keep)  # error: TPF110
        pairs = keep.argwhere()  # error: TPF110
        chosen = y.masked_select(keep)  # error: TPF110
        same = th.masked_select(y, keep)  # error: TPF110
        columns = y[:, keep[0]]  # error: TPF110
        y[keep] = x[keep] * 2  # error: TPF110, TPF110
        y[~keep] *= 2.0  # error: TPF110
        y[keep[0], lengths] = 1.0  # error: TPF110
        return picked, rows, where, pairs, chosen, same, columns, y


class StoresByPositions(nn.Module):
    def forward(self, x: torch.Tensor, labels: torch.Tensor):
        x[torch.where(x > 1)] = 0.0  # error: TPF110
        x[(x < 0).nonzero(as_tuple=True)] = -1  # error: TPF110
        x[torch.where(labels)] = 0  # error: TPF110
        x[torch.where(x > 2)] = labels  # error: TPF110
        found = (x > 3).nonzero()  # error: TPF110
        return x, found


class NamedMask(nn.Module):
    def forward(self, x: torch.Tensor, attention_mask: torch.Tensor, values: torch.Tensor):
        x[attention_mask] = 0.0
        return values[attention_mask]  # error: TPF110


def library(x: torch.Tensor):
    return x[x > 0]  # error: TPF110


def unknown_value(x: torch.Tensor, value):
    x[x > 0] = value  # audit: TPF110
    return x


def named_mask(table, atom_mask: torch.Tensor, atoms: torch.Tensor):
    for name, value in table.items():
        table[name] = value[atom_mask]  # audit: TPF110
        table[name] = value[atoms], value[atoms.cpu()], value[0]


def masked_of_unknown(points, labels: torch.Tensor, weight: torch.Tensor):
    embedded = points.embed()
    embedded[labels == 0] += weight  # error: TPF110
    embedded[labels == 1] = 0.0
    return embedded


def unknown_or_number(x: torch.Tensor, value=None):
    if value is None:
        value = 0
    x[x > 0] = value  # audit: TPF110
    x[x < 0] = value if isinstance(value, torch.Tensor) else torch.zeros(3)  # error: TPF110
    return x


def selected_again(x: torch.Tensor, y: torch.Tensor, keep: torch.Tensor):
    """One search of the mask does for all three; the second one is written to, and the third is bound twice."""
    near, far = keep.bool(), keep.bool()
    other = x > 0
    if y.shape[0]:
        other = y > 0
    y[far] = x[far]  # error: TPF110, TPF110
    return x[near], y[near], x[other], x[near].sum()  # error: TPF110, TPF110, TPF110, TPF110


class SelectsTwice(nn.Module):
    def forward(self, x: torch.Tensor, labels: torch.Tensor):
        scores = x.flatten()
        classes = labels.flatten()
        valid = classes != 255
        scores = scores[valid]  # error: TPF110
        classes = classes[valid]  # error: TPF110
        return scores, classes


class SelectsInBranches(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, pad: int):
        kept_at = 0
        rows, kept = x.flatten(), y.flatten() != pad
        if pad:
            rows[kept] = rows[kept] * 2  # error: TPF110, TPF110
            for _ in range(3):
                rows[kept, ...] = 0.0
        first = rows[~kept].sum() if pad else 0  # error: TPF110
        second = rows[~kept].sum()  # error: TPF110
        return (
            first,
            second,
            kept_at,
            rows[~kept],  # error: TPF110
            [rows[~kept] for _ in range(2)],  # error: TPF110
        )


class WrittenInBetween(nn.Module):
    """The mask of the second selection has other elements, or another value, than that of the first."""

    def forward(self, x: torch.Tensor, y: torch.Tensor):
        rows, kept = x.flatten(), y.flatten() > 0
        a = rows[kept]  # error: TPF110
        kept[0] = True
        b = rows[kept]  # error: TPF110
        kept = rows > 1
        c = rows[kept]  # error: TPF110
        self.change(kept)
        d = rows[kept]  # error: TPF110
        view = kept[1:]
        view.fill_(False)
        e = rows[kept]  # error: TPF110
        for row in x:
            rows[kept] = rows[kept[:]] + row  # error: TPF110, TPF110
            kept = rows > 2
        return a, b, c, d, e, rows[kept]  # error: TPF110

    def change(self, mask):
        mask[0] = False


class SelectedLater(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        rows, kept, other = x.flatten(), y.flatten() > 0, y.flatten() > 1
        a = rows[kept]  # error: TPF110
        later = lambda: rows[kept]  # error: TPF110
        kept = kept & (rows > 0)
        b = rows[other]  # error: TPF110
        each = (rows[other] for _ in range(2))  # error: TPF110
        other = other & kept
        return a, b, later, each


class SelectsByUnknownMasks(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor, mask_of_rows: torch.Tensor | None):
        a, b = x[mask], y[mask]  # error: TPF110, TPF110
        return a, b, x[mask_of_rows], y[mask_of_rows]  # error: TPF110, TPF110


class NotSelectedByTorch(nn.Module):
    """The indexed value may be an object with another meaning of `[]`."""

    def forward(self, boxes, x: torch.Tensor):
        kept = x.flatten() > 0
        return boxes[kept], boxes[kept].area  # error: TPF110, TPF110

def selects_rows(x: torch.Tensor, y: torch.Tensor):
    """A sum over the second dimension leaves at least one; so does a slice."""
    summed = x.sum(1) > 0
    a, b = x[summed], y[summed]  # error: TPF110, TPF110
    least, _ = x.min(dim=1)
    near = ~(least < 0.5)
    c, d = x[near], y[near]  # error: TPF110, TPF110
    half = (y[:, 0] > 1) & (y[:, 1] > 1)
    e, f = x[half], y[half]  # error: TPF110, TPF110
    return a, b, c, d, e, f


def may_select_with_one_number(x: torch.Tensor, y: torch.Tensor):
    """These masks may have no dimensions."""
    last = x.amax(-1) > 2
    a, b = x[last], y[last]  # error: TPF110, TPF110
    norm = x.norm(2) > 1
    c, d = x[norm], y[norm]  # error: TPF110, TPF110
    squeezed = y[:, 0] > 1
    squeezed.squeeze_()
    e, f = x[squeezed], y[squeezed]  # error: TPF110, TPF110
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
        return len(torch.nonzero(labels)) * labels.float().mean()  # error: TPF110


class Decoded(nn.Module):
    """Results on their way to the CPU are left to audit."""

    def forward(self, scores: torch.Tensor, boxes: torch.Tensor):
        results = []
        for image in range(scores.shape[0]):
            keep = scores[image] > 0.5
            kept = self.largest(boxes[image][keep])  # audit: TPF110
            results.append(kept.cpu().numpy())
        return results

    def largest(self, boxes: torch.Tensor):
        return boxes[boxes[:, 0] > 0.1]  # audit: TPF110


class Copied(nn.Module):
    def forward(self, x: torch.Tensor):
        found = torch.nonzero(x)  # audit: TPF110
        found = found.detach().cpu()
        return found, x[x > 0].cpu(), x[x > 1].tolist()  # audit: TPF110, TPF110


class Suppressed(nn.Module):
    """Detections that stay on the GPU, for the next part of the model."""

    def forward(self, scores: torch.Tensor, boxes: torch.Tensor):
        kept = self.kept(boxes[scores > 0.5])  # error: TPF110
        return kept, boxes.shape[0]

    def kept(self, boxes: torch.Tensor):
        return boxes[boxes[:, 0] > 0.1]  # error: TPF110


class Predicted(nn.Module):
    """A model runs here: the copy comes after it."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        y = self.net(x[x[:, 0] > 0])  # error: TPF110
        return y.cpu().numpy()


def windows(model: nn.Module, volume: torch.Tensor, size: int):
    """Selections before and after the loop run once for all windows."""
    total, counts = torch.zeros_like(volume), torch.zeros_like(volume)
    with torch.no_grad():
        for start in range(0, volume.shape[0] - size, size):
            part = model(volume[start : start + size])
            total[start : start + size] += part[part > 0].sum()  # error: TPF110
            counts[start : start + size] += 1
    return total[counts > 0]  # audit: TPF110


def through_layers(layers: list[nn.Linear], x: torch.Tensor):
    """A loop over layers is part of a step."""
    for layer in layers:
        x = layer(x)
    for index in range(3):
        x = layers[index](x)
    return x[x > 0]  # error: TPF110


def without_model(x: torch.Tensor):
    for scale in (1, 2):
        x = x * scale
    return x[x > 0]  # error: TPF110


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
    return scores[scores > threshold], torch.nonzero(scores)  # error: TPF110, TPF110


def of_arrays(parts: list[np.ndarray], values):
    scores = np.concatenate(parts)
    return scores[scores > 0.5], values[values > 0.5], torch.from_numpy(scores).nonzero()


def of_used(scores, values):
    kept = scores.detach() > 0.5
    return scores[kept], values[values > 0.5]  # error: TPF110


def averaged(x: torch.Tensor, mask: torch.Tensor, scale: float):
    x, total = x.cuda(), mask.cuda().float().sum()
    keep = x > 0
    a = x.sum() / torch.nonzero(keep, as_tuple=False).size(0)  # error: TPF110
    b = total / keep.nonzero().shape[0] + total / len(torch.nonzero(keep))  # error: TPF110, TPF110
    c = scale / keep.nonzero().size(0)  # error: TPF110
    d = total / keep.nonzero().size(1)  # error: TPF110
    e = range(keep.nonzero().size(0)), total / torch.nonzero(keep, as_tuple=True)[0].size(0)  # error: TPF110, TPF110
    return a, b, c, d, e


def of_bytes(x: torch.Tensor, y: torch.Tensor):
    keep = torch.floor(x).byte()
    other = (x > 0).to(torch.uint8)
    picked = x.argmax(dim=1).long()
    on_cpu = (x > 0).cpu().byte()
    return y[:, keep], y[other], y[picked], x.cpu()[on_cpu]  # error: TPF110, TPF110
