"""Semantic segmentation of coloured shapes: small U-Net, cross entropy + dice, mIoU from a confusion matrix."""
import datetime
import time
from collections import defaultdict, deque

import numpy as np
import torch
import torch.utils.data
from torch import nn
from torch.nn import functional as F

CLASSES = ["background", "disc", "box", "stripe", "cross"]
IGNORE = 255


class SmoothedValue:
    """A window of values, and what they were over the whole run."""

    def __init__(self, window_size=20, fmt="{median:.4f} ({global_avg:.4f})"):
        self.deque = deque(maxlen=window_size)
        self.total = 0.0
        self.count = 0
        self.fmt = fmt

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    @property
    def median(self):
        d = torch.tensor(list(self.deque))
        return d.median().item()

    @property
    def global_avg(self):
        return self.total / max(self.count, 1)

    def __str__(self):
        return self.fmt.format(median=self.median, global_avg=self.global_avg)


class MetricLogger:
    def __init__(self, delimiter="  "):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **kwargs):
        for k, v in kwargs.items():
            if isinstance(v, torch.Tensor):
                v = v.item()
            assert isinstance(v, (float, int))
            self.meters[k].update(v)

    def __str__(self):
        return self.delimiter.join(f"{name}: {meter}" for name, meter in self.meters.items())

    def log_every(self, iterable, print_freq, header=""):
        start = time.time()
        for i, obj in enumerate(iterable):
            yield obj
            if i % print_freq == 0:
                memory = ""
                if torch.cuda.is_available():
                    memory = f"max mem: {torch.cuda.max_memory_allocated() / 2**20:.0f}"
                print(self.delimiter.join([header, f"[{i}/{len(iterable)}]", str(self), memory]))
        print(f"{header} Total time: {datetime.timedelta(seconds=int(time.time() - start))}")


class ConfusionMatrix:
    def __init__(self, num_classes):
        self.num_classes = num_classes
        self.mat = None

    def update(self, a, b):
        n = self.num_classes
        if self.mat is None:
            self.mat = torch.zeros((n, n), dtype=torch.int64, device=a.device)
        with torch.inference_mode():
            k = (a >= 0) & (a < n)
            inds = n * a[k].to(torch.int64) + b[k]
            self.mat += torch.bincount(inds, minlength=n**2).reshape(n, n)

    def compute(self):
        h = self.mat.float()
        acc_global = torch.diag(h).sum() / h.sum()
        acc = torch.diag(h) / h.sum(1)
        iu = torch.diag(h) / (h.sum(1) + h.sum(0) - torch.diag(h))
        return acc_global, acc, iu

    def __str__(self):
        acc_global, acc, iu = self.compute()
        return "global correct: {:.1f}\naverage row correct: {}\nIoU: {}\nmean IoU: {:.1f}".format(
            acc_global.item() * 100,
            [f"{i:.1f}" for i in (acc * 100).tolist()],
            [f"{i:.1f}" for i in (iu * 100).tolist()],
            iu.mean().item() * 100,
        )


