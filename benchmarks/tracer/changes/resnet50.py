"""ResNet-50 in training, float32, as torchvision makes it."""

import torch
from _common import main
from torchvision.models import resnet50

BATCH = 64


def build(change: str):
    model = resnet50().cuda()
    images = torch.randn(BATCH, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (BATCH,), device="cuda")
    if "channels-last" in change:
        model, images = (it.to(memory_format=torch.channels_last) for it in (model, images))
    fused = True if change == "fused-optimizer" else None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=fused)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=change.startswith("autocast")):
            output = model(images)
            loss = torch.nn.functional.cross_entropy(output, labels)
        loss.backward()
        optimizer.step()

    return step


if __name__ == "__main__":
    main(build)
