"""Train a small model on noise for some steps, with evaluations and samples."""

import sys
from types import ModuleType, SimpleNamespace

import torch
from substitutes import SERVICES, here, make_grid, normalize, run, to_image, without
from torch.utils.data import DataLoader

here()
sys.path.append(str(SERVICES))
without("torchvision", "albumentations", "cv2", "imageio", "timm")
import torchvision
import torchvision.transforms.functional
import torchvision.utils

torchvision.utils.make_grid = make_grid
torchvision.transforms.functional.normalize = normalize
torchvision.transforms.functional.to_pil_image = to_image
import wandb

wandb.Image = lambda path: SimpleNamespace(path=path)
wandb.log = lambda values, step=None: wandb.run.log(values)


def loaders(**options: object) -> tuple[object, object]:
    """Batches of noise."""
    images = torch.rand(32, 3, 16, 16) * 2 - 1
    return DataLoader(images[:24], batch_size=4, pin_memory=True), DataLoader(
        images[24:], batch_size=4, pin_memory=True
    )


data = ModuleType("data")
data.get_train_and_val_dls, data.CelebADS = loaders, object
sys.modules["data"] = data
import ddpm
import unet

ddpm.DDPM.__init__.__defaults__ = (3, 12, 0.0001, 0.02)
unet.UNet.__init__.__defaults__ = (32, [1, 2], [1], 1, 0.1)
sizes = {"data_dir": ".", "save_dir": "out", "n_epochs": 3, "batch_size": 4, "lr": 1e-4, "n_cpus": 0}
sizes |= {"n_warmup_steps": 2, "img_size": 16}
sys.argv = ["train.py", *(word for name, value in sizes.items() for word in (f"--{name}", str(value)))]
run("train.py")
