"""Distributions with their checks and without."""

import torch
from torch import nn
from torch.distributions import Categorical, Normal


class Policy(nn.Module):
    def forward(self, mean: torch.Tensor, std: torch.Tensor):
        distribution = Normal(mean, std)
        chosen = distribution.rsample()
        return chosen, distribution.log_prob(chosen)


def score(probabilities: torch.Tensor, action: torch.Tensor):
    return Categorical(probabilities.cuda()).log_prob(action.cuda())


def case_allowed():
    mean = torch.zeros(3, device="cuda", requires_grad=True)
    chosen, density = Policy()(mean, torch.ones(3, device="cuda"))
    density.sum().backward()
    return {"chosen": chosen, "density": density, "mean": mean}


def case_diverged():
    mean = torch.full((3,), torch.nan, device="cuda")
    return {"nan": Policy()(mean, torch.ones(3, device="cuda"))[1].isnan().all().item()}


def change_diverged(error):
    """parameters and values that are not allowed, such as NaN of a policy that diverges, raise no error any more"""
    assert "ValueError: Expected parameter loc" in error[0] and error[1] is None


def case_default():
    torch.distributions.Normal.set_default_validate_args = False
    try:
        Normal(torch.full((1,), torch.nan), 1.0)
        return {}
    finally:
        if "set_default_validate_args" in vars(torch.distributions.Normal):
            del torch.distributions.Normal.set_default_validate_args
        torch.distributions.Distribution.set_default_validate_args(True)


def change_default(error):
    """turns the assignment into a call"""
    assert error[0].startswith("ValueError") and error[1] is None
