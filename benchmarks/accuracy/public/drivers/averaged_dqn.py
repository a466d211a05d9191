"""Train small networks in a world of squares for some steps, with one target network and with several."""

import sys
from pathlib import Path

import numpy as np
import torch
from substitutes import here, run

here()
torch.manual_seed(0)
np.random.seed(0)
for folder in ("model", "result"):
    Path(folder).mkdir(exist_ok=True)
sizes = ["--size", "5", "--epochs", "2", "--steps", "120", "--test_steps", "20", "--epsilon", "60"]
sizes += ["--target_freq", "50"]
for options in ([], ["--k", "3"], ["--k", "3", "--ddqn", "--checkpoint"]):
    sys.argv = ["train.py", *sizes, *options]
    run("train.py")
sys.argv = ["train.py", *sizes, "--epochs", "3", "--k", "3", "--resume", "--model", "model/weight.tar"]
torch.load = lambda *inputs, load=torch.load, **options: load(*inputs, **options | {"weights_only": False})
run("train.py")
