import numpy as np
import torch
import torch.distributions as D
from torch import nn
from torch.distributions import Bernoulli, Categorical, Independent, MultivariateNormal, Normal
from torch.distributions.normal import Normal as FromItsModule


class Policy(nn.Module):
    def forward(self, mean: torch.Tensor, std: torch.Tensor, action: torch.Tensor):
        distribution = Normal(mean, std, validate_args=False)
        chosen = distribution.rsample()
        score = distribution.log_prob(chosen)
        below = distribution.cdf(action)
        imported = FromItsModule(mean, 1.0, validate_args=False)
        return chosen, score, below, imported, distribution.entropy()

    def choose(self, logits: torch.Tensor, action: torch.Tensor):
        distribution = Categorical(logits=self.unknown(logits), validate_args=False)
        return distribution.sample(), action


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 4)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        categorical = Categorical(logits=self.head(x), validate_args=False)
        full = MultivariateNormal(
            self.head(x), torch.diag(self.scale), validate_args=False
        )
        joined = Independent(D.Normal(self.head(x), self.scale, None), 1)
        mixture = D.MixtureSameFamily(categorical, joined)
        asked = Bernoulli(logits=self.head(x), validate_args=True)
        return joined.log_prob(x), mixture, asked, full


torch.distributions.Normal.set_default_validate_args(False)


# Look-alikes.


class Unchecked(nn.Module):
    def forward(self, mean: torch.Tensor, std: torch.Tensor, action: torch.Tensor):
        distribution = Normal(mean, std, validate_args=False)
        by_position = Normal(mean, std, False)
        inside = Independent(distribution, 1)
        return distribution.log_prob(action), by_position.log_prob(action), inside.log_prob(action)


class WithoutChecks(nn.Module):
    def forward(self, mean: torch.Tensor, std: torch.Tensor):
        distribution = Normal(mean, std, validate_args=False)
        return distribution.rsample(), distribution.mean, distribution.entropy(), D.kl_divergence(
            distribution, distribution
        )


def on_host(batch):
    prior = Normal(0.0, 1.0)
    weights = Categorical(torch.ones(4))
    return prior.sample((3,)), weights.log_prob(torch.tensor(1)), prior.log_prob(torch.zeros(3))


class Normals:
    def log_prob(self, value):
        return value


def of_the_same_name(x: torch.Tensor):
    return Normals().log_prob(x), np.random.normal(0, 1)


class Estimator:
    set_default_validate_args = False


settings = {"set_default_validate_args": False}


def skips_what_is_not_allowed(mean: torch.Tensor, std: torch.Tensor):
    try:
        return Normal(mean.cuda(), std.cuda())
    except ValueError:
        return None


def rollout(policy, env, steps: int):
    """The parameters of a distribution are tensors, and these were computed from tensors of the GPU."""
    state = env.reset()
    for _ in range(steps):
        action = Categorical(logits=policy(state.cuda()), validate_args=False).sample()
        state = env.step(action, Categorical(logits=policy(state.cuda()).cpu()).sample())
