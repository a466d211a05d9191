"""Semantic segmentation with automatic mixed precision, gradient scaling and an EMA of the weights."""

import argparse
import copy
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader, Dataset


class Scenes(Dataset):
    def __init__(self, n, size=64):
        self.n = n
        self.size = size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        mask = torch.zeros(self.size, self.size, dtype=torch.long)
        for c in range(1, 4):
            x, y = torch.randint(0, self.size - 20, (2,), generator=g).tolist()
            mask[y : y + 20, x : x + 20] = c
        img = F.one_hot(mask, 4)[..., :3].permute(2, 0, 1).float()
        img = img + 0.3 * torch.randn(img.shape, generator=g)
        mask[0] = 255  # ignored border
        return {"image": img, "mask": mask, "name": f"scene_{i:04d}"}


class ConvBNReLU(nn.Sequential):
    def __init__(self, cin, cout, stride=1):
        super().__init__(nn.Conv2d(cin, cout, 3, stride, 1), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, c=24, classes=4):
        super().__init__()
        self.enc1 = ConvBNReLU(3, c)
        self.enc2 = ConvBNReLU(c, 2 * c, 2)
        self.enc3 = ConvBNReLU(2 * c, 4 * c, 2)
        self.dec2 = ConvBNReLU(6 * c, 2 * c)
        self.dec1 = ConvBNReLU(3 * c, c)
        self.out = nn.Conv2d(c, classes, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(e1)
        e3 = self.enc3(e2)
        d2 = self.dec2(torch.cat([F.interpolate(e3, size=e2.shape[2:]), e2], 1))
        d1 = self.dec1(torch.cat([F.interpolate(d2, size=e1.shape[2:]), e1], 1))
        return self.out(d1)


class EMA:
    def __init__(self, model, decay=0.99):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay
        self.updates = 0
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        d = min(self.decay, (1 + self.updates) / (10 + self.updates))
        msd = model.state_dict()
        for k, v in self.module.state_dict().items():
            if v.dtype.is_floating_point:
                v *= d
                v += (1 - d) * msd[k].detach()


def dice_loss(logits, target, num_classes=4, eps=1e-6):
    valid = (target != 255).unsqueeze(1)
    onehot = F.one_hot(target.clamp(max=num_classes - 1), num_classes).permute(0, 3, 1, 2) * valid
    probs = logits.softmax(1) * valid
    inter = (probs * onehot).sum((0, 2, 3))
    union = probs.sum((0, 2, 3)) + onehot.sum((0, 2, 3))
    return 1 - ((2 * inter + eps) / (union + eps)).mean()


def train_one_epoch(model, ema, loader, optimizer, scheduler, scaler, device, epoch, use_amp):
    model.train()
    running = 0.0
    skipped = 0
    tic = time.time()
    for i, batch in enumerate(loader):
        images = batch["image"].to(device, non_blocking=True)
        masks = batch["mask"].to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with autocast(device_type=device.type, dtype=torch.float16 if use_amp else None, enabled=use_amp):
            logits = model(images)
            loss = F.cross_entropy(logits.float(), masks, ignore_index=255) + dice_loss(logits.float(), masks)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scale_before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() < scale_before:
            skipped += 1
        else:
            scheduler.step()
        ema.update(model)
        running += loss.item()
        if i % 4 == 0:
            mem = f"{torch.cuda.max_memory_allocated() / 1e6:.0f}MB" if device.type == "cuda" else "n/a"
            print(f"[{epoch}:{i:03d}] loss {running / (i + 1):.4f} scale {scaler.get_scale():.0f} mem {mem}")
    torch.cuda.synchronize() if device.type == "cuda" else None
    print(f"epoch {epoch} took {time.time() - tic:.2f}s, {skipped} steps skipped")
    return running / len(loader)


def compute_iou(pred, target, num_classes=4):
    ious = []
    for c in range(num_classes):
        p, t = pred == c, target == c
        inter = (p & t).sum()
        union = (p | t).sum()
        if union == 0:
            continue
        ious.append((inter / union).item())
    return ious


@torch.no_grad()
def validate(model, loader, device, use_amp):
    model.eval()
    all_ious, worst = [], ("", 1.0)
    for batch in loader:
        images, masks = batch["image"].to(device), batch["mask"].to(device)
        with autocast(device_type=device.type, enabled=use_amp):
            pred = model(images).argmax(1)
        for p, m, name in zip(pred, masks, batch["name"]):
            keep = m != 255
            ious = compute_iou(p[keep], m[keep])
            miou = sum(ious) / len(ious)
            all_ious.append(miou)
            if miou < worst[1]:
                worst = (name, miou)
    return torch.tensor(all_ious).mean().item(), worst


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--no-amp", dest="amp", action="store_false")
    args = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(42)
    train_dl = DataLoader(Scenes(96), batch_size=args.batch, shuffle=True, num_workers=2, pin_memory=device.type == "cuda", drop_last=True)
    val_dl = DataLoader(Scenes(16), batch_size=args.batch, num_workers=0)
    model = UNet().to(device)
    ema = EMA(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=args.epochs * len(train_dl) + 1)
    use_amp = args.amp and device.type == "cuda"
    scaler = GradScaler(device.type, enabled=use_amp)
    for epoch in range(args.epochs):
        loss = train_one_epoch(model, ema, train_dl, optimizer, scheduler, scaler, device, epoch, use_amp)
        miou, worst = validate(ema.module, val_dl, device, use_amp)
        print(f"epoch {epoch}: loss {loss:.4f} mIoU {miou:.4f} worst {worst[0]} ({worst[1]:.3f})")
    ckpt = {"model": model.state_dict(), "ema": ema.module.state_dict(), "scaler": scaler.state_dict()}
    print("checkpoint keys", sorted(ckpt), "first weight", ckpt["model"]["out.bias"][0].item())


if __name__ == "__main__":
    main()
