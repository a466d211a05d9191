"""Train a small residual network on synthetic images."""

import argparse
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, Dataset


class ShapesDataset(Dataset):
    """Noisy images with one bright square; the label is the quadrant and its colour."""

    def __init__(self, length, image_size, num_classes, train=True):
        self.length = length
        self.image_size = image_size
        self.num_classes = num_classes
        self.train = train
        self.mean = torch.tensor([0.5, 0.5, 0.5]).view(3, 1, 1)
        self.std = torch.tensor([0.25, 0.25, 0.25]).view(3, 1, 1)

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(index)
        label = int(torch.randint(0, self.num_classes, (1,), generator=g).item())
        image = torch.rand(3, self.image_size, self.image_size, generator=g)
        half = self.image_size // 2
        top, left = (label % 4) // 2 * half, label % 2 * half
        image[label // 4 % 3, top : top + half, left : left + half] += 1.0
        if self.train and random.random() < 0.5:
            image = image.flip(-1).flip(-1)
        if self.train and torch.rand(1).item() < 0.1:
            image = image + 0.05 * torch.from_numpy(np.random.randn(*image.shape).astype(np.float32))
        return (image - self.mean) / self.std, label


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, planes, 1, stride=stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self, num_blocks, num_classes=10, width=16):
        super().__init__()
        self.in_planes = width
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        layers = []
        for i, blocks in enumerate(num_blocks):
            layers.append(self._make_layer(width * 2**i, blocks, stride=1 if i == 0 else 2))
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(self.in_planes, num_classes)

    def _make_layer(self, planes, num_blocks, stride):
        blocks = []
        for s in [stride] + [1] * (num_blocks - 1):
            blocks.append(BasicBlock(self.in_planes, planes, s))
            self.in_planes = planes
        return nn.Sequential(*blocks)

    def forward(self, x):
        if x.dim() != 4 or x.size(1) != 3:
            raise ValueError(f"expected NCHW images with 3 channels, got {tuple(x.shape)}")
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layers(x)
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.fc(x)


class AverageMeter:
    def __init__(self, name):
        self.name = name
        self.reset()

    def reset(self):
        self.sum, self.count = 0.0, 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def accuracy(output, target, topk=(1,)):
    """Computes the accuracy over the k top predictions."""
    maxk = max(topk)
    batch_size = target.size(0)
    _, pred = output.topk(maxk, 1, True, True)
    pred = pred.t()
    correct = pred.eq(target.view(1, -1).expand_as(pred))
    res = []
    for k in topk:
        correct_k = correct[:k].reshape(-1).float().sum(0)
        res.append(correct_k.mul_(100.0 / batch_size))
    return res


def train(epoch, net, loader, criterion, optimizer, device, args):
    net.train()
    losses, top1 = AverageMeter("loss"), AverageMeter("acc@1")
    end = time.time()
    for batch_idx, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        acc1, _ = accuracy(outputs, targets, topk=(1, 3))
        losses.update(loss.item(), inputs.size(0))
        top1.update(acc1.item(), inputs.size(0))
        if batch_idx % args.print_freq == 0:
            speed = inputs.shape[0] / (time.time() - end)
            print(f"epoch {epoch} [{batch_idx}/{len(loader)}] loss {losses.avg:.3f} acc {top1.avg:.1f} {speed:.0f} img/s")
        end = time.time()
    return losses.avg


@torch.no_grad()
def test(net, loader, criterion, device):
    net.eval()
    test_loss = 0
    correct = 0
    total = 0
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        outputs = net(inputs)
        test_loss += criterion(outputs, targets).item()
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
    return test_loss / len(loader), 100.0 * correct / total


def main():
    parser = argparse.ArgumentParser(description="PyTorch residual network training")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--print-freq", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True

    train_set = ShapesDataset(args.samples, 32, 12)
    test_set = ShapesDataset(args.samples // 4, 32, 12, train=False)
    pin = device.type == "cuda"
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, pin_memory=pin, drop_last=True)
    test_loader = DataLoader(test_set, batch_size=args.batch_size, pin_memory=pin)

    net = ResNet([1, 1, 1], num_classes=12).to(device)
    print(f"parameters: {sum(p.numel() for p in net.parameters()):,}")
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    scheduler = CosineAnnealingLR(optimizer, T_max=args.epochs)

    best_acc = 0.0
    for epoch in range(args.epochs):
        train_loss = train(epoch, net, train_loader, criterion, optimizer, device, args)
        val_loss, acc = test(net, test_loader, criterion, device)
        scheduler.step()
        if acc > best_acc:
            best_acc = acc
            state = {k: v.cpu() for k, v in net.state_dict().items()}
        print(f"epoch {epoch}: train {train_loss:.3f} val {val_loss:.3f} acc {acc:.2f} lr {scheduler.get_last_lr()[0]:.4f}")
    print(f"best accuracy {best_acc:.2f}, checkpoint of {len(state)} tensors")


if __name__ == "__main__":
    main()
