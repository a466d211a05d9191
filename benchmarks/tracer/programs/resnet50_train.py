"""torchvision's ResNet-50 in a training loop as its reference scripts have it, with random data."""

import torch
import torchvision
from torch import nn
from torchvision.transforms import v2

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZE = 224 if DEVICE == "cuda" else 64


def accuracy(output, target, topk=(1,)):
    with torch.inference_mode():
        _, predicted = output.topk(max(topk), 1, True, True)
        correct = predicted.t().eq(target[None])
        return [correct[:k].flatten().sum(dtype=torch.float32) * (100.0 / len(target)) for k in topk]


def main():
    torch.manual_seed(0)
    model = torchvision.models.resnet50(num_classes=100).to(DEVICE)
    mixing = v2.RandomChoice([v2.MixUp(num_classes=100), v2.CutMix(num_classes=100)])
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler(enabled=DEVICE == "cuda")
    average = torch.optim.swa_utils.AveragedModel(model)
    images = torch.randn(48, 3, SIZE, SIZE)
    labels = torch.randint(0, 100, (48,))
    data = torch.utils.data.TensorDataset(images, labels)
    for image, target in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True):
        mixed, mixed_target = mixing(image, target)
        mixed, mixed_target = mixed.to(DEVICE), mixed_target.to(DEVICE)
        with torch.autocast(DEVICE, torch.float16, enabled=DEVICE == "cuda"):
            output = model(mixed)
            loss = criterion(output, mixed_target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(model)
        top_1, top_5 = accuracy(output, target.to(DEVICE), (1, 5))
        print(f"loss {loss.item():.3f} acc@1 {top_1.item():.1f} acc@5 {top_5.item():.1f}")
    model.eval()
    with torch.inference_mode():
        for image, target in torch.utils.data.DataLoader(data, batch_size=16):
            output = model(image.to(DEVICE, non_blocking=True))
            correct = (output.argmax(1) == target.to(DEVICE, non_blocking=True)).sum().item()
            print("correct", correct)


if __name__ == "__main__":
    main()
