"""A tiny radiance field: coarse and fine sampling along rays, white background, PSNR of held-out views."""
import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

img2mse = lambda x, y: torch.mean((x - y) ** 2)  # noqa: E731
mse2psnr = lambda x: -10. * torch.log(x) / torch.log(torch.Tensor([10.]).to(x.device))  # noqa: E731
to8b = lambda x: (255 * np.clip(x, 0, 1)).astype(np.uint8)  # noqa: E731


class Embedder:
    def __init__(self, **kwargs):
        self.kwargs = kwargs
        self.create_embedding_fn()

    def create_embedding_fn(self):
        embed_fns = []
        d = self.kwargs['input_dims']
        out_dim = 0
        if self.kwargs['include_input']:
            embed_fns.append(lambda x: x)
            out_dim += d
        freq_bands = 2. ** torch.linspace(0., self.kwargs['num_freqs'] - 1, steps=self.kwargs['num_freqs'])
        for freq in freq_bands:
            for p_fn in (torch.sin, torch.cos):
                embed_fns.append(lambda x, p_fn=p_fn, freq=freq: p_fn(x * freq))
                out_dim += d
        self.embed_fns = embed_fns
        self.out_dim = out_dim

    def embed(self, inputs):
        return torch.cat([fn(inputs) for fn in self.embed_fns], -1)


def get_embedder(multires, input_dims=3):
    embedder = Embedder(include_input=True, input_dims=input_dims, num_freqs=multires)
    return (lambda x, eo=embedder: eo.embed(x)), embedder.out_dim


