"""An agent makes tensors of arrays that it draws, with constructors of types; a target follows the model."""

import random

import numpy as np
import torch
from torch import nn

device = torch.device("cuda")
shown = []


class Q(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 8), nn.Linear(8, 1)

    def forward(self, x, u):
        return self.b(torch.relu(self.a(torch.cat([x, u], 1))))


class Agent:
    def __init__(self):
        self.network, self.model, self.other = nn.Linear(4, 1).to(device), Q().to(device), Q().to(device)
        self.other.load_state_dict(self.model.state_dict())
        self.actor_optimizer = torch.optim.Adam(self.network.parameters(), lr=0.01)
        self.critic_optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.memory = []
        self.tau = 0.05

    def sample(self, n):
        few = random.sample(self.memory, n)
        return map(np.stack, zip(*few, strict=False))

    def learn(self):
        states, actions, rewards, nexts = self.sample(8)
        states = torch.FloatTensor(states).to(device)
        actions = torch.FloatTensor(actions).to(device)
        rewards = torch.FloatTensor(rewards).to(device).view(-1, 1)
        nexts = torch.FloatTensor(nexts).to(device)
        with torch.no_grad():
            target = rewards + 0.9 * self.other(nexts, self.network(nexts))
        critic_loss = nn.functional.mse_loss(self.model(states, actions), target)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()
        actor_loss = -self.model(states, self.network(states)).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()
        self.follow(self.model, self.other)
        return critic_loss.item()

    def follow(self, model, target):
        for p, t in zip(model.parameters(), target.parameters(), strict=False):
            t.data.copy_(self.tau * p.data + (1 - self.tau) * t.data)


random.seed(0)
np.random.seed(0)
agent = Agent()
model, optimizer = agent.model, agent.critic_optimizer
for _step in range(24):
    agent.memory.append(
        (
            np.random.rand(4).astype(np.float32),
            np.random.rand(1).astype(np.float32),
            1.0,
            np.random.rand(4).astype(np.float32),
        )
    )
    if len(agent.memory) > 10:
        shown.append(agent.learn())
