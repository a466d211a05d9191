"""Point cloud classification: farthest point sampling, ball query, kNN edge features."""
import argparse
import logging
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SHAPES = ('sphere', 'cube', 'cylinder', 'torus', 'plane')


def square_distance(src, dst):
    dist = -2 * torch.matmul(src, dst.permute(0, 2, 1))
    dist += torch.sum(src ** 2, -1)[:, :, None]
    dist += torch.sum(dst ** 2, -1)[:, None, :]
    return dist


def index_points(points, idx):
    device = points.device
    B = points.shape[0]
    view_shape = list(idx.shape)
    view_shape[1:] = [1] * (len(view_shape) - 1)
    repeat_shape = list(idx.shape)
    repeat_shape[0] = 1
    batch_indices = torch.arange(B, dtype=torch.long).to(device).view(view_shape).repeat(repeat_shape)
    return points[batch_indices, idx, :]


def farthest_point_sample(xyz, npoint):
    device = xyz.device
    B, N, _ = xyz.shape
    centroids = torch.zeros(B, npoint, dtype=torch.long).to(device)
    distance = torch.ones(B, N).to(device) * 1e10
    farthest = torch.randint(0, N, (B,), dtype=torch.long).to(device)
    batch_indices = torch.arange(B, dtype=torch.long).to(device)
    for i in range(npoint):
        centroids[:, i] = farthest
        centroid = xyz[batch_indices, farthest, :].view(B, 1, 3)
        dist = torch.sum((xyz - centroid) ** 2, -1)
        mask = dist < distance
        distance[mask] = dist[mask]
        farthest = torch.max(distance, -1)[1]
    return centroids


def query_ball_point(radius, nsample, xyz, new_xyz):
    B, N, _ = xyz.shape
    S = new_xyz.shape[1]
    group_idx = torch.arange(N, dtype=torch.long, device=xyz.device).view(1, 1, N).repeat([B, S, 1])
    sqrdists = square_distance(new_xyz, xyz)
    group_idx[sqrdists > radius ** 2] = N
    group_idx = group_idx.sort(dim=-1)[0][:, :, :nsample]
    group_first = group_idx[:, :, 0].view(B, S, 1).repeat([1, 1, nsample])
    return torch.where(group_idx == N, group_first, group_idx)


def knn(x, k):
    inner = -2 * torch.matmul(x.transpose(2, 1), x)
    xx = torch.sum(x ** 2, dim=1, keepdim=True)
    return (-xx - inner - xx.transpose(2, 1)).topk(k=k, dim=-1)[1]


class EdgeConv(nn.Module):
    def __init__(self, cin, cout, k):
        super().__init__()
        self.k = k
        self.conv = nn.Sequential(nn.Conv2d(2 * cin, cout, 1, bias=False), nn.BatchNorm2d(cout), nn.LeakyReLU(0.2))

    def forward(self, x):
        idx = knn(x, self.k)
        neighbours = index_points(x.transpose(2, 1), idx)
        centre = x.transpose(2, 1).unsqueeze(2).expand_as(neighbours)
        edges = torch.cat((neighbours - centre, centre), dim=3).permute(0, 3, 1, 2)
        return self.conv(edges).max(dim=-1)[0]


class SetAbstraction(nn.Module):
    def __init__(self, npoint, radius, nsample, in_channel, mlp):
        super().__init__()
        self.npoint, self.radius, self.nsample = npoint, radius, nsample
        self.mlp_convs = nn.ModuleList()
        self.mlp_bns = nn.ModuleList()
        last = in_channel + 3
        for out_channel in mlp:
            self.mlp_convs.append(nn.Conv2d(last, out_channel, 1))
            self.mlp_bns.append(nn.BatchNorm2d(out_channel))
            last = out_channel

    def forward(self, xyz, points):
        new_xyz = index_points(xyz, farthest_point_sample(xyz, self.npoint))
        idx = query_ball_point(self.radius, self.nsample, xyz, new_xyz)
        grouped = index_points(xyz, idx) - new_xyz.unsqueeze(2)
        grouped = torch.cat([grouped, index_points(points, idx)], dim=-1).permute(0, 3, 2, 1)
        for conv, bn in zip(self.mlp_convs, self.mlp_bns):
            grouped = F.relu(bn(conv(grouped)))
        return new_xyz, torch.max(grouped, 2)[0].permute(0, 2, 1)


class PointClassifier(nn.Module):
    def __init__(self, num_class, k=12):
        super().__init__()
        self.edge1 = EdgeConv(3, 24, k)
        self.sa1 = SetAbstraction(48, 0.4, 16, 24, [32, 48])
        self.sa2 = SetAbstraction(12, 0.8, 8, 48, [64])
        self.fc = nn.Sequential(
            nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, num_class))

    def forward(self, xyz):
        feats = self.edge1(xyz.transpose(2, 1)).transpose(2, 1)
        xyz, feats = self.sa1(xyz, feats)
        xyz, feats = self.sa2(xyz, feats)
        return self.fc(feats.max(1)[0]), feats


