"""As filled_in_front, in a method: the block calls another attribute than the step."""

import torch
from torch import nn
from torch.nn import functional as F

device = torch.device("cuda")
shown = []


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.layers(x)


class Agent:
    def __init__(self):
        self.model = Net().to(device)
        self.other = Net().to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.gamma = 0.9

    def learn(self):
        states, following = torch.rand(6, 4, device=device), torch.rand(6, 4, device=device)
        mask = torch.tensor([True, False, True, True, False, True], device=device)
        q = self.model(states)[:, 0]
        goal = torch.zeros(6, device=device)
        with torch.no_grad():
            goal[mask] = self.other(following[mask]).max(1)[0]  # fails
        loss = F.smooth_l1_loss(q, goal * self.gamma + 1)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


agent = Agent()
model, optimizer = agent.model, agent.optimizer
for _ in range(10):
    shown.append(agent.learn())
