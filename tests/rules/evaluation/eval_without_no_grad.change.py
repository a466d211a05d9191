"""Evaluation with a graph and without."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.drop = nn.Linear(3, 2), nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.body(x))


def evaluate(model: nn.Module, loader):
    model.eval()
    correct = 0
    for x in loader:
        outputs = model(x.cuda())
        correct += (outputs.argmax(1) == 1).sum()
    return correct.item()


def predict(model: nn.Module, loader):
    model.eval()
    return [model(x.cuda()).argmax(1) for x in loader]


def spectra(model: nn.Module, loader):
    model.eval()
    return [model(x.cuda()).tolist() for x in loader]


def case_numbers():
    model = Net().cuda()
    return {"correct": evaluate(model, [torch.randn(5, 3)]), "model": model}


def case_predictions():
    (labels,) = predict(Net().cuda(), [torch.randn(2, 3)])
    weight = torch.ones(2, device="cuda", requires_grad=True)
    (weight * labels).sum().backward()
    return {"labels": labels, "inference": labels.is_inference(), "gradient": weight.grad}


def case_transformer():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2).cuda()
    return {"rows": spectra(model, [torch.randn(3, 7, 16)])}


def change_transformer(rows):
    """Transformer layers in evaluation mode take a faster path without autograd, and round differently."""
    before, after = map(torch.tensor, rows)
    assert not torch.equal(before, after) and torch.allclose(before, after, atol=1e-5)


def case_forces():
    model = type("Forces", (nn.Module,), {"forward": lambda self, x: derivative(x)})()
    return {"rows": spectra(model, [torch.randn(2, 3)])}


def derivative(x):
    weight = torch.ones(3, device="cuda", requires_grad=True)
    return torch.autograd.grad((x * weight).sum(), weight)[0]


def change_forces(error):
    """A model of an unknown class that computes gradients in its own `forward` fails"""
    assert error[0] is None and "does not require grad" in error[1]


def score(model: nn.Module, loader):
    model.eval()
    total = 0
    for x in loader:
        total += model(x.cuda()).sum()
    return total


def kept_backward():
    model = Net().cuda()
    score(model, [torch.randn(2, 3)]).backward()
    return {"model": model}


class Learner:
    def __init__(self):
        self.net, self.slow = nn.Linear(3, 2), nn.Linear(3, 2)
        self.slow.load_state_dict(self.net.state_dict())
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def act(self, state):
        scores = self.net(state)
        return scores.detach().argmax(1).tolist()

    def learn(self, before, after):
        best = self.slow(after).max(1)[0]
        loss = (self.net(before)[:, 0] - best).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


def case_acting():
    learner = Learner()
    actions = learner.act(torch.randn(4, 3))
    return {"actions": actions, "net": learner.net}


def case_target():
    learner = Learner()
    loss = learner.learn(torch.randn(4, 3), torch.randn(4, 3)).detach()
    gradient = learner.slow.weight.grad is not None
    learner.slow.zero_grad()
    return {"gradient": gradient, "loss": loss, "net": learner.net, "slow": learner.slow}


def change_target(gradient):
    """a target network's parameters then get no gradient"""
    assert gradient == (True, False)
