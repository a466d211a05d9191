"""How often a line runs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from perflint.findings import Heat
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.semantics.notation import PRELUDE, Case, check, table

LOOPS = """
import time
from torch.utils.data import DataLoader
x = torch.zeros(3)                      # cold

class Net(nn.Module):
    scale = torch.ones(3)               # cold
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)       # cold
        for _ in range(3):
            self.fc.weight.sum().item() # cold
    def forward(self, x):
        y = self.fc(x)                  # hot
        for block in [1]:
            y = y + 1                   # hot
        if y.sum() > 0:                 # hot
            y = y * 2                   # hot
        self._check(y)                  # hot
        return self.helper(y)           # hot
    def helper(self, x):
        return x.max().item()           # hot
    def _check(self, x):
        x.sum().item()                  # hot
    def _unused(self, x):
        x.sum().item()                  # warm
    def public(self, x):
        x.sum().item()                  # warm
    def reset_parameters(self):
        self.fc.weight.norm().item()    # cold
    def extra_repr(self):
        return str(self.fc.weight)      # cold
    def state_dict(self):
        return self.fc.weight.cpu()     # cold
    def __repr__(self):
        return str(self.fc.weight)      # cold

def forward_step(batches, model):
    return model(next(batches)).sum().item()    # hot

def train_step(model, batch):
    return model(batch)                 # hot

def forward_hook(module, args):
    return args                         # warm

def llama_attention_forward(self, hidden_states):
    return hidden_states.max().item()   # hot

def get_attention_forward(kind):
    return kind                         # warm

class LossMetrics:
    def update_loss(self, loss):
        self.loss += loss.item()        # hot
    def summary(self):
        return self.loss                # warm

class Lion(torch.optim.Optimizer):
    def step(self, closure=None):
        for group in self.param_groups:
            group.norm().item()         # hot
    def state(self):
        return self.param_groups        # warm

class Consumer:
    def step(self, batch):
        loss = self.model(batch).loss
        self.booster.backward(loss)
        return loss.item()              # hot

def sampled(model, diffusion, ids, n):
    for _ in range(n):
        ids = diffusion.ema_model(model(ids))   # hot
        if ids.max() > 3:               # hot
            break
    for _ in range(n):
        name = diffusion.get_model(n)   # warm
    for _ in range(n):
        ids = model.shift(ids)          # warm
    return ids

class Schedule:
    def step(self, metric):
        return metric.item()            # warm

class Table:
    def update_rows(self, rows):
        return rows                     # warm

def flags(model, loader, optimizer, asked):
    for step, x in enumerate(loader):
        is_log_step = asked and step % 100 == 0
        is_often = step % 2 == 0
        is_changed = step % 100 == 0
        is_changed = is_changed or x is None
        is_first, is_last = step % 100 == 0, False
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        if is_log_step:
            loss.item()                 # cold
        if not is_log_step:
            loss.item()                 # hot
        if asked and is_log_step:
            loss.item()                 # cold
        if asked or is_log_step:
            loss.item()                 # hot
        if is_often:
            loss.item()                 # hot
        if is_changed:
            loss.item()                 # hot
        if is_first:
            loss.item()                 # hot
        if not is_log_step:
            continue
        loss.item()                     # cold

def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer):
    model.train()                       # warm
    total = 0.0                         # warm
    for epoch in range(10):
        start = time.time()             # warm
        for step, (x, y) in enumerate(loader):
            x = x.cuda()                # hot
            loss = F.mse_loss(model(x), y)      # hot
            optimizer.zero_grad()       # hot
            loss.backward()             # hot
            optimizer.step()            # hot
            total += loss.item()        # hot
            if step % 100 == 0:
                print(loss)             # cold
            if (step + 1) % 100 == 0 or step == 3:
                print(loss)             # cold
            if step % 4 == 0:
                pass
            else:
                print(loss)             # hot
            log(loss)                   # hot
            for metric in [1, 2]:
                metric                  # hot
        print(loss.item())              # warm
    return total                        # warm
def log(loss):
    print(loss.item())                  # hot

def main():
    model = nn.Linear(3, 3).cuda()      # cold
    optimizer = torch.optim.Adam(model.parameters())    # cold
    loader = DataLoader(data)           # cold
    for epoch in range(10):
        print(epoch)                    # cold
        for x, y in loader:
            loss = model(x).sum()       # hot
            loss.backward()             # hot
        print(loss.item())              # cold
        evaluate(model, loader)         # cold
    print(loss)                         # cold
def evaluate(model, loader):
    correct = 0                         # warm
    for x, y in loader:
        correct += (model(x) == y).sum().item() # hot
    print(correct)                      # warm
if __name__ == "__main__":
    main()                              # cold

model = nn.Linear(3, 3)
data = torch.zeros(9, 3, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(1000):
    loss = model(data).sum()            # hot
    loss.backward()                     # hot
    optimizer.step()                    # hot
    print(loss.item())                  # hot
print(loss.item())                      # cold

model = nn.Linear(3, 3)
tokens = torch.zeros(1, 3, device="cuda")
while tokens.shape[1] < 100:            # hot
    logits = model(tokens)              # hot
    tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], 1)    # hot
    if tokens[0, -1] == 2:              # hot
        break                           # cold

def generate(model: nn.Module, tokens: Tensor, n: int):
    for _ in range(n):
        logits = model(tokens)          # hot
        if logits.argmax() == 2:        # hot
            return tokens               # warm
    return tokens                       # warm

@torch.no_grad()
def sample(unet: nn.Module, scheduler, x: Tensor):
    for t in scheduler.timesteps:
        noise = unet(x, t)              # hot
        x = scheduler.step(noise, t, x) # hot
    return x                            # warm

def rollout(policy: nn.Module, env):
    state = env.reset()                 # warm
    while True:
        action = policy(state)          # hot
        state, done = env.step(action.item())   # hot
        if done:
            break                       # warm

def count(xs):
    for x in xs:
        print(x)                        # warm

def setup_model(loader: DataLoader):
    for x in loader:
        x.sum()                         # hot

loader = torch.utils.data.DataLoader(data)
for x, y in loader:
    x.cuda()                            # hot
else:
    print(x)                            # cold
[x.sum() for x, y in loader]            # cold
"""

LAST_BATCH = """
def train(model: nn.Module, loader, layers, batches):
    for i, x in enumerate(loader):
        loss = model(x).sum()
        loss.backward()
        if i == len(loader) - 1:
            loss.item()                     # cold
        else:
            loss.item()                     # hot
        if i + 1 == len(loader) or loss.isnan():
            loss.item()                     # cold
        if i + 1 >= len(loader):
            loss.item()                     # cold
        if i != len(loader) - 1:
            loss.item()                     # hot
        if i < len(loader) - 1:
            loss.item()                     # hot
        for k, layer in enumerate(layers):
            if k == len(layers) - 1:
                layer(x).sum().item()       # hot
        if i == len(batches) - 1:
            loss.item()                     # hot
    bar = tqdm(enumerate(loader), total=len(loader))
    for i, x in bar:
        loss = model(x).sum()
        loss.backward()
        if i == len(bar) - 1:
            loss.item()                     # cold
        if i == len(loader) - 1:
            loss.item()                     # cold
        if i != len(bar) - 1:
            loss.item()                     # hot
"""


ON_BY_DEFAULT = """
def train(model, loader, optimizer, verbose=True, debug=False, quiet=False, pytest=False):
    for x, y in loader:
        loss = model(x).sum()
        loss.backward()                 # hot
        optimizer.step()
        if verbose:
            print(loss.item())          # hot
        if debug:
            print(loss.item())          # cold
        if pytest:
            print(loss.item())          # cold
        if not verbose:
            continue
        print(loss.item())              # hot

def train(model, loader, optimizer, verbose):
    for x, y in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        if verbose:
            print(loss.item())          # cold

class Trainer:
    def __init__(self, model, optimizer, verbose=True, debug=False):
        self.model, self.optimizer = model, optimizer
        self.verbose, self.debug = verbose, debug
    def fit(self, loader):
        for x, y in loader:
            loss = self.model(x).sum()
            loss.backward()
            self.optimizer.step()
            if self.verbose:
                print(loss.item())      # hot
            if self.debug:
                print(loss.item())      # cold
"""


@table(ON_BY_DEFAULT)
def test_flags_that_are_on_by_default(case: Case) -> None:
    check(case)


GUARDS = """
def train(model: nn.Module, loader, optimizer, log_every=100, verbose=False):
    for i, (x, y) in enumerate(loader):
        loss = model(x).sum()
        loss.backward()                 # hot
        if i % log_every == 0:
            print(loss.item())          # cold
        if i % log_every:
            pass
        if not i % log_every:
            print(loss.item())          # cold
        if i and i % log_every == 0:
            print(loss.item())          # cold
        if verbose:
            print(loss.item())          # cold
        if i > 3:
            print(loss.item())          # hot
        if loss.isnan():
            raise ValueError(loss)      # cold
        if loss > 3:
            print(loss)                 # cold
        if loss > 3:
            print(loss)                 # hot
            total += loss.item()
        if i > 3:
            print(loss)                 # hot
        try:
            optimizer.step()            # hot
        except RuntimeError:
            print(loss)                 # cold
        assert loss > 0, loss.item()    # hot
        if torch.jit.is_tracing():
            print(loss)                 # cold
        if (i + 1) % 4 == 0:
            optimizer.step()            # hot
            optimizer.zero_grad()       # hot
            if i % 100 == 0:
                print(loss.item())      # cold
        if (i + 1) % 10 == 0:
            scheduler.step()            # cold
        if i % 5 == 0:
            print(loss)                 # hot
        message = f"{loss}" if i % 10 == 0 else None    # hot

def train(model: nn.Module, loader):
    for i, (x, y) in enumerate(loader):
        loss = model(x).sum()           # hot
        if i % 100 != 0:
            continue
        print(loss.item())              # cold

def log_metrics(loss, step, should_log=False):
    if not should_log:
        return                          # hot
    print(loss.item())                  # cold
def train(model: nn.Module, loader):
    for i, (x, y) in enumerate(loader):
        log_metrics(model(x).sum(), i)

def report(loss, step):
    if step % 100:
        return
    print(loss.item())                  # cold
def train(model: nn.Module, loader):
    for i, (x, y) in enumerate(loader):
        report(model(x).sum(), i)       # hot

class Trainer:
    def training_step(self, batch):
        loss = self.model(batch).sum()  # hot
        self.log("loss", loss.item())   # hot
        if self.global_step % 50 == 0:
            self.snapshot(loss)         # cold
        return loss
    def snapshot(self, loss):
        print(loss.item())              # warm
    def _dump(self, x):
        print(x.item())                 # cold
    def save_checkpoint(self):
        self._dump(self.loss)           # cold
    def on_train_epoch_end(self):
        print(self.loss.item())         # cold
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())      # cold

