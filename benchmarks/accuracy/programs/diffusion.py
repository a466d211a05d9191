"""Train a small denoising network for a moment, then sample with DDPM and DDIM.

The scheduler follows the shape that diffusion libraries give theirs: a config, tables of alphas
and a `step` that takes the model's output.
"""

import argparse
import logging
import math
from dataclasses import dataclass
from typing import List, Optional, Tuple, Union

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
logger = logging.getLogger("diffusion")


@dataclass
class SchedulerOutput:
    prev_sample: Tensor
    pred_original_sample: Optional[Tensor] = None


class NoiseScheduler:
    def __init__(self, num_train_timesteps: int = 200, beta_start: float = 1e-4, beta_end: float = 0.02):
        self.num_train_timesteps = num_train_timesteps
        self.betas = torch.linspace(beta_start, beta_end, num_train_timesteps, dtype=torch.float32)
        self.alphas = 1.0 - self.betas
        self.alphas_cumprod = torch.cumprod(self.alphas, dim=0)
        self.one = torch.tensor(1.0)
        self.num_inference_steps: Optional[int] = None
        self.timesteps = torch.from_numpy(np.arange(0, num_train_timesteps)[::-1].copy())

    def set_timesteps(self, num_inference_steps: int, device: Union[str, torch.device, None] = None) -> None:
        self.num_inference_steps = num_inference_steps
        ratio = self.num_train_timesteps // num_inference_steps
        timesteps = (np.arange(0, num_inference_steps) * ratio).round()[::-1].copy().astype(np.int64)
        self.timesteps = torch.from_numpy(timesteps).to(device)

    def previous_timestep(self, timestep):
        return timestep - self.num_train_timesteps // self.num_inference_steps

    def add_noise(self, original: Tensor, noise: Tensor, timesteps: Tensor) -> Tensor:
        self.alphas_cumprod = self.alphas_cumprod.to(device=original.device)
        alphas_cumprod = self.alphas_cumprod.to(dtype=original.dtype)
        sqrt_alpha = alphas_cumprod[timesteps] ** 0.5
        sqrt_one_minus = (1 - alphas_cumprod[timesteps]) ** 0.5
        while len(sqrt_alpha.shape) < len(original.shape):
            sqrt_alpha = sqrt_alpha.unsqueeze(-1)
            sqrt_one_minus = sqrt_one_minus.unsqueeze(-1)
        return sqrt_alpha * original + sqrt_one_minus * noise

    def step(self, model_output: Tensor, timestep, sample: Tensor, eta: float = 0.0, generator=None) -> SchedulerOutput:
        if self.num_inference_steps is None:
            raise ValueError("run `set_timesteps` first")
        prev_timestep = self.previous_timestep(timestep)
        alpha_prod_t = self.alphas_cumprod[timestep]
        alpha_prod_prev = self.alphas_cumprod[prev_timestep] if prev_timestep >= 0 else self.one
        beta_prod_t = 1 - alpha_prod_t
        pred_original = (sample - beta_prod_t**0.5 * model_output) / alpha_prod_t**0.5
        pred_original = pred_original.clamp(-3, 3)
        variance = (1 - alpha_prod_prev) / (1 - alpha_prod_t) * (1 - alpha_prod_t / alpha_prod_prev)
        std_dev = eta * variance.clamp(min=0) ** 0.5
        direction = (1 - alpha_prod_prev - std_dev**2) ** 0.5 * model_output
        prev_sample = alpha_prod_prev**0.5 * pred_original + direction
        if eta > 0:
            noise = torch.randn(model_output.shape, generator=generator, device=model_output.device)
            prev_sample = prev_sample + std_dev * noise
        return SchedulerOutput(prev_sample=prev_sample, pred_original_sample=pred_original)


def timestep_embedding(timesteps: Tensor, dim: int, max_period: int = 10000) -> Tensor:
    half = dim // 2
    exponent = -math.log(max_period) * torch.arange(half, dtype=torch.float32, device=timesteps.device) / half
    emb = timesteps[:, None].float() * torch.exp(exponent)[None, :]
    emb = torch.cat([torch.cos(emb), torch.sin(emb)], dim=-1)
    if dim % 2 == 1:
        emb = F.pad(emb, (0, 1))
    return emb


