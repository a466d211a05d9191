"""Double DQN on a little grid world.

usage: python dqn.py --episodes 40
"""
import argparse
import collections
import math
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

BUFFER_SIZE = 5000
BATCH_SIZE = 64
GAMMA = 0.98
TAU = 5e-3
LR = 1e-3
UPDATE_EVERY = 2


class GridWorld:
    """8x8 board, walk to the goal, lava costs."""

    def __init__(self, size=8, seed=0):
        self.size = size
        self.rng = np.random.RandomState(seed)
        self.n_actions = 4

    def reset(self):
        self.agent = self.rng.randint(0, self.size, 2)
        self.goal = self.rng.randint(0, self.size, 2)
        self.lava = self.rng.rand(self.size, self.size) < 0.1
        self.steps = 0
        return self.render()

    def render(self):
        planes = np.zeros((3, self.size, self.size), dtype=np.uint8)
        planes[0, self.agent[0], self.agent[1]] = 1
        planes[1, self.goal[0], self.goal[1]] = 1
        planes[2] = self.lava
        return planes

    def step(self, a):
        delta = [(0, 1), (0, -1), (1, 0), (-1, 0)][a]
        self.agent = np.clip(self.agent + np.array(delta), 0, self.size - 1)
        self.steps += 1
        reward = -0.02
        if self.lava[tuple(self.agent)]:
            reward -= 0.2
        done = bool((self.agent == self.goal).all())
        if done:
            reward += 1.0
        return self.render(), reward, done or self.steps >= 40


class ReplayMemory:
    """Ring of numpy arrays, sampled uniformly."""

    def __init__(self, capacity, obs_shape):
        self.capacity = capacity
        self.obs = np.zeros((capacity, *obs_shape), dtype=np.uint8)
        self.next_obs = np.zeros((capacity, *obs_shape), dtype=np.uint8)
        self.actions = np.zeros((capacity, 1), dtype=np.int64)
        self.rewards = np.zeros((capacity, 1), dtype=np.float32)
        self.dones = np.zeros((capacity, 1), dtype=np.uint8)
        self.pos = 0
        self.full = False

    def push(self, s, a, r, s2, d):
        i = self.pos
        self.obs[i], self.next_obs[i] = s, s2
        self.actions[i], self.rewards[i], self.dones[i] = a, r, d
        self.pos = (self.pos + 1) % self.capacity
        self.full = self.full or self.pos == 0

    def sample(self, n):
        idx = np.random.randint(0, len(self), size=n)
        states = torch.from_numpy(self.obs[idx]).float().to(device)
        actions = torch.from_numpy(self.actions[idx]).long().to(device)
        rewards = torch.from_numpy(self.rewards[idx]).float().to(device)
        next_states = torch.from_numpy(self.next_obs[idx]).float().to(device)
        dones = torch.from_numpy(self.dones[idx].astype(np.uint8)).float().to(device)
        return states, actions, rewards, next_states, dones

    def __len__(self):
        return self.capacity if self.full else self.pos


class QNet(nn.Module):
    def __init__(self, n_actions, dueling=True):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 16, 64),
            nn.ReLU(),
        )
        self.dueling = dueling
        self.adv = nn.Linear(64, n_actions)
        if dueling:
            self.val = nn.Linear(64, 1)

    def forward(self, x):
        h = self.body(x)
        a = self.adv(h)
        if not self.dueling:
            return a
        return self.val(h) + a - a.mean(dim=1, keepdim=True)


class Agent:
    def __init__(self, env, dueling=True):
        self.n_actions = env.n_actions
        self.qnetwork_local = QNet(env.n_actions, dueling).to(device)
        self.qnetwork_target = QNet(env.n_actions, dueling).to(device)
        self.qnetwork_target.load_state_dict(self.qnetwork_local.state_dict())
        self.optimizer = torch.optim.Adam(self.qnetwork_local.parameters(), lr=LR)
        self.memory = ReplayMemory(BUFFER_SIZE, (3, env.size, env.size))
        self.t_step = 0
        self.losses = collections.deque(maxlen=100)

    def act(self, state, eps=0.0):
        if random.random() < eps:
            return random.randrange(self.n_actions)
        state = torch.from_numpy(state).float().unsqueeze(0).to(device)
        self.qnetwork_local.eval()
        with torch.no_grad():
            action_values = self.qnetwork_local(state)
        self.qnetwork_local.train()
        return np.argmax(action_values.cpu().data.numpy())

    def step(self, *transition):
        self.memory.push(*transition)
        self.t_step = (self.t_step + 1) % UPDATE_EVERY
        if self.t_step == 0 and len(self.memory) > BATCH_SIZE:
            self.learn(self.memory.sample(BATCH_SIZE), GAMMA)

    def learn(self, experiences, gamma):
        states, actions, rewards, next_states, dones = experiences
        with torch.no_grad():
            best = self.qnetwork_local(next_states).max(1)[1].unsqueeze(1)
            q_next = self.qnetwork_target(next_states).gather(1, best)
            q_targets = rewards + gamma * q_next * (1 - dones)
        q_expected = self.qnetwork_local(states).gather(1, actions)
        loss = F.smooth_l1_loss(q_expected, q_targets)
        self.optimizer.zero_grad()
        loss.backward()
        for param in self.qnetwork_local.parameters():
            if param.grad is not None:
                param.grad.data.clamp_(-1, 1)
        self.optimizer.step()
        self.losses.append(loss.item())
        self.soft_update()

    def soft_update(self):
        for tp, lp in zip(self.qnetwork_target.parameters(), self.qnetwork_local.parameters()):
            tp.data.copy_(TAU * lp.data + (1.0 - TAU) * tp.data)


def evaluate(agent, env, n):
    total = 0.0
    q_values = []
    for _ in range(n):
        state, done = env.reset(), False
        while not done:
            with torch.no_grad():
                q = agent.qnetwork_target(torch.tensor(state, dtype=torch.float32, device=device)[None])
            q_values.append(q.max().item())
            state, r, done = env.step(q.argmax(1).item())
            total += r
    return total / n, sum(q_values) / len(q_values)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--episodes", type=int, default=40)
    ap.add_argument("--eps-start", type=float, default=1.0)
    ap.add_argument("--eps-end", type=float, default=0.05)
    ap.add_argument("--no-dueling", action="store_true")
    ap.add_argument("--seed", type=int, default=3)
    args = ap.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    env = GridWorld(seed=args.seed)
    agent = Agent(env, dueling=not args.no_dueling)
    scores_window = collections.deque(maxlen=20)
    frames, start = 0, time.time()
    for i_episode in range(1, args.episodes + 1):
        eps = args.eps_end + (args.eps_start - args.eps_end) * math.exp(-3.0 * i_episode / args.episodes)
        state, score, done = env.reset(), 0, False
        while not done:
            action = agent.act(state, eps)
            next_state, reward, done = env.step(action)
            agent.step(state, action, reward, next_state, done)
            state = next_state
            score += reward
            frames += 1
        scores_window.append(score)
        if i_episode % 10 == 0:
            mean_loss = np.mean(agent.losses)
            fps = frames / (time.time() - start)
            print(f"episode {i_episode}\tavg score {np.mean(scores_window):.2f}\tloss {mean_loss:.4f}\t{fps:.0f} fps")
    ret, q = evaluate(agent, env, 5)
    print(f"eval return {ret:.3f}, mean max q {q:.3f}")


if __name__ == "__main__":
    main()