def is_done(x):
    return x.item()                     # hot
def decode(model: nn.Module, x):
    while not is_done(x):
        x = model(x)                    # hot

def outer(x):
    def inner(y):
        return y.item()                 # hot
    model = nn.Linear(3, 3)
    for _ in range(3):
        model(x)
        inner(x)                        # hot

def test_forward():
    model = nn.Linear(3, 3)
    out = model(torch.zeros(3))         # cold
    assert out.sum().item() > 0         # cold

class TestNet:
    def test_it(self):
        print(torch.zeros(3).item())    # cold
    def setup_method(self):
        torch.zeros(3).item()           # cold

def load_weights(model):
    for name, p in model.named_parameters():
        p.data.copy_(torch.zeros(3))    # cold

class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.x = torch.zeros(3)         # cold
    def __getitem__(self, i):
        return self.x[i].item()         # warm

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.item()                 # hot
    @staticmethod
    def backward(ctx, g):
        return g.item()                 # hot

def closure_step(optimizer, model, x):
    def closure():
        loss = model(x).sum()
        loss.backward()
        return loss.item()              # hot
    def hook(module, inputs, output):
        output.sum().item()             # hot
    model.register_forward_hook(hook)
    for _ in range(3):
        optimizer.step(closure)         # hot

@property
def lonely(self):
    return self.x.item()                # warm

lambda x: x.item()                      # cold

def parse_args():
    return torch.zeros(3)               # cold

def _private_helper(x):
    return x.item()                     # cold
def _init_all(x):
    _private_helper(x)                  # cold

def public_helper(x):
    return x.item()                     # warm
def build_all(x):
    public_helper(x)                    # cold

def _both(x):
    return x.item()                     # hot
def __init__(x):
    _both(x)
def forward(x):
    _both(x)                            # hot

def rec(model: nn.Module, x, n):
    y = model(x)                        # warm
    return rec(model, y, n - 1)         # warm
"""

WORK = """
def several_optimizers(model: nn.Module, data, optimizers, parts):
    x = next(data)                          # warm
    while True:
        for part in range(parts):
            loss = model(x).sum()
            loss.backward()                 # hot
            x = next(data)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)     # hot
        for opt in optimizers:
            opt.step()                      # hot
        print(norm.item())                  # hot

def epochs_of_two(model: nn.Module, loader, opt):
    for epoch in range(10):
        for x in range(10):
            loss = model(loader[x]).sum()
            loss.backward()                 # hot
            opt.step()                      # hot
        print(loss)                         # warm

def train(model: nn.Module, loader, accumulate):
    for i, (x, y) in enumerate(loader):
        loss = model(x).sum()
        loss.backward()                 # hot
        if (i + 1) % accumulate != 0:
            continue
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)     # hot
        scaler.step(optimizer)          # hot
        if i % 100 != 0:
            continue
        print(norm)                     # cold

def alternate(generator: nn.Module, critic: nn.Module, loader, every):
    for i, x in enumerate(loader):
        critic(x).mean().backward()
        optimizer_c.step()              # hot
        if i % every == 0:
            loss = critic(generator(x)).mean()     # hot
            loss.backward()             # hot
            optimizer_g.step()          # hot
        if i % every == 0:
            show(generator(x))          # cold

def update(model: nn.Module, x):
    loss = model(x).sum()               # hot
    loss.backward()                     # hot
    optimizer.step()                    # hot
    return loss
def train_in_place(model, x):
    for step in range(100):
        loss = update(model, x)         # hot
        print(loss.item())              # hot

def one_epoch(model: nn.Module, loader):
    for x in loader:
        model(x).sum().backward()       # hot
    print(x)                            # warm
def train_by_epochs(model, loader):
    for epoch in range(100):
        one_epoch(model, loader)        # warm
        print(epoch)                    # warm

def train_accumulated(model: nn.Module, micro_batches):
    while True:
        for x in micro_batches:
            model(x).sum().backward()   # hot
        optimizer.step()                # hot
        print(x)                        # hot

def decode(model: nn.Module, x):
    for _ in range(9):
        x = model(x)                    # hot
    return x
def decode_all(model: nn.Module, prompts):
    for prompt in prompts:
        out = decode(model, prompt)     # hot
        score = model(out).mean()       # hot
        print(out)                      # hot

class LM(nn.Module):
    def generate(self, x):
        for _ in range(9):
            x = self(x)                 # hot
        return x
def generate_all(model: LM, prompts):
    for prompt in prompts:
        print(model.generate(prompt))   # hot

def one_batch(model: nn.Module, x):
    return model(x)                     # warm
def epochs(model: nn.Module, loader):
    for epoch in range(9):
        one_epoch(model, loader)        # warm
        print(one_batch(model, loader)) # warm
def one_epoch(model: nn.Module, loader):
    for x in loader:
        model(x).sum().backward()       # hot

def play(agent_step, env):
    for t in range(100):
        env.step(t)                     # warm

def repeat(model, n):
    for _ in range(n):
        recurse(model, n)               # warm
def recurse(model, n):
    recurse(model, n - 1)

class Net(nn.Module):
    def build_pyramid(self, x):
        return x.max().item()           # hot
    def build_layers(self):
        print(torch.zeros(3))           # cold
    def _init_cache(self, x):
        print(x)                        # cold
    def forward(self, x):
        if self.cache is None:
            self._init_cache(x)
        return self.build_pyramid(x)
    def decode(self, x):
        raise NotImplementedError(x.item())     # cold

class Loss:
    def update(self, x):
        raise NotImplementedError
class Mean(Loss):
    def update(self, x):
        x.item()                        # hot
class Other:
    def update(self, x):
        x.item()                        # warm
def evaluate(model: nn.Module, loader, metric: Loss):
    for x in loader:
        model(x)
        metric.update(x)                # hot

class Hits:
    def update(self, x):
        x.item()                        # hot
class Misses:
    def update(self, x):
        x.item()                        # hot
class Neither:
    def update(self, x):
        x.item()                        # warm
def evaluate_all(model: nn.Module, loader):
    metrics = [Hits(), Misses()]
    for x in loader:
        model(x)
        for metric in metrics:
            metric.update(x)            # hot

class Printer:
    def on_loss(self, loss):
        print(loss.item())              # hot
    def on_stop(self, loss):
        print(loss.item())              # warm
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        print(outputs)                  # hot
    def on_epoch_end(self, outputs):
        print(outputs)                  # warm
class Loop:
    def call(self, hook, *args):
        for callback in self.callbacks:
            getattr(callback, hook)(*args)
    def run(self, model: nn.Module, loader):
        for x in loader:
            model(x)
            self.call("on_loss", x)     # hot
        self.call("on_stop", x)         # warm

def block(x):
    return x.item()                     # hot
class Deep(nn.Module):
    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(block, x)
def collate(x):
    return x.item()                     # warm
loader = torch.utils.data.DataLoader([], collate_fn=collate)
"""

EPOCHS = """
class Net(nn.Module):
    def forward(self, x):
        return self.decoder(x)
    def decode(self, z):
        return self.decoder(z)
def train(model: Net, loader, optimizer):
    print(model.w.sum().item())         # warm
    for i, x in enumerate(loader):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()                # hot
        if i % 100 == 0:
            print(loss.item())          # cold
def main(model: Net, loader, optimizer, z):
    for epoch in range(10):
        train(model, loader, optimizer)
        print(model.decode(z).max().item())     # cold

def full_batch(model: nn.Module, x, optimizer):
    for epoch in range(10):
        loss = model(x).sum()           # hot
        loss.backward()                 # hot
        optimizer.step()                # hot
        evaluate(model, x)              # hot
def evaluate(model: nn.Module, loader):
    for x in loader:
        model(x)                        # hot

def play(policy: nn.Module, env, state):
    for step in range(100):
        state = env.step(policy(state)) # hot
        update(policy, env)             # hot
def update(policy: nn.Module, batches):
    for x in batches:
        policy(x).sum().backward()
        optimizer.step()                # hot

def run(model: nn.Module, x):
    for epoch in range(10):
        model(x)                        # hot
"""

POLARITY = """
def train(model: nn.Module, loader, every):
    for i, (x, y) in enumerate(loader):
        loss = model(x).sum()
        if i % every != 0:
            loss.item()                 # hot
        else:
            loss.item()                 # cold
        if i % 2 == 0:
            loss.item()                 # hot
        if i % 50 < 1:
            loss.item()                 # cold
        if 0 == i % every:
            loss.item()                 # cold
        if i % every > 0:
            loss.item()                 # hot
        if (last := i % 10 == 0) or y is None:
            loss.item()                 # cold
        if not torch.jit.is_scripting():
            loss.item()                 # hot
        if not (torch.jit.is_scripting() or torch.jit.is_tracing()):
            loss.item()                 # hot
        if "%d" % i in loader:
            loss.item()                 # hot
        if model.verbose > 1:
            loss.item()                 # cold
        if logger.isEnabledFor(DEBUG) and y is not None:
            loss.item()                 # cold
        if int(os.getenv("DUMP", "0")) == 1:
            loss.item()                 # cold
        if os.environ.get("DUMP", "False").lower() in ("1", "true") and y is not None:
            loss.item()                 # cold
        if not bool(int(os.environ.get("DUMP", 0))):
            loss.item()                 # hot
        if int(os.getenv("WORLD_SIZE", "0")) > 1 or os.getenv("KIND", "a") == "b" or os.getenv("DUMP", "1") == "1":
            loss.item()                 # hot
        if bool(os.getenv("DUMP", "0")) or os.getenv("DUMP") == "1" or os.getenv("DUMP", "0") == y:
            loss.item()                 # hot
        if global_step in self.save_steps:
            loss.item()                 # cold
        if global_step in range(100, 90_000) or loss in self.save_steps:
            loss.item()                 # hot
        if y not in (1, 2):
            loss.item()                 # hot
        if i % 100 == 0:
            continue
        loss.item()                     # hot
        if i % every:
            model(y)
        loss.item()                     # hot
        if i < 3 and i % 100 != 0:
            continue
        loss.item()                     # cold

class Net(nn.Module):
    def forward(self, x: Tensor):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i % self.every == 0:
                x = x + x.max().item()  # hot
            if self.step % 100 == 0:
                x.max().item()          # cold
        if not torch.jit.is_tracing():
            x.max().item()              # hot
        if torch.jit.is_tracing():
            return x                    # cold
        x.max().item()                  # hot
        if self.training and not self.should_log:
            return x                    # hot
        x.max().item()                  # cold
