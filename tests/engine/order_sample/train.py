import torch
from torch.cuda.amp import autocast

import net
from net.ops import adder, zeros

on_cpu = adder(torch.zeros(2))
on_gpu = adder(torch.zeros(2, device="cuda"))


def train(model, loader, optimizer):
    total = zeros(1)
    for images, labels in loader:
        images = images.cuda()
        with autocast(dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels.cuda())
        loss.backward()
        optimizer.step()
        total += loss
        print(loss.item(), net.clip(model), total)
        print(on_cpu().sum().item(), on_gpu().sum().item())


if __name__ == "__main__":
    model = net.Net().cuda()
    train(model, torch.utils.data.DataLoader([]), torch.optim.AdamW(model.parameters()))
