"""torchvision's Faster R-CNN: training, then detection, with random boxes."""

import torch
import torchvision

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZE = 320 if DEVICE == "cuda" else 96


def batch(count):
    images, targets = [], []
    for _ in range(count):
        corner = torch.rand(5, 2) * SIZE / 2
        boxes = torch.cat([corner, corner + 8 + torch.rand(5, 2) * SIZE / 3], 1)
        images.append(torch.rand(3, SIZE, SIZE).to(DEVICE))
        targets.append({"boxes": boxes.to(DEVICE), "labels": torch.randint(1, 20, (5,)).to(DEVICE)})
    return images, targets


def main():
    torch.manual_seed(0)
    model = torchvision.models.detection.fasterrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=20, min_size=SIZE, max_size=SIZE
    ).to(DEVICE)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.005, momentum=0.9)
    for _ in range(6):
        images, targets = batch(2)
        losses = model(images, targets)
        loss = sum(losses.values())
        if not torch.isfinite(loss):
            print("not finite", {name: value.item() for name, value in losses.items()})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print({name: round(value.item(), 3) for name, value in losses.items()})
    model.eval()
    with torch.inference_mode():
        for _ in range(3):
            images, targets = batch(2)
            for found, wanted in zip(model(images), targets):
                kept = found["boxes"][found["scores"] > 0.05]
                overlap = torchvision.ops.box_iou(wanted["boxes"], kept)
                best = overlap.max(1).values.mean().item() if len(kept) else 0.0
                print(len(kept), best, found["labels"].cpu().tolist()[:3])


if __name__ == "__main__":
    main()
