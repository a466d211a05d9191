"""What the way something unknown is used says of it, and what it does not say."""

from __future__ import annotations

import ast

import pytest

from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.semantics.notation import PRELUDE, Case, check, show, table

CALLS = """
unknown().int()     # -> tensor int
unknown().int().sum().item()    # -> int
unknown()["target"].ne(1).int() # -> tensor int
(unknown() != 1).nonzero().flatten()    # -> tensor int 1
unknown().nonzero(as_tuple=True)[0]     # -> ?
unknown().flatten(0, 1).all(0).all(-1)  # -> tensor bool
unknown().transpose(1, 2)   # -> tensor
unknown().transpose(-1, -2) # -> tensor
unknown().view(n, -1)   # -> tensor 2
unknown().size(0)   # -> int
unknown().sum(dim=-1)   # -> tensor
unknown().mean(dim=1, keepdim=True) # -> tensor float
unknown().isnan()   # -> tensor bool
unknown().grad.isnan().any()    # -> tensor bool 0
unknown().cpu().numpy()     # -> array
unknown().data.cpu().numpy()    # -> array
unknown().cpu().tolist()    # -> list[?]
unknown().cpu() / n     # -> cpu
unknown()[0, :].data.cpu()      # -> cpu
unknown().append(unknown().to("cpu"))   # -> ?
unknown().float().mean()    # -> tensor float 0
unknown().to("cuda").unsqueeze(0)   # -> cuda
1127 * unknown().log()      # -> tensor float
unknown().to(torch.long)    # -> tensor int
(unknown().ne(1) & unknown()).to(dtype=torch.bool)   # -> tensor bool
unknown().to("cuda", dtype=torch.uint8)     # -> cuda int
unknown().to("cpu", copy=True)      # -> cpu
unknown().grad.data.norm(2)     # -> tensor float 0
unknown().grad.zero_()  # calls torch.Tensor.zero_
unknown().to("cuda").eval()     # -> Module
unknown().cuda().train().parameters()   # calls torch.nn.Module.parameters

# look-alikes
unknown().ne(1)     # -> ?
unknown().int(3)    # -> ?
unknown().sum(1)    # -> ?
unknown().sum(dim="time")   # -> ?
unknown().mean(axis=1)  # -> ?
unknown().size()    # -> ?
unknown().size(n)   # -> ?
unknown().flatten()     # -> ?
unknown().flatten("C")  # -> ?
unknown().transpose(0, 1)   # -> ?
unknown().transpose(2, 0, 1)    # -> ?
unknown().view(np.uint8)    # -> ?
unknown().expand(n)     # -> ?
unknown().nonzero()     # -> ?
unknown().nonzero()[0]  # -> ?
unknown().cpu()     # -> ?
(unknown().cpu(), 1)[0]     # -> ?
unknown(unknown().cpu())    # -> ?
unknown().float()   # -> ?
unknown().float().forward(1)    # -> ?
unknown().log()     # -> ?
1127 * unknown().log(2)     # -> ?
unknown().tolist()  # -> ?
unknown().to(torch.float16)     # -> ?
unknown().to("cuda", dtype=torch.float32)   # -> ?
unknown().to(unknown().dtype)   # -> ?
unknown().to(np.int64)  # -> ?
unknown().item()    # -> ?
unknown().any()     # -> ?

class Act(Foreign):
    def f(self, x):
        self.int()          # -> ?
        self.softmax(x, dim=-1)     # -> ?
"""

