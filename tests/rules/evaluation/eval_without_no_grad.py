"""Evaluation that records an autograd graph, and what only looks like it."""

import contextlib

import lightning
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.body(x))


def evaluate(model, loader, device):
    model.eval()
    correct = 0
    for images, labels in loader:
        outputs = model(images.to(device))  # error: TPF501
        correct += (outputs.argmax(1) == labels.to(device)).sum()
    return correct.item() / len(loader.dataset)


def predict_all(model, loader):
    model.train(False)
    return [model(x.cuda()).argmax(1).cpu() for x in loader]  # error: TPF501


class Predictor:
    def __init__(self, path):
        self.net = torch.load(path, weights_only=False)
        self.net.eval()

    def predict(self, image):
        scores = self.net(image.cuda())  # error: TPF501
        return scores.argmax(1).tolist()

    @staticmethod
    def preprocess(image):
        return image / 255


def train(model, train_loader, val_loader, optimizer, epochs):
    for _ in range(epochs):
        model.train()
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        total = 0.0
        for x, y in val_loader:
            total += F.cross_entropy(model(x), y).item()  # error: TPF501
        print(total / len(val_loader))


class Runner:
    def __init__(self, model, step):
        self.model = model
        self.step = step

    def validate(self, loader):
        self.model.eval()
        for index, batch in enumerate(loader):
            self.outputs = self.step(self.model, batch, index)  # audit: TPF501

    async def infer(self, batch):
        self.model.eval()
        scores = self.model(batch)  # error: TPF501
        return scores.tolist()


class Decoder(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.table = nn.Embedding(vocabulary, 64)

    def forward(self, tokens):
        return self.table(tokens)

    def generate(self, tokens, steps):
        for _ in range(steps):
            logits = self(tokens)  # audit: TPF501
            tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
        return tokens


# What follows is fine.


@torch.no_grad()
def evaluate_decorated(model, loader):
    model.eval()
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)


def evaluate_in_context(model, loader):
    model.eval()
    hits = 0
    with torch.inference_mode(), torch.autocast("cuda"):
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum()
    return hits.item()


def evaluate_by_phase(model, loaders, criterion, optimizer):
    for phase in ("train", "val"):
        model.train(phase == "train")
        for x, y in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                loss = criterion(model(x), y)
                if phase == "train":
                    loss.backward()
                    optimizer.step()


def evaluate_switched_off(model, loader):
    torch.set_grad_enabled(False)
    model.eval()
    return [model(x).argmax(1).cpu() for x in loader]


def evaluate_on_request(model, loader, gradients):
    context = contextlib.nullcontext() if gradients else torch.no_grad()
    model.eval()
    with context:
        return [model(x).cpu() for x in loader]


def evaluate_attack(model, loader, epsilon):
    """Fast gradient sign: the gradient is the point."""
    model.eval()
    robust = 0
    for x, y in loader:
        x.requires_grad_()
        (gradient,) = torch.autograd.grad(F.cross_entropy(model(x), y), x)
        robust += (model(x + epsilon * gradient.sign()).argmax(1) == y).sum().item()
    return robust


def saliency(model, images):
    model.eval()
    images.requires_grad = True
    model(images).max(1).values.sum().backward()
    return images.grad.abs().cpu()


def evaluate_frozen(model, loader):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    model.eval()
    return [model(x).argmax(1).cpu() for x in loader]


def validate_inner(model, loader):
    """The caller turns autograd off."""
    model.eval()
    return sum(F.cross_entropy(model(x), y).item() for x, y in loader)


def fit(model, loader, optimizer):
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        return validate_inner(model, loader)


class Perceptual(nn.Module):
    """A frozen network in a loss: gradients flow through it to its input."""

    def __init__(self, features):
        super().__init__()
        self.features = features.eval()

    def forward(self, x, y):
        return F.mse_loss(self.features(x), self.features(y))


class LitNet(lightning.LightningModule):
    """The trainer turns autograd off around its hooks."""

    def __init__(self):
        super().__init__()
        self.net = Net()

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self.net(x), y))


def test_shapes():
    model = Net()
    model.eval()
    for size in (1, 2):
        assert model(torch.zeros(size, 784)).shape == (size, 10)


class Engine(nn.Module):
    """Calling it is not its forward: it sees to autograd itself."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    @torch.inference_mode()
    def __call__(self, images):
        return self.net(images).argmax(1)


def predict_with_engine(net, loader):
    engine = Engine(net)
    return [engine(x).tolist() for x in loader]
