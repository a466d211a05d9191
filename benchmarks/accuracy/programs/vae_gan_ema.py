"""VAE with an adversarial loss: three optimizers, adaptive weight, EMA, running statistics."""
import argparse
import copy
import math
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Encoder(nn.Module):
    def __init__(self, ch, z_dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, ch, 4, 2, 1), nn.GroupNorm(4, ch), nn.SiLU(),
            nn.Conv2d(ch, 2 * ch, 4, 2, 1), nn.GroupNorm(4, 2 * ch), nn.SiLU(),
            nn.Flatten(), nn.Linear(2 * ch * 64, 2 * z_dim),
        )  # fmt: skip

    def forward(self, x):
        mean, logvar = self.net(x).chunk(2, dim=1)
        return mean, logvar.clamp(-20.0, 10.0)


class Decoder(nn.Module):
    def __init__(self, ch, z_dim):
        super().__init__()
        self.ch = ch
        self.fc = nn.Linear(z_dim, 2 * ch * 64)
        self.up1 = nn.ConvTranspose2d(2 * ch, ch, 4, 2, 1)
        self.up2 = nn.ConvTranspose2d(ch, ch, 4, 2, 1)
        self.last = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, z):
        h = self.fc(z).view(-1, 2 * self.ch, 8, 8)
        h = F.silu(self.up1(h))
        return torch.sigmoid(self.last(F.silu(self.up2(h))))


class PatchDiscriminator(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.main = nn.Sequential(
            nn.utils.spectral_norm(nn.Conv2d(1, ch, 4, 2, 1)), nn.LeakyReLU(0.2, True),
            nn.utils.spectral_norm(nn.Conv2d(ch, 2 * ch, 4, 2, 1)), nn.LeakyReLU(0.2, True),
            nn.Conv2d(2 * ch, 1, 4, 1, 1),
        )  # fmt: skip

    def forward(self, x):
        return self.main(x)


class VAE(nn.Module):
    def __init__(self, ch=16, z_dim=24):
        super().__init__()
        self.encoder = Encoder(ch, z_dim)
        self.decoder = Decoder(ch, z_dim)
        self.register_buffer("scale_ema", torch.ones(1))

    def reparameterize(self, mean, logvar):
        if not self.training:
            return mean
        return mean + torch.exp(0.5 * logvar) * torch.randn_like(mean)

    def forward(self, x):
        mean, logvar = self.encoder(x)
        z = self.reparameterize(mean, logvar)
        if self.training:
            self.scale_ema.mul_(0.95).add_(0.05 * z.detach().std())
        return self.decoder(z), mean, logvar


class RunningMean:
    """Keeps sums on the device and turns them into numbers when they are printed."""

    def __init__(self):
        self.values, self.n = {}, 0

    def __call__(self, **kwargs):
        for k, v in kwargs.items():
            self.values[k] = self.values.get(k, 0) + v
        self.n += 1

    def flush(self):
        out = {k: float(v) / self.n for k, v in self.values.items()}
        self.values, self.n = {}, 0
        return out


def digits(n, rng):
    """Batches of bars and crosses as numpy arrays."""
    images = np.zeros((n, 1, 32, 32), dtype=np.float32)
    for i in range(n):
        r, c = rng.integers(4, 28, 2)
        if rng.random() > 0.5:
            images[i, 0, r - 2 : r + 2, :] = 1.0
        images[i, 0, :, c - 2 : c + 2] = rng.random()
    return images


def hinge_d_loss(real, fake):
    return 0.5 * (F.relu(1.0 - real).mean() + F.relu(1.0 + fake).mean())


def adaptive_weight(rec_loss, g_loss, last_layer):
    rec_grads = torch.autograd.grad(rec_loss, last_layer, retain_graph=True)[0]
    g_grads = torch.autograd.grad(g_loss, last_layer, retain_graph=True)[0]
    return torch.clamp(rec_grads.norm() / (g_grads.norm() + 1e-4), 0.0, 1e4).detach()


def update_ema(target, source, decay):
    with torch.no_grad():
        for t, s in zip(target.parameters(), source.parameters()):
            t.lerp_(s, 1 - decay)
        for t, s in zip(target.buffers(), source.buffers()):
            t.copy_(s)


def grad_norm(parameters):
    total = 0.0
    for p in parameters:
        if p.grad is not None:
            total += p.grad.data.norm(2).item() ** 2
    return math.sqrt(total)


def main(args):
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    vae, disc = VAE().to(device), PatchDiscriminator(16).to(device)
    ema = copy.deepcopy(vae).eval()
    opt_enc = torch.optim.Adam(vae.encoder.parameters(), lr=1e-3)
    opt_dec = torch.optim.Adam(vae.decoder.parameters(), lr=1e-3)
    opt_disc = torch.optim.RMSprop(disc.parameters(), lr=2e-4)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt_enc, patience=1)

    log, history = RunningMean(), []
    kl_weight = torch.tensor(0.01, device=device)
    for epoch in range(args.epochs):
        epoch_rec = 0.0
        start = time.time()
        for it in range(args.iters):
            x = torch.from_numpy(digits(args.batch, rng)).to(device)
            recon, mean, logvar = vae(x)
            rec_loss = F.l1_loss(recon, x)
            kl = -0.5 * torch.mean(1 + logvar - mean.pow(2) - logvar.exp())
            g_loss = -disc(recon).mean()
            warm = epoch * args.iters + it >= args.disc_start
            weight = adaptive_weight(rec_loss, g_loss, vae.decoder.last.weight) if warm else torch.zeros((), device=device)
            loss = rec_loss + kl_weight * kl + 0.1 * weight * g_loss
            opt_enc.zero_grad()
            opt_dec.zero_grad()
            loss.backward()
            gnorm = grad_norm(vae.parameters())
            opt_enc.step()
            opt_dec.step()

            if warm:
                opt_disc.zero_grad()
                d_loss = hinge_d_loss(disc(x), disc(recon.detach()))
                d_loss.backward()
                opt_disc.step()
            else:
                d_loss = torch.tensor(0.0).to(device)
            update_ema(ema, vae, 0.99)
            log(rec=rec_loss.detach(), kl=kl.detach(), disc=d_loss.detach(), weight=weight, gnorm=gnorm)
            epoch_rec += rec_loss.detach()
            if it % args.log_every == args.log_every - 1:
                stats = log.flush()
                print(f"{epoch}/{it} " + " ".join(f"{k}={v:.4f}" for k, v in stats.items()))
            history.append(kl.cpu().detach().numpy())

        rec = (epoch_rec / args.iters).item()
        plateau.step(rec)
        with torch.inference_mode():
            test = torch.from_numpy(digits(64, rng)).to(device)
            mse = F.mse_loss(ema(test)[0], test)
            active = (ema.encoder(test)[0].var(0) > 0.01).sum()
        print(f"epoch {epoch} rec {rec:.4f} ema mse {mse:.4f} active dims {active}, scale {ema.scale_ema.item():.3f}, {time.time() - start:.1f}s")
    kls = np.array(history)
    print("kl", kls.mean().item(), kls.std().item(), kls.shape)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--iters", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--disc-start", type=int, default=15)
    parser.add_argument("--log-every", type=int, default=5)
    main(parser.parse_args())
