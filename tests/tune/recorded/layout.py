"""Convolutions over images, in the format that the program chooses."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")
torch.manual_seed(0)


class Block(nn.Module):
    """Two convolutions, with their input added."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        """The output."""
        return nn.functional.relu(x + self.second(self.first(x)))


size, width = (64, 128) if device == "cuda" else (16, 8)
images = torch.randn(4, 128 if device == "cuda" else 4, 3, size, size, device=device)
labels = torch.randint(0, 10, images.shape[:2], device=device)
stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))
model = nn.Sequential(stem, *(Block(width) for _ in range(8)), head).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for step in range(200):
    x, y = images[step % 4], labels[step % 4]
    optimizer.zero_grad()
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
