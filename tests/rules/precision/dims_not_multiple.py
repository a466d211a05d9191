import torch
from torch import nn


class Wide(nn.Module):
    def __init__(self, width: int = 764):
        super().__init__()
        self.first = nn.Linear(16, 1001)  # the first layer's input is small
        self.second = nn.Linear(1001, 1001)  # error: TPF351
        self.third = nn.Linear(1001, 300)  # error: TPF351
        self.fourth = nn.Linear(300, 300)  # audit: TPF351
        self.default = nn.Linear(width, width)  # error: TPF351
        self.attention = nn.MultiheadAttention(600, 12)  # error: TPF351
        self.encoder = nn.TransformerEncoderLayer(510, 6)  # error: TPF351
        self.classes = nn.Linear(2048, 21841 // 11)  # error: TPF351
        self.conv = nn.Conv2d(254, 254, 3)  # error: TPF351
        self.wider = nn.Conv2d(254, 256, 3)  # error: TPF351
        self.flat = nn.Conv1d(60, 60, 1)  # error: TPF351


def train(model: Wide, batches: list[torch.Tensor], optimizer: torch.optim.Optimizer) -> None:
    for batch in batches:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(batch).mean()
        loss.backward()
        optimizer.step()


# Look-alikes.


class Multiples(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(768, 3072)
        self.second = nn.Linear(3072, 1000)
        self.attention = nn.MultiheadAttention(512, 8)
        self.conv = nn.Conv2d(64, 128, 3)


class Prescribed(nn.Module):
    """Image channels, features and classes come from the data and the task."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 7)
        self.features = nn.Linear(13, 128)
        self.classes = nn.Linear(512, 10)
        self.places = nn.Linear(512, 365)
        self.regression = nn.Linear(512, 1)
        self.boxes = nn.Conv2d(256, 255, 1)


class Grouped(nn.Module):
    def __init__(self):
        super().__init__()
        self.depthwise = nn.Conv2d(130, 130, 3, groups=130)
        self.grouped = nn.Conv2d(130, 130, 3, groups=2)


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 20)
        self.second = nn.Linear(20, 20)
        self.third = nn.Conv2d(12, 12, 3)
        self.narrow = nn.Linear(1001, 10)


class Unknown(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.attention = nn.MultiheadAttention(width, heads)


class Tables(nn.Module):
    """Lookups multiply nothing; a vocabulary's head has a rule of its own."""

    def __init__(self):
        super().__init__()
        self.positions = nn.Embedding(1001, 768)
        self.head = nn.Linear(768, 50257)
        self.norm = nn.LayerNorm(1001)
