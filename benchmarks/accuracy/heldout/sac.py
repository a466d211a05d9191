"""Soft actor-critic for a swing-up pendulum, with learned temperature."""

from __future__ import annotations

import argparse
import copy
import itertools
from collections import defaultdict
from typing import NamedTuple

import numpy as np
import torch
from torch import nn, optim
from torch.distributions import Normal
from torch.nn import functional as F

LOG_STD_MIN, LOG_STD_MAX = -5.0, 2.0


class Pendulum:
    def __init__(self, num: int, seed: int) -> None:
        self.num = num
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> np.ndarray:
        self.theta = self.rng.uniform(-np.pi, np.pi, self.num)
        self.omega = self.rng.uniform(-1, 1, self.num)
        self.t = 0
        return self.observe()

    def observe(self) -> np.ndarray:
        return np.stack([np.cos(self.theta), np.sin(self.theta), self.omega / 8], 1).astype(np.float32)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        torque = 2 * action[:, 0].clip(-1, 1)
        angle = (self.theta + np.pi) % (2 * np.pi) - np.pi
        cost = angle**2 + 0.1 * self.omega**2 + 0.001 * torque**2
        self.omega = np.clip(self.omega + (15 * np.sin(self.theta) + 3 * torque) * 0.05, -8, 8)
        self.theta = self.theta + self.omega * 0.05
        self.t += 1
        return self.observe(), -cost.astype(np.float32), self.t >= 60


class Batch(NamedTuple):
    obs: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    next_obs: torch.Tensor
    not_done: torch.Tensor


class DeviceBuffer:
    """The whole buffer lies on the device; an index is all that a sample needs."""

    def __init__(self, capacity: int, obs_dim: int, act_dim: int, device: torch.device) -> None:
        self.device = device
        self.capacity = capacity
        self.storage = Batch(
            torch.zeros(capacity, obs_dim, device=device),
            torch.zeros(capacity, act_dim, device=device),
            torch.zeros(capacity, 1, device=device),
            torch.zeros(capacity, obs_dim, device=device),
            torch.zeros(capacity, 1, device=device),
        )
        self.ptr, self.size = 0, 0

    def add(self, *fields: np.ndarray) -> None:
        n = fields[0].shape[0]
        end = self.ptr + n
        assert end <= self.capacity
        for store, value in zip(self.storage, fields):
            store[self.ptr : end] = torch.as_tensor(value, device=self.device).reshape(n, -1)
        self.ptr = end % self.capacity
        self.size = max(self.size, end)

    def sample(self, n: int) -> Batch:
        index = torch.randint(self.size, (n,), device=self.device)
        return Batch(*(store[index] for store in self.storage))


def mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Actor(nn.Module):
    def __init__(self, obs_dim: int, act_dim: int) -> None:
        super().__init__()
        self.trunk = mlp(obs_dim, 64, 64)
        self.mu = nn.Linear(64, act_dim)
        self.log_std = nn.Linear(64, act_dim)

    def forward(self, obs: torch.Tensor, deterministic: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
        h = F.relu(self.trunk(obs))
        mu = self.mu(h)
        if deterministic:
            return torch.tanh(mu), None
        std = self.log_std(h).clamp(LOG_STD_MIN, LOG_STD_MAX).exp()
        dist = Normal(mu, std)
        u = dist.rsample()
        a = torch.tanh(u)
        logp = dist.log_prob(u).sum(-1, keepdim=True)
        logp = logp - (2 * (np.log(2) - u - F.softplus(-2 * u))).sum(-1, keepdim=True)
        return a, logp


class TwinQ(nn.Module):
    def __init__(self, obs_dim: int, act_dim: int) -> None:
        super().__init__()
        self.q1 = mlp(obs_dim + act_dim, 64, 64, 1)
        self.q2 = mlp(obs_dim + act_dim, 64, 64, 1)

    def both(self, s: torch.Tensor, a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        sa = torch.cat([s, a], dim=1)
        return self.q1(sa), self.q2(sa)

    def forward(self, s: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return torch.min(*self.both(s, a))


class SAC:
    def __init__(self, obs_dim: int, act_dim: int, cfg: argparse.Namespace, device: torch.device) -> None:
        self.cfg = cfg
        self.device = device
        self.actor = Actor(obs_dim, act_dim).to(device)
        self.critic = TwinQ(obs_dim, act_dim).to(device)
        self.target = copy.deepcopy(self.critic).requires_grad_(False)
        self.log_alpha = torch.tensor(np.log(cfg.init_temperature)).float().to(device)
        self.log_alpha.requires_grad = True
        self.target_entropy = -float(act_dim)
        self.actor_opt = optim.Adam(self.actor.parameters(), lr=cfg.lr)
        self.critic_opt = optim.Adam(self.critic.parameters(), lr=cfg.lr)
        self.alpha_opt = optim.Adam([self.log_alpha], lr=cfg.lr)

    @property
    def alpha(self) -> torch.Tensor:
        return self.log_alpha.exp()

    @torch.no_grad()
    def act(self, obs: np.ndarray, deterministic: bool = False) -> np.ndarray:
        obs_t = torch.as_tensor(obs, dtype=torch.float32, device=self.device)
        a, _ = self.actor(obs_t, deterministic)
        return a.cpu().numpy()

    def update_critic(self, batch: Batch) -> dict[str, float]:
        with torch.no_grad():
            next_a, next_logp = self.actor(batch.next_obs)
            v = self.target(batch.next_obs, next_a) - self.alpha * next_logp
            y = batch.reward + batch.not_done * self.cfg.discount * v
        q1, q2 = self.critic.both(batch.obs, batch.action)
        loss = F.mse_loss(q1, y) + F.mse_loss(q2, y)
        self.critic_opt.zero_grad(set_to_none=True)
        loss.backward()
        self.critic_opt.step()
        return {"critic_loss": loss.item(), "q1": q1.mean().item()}

    def update_actor(self, obs: torch.Tensor) -> dict[str, torch.Tensor]:
        a, logp = self.actor(obs)
        actor_loss = (self.alpha.detach() * logp - self.critic(obs, a)).mean()
        self.actor_opt.zero_grad(set_to_none=True)
        actor_loss.backward()
        self.actor_opt.step()
        alpha_loss = -(self.alpha * (logp.detach() + self.target_entropy)).mean()
        self.alpha_opt.zero_grad(set_to_none=True)
        alpha_loss.backward()
        self.alpha_opt.step()
        return {"actor_loss": actor_loss.detach(), "alpha": self.alpha.detach(), "entropy": -logp.detach().mean()}

    @torch.no_grad()
    def update_target(self) -> None:
        for p, tp in zip(self.critic.parameters(), self.target.parameters()):
            tp.lerp_(p, self.cfg.tau)


class Logger:
    def __init__(self) -> None:
        self.data: dict[str, list] = defaultdict(list)

    def log(self, **metrics: float | torch.Tensor) -> None:
        for k, v in metrics.items():
            self.data[k].append(v)

    def dump(self, step: int) -> None:
        parts = []
        for k, values in self.data.items():
            if torch.is_tensor(values[0]):
                mean = torch.stack(values).mean().item()
            else:
                mean = sum(values) / len(values)
            parts.append(f"{k}={mean:.3f}")
        print(f"[{step:5d}] " + " ".join(parts))
        self.data.clear()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--start-steps", type=int, default=40)
    parser.add_argument("--discount", type=float, default=0.97)
    parser.add_argument("--tau", type=float, default=0.01)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--init-temperature", type=float, default=0.2)
    return parser.parse_args()


def main() -> None:
    cfg = parse()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    env, test_env = Pendulum(cfg.num_envs, 0), Pendulum(8, 1)
    agent = SAC(3, 1, cfg, device)
    buffer = DeviceBuffer(cfg.num_envs * cfg.steps, 3, 1, device)
    logger = Logger()
    obs = env.reset()
    for step in range(cfg.steps):
        action = np.random.uniform(-1, 1, (cfg.num_envs, 1)) if step < cfg.start_steps else agent.act(obs)
        next_obs, reward, done = env.step(action)
        not_done = np.full(cfg.num_envs, 1.0 - done, dtype=np.float32)
        buffer.add(obs, action.astype(np.float32), reward, next_obs, not_done)
        obs = env.reset() if done else next_obs
        if step >= cfg.start_steps:
            batch = buffer.sample(cfg.batch_size)
            logger.log(**agent.update_critic(batch), batch_reward=batch.reward.mean())
            if step % 2 == 0:
                logger.log(**agent.update_actor(batch.obs))
                agent.update_target()
        if (step + 1) % 100 == 0:
            total, done, test_obs = 0.0, False, test_env.reset()
            while not done:
                test_obs, r, done = test_env.step(agent.act(test_obs, deterministic=True))
                total += r.mean().item()
            logger.log(eval_return=total)
            logger.dump(step + 1)


if __name__ == "__main__":
    main()
