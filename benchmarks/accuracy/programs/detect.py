"""Anchor-free detector on synthetic rectangles: target assignment, box losses, NMS and recall."""

import argparse
from collections import defaultdict
from typing import Dict, List, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

STRIDES = (8, 16)
NUM_CLASSES = 3


def box_area(boxes: torch.Tensor) -> torch.Tensor:
    return (boxes[:, 2] - boxes[:, 0]).clamp(min=0) * (boxes[:, 3] - boxes[:, 1]).clamp(min=0)


def box_iou(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    return inter / (box_area(a)[:, None] + box_area(b)[None] - inter + 1e-7)


def giou_loss(pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    lt, rb = torch.max(pred[:, :2], target[:, :2]), torch.min(pred[:, 2:], target[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=1)
    union = box_area(pred) + box_area(target) - inter + 1e-7
    hull_lt, hull_rb = torch.min(pred[:, :2], target[:, :2]), torch.max(pred[:, 2:], target[:, 2:])
    hull = (hull_rb - hull_lt).clamp(min=0).prod(dim=1) + 1e-7
    return 1 - inter / union + (hull - union) / hull


def nms(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """Plain greedy NMS, for builds without torchvision."""
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        i = order[0]
        keep.append(i.item())
        if order.numel() == 1:
            break
        iou = box_iou(boxes[i].unsqueeze(0), boxes[order[1:]]).squeeze(0)
        order = order[1:][iou <= threshold]
    return torch.tensor(keep, dtype=torch.long, device=boxes.device)


class RectangleDataset(Dataset):
    def __init__(self, length: int, size: int = 96):
        self.length, self.size = length, size

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
        g = torch.Generator().manual_seed(index)
        image = torch.rand(3, self.size, self.size, generator=g) * 0.3
        n = int(torch.randint(1, 4, (1,), generator=g))
        boxes, labels = [], []
        for _ in range(n):
            w, h = torch.randint(16, 48, (2,), generator=g).tolist()
            x = torch.randint(0, self.size - w, (1,), generator=g).item()
            y = torch.randint(0, self.size - h, (1,), generator=g).item()
            label = torch.randint(0, NUM_CLASSES, (1,), generator=g).item()
            image[label, y : y + h, x : x + w] += 0.7
            boxes.append([x, y, x + w, y + h])
            labels.append(label)
        return image, {"boxes": torch.tensor(boxes, dtype=torch.float32), "labels": torch.tensor(labels)}


def collate_fn(batch):
    images, targets = zip(*batch)
    return torch.stack(images), list(targets)


class Detector(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
        self.stem = nn.Sequential(block(3, width), block(width, width), block(width, width))
        self.down = block(width, width)
        self.head = nn.Conv2d(width, NUM_CLASSES + 4, 3, padding=1)
        nn.init.constant_(self.head.bias[:NUM_CLASSES], -3.0)

    def forward(self, images: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        features = [self.stem(images)]
        features.append(self.down(features[0]))
        logits, boxes, points = [], [], []
        for stride, feature in zip(STRIDES, features):
            out = self.head(feature).flatten(2).transpose(1, 2)
            h, w = feature.shape[-2:]
            ys, xs = torch.meshgrid(torch.arange(h, device=images.device), torch.arange(w, device=images.device), indexing="ij")
            centre = (torch.stack([xs, ys], dim=-1).reshape(-1, 2).float() + 0.5) * stride
            distance = out[..., NUM_CLASSES:].clamp(max=4).exp() * stride
            logits.append(out[..., :NUM_CLASSES])
            boxes.append(torch.cat([centre - distance[..., :2], centre + distance[..., 2:]], dim=-1))
            points.append(centre)
        return torch.cat(logits, 1), torch.cat(boxes, 1), torch.cat(points)


class Criterion(nn.Module):
    def __init__(self, box_weight: float = 2.0):
        super().__init__()
        self.box_weight = box_weight

    def assign(self, points: torch.Tensor, target: Dict[str, torch.Tensor]) -> torch.Tensor:
        boxes = target["boxes"]
        inside = (points[:, None] > boxes[None, :, :2]).all(-1) & (points[:, None] < boxes[None, :, 2:]).all(-1)
        cost = box_area(boxes)[None].expand_as(inside).masked_fill(~inside, float("inf"))
        smallest, matched = cost.min(dim=1)
        matched[torch.isinf(smallest)] = -1
        return matched

    def forward(self, logits, boxes, points, targets: List[Dict[str, torch.Tensor]]) -> Dict[str, torch.Tensor]:
        cls_loss, box_loss, num_pos = 0.0, 0.0, 0
        for i, target in enumerate(targets):
            matched = self.assign(points, target)
            pos = matched >= 0
            onehot = torch.zeros_like(logits[i])
            if pos.any():
                labels = target["labels"][matched[pos]]
                onehot[pos, labels] = 1.0
                box_loss = box_loss + giou_loss(boxes[i][pos], target["boxes"][matched[pos]]).sum()
            cls_loss = cls_loss + F.binary_cross_entropy_with_logits(logits[i], onehot, reduction="sum")
            num_pos += int(pos.sum())
        num_pos = max(num_pos, 1)
        return {"cls": cls_loss / num_pos, "box": self.box_weight * box_loss / num_pos}


@torch.no_grad()
def postprocess(logits, boxes, score_thresh=0.05, nms_thresh=0.5, top=50):
    results = []
    for scores, candidates in zip(logits.sigmoid(), boxes):
        best, labels = scores.max(dim=-1)
        keep = best > score_thresh
        best, labels, candidates = best[keep], labels[keep], candidates[keep]
        best, index = best.topk(min(top, best.numel()))
        labels, candidates = labels[index], candidates[index].clamp(0, 96)
        kept = nms(candidates + labels[:, None] * 200.0, best, nms_thresh)
        results.append({"boxes": candidates[kept], "scores": best[kept], "labels": labels[kept]})
    return results


def evaluate(model, loader, device) -> Dict[int, float]:
    model.eval()
    hits, totals = defaultdict(int), defaultdict(int)
    for images, targets in loader:
        images = images.to(device)
        with torch.no_grad():
            logits, boxes, _ = model(images)
        outputs = [{k: v.cpu() for k, v in r.items()} for r in postprocess(logits, boxes)]
        for output, target in zip(outputs, targets):
            iou = box_iou(target["boxes"], output["boxes"])
            for j, label in enumerate(target["labels"].tolist()):
                totals[label] += 1
                same = output["labels"] == label
                if same.any() and iou[j][same].max() > 0.5:
                    hits[label] += 1
    return {label: hits[label] / totals[label] for label in sorted(totals)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--images", type=int, default=192)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader = DataLoader(RectangleDataset(args.images), args.batch_size, shuffle=True, collate_fn=collate_fn, pin_memory=True)
    val_loader = DataLoader(RectangleDataset(32), args.batch_size, collate_fn=collate_fn)
    model, criterion = Detector().to(device), Criterion()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for epoch in range(args.epochs):
        model.train()
        for step, (images, targets) in enumerate(train_loader):
            images = images.to(device, non_blocking=True)
            targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
            loss_dict = criterion(*model(images), targets)
            losses = sum(loss_dict.values())
            if not torch.isfinite(losses):
                print(f"loss is {losses}, stopping")
                raise SystemExit(1)
            optimizer.zero_grad()
            losses.backward()
            optimizer.step()
            if step % 5 == 0:
                parts = " ".join(f"{k} {v.item():.3f}" for k, v in loss_dict.items())
                print(f"epoch {epoch} step {step}: {parts}")
        recall = evaluate(model, val_loader, device)
        print(f"epoch {epoch} recall@0.5 " + ", ".join(f"{k}: {v:.2f}" for k, v in recall.items()))


if __name__ == "__main__":
    main()
