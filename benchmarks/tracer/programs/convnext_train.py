"""timm's ConvNeXt with timm's own helpers of training: mixup, loss scaler, EMA, clipping, meters."""

import timm
import timm.data
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZE = 224 if DEVICE == "cuda" else 64


def main():
    timm.utils.random_seed(0)
    model = timm.create_model("convnext_atto", num_classes=50, drop_path_rate=0.1).to(DEVICE)
    ema = timm.utils.ModelEmaV3(model, decay=0.99, use_warmup=True)
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    scheduler = timm.scheduler.CosineLRScheduler(optimizer, t_initial=10)
    mixup = timm.data.Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=50)
    erasing = timm.data.random_erasing.RandomErasing(probability=0.5, mode="pixel", device=DEVICE)
    criterion = timm.loss.SoftTargetCrossEntropy()
    scaler = timm.utils.NativeScaler() if DEVICE == "cuda" else None
    losses, top = timm.utils.AverageMeter(), timm.utils.AverageMeter()
    for step in range(8):
        images = erasing(torch.randn(8, 3, SIZE, SIZE, device=DEVICE))
        labels = torch.randint(0, 50, (8,), device=DEVICE)
        mixed, targets = mixup(images, labels)
        with torch.autocast(DEVICE, torch.float16 if DEVICE == "cuda" else torch.bfloat16):
            output = model(mixed)
            loss = criterion(output, targets)
        if scaler is not None:
            scaler(loss, optimizer, clip_grad=1.0, clip_mode="agc", parameters=model.parameters())
        else:
            loss.backward()
            optimizer.step()
        optimizer.zero_grad()
        ema.update(model, step=step)
        acc, _ = timm.utils.accuracy(output, labels, topk=(1, 5))
        losses.update(loss.item(), 8)
        top.update(acc.item(), 8)
        scheduler.step(step)
        print(f"{losses.val:.3f} ({losses.avg:.3f}) {top.avg:.2f}")


if __name__ == "__main__":
    main()
