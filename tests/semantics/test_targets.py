"""The full names of what is called, under whatever name it was imported."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

TARGETS = """
import torch as th, torch.nn as tnn, torch.nn.functional as fn, numpy as numpy_, torch.optim as optim
from torch import nn as N, zeros as make, Tensor as T
from torch.nn import Linear, functional as G, Conv2d as Conv, Module as M
from torch.nn.modules.conv import Conv3d
from torch.utils import data as D, checkpoint
from torch.cuda import synchronize, amp as old
from torch.cuda.amp import autocast as cast
from torch.nn.functional import relu as rectify
torch.zeros(3)              # calls torch.zeros
th.zeros(3)                 # calls torch.zeros
make(3)                     # calls torch.zeros
th.cuda.synchronize()       # calls torch.cuda.synchronize
synchronize()               # calls torch.cuda.synchronize
th.nn.Linear(1, 2)          # calls torch.nn.Linear
N.Linear(1, 2)              # calls torch.nn.Linear
tnn.Linear(1, 2)            # calls torch.nn.Linear
Linear(1, 2)                # calls torch.nn.Linear
Conv(1, 2, 3)               # calls torch.nn.Conv2d
Conv3d(1, 2, 3)             # calls torch.nn.Conv3d
F.relu(cuda)                # calls torch.nn.functional.relu
fn.relu(cuda)               # calls torch.nn.functional.relu
G.relu(cuda)                # calls torch.nn.functional.relu
rectify(cuda)               # calls torch.nn.functional.relu
torch.nn.functional.relu(cuda)  # calls torch.nn.functional.relu
torch.relu(cuda)            # calls torch.relu
D.DataLoader(x)             # calls torch.utils.data.DataLoader
torch.utils.data.dataloader.DataLoader(x)   # calls torch.utils.data.DataLoader
checkpoint.checkpoint(fn, x)    # calls torch.utils.checkpoint.checkpoint
optim.Adam(x)               # calls torch.optim.Adam
torch.optim.adam.Adam(x)    # calls torch.optim.Adam
torch.concat([cuda])        # calls torch.concat
old.GradScaler()            # calls torch.cuda.amp.GradScaler
cast()                      # calls torch.cuda.amp.autocast
torch.amp.autocast("cuda")  # calls torch.amp.autocast
torch.no_grad()             # calls torch.no_grad
torch.inference_mode()      # calls torch.inference_mode
torch.cuda.empty_cache()    # calls torch.cuda.empty_cache
torch.nn.utils.clip_grad_norm_(x, 1)    # calls torch.nn.utils.clip_grad_norm_
torch.functional.einsum("i->i", cuda)   # calls torch.einsum
torch.device("cuda")        # calls torch.device
numpy_.zeros(3)             # calls numpy.zeros
np.random.rand(3)           # calls numpy.random.rand
cuda.item()                 # calls torch.Tensor.item
cuda.sum().item()           # calls torch.Tensor.item
cuda.cpu()                  # calls torch.Tensor.cpu
(cuda > 0).any()            # calls torch.Tensor.any
torch.Tensor.item(cuda)     # calls torch.Tensor.item
T.item(cuda)                # calls torch.Tensor.item
float(cuda)                 # calls builtins.float
print(cuda)                 # calls builtins.print
"a".format(cuda)            # calls builtins.str.format
[].append(cuda)             # calls builtins.list.append
{}.items()                  # calls builtins.dict.items
np.zeros(3).mean()          # calls numpy.ndarray.mean
unknown(cuda)               # calls
unknown.method(cuda)        # calls
unknown.unsqueeze(0)        # calls torch.Tensor.unsqueeze
unknown().masked_fill(mask, 0)  # calls torch.Tensor.masked_fill
unknown().item()            # calls
math.sqrt(2)                # calls math.sqrt

import time, logging, os, sys
from time import perf_counter as clock
time.time()                 # calls time.time
clock()                     # calls time.perf_counter
logging.info("a")           # calls logging.info
logging.getLogger("a").info("a")    # calls logging.Logger.info
logger = logging.getLogger(__name__)
logger.warning("a")         # calls logging.Logger.warning
os.path.join("a")           # calls os.path.join
sys.exit(0)                 # calls sys.exit