class Shapes(torch.utils.data.Dataset):
    def __init__(self, length, size=48, seed=0):
        self.length, self.size, self.seed = length, size, seed

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        rng = np.random.default_rng(self.seed * 100003 + index)
        s = self.size
        target = np.zeros((s, s), dtype=np.int64)
        yy, xx = np.mgrid[:s, :s]
        for _ in range(rng.integers(1, 4)):
            kind = int(rng.integers(1, len(CLASSES)))
            cy, cx, r = rng.integers(8, s - 8), rng.integers(8, s - 8), rng.integers(4, 10)
            if kind == 1:
                region = (yy - cy) ** 2 + (xx - cx) ** 2 < r * r
            elif kind == 2:
                region = (abs(yy - cy) < r) & (abs(xx - cx) < r)
            elif kind == 3:
                region = abs(yy - cy) < 3
            else:
                region = ((abs(yy - cy) < 2) | (abs(xx - cx) < 2)) & (abs(yy - cy) < r) & (abs(xx - cx) < r)
            target[region] = kind
        image = np.stack([np.sin(target + c) for c in range(3)]) + 0.4 * rng.standard_normal((3, s, s))
        target[rng.random((s, s)) < 0.02] = IGNORE
        return torch.as_tensor(image, dtype=torch.float32), torch.as_tensor(target)


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, num_classes, widths=(16, 32, 64), aux=True):
        super().__init__()
        self.down = nn.ModuleList()
        cin = 3
        for w in widths:
            self.down.append(block(cin, w))
            cin = w
        self.up = nn.ModuleList(block(a + b, b) for a, b in zip(widths[:0:-1], widths[-2::-1]))
        self.classifier = nn.Conv2d(widths[0], num_classes, 1)
        self.aux_classifier = nn.Conv2d(widths[-1], num_classes, 1) if aux else None

    def forward(self, x):
        size = x.shape[-2:]
        skips = []
        for i, stage in enumerate(self.down):
            x = stage(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        result = {}
        if self.aux_classifier is not None:
            result["aux"] = F.interpolate(self.aux_classifier(x), size=size, mode="bilinear", align_corners=False)
        for stage, skip in zip(self.up, skips[-2::-1]):
            x = F.interpolate(x, size=skip.shape[-2:], mode="bilinear", align_corners=False)
            x = stage(torch.cat([x, skip], dim=1))
        result["out"] = self.classifier(x)
        return result


def dice_loss(logits, target, eps=1.0):
    valid = (target != IGNORE).unsqueeze(1)
    onehot = F.one_hot(target.masked_fill(target == IGNORE, 0), logits.shape[1]).permute(0, 3, 1, 2) * valid
    probs = logits.softmax(1) * valid
    inter = (probs * onehot).sum((2, 3))
    return 1 - ((2 * inter + eps) / (probs.sum((2, 3)) + onehot.sum((2, 3)) + eps)).mean()


def criterion(inputs, target):
    losses = {}
    for name, x in inputs.items():
        losses[name] = F.cross_entropy(x, target, ignore_index=IGNORE) + dice_loss(x, target)
    if len(losses) == 1:
        return losses["out"]
    return losses["out"] + 0.5 * losses["aux"]


def evaluate(model, data_loader, device, num_classes):
    model.eval()
    confmat = ConfusionMatrix(num_classes)
    present = torch.zeros(num_classes, dtype=torch.bool)
    num_processed = 0
    with torch.inference_mode():
        for image, target in data_loader:
            image, target = image.to(device), target.to(device)
            output = model(image)["out"]
            confmat.update(target.flatten(), output.argmax(1).flatten())
            num_processed += image.shape[0]
            for c in torch.unique(target):
                if c != IGNORE:
                    present[c] = True
    absent = [CLASSES[i] for i in (~present).nonzero().flatten()]
    if absent:
        print("never seen:", absent)
    print(f"evaluated {num_processed} images")
    return confmat


def train_one_epoch(model, optimizer, data_loader, lr_scheduler, device, epoch, print_freq, scaler=None):
    model.train()
    metric_logger = MetricLogger()
    header = f"Epoch: [{epoch}]"
    for image, target in metric_logger.log_every(data_loader, print_freq, header):
        image, target = image.to(device), target.to(device)
        with torch.autocast(device_type=device.type, dtype=torch.float16, enabled=scaler is not None):
            loss = criterion(model(image), target)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
        lr_scheduler.step()
        metric_logger.update(loss=loss.item(), lr=optimizer.param_groups[0]["lr"])


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    num_classes = len(CLASSES)
    train_loader = torch.utils.data.DataLoader(Shapes(192), batch_size=8, shuffle=True, drop_last=True)
    test_loader = torch.utils.data.DataLoader(Shapes(40, seed=1), batch_size=4)
    model = UNet(num_classes).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cuda") if device.type == "cuda" else None
    epochs, iters = 2, len(train_loader)
    lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda x: max(0.0, 1 - x / (iters * epochs)) ** 0.9)
    for epoch in range(epochs):
        train_one_epoch(model, optimizer, train_loader, lr_scheduler, device, epoch, 10, scaler)
        print(evaluate(model, test_loader, device, num_classes))


if __name__ == "__main__":
    main()
