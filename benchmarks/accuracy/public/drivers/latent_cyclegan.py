"""Train small networks on random latents for some steps."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import torch
import yaml
from substitutes import here, run, vision

here()
vision()
torch.manual_seed(0)


class Decoder(torch.nn.Module):
    """Enlarges latents to pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.ConvTranspose2d(4, 3, 8, 8)

    def decode(self, latents: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(sample=self.layer(latents))


diffusers = ModuleType("diffusers")
diffusers.AutoencoderKL = SimpleNamespace(from_pretrained=lambda name, **options: Decoder())
sys.modules["diffusers"] = diffusers
for style in ("Hayao", "photo"):
    folder = Path("latents", style)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(12):
        torch.save(torch.randn(4, 16, 16), folder / f"{number}.pt")
sizes = yaml.safe_load(Path("configs/example.yaml").read_text(encoding="utf-8"))
sizes["exp_root"] = str(Path("out").resolve())
sizes["data"]["path"] = str(Path("latents").resolve())
sizes["model"] |= {"ngf": 4, "ndf": 4, "n_res_blocks": 1, "d_layers": 2}
sizes["train"] |= {"batch_size": 4, "total_kimg": 1, "num_workers": 0, "ckpt_every_kimg": 1, "vis_every_kimg": 1}
Path("small.yaml").write_text(yaml.safe_dump(sizes), encoding="utf-8")
sys.argv = ["train_latent_cyclegan.py", "--config", "small.yaml"]
run("train_latent_cyclegan.py")
sizes["train"]["total_kimg"] = 2
Path("small.yaml").write_text(yaml.safe_dump(sizes), encoding="utf-8")
run("train_latent_cyclegan.py")