PARAMETERS = """
def f(x):
    x.size(0)
    x               # -> caller

def f(x):
    x.transpose(1, 2)
    x               # -> caller

def f(x):
    return x.cpu().numpy(), x   # -> (array, caller)

def f(x):
    assert not x.dtype.is_complex
    if x.numel() > 0:
        x           # -> caller

def f(shape):
    shape.index(1)
    shape.numel()   # -> ?

def f(x):
    x.size()
    x.transpose(2, 0, 1)
    x.cpu()
    x               # -> ?

def f(module):
    for name, p in module.named_parameters():
        p           # -> model float parameter

def f(module):
    for p in module.parameters():
        p           # -> model float parameter
    module.train()
    module          # -> Module

def f(x):
    x.shape, x.device
    x               # -> caller int
f(unknown().int())

def f(x, y):
    x.shape, x.device
    x               # -> cpu float 2
    y               # -> tensor int
f(host, unknown().int())

def f(model, x):
    model.eval()
    model(x)        # -> cpu float
f(nn.Linear(2, 2), host)

def f(model, expression, first, second):
    model.eval()
    model(cuda)
    model           # -> Module
    expression.eval(3)
    expression      # -> ?
    second(first.load_state_dict(3), second.load_state_dict(3))
    first           # -> ?
    second          # -> Module

def f(part, batch, again):
    part.cuda()
    part(cuda)
    part            # -> Module
    batch.to("cuda")
    batch           # -> ?
    again = again.to("cuda")
    again(cuda)
    again           # -> Module

def f(signature):
    for p in signature.parameters:
        p           # -> ?

def f(frame):
    frame.eval("a + b")
    frame           # -> ?

def f(batch):
    for p in batch.model.parameters():
        p           # -> model float parameter

def f(batch):
    for name, p in batch.model.named_parameters():
        p.grad      # -> model float
"""


@table(CALLS)
def test_calls(case: Case) -> None:
    check(case)


@table(PARAMETERS)
def test_parameters(case: Case) -> None:
    check(case)


CLASSES = """
from somewhere import Base
class Wrapper(Base):
    def __init__(self, eps):
        super().__init__()
        self.register_buffer("eps", torch.tensor(eps))

    def step(self):
        self.eps        # -> model buffer
class Told(nn.Module):
    def __init__(self, make, width):
        super().__init__()
        self.kernel: Tensor
        self.other: Tensor
        self.register_buffer("kernel", make(width))
        self.volume = self.total()
    def total(self):
        return self.kernel.sum()
    def forward(self, x):
        self.kernel     # -> model buffer
        self.other      # -> caller
class Below(Wrapper):
    def step(self):
        self.eps        # -> model buffer

class Loose:
    def build(self):
        self.register_parameter("scale", nn.Parameter(torch.ones(3)))
        self.scale      # -> model float 1 parameter

import other
class Layer(other.Layer):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x.sum()  # -> model 0

# look-alikes

from somewhere import Base
class Registry(Base):
    def register_buffer(self, name, buffer):
        pass

    def build(self):
        self.register_buffer("eps", torch.zeros(1))
        self.eps        # -> ?

from somewhere import Base
class Parser(Base):
    def forward(self, x):
        return x.sum()  # -> ?

class Plain:
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x.sum()  # -> ?

import abc
class Straight(abc.ABC):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x.sum()  # -> ?

from somewhere import Base
class Op(Base):
    def __init__(self):
        super().__init__()

    @staticmethod
    def forward(ctx, x):
        return x.sum()  # -> ?
"""


@table(CLASSES)
def test_classes(case: Case) -> None:
    check(case)


LIBRARIES = """
from graphs.typing import OptTensor, PairTensor, Tensor as Any_, Adj
def f(x: OptTensor, pair: PairTensor, t: Any_, adj: Adj):
    x       # -> caller | None
    pair    # -> (caller, caller)
    t       # -> caller
    adj     # -> caller | ?

from graphs.typing import SparseTensor, TensorFrame
from tensorflow import Tensor as Other
def f(x: SparseTensor, frame: TensorFrame, other: Other):
    x       # -> SparseTensor
    frame   # -> TensorFrame
    other   # -> Tensor

from torch_geometric.utils import scatter, degree, softmax, to_dense_batch
scatter(cuda, ints)     # -> cuda float
softmax(cuda, ints)     # -> cuda float
degree(ints)        # -> cuda
to_dense_batch(cuda, ints)      # -> ?

from torch_scatter import scatter_softmax
scatter_softmax(cuda, ints)     # -> cuda float

class Trainer(Missing):
    def step(self, x):
        self.accelerator.gather_for_metrics(cuda)   # -> cuda float 2
        self.accelerator.gather_for_metrics(x)      # -> ?
        self.accelerator.gather(cuda)       # -> ?

def main(accelerator):
    accelerator.gather(cuda)        # -> cuda float 2
    accelerator.is_main_process     # -> bool

def main(accelerator):
    Trainer(accelerator=accelerator)
    accelerator     # -> ?
"""


