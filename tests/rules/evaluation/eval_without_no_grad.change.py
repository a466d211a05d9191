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
    outputs = []
    for x in loader:
        outputs.append(model(x.cuda()))
    return torch.cat(outputs)


def score(model: nn.Module, loader):
    model.eval()
    total = 0
    for x in loader:
        total += model(x.cuda()).sum()
    return total


def case_numbers():
    model = Net().cuda()
    return {"correct": evaluate(model, [torch.randn(5, 3)]), "model": model}


def case_predictions():
    y = predict(Net().cuda(), [torch.randn(2, 3)])
    graph = y.grad_fn is not None
    y = y.detach()
    return {"graph": graph, "inference": y.is_inference(), "values": y.clone()}


def change_predictions(graph, inference):
    """What the function returns then has no `grad_fn`"""
    assert graph == (True, False) and inference == (False, True)


def case_backward():
    model = Net().cuda()
    score(model, [torch.randn(2, 3)]).backward()
    return {"model": model}


def change_backward(error):
    """a caller that calls `backward()` on it fails"""
    assert error[0] is None and "does not require grad" in error[1]


def case_saved():
    weight = torch.ones(2, device="cuda", requires_grad=True)
    (weight * predict(Net().cuda(), [torch.randn(2, 3)]).detach()).sum().backward()
    return {"gradient": weight.grad}


def change_saved(error):
    """A tensor made in inference mode cannot be saved for a backward pass later"""
    assert error[0] is None and "Inference tensors cannot be saved for backward" in error[1]


class Learner:
    def __init__(self):
        self.net, self.slow = nn.Linear(3, 2), nn.Linear(3, 2)
        self.slow.load_state_dict(self.net.state_dict())
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def act(self, state):
        scores = self.net(state)
        return scores.detach().argmax(1).tolist()


def case_acting():
    learner = Learner()
    actions = learner.act(torch.randn(4, 3))
    return {"actions": actions, "net": learner.net}