"""

INTERVALS = """
class Average(nn.Module):
    def __init__(self, interval: int = 1, seldom: int = 100, off: int = 0, every=None):
        super().__init__()
        self.interval = interval
        self.seldom = seldom
        self.off = off
        self.every = every
    def forward(self, x):
        if self.steps % self.interval == 0:
            x.sum().item()              # hot
        if self.steps % self.seldom == 0:
            x.sum().item()              # cold
        if self.off and self.steps % self.off == 0:
            x.sum().item()              # cold
        if self.steps % self.every == 0:
            x.sum().item()              # cold
        if self.steps % self.interval:
            return x                    # hot
        x.sum().item()                  # hot
        if self.steps % self.seldom:
            return x                    # hot
        x.sum().item()                  # cold

@dataclasses.dataclass
class Config:
    every: int = 1
    log: int = 50
def train(model: nn.Module, loader, config: Config, accumulate=2, log_every=20, often: bool = True):
    for i, (x, y) in enumerate(loader):
        loss = model(x).sum()
        if i % config.every == 0:
            loss.item()                 # hot
        if i % config.log == 0:
            loss.item()                 # cold
        if i % accumulate == 0:
            loss.item()                 # hot
        if i % log_every == 0:
            loss.item()                 # cold

log_interval = 1
def train(model: nn.Module, loader):
    for i, (x, y) in enumerate(loader):
        loss = model(x).sum()
        if i % log_interval == 0:
            loss.item()                 # cold
"""

NAMES = """
class Recall:
    def reset(self):
        self.sum = self.sum.item()      # cold
    def update(self, x):
        self.sum += x.sum().item()      # warm
    def compute(self):
        return self.sum.item()          # cold

class Mean(BaseMetric):
    def compute(self):
        return self.sum.item()          # cold
    def computed(self):
        return self.sum.item()          # warm

class Filter:
    def compute(self):
        return self.sum.item()          # warm
    def reset(self):
        self.sum = self.sum.item()      # warm

class Each:
    def update(self, x):
        self.sum = x
    def reset(self):
        self.sum = 0
    def compute(self):
        return self.sum.item()          # hot
def train(model: nn.Module, loader):
    metric = Each()
    for x, y in loader:
        model(x)
        metric.update(x)
        print(metric.compute())

def _attempt_forward(model, x):
    return x.sum().item()               # warm

def _tiled_forward(model, x):
    return x.sum().item()               # hot

def seed_everything(seed):
    return seed.item()                  # cold

class Loss(nn.Module):
    def _compute_loss(self, x):
        return x.sum().item()           # hot
    def _init_weights(self):
        return self.w.sum().item()      # cold
    def compute_losses(self, x):
        return x.sum().item()           # warm
    def forward_features(self, x):
        return x.sum().item()           # hot
    def _forward_keys(self, x):
        return x.sum().item()           # warm
class Loop:
    def _training_step(self, x):
        return x.sum().item()           # hot
    def _on_train_batch_end(self, x):
        return x.sum().item()           # hot
    def _setup(self, x):
        return x.sum().item()           # warm
    def backward_generator(self, x):
        return x.sum().item()           # hot
    def optimize_parameters(self, x):
        return x.sum().item()           # hot
def _compute_loss(x):
    return x.sum().item()               # hot
def dice_loss(x):
    return x.sum().item()               # hot
def log_loss(x):
    return x.sum().item()               # warm
def get_loss(x):
    return x.sum().item()               # warm
def plot_loss(x):
    return x.sum().item()               # cold
def backward_all(x):
    return x.sum().item()               # warm
def forward_all(x):
    return x.sum().item()               # warm

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.reset_parameters()
    def reset_parameters(self):
        self.w.sum().item()             # cold
    def init_output(self, index):
        return index.max().item()       # hot
    def init_hidden(self, x):
        return x.max().item()           # hot
    def setup_table(self, x):
        return x.max().item()           # cold
    def init_weights(self, x):
        return x.max().item()           # cold
    def setup_shapes(self, x):
        if self.shapes is not None:
            return
        self.shapes = x.max().item()    # cold
    def setup_known(self, x):
        return x.max().item()           # cold
    def init_ever(self, x):
        return x.max().item()           # cold
    def state_dict(self):
        return self.w.max().item()      # cold
    def _once(self, x):
        if hasattr(self, "done"):
            return
        self.init_ever(x)
    def forward(self, x, hidden=None):
        if hidden is None:
            hidden = self.init_hidden(x)
        if self.table is None:
            self.table = self.setup_table(x)
        elif not self.is_initialized:
            self.init_weights(x)
        known = self.known if x in self.known else self.setup_known(x)
        self.setup_shapes(x)
        self._once(x)
        self.inner.state_dict()
        return self.init_output(x)

class Normal(torch.distributions.Distribution):
    def __init__(self, low):
        if low.max() > 0:               # hot
            pass
class Table:
    def __init__(self, x):
        x.max().item()                  # cold
class Layer(nn.Module):
    def __init__(self, x):
        super().__init__()
        x.max().item()                  # cold
class Policy(nn.Module):
    def __init__(self, x):
        super().__init__()
        self.table = Table(x)
    def forward(self, x):
        Layer(x)
        return Normal(x)

class Base:
    def __init__(self, x):
        x.max().item()                  # hot
class First(Base):
    def __init__(self, x):
        super().__init__(x)             # hot
class Second(Base):
    def __init__(self, x):
        super().__init__(x)             # cold
def forward(x):
    return First(x)
def build_second(x):
    return Second(x)
"""

MODES = """
def softmax(x, ptr=None):
    if ptr is not None and x.device.type == "cpu" and not is_compiling():
        return fast(x, ptr)
    x.max().item()                      # hot
def forward(x):
    return softmax(x)

def forward(x, out=None):
    if x.is_cuda or torch.jit.is_tracing():
        x.max().item()                  # hot
    if x.device.type == "cuda" or verbose:
        x.max().item()                  # hot
    if not x.is_cpu or verbose:
        x.max().item()                  # hot
    if x.is_cpu or verbose:
        x.max().item()                  # cold
    if x.ndim == 3 and torch.jit.is_tracing():
        x.max().item()                  # cold
    if torch.jit.is_scripting() or torch.jit.is_tracing():
        x.max().item()                  # cold
    if x.device.type == "cpu":
        return x.max().item()           # hot
    x.max().item()                      # hot
    if out is not None and not torch.jit.is_scripting():
        return out                      # hot
    x.max().item()                      # hot

def forward(x):
    if not torch.jit.is_scripting() and not torch.jit.is_tracing():
        return x                        # hot
    x.max().item()                      # cold

def forward(x):
    if x.device.type == "cpu" and not verbose:
        return x
    x.max().item()                      # hot

def forward(x):
    if x.is_cuda and not verbose:
        return x
    x.max().item()                      # cold
"""

EXPRESSIONS = """
def train(model: nn.Module, loader, should_log, every):
    for i, (x, y) in enumerate(loader):
        loss = model(x).sum()
        cold(loss) if should_log else hot(loss)
        hot(loss) if i % every else cold(loss)
        should_log and cold(loss)
        hot(loss) and should_log and cold(loss)
        not should_log or cold(loss)
        i % every or cold(loss)
        hot(loss) or cold and hot(loss)
        if hot(loss) and i % 100 == 0 and cold(loss):
            cold(loss)
        [hot(y) for y in x]
        assert hot(loss), cold(loss)
        while hot(loss):
            pass
        lambda: hot(loss)
        hot(loss) if len(x) > 0 else cold(loss)
        cold(loss) if x.numel() == 0 else hot(loss)
        cold(loss) if not x.numel() else hot(loss)
        hot(loss) if len(x) else cold(loss)
        hot(loss) if len(x) > 1 else hot(loss)
        hot(loss) if x else hot(loss)
        hot(loss) if x.numel() >= 1 else cold(loss)
        if len(x) == 0:
            cold(loss)
        if x.ndim > 3:
            warnings.warn(f"too many: {cold(loss)}")
            logger.error("of %s", cold(loss))
            logger.info("of %s", hot(loss))
            self.warn = hot(loss)
            warn(hot(loss))
        else:
            logger.warning(text="as %s", value=cold(loss))
        logger.warning(f"loss {hot(loss)}")
        kept = logger.warning(hot(loss)) if x.ndim else None
"""


RUNS = """
def error(module, states):
    for x in states:
        y = module.forward(x)                       # hot
        print(y.sum().item())                       # hot
    print(y)                                        # warm

class Adapter(nn.Module):
    def merge(self, names):
        for name in names:
            self.forward_hooks.get(name)
            self.delta(name).isfinite().all().item()        # warm
    def delta(self, name):
        return self.up[name] @ self.down[name]
"""

LOOK_UPS = """
class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self._kept = {}
        self.inner = nn.Linear(3, 3)
    def keys(self):
        return self._kept.keys()
    def names(self):
        return self._kept.copy()
    def scaled(self, name):
        return transpose(self.inner.weight) @ self._kept[name]
    def rows(self, x):
        return torch.zeros(len(x), 3)
    def encode(self, x):
        return self.again(x)
    def again(self, x):
        return self.inner(x)
    def set_parts(self, names):
        self.backend(names)
    def get_delta_weight(self, name):
        return self.backend(self._kept[name])
    def later(self, x):
        raise NotImplementedError
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = Table()
    def fold(self, names):
        for name in names:
            if name in self.table.keys():
                self.weight.sum().item()            # warm
        for name in names:
            self.table.names()
            self.table.scaled(name)
            self.table.set_parts(name)
            self.table.get_delta_weight(name)
            self.table.rows(self.weight.data)
            self.weight.sum().item()                # warm
    def apply_all(self, names, x: Tensor):
        for name in names:
            x = self.table.encode(x)
            x.sum().item()                          # hot
    def apply_names(self, names):
        for name in names:
            self.table.encode(name).sum().item()    # hot
    def apply_later(self, names, x: Tensor):
        for name in names:
            self.table.later(x).sum().item()        # hot
    def apply_set(self, names, x: Tensor):
        for name in names:
            self.table.set_parts(x)
            x.sum().item()                          # hot
"""

UNKNOWN_MODELS = """
class Features:
    def __init__(self, model: nn.Module, device):
        self.model = model.to(device)
    def of_windows(self, windows, size):
        for start in range(0, len(windows), size):
            batch = torch.tensor(windows[start : start + size], device="cuda")
            self.model.encode(batch).cpu()      # hot
    def by_keyword(self, windows, size):
        for start in range(0, len(windows), size):
            self.model.encode(x=torch.tensor(windows[start], device="cuda")).cpu()      # hot
    def of_texts(self, texts):
        for text in texts:
            self.model.describe(text).cpu()     # warm
    def of_weights(self, names):
        for name in names:
            self.model.fuse(self.model.weight).cpu()    # warm
    def of_settings(self, scales, x: Tensor):
        for scale in scales:
            self.model.set_scale(x)
            self.model.load_table(x)
            self.model.index(x)
            x.sum().cpu()                       # warm
    def of_another_object(self, other, x: Tensor):
        for scale in range(3):
            other.describe(x).cpu()             # warm