class ShapeDataset(Dataset):
    def __init__(self, n, npoints=192, seed=0):
        self.rng = np.random.RandomState(seed)
        self.samples = [self.make(i % len(SHAPES), npoints) for i in range(n)]

    def make(self, label, n):
        u, v = self.rng.rand(2, n) * 2 * np.pi
        w = self.rng.rand(n) * 2 - 1
        if label == 0:
            r = np.sqrt(1 - w ** 2)
            pts = np.stack([r * np.cos(u), r * np.sin(u), w], 1)
        elif label == 1:
            pts = self.rng.rand(n, 3) * 2 - 1
            pts[np.arange(n), self.rng.randint(0, 3, n)] = np.sign(w)
        elif label == 2:
            pts = np.stack([np.cos(u), np.sin(u), w], 1)
        elif label == 3:
            pts = np.stack([(1 + .3 * np.cos(v)) * np.cos(u), (1 + .3 * np.cos(v)) * np.sin(u), .3 * np.sin(v)], 1)
        else:
            pts = np.stack([w, self.rng.rand(n) * 2 - 1, np.zeros(n)], 1)
        pts = pts - pts.mean(0)
        pts = pts / np.max(np.sqrt(np.sum(pts ** 2, axis=1)))
        return (pts + 0.02 * self.rng.randn(n, 3)).astype(np.float32), label

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


def random_point_dropout(batch_pc, max_dropout_ratio=0.5):
    for b in range(batch_pc.shape[0]):
        ratio = np.random.random() * max_dropout_ratio
        drop_idx = np.where(np.random.random(batch_pc.shape[1]) <= ratio)[0]
        if len(drop_idx) > 0:
            batch_pc[b, drop_idx, :] = batch_pc[b, 0, :]
    return batch_pc


def cal_loss(pred, gold, eps=0.2):
    n_class = pred.size(1)
    one_hot = torch.zeros_like(pred).scatter(1, gold.view(-1, 1), 1)
    one_hot = one_hot * (1 - eps) + (1 - one_hot) * eps / (n_class - 1)
    return -(one_hot * F.log_softmax(pred, dim=1)).sum(dim=1).mean()


def test(model, loader, num_class, device):
    mean_correct = []
    class_acc = np.zeros((num_class, 3))
    classifier = model.eval()
    for points, target in loader:
        points, target = points.to(device), target.to(device)
        pred, _ = classifier(points)
        pred_choice = pred.data.max(1)[1]
        for cat in np.unique(target.cpu()):
            classacc = pred_choice[target == cat].eq(target[target == cat].long().data).cpu().sum()
            class_acc[cat, 0] += classacc.item() / float(points[target == cat].size()[0])
            class_acc[cat, 1] += 1
        correct = pred_choice.eq(target.long().data).cpu().sum()
        mean_correct.append(correct.item() / float(points.size()[0]))
    class_acc[:, 2] = class_acc[:, 0] / class_acc[:, 1]
    return np.mean(mean_correct), np.mean(class_acc[:, 2])


def main(args):
    logger = logging.getLogger("Model")
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.StreamHandler(sys.stdout))

    def log_string(message):
        logger.info(message)

    torch.manual_seed(0)
    np.random.seed(0)
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    train_loader = DataLoader(ShapeDataset(160), batch_size=args.batch_size, shuffle=True, drop_last=True)
    test_loader = DataLoader(ShapeDataset(40, seed=1), batch_size=args.batch_size)
    classifier = PointClassifier(len(SHAPES)).to(device)
    optimizer = torch.optim.Adam(classifier.parameters(), lr=args.learning_rate, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.7)
    best_instance_acc = 0.0
    for epoch in range(args.epoch):
        log_string('Epoch %d (%d/%s):' % (epoch + 1, epoch + 1, args.epoch))
        mean_correct = []
        classifier = classifier.train()
        for points, target in train_loader:
            optimizer.zero_grad()
            points = random_point_dropout(points.data.numpy())
            points = torch.Tensor(points)
            points, target = points.to(device), target.to(device)
            pred, feats = classifier(points)
            loss = cal_loss(pred, target.long()) + 1e-4 * feats.norm(dim=-1).mean()
            pred_choice = pred.data.max(1)[1]
            correct = pred_choice.eq(target.long().data).cpu().sum()
            mean_correct.append(correct.item() / float(points.size()[0]))
            loss.backward()
            optimizer.step()
        scheduler.step()
        log_string('Train Instance Accuracy: %f' % np.mean(mean_correct))
        with torch.no_grad():
            instance_acc, class_acc = test(classifier, test_loader, len(SHAPES), device)
        best_instance_acc = max(best_instance_acc, instance_acc)
        log_string('Test Instance Accuracy: %f, Class Accuracy: %f' % (instance_acc, class_acc))
    log_string('Best Instance Accuracy: %f' % best_instance_acc)


if __name__ == '__main__':
    parser = argparse.ArgumentParser('training')
    parser.add_argument('--batch_size', type=int, default=16)
    parser.add_argument('--epoch', default=2, type=int)
    parser.add_argument('--learning_rate', default=0.003, type=float)
    main(parser.parse_args())
