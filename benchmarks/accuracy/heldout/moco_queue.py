"""Momentum contrast with a queue of negatives; a kNN classifier follows how good the features get."""
import argparse
import copy
import json
import math
import os
import tempfile
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description='Train MoCo on rings')
parser.add_argument('--lr', default=0.06, type=float, help='initial learning rate')
parser.add_argument('--epochs', default=3, type=int)
parser.add_argument('--schedule', default=[2], nargs='*', type=int, help='where lr drops; empty and --cos: cosine')
parser.add_argument('--cos', action='store_true')
parser.add_argument('--batch-size', default=64, type=int)
parser.add_argument('--wd', default=5e-4, type=float)
parser.add_argument('--moco-dim', default=32, type=int)
parser.add_argument('--moco-k', default=512, type=int, help='queue size')
parser.add_argument('--moco-m', default=0.99, type=float)
parser.add_argument('--moco-t', default=0.1, type=float)
parser.add_argument('--symmetric', action='store_true', default=True)
parser.add_argument('--knn-k', default=20, type=int)
parser.add_argument('--knn-t', default=0.1, type=float)
parser.add_argument('--results-dir', default='', type=str)


class Rings(Dataset):
    """Pictures of rings; the class is the radius."""

    def __init__(self, n, size=24, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.targets = torch.randint(0, 4, (n,), generator=g)
        centre = torch.rand(n, 2, 1, 1, generator=g) * 8 + 8
        ys = torch.arange(size).view(1, size, 1)
        xs = torch.arange(size).view(1, 1, size)
        dist = ((ys - centre[:, 0]) ** 2 + (xs - centre[:, 1]) ** 2).sqrt()
        radius = 2.0 + 1.5 * self.targets.view(-1, 1, 1)
        ring = torch.exp(-(dist - radius) ** 2)
        tint = torch.rand(n, 3, 1, 1, generator=g)
        self.data = ring.unsqueeze(1) * tint

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i], self.targets[i]


class PairView(Dataset):
    def __init__(self, base):
        self.base = base

    def __len__(self):
        return len(self.base)

    @staticmethod
    def augment(img):
        if torch.rand(1).item() < 0.5:
            img = img.flip(-1)
        dy, dx = torch.randint(-3, 4, (2,)).tolist()
        img = torch.roll(img, (dy, dx), (1, 2))
        img = img * (0.6 + 0.8 * torch.rand(3, 1, 1))
        return img + 0.05 * torch.randn_like(img)

    def __getitem__(self, i):
        img, _ = self.base[i]
        return self.augment(img), self.augment(img)


class SplitBatchNorm(nn.BatchNorm2d):
    """Mimics batch norm of several GPUs on one."""

    def __init__(self, num_features, num_splits, **kw):
        super().__init__(num_features, **kw)
        self.num_splits = num_splits

    def forward(self, x):
        n, c, h, w = x.shape
        if not self.training:
            return super().forward(x)
        mean = self.running_mean.repeat(self.num_splits)
        var = self.running_var.repeat(self.num_splits)
        out = F.batch_norm(x.view(-1, c * self.num_splits, h, w), mean, var, self.weight.repeat(self.num_splits),
                           self.bias.repeat(self.num_splits), True, self.momentum, self.eps).view(n, c, h, w)
        self.running_mean.data.copy_(mean.view(self.num_splits, c).mean(dim=0))
        self.running_var.data.copy_(var.view(self.num_splits, c).mean(dim=0))
        return out


class ModelBase(nn.Module):
    def __init__(self, feature_dim, bn_splits):
        super().__init__()
        norm = partial(SplitBatchNorm, num_splits=bn_splits) if bn_splits > 1 else nn.BatchNorm2d
        layers, c = [], 3
        for width in (16, 32, 64):
            layers += [nn.Conv2d(c, width, 3, stride=2, padding=1, bias=False), norm(width), nn.ReLU(inplace=True)]
            c = width
        self.net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(c, feature_dim))

    def forward(self, x):
        return self.net(x)


