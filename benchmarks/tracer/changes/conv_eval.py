"""Convolutions with batch norms, evaluated."""

import torch
from _common import main
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


def build(change: str):
    layers = []
    for _ in range(12):
        convolution, norm = nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64)
        if change == "conv-bn-fusion":
            layers += [fuse_conv_bn_eval(convolution.eval(), norm.eval()), nn.ReLU()]
        else:
            layers += [convolution, norm, nn.ReLU()]
    model = nn.Sequential(*layers).cuda().eval()
    images = torch.randn(32, 64, 56, 56, device="cuda")
    if change == "channels-last":
        model, images = (it.to(memory_format=torch.channels_last) for it in (model, images))

    def step():
        with torch.inference_mode():
            return model(images)

    return step


if __name__ == "__main__":
    main(build)
