"""Train a model as the library's introduction does, on smaller images: `denoising_diffusion.py large|small`."""

import sys

from denoising_diffusion_pytorch import GaussianDiffusion, Trainer, Unet

if __name__ == "__main__":
    if sys.argv[1] == "large":
        model = Unet(dim=64, dim_mults=(1, 2, 4, 8), flash_attn=True)
        size, options = 64, {"train_batch_size": 32, "gradient_accumulate_every": 2, "amp": True}
    else:
        model = Unet(dim=8, dim_mults=(1, 2))
        size, options = 16, {"train_batch_size": 16}
    diffusion = GaussianDiffusion(model, image_size=size, timesteps=1000, sampling_timesteps=50)
    Trainer(diffusion, "images", train_num_steps=4000, calculate_fid=False, **options).train()
