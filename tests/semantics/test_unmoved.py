"""Modules that a file makes and moves nowhere are on the CPU; all others may be anywhere."""

from __future__ import annotations

from pathlib import Path

from tests.semantics.notation import Case, check, projects

UNMOVED = """
# file: parts.py
import math
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(size))
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x) * self.scale / math.sqrt(2)

class Net(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.block = Block(size)

    def forward(self, x):
        return self.block(x), self.block.scale

class Moving(Net):
    def __init__(self):
        super().__init__()
        self.cuda()

class Helped(nn.Module):
    def forward(self, x):
        return place(x)

class Foreign(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = other.Layer()

    def forward(self, x):
        return self.linear(x)

class Penalty:
    def __call__(self, scores: torch.Tensor):
        return scores * 2

class Scaled(nn.Module):
    def forward(self, x):
        penalty = Penalty()
        return penalty(nn.Linear(4, 4)(x))      # -> model float

def place(x):
    return x * torch.ones(3)

# file: evaluate.py
import torch
from parts import Block, Moving, Net
import helpers

def evaluate(loader, path):
    model = Block(4)
    model.load_state_dict(torch.load(path))
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            model(x)                    # -> cpu float
            model(x).argmax(1) == y     # -> cpu bool
    next(model.parameters())            # -> cpu float parameter
    return model.state_dict()           # -> dict[cpu]

def compiled(x):
    model = torch.compile(Block(4))
    model.compile()
    model(x)                            # -> cpu float

def two_results(x):
    model = Net()
    model(x)                            # -> (cpu float, cpu float parameter)

def of_values_on_the_gpu(x):
    model = Block(4)
    model(torch.ones(4, device="cuda")) # -> cuda float

def of_moved_values(x):
    model = Block(4)
    x = x.cuda()
    model(x)                            # -> model float

def moved(x):
    model = Block(4)
    model.to("cuda")
    model(x)                            # -> model float

def moved_at_once(x):
    model = Block(4).cuda()
    model(x)                            # -> model float

def moved_elsewhere(x):
    model = Block(4)
    helpers.prepare(model)
    model(x)                            # -> model float

def kept(self, x):
    model = Block(4)
    self.model = model
    model(x)                            # -> model float

def bound_again(x, wrap):
    model = Block(4)
    model = wrap(model)
    other = Block(4)
    if wrap:
        other = Block(5)
    other(x)                            # -> model float

def on_a_chosen_device(x):
    with torch.device("cuda"):
        model = Block(4)
    model(x)                            # -> model float

def that_moves_itself(x):
    model = Moving()
    model(x)                            # -> (model float, model float parameter)

def given(x):
    return run(Block(4), x)

def run(model, x):
    return model(x)                     # -> model float

# file: agents.py
import copy
import torch
from parts import Block

class Agent:
    def __init__(self):
        self.actor = Block(4)
        self.target = copy.deepcopy(self.actor)
        self.critic = Block(4)
        self.inner = Block(4)
        self.optimizer = torch.optim.Adam(self.actor.parameters())

    def act(self, state):
        self.critic(state)                      # -> model float
        self.inner(state)                       # -> model float
        return self.actor(torch.FloatTensor(state))     # -> cpu float

    def parts(self):
        return [self.critic]

class Mover:
    def __init__(self):
        self.actor = Block(4)
        self.actor.to("cuda")

    def act(self, state):
        return self.actor(state)                # -> model float

class Base:
    def __init__(self):
        self.policy = Block(4)

    def act(self, state):
        return self.policy(state)               # -> model float

class Derived(Base):
    def place(self, device):
        self.policy.to(device)

# file: driver.py
from agents import Agent
agent = Agent()
agent.inner.cuda()

# file: script.py
import torch
from parts import Block
if __name__ == "__main__":
    net = Block(4)
    net(torch.rand(2, 4))               # -> cpu float

# file: shared.py
import torch
from parts import Block
net = Block(4)
net(torch.rand(2, 4))                   # -> model float

# file: moves.py
from shared import net
net.cuda()
"""

DEFAULT_DEVICE = """
# file: parts.py
from torch import nn

class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x)

# file: settings.py
import torch
torch.set_default_device("cuda")

# file: evaluate.py
from parts import Block

def evaluate(x):
    model = Block(4)
    return model(x)                     # -> model float
"""


@projects(UNMOVED)
def test_a_new_module_is_on_the_cpu_until_something_may_move_it(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@projects(DEFAULT_DEVICE)
def test_a_project_that_sets_a_default_device_may_make_modules_there(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


OWN_METHODS = """
# file: main.py
import torch
from torch import nn

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(3))
    def sample(self, n):
        return self.mean + torch.randn(n, 3, device=self.mean.device)
    def log_prob(self, x):
        return (x - self.mean) ** 2

class Placed(Policy):
    def place(self, device):
        return self.to(device)

def learn():
    policy = Policy()
    x = policy.sample(4)    # -> cpu float 2
    policy.log_prob(x)      # -> cpu float 2

def learn_elsewhere(device):
    policy = Placed()
    policy.place(device)
    policy.sample(4)        # -> model float 2
"""


@projects(OWN_METHODS)
def test_methods_of_a_module_of_the_project(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
