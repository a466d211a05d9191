"""Few-shot learning with MAML (second order) and a prototypical network on random-pattern classes."""
import argparse
from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


class Patterns:
    """Endless classes: each one is a random picture, samples are noisy shifts of it."""

    def __init__(self, num_classes, size=14, seed=0):
        rng = np.random.RandomState(seed)
        self.rng = rng
        self.prototypes = (rng.rand(num_classes, size, size) < 0.25).astype('float32')

    def episode(self, n_way, k_shot, k_query):
        classes = self.rng.choice(len(self.prototypes), n_way, replace=False)
        xs, ys = [], []
        for label, c in enumerate(classes):
            for _ in range(k_shot + k_query):
                img = np.roll(self.prototypes[c], self.rng.randint(-1, 2, 2), (0, 1))
                xs.append(img + 0.3 * self.rng.randn(*img.shape))
                ys.append(label)
        x = np.array(xs, dtype='float32').reshape(n_way, k_shot + k_query, 1, *img.shape)
        y = np.array(ys).reshape(n_way, -1)
        return x[:, :k_shot], y[:, :k_shot], x[:, k_shot:], y[:, k_shot:]

    def batch(self, size, n_way, k_shot, k_query):
        parts = zip(*[self.episode(n_way, k_shot, k_query) for _ in range(size)])
        return [torch.from_numpy(np.stack(p)) for p in parts]


def conv_block(cin, cout):
    return nn.Sequential(OrderedDict([
        ('conv', nn.Conv2d(cin, cout, 3, padding=1)),
        ('norm', nn.GroupNorm(4, cout)),
        ('relu', nn.ReLU()),
        ('pool', nn.MaxPool2d(2)),
    ]))


class Net(nn.Module):
    def __init__(self, n_way, hidden=24):
        super().__init__()
        self.features = nn.Sequential(conv_block(1, hidden), conv_block(hidden, hidden), nn.Flatten())
        self.classifier = nn.Linear(hidden * 9, n_way)

    def forward(self, x, embed=False):
        z = self.features(x)
        return z if embed else self.classifier(z)


def get_accuracy(logits, targets):
    _, predictions = torch.max(logits, dim=-1)
    return torch.mean(predictions.eq(targets).float())


class MAML:
    def __init__(self, model, args, device):
        self.model, self.args, self.device = model, args, device
        self.step_size = nn.ParameterDict({
            n.replace('.', '_'): nn.Parameter(torch.tensor(args.step_size)) for n, _ in model.named_parameters()
        }).to(device)
        self.optimizer = torch.optim.Adam([*model.parameters(), *self.step_size.parameters()], lr=args.meta_lr)

    def adapt(self, x, y, steps, first_order):
        params = OrderedDict(self.model.named_parameters())
        for _ in range(steps):
            loss = F.cross_entropy(functional_call(self.model, params, (x,)), y)
            grads = torch.autograd.grad(loss, params.values(), create_graph=not first_order)
            params = OrderedDict(
                (n, p - self.step_size[n.replace('.', '_')] * g) for (n, p), g in zip(params.items(), grads))
        return params, loss

    def outer_loss(self, batch, first_order=False):
        sx, sy, qx, qy = (t.to(self.device) for t in batch)
        outer, accuracy, inner = torch.tensor(0., device=self.device), torch.tensor(0., device=self.device), []
        for i in range(sx.size(0)):
            params, loss = self.adapt(sx[i].flatten(0, 1), sy[i].flatten(), self.args.num_steps, first_order)
            logits = functional_call(self.model, params, (qx[i].flatten(0, 1),))
            target = qy[i].flatten()
            outer += F.cross_entropy(logits, target)
            inner.append(loss.item())
            with torch.no_grad():
                accuracy += get_accuracy(logits, target)
        return outer / sx.size(0), accuracy / sx.size(0), np.mean(inner)

    def train_iter(self, batch, first_order):
        self.optimizer.zero_grad()
        loss, acc, inner = self.outer_loss(batch, first_order)
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            for p in self.step_size.values():
                p.clamp_(1e-3, 2.0)
        return {'loss': loss.item(), 'accuracy': acc.item(), 'inner': inner}

    def evaluate(self, dataset, episodes):
        accs = []
        for _ in range(episodes):
            loss, acc, _ = self.outer_loss(dataset.batch(1, self.args.ways, self.args.shots, 10), first_order=True)
            accs.append(acc)
        accs = torch.stack(accs).cpu().numpy()
        return accs.mean(), 1.96 * accs.std() / np.sqrt(len(accs))


def proto_step(model, batch, device):
    loss, acc = 0.0, 0.0
    for sx, _, qx, qy in zip(*batch):
        sx, qx, qy = sx.to(device), qx.to(device), qy.to(device)
        n_way, k_shot = sx.shape[:2]
        prototypes = model(sx.flatten(0, 1), embed=True).view(n_way, k_shot, -1).mean(1)
        logits = -torch.cdist(model(qx.flatten(0, 1), embed=True), prototypes) ** 2 / 10
        loss = loss + F.cross_entropy(logits, qy.flatten())
        acc += float(get_accuracy(logits, qy.flatten()))
    return loss / len(batch[0]), acc / len(batch[0])


def main(args):
    torch.manual_seed(0)
    device = torch.device('cuda' if args.use_cuda and torch.cuda.is_available() else 'cpu')
    train_set, test_set = Patterns(64), Patterns(16, seed=1)
    learner = MAML(Net(args.ways).to(device), args, device)
    window = []
    for i in range(args.num_batches):
        batch = train_set.batch(args.batch_size, args.ways, args.shots, 5)
        window.append(learner.train_iter(batch, first_order=i < args.first_order_batches))
        if (i + 1) % 10 == 0:
            print(f'{i + 1:4d}', {k: f'{np.mean([w[k] for w in window[-10:]]):.4f}' for k in window[0]})
    mean, ci = learner.evaluate(test_set, 15)
    rates = {n: round(p.item(), 3) for n, p in learner.step_size.items() if 'conv' in n}
    print(f'maml: {100 * mean:.1f} +- {100 * ci:.1f}, step sizes {rates}')

    proto = Net(args.ways).to(device)
    optimizer = torch.optim.Adam(proto.parameters(), lr=args.meta_lr)
    for _ in range(args.num_batches):
        loss, acc = proto_step(proto, train_set.batch(args.batch_size, args.ways, args.shots, 5), device)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        loss, acc = proto_step(proto, test_set.batch(15, args.ways, args.shots, 10), device)
    print(f'proto: last loss {loss:.4f} accuracy {acc:.3f}')


if __name__ == '__main__':
    parser = argparse.ArgumentParser('MAML')
    parser.add_argument('--ways', type=int, default=5)
    parser.add_argument('--shots', type=int, default=2)
    parser.add_argument('--batch-size', type=int, default=4)
    parser.add_argument('--num-steps', type=int, default=3)
    parser.add_argument('--step-size', type=float, default=0.05)
    parser.add_argument('--meta-lr', type=float, default=3e-3)
    parser.add_argument('--num-batches', type=int, default=30)
    parser.add_argument('--first-order-batches', type=int, default=10)
    parser.add_argument('--use-cuda', action='store_true', default=True)
    main(parser.parse_args())
