"""no_grad where inference_mode serves, and where it does not."""

import torch
import torch.nn.functional as F
from torch import nn, no_grad


@torch.no_grad()  # audit: TPF502
def evaluate(model, loader):
    model.eval()
    correct = 0
    for images, labels in loader:
        correct += (model(images).argmax(1) == labels).sum().item()
    return correct / len(loader.dataset)


def predict(model, loader):
    model.eval()
    rows = []
    with torch.no_grad():  # audit: TPF502
        for x in loader:
            rows.append(model(x).softmax(-1).cpu().numpy())
    return rows


def report(model, loader):
    model.eval()
    total = 0.0
    with torch.autocast("cuda"), no_grad():  # audit: TPF502
        for x, y in loader:
            total += F.cross_entropy(model(x), y).item()
    print(f"{total / len(loader):.3f}")


@torch.no_grad()  # audit: TPF502
def sample(model, shape, steps):
    """The images leave: only a suspicion."""
    x = torch.randn(shape, device="cuda")
    for step in range(steps):
        x = x - model(x, step)
    return x


# What follows is fine.


@torch.inference_mode()
def evaluate_fast(model, loader):
    model.eval()
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)


class Distiller(nn.Module):
    """The teacher's output meets autograd in the loss."""

    def __init__(self, student, teacher):
        super().__init__()
        self.student = student
        self.teacher = teacher

    def forward(self, x, y):
        with torch.no_grad():
            target = self.teacher(x).softmax(-1)
        scores = self.student(x)
        return F.cross_entropy(scores, y) + F.kl_div(scores.log_softmax(-1), target)


class Layer(nn.Module):
    """Parameters that are trained afterwards."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width))
        with torch.no_grad():
            self.weight.normal_(std=0.02)

    def forward(self, x):
        return x @ self.weight


class Trainer:
    """The hooks of a whole evaluation run inside."""

    def __init__(self, loop):
        self.loop = loop

    def run_evaluation(self):
        with torch.no_grad():
            return self.loop.run()


@torch.no_grad()
def extract_features(model, loader):
    """Features that a probe is trained on."""
    model.eval()
    return torch.cat([model(x) for x in loader])


@torch.no_grad()
def update_average(average, model, decay):
    for p, q in zip(average.parameters(), model.parameters(), strict=True):
        p.lerp_(q, 1 - decay)


def train_step(model, teacher, x, optimizer):
    with torch.no_grad():
        target = teacher(x)
    loss = F.mse_loss(model(x), target)
    loss.backward()
    optimizer.step()


def export(model, loader, path):
    model.eval()
    with torch.no_grad():
        for x in loader:
            torch.onnx.export(model, (x,), path)
            model(x)


def collect_and_train(model, teacher, loader, optimizer, evaluating):
    teacher.eval()
    for x in loader:
        if evaluating:
            with torch.no_grad():
                target, _ = teacher(x).max(dim=1)
        loss = F.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()


class PolicyTrainer:
    def generate_and_score(self, inputs):
        with torch.no_grad():
            logits = self.model(inputs)
        return {"logits": logits}

    def compute_loss(self, inputs):
        return (self.model(inputs) - self.generate_and_score(inputs)["logits"]).square().mean()


def train_then_test(model, train_loader, test_loader, optimizer):
    for epoch in range(3):
        for x, y in train_loader:
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():  # audit: TPF502
        for x, y in test_loader:
            outputs = model(x)
    return outputs