"""


@table(UNKNOWN_MODELS)
def test_methods_of_models_whose_class_is_unknown(case: Case) -> None:
    check(case)


UNLIKELY = """
from torch.utils.data import DataLoader
tables = {}

class Layer(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base_layer = base
        self.inner = nn.Linear(3, 3)
    def get_base_layer(self):
        return self.inner
    def merge(self, names):
        for name in names:
            self.get_base_layer().weight.sum().item()   # warm
    def fuse(self, layer):
        return layer.weight.sum().item()                # warm
    def fuse_all(self, layers):
        for layer in layers:
            self.fuse(layer)
            layer.weight.sum().item()                   # warm
    def act(self, x):
        return self.policy(x)
    def play(self, x):
        for _ in range(9):
            x = self.act(x)
            x.sum().item()                              # hot
    def forward(self, x, key):
        if key not in tables:
            tables[key] = x.sum().item()        # cold
            x.sum().item()                      # cold
        if key not in tables:
            x.sum().item()                      # hot
        table = tables.get(key)
        if table is None:
            table = x.sum().item()              # cold
            tables[key] = table
        other = tables.get(key)
        if other is None:
            other = x.sum().item()              # hot
        self.known[key] = other
        given = self.make(key)
        if given is None:
            tables[key] = x.sum().item()        # hot
        if self.training_step == 0:
            x.sum().item()                      # cold
        else:
            x.sum().item()                      # hot
        if self.global_step > 0 and x.ndim > 1:
            x.sum().item()                      # hot
        if self.micro_step == 0 or self.steps == 0:
            x.sum().item()                      # hot
        if x.shape[0] == 0:
            return x.sum().item()               # cold
        if x.numel() == 0:
            x.sum().item()                      # cold
        if not len(x):
            return x.sum().item()               # cold
        if x.sum() == 0:
            return x.mean().item()              # cold
        if not (x > 3).any():
            return x.mean().item()              # cold
        valid = (x > 3).sum()
        if valid == 0:
            return x.mean().item()              # cold
        if valid == 2:
            return x.mean().item()              # hot
        total = self.count(x)
        if total == 0:
            return x.mean().item()              # hot
        if not bool((x > 3).any()):
            return x.mean().item()              # cold
        if int((x > 3).sum().item()) < 1:
            return x.mean().item()              # cold
        if bool((x > 3).any()):
            return x.mean().item()              # hot
        if not bool(x.mean()):
            return x.mean().item()              # hot
        if (x > 3).any():
            return x.mean().item()              # hot
        if x.sum() == 1:
            return x.mean().item()              # hot
        if x.size(0) == 1:
            return x.sum().item()               # hot
        if 0:
            x.sum().item()                      # cold
        else:
            x.sum().item()                      # hot
        if not self.training:
            count = x.sum().item()              # cold
            raise ValueError(count)             # cold
        elif x.ndim > 3:
            x.sum().item()                      # hot
        else:
            count = x.sum().item()              # cold
            raise ValueError(count)             # cold
        for layer in [self.inner]:
            if layer is key:
                count = x.sum().item()          # cold
                raise ValueError(count)         # cold
        return x                                # hot

def learn(model: nn.Module, data, device):
    weight = torch.tensor([1.0], device=device)     # cold
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(9):
        for x in data:
            model(x).sum().backward()           # hot
            optimizer.step()                    # hot
        print(x)                                # cold
    return weight                               # cold
def adapt(model: nn.Module, task, rate):
    optimizer = torch.optim.SGD(model.parameters(), rate)   # hot
    for x in task:
        model(x).sum().backward()               # hot
        optimizer.step()                        # hot
    return model                                # hot
def learn_to_learn(model, tasks, outer: torch.optim.Optimizer):
    for task in tasks:
        adapt(model, task, 0.1)                 # hot
        outer.step()
def update(model: nn.Module, batches, optimizer):
    weight = torch.tensor([1.0], device="cuda")     # warm
    for x in batches:
        model(x).sum().backward()               # hot
        optimizer.step()                        # hot

@functools.lru_cache(maxsize=2)
def weights(size):
    return torch.ones(size).max().item()        # cold
def assert_close(x, y):
    return x.max().item()                       # cold
class Equivariant(nn.Module):
    def check_equivariance(self, x):
        out = self(x)
        for g in range(3):
            turned = self(x * g)
            assert torch.allclose(turned, out * g)  # cold
    def check_inputs(self, x):
        assert x.max() < 3                      # warm
def compare(model: nn.Module, others, x):
    for other in others:
        assert torch.allclose(other(x), model(x))   # warm
def are_models_equal(one, other):
    for p in one.parameters():
        if p.sum() > 0:                         # cold
            return False
class Own(torch.optim.Optimizer):
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = p.sum().item()  # cold
                if not state:
                    state["norm"] = p.max().item()  # cold
                if len(state) == 0:
                    group["step"] = p.sum().item()  # hot
                if state:
                    state["last"] = p.sum().item()  # hot
class Once(nn.Module):
    def forward(self, x):
        if self.first:
            x.max().item()                      # cold
            self.first = False
        if not self.ready:
            x.max().item()                      # cold
            self.ready = True
        if self.training:
            x.max().item()                      # hot
            self.training = True
        if self.skips:
            x.max().item()                      # hot
        if self.warmup[0] == 1:
            x.max().item()                      # cold
            self.warmup[0] = 0
        if self.state == 0:
            x.max().item()                      # cold
            self.state.fill_(1)
        if self.kind == 1:
            x.max().item()                      # hot
            self.kind = 1
        if self.depth == 2:
            x.max().item()                      # hot
            self.depth = 0
        if state == 0:
            x.max().item()                      # hot
            state = 1
        return x * weights(3)

class Plots(nn.Module):
    def plot_prediction(self, x):
        return self.decode(x).cpu()             # cold
    def decode(self, x):
        return self.layer(x)
    def log_all(self, batches):
        for x in batches:
            self.plot_prediction(x)             # warm
    def __eq__(self, other):
        return torch.equal(self.weight, other.weight)   # cold

def walk(tree, x):
    for part in tree:
        walk(part, x)
    x.sum().item()                              # warm

def _descend(tree, x):
    x.sum().item()                              # cold
    for part in tree:
        _descend(part, x)
def setup(tree, x):
    _descend(tree, x)

def train(loader: DataLoader, model: nn.Module):
    for x in loader:
        loss = model(x)                         # hot
        if not loss.isfinite():                 # hot
            where = loss.argmax().item()        # cold
            raise ValueError(where)             # cold
        loss.backward()                         # hot
"""

ONCE = """
class Table(nn.Module):
    def forward(self, x, key):
        if self.table is None:
            size = x.sum().item()               # cold
            self.table = x                      # cold
        if self.other is None:
            x.sum().item()                      # hot
        if not hasattr(self, "inverse"):
            self.inverse = x.sum().item()       # cold
        if getattr(self, "colors", None) is None:
            self.colors = x.sum().item()        # cold
        if getattr(self, "limit", None) is None:
            x.sum().item()                      # hot
        if getattr(key, "colors", None) is None:
            key.colors = x.sum().item()         # hot
        if self.table is None and x.ndim > 2:
            self.table = x.sum().item()         # cold
        if x.grad is None:
            x.grad = x.sum().item()             # hot
        if key is None:
            key = x.sum().item()                # hot
        if self.table is not None:
            self.table = x.sum().item()         # hot
        if not hasattr(key, "inverse"):
            key.inverse = x.sum().item()        # hot
        self.kept(x, key)
        self.entry(x, key)
        self.member(x)
        self.fresh(x, key)
        self.given(x, key)
        return x
    def kept(self, x, key):
        value = self.cache.get((key, 1))
        if value is not None:
            return value                        # hot
        value = x.sum().item()                  # cold
        self.cache[key, 1] = value              # cold
    def entry(self, x, key):
        if key in self.cache:
            return self.cache[key]              # hot
        self.cache[key] = x.sum().item()        # cold
    def member(self, x):
        x.sum().item()                          # hot
        if self.value is not None:
            return self.value
        self.value = x.sum().item()             # cold
    def fresh(self, x, key):
        value = self.cache.get(key)
        if value is not None:
            return value
        return x.sum().item()                   # hot
    def given(self, x, key):
        if key is not None:
            return key
        self.cache[key] = x.sum().item()        # hot
"""

RENEWED = """
class Windowed(nn.Module):
    def forward(self, x, size):
        (_, channels, _, _) = x.size()
        if channels == self.channels and self.window.data.type() == x.data.type():
            x.sum().item()                      # hot
        else:
            window = x.sum().item()             # cold
            self.window = window
            self.channels = channels
        if self.shape != x.shape or self.other != x.dtype:
            self.shape = x.shape
            self.other = x.dtype
            x.sum().item()                      # cold
        if not (x.shape[1] <= self.longest):
            self.grow(x, x.shape[1])
            x.sum().item()                      # cold
        if self.shape != x.shape or x.ndim > 2:
            self.shape = x.shape
            x.sum().item()                      # hot
        if self.last != x:
            self.last = x
            x.sum().item()                      # hot
        if self.size != x.shape:
            x.sum().item()                      # hot
        if type(x) == torch.Tensor and type(self.mean) == np.ndarray:
            self.mean = torch.from_numpy(self.mean).to(x.device)
            x.sum().item()                      # cold
        if not isinstance(self.scale, torch.Tensor):
            self.scale = torch.tensor(self.scale, device=x.device)
            x.sum().item()                      # cold
        if isinstance(self.bias, (float, list)):
            self.bias = self.bias[0]
            x.sum().item()                      # hot
        if isinstance(self.shift, torch.Tensor):
            self.shift = torch.zeros_like(self.shift)
            x.sum().item()                      # hot
        if isinstance(size, list):
            size = torch.tensor(size)
            x.sum().item()                      # hot
        return x
    def grow(self, x, longest):
        self.longest = longest
"""

JOINED = """
class Adapted(nn.Module):
    def merge(self, safe=False, *, names=None):
        self.weight.sum().item()            # cold
    def unmerge(self):
        self.weight.sum().item()            # cold
    def _fuse_parts(self, scale=1.0):
        self.weight.sum().item()            # cold
    def merge_heads(self, x):
        return x.sum().item()               # warm
    def fuse(self, *features):
        return features[0].sum().item()     # warm
    def fuse_now(self):
        return self.weight.sum().item()     # hot
    def forward(self, x):
        if self.merged:
            self.unmerge()
        self.fuse_now()
        return x

def merge():
    return torch.ones(3).sum().item()       # warm
"""

TRAINED = """
class Trainer:
    def train(self):
        torch.zeros(3, device="cuda").sum().item()      # warm
    def evaluate(self):
        torch.zeros(3, device="cuda").sum().item()      # hot
    def training_step(self, model, x):
        self.optimizer.train()
        self.callback.evaluate()
"""


ASSIGNED = """
TABLE = {}
class Rotary(nn.Module):
    def __init__(self, config):
        super().__init__()
        init: Callable = self.compute_default
        if config.kind != "default":
            init = TABLE[config.kind]
        inverse, self.scale = init(config)
        self.refresh_cache(config)
        self._grow(config)
    @staticmethod
    def compute_default(config):
        return torch.arange(config.dim).sum().item()    # cold
    def refresh_cache(self, config):
        return torch.arange(config.dim).sum().item()    # warm
    def _grow(self, config):
        return torch.arange(config.dim).sum().item()    # cold

class Scaled(nn.Module):
    def forward(self, x, kind):
        scale = self.scale_by_norm
        if kind:
            scale = TABLE[kind]
        run = functools.partial(self.finish, 3)
        return scale(x) + run(x)
    def scale_by_norm(self, x):
        return x.norm().item()                          # hot
    def finish(self, n, x):
        return x.norm().item()                          # hot

class Both:
    def __init__(self, config):
        self.shared(config)
        compute = self.measured
        self.table = compute(config)
    def shared(self, config):
        return config.weight.sum().item()               # warm
    def measured(self, config):
        return config.weight.sum().item()               # cold
    def again(self, config):
        self.shared(config)
"""


TEST_CODE = """
def attention(q, k):
    return (q @ k).max().item()             # cold
def attention_ref(q, k):
    for _ in range(3):
        q = (q @ k).max().item()            # cold
    return q
def _make(n):
    return torch.rand(n).sum().item()       # cold
def test():
    q = torch.rand(3, 3)
    net = nn.Linear(3, 3)
    for _ in range(3):
        loss = net(q).sum()
        print(loss.item())                  # cold
    attention(q, _make(3)), attention_ref(q, q)

def test2(n=3):
    x = torch.randn(n, n)
    print(x.sum().item())                   # cold
def bench_linear(model: nn.Module, loader):
    for x in torch.utils.data.DataLoader(loader):
        print(model(x).sum().item())        # cold
@triton.testing.perf_report([1])
def run_all(model: nn.Module, x):
    for _ in range(3):
        print(model(x).sum().item())        # cold
def compare_outputs(model: nn.Module, other: nn.Module, x):
    for _ in range(3):
        print(model(x).sum().item())        # cold
    torch.testing.assert_close(model(x), other(x))

def test(model: nn.Module, loader):
    for x in loader:
        print(model(x).sum().item())        # hot
    return x.sum().item()                   # warm
def test_all():
    for x in torch.utils.data.DataLoader(data):
        print(torch.rand(3) + x)            # hot
def testing(x):
    return x.sum().item()                   # warm
def benches_of(x):
    return x.sum().item()                   # warm
def log_prob_ref(model, x):
    return x.sum().item()                   # hot
def train(model: nn.Module, loader):
    for x in loader:
        model(x)
        log_prob_ref(model, x)

def helper(x):
    return x.sum().item()                   # cold
def shared(x):
    return x.sum().item()                   # warm
def public(x):
    return shared(x).item()                 # warm
def dice_loss(x):
    return x.sum().item()                   # hot
class Net(nn.Module):
    def forward(self, x):
        return x.sum().item()               # hot
    def encode(self, x):
        return x.sum().item()               # warm
    def _decode(self, x):
        return x.sum().item()               # cold
if __name__ == "__main__":
    x = torch.rand(3)
    net = Net()
    for _ in range(9):
        print(net(x).sum().item())          # cold
    helper(x), shared(x), dice_loss(x), net.encode(x), net._decode(x)

def run(x):
    return x.sum().item()                   # warm
def train(model: nn.Module, x):
    for _ in range(9):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        print(loss.item())                  # hot
if __name__ == "__main__":
    x = torch.rand(3)
    for _ in range(9):
        train(nn.Linear(3, 3), x)
        optimizer.step()
    run(x)

def train(loader):
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        print(loss.item())                  # hot
def evaluate(x):
    return x.sum().item()                   # warm
if __name__ == "__main__":
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    times = torch.rand(3)
    for epoch in range(9):
        train(loader)
    evaluate(times)

def worker(rank):
    for x in torch.utils.data.DataLoader(data):
        print(x.cuda().sum().item())        # hot
if __name__ == "__main__":
    x = torch.rand(3)
    torch.multiprocessing.spawn(worker, (x,))

def report(x):
    return x.sum().item()                   # warm
if __name__ == "__main__":
    options = parser.parse_args()
    report(torch.rand(options.size))

def _fit(model: nn.Module, loader, optimizer):
    for x in torch.utils.data.DataLoader(loader):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        print(loss.item())                  # hot
def bench_training(loader):
    _fit(nn.Linear(3, 3), loader, torch.optim.SGD([], 0.1))

def _ping(x):
    _pong(x)
def _pong(x):
    _ping(x)
    return x.sum().item()                   # warm
def test_ping():
    assert torch.allclose(torch.rand(3), torch.rand(3))

import unittest
class Suite(unittest.TestCase):
    def check(self, model: nn.Module, x):
        for _ in range(3):
            model(x)
            print(x.sum().item())           # cold
"""


@table(TEST_CODE)
def test_code_that_only_tests_run(case: Case) -> None:
    check(case)


PLACES = """
class Net(nn.Module):
    def forward(self, x, device, y, cpu):
        if x.device.type == "cpu":
            x = x.to(device)                # cold
        if x.device != device:
            y.max().item()                  # hot
        if y.device != x.device:
            y = y.to(x.device)              # cold
            y.max().item()                  # cold
        if self.table.device != x.device or x.ndim > 3:
            self.table = self.table.to(x.device)    # cold
        if not y.is_cuda:
            y = y.cuda()                    # cold
        if x.get_device() != 0:
            x = x.cuda(0)                   # cold
        if y.is_cuda:
            y = y.to(device)                # hot
        if x.device == device:
            y.max().item()                  # hot
        else:
            x = x.to(device)                # cold
        if x.device.type != "cpu":
            x = x.to("cpu")                 # hot
        if x.dtype != y.dtype:
            x = x.to(y.dtype)               # hot
        return x

class Offsets(nn.Module):
    def forward(self, x: torch.Tensor):
        if x.is_cuda:
            self.offsets = self.offsets.cuda()  # hot
        else:
            self.offsets = self.offsets.cpu()   # cold
        if x.device.type == "cpu":
            self.offsets = self.offsets.cpu()   # cold
        return x + self.offsets                 # hot

def train(model: nn.Module, device):
    for x in torch.utils.data.DataLoader(data):
        if x.device != device:
            x = x.to(device)                # hot
        model(x)
"""

NUMBERS = """
def train(model: nn.Module, scaler):
    for x in torch.utils.data.DataLoader(data):
        loss = model(x).sum()
        if torch.isnan(loss):
            loss.max().item()               # cold
        if not torch.isfinite(loss).all():
            loss.max().item()               # cold
            continue
        if torch.isfinite(loss):
            loss.max().item()               # hot
        else:
            loss.max().item()               # cold
        if torch.any(torch.isinf(loss)).item() or loss.isnan().any():
            loss.max().item()               # cold
        if torch.isnan(loss).sum() > 0:
            loss.max().item()               # cold
        if torch.isnan(loss).sum() == 0:
            loss.max().item()               # hot
        if loss != loss:
            loss.max().item()               # cold
        if not torch.isnan(loss):
            loss.max().item()               # hot
        if loss.any():
            loss.max().item()               # hot
        if scaler.has_overflow:
            loss.max().item()               # cold
        if not scaler.found_inf:
            loss.max().item()               # hot
        if loss == float("inf") or loss == -math.inf:
            loss.max().item()               # cold
        if loss != torch.inf:
            loss.max().item()               # hot
        if loss < math.inf:
            loss.max().item()               # hot

def gradient_norm(parameters, order=2.0):
    if order == inf:
        return max(p.grad.abs().max() for p in parameters)          # cold
    return torch.norm(torch.stack([p.grad.norm() for p in parameters]))     # warm

class Net(nn.Module):
    def forward(self, x):
        if torch.isfinite(x).all():
            return x                        # hot
        return x.max().item()               # cold
"""

LENGTHS = """
def decode(model: nn.Module, token, limit: int):
    tokens = []
    for _ in range(limit):
        token = model(token)
        tokens.append(token)
        if len(tokens) == 16:
            yield torch.cat(tokens).tolist()        # cold
            tokens.clear()

class Logger:
    def fit(self, model: nn.Module, loader, every: int):
        for x in loader:
            loss = model(x).mean()
            loss.backward()
            self.losses.append(loss.detach())
            if len(self.losses) >= every:
                print(torch.stack(self.losses).mean().item())       # cold
                self.losses = []

def few(model: nn.Module, loader):
    kept = []
    for x in loader:
        kept.append(model(x))
        if len(kept) == 2:
            torch.cat(kept).tolist()        # hot
            kept = []

def batches(model: nn.Module, items):
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == 32:
            model(torch.stack(batch)).tolist()      # hot
            batch = []

def several(model: nn.Module, loader):
    kept = []
    for x in loader:
        kept.extend(model(x))
        if len(kept) >= 64:
            torch.stack(kept).tolist()      # hot
            kept = []

def kept_whole(model: nn.Module, loader):
    kept = []
    for x in loader:
        kept.append(model(x))
        if len(kept) >= 64:
            torch.stack(kept).tolist()      # hot
"""

TOKENS = """
from transformers import LogitsProcessor, StoppingCriteria
class Stop(StoppingCriteria):
    def __call__(self, input_ids, scores, **kwargs):
        return input_ids[0].tolist() == [1]     # hot
class Scale(LogitsProcessor):
    def __call__(self, input_ids, scores):
        return scores / self.scale.item()       # hot
    def other(self, scores):
        return scores.max().item()              # warm
class Own:
    def __call__(self, input_ids, scores):
        return scores.max().item()              # warm
"""

REPLAYS = """
class Sampler:
    def __init__(self, graph: torch.cuda.CUDAGraph, out: torch.Tensor):
        self.graph, self.out = graph, out

    def sample(self, steps: int):
        for i in range(steps):
            self.graph.replay()
            self.out.max().item()           # hot

    def step(self):
        self.graph.replay()

    def many(self, n: int):
        for i in range(n):
            self.step()
            self.out.max().item()           # hot

    def look(self, n: int):
        for i in range(n):
            self.out[i].item()              # warm
"""

FEW_TURNS = """
def look(model: nn.Module, loader):
    done = 0
    for x in loader:
        out = model(x)
        out.sum().item()                # cold
        done += 1
        if done == 10:
            break

def look_at(model: nn.Module, loader):
    for i, x in enumerate(loader):
        if i >= 3:
            break
        model(x).sum().item()           # cold

def run(model: nn.Module, loader):
    for i, x in enumerate(loader):
        model(x).sum().item()           # hot
        if i == 1000:
            break

def until(model: nn.Module, loader, score):
    for x in loader:
        model(x).sum().item()           # hot
        if score > 3:
            break

def fit(model: nn.Module, loader, optimizer):
    for i, x in enumerate(loader):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        loss.item()                     # cold
        if i == 9:
            break

model = nn.Linear(3, 3)
for i in range(10):
    model(cuda).sum().item()            # cold
for i in range(11):
    model(cuda).sum().item()            # hot

def called(model: nn.Module):
    for i in range(10):
        model(cuda).sum().item()        # hot

def decode(model: nn.Module, n: int):
    for i in range(n):
        logits = model(cuda)            # hot
        should_stop = logits.max() > 3
        for row in logits:
            if should_stop or row.size(0) > n:
                row.sum().item()        # cold
            if row.size(0) > n:
                row.sum().item()        # hot
"""

FIRST_TURN = """
def train(model: nn.Module, loader, optimizer):
    for i, x in enumerate(loader):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        if i == 0:
            loss.item()                 # cold
        else:
            loss.item()                 # hot
        if not i and loss.ndim == 0:
            loss.item()                 # cold
        if i > 0:
            loss.item()                 # hot
        else:
            loss.item()                 # cold
        if i == 1:
            loss.item()                 # hot
        if x == 0:
            loss.item()                 # hot
        is_first = i == 0
        if is_first:
            loss.item()                 # cold

def counted(model: nn.Module, loader, optimizer, epochs):
    for epoch in range(epochs):
        count = seen = total = again = 0
        for batch in loader:
            parts = model(batch)
            parts.sum().backward()
            optimizer.step()
            inner = 0
            for part in parts:
                if count == 0:
                    part.item()         # cold
                if seen > 0:
                    part.item()         # hot
                if inner == 0:
                    part.item()         # hot
                count += 1
                inner += 1
            if seen == 0:
                parts.sum().item()      # cold
            if total == 0:
                parts.sum().item()      # hot
            if again == 0:
                parts.sum().item()      # hot
            seen += len(batch)
            total += parts.shape.numel()
            again += 1
            if again == 2:
                again = 0

def few(model: nn.Module, x, batch_idx, epoch, level):
    loss = model(x).sum()
    loss.backward()
    if batch_idx is not None and batch_idx < 10:
        loss.item()                     # cold
    if batch_idx >= 5:
        loss.item()                     # warm
    if batch_idx < 1000:
        loss.item()                     # warm
    if epoch < 5:
        loss.item()                     # warm
    if level < 3:
        loss.item()                     # warm

def sample(model: nn.Module, n: int, k: int):
    for i, _ in enumerate(trange(n)):
        y = model(cuda)
        if i == 0:
            y.sum().item()              # cold
        for j in range(k):
            if j == 0:
                y.sum().item()          # hot
    for i in range(n):
        i = i % 3
        y = model(cuda)
        if i == 0:
            y.sum().item()              # hot
    for i in range(n - 1, -1, -1):
        y = model(cuda)
        if i == 0:
            y.sum().item()              # hot
    for i in range(2):
        y = model(cuda)
        if i == 0:
            y.sum().item()              # hot
    for name, i in enumerate(loader):
        y = model(cuda)
        if i == 0:
            y.sum().item()              # hot

class Net(nn.Module):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if i == 0:
                x.sum().item()          # hot
            x = layer(x)
        return x
"""

ONE_TURN = """
def first(model: nn.Module):
    for x in torch.utils.data.DataLoader(data):
        x = model(x)                        # warm
        if x.ndim > 2:
            x = x.sum()
        print(x.sum().item())               # warm
        break
def show(model: nn.Module, x):
    while True:
        y = model(x)                        # warm
        return y.sum().item()               # warm
def until(model: nn.Module, loader):
    for x in torch.utils.data.DataLoader(data):
        y = model(x)
        if y.ndim > 2:
            y.sum().item()                  # warm
            with torch.no_grad():
                y.max().item()              # warm
            for z in y.chunk(2):
                if z.ndim:
                    continue
                z.sum().item()              # warm
            break
        elif y.ndim > 1:
            y.sum().item()                  # hot
            if y.dtype:
                continue
            break
        y.max().item()                      # hot
def until_found(model: nn.Module, loader):
    for epoch in range(9):
        for x in torch.utils.data.DataLoader(data):
            if model(x).ndim > 2:
                return x.sum().item()       # warm
            if x.ndim:
                x.sum().item()              # warm
                break
class Searching(nn.Module):
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if x.ndim > 2:
                return x.sum().item()       # hot
def search(model: nn.Module, loader):
    for x in torch.utils.data.DataLoader(data):
        if x.ndim > 2:
            continue
        print(model(x).sum().item())        # hot
        break
def inner(model: nn.Module):
    for x in torch.utils.data.DataLoader(data):
        for y in x:
            if y.ndim:
                continue
        print(model(x).sum().item())        # warm
        break
def sometimes(model: nn.Module):
    for x in torch.utils.data.DataLoader(data):
        print(model(x).sum().item())        # hot
        if x.ndim > 2:
            break
class Net(nn.Module):
    def forward(self, x):
        for y in x:
            y.sum().item()                  # hot
            break
"""

INTERVAL_HELPERS = """
class Hook:
    def after_train_step(self, runner, x):
        if self.every_n_steps(runner, 9):
            x.sum().item()                  # cold
    def training_step(self, x, step):
        if self.is_due(step):
            x.sum().item()                  # cold
        if self.is_odd(step):
            x.sum().item()                  # hot
        if self.check_frequency(step, 3):
            x.sum().item()                  # cold
        if self.should_log_now():
            x.sum().item()                  # cold
        if step == self.warm_up:
            x.sum().item()                  # cold
        if self.warm_up != step:
            x.sum().item()                  # hot
        if self.micro_step == self.parts - 1:
            x.sum().item()                  # hot
        started = [stage for stage in self.stages if stage.start == step]
        if started:
            x.sum().item()                  # cold
        if [stage for stage in self.stages if stage.is_on]:
            x.sum().item()                  # hot
        if not self.should_log:
            x.sum().item()                  # hot
        if self.should_stop(step):
            x.sum().item()                  # cold
        if self.should_step(step):
            x.sum().item()                  # hot
        if self.needs_save and x.sum().item() > 3:      # hot
            x.sum().item()                  # cold
        if self.logs(step):
            x.sum().item()                  # hot
        due = self.is_due(step) and x.max()
    def is_due(self, step):
        if self.off:
            return False
        return step % self.every == 0
    def is_odd(self, step):
        return step % 2 == 1
    def logs(self, step):
        return step % self.every == 0 or self.always(step) == 2 if self.off else self.always(step)
"""


@table(PLACES)
def test_moves_of_tensors_that_are_mostly_there(case: Case) -> None:
    check(case)


STATE = """
def pack(tensor: torch.Tensor, quantizer: nn.Module):
    scale = quantizer(tensor).scale
    return scale.item()                     # warm
def pack_all(tensors: dict[str, torch.Tensor], quantizer: nn.Module):
    for name, tensor in tensors.items():
        tensors[name] = pack(tensor, quantizer)     # warm

def pack(tensor: torch.Tensor, quantizer: nn.Module):
    return quantizer(tensor).scale.item()   # hot
def pack_all(tensors: list[torch.Tensor], quantizer: nn.Module):
    for tensor in tensors:
        pack(tensor, quantizer)             # hot

def learn(parts: dict[str, torch.Tensor], model: nn.Module):
    for name, part in parts.items():
        model(part).sum().backward()        # hot

def evaluate(loaders: dict[str, torch.utils.data.DataLoader], model: nn.Module):
    for name, loader in loaders.items():
        for x in loader:
            model(x).sum().item()           # hot

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
    def part(self, x):
        return self.fc(x).max().item()      # hot
    def forward(self, parts: dict[str, torch.Tensor]):
        for name, part in parts.items():
            parts[name] = self.part(part)   # hot
"""


@table(STATE)
def test_tensors_of_a_checkpoint_are_no_batches(case: Case) -> None:
    check(case)


@table(NUMBERS)
def test_numbers_that_are_mostly_finite(case: Case) -> None:
    check(case)


@table(FEW_TURNS)
def test_loops_of_a_few_turns(case: Case) -> None:
    check(case)


@table(FIRST_TURN)
def test_branches_for_the_first_turn(case: Case) -> None:
    check(case)


@table(ONE_TURN)
def test_loops_of_one_turn(case: Case) -> None:
    check(case)


@table(LENGTHS)
def test_branches_that_wait_for_a_length(case: Case) -> None:
    check(case)


@table(TOKENS)
def test_calls_of_generate_for_each_token(case: Case) -> None:
    check(case)


@table(REPLAYS)
def test_loops_that_replay_a_graph(case: Case) -> None:
    check(case)


@table(INTERVAL_HELPERS)
def test_helpers_that_tell_intervals(case: Case) -> None:
    check(case)


ONCE_PER_PROCESS = """
import pickle
import torch.distributed as dist
def gathers(data):
    size = torch.tensor([len(pickle.dumps(data))], device="cuda")
    sizes = [torch.zeros(1, device="cuda") for _ in range(4)]
    dist.all_gather(sizes, size)
    return [int(each.item()) for each in sizes]     # cold
def pickles(data, x: Tensor):
    return pickle.dumps(data), x.max().item()       # warm
def gathers_tensors(x: Tensor):
    dist.all_reduce(x)
    return x.max().item()                           # warm

import pickle
import torch.distributed as dist
def gathers(data):
    dist.all_gather(data, torch.tensor(len(pickle.dumps(data))))
    return data[0].item()                           # hot
for batch in loader:
    loss.backward()
    optimizer.step()
    gathers(batch)

class Engine:
    def warmup(self, x: Tensor):
        return x.max().item()               # cold
    def _warm_up_graphs(self, x: Tensor):
        return x.max().item()               # cold
    def capture(self, sizes):
        return self.buffer.max().item()     # cold
    def restore(self, path):
        return self.buffer.max().item()     # cold
    def restore_image(self, image):
        return image.clamp(0, 1).max().item()   # warm
    def quantize(self, x: Tensor):
        return x.max().item()               # warm
    def quantize_layers(self, bits=8):
        return self.weight.max().item()     # cold
    def _convert(self, names):
        return self.weight.max().item()     # cold
    def offload(self):
        return self.weight.max().item()     # hot
    def initialize_cache(self, blocks):
        return self.weight.max().item()     # cold
    def initialize_state(self, x: Tensor):
        return x.max().item()               # warm
    def warmups(self, x):
        return x.max().item()               # warm
    def set_value(self, name):
        return self.weight.max().item()     # cold
    def training_step(self, x):
        self.offload()

def read(path, x):
    vectors = {}
    with open(path) as file:
        for line in file:
            vectors[line] = torch.tensor([1.0]).cuda()      # cold
    return x.max().item()                   # cold
def read_weights(path, model):
    state = torch.load(path, map_location="cuda")["model"]
    names = [name for name, weight in state.items() if weight.max().item()]     # cold
    return names
def read_lines(path):
    lines = open(path).read().split()
    rows = [line.strip() for line in lines]
    for row in rows:
        print(torch.tensor([1.0]).cuda())   # cold
def answer(model: nn.Module, path):
    with open(path) as file:
        for line in file:
            out = model(line)               # hot
            print(out.max().item())         # hot
def write(path, rows):
    with open(path, "w") as file:
        for row in rows:
            file.write(row.max().item())    # warm
def rows(path):
    with open(path) as file:
        for line in file:
            yield cuda.max().item()         # warm
def picture(path, x):
    picture = open(path)
    return x.max().item()                   # warm
class Data(torch.utils.data.Dataset):
    def __getitem__(self, index):
        for line in open(self.paths[index]):
            cuda.max().item()               # warm
def each_step(path):
    for line in open(path):
        cuda.max().item()                   # hot
def train(model: nn.Module):
    for x in torch.utils.data.DataLoader(data):
        model(x)
        each_step("a")
"""


@table(ONCE_PER_PROCESS)
def test_what_a_process_runs_once(case: Case) -> None:
    check(case)


@table(ASSIGNED)
def test_methods_that_are_assigned_to_a_name_and_called(case: Case) -> None:
    check(case)


@table(EPOCHS)
def test_epochs(case: Case) -> None:
    check(case)


@table(RUNS)
def test_runs_by_name(case: Case) -> None:
    check(case)


@table(LOOK_UPS)
def test_methods_that_run_no_model(case: Case) -> None:
    check(case)


@table(UNLIKELY)
def test_what_hardly_ever_runs(case: Case) -> None:
    check(case)


@table(ONCE)
def test_what_is_made_once(case: Case) -> None:
    check(case)


@table(RENEWED)
def test_values_that_are_made_anew(case: Case) -> None:
    check(case)


@table(JOINED)
def test_methods_that_join_weights(case: Case) -> None:
    check(case)


@table(TRAINED)
def test_modes_are_no_calls_of_training(case: Case) -> None:
    check(case)


STEPS_OF_TRAINING = """
class Agent:
    def __init__(self, net, optimiser, scaler):
        self.net, self.optimiser, self.scaler = net, optimiser, scaler
    def learn(self, batch):
        loss = self.net(batch).sum()
        loss.item()                     # hot
        loss.backward()                 # hot
        self.optimiser.step()           # hot
        self.report(loss)               # hot
    def report(self, loss):
        loss.item()                     # hot
    def mixed(self, batch):
        loss = self.net(batch).sum()    # hot
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimiser)
    def by_closure(self, batch):
        def closure():
            loss = self.net(batch).sum()
            loss.backward()
            return loss
        batch.sum().item()              # hot
        self.optimiser.step(closure)
    def finish(self):
        self.optimiser.step()           # warm
    def gradients(self, batch):
        self.net(batch).sum().backward()
        batch.sum().item()              # warm
    def epochs(self, batch):
        batch.sum().item()              # warm
        for _ in range(3000):
            self.net(batch).sum().backward()
            self.optimiser.step()       # hot
    def one_off(self, batch):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.net(batch).sum().backward()
        optimizer.step()                # warm
    def warmup(self, batch):
        self.net(batch).sum().backward()
        self.optimiser.step()           # cold

