"""Loops over rows: those that could be one operation, and those that could not."""

import torch
from torch import nn

from elsewhere import canvas


class Normalise(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):  # error: TPF208
            out[i] = x[i] / x[i].norm()
        return out


class Columns(nn.Module):
    def forward(self, x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for column in range(x.size(1)):  # error: TPF208
            scaled = x[:, column] * weights[column]
            out[:, column] = torch.relu(x[:, column] + scaled)
        return out


def boxes_to_masks(boxes: torch.Tensor, height: int, width: int) -> torch.Tensor:
    masks = canvas((len(boxes), height, width), device=boxes.device)
    for mask, box in zip(masks, boxes.long(), strict=True):  # error: TPF208
        mask[box[1] : box[3], box[0] : box[2]] = 1.0
    return masks


class Distances(nn.Module):
    def forward(self, x: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
        distances = x.new_zeros(x.shape[0], centers.shape[0])
        for k in range(len(centers)):  # error: TPF208
            distances[:, k] = (x - centers[k]).square().sum(-1)
        return distances


def _posterized(image: torch.Tensor, levels: torch.Tensor) -> torch.Tensor:
    return torch.floor(image * levels) / levels


class Gathered(nn.Module):
    def forward(self, x: torch.Tensor, levels: torch.Tensor) -> torch.Tensor:
        images = []
        for i in range(x.shape[0]):  # error: TPF208
            images.append(_posterized(x[i], levels[i]))
        return torch.stack(images)


class ClassLoss(nn.Module):
    def forward(self, x: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        total = x.new_zeros(())
        for c in range(x.shape[1]):  # error: TPF208
            errors = (x[:, c] - (wanted == c).float()).abs()
            errors[:, 1:] = errors[:, 1:] - errors[:, :-1]
            total += errors.mean()
        return total


class Boxes(nn.Module):
    def forward(self, x: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        masks = torch.zeros_like(x)
        for mask, box in zip(masks, boxes.long()):  # error: TPF208
            mask[box[1] : box[3], box[0] : box[2]] = 1
        return masks


class BlockMask(nn.Module):
    def forward(self, x: torch.Tensor, block: int) -> torch.Tensor:
        length = x.shape[1]
        mask = x.new_full((length, length), float("-inf"))
        for i in range(length):  # error: TPF208
            last = i // block
            mask[i, : (last + 1) * block] = 0
        return mask


class Branches(nn.Module):
    def forward(self, x: torch.Tensor, flipped: list[bool]) -> torch.Tensor:
        parts = [x[i].softmax(-1).amax() for i in range(x.shape[0])]
        first = torch.stack([x[i].softmax(-1).amax() for i in range(x.shape[0])])  # error: TPF208
        return first + parts[0]


def filled(tokens) -> torch.Tensor:
    buffer = torch.empty(8193, dtype=torch.long)
    for i in range(8193):  # error: TPF208
        buffer[i] = next(tokens)
    return buffer


def drained(tokens, count: int) -> torch.Tensor:
    buffer = torch.empty(count, dtype=torch.long)
    for i in range(count):  # error: TPF208
        buffer[i] = tokens.popleft()
    return buffer


class Recurrence(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(1, x.shape[0]):
            out[i] = out[i - 1] * 0.9 + x[i]
        return out


class Carried(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(x[0])
        out = torch.zeros_like(x)
        for i in range(x.shape[0]):
            state = state * 0.9 + x[i]
            out[i] = state
        return out


class Layers(nn.Module):
    def __init__(self, heads: nn.ModuleList):
        super().__init__()
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(len(self.heads)):
            out[i] = self.heads[i](x[i])
        return out


class Histogram(nn.Module):
    """The rows are computed and stored on the GPU, though the edges of the bins are numbers on the CPU."""

    def forward(self, distances: torch.Tensor, bins: int) -> torch.Tensor:
        edges = torch.linspace(0.0, 4.0, steps=bins)
        counts = torch.zeros(len(distances), bins).to(distances.device)
        for i in range(bins):  # error: TPF208
            counts[:, i] = torch.relu(1 - (distances - edges[i]).abs()).sum(1)
        return counts


class HistogramOnTheHost(nn.Module):
    def forward(self, bins: int) -> torch.Tensor:
        edges = torch.linspace(0.0, 4.0, steps=bins)
        counts = torch.zeros(4, bins)
        for i in range(bins):  # audit: TPF208
            counts[:, i] = torch.relu(1 - edges[i])
        return counts


def on_the_host(rows: list[list[int]]) -> torch.Tensor:
    table = torch.zeros(len(rows), 4)
    wanted = torch.ones(len(rows), 4)
    for i in range(len(rows)):  # audit: TPF208
        table[i] = wanted[i] * 2
    return table


class FilledFromLists(nn.Module):
    def forward(self, x: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        mask = torch.zeros_like(x)
        for i in range(len(lengths)):
            mask[i, : lengths[i]] = 1
        return mask


class Unknown(nn.Module):
    def forward(self, x: torch.Tensor, solve) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = solve(x[i])
        return out


class Viterbi(nn.Module):
    def forward(self, x: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        scores, back = torch.zeros_like(x), torch.zeros_like(x)
        for t in range(1, x.shape[1]):
            best, where = (scores[:, t - 1].unsqueeze(-1) + moves).max(1)
            scores[:, t] = best + x[:, t]
            back[:, t] = where
        return back


class Ragged(nn.Module):
    def forward(self, x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        rows = []
        for i in range(x.shape[0]):
            rows.append(x[i].masked_select(kept[i]) * 2)
        return torch.cat(rows)


class Unpadded(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor, widths: list[int]) -> torch.Tensor:
        rows = []
        for row, length in zip(x, lengths):
            rows.append(torch.relu(row[:length]))
        whole = torch.cat(rows)
        coded = torch.cat([nn.functional.one_hot(x[:, i].long(), widths[i]) for i in range(x.shape[1])], -1)
        return whole.sum() + coded.sum()


class ListOfResults(nn.Module):
    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        found = []
        for i in range(x.shape[0]):
            found.append(x[i].softmax(-1))
        return found


class Scales(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for i in range(3):
            out[:, i] = x[:, i] * 2
        return out


class Collated(nn.Module):
    def forward(self, images: list[torch.Tensor]) -> torch.Tensor:
        batch = images[0].new_zeros(len(images), 3, 64, 64)
        for i in range(len(images)):
            batch[i, :, : images[i].shape[1]].copy_(images[i])
        return batch


class Kept(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not hasattr(self, "kernel"):
            kernel = torch.zeros_like(x)
            for i in range(x.shape[0]):  # audit: TPF208
                kernel[i, i] = 1
            self.kernel = kernel
        return x @ self.kernel


def padded(images: list[torch.Tensor], size) -> tuple[torch.Tensor, torch.Tensor]:
    b, c, h, w = size
    device = images[0].device
    batch = torch.zeros(size, device=device)
    mask = torch.ones((b, h, w), dtype=torch.bool, device=device)
    for image, row, covered in zip(images, batch, mask):
        row[: image.shape[0], : image.shape[1], : image.shape[2]].copy_(image)
        covered[: image.shape[1]] = False
    return batch, mask


def padded_by_index(texts, out: torch.Tensor) -> torch.Tensor:
    for i in range(len(texts)):
        out[i, : len(texts[i])] = texts[i]
    return out


def padded_rows(rows, out: torch.Tensor) -> torch.Tensor:
    for row, filled in zip(rows, out):
        length = row.size(0)
        filled[:length] = row
    return out


class Shifted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for row, filled in zip(x, out):  # error: TPF208
            filled[: row.shape[0]] = row * 2
        return out


def collected(found: dict[str, torch.Tensor], count: int):
    rows, names = [], []
    for i in range(count):
        rows.append(found["x"][found["index"] == i])
        names.append(found["name"][i])
    return torch.stack(rows), names


def computed(found: dict[str, torch.Tensor], count: int):
    rows, names = [], []
    for i in range(count):  # error: TPF208
        rows.append(found["x"][i] * 2)
        names.append(found["name"][i])
    return torch.stack(rows), names