class ResBlock(nn.Module):
    def __init__(self, channels: int, emb_dim: int):
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.emb = nn.Linear(emb_dim, 2 * channels)

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        scale, shift = self.emb(emb)[:, :, None, None].chunk(2, dim=1)
        return x + self.conv(F.silu(self.norm(x) * (1 + scale) + shift))


class Denoiser(nn.Module):
    def __init__(self, channels: int = 32, emb_dim: int = 64, blocks: int = 3):
        super().__init__()
        self.emb_dim = emb_dim
        self.conv_in = nn.Conv2d(1, channels, 3, padding=1)
        self.blocks = nn.ModuleList([ResBlock(channels, emb_dim) for _ in range(blocks)])
        self.conv_out = nn.Conv2d(channels, 1, 3, padding=1)

    def forward(self, sample: Tensor, timestep: Union[Tensor, float, int]) -> Tensor:
        timesteps = timestep
        if not torch.is_tensor(timesteps):
            timesteps = torch.tensor([timesteps], dtype=torch.long, device=sample.device)
        elif len(timesteps.shape) == 0:
            timesteps = timesteps[None].to(sample.device)
        timesteps = timesteps.expand(sample.shape[0])
        emb = timestep_embedding(timesteps, self.emb_dim)
        x = self.conv_in(sample)
        for block in self.blocks:
            x = block(x, emb)
        return self.conv_out(x)


class Pipeline:
    def __init__(self, unet: Denoiser, scheduler: NoiseScheduler):
        self.unet, self.scheduler = unet, scheduler

    @property
    def device(self) -> torch.device:
        return next(self.unet.parameters()).device

    @torch.no_grad()
    def __call__(self, batch_size: int, steps: int, eta: float, seed: int, size: int = 16) -> Tuple[List[np.ndarray], float]:
        generator = torch.Generator(device=self.device).manual_seed(seed)
        image = torch.randn((batch_size, 1, size, size), generator=generator, device=self.device)
        self.scheduler.set_timesteps(steps, device=self.device)
        spread = 0.0
        for i, t in enumerate(self.scheduler.timesteps):
            noise_pred = self.unet(image, t)
            output = self.scheduler.step(noise_pred, t, image, eta=eta, generator=generator)
            image = output.prev_sample
            if i % 10 == 0:
                spread = image.std().item()
                logger.debug("step %d spread %.3f", i, spread)
        image = (image / 2 + 0.5).clamp(0, 1)
        image = image.cpu().permute(0, 2, 3, 1).numpy()
        return [(picture * 255).round().astype("uint8") for picture in image], spread


def train(unet: Denoiser, scheduler: NoiseScheduler, device: torch.device, steps: int) -> None:
    optimizer = torch.optim.AdamW(unet.parameters(), lr=2e-3)
    ema_loss = None
    for step in range(steps):
        centre = torch.rand(16, 2, device=device) * 8 + 4
        grid = torch.arange(16, device=device, dtype=torch.float32)
        dy = (grid[None, :] - centre[:, :1]) ** 2
        dx = (grid[None, :] - centre[:, 1:]) ** 2
        clean = (torch.exp(-(dy[:, :, None] + dx[:, None, :]) / 8) * 2 - 1).unsqueeze(1)
        noise = torch.randn_like(clean)
        timesteps = torch.randint(0, scheduler.num_train_timesteps, (clean.shape[0],), device=device).long()
        noisy = scheduler.add_noise(clean, noise, timesteps)
        loss = F.mse_loss(unet(noisy, timesteps), noise)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        ema_loss = loss.detach().item() if ema_loss is None else 0.9 * ema_loss + 0.1 * loss.detach().item()
        if (step + 1) % 20 == 0:
            logger.info(f"step {step + 1}: loss {ema_loss:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-steps", type=int, default=60)
    parser.add_argument("--inference-steps", type=int, default=25)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    unet = Denoiser().to(device)
    scheduler = NoiseScheduler()
    train(unet, scheduler, device, args.train_steps)
    unet.eval().requires_grad_(False)
    pipe = Pipeline(unet, scheduler)
    for name, eta in (("ddim", 0.0), ("ddpm", 1.0)):
        images, spread = pipe(args.batch_size, args.inference_steps, eta, args.seed)
        logger.info(f"{name}: {len(images)} images of {images[0].shape}, mean {np.mean(images):.1f}, spread {spread:.3f}")


if __name__ == "__main__":
    main()