def train_once(net, batch, optimizer):
    net(batch).sum().backward()
    optimizer.step()                    # warm
if __name__ == "__main__":
    train_once(net, batch, optimizer)
"""


@table(LOOPS)
def test_loops(case: Case) -> None:
    check(case)


@table(LAST_BATCH)
def test_the_last_batch_of_an_epoch(case: Case) -> None:
    check(case)


@table(GUARDS)
def test_guards(case: Case) -> None:
    check(case)


@table(WORK)
def test_work(case: Case) -> None:
    check(case)


@table(POLARITY)
def test_polarity(case: Case) -> None:
    check(case)


@table(INTERVALS)
def test_intervals_by_default(case: Case) -> None:
    check(case)


@table(NAMES)
def test_names_and_their_callers(case: Case) -> None:
    check(case)


@table(MODES)
def test_modes_and_devices(case: Case) -> None:
    check(case)


def test_expressions() -> None:
    """Calls of `hot` and `cold` say how often they run."""
    model = Model(Source("snippet.py", PRELUDE + EXPRESSIONS), Project())
    calls = [call for call in model.nodes(ast.Call) if isinstance(call.func, ast.Name)]
    named = [(call, call.func.id) for call in calls if isinstance(call.func, ast.Name) and call.func.id in HEATS]
    assert len(named) > 15
    wrong = [
        f"{name}: {ast.unparse(call)} on line {call.lineno}" for call, name in named if model.heat(call).value != name
    ]
    assert not wrong


HEATS = ("hot", "cold")


def test_buffers_are_registered_once() -> None:
    text = """
