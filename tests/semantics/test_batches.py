"""Batches: how they get to the device, and how functions and models take them."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

STORES = """
from torch.utils.data import DataLoader
for batch in DataLoader([]):
    for key in batch:
        key                 # -> str
        batch[key]          # -> cpu
        batch[key] = batch[key].to("cuda")
        batch[key]          # -> cuda
    batch["x"]              # -> cuda
for batch in DataLoader([]):
    moved = {key: batch[key].cuda() for key in batch}
    moved["x"]              # -> cuda
    [part for part in batch][0]     # -> cpu
for batch in DataLoader([]):
    for key, value in batch.items():
        batch[key] = value.cuda()
    batch["x"]              # -> cuda
for batch in DataLoader([]):
    batch["x"] = batch["x"].cuda()
    batch["x"]              # -> cuda
    batch["y"]              # -> cpu
for images, labels in DataLoader([]):
    images[0] = images[0].cuda()
    images[1] = images[1].cuda()
    images[0]               # -> tensor
    labels                  # -> cpu
for parts in DataLoader([]):
    for i in range(len(parts)):
        parts[i] = parts[i].cuda()
    parts[0]                # -> cuda
for batch in DataLoader([]):
    for key in names:
        batch[key] = batch[key].cuda()
    batch["x"]              # -> tensor

state = {"a": host, "b": host}
for name in state:
    state[name]             # -> cpu float 2
    state[name] = state[name].cuda()
    state[name]             # -> cuda float 2
state["a"]                  # -> cuda float 2
state["c"]                  # -> cuda float 2

state = {"a": host, "b": host}
for name, value in state.items():
    state[name] = cuda
    for name in ("x", "y"):
        state["a"] = host
state["b"]                  # -> cuda float 2

state = {"a": host}
for name in ("x", "y"):
    state[name] = cuda
state["a"]                  # -> cpu float 2
state["x"]                  # -> tensor float 2

rows = [host, host]
for i, row in enumerate(rows):
    rows[i] = row.cuda()
rows[0]                     # -> cuda float 2

rows = [host, host]
for i in range(3):
    rows[i] = cuda
rows[0]                     # -> tensor float 2

rows = [host, host]
for i in range(len(rows)):
    rows[0] = cuda
rows[0]                     # -> tensor float 2
"""

SPREAD = """
def generate(model, input_ids, mask: Tensor, other: int, n=3, past=None, *, labels, keep=True):
    input_ids               # -> cuda float 2
    mask                    # -> caller
    other                   # -> int
    n                       # -> int=3
    labels                  # -> cuda float 2
    keep                    # -> bool=True
    return input_ids, past
batch = {k: v.cuda() for k, v in {"a": host}.items()}
generate(nn.Linear(3, 3), **batch)[0]           # -> cuda float 2
generate(nn.Linear(3, 3), **batch, n=2)[1]      # -> cuda float 2 | None
generate(nn.Linear(3, 3), past=host, **batch)[1]    # -> cpu float 2

def f(x, y):
    return x
f(**settings)               # -> ?

def f(x, y):
    return y
f(host, *[cuda for _ in range(2)])      # -> cuda float 2

def f(x, y):
    return y
f(*[unknown() for _ in range(2)])       # -> ?

def f(x, y):
    return y
f(**{k: v for k, v in unknown().items()})       # -> ?

class Net(nn.Module):
    def forward(self, input_ids, labels=None):
        input_ids           # -> model
        loss = None
        if labels is not None:
            labels          # -> model
            loss = F.mse_loss(input_ids, labels)
        return loss
def train(model, loader, device):
    for batch in loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        model(**batch)
train(Net(), torch.utils.data.DataLoader([]), torch.device(name()))

class Net(nn.Module):
    def forward(self, x, flag=False):
        flag                # -> bool=False
        return x
Net()(**{k: v.cuda() for k, v in {"a": host}.items()})      # -> cuda float 2
"""

HOOKS = """
class Printer:
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        outputs["loss"]     # -> model
        batch[0]            # -> model
        batch_idx           # -> ?
    def on_epoch_end(self, trainer, outputs):
        outputs             # -> ?
    def on_train_batch(self, outputs):
        outputs             # -> ?
def on_train_batch_end(outputs):
    outputs                 # -> ?

class Log:
    def log(self, name: str, value: Any, step: int):
        value               # -> cuda float 0
        step                # -> int
    def run(self):
        self.log("loss", cuda.sum(), 3)

def log(value):
    value                   # -> cuda float 2
def run(loader):
    log(cuda)
    log(torch.zeros(2, 3, device=somewhere()))

def log(value):
    value                   # -> tensor float 2
def run(loader):
    log(cuda)
    log(host)
    log(torch.zeros(2, 3, device=somewhere()))

def log(value):
    value                   # -> tensor float 2
def run(loader):
    log(host)
    log(torch.zeros(2, 3, device=somewhere()))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict(dict(head=nn.Linear(3, 3), blocks=nn.ModuleList([nn.ReLU()])))
    def forward(self, x):
        for block in self.parts.blocks:
            x = block(x)    # -> model float
        self.parts.values() # -> iterator[Linear(in_features=3, out_features=3) | ModuleList(modules=[ReLU()])]
        self.parts.missing  # -> torch.nn.ModuleDict.missing
        return self.parts.head(x)       # -> model float
"""


@table(STORES)
def test_stores(case: Case) -> None:
    check(case)


@table(SPREAD)
def test_spread(case: Case) -> None:
    check(case)


@table(HOOKS)
def test_hooks(case: Case) -> None:
    check(case)


TOKENS = """
encoded = tokenizer("text", return_tensors="pt")
encoded["input_ids"]        # -> cpu
encoded.input_ids           # -> cpu
encoded.to("cuda")["x"]     # -> cuda
{k: v.cuda() for k, v in encoded.items()}["x"]      # -> cuda
processor.tokenizer.encode("text", return_tensors="pt")     # -> cpu
processor.apply_chat_template([], return_tensors="pt", return_dict=False)       # -> cpu
processor.apply_chat_template([], return_tensors="pt", return_dict=True)["x"]   # -> cpu
tokenizer("text", return_tensors="np")      # -> ?
tokenizer("text")                           # -> ?
"""


@table(TOKENS)
def test_tensors_of_tokenizers(case: Case) -> None:
    """`return_tensors` is an argument of transformers alone."""
    check(case)