class NeRF(nn.Module):
    def __init__(self, input_ch, input_ch_views, D=4, W=64, skips=(2,)):
        super().__init__()
        self.skips = skips
        self.pts_linears = nn.ModuleList(
            [nn.Linear(input_ch, W)]
            + [nn.Linear(W, W) if i not in skips else nn.Linear(W + input_ch, W) for i in range(D - 1)])
        self.alpha_linear = nn.Linear(W, 1)
        self.feature_linear = nn.Linear(W, W)
        self.views_linear = nn.Linear(W + input_ch_views, W // 2)
        self.rgb_linear = nn.Linear(W // 2, 3)

    def forward(self, pts, views):
        h = pts
        for i, layer in enumerate(self.pts_linears):
            h = F.relu(layer(h))
            if i in self.skips:
                h = torch.cat([pts, h], -1)
        alpha = self.alpha_linear(h)
        h = F.relu(self.views_linear(torch.cat([self.feature_linear(h), views], -1)))
        return torch.cat([self.rgb_linear(h), alpha], -1)


def get_rays(H, W, focal, c2w):
    i, j = torch.meshgrid(torch.arange(W, device=c2w.device), torch.arange(H, device=c2w.device), indexing='xy')
    dirs = torch.stack([(i - W * .5) / focal, -(j - H * .5) / focal, -torch.ones_like(i)], -1)
    rays_d = torch.sum(dirs[..., None, :] * c2w[:3, :3], -1)
    return c2w[:3, -1].expand(rays_d.shape), rays_d


def sample_pdf(bins, weights, N_samples, det=False):
    weights = weights + 1e-5
    pdf = weights / torch.sum(weights, -1, keepdim=True)
    cdf = torch.cumsum(pdf, -1)
    cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
    if det:
        u = torch.linspace(0., 1., steps=N_samples, device=bins.device)
        u = u.expand(list(cdf.shape[:-1]) + [N_samples])
    else:
        u = torch.rand(list(cdf.shape[:-1]) + [N_samples], device=bins.device)
    inds = torch.searchsorted(cdf.detach(), u.contiguous(), right=True)
    below = torch.max(torch.zeros_like(inds - 1), inds - 1)
    above = torch.min((cdf.shape[-1] - 1) * torch.ones_like(inds), inds)
    inds_g = torch.stack([below, above], -1)
    matched_shape = [inds_g.shape[0], inds_g.shape[1], cdf.shape[-1]]
    cdf_g = torch.gather(cdf.unsqueeze(1).expand(matched_shape), 2, inds_g)
    bins_g = torch.gather(bins.unsqueeze(1).expand(matched_shape), 2, inds_g)
    denom = cdf_g[..., 1] - cdf_g[..., 0]
    denom = torch.where(denom < 1e-5, torch.ones_like(denom), denom)
    t = (u - cdf_g[..., 0]) / denom
    return bins_g[..., 0] + t * (bins_g[..., 1] - bins_g[..., 0])


def raw2outputs(raw, z_vals, rays_d, raw_noise_std=0., white_bkgd=True):
    dists = z_vals[..., 1:] - z_vals[..., :-1]
    dists = torch.cat([dists, torch.Tensor([1e10]).to(raw.device).expand(dists[..., :1].shape)], -1)
    dists = dists * torch.norm(rays_d[..., None, :], dim=-1)
    rgb = torch.sigmoid(raw[..., :3])
    noise = 0.
    if raw_noise_std > 0.:
        noise = torch.randn(raw[..., 3].shape).to(raw.device) * raw_noise_std
    alpha = 1. - torch.exp(-F.relu(raw[..., 3] + noise) * dists)
    transmittance = torch.cumprod(
        torch.cat([torch.ones((alpha.shape[0], 1), device=raw.device), 1. - alpha + 1e-10], -1), -1)[:, :-1]
    weights = alpha * transmittance
    rgb_map = torch.sum(weights[..., None] * rgb, -2)
    depth_map = torch.sum(weights * z_vals, -1)
    acc_map = torch.sum(weights, -1)
    if white_bkgd:
        rgb_map = rgb_map + (1. - acc_map[..., None])
    return rgb_map, depth_map, acc_map, weights


def render_rays(rays_o, rays_d, nets, query, near, far, n_coarse, n_fine, perturb, noise_std):
    viewdirs = rays_d / torch.norm(rays_d, dim=-1, keepdim=True)
    t_vals = torch.linspace(0., 1., steps=n_coarse).to(rays_o.device)
    z_vals = (near * (1. - t_vals) + far * t_vals).expand([rays_o.shape[0], n_coarse])
    if perturb:
        mids = .5 * (z_vals[..., 1:] + z_vals[..., :-1])
        upper, lower = torch.cat([mids, z_vals[..., -1:]], -1), torch.cat([z_vals[..., :1], mids], -1)
        z_vals = lower + (upper - lower) * torch.rand(z_vals.shape, device=rays_o.device)
    pts = rays_o[..., None, :] + rays_d[..., None, :] * z_vals[..., :, None]
    rgb0, _, _, weights = raw2outputs(query(pts, viewdirs, nets['coarse']), z_vals, rays_d, noise_std)
    z_mid = .5 * (z_vals[..., 1:] + z_vals[..., :-1])
    z_samples = sample_pdf(z_mid, weights[..., 1:-1], n_fine, det=not perturb).detach()
    z_vals, _ = torch.sort(torch.cat([z_vals, z_samples], -1), -1)
    pts = rays_o[..., None, :] + rays_d[..., None, :] * z_vals[..., :, None]
    rgb, depth, acc, _ = raw2outputs(query(pts, viewdirs, nets['fine']), z_vals, rays_d, noise_std)
    ret = {'rgb_map': rgb, 'depth_map': depth, 'acc_map': acc, 'rgb0': rgb0}
    for k in ret:
        if torch.isnan(ret[k]).any() or torch.isinf(ret[k]).any():
            print(f"! [Numerical Error] {k} contains nan or inf.")
    return ret


def pose_spherical(theta, phi, radius):
    t, p = np.deg2rad(theta), np.deg2rad(phi)
    position = radius * np.array([np.cos(p) * np.sin(t), np.sin(p), np.cos(p) * np.cos(t)])
    z = position / np.linalg.norm(position)
    x = np.cross([0., 1., 0.], z)
    x /= np.linalg.norm(x)
    return np.concatenate([np.stack([x, np.cross(z, x), z, position], 1), [[0, 0, 0, 1]]]).astype(np.float32)


def synthetic_view(pose, H, W, focal):
    """A ball whose colour is its normal, before white."""
    rays_o, rays_d = get_rays(H, W, focal, torch.from_numpy(pose))
    d = rays_d / rays_d.norm(dim=-1, keepdim=True)
    b = (rays_o * d).sum(-1)
    disc = b ** 2 - (rays_o ** 2).sum(-1) + 1.0
    hit = disc > 0
    normal = rays_o + d * (-b - disc.clamp(min=0).sqrt())[..., None]
    return torch.where(hit[..., None], normal * .5 + .5, torch.ones_like(normal)).numpy()


def render_path(poses, hw, focal, chunk, gt, **kwargs):
    H, W = hw
    rgbs, psnrs = [], []
    t = time.time()
    for i, c2w in enumerate(poses):
        rays_o, rays_d = get_rays(H, W, focal, c2w)
        rays_o, rays_d = rays_o.reshape(-1, 3), rays_d.reshape(-1, 3)
        all_ret = {}
        for s in range(0, rays_o.shape[0], chunk):
            ret = render_rays(rays_o[s:s + chunk], rays_d[s:s + chunk], perturb=False, noise_std=0., **kwargs)
            for k in ret:
                all_ret.setdefault(k, []).append(ret[k])
        rgb = torch.cat(all_ret['rgb_map'], 0).reshape(H, W, 3)
        rgbs.append(rgb.cpu().numpy())
        psnrs.append(-10. * np.log10(np.mean(np.square(rgbs[-1] - gt[i]))))
        print(i, f"{time.time() - t:.2f}s", f"depth {torch.cat(all_ret['depth_map']).mean():.2f}")
        t = time.time()
    return np.stack(rgbs, 0), np.mean(psnrs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--N_iters", type=int, default=150)
    parser.add_argument("--N_rand", type=int, default=128, help='rays of a step')
    parser.add_argument("--chunk", type=int, default=512)
    parser.add_argument("--lrate_decay", type=int, default=500)
    parser.add_argument("--precrop_iters", type=int, default=30)
    parser.add_argument("--i_print", type=int, default=30)
    args = parser.parse_args()
    np.random.seed(0)
    torch.manual_seed(0)
    H = W = 32
    focal = 40.
    poses = np.stack([pose_spherical(a, 20., 3.) for a in np.linspace(0, 360, 12, endpoint=False)])
    images = np.stack([synthetic_view(p, H, W, focal) for p in poses])
    i_test, i_train = [3, 8], [i for i in range(12) if i not in (3, 8)]

    embed_fn, input_ch = get_embedder(6)
    embeddirs_fn, input_ch_views = get_embedder(2)
    nets = {k: NeRF(input_ch, input_ch_views, skips=(1,)).to(device) for k in ('coarse', 'fine')}
    grad_vars = [p for net in nets.values() for p in net.parameters()]
    optimizer = torch.optim.Adam(params=grad_vars, lr=2e-3, betas=(0.9, 0.999))

    def query(pts, viewdirs, net):
        flat = pts.reshape(-1, 3)
        dirs = viewdirs[:, None].expand(pts.shape).reshape(-1, 3)
        out = net(embed_fn(flat), embeddirs_fn(dirs))
        return out.reshape(list(pts.shape[:-1]) + [4])

    render = {'nets': nets, 'query': query, 'near': 1.5, 'far': 4.5, 'n_coarse': 24, 'n_fine': 24}
    poses = torch.Tensor(poses).to(device)
    for i in range(args.N_iters):
        img_i = np.random.choice(i_train)
        target = torch.Tensor(images[img_i]).to(device)
        rays_o, rays_d = get_rays(H, W, focal, poses[img_i])
        lo, hi = (H // 4, 3 * H // 4 - 1) if i < args.precrop_iters else (0, H - 1)
        coords = torch.stack(torch.meshgrid(torch.linspace(lo, hi, hi - lo + 1), torch.linspace(lo, hi, hi - lo + 1),
                                            indexing='ij'), -1).reshape(-1, 2)
        select_inds = np.random.choice(coords.shape[0], size=[args.N_rand], replace=False)
        select_coords = coords[select_inds].long()
        rays_o = rays_o[select_coords[:, 0], select_coords[:, 1]]
        rays_d = rays_d[select_coords[:, 0], select_coords[:, 1]]
        target_s = target[select_coords[:, 0], select_coords[:, 1]]
        out = render_rays(rays_o, rays_d, perturb=True, noise_std=0.1, **render)
        optimizer.zero_grad()
        img_loss = img2mse(out['rgb_map'], target_s)
        psnr = mse2psnr(img_loss)
        loss = img_loss + img2mse(out['rgb0'], target_s)
        loss.backward()
        optimizer.step()
        new_lrate = 2e-3 * (0.1 ** (i / args.lrate_decay))
        for param_group in optimizer.param_groups:
            param_group['lr'] = new_lrate
        if (i + 1) % args.i_print == 0:
            print(f"[TRAIN] Iter: {i + 1} Loss: {loss.item()}  PSNR: {psnr.item()}")
    with torch.no_grad():
        rgbs, psnr = render_path(poses[i_test], (H, W), focal, args.chunk, images[i_test], **render)
    print("test psnr", psnr, "frames", to8b(rgbs).shape)


if __name__ == '__main__':
    main()
