"""Train small networks on noise for some steps, in both stages, with validations."""

import importlib.metadata
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import tensorboardX
import torch
from substitutes import here, run, vision, without

here()
vision()
without("albumentations", "cv2", "wandb", "git")
torch.manual_seed(0)
import git

commit = SimpleNamespace(object=SimpleNamespace(hexsha="0"))
git.Repo = lambda **options: SimpleNamespace(head=commit)
importlib.metadata.version = lambda name: "1.0"
import torchvision.models.vgg

sys.modules["torch.utils.tensorboard"] = tensorboardX
tensorboardX.SummaryWriter.add_graph = lambda self, model, batch: None
LAYOUT = [4, 4, "M", 4, 4, "M", 4, 4, 4, 4, "M", 4, 4, 4, 4, "M", 4, 4, 4, 4, "M"]
vgg = torchvision.models.vgg
vgg.vgg19 = lambda pretrained: vgg.VGG(vgg.make_layers(LAYOUT), num_classes=2)
import torch_sr.datasets


class Pairs(torch.utils.data.Dataset):
    """Noise in two sizes."""

    PairedCompose = torch_sr.datasets.ImagePairDataset.PairedCompose

    def __init__(self, target: str, scale_factor: int, **options: object) -> None:
        self.count = 12 if target == "train" else 4
        self.scale = scale_factor

    def set_dataset_transforms(self, *options: object) -> None:
        """Noise needs none."""

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.rand(3, 64 // self.scale, 64 // self.scale), torch.rand(3, 64, 64)


torch_sr.datasets.BSDS500 = torch_sr.datasets.DIV2K = Pairs
data = {"train_datasets": ["div2k"], "val_datasets": ["div2k"], "num_epoch": 2, "cr_patch_size": [64, 64]}
scales = {"g_adversarial_loss_scaling": 0.005, "g_content_loss_scaling": 0.01}
rates = {"g_lr": 1e-4, "d_lr": 1e-4, "g_sched_steps": [5], "d_sched_steps": [5]}
rates |= {"g_sched_gamma": 0.5, "d_sched_gamma": 0.5}
sizes = {
    "scale_factor": 4,
    "batch_size": 2,
    "img_channels": 3,
    "pretraining": data | {"lr": 2e-4, "sched_step": 5, "sched_gamma": 0.5},
    "training": data | rates | scales,
    "generator": {"rrdb_channels": 4, "growth_channels": 4, "num_basic_blocks": 1, "num_dense_blocks": 2}
    | {"num_residual_blocks": 2, "residual_scaling": 0.2, "use_subpixel_conv": False},
    "discriminator": {"vgg_blk_ch": [4, 4, 4, 4], "fc_features": [4]},
    "content_loss": {"loss_f": "l1"},
    "perceptual_loss": {"layer_weights": {"conv5_4": 1.0}, "normalize_input": True, "normalize_loss": False},
}
Path("small.json").write_text(json.dumps(sizes), encoding="utf-8")
# The program uses the CPU under a debugger, and the recording would count as one.
sys.gettrace = lambda: None
sys.argv = ["train.py", "small.json", "--store-model-interval", "1"]
run("train.py")
