"""Train a model on small pictures of noise for some steps, and save it."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from substitutes import here, vision, without

here()
without("skimage")
vision()
torch.manual_seed(0)
np.random.seed(0)
import skimage.exposure
import skimage.io
import skimage.util

skimage.io.imread = lambda file: np.asarray(Image.open(file))
skimage.exposure.rescale_intensity = skimage.util.img_as_ubyte = lambda picture: picture
for folder in ("inputs", "targets", "model"):
    Path(folder).mkdir(exist_ok=True)
for number in range(20):
    Image.fromarray(np.random.randint(0, 255, (32, 32), dtype=np.uint8)).save(f"inputs/{number:02}.tif")
    Image.fromarray(np.random.randint(0, 2, (32, 32), dtype=np.uint8)).save(f"targets/{number:02}.png")
from unet_pytorch.train import UNetTrainer

trainer = UNetTrainer("inputs", "targets", "model", batch_size=2)
trainer.train(epochs=2, save_interval=1)
trainer.load_checkpoint("best_model.pth")