import torch
class Net(torch.nn.Module):
    @property
    def entropy(self):
        self.register_buffer("kept", self.weight.max())
        self.keep("kept", self.weight.min())
        return self.kept
    def forward(self, x):
        self.register_buffer("last", x.mean())
"""
    model = Model(Source("a.py", text), Project())
    heats = {ast.unparse(call): model.heat(call).value for call in model.nodes(ast.Call) if not call.args}
    assert heats == {"self.weight.max()": "cold", "self.weight.min()": "warm", "x.mean()": "hot"}


def test_lambdas_run_as_often_as_what_calls_them() -> None:
    text = """
from torch.utils.data import DataLoader
hot = lambda x: x.item()
warm = lambda x: x.item()
cold = sorted([], key=lambda x: x.item())
for x in DataLoader([]):
    hot(x)
"""
    model = Model(Source("a.py", text), Project())
    bodies = [node.body for node in model.nodes(ast.Lambda)]
    assert [model.heat(body).value for body in bodies] == ["hot", "warm", "cold"]


CIRCLE = """
def first(x):
    x.item()
    second(x)
def second(x):
    third(x)
    x.item()
def third(x):
    first(x)
    x.item()
def forward(x):
    third(x)
def load_state_dict(x):
    for part in x:
        fourth(part)
        part.item()