@table(LIBRARIES)
def test_libraries(case: Case) -> None:
    check(case)


DERIVED = """
class Box:
    pass
class ContinuousBox(Box):
    def __init__(self, low: Tensor, width: int):
        self._low = low
        self.width = width
    @property
    def low(self) -> Tensor:
        return self._low
    def project(self, x):
        return x
class Spec:
    space: Union[None, Box]
    def read(self, box: Box):
        self.space.low      # -> caller
        box.low         # -> caller
        box.width       # -> int
        box.project     # -> ?
        box.high        # -> ?

class Base:
    def loss(self):
        return self.scale       # -> model float 1 parameter
class Net(Base, nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.ones(3))
    def f(self, base: Base):
        base.shift      # -> ?
"""


@table(DERIVED)
def test_derived(case: Case) -> None:
    check(case)


ENTRIES = """
from tensordict import TensorDict, TensorDictBase
made = TensorDict({"a": cuda}, batch_size=[2], device="cuda")
loose = TensorDict({"a": cuda}, [2])
made["a"]       # -> cuda
made["a", "b"]  # -> cuda
made[0]["a"]    # -> cuda
loose["a"]      # -> tensor
def f(td: TensorDictBase, key, other):
    td["a"]     # -> caller
    td[key]     # -> ?
    td[3]       # -> TensorDictBase
    other["a"].item()   # -> float
    other[key].item()   # -> ?
    other.item()        # -> ?

def f(other):
    other["a"].item()   # -> ?
"""


@table(ENTRIES)
def test_entries(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("imports", "code", "expected"),
    [
        ("import torch", "x.item()", "float"),
        ("from torch import nn", "x[0].item()", "float"),
        ("import torch", "x.tolist()", "list[?]"),
        ("import torch, numpy as np", "x.tolist()", "?"),
        ("import array, torch", "x.tolist()", "?"),
        ("import torch, numpy as np", "x.item()", "?"),
        ("import torch\nfrom datasets import load_dataset", "x.item()", "?"),
        ("import json", "x.item()", "?"),
        ("import torch", "x.item('a')", "?"),
        ("import torch", "(x > k).any()", "tensor bool 0"),
        ("import torch", "x.any()", "?"),
        ("import torch, numpy", "(x > k).any()", "?"),
    ],
)
def test_numbers_are_read_of_tensors_where_no_other_arrays_are(imports: str, code: str, expected: str) -> None:
    model = Model(Source("snippet.py", f"{imports}\ndef f(x, k):\n    return x.y if k else {code}\n"), Project())
    calls = [node for node in model.everything() if isinstance(node, ast.Call)]
    assert [show(model.value(call)) for call in calls] == [expected]


OPERANDS = """
def f(times, x):
    times.cpu()             # -> cpu
    return [times[i] * x for i in range(3)]

# look-alikes
def f(layers, x):
    layers.cpu()            # -> ?
    return [layers[i](x) for i in range(3)]
def f(batch, x):
    batch.cpu()             # -> ?
    return batch["weights"] * x
def f(times, x):
    times.clear()           # -> ?
    return [times[i] * x for i in range(3)]
"""


@table(OPERANDS)
def test_operands(case: Case) -> None:
    check(case)


OF_FORWARD = """
class Net(nn.Module):
    def forward(self, x, cache: dict | None, config):
        cache["end"].item()     # -> float
        config.item()           # -> float
        cache["end"].tolist()   # -> ?
        self.limit.item()       # -> ?
        other["end"].item()     # -> ?
    def describe(self, x, cache):
        cache["end"].item()     # -> ?

class Reader:
    def forward(self, cache):
        cache["end"].item()     # -> ?
"""
"""The file imports NumPy, too."""


@table(OF_FORWARD)
def test_arguments_of_forward(case: Case) -> None:
    check(case)


MASKS = """
for row, keep in zip(unknown(), unknown().bool()):
    row[keep]           # -> tensor
unknown()[mask]         # -> cuda
unknown()[mask].sum()   # -> cuda 0

# look-alikes
unknown()[mask.cpu()]   # -> ?
unknown()[ints]         # -> ?
unknown()[mask.any()]   # -> ?
unknown()[n]            # -> ?
"""