class ModelMoCo(nn.Module):
    def __init__(self, dim, K, m, T, symmetric, bn_splits=4):
        super().__init__()
        self.K, self.m, self.T, self.symmetric = K, m, T, symmetric
        self.encoder_q = ModelBase(dim, bn_splits)
        self.encoder_k = copy.deepcopy(self.encoder_q)
        for p in self.encoder_k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1. - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        batch_size = keys.shape[0]
        ptr = int(self.queue_ptr)
        assert self.K % batch_size == 0
        self.queue[:, ptr:ptr + batch_size] = keys.t()
        self.queue_ptr[0] = (ptr + batch_size) % self.K

    @torch.no_grad()
    def _shuffled(self, x):
        idx_shuffle = torch.randperm(x.shape[0]).to(x.device)
        return x[idx_shuffle], torch.argsort(idx_shuffle)

    def contrastive_loss(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            im_k_, idx_unshuffle = self._shuffled(im_k)
            k = F.normalize(self.encoder_k(im_k_), dim=1)[idx_unshuffle]
        l_pos = torch.einsum('nc,nc->n', [q, k]).unsqueeze(-1)
        l_neg = torch.einsum('nc,ck->nk', [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long).to(logits.device)
        return F.cross_entropy(logits, labels), q, k

    def forward(self, im1, im2):
        self._momentum_update_key_encoder()
        if self.symmetric:
            loss_12, _, k2 = self.contrastive_loss(im1, im2)
            loss_21, _, k1 = self.contrastive_loss(im2, im1)
            loss, k = (loss_12 + loss_21) / 2, torch.cat([k1, k2], dim=0)
        else:
            loss, _, k = self.contrastive_loss(im1, im2)
        self._dequeue_and_enqueue(k)
        return loss


def adjust_learning_rate(optimizer, epoch, args):
    lr = args.lr
    if args.cos:
        lr *= 0.5 * (1. + math.cos(math.pi * epoch / args.epochs))
    else:
        for milestone in args.schedule:
            lr *= 0.1 if epoch >= milestone else 1.
    for group in optimizer.param_groups:
        group['lr'] = lr


def train(net, loader, optimizer, epoch, args, device):
    net.train()
    adjust_learning_rate(optimizer, epoch, args)
    total_loss, total_num = 0.0, 0
    for im_1, im_2 in loader:
        im_1, im_2 = im_1.to(device, non_blocking=True), im_2.to(device, non_blocking=True)
        loss = net(im_1, im_2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total_num += loader.batch_size
        total_loss += loss.item() * loader.batch_size
    print('Train Epoch: [{}/{}], lr: {:.4f}, Loss: {:.4f}'.format(
        epoch + 1, args.epochs, optimizer.param_groups[0]['lr'], total_loss / total_num))
    return total_loss / total_num


def knn_predict(feature, bank, labels, classes, knn_k, knn_t):
    sim_matrix = torch.mm(feature, bank)
    sim_weight, sim_indices = sim_matrix.topk(k=knn_k, dim=-1)
    sim_labels = torch.gather(labels.expand(feature.size(0), -1), dim=-1, index=sim_indices)
    sim_weight = (sim_weight / knn_t).exp()
    one_hot = torch.zeros(feature.size(0) * knn_k, classes, device=sim_labels.device)
    one_hot = one_hot.scatter(dim=-1, index=sim_labels.view(-1, 1), value=1.0)
    scores = torch.sum(one_hot.view(feature.size(0), -1, classes) * sim_weight.unsqueeze(dim=-1), dim=1)
    return scores.argsort(dim=-1, descending=True)


def test(net, memory_loader, test_loader, args, device):
    net.eval()
    classes = int(memory_loader.dataset.targets.max()) + 1
    total_top1, total_num, feature_bank = 0.0, 0, []
    with torch.no_grad():
        for data, _ in memory_loader:
            feature_bank.append(F.normalize(net(data.to(device, non_blocking=True)), dim=1))
        feature_bank = torch.cat(feature_bank, dim=0).t().contiguous()
        feature_labels = torch.tensor(memory_loader.dataset.targets.tolist(), device=feature_bank.device)
        for data, target in test_loader:
            data, target = data.to(device, non_blocking=True), target.to(device, non_blocking=True)
            feature = F.normalize(net(data), dim=1)
            pred_labels = knn_predict(feature, feature_bank, feature_labels, classes, args.knn_k, args.knn_t)
            total_num += data.size(0)
            total_top1 += (pred_labels[:, 0] == target).float().sum().item()
    return total_top1 / total_num * 100


if __name__ == '__main__':
    args = parser.parse_args()
    torch.manual_seed(0)
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    memory_data, test_data = Rings(1024), Rings(256, seed=1)
    train_loader = DataLoader(PairView(memory_data), args.batch_size, shuffle=True, pin_memory=True, drop_last=True)
    memory_loader = DataLoader(memory_data, 256, pin_memory=True)
    test_loader = DataLoader(test_data, 128, pin_memory=True)
    model = ModelMoCo(args.moco_dim, args.moco_k, args.moco_m, args.moco_t, args.symmetric).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, weight_decay=args.wd, momentum=0.9)
    results = {'train_loss': [], 'test_acc@1': []}
    results_dir = args.results_dir or tempfile.mkdtemp()
    for epoch in range(args.epochs):
        results['train_loss'].append(train(model, train_loader, optimizer, epoch, args, device))
        results['test_acc@1'].append(test(model.encoder_q, memory_loader, test_loader, args, device))
        print('Test Acc@1: {:.2f}%'.format(results['test_acc@1'][-1]))
        torch.save({'epoch': epoch, 'state_dict': model.state_dict()}, os.path.join(results_dir, 'model_last.pth'))
    with open(os.path.join(results_dir, 'log.json'), 'w') as fid:
        json.dump(results, fid, indent=2)
