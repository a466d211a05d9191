"""A graph that is kept for nobody, and one that a module needs again."""

import torch
from torch import nn

from tests.fixes.unseen import Remembers


def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        loss = model(x.cuda()).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
    return model


def case_gradients():
    return {"model": train(nn.Linear(3, 1).cuda(), [torch.ones(2, 3)] * 3)}


def case_kept_for_the_next():
    return {"steps": len(list(train(Remembers().cuda(), [torch.ones(2, 3)] * 2).parameters()))}


def change_kept_for_the_next(error):
    """the next backward pass needs the graph, and raises "Trying to backward through the graph a second time\""""
    assert error[0] is None
    assert "Trying to backward through the graph a second time" in error[1]
