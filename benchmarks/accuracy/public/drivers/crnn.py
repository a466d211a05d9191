"""Train a model on pictures of noise for some steps, and test it."""

import os
import sys
from pathlib import Path

import numpy as np
import tensorboardX
import torch
from substitutes import here, run, vision, without

here()
without("cv2")
vision()
torch.manual_seed(0)
np.random.seed(0)
os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # the program loads a whole model
import cv2

sys.modules["torch.utils.tensorboard"] = tensorboardX
cv2.imread = lambda path: np.random.randint(0, 255, (32, 280, 3), dtype=np.uint8)
cv2.resize = lambda picture, **options: picture[:, :96]
cv2.cvtColor = lambda picture, code: picture[:, :, 0]
words = [f"{number}.jpg {word}" for number, word in enumerate(["abc", "de", "fghij", "0123"] * 40)]
for name in ("train", "test"):
    Path(f"dataset/txt/{name}.txt").write_text("\n".join(words), encoding="utf-8")
found = run("train.py", "driven")
training = found["train"].__globals__
training["train_loader"] = torch.utils.data.DataLoader(training["train_data"], batch_size=8, shuffle=True)
found["train"]()
run("test.py", "driven")["val"]()
