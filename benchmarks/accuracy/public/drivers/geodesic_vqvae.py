"""Train the parts of the pipeline for Fashion-MNIST on pictures of noise for some steps, and evaluate samples."""

import sys
from pathlib import Path
from types import ModuleType

import torch
import yaml
from substitutes import here, run, vision, without

here()
without("mlflow")
vision()
torch.manual_seed(0)
import torchvision.datasets


class Pictures(torch.utils.data.Dataset):
    """Noise with labels."""

    def __init__(self, root: str, train: bool, transform: object, download: bool) -> None:
        self.data = torch.rand(96, 1, 28, 28)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[object, int]:
        return self.transform(torchvision.transforms.functional.to_pil_image(self.data[index])), index % 10


torchvision.datasets.FashionMNIST = Pictures
lpips = ModuleType("lpips")
lpips.LPIPS = lambda net: torch.nn.PairwiseDistance()
sys.modules["lpips"] = lpips
configs = Path("configs/fashionmnist/spatial/geodesic")


def small(part: str, **changes: dict[str, object]) -> str:
    """A file with the options of a part, some of them changed."""
    options = yaml.safe_load((configs / f"{part}.yaml").read_text(encoding="utf-8"))
    for name, values in changes.items():
        options[name] = options[name] | values if isinstance(options.get(name), dict) else values
    Path(f"small_{part}.yaml").write_text(yaml.safe_dump(options), encoding="utf-8")
    return f"small_{part}.yaml"


channels = {"enc_channels": [4, 4, 4], "dec_channels": [4, 4, 4], "latent_dim": 4}
loading = {"batch_size": 8, "num_workers": 0, "persistent_workers": False}
tokens = {"num_tokens": 16, "embed_dim": 8, "n_layers": 1, "n_head": 2}
base = Path("experiments/fashionmnist/spatial/geodesic")
vae = base / "vae/spatial_vae_fashionmnist"
sys.argv = ["train_vae.py", "--config", small("vae", max_epochs=2, model=channels, data=loading)]
run("src/scripts/train_vae.py")
sys.argv = ["build_codebook.py", "--latents_path", str(vae / "latents_train/z.pt"), "--k", "4", "--K", "16"]
sys.argv += ["--vae_ckpt_path", str(vae / "checkpoints/best.pt"), "--out_dir", str(base / "codebook")]
sys.argv += ["--in_channels", "1", "--output_image_size", "28", "--latent_dim", "4", "--recon_loss", "mse"]
sys.argv += ["--enc_channels", "4", "4", "4", "--dec_channels", "4", "4", "4", "--norm_type", "batch"]
sys.argv += ["--mse_use_sigmoid", "--batch_size", "64"]
run("src/scripts/build_codebook.py")
sys.argv = ["train_transformer.py", "--config"]
sys.argv += [small("transformer", training={"epochs": 2}, model=tokens, data={"batch_size": 8})]
run("src/scripts/train_transformer.py")
sys.argv = ["generate_samples.py", "--config"]
sys.argv += [small("generate", transformer=tokens, vae=channels, samples_per_class=2, top_k=4)]
run("src/scripts/generate_samples.py")
sys.argv = ["evaluate_model.py", "--config", small("evaluate", num_samples=20, samples_per_class=2)]
run("src/eval/evaluate_model.py")
