"""DCGAN-like training on synthetic blobs; written as one flat script."""
import argparse
import math

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--n_epochs", type=int, default=2, help="number of epochs of training")
parser.add_argument("--batch_size", type=int, default=64, help="size of the batches")
parser.add_argument("--lr", type=float, default=0.0002, help="adam: learning rate")
parser.add_argument("--b1", type=float, default=0.5, help="adam: decay of first order momentum of gradient")
parser.add_argument("--latent_dim", type=int, default=64, help="dimensionality of the latent space")
parser.add_argument("--img_size", type=int, default=32, help="size of each image dimension")
parser.add_argument("--channels", type=int, default=1, help="number of image channels")
parser.add_argument("--n_critic", type=int, default=1)
parser.add_argument("--sample_interval", type=int, default=10, help="interval between image sampling")
opt = parser.parse_args()
print(opt)

cuda = True if torch.cuda.is_available() else False
device = torch.device("cuda" if cuda else "cpu")
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor


def weights_init_normal(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        torch.nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm2d") != -1:
        torch.nn.init.normal_(m.weight.data, 1.0, 0.02)
        torch.nn.init.constant_(m.bias.data, 0.0)


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()
        self.init_size = opt.img_size // 4
        self.l1 = nn.Sequential(nn.Linear(opt.latent_dim, 64 * self.init_size**2))
        self.conv_blocks = nn.Sequential(
            nn.BatchNorm2d(64),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(64, 64, 3, stride=1, padding=1),
            nn.BatchNorm2d(64, 0.8),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(64, 32, 3, stride=1, padding=1),
            nn.BatchNorm2d(32, 0.8),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(32, opt.channels, 3, stride=1, padding=1),
            nn.Tanh(),
        )

    def forward(self, z):
        out = self.l1(z)
        out = out.view(out.shape[0], 64, self.init_size, self.init_size)
        return self.conv_blocks(out)


class Discriminator(nn.Module):
    def __init__(self):
        super(Discriminator, self).__init__()

        def discriminator_block(in_filters, out_filters, bn=True):
            block = [nn.Conv2d(in_filters, out_filters, 3, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.Dropout2d(0.25)]
            if bn:
                block.append(nn.BatchNorm2d(out_filters, 0.8))
            return block

        self.model = nn.Sequential(
            *discriminator_block(opt.channels, 16, bn=False),
            *discriminator_block(16, 32),
            *discriminator_block(32, 64),
        )
        ds_size = opt.img_size // 2**3
        self.adv_layer = nn.Sequential(nn.Linear(64 * ds_size**2, 1), nn.Sigmoid())

    def forward(self, img):
        out = self.model(img)
        out = out.view(out.shape[0], -1)
        return self.adv_layer(out)


def make_blobs(n, size):
    """Images with one Gaussian blob each, made on the host."""
    ys, xs = np.mgrid[0:size, 0:size] / size
    images = np.zeros((n, 1, size, size), dtype=np.float32)
    for i in range(n):
        cy, cx = np.random.uniform(0.3, 0.7, 2)
        sigma = float(np.random.uniform(0.05, 0.15))
        images[i, 0] = np.exp(-((ys - cy) ** 2 + (xs - cx) ** 2) / (2 * sigma**2))
    print("data range", images.min().item(), images.max().item())
    return torch.from_numpy(images * 2 - 1)


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1, 1, 1, device=real.device)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(mixed)
    (grad,) = torch.autograd.grad(scores.sum(), mixed, create_graph=True)
    return ((grad.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


adversarial_loss = torch.nn.BCELoss()
generator = Generator()
discriminator = Discriminator()
if cuda:
    generator.cuda()
    discriminator.cuda()
    adversarial_loss.cuda()
generator.apply(weights_init_normal)
discriminator.apply(weights_init_normal)

dataset = TensorDataset(make_blobs(1024, opt.img_size))
dataloader = DataLoader(dataset, batch_size=opt.batch_size, shuffle=True)
optimizer_G = torch.optim.Adam(generator.parameters(), lr=opt.lr, betas=(opt.b1, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=opt.lr, betas=(opt.b1, 0.999))
fixed_noise = torch.randn(16, opt.latent_dim, device=device)

G_losses = []
D_losses = []
img_list = []
iters = 0

for epoch in range(opt.n_epochs):
    for i, (imgs,) in enumerate(dataloader):
        valid = Tensor(imgs.size(0), 1).fill_(1.0)
        fake = Tensor(imgs.size(0), 1).fill_(0.0)
        real_imgs = imgs.type(Tensor)

        # Train the generator
        optimizer_G.zero_grad()
        z = Tensor(np.random.normal(0, 1, (imgs.shape[0], opt.latent_dim)))
        gen_imgs = generator(z)
        g_loss = adversarial_loss(discriminator(gen_imgs), valid)
        g_loss.backward()
        optimizer_G.step()

        # Train the discriminator
        for _ in range(opt.n_critic):
            optimizer_D.zero_grad()
            real_scores = discriminator(real_imgs)
            fake_scores = discriminator(gen_imgs.detach())
            real_loss = adversarial_loss(real_scores, valid)
            fake_loss = adversarial_loss(fake_scores, fake)
            d_loss = (real_loss + fake_loss) / 2 + 0.1 * gradient_penalty(discriminator, real_imgs, gen_imgs.detach())
            d_loss.backward()
            optimizer_D.step()

        D_x = real_scores.mean().item()
        D_G_z = fake_scores.mean().item()
        print(
            "[Epoch %d/%d] [Batch %d/%d] [D loss: %f] [G loss: %f] [D(x): %.3f / %.3f]"
            % (epoch, opt.n_epochs, i, len(dataloader), d_loss.item(), g_loss.item(), D_x, D_G_z)
        )
        G_losses.append(g_loss.item())
        D_losses.append(d_loss.item())
        if math.isnan(G_losses[-1]):
            raise RuntimeError("generator diverged")

        if iters % opt.sample_interval == 0:
            with torch.no_grad():
                samples = generator(fixed_noise).detach().cpu()
            grid = samples.view(4, 4, opt.img_size, opt.img_size).permute(0, 2, 1, 3).reshape(4 * opt.img_size, -1)
            img_list.append(((grid + 1) * 127.5).clamp(0, 255).byte().numpy())
        iters += 1

print("mean G loss", np.mean(G_losses), "mean D loss", np.mean(D_losses), "grids", len(img_list), img_list[-1].shape)
