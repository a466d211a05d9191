"""Train on random signals for some steps, and draw what the model restores."""

import sys
from pathlib import Path

import numpy as np
import torch
from substitutes import here, run, without

here()
sys.path.insert(0, str(Path("train").resolve()))
without("pywt", "lvm_read", "matplotlib")
torch.manual_seed(0)
np.random.seed(0)
import conf
import pywt

pywt.wavedec = lambda signal, kind, level: [signal] * (level + 1)
pywt.waverec = lambda parts, kind: sum(parts)
torch.nn.init.kaiming_uniform = torch.nn.init.kaiming_uniform_
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau
torch.optim.lr_scheduler.ReduceLROnPlateau = lambda optimizer, verbose, **options: plateau(optimizer, **options)
import data.MAEDataset

signals = [np.random.randn(4096, 1) for _ in range(6)]
for name in ("CRWU_loadmat", "HUST_loadmat", "LinGang_loadlvm"):
    setattr(data.MAEDataset, name, lambda path: signals)
conf.d_model, conf.n_layers, conf.n_heads, conf.ffn_hidden = 16, 1, 2, 16
import train.visualize_mae

train.visualize_mae.time.sleep = lambda seconds: None
Path("results/MAE").mkdir(parents=True, exist_ok=True)
sys.argv = ["train_mae.py", "--epoch", "10", "--batchsize", "8"]
run("train/train_mae.py")