model = nn.Linear(3, 4)
model(cuda)                 # calls torch.nn.Module.__call__
model.to("cuda")            # calls torch.nn.Module.to
model.eval()                # calls torch.nn.Module.eval
model.forward(cuda)         # calls torch.nn.Module.forward
model.cuda()                # calls torch.nn.Module.cuda
model.parameters()          # calls torch.nn.Module.parameters
model.state_dict()          # calls torch.nn.Module.state_dict
model.weight.norm()         # calls torch.Tensor.norm
nn.ReLU()(cuda)             # calls torch.nn.Module.__call__
optimizer = torch.optim.SGD(model.parameters(), 0.1)
optimizer.step()            # calls torch.optim.Optimizer.step
optimizer.zero_grad()       # calls torch.optim.Optimizer.zero_grad
optimizer.zero_grad(set_to_none=True)   # calls torch.optim.Optimizer.zero_grad
loss = F.mse_loss(model(cuda), cuda)
loss.backward()             # calls torch.Tensor.backward
scaler = torch.amp.GradScaler("cuda")
scaler.scale(loss).backward()       # calls torch.Tensor.backward
scaler.step(optimizer)      # calls torch.amp.GradScaler.step
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
scheduler.step()            # calls torch.optim.lr_scheduler.StepLR.step
loader = torch.utils.data.DataLoader(x)
next(iter(loader))          # calls builtins.next
event = torch.cuda.Event(enable_timing=True)
event.record()              # calls torch.cuda.Event.record
event.elapsed_time(event)   # calls torch.cuda.Event.elapsed_time
torch.cuda.current_stream().synchronize()   # calls torch.cuda.Stream.synchronize
g = torch.Generator()
g.manual_seed(3)            # calls torch.Generator.manual_seed
torch.distributions.Normal(0, 1).sample()   # calls torch.distributions.Normal.sample
act = F.relu
act(cuda)                   # calls torch.nn.functional.relu
act = {"relu": F.relu, "gelu": F.gelu}["relu"]
act(cuda)                   # calls torch.nn.functional.relu
act = getattr(torch, "relu")
act(cuda)                   # calls torch.relu
kernel = functools.partial(F.pad, value=0)
kernel(cuda, (1, 1))        # calls torch.nn.functional.pad
make = nn.Linear
make(3, 4)                  # calls torch.nn.Linear
norm = nn.LayerNorm if flag else nn.RMSNorm
norm(3)                     # calls torch.nn.LayerNorm

def helper(x):
    return x
helper(cuda)                # calls snippet.helper
class Net(nn.Module):
    def __init__(self):
        super().__init__()      # calls torch.nn.Module.__init__
        self.fc = nn.Linear(3, 3)
        self.act = F.gelu
        self.step_fn = helper
    def forward(self, x):
        self.fc(x)              # calls torch.nn.Module.__call__
        self.act(x)             # calls torch.nn.functional.gelu
        self.step_fn(x)         # calls snippet.helper
        self.helper(x)          # calls snippet.Net.helper
        self.static(x)          # calls snippet.Net.static
        Net.static(x)           # calls snippet.Net.static
        self.parameters()       # calls torch.nn.Module.parameters
        self.missing(x)         # calls
        return x.unsqueeze(-1)  # calls torch.Tensor.unsqueeze
    def helper(self, x):
        return x
    @staticmethod
    def static(x):
        return x
Net()                       # calls snippet.Net
Net()(cuda)                 # calls torch.nn.Module.__call__
Net().helper(cuda)          # calls snippet.Net.helper
Net().to("cuda")            # calls torch.nn.Module.to
class Child(Net):
    def forward(self, x):
        self.helper(x)          # calls snippet.Net.helper
        super().forward(x)      # calls snippet.Net.forward
        super().helper(x)       # calls snippet.Net.helper

def f(x: Tensor, y, model, optimizer):
    x.item()                # calls torch.Tensor.item
    x.max().item()          # calls torch.Tensor.item
    y.item()                # calls torch.Tensor.item
    y.detach()              # calls torch.Tensor.detach
    y.detach().item()       # calls torch.Tensor.item
    model(x)                # calls torch.nn.Module.__call__
    model.train()           # calls torch.nn.Module.train
    x.shape.index(3)        # calls builtins.size.index
    x.tolist().append(3)    # calls builtins.list.append
    len(x)                  # calls builtins.len

def f():
    from torch import cuda as c
    import torch.nn.functional as F2
    c.synchronize()         # calls torch.cuda.synchronize
    F2.relu(host)           # calls torch.nn.functional.relu

def f(print, torch):
    print(3)                # calls
    torch.zeros(3)          # calls

try:
    from torch.amp import GradScaler
except ImportError:
    from torch.cuda.amp import GradScaler
GradScaler()                # calls torch.amp.GradScaler
"""


@table(TARGETS)
def test_targets(case: Case) -> None:
    check(case)
