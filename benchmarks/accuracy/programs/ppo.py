"""Proximal policy optimisation on a toy point-mass environment, actor and critic in one network."""

from __future__ import annotations

import argparse
import time
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical


class PointEnv:
    """Walk to the origin of a plane; numpy only, like most environments."""

    action_dim = 5
    moves = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], dtype=np.float32) * 0.1

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> np.ndarray:
        self.position = self.rng.uniform(-1, 1, 2).astype(np.float32)
        self.t = 0
        return self._obs()

    def step(self, action: int):
        self.position = self.position + self.moves[action]
        self.t += 1
        distance = np.linalg.norm(self.position)
        done = bool(distance < 0.1) or self.t >= 40
        reward = -distance.item() + (1.0 if distance < 0.1 else 0.0)
        return self._obs(), reward, done, {"distance": float(distance)}

    def _obs(self) -> np.ndarray:
        return np.concatenate([self.position, [self.t / 40.0, 1.0]]).astype(np.float32)


class VectorEnv:
    def __init__(self, n: int, seed: int) -> None:
        self.envs = [PointEnv(seed + i) for i in range(n)]
        self.returns = np.zeros(n)
        self.finished: deque[float] = deque(maxlen=50)

    def reset(self) -> np.ndarray:
        return np.stack([env.reset() for env in self.envs])

    def step(self, actions: np.ndarray):
        observations, rewards, dones = [], [], []
        for i, (env, action) in enumerate(zip(self.envs, actions)):
            obs, reward, done, _ = env.step(int(action))
            self.returns[i] += reward
            if done:
                self.finished.append(self.returns[i].item())
                self.returns[i] = 0.0
                obs = env.reset()
            observations.append(obs)
            rewards.append(reward)
            dones.append(done)
        return np.stack(observations), np.array(rewards, dtype=np.float32), np.array(dones, dtype=np.float32)


def layer_init(layer: nn.Linear, std: float = np.sqrt(2)) -> nn.Linear:
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, 0.0)
    return layer


class Agent(nn.Module):
    def __init__(self, obs_dim: int, n_actions: int) -> None:
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(obs_dim, 64)), nn.Tanh(), layer_init(nn.Linear(64, 1), std=1.0))
        self.actor = nn.Sequential(
            layer_init(nn.Linear(obs_dim, 64)), nn.Tanh(), layer_init(nn.Linear(64, n_actions), std=0.01)
        )

    def get_value(self, x: torch.Tensor) -> torch.Tensor:
        return self.critic(x)

    def get_action_and_value(self, x: torch.Tensor, action: torch.Tensor | None = None):
        logits = self.actor(x)
        probs = Categorical(logits=logits)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--num-steps", type=int, default=32)
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--update-epochs", type=int, default=3)
    parser.add_argument("--num-minibatches", type=int, default=4)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--gae-lambda", type=float, default=0.95)
    parser.add_argument("--clip-coef", type=float, default=0.2)
    parser.add_argument("--target-kl", type=float, default=0.5)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    np.random.seed(1)
    torch.manual_seed(1)

    envs = VectorEnv(args.num_envs, seed=1)
    agent = Agent(4, PointEnv.action_dim).to(device)
    optimizer = optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)

    obs = torch.zeros((args.num_steps, args.num_envs, 4)).to(device)
    actions = torch.zeros((args.num_steps, args.num_envs)).to(device)
    logprobs = torch.zeros((args.num_steps, args.num_envs)).to(device)
    rewards = torch.zeros((args.num_steps, args.num_envs)).to(device)
    dones = torch.zeros((args.num_steps, args.num_envs)).to(device)
    values = torch.zeros((args.num_steps, args.num_envs)).to(device)

    next_obs = torch.Tensor(envs.reset()).to(device)
    next_done = torch.zeros(args.num_envs).to(device)
    start_time = time.time()
    global_step = 0
    for update in range(1, args.updates + 1):
        optimizer.param_groups[0]["lr"] = (1.0 - (update - 1.0) / args.updates) * 2.5e-4
        for step in range(args.num_steps):
            global_step += args.num_envs
            obs[step] = next_obs
            dones[step] = next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
                values[step] = value.flatten()
            actions[step] = action
            logprobs[step] = logprob
            next_obs_np, reward, done = envs.step(action.cpu().numpy())
            rewards[step] = torch.tensor(reward).to(device).view(-1)
            next_obs, next_done = torch.Tensor(next_obs_np).to(device), torch.Tensor(done).to(device)

        with torch.no_grad():
            next_value = agent.get_value(next_obs).reshape(1, -1)
            advantages = torch.zeros_like(rewards).to(device)
            lastgaelam = 0
            for t in reversed(range(args.num_steps)):
                if t == args.num_steps - 1:
                    nextnonterminal = 1.0 - next_done
                    nextvalues = next_value
                else:
                    nextnonterminal = 1.0 - dones[t + 1]
                    nextvalues = values[t + 1]
                delta = rewards[t] + args.gamma * nextvalues * nextnonterminal - values[t]
                advantages[t] = lastgaelam = delta + args.gamma * args.gae_lambda * nextnonterminal * lastgaelam
            returns = advantages + values

        b_obs, b_logprobs = obs.reshape(-1, 4), logprobs.reshape(-1)
        b_actions, b_advantages, b_returns = actions.reshape(-1), advantages.reshape(-1), returns.reshape(-1)
        batch_size = args.num_envs * args.num_steps
        minibatch_size = batch_size // args.num_minibatches
        b_inds = np.arange(batch_size)
        clipfracs = []
        for _ in range(args.update_epochs):
            np.random.shuffle(b_inds)
            for start in range(0, batch_size, minibatch_size):
                mb_inds = b_inds[start : start + minibatch_size]
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb_inds], b_actions.long()[mb_inds])
                logratio = newlogprob - b_logprobs[mb_inds]
                ratio = logratio.exp()
                with torch.no_grad():
                    approx_kl = ((ratio - 1) - logratio).mean()
                    clipfracs += [((ratio - 1.0).abs() > args.clip_coef).float().mean().item()]
                mb_adv = b_advantages[mb_inds]
                mb_adv = (mb_adv - mb_adv.mean()) / (mb_adv.std() + 1e-8)
                pg_loss = torch.max(-mb_adv * ratio, -mb_adv * torch.clamp(ratio, 0.8, 1.2)).mean()
                v_loss = 0.5 * ((newvalue.view(-1) - b_returns[mb_inds]) ** 2).mean()
                loss = pg_loss - 0.01 * entropy.mean() + 0.5 * v_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
            if approx_kl > args.target_kl:
                break

        y_pred, y_true = values.reshape(-1).cpu().numpy(), b_returns.cpu().numpy()
        var_y = np.var(y_true)
        explained_var = np.nan if var_y == 0 else 1 - np.var(y_true - y_pred) / var_y
        mean_return = float(np.mean(envs.finished)) if envs.finished else float("nan")
        sps = int(global_step / (time.time() - start_time))
        print(
            f"update {update} return {mean_return:.2f} pg {pg_loss.item():.4f} v {v_loss.item():.4f} "
            f"kl {approx_kl.item():.4f} clip {np.mean(clipfracs):.3f} ev {explained_var:.2f} sps {sps}"
        )


if __name__ == "__main__":
    main()