@table(MASKS)
def test_masks(case: Case) -> None:
    check(case)


ELSEWHERE = """
settings.device                 # -> device caller
settings.nn.base_device         # -> device caller
shared.device                   # -> device caller
Engine().device                 # -> device caller
torch.zeros(3).to(settings.device)      # -> caller float 1
Variable(torch.zeros(3).cuda(), volatile=True)  # -> cuda float 1
Variable(unknown())             # -> tensor

def f(a: TensorType["n", 3], b: Variable, c: TensorType):
    a.device            # -> device caller
    a                   # -> caller
    b                   # -> caller
    c                   # -> caller

# look-alikes
settings.devices                # -> settings.devices
settings.device_count           # -> settings.device_count
torch.device                    # -> torch.device
shared.grad                     # -> tools.shared.grad
"""


@table(
    ELSEWHERE,
    PRELUDE
    + """
import settings
from tools import shared, Engine
from torch.autograd import Variable
from torchtyping import TensorType
""",
)
def test_what_is_elsewhere_is_known_by_its_name(case: Case) -> None:
    check(case)


MADE = """
unknown(mask).item()            # -> float
unknown(unknown(mask)).item()   # -> float

# look-alikes
unknown(mask.cpu()).item()      # -> ?
unknown(n).item()               # -> ?
unknown(mask).any()             # -> ?
"""


@table(MADE)
def test_numbers_are_read_of_what_unknown_code_makes_of_tensors(case: Case) -> None:
    check(case)


KEPT = """
kept, total = {}, 0
kept[n] = unknown().cpu()   # calls torch.Tensor.cpu
total += unknown().cpu()    # calls torch.Tensor.cpu
kept[n] = unknown().to("cpu")   # calls torch.Tensor.to

# look-alikes
model = unknown().cpu()     # -> ?
unknown().cpu()             # -> ?
unknown()(unknown().cpu())  # -> ?
unknown().to("cpu", n)      # -> ?
"""


@table(KEPT)
def test_what_is_kept_or_counted_with_is_data(case: Case) -> None:
    check(case)


OF_A_MODULE = """
class Net(nn.Module):
    def forward(self, lengths, mask, names, table):
        lengths[:, None]        # -> model
        lengths                 # -> model
        mask.max()              # -> model 0
        names[0]                # -> ?
        table[0, 1]             # -> ?

def outside(lengths, mask):
    lengths[:, None]            # -> ?
    mask.max()                  # -> ?
"""


@table(OF_A_MODULE)
def test_what_a_module_indexes_as_arrays_are_is_a_tensor(case: Case) -> None:
    check(case)


OF_A_LOCAL_NAME = """
def f(names):
    net = make(names)
    net = net.cuda()            # -> Module
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    {k: v.cpu() for k, v in net.state_dict().items()}   # -> dict[cpu]

def f(names):
    x = load(names)             # -> tensor
    x.masked_fill_(x, 0)
    x                           # -> tensor

def f(names):
    rows = load(names)          # -> ?
    rows.append(1)
    rows.train()
"""


@table(OF_A_LOCAL_NAME)
def test_the_methods_that_are_called_of_a_local_name_say_what_it_holds(case: Case) -> None:
    check(case)


PASSED = """
def f(x, y, z):
    x.nonzero()     # -> cuda int 2
    (y == 1).nonzero()      # -> cuda int 2
    z.nonzero()     # -> ?
f(unknown().cuda(), unknown().to("cuda"), unknown())

class A:
    def step(self, x):
        x.nonzero()     # -> cuda int 2
def g(x):
    x = x.cuda()
    A().step(x)

# look-alikes
def f(x):
    x       # -> ?
f(unknown().cuda())
def f(x: torch.Tensor):
    x.cpu() # -> cpu
f(unknown().cuda())
"""


@table(PASSED)
def test_what_was_moved_stays_where_it_is_in_a_call(case: Case) -> None:
    check(case)


ANEW = """
def f(x):
    x = torch.FloatTensor(x).to("cuda")     # -> cuda float
    return x.unsqueeze(0)

def f(x):
    x                   # -> caller
    x = x.to("cuda")
    return x.unsqueeze(0)
"""


@table(ANEW)
def test_parameters_that_are_made_anew(case: Case) -> None:
    check(case)
