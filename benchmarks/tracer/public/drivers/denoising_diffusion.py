"""Train a small model for some steps, and sample from it."""

from denoising_diffusion_pytorch import GaussianDiffusion, Trainer, Unet

if __name__ == "__main__":
    diffusion = GaussianDiffusion(Unet(dim=8, dim_mults=(1, 2)), image_size=16, timesteps=20, sampling_timesteps=4)
    options = {"train_batch_size": 16, "train_num_steps": 6, "save_and_sample_every": 3, "num_samples": 4}
    Trainer(diffusion, "images", ema_update_every=2, calculate_fid=False, **options).train()
