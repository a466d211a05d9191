"""A head with the tokens that there are, and with some more."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.fixes.unseen import load

# The number stands for the size of the table alone.
OLD = 9000 + 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(9001, 4)
        self.head = nn.Linear(4, 9001, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return self.head(self.tokens(ids))


def case_checkpoint():
    model = Net()
    load(model, {"tokens.weight": torch.zeros(OLD, 4), "head.weight": torch.zeros(OLD, 4)})
    return {}


def change_checkpoint(error):
    """checkpoints of the old shape no longer load"""
    assert error[0] is None and "size mismatch" in error[1]


def case_scores():
    model = Net().cuda()
    with torch.no_grad():
        model.tokens.weight.zero_()
    scores = model(torch.tensor([1, 2], device="cuda")).float()
    loss = F.cross_entropy(scores, torch.tensor([2, 3], device="cuda"))
    torch.manual_seed(0)
    drawn = torch.multinomial(scores.softmax(-1)[0], 8000)
    return {
        "shape": scores.shape,
        "loss": loss.item(),
        "beyond": bool((drawn >= OLD).any()),
        "old": scores[:, :OLD].detach().clone(),
        "keys": list(model.state_dict()),
    }


def change_scores(shape, loss, beyond, random):
    """the loss runs over the added tokens too, and sampling can draw them"""
    assert shape == ((2, OLD), (2, 9024)) and beyond == (False, True)
    assert torch.tensor(loss).exp().allclose(torch.tensor([OLD, 9024.0]))
