"""Convolutions in half precision, in both layouts, and models that have few of them."""

import segmentation_models_pytorch as smp
import timm
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3), nn.Conv2d(width, width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(self.first(x).relu())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 7, 2)
        self.blocks = nn.Sequential(Block(64), Block(64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.blocks(self.stem(x)).mean((2, 3))


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 768, 16, 16)
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(768, 12), 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(self.patch(x).flatten(2).transpose(1, 2))


def own(loader: DataLoader, optimizer: torch.optim.Optimizer, device: torch.device) -> None:
    model = Net().to(device)
    for image, target in loader:
        image = image.to(device=device, dtype=torch.float32)  # error: TPF354
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(image), target.to(device))
        loss.backward()
        optimizer.step()


def of_torchvision(loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    model = torchvision.models.resnet50(weights=None).cuda()
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())  # error: TPF354
        loss.backward()
        optimizer.step()


def of_timm(loader: DataLoader) -> list[torch.Tensor]:
    model = timm.create_model("efficientnet_b0", pretrained=True).cuda().eval()
    found = []
    with torch.inference_mode():
        for x in loader:
            x = x.cuda()  # error: TPF354
            with torch.autocast("cuda"):
                found.append(model(x))
    return found


def segmented(loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    net = smp.Unet("resnet34", classes=4).cuda()
    for x, y in loader:
        x, y = x.cuda(), y.cuda()  # error: TPF354
        with torch.autocast("cuda", torch.float16):
            loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()


def anything(net, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for images, masks in loader:
        images = images.to("cuda")  # audit: TPF354
        with torch.autocast("cuda", enabled=True):
            loss = nn.functional.cross_entropy(net(images), masks.to("cuda"))
        loss.backward()
        optimizer.step()


def in_float32(loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    model = Net().cuda()
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()


def switched_off(loader: DataLoader) -> None:
    model = Net().cuda()
    for x in loader:
        with torch.autocast("cuda", enabled=False):
            model(x.cuda())


def on_the_host(loader: DataLoader) -> None:
    model = Net()
    for x in loader:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(x)


def of_patches(loader: DataLoader) -> None:
    model = Patches().cuda()
    for x in loader:
        with torch.autocast("cuda"):
            model(x.cuda())


def a_transformer(loader: DataLoader) -> None:
    model = timm.create_model("vit_base_patch16_224").cuda()
    for images in loader:
        with torch.autocast("cuda"):
            model(images.cuda())


def linear(loader: DataLoader) -> None:
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU()).cuda()
    for x in loader:
        with torch.autocast("cuda"):
            model(x.cuda())


class Periods(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(1, 32, (5, 1), (3, 1)), nn.Conv2d(32, 128, (5, 1), (3, 1))])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.view(x.shape[0], 1, -1, 7)
        for layer in self.layers:
            x = layer(x)
        return x


def of_signals(loader: DataLoader) -> None:
    model = Periods().cuda()
    for x in loader:
        with torch.autocast("cuda"):
            model(x.cuda())


@torch.inference_mode()
def in_float16(loader: DataLoader) -> None:
    model = torchvision.models.resnet50().cuda().half().eval()
    for x in loader:
        model(x.cuda().half()).argmax(1)  # error: TPF354


@torch.inference_mode()
def in_bfloat16(loader: DataLoader) -> None:
    model = Net()
    model.to("cuda", torch.bfloat16).eval()
    for x in loader:
        x = x.to("cuda", torch.bfloat16)  # error: TPF354
        model(x).argmax(1)


class Held:
    def __init__(self) -> None:
        dtype = torch.float16
        self.net = timm.create_model("resnet50").to(dtype=dtype, device="cuda")

    def run(self, loader: DataLoader) -> None:
        for x in loader:
            self.net(x.cuda())  # error: TPF354


@torch.inference_mode()
def in_float32(loader: DataLoader) -> None:
    model = Net().to("cuda", torch.float32).eval()
    for x in loader:
        model(x.cuda()).argmax(1).half()


@torch.inference_mode()
def on_the_host(x: torch.Tensor) -> None:
    model = torchvision.models.resnet50().bfloat16().eval()
    model(x.cpu().bfloat16()).argmax(1)


@torch.inference_mode()
def patches_in_half(loader: DataLoader) -> None:
    model = Patches().cuda().half()
    for x in loader:
        model(x.cuda().half())
