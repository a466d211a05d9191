"""Train a small model on digits of noise for some steps, with its pictures and plots."""

import sys
from pathlib import Path

import tensorboardX
import torch
from substitutes import digits, here, run, vision, without

here()
without("rich", "imageio")
vision()
torch.manual_seed(0)
import torchvision.datasets

sys.modules["torch.utils.tensorboard"] = tensorboardX
tensorboardX.SummaryWriter.add_graph = lambda self, model, batch: None
torchvision.datasets.MNIST = digits(512)
sys.argv = ["train.py", "out"]
import loaders.dataloader

whole = loaders.dataloader.get_mnist_loaders
loaders.dataloader.get_mnist_loaders = lambda batch_size: whole(batch_size=64)
Path("out/out").mkdir(parents=True)
found = run("scripts/train.py", "driven")
training = found["train_model"].__globals__
training["NUM_EPOCHS"] = 2
found["train_model"](run_path="out")
found["save_model"](found["model"], "out")
