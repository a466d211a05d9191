"""Fit a small boosted flow to random tables for some steps."""

import sys
from types import SimpleNamespace

import numpy as np
import torch
from substitutes import here, run, without

here()
without("torchvision", "h5py")
np.random.seed(0)
torch.manual_seed(0)
tables = [SimpleNamespace(x=np.random.randn(count, 5).astype(np.float32)) for count in (192, 64, 64)]
import utils.load_data

utils.load_data.MINIBOONE = lambda path: SimpleNamespace(trn=tables[0], val=tables[1], tst=tables[2], n_dims=5)

sizes = {"dataset": "miniboone", "flow": "boosted", "component_type": "glow", "num_components": 2, "h_size": 8}
sizes |= {"epochs": 6, "epochs_per_component": 3, "boosted_burnin_epochs": 1, "batch_size": 32, "num_flows": 2}
sizes |= {"eval_batch_size": 32, "sample_interval": 2, "num_init_batches": 2, "out_dir": "results"}
words = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
sys.argv = ["density_experiment.py", *words, "--testing", "--no_tensorboard", "--no_batch_norm", "--no_lr_schedule"]
run("density_experiment.py")