def fourth(x):
    x.load_state_dict(x)
"""


def test_the_order_of_questions_does_not_matter() -> None:
    """Functions that call each other in a circle are as hot as what calls any of them, whoever is asked first."""
    answers = set()
    for order in (1, -1):
        model = Model(Source("a.py", CIRCLE), Project())
        reads = [call for call in model.nodes(ast.Call) if ast.unparse(call.func).endswith(".item")]
        heats = {read.lineno: model.heat(read).value for read in reads[::order]}
        answers.add(tuple(sorted(heats.items())))
    assert answers == {((3, "hot"), (7, "hot"), (10, "hot"), (16, "cold"))}


TESTS = """
def test_model():
    for x, y in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        loss.item()
"""


@pytest.mark.parametrize(
    ("name", "more", "heat"),
    [
        ("test_model.py", "    assert x is not None\n", "cold"),
        ("model_test.py", "import unittest\n", "cold"),
        ("conftest.py", "", "cold"),
        ("test_model.py", "", "hot"),
        ("model.py", "import pytest\n", "hot"),
        ("contest.py", "    assert x is not None\n", "hot"),
    ],
)
def test_tests_are_not_run_for_their_speed(name: str, more: str, heat: str) -> None:
    """A program that is only called test_… is none."""
    model = Model(Source(name, TESTS + more), Project())
    (read,) = (call for call in model.nodes(ast.Call) if ast.unparse(call) == "loss.item()")
    assert model.heat(read).value == heat


@pytest.mark.parametrize(
    ("name", "more", "heat"),
    [
        ("debug/norms.py", "train()", "cold"),
        ("scripts/debug_norms.py", "train()", "cold"),
        ("scripts/debugging_norms.py", "train()", "cold"),
        ("debug/norms.py", "", "hot"),
        ("debugger/norms.py", "train()", "hot"),
        ("bugs/norms.py", "train()", "hot"),
    ],
)
def test_programs_that_look_for_mistakes_are_not_run_for_their_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, more: str, heat: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text = TESTS.replace("test_model", "train") + (f'if __name__ == "__main__":\n    {more}\n' if more else "")
    model = Model(Source(name, text), Project())
    (read,) = (call for call in model.nodes(ast.Call) if ast.unparse(call) == "loss.item()")
    assert model.heat(read).value == heat


WITHOUT_GPU = """
device_type = "cuda" if torch.cuda.is_available() else "cpu"
use_cuda = torch.cuda.is_available()
def step(x: Tensor, device, args):
    if device_type == "cuda":
        x.sum()         # hot
    else:
        x.sum()         # cold
    if device.type != "cuda":
        x.sum()         # cold
    elif str(args.device) == "cpu":
        x.sum()         # cold
    else:
        x.sum()         # hot
    if torch.cuda.is_available():
        x.sum()         # hot
    else:
        x.sum()         # cold
    if use_cuda and args.fast:
        x.sum()         # hot
    else:
        x.sum()         # hot
    if not use_cuda:
        x.sum()         # cold
    if "cuda" in args.device or device.type.startswith("cuda"):
        x.sum()         # hot
    else:
        x.sum()         # cold
    if device == torch.device("cpu"):
        x.sum()         # cold
    if x.device.type == "cuda":
        x.sum()         # hot
    else:
        x.sum()         # hot
    if device == args.device:
        x.sum()         # hot
    else:
        x.sum()         # hot
    if args.kind == "cuda":
        x.sum()         # hot
    else:
        x.sum()         # hot
    if args.cuda_graphs.is_available():
        x.sum()         # hot
    else:
        x.sum()         # hot
    if device.type == "cuda":
        return x.sum()  # hot
    return x.mean()     # cold
for batch in loader:
    step(batch, torch.device("cuda"), args)
    loss.backward()
    optimizer.step()
