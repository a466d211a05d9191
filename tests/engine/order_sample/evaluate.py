import torch

from net import Net, scale
from net.ops import zeros
from train import train


def evaluate(model, loader):
    right = zeros(1)
    for images, labels in loader:
        output = model(images.cuda())
        right += (output.argmax(1) == labels.cuda()).sum()
        print(scale(output))
    return right.item()


if __name__ == "__main__":
    evaluate(Net().cuda(), torch.utils.data.DataLoader([]))