"""


@table(WITHOUT_GPU)
def test_branches_of_runs_without_a_gpu(case: Case) -> None:
    check(case)


AGENTS = """
class Agent:
    def main(self):
        state = torch.tensor(self.state, device="cuda")                 # hot
        logits = self.model(state)                                      # hot
        states, rewards, dones, infos = self.envs.step(self.act(logits))
        self.log(logits.mean().item())                                  # hot
        return rewards
    def collect(self):
        logits = self.model.forward(self.state)                         # warm
        for env in self.envs:
            env.step(logits)
    def evaluate(self, n):
        total = self.first.mean().item()                                # warm
        for _ in range(n):
            action = self.model(self.state)                             # hot
            self.env.step(action)
    def reset(self):
        self.first.mean().item()                                        # warm
        return self.env.step(0)
    def plan(self):
        self.model(self.state).mean().item()                            # warm
        self.schedule.step()
    def roll(self, n, states: Tensor):
        self.first.mean().item()                                        # warm
        for t in range(n):
            action = self.act(states[t]) * states[t]                    # hot
            state, done = self.env.step(action.cpu().numpy())           # hot
            self.save_turn(torch.tensor(state))                         # hot
    def save_turn(self, state):
        self.states[0] = state                                          # hot
    def save_game(self, state):
        self.states[self.turn] = state.sum()                            # warm
        self.turn += 1
    def save_states(self, state):
        self.states[self.turn] = state.sum()                            # cold
        torch.save(self.states, "states.pt")
    def save_best(self, state):
        self.best = state.sum()                                         # cold
    def warm_up(self, n):
        for t in range(n):
            self.env.step(self.env.action_space.sample())               # cold
    def replay(self, actions: list[int]):
        for action in actions:
            self.env.step(action)                                       # warm
    def fill(self, n):
        for t in range(n):
            self.env.step(torch.zeros(3, device="cpu").numpy())         # warm
    def schedule(self, losses: Tensor):
        for loss in losses:
            self.schedule.step(loss.item())                             # warm
    def nested(self, envs, actions: Tensor):
        for n in range(9):
            self.first.mean().item()                                    # warm
            for env in envs:
                env.step(actions[n].item())                             # hot
class Runner:
    def main(self):
        self.first.mean().item()                                        # cold
        self.agent.train()
"""


@table(AGENTS)
def test_methods_that_take_one_step_of_an_environment(case: Case) -> None:
    check(case)


LAST_STEPS = """
for epoch in range(args.epochs):
    for i, (x, y) in enumerate(loader):
        loss = model(x).sum()                   # hot
        loss.backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
    optimizer.step()
    print(weight.abs().max().item())            # cold

for epoch in range(args.epochs):
    for x, y in parts:
        loss = model(x).sum()                   # hot
        loss.backward()
    optimizer.step()
    print(weight.abs().max().item())            # hot

for epoch in range(args.epochs):
    for discriminator_turn in range(turns):
        critic(x).sum().backward()              # hot
        critic_optimizer.step()
    loss = model(x).sum()                       # hot
    loss.backward()
    optimizer.step()

for turn in range(args.turns):
    for discriminator_turn in range(turns):
        critic(x).sum().backward()              # hot
        critic_optimizer.step()
    loss = model(x).sum()                       # hot
    loss.backward()
    optimizer.step()

for epoch in range(args.epochs):
    for x, y in parts:
        loss = model(x).sum()                   # hot
        loss.backward()
        optimizer.step()
    optimizer.step()
    print(model(x).abs().max().item())          # cold

for turn in range(args.turns):
    for x, y in parts:
        loss = model(x).sum()                   # hot
        loss.backward()
        optimizer.step()
    optimizer.step()
    print(model(x).abs().max().item())          # hot
"""


@table(LAST_STEPS)
def test_steps_after_the_last_batch_of_an_epoch(case: Case) -> None:
    check(case)


FAILURES = """
def training_step(x: Tensor, error, y):
    if isinstance(error, torch.cuda.OutOfMemoryError):
        x.sum()             # cold
    if isinstance(error, (ValueError, errors.SomeException)):
        x.sum()             # cold
    else:
        x.sum()             # hot
    if isinstance(y, Tensor):
        x.sum()             # hot
    if isinstance(y, (Tensor, ValueError)):
        x.sum()             # hot
    if not isinstance(error, ValueError):
        x.sum()             # hot
"""


@table(FAILURES)
def test_branches_for_failures(case: Case) -> None:
    check(case)


GROWN_LISTS = """
def training_step(x: Tensor, stops):
    flag = os.getenv("DUMP", "0") == "1"
    kept = []
    for i, stop in enumerate(stops):
        if not stop:
            kept.append(i)
    if flag:
        x.sum()             # cold
    if not kept:
        return None
    if kept:
        x.max()             # hot
    return x.sum()          # hot
"""


@table(GROWN_LISTS)
def test_lists_that_are_empty_at_first_are_no_switches(case: Case) -> None:
    check(case)


@table(STEPS_OF_TRAINING)
def test_steps_of_training(case: Case) -> None:
    check(case)


GAPS = """
def _spline(x):
    return x.mean().item()                  # warm
def _dense(x):
    return x.mean().item()                  # warm
def spline(x: torch.Tensor):
    if torch.isnan(x).any():
        y = _spline(x.transpose(0, 1))      # warm
    else:
        y = _dense(x)                       # warm
    return y

def _prepared(x):
    return x.mean().item()                  # warm
def _linear(x):
    return x.mean().item()                  # warm
def linear(x: torch.Tensor, rectilinear):
    if rectilinear:
        x = _prepared(x)                    # warm
    if bool(x.isnan().any()):
        return _linear(x)                   # warm
    return x

def _recovered(x):
    return x.mean().item()                  # cold
def computed(x: torch.Tensor):
    x = x.log()
    if torch.isnan(x).any():
        x = _recovered(x)                   # cold
    return x

def _reported(x):
    return x.mean().item()                  # cold
def reported(x: torch.Tensor):
    if torch.isnan(x).any():
        _reported(x)                        # cold
    return x.mean()

def _rescued(x):
    return x.mean().item()                  # cold
def rescued(x: torch.Tensor, y: torch.Tensor):
    if torch.isinf(x).any():
        x = _rescued(x)                     # cold
    if torch.isnan(x).any() or torch.isinf(x).any():
        x = _rescued(x)                     # cold
    if torch.isnan(y).any():
        z = _rescued(x)                     # cold
    if torch.isnan(x.grad).any():
        x = _rescued(x)                     # cold
    if torch.isnan(y).any():
        y = torch.nan_to_num(y)             # cold
    return x, y, z
"""


@table(GAPS)
def test_branches_that_fill_gaps_in_data(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("name", "copy", "expected"),
    [
        ("save", "{name: part.detach().cpu() for name, part in model.state_dict().items()}", Heat.COLD),
        ("write_checkpoint", "[part.cpu().numpy() for part in model.state_dict().values()]", Heat.COLD),
        ("average", "{name: part.detach().cpu() for name, part in model.state_dict().items()}", Heat.HOT),
        ("save", "{name: part.mul(2) for name, part in model.state_dict().items()}", Heat.HOT),
        ("save", "{name: part.cpu() for name, part in model.named_parameters()}", Heat.HOT),
        ("save", "[part.cpu() for part in model(x).items()]", Heat.HOT),
        ("save", "model.state_dict().cpu()", Heat.HOT),
    ],
)
def test_copies_of_a_model(name: str, copy: str, expected: Heat) -> None:
    text = f"""
def train(model, loader, optimizer):
    for x in loader:
        optimizer.step()
        {name}(model, x)
def {name}(model, x):
    kept = {copy}
"""
    model = Model(Source("snippet.py", PRELUDE + text), Project())
    calls = [call for call in model.nodes(ast.Call) if ast.unparse(call.func).endswith((".cpu", ".mul"))]
    assert [model.heat(call) for call in calls] == [expected]


OTHER_KINDS = """
class Net(nn.Module):
    def forward(self, x: Tensor, t: Tensor | int, n, scale: float, mask: Optional[Tensor] = None):
        if not torch.is_tensor(t):
            t = torch.tensor([t], device=x.device)                      # cold
        if isinstance(x, torch.Tensor):
            x = x * torch.tensor(2.0).to(x.device)                      # hot
        else:
            x = torch.tensor(x).cuda()                                  # cold
        n = n if torch.is_tensor(n) else torch.tensor(n).cuda()         # hot
        if not isinstance(n, torch.Tensor):
            n = torch.tensor(n).to(x.device)                            # hot
        if isinstance(n, list):
            n = torch.tensor(n).to(x.device)                            # hot
        if not isinstance(scale, torch.Tensor):
            scale = torch.tensor(scale).to(x.device)                    # hot
        return x, t, n, scale
def sample(x, t: Tensor | int):
    if not torch.is_tensor(t):
        t = torch.tensor([t]).cuda()                                    # hot
    return x * t
def run(loader, model, optimizer):
    for x in loader:
        optimizer.step()
        for i in range(100):
            x = sample(model(x), i)
def images(model, loader, optimizer, im: Tensor | list[Tensor], device):
    for _ in loader:
        optimizer.step()
        if not isinstance(im, torch.Tensor):
            batch = torch.stack(im).to(device)                          # hot
def warm(steps: Tensor | int):
    times = steps
    if not torch.is_tensor(times):
        times = torch.tensor(times).cuda()                              # cold
    return times
"""


@table(OTHER_KINDS)
def test_branches_for_arguments_that_are_no_tensors(case: Case) -> None:
    check(case)


RARE_OPTIONS = """
class Attention(nn.Module):
    def forward(self, x: Tensor):
        if self.position_embedding_type == "relative_key" or self.position_embedding_type == "relative_key_query":
            x = x + torch.tensor(1.0).to(x.device)                      # cold
            if self.position_embedding_type == "relative_key":
                x = x + torch.tensor(1.0).to(x.device)                  # cold
        if self.position_embedding_type != "relative_key":
            x = x + torch.tensor(1.0).to(x.device)                      # hot
        if self.position_embedding_type == "absolute":
            x = x + torch.tensor(1.0).to(x.device)                      # hot
        return x
"""


@table(RARE_OPTIONS)
def test_options_that_few_models_use(case: Case) -> None:
    check(case)


SINGLE = """
class Loss(nn.Module):
    def forward(self, x: Tensor, parts: list[Tensor], others):
        if len(parts) < 2:
            return torch.tensor(0.0).to(x.device)       # cold
        if len(others) <= 1:
            x = x + others[0].item()                    # cold
        if x.numel() > 1:
            y = x.max().item()                          # hot
        else:
            y = x.item()                                # hot
        if not len(parts) > 1:
            y = parts[0].item()                         # cold
        if len(x) < 2:
            y = x[0].item()                             # hot
        if len(parts) < 3:
            y = parts[0].item()                         # hot
        if len(parts) > 1:
            y = parts[0].item()                         # hot
        if x.shape[0] <= 1:
            y = x[0].item()                             # hot
        if len(parts) == 1:
            y = parts[0].item()                         # hot
        return y
"""


@table(SINGLE)
def test_branches_for_one_element(case: Case) -> None:
    check(case)
