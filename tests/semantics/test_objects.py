"""Objects: attributes by computed names, containers, frameworks, datasets, optimizers, records, what is passed on."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

DYNAMIC = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        setattr(self, "proj", nn.Linear(3, 4))
        for i in range(3):
            self.register_buffer(f"anchor_{i}", torch.zeros(3))
            setattr(self, f"layer{i}", nn.Linear(3, 3))
            self.add_module(f"block_{i}", nn.ReLU())
        self.add_module("head", nn.Linear(3, 1))
        self.register_module("tail", nn.Linear(3, 1))
    def forward(self, x: Tensor, i: int, name):
        self.proj               # -> Linear(in_features=3, out_features=4)
        self.anchor_0           # -> model float 1 buffer
        self.layer1             # -> Linear(in_features=3, out_features=3)
        self.head               # -> Linear(in_features=3, out_features=1)
        self.tail(x)            # -> model float
        getattr(self, f"anchor_{i}")    # -> model float 1 buffer
        getattr(self, f"layer{i}")(x)   # -> model float
        getattr(self, "proj")(x)        # -> model float
        getattr(self, "missing", None)  # -> ? | None
        getattr(self, name)     # -> ?
        self.other              # -> ?

class Base:
    def keep(self, **parts):
        for name, part in parts.items():
            setattr(self, name, part)
class Pipe(Base):
    def __init__(self, unet: nn.Linear, scale: float):
        self.keep(unet=unet, scale=scale)
    def run(self, x: Tensor):
        self.unet               # -> Linear
        self.unet(x)            # -> model float
        self.scale              # -> float
        self.missing            # -> ?
"""

CONTAINERS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.ReLU()])
        self.more = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.table = nn.ModuleDict({"a": nn.Linear(3, 3)})
        self.seq = nn.Sequential(nn.Linear(3, 3), nn.LSTM(3, 3))
        self.named = nn.Sequential(collections.OrderedDict([("a", nn.Linear(3, 3))]))
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(2)])
        self.weights = nn.ParameterDict({"a": nn.Parameter(torch.ones(3))})
        self.layers.append(nn.Linear(1, 1))
        self.table["b"] = nn.ReLU()
    def forward(self, x):
        self.layers[0](x)       # -> model float
        self.layers[-1]         # -> Linear(in_features=int, out_features=int) | ReLU()
        self.more[i](x)         # -> model float
        self.more[1:][0](x)     # -> model float
        self.table["a"](x)      # -> model float
        for name, layer in self.table.items():
            layer(x)            # -> model float
        for layer in self.table.values():
            layer(x)            # -> model float
        for i, layer in enumerate(self.more):
            layer               # -> Linear(in_features=3, out_features=3)
        self.seq[0](x)          # -> model float
        self.seq[-1](x)         # -> (model float, (model float, model float))
        self.seq[:1](x)         # -> model float
        self.seq(x)             # -> (model float, (model float, model float))
        self.named(x)           # -> model float
        len(self.layers)        # -> int
        self.scales[0]          # -> model float parameter
        for scale in self.scales:
            scale               # -> model float parameter
        self.weights["a"]       # -> model float parameter
        for k, w in self.weights.items():
            w                   # -> model float parameter
        for w in self.weights.values():
            w                   # -> model float parameter
        return x
"""

SUBCLASSES = """
class Boxes(torch.Tensor):
    def area(self):
        self.shape              # -> size[int]
        return (self[:, 2] - self[:, 0]).sum()
def f(b: Boxes):
    b                           # -> caller
    b.cpu()                     # -> cpu
    b.sum().item()              # -> float
x = torch.zeros(3, device="cuda").as_subclass(Boxes)
x                               # -> cuda
"""

LIBRARIES = """
import einops
from einops import rearrange, repeat, reduce
from einops.layers.torch import Rearrange, Reduce
rearrange(cuda, "a b -> b a")       # -> cuda float 2
repeat(cuda, "a b -> a b c", c=2)   # -> cuda float 3
reduce(cuda, "a b -> a", "mean")    # -> cuda float 1
einops.einsum(cuda, cuda, "a b, c b -> a c")    # -> cuda float 2
rearrange([cuda, cuda], "n a b -> a (n b)")     # -> cuda float 2
rearrange(cuda, "a b -> (a b)")     # -> cuda float 1
rearrange(cuda, "... b -> b ...")   # -> cuda float
Rearrange("b c -> c b")(cuda)       # -> cuda float
nn.Sequential(Rearrange("b c -> c b"), nn.Linear(3, 3))(cuda)   # -> cuda float

from accelerate import Accelerator
accelerator = Accelerator()
model, opt = accelerator.prepare(nn.Linear(3, 3), torch.optim.SGD([]))
model(host)                         # -> model float
accelerator.device                  # -> device cuda
accelerator.gather(cuda)            # -> cuda float 2
accelerator.unwrap_model(model)     # -> Linear(in_features=3, out_features=3)
accelerator.is_main_process         # -> bool
accelerator.num_processes           # -> int
from lightning.fabric import Fabric
fabric = Fabric()
fmodel, fopt = fabric.setup(nn.Linear(3, 3), torch.optim.SGD([]))
fmodel                              # -> Linear(in_features=3, out_features=3)
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(data))
for batch in loader:
    batch                           # -> batch[model]
fabric.device                       # -> device cuda
fabric.to_device(host)              # -> cuda float 2

import argparse, types
from omegaconf import OmegaConf
from easydict import EasyDict
args = argparse.ArgumentParser().parse_args()
args.lr                             # -> ?
args.lr > 0.1                       # -> ?
ns = types.SimpleNamespace(a=cuda, b=1)
ns.a                                # -> cuda float 2
ns.b                                # -> 1
ns.c                                # -> ?
cfg = OmegaConf.load("a")
cfg.model.size                      # -> ?
e = EasyDict({"a": 1})
e.a                                 # -> ?
class Net(nn.Module):
    def __init__(self, config: dict, args: argparse.Namespace):
        super().__init__()
        self.config = config
        self.args = args
    def forward(self, x):
        self.config.size            # -> ?
        self.config["size"]         # -> ?
        self.config.get("a")        # -> ? | None
        self.args.n                 # -> ?
"""

DATA = """
from torch.utils.data import Subset, random_split, ConcatDataset, Dataset, DataLoader, TensorDataset, default_collate
class Set(Dataset):
    def __getitem__(self, i):
        return torch.zeros(3), 1, {"a": torch.ones(2)}
    def __len__(self):
        return 3
Set()[0][0]                         # -> cpu float 1
Subset(Set(), [1])[0][0]            # -> cpu float 1
train, val = random_split(Set(), [1, 2])
train[0][0]                         # -> cpu float 1
ConcatDataset([Set(), Set()])[0][0]     # -> cpu float 1
for x, y, z in Set():
    x                               # -> cpu float 1
for x, y, z in DataLoader(Set()):
    x                               # -> cpu
    y                               # -> cpu
default_collate([torch.zeros(3)])   # -> cpu float 2
TensorDataset(host, host)[0]        # -> (cpu float 1, cpu float 1)
"""

OPTIMIZERS = """
class Lion(torch.optim.Optimizer):
    def step(self):
        for group in self.param_groups:
            group["lr"]             # -> ?
            group["params"]         # -> list[model float parameter]
            for p in group["params"]:
                p                   # -> model float parameter
                p.grad              # -> model float
                state = self.state[p]
                state["step"]       # -> ?
opt = torch.optim.SGD(nn.Linear(3, 3).parameters(), lr=0.1)
for group in opt.param_groups:
    for p in group["params"]:
        p.grad.norm()               # -> model float 0
    group["lr"] * 2                 # -> ?
"""

RECORDS = """
@dataclasses.dataclass
class Out:
    loss: Tensor
    n: int = 0
    parts: List[Tensor] = dataclasses.field(default_factory=list)
    extra: Optional[Tensor] = None
o = Out(cuda, n=3)
o.loss                              # -> cuda float 2
o.n                                 # -> 3
o.parts                             # -> list[caller]
dataclasses.replace(o, loss=host).loss  # -> cpu float 2
dataclasses.replace(o, loss=host).n     # -> 3
class Pair(NamedTuple):
    a: Tensor
    b: int = 1
p = Pair(cuda)
p.a                                 # -> cuda float 2
p._replace(a=host).a                # -> cpu float 2
p._asdict()["a"]                    # -> cuda float 2
class Item(typing.TypedDict):
    x: Tensor
    n: int
def f(item: Item, g: "Out"):
    item["x"]                       # -> caller
    item["n"]                       # -> int
    g.loss                          # -> caller
    g.extra                         # -> caller | None
class Runs(typing.Protocol):
    def __call__(self, x: Tensor) -> Tensor: ...
    def go(self) -> Tensor: ...
def h(r: Runs):
    r(cuda)                         # -> caller
    r.go()                          # -> caller
T = typing.TypeVar("T")
class Box(typing.Generic[T]):
    def __init__(self, x: T):
        self.x = x
    def get(self) -> T:
        return self.x
    def same(self) -> typing.Self:
        return self
Box(cuda).same()                    # -> Box
@typing.overload
def g(x: Tensor) -> Tensor: ...
@typing.overload
def g(x: int) -> int: ...
def g(x):
    return x
g(cuda)                             # -> cuda float 2
g(3)                                # -> int
"""

ARGUMENTS = """
def f(a, b, *, c=None):
    return c if c is not None else a
kw = {"b": 1, "c": host}
f(cuda, **kw)                       # -> cpu float 2
def g(*args, **kwargs):
    return f(*args, **kwargs)
g(cuda, 1)                          # -> cuda float 2
g(cuda, b=1, c=host)                # -> cpu float 2
def h(*xs: Tensor):
    return torch.cat(xs)
h(cuda, cuda)                       # -> cuda float 2
class A:
    def f(self, x):
        return x.cuda()
class B:
    def f(self, x):
        return x.cpu()
class C(A, B):
    def f(self, x):
        return super().f(x)
C().f(host)                         # -> cuda float 2
class D(B):
    def f(self, x):
        return super(D, self).f(x)
D().f(cuda)                         # -> cpu float 2
def gen(n):
    for _ in range(n):
        yield torch.zeros(3), n
for x, n in gen(3):
    x                               # -> cpu float 1
def gen2():
    yield from gen(3)
for x, n in gen2():
    x                               # -> cpu float 1
async def fetch():
    return cuda
async def main():
    x = await fetch()
    x                               # -> cuda float 2
    async for y in agen():
        y                           # -> ?
    async with thing() as z:
        z                           # -> ?
"""

FACTS = """
cuda.dim()          # -> int
cuda.numel()        # -> int
cuda.nelement()     # -> int
cuda.ndimension()   # -> int
cuda.stride()       # -> size[int]
cuda.stride(0)      # -> int
cuda.data_ptr()     # -> int
cuda.is_contiguous()    # -> bool
cuda.element_size() # -> int
cuda.get_device()   # -> int
cuda.is_floating_point()    # -> bool
cuda.is_cuda        # -> bool
cuda.storage_offset()   # -> int
cuda.is_pinned()    # -> bool
cuda.is_shared()    # -> bool
cuda.is_complex()   # -> bool
torch.is_tensor(cuda)   # -> bool
torch.is_floating_point(cuda)   # -> bool
torch.numel(cuda)   # -> int
len(cuda)           # -> int
mask & mask         # -> cuda bool 2
mask | True         # -> cuda bool 2
~mask               # -> cuda bool 2
mask ^ mask         # -> cuda bool 2
mask + 1            # -> cuda int 2
mask.sum()          # -> cuda int 0
mask * cuda         # -> cuda float 2
ints / 2            # -> cuda float 1
ints // 2           # -> cuda int 1
cuda == 1           # -> cuda bool 2
-cuda               # -> cuda float 2
cuda[0]             # -> cuda float 1
cuda[0, 1]          # -> cuda float 0
cuda[..., 0]        # -> cuda float 1
cuda[None]          # -> cuda float 3
cuda[:, None, 0]    # -> cuda float 2
cuda[1:, ::2]       # -> cuda float 2
cuda[mask]          # -> cuda float 1
cuda[ints]          # -> cuda float 2
torch.stack([cuda, cuda])   # -> cuda float 3
torch.cat([x for x in [cuda]])  # -> cuda float 2
torch.stack([c.mean() for c in [cuda]])     # -> cuda float 1
F.softmax(cuda, -1) # -> cuda float 2
F.one_hot(ints)     # -> cuda int 2
F.cross_entropy(cuda, ints) # -> cuda float 0
F.pad(cuda, (1, 1)) # -> cuda float 2
F.normalize(cuda)   # -> cuda float 2
[cuda.tolist()][0][0]   # -> list[float]
cuda.tolist()       # -> list[list[float]]
torch.backends.mps.is_available()   # -> bool
torch.jit.is_scripting()    # -> bool
torch.compiler.is_compiling()   # -> bool
torch.is_grad_enabled() # -> bool
"""


MOVED = """
class Table:
    def __init__(self, n: int, rows: Tensor):
        self.table = torch.linspace(0, 1, n)
        self.rows = rows
        self.other = torch.zeros(n)
        self.copy = torch.zeros(n)
    def to(self, device: torch.device):
        self.table = self.table.to(device)
        self.other = torch.zeros(3, device="cuda")
        return self
    def keep(self):
        self.copy = self.copy.cpu()
    def __call__(self, i: int):
        self.table      # -> caller float 1
        self.rows       # -> caller
        self.other      # -> tensor float 1
        self.copy       # -> cpu float 1

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = torch.zeros(3)
        self.grid       # -> cpu float 1
        self.scale = torch.ones(3)
    def forward(self, x: Tensor):
        self.scale      # -> cpu float 1
        if self.training:
            self.grid = self.grid.to(x.device)
        return x
    def predict(self, x: Tensor):
        self.grid       # -> model float 1

class Unbound:
    def fill(self):
        self.x = torch.zeros(3)
    def move(self, device: torch.device):
        self.x = self.x.to(device)
    def use(self):
        self.x          # -> tensor float 1

class Told:
    def __init__(self):
        self.x = torch.zeros(3)
        self.y = torch.zeros(3)
    def to(self, device):
        self.x = self.x.to(device)
        self.y = torch.ones(3).to(device)
    def use(self):
        self.x          # -> cuda float 1
        self.y          # -> tensor float 1
told = Told()
told.to("cuda")
"""


REPLACED = """
@dataclasses.dataclass
class Graph:
    x: Tensor
    y: Optional[Tensor] = None
    name: str = ""
    def to(self, device: torch.device):
        held = {"x": self.x, "y": self.y}
        return dataclasses.replace(self, **{k: v.to(device) for k, v in held.items() if v is not None})
    def cuda(self):
        return dataclasses.replace(self, x=self.x.cuda())
    def on_device(self):
        names = [field.name for field in dataclasses.fields(self)]
        return dataclasses.replace(self, **{name: getattr(self, name).cuda() for name in names})
    def everywhere(self):
        return dataclasses.replace(self, **{k: v.cuda() for k, v in {"x": self.x, "y": self.y}.items()})
graph = Graph(host, host > 0, "a")
graph.everywhere().x    # -> cuda
graph.everywhere().y    # -> cuda | None
graph.everywhere().name # -> str=''
graph.to("cuda").x      # -> cuda
dataclasses.replace(graph, x=cuda).x    # -> cuda float 2
dataclasses.replace(graph, x=cuda).y    # -> cpu bool 2
dataclasses.replace(graph, **changes).y # -> cpu bool 2

for a, b in zip(*[host, cuda]):
    a                   # -> cpu float 1
    b                   # -> cuda float 1
for a, b in zip(*list([host] + unknown())):
    a                   # -> ?
for batch in torch.utils.data.DataLoader(data):
    for x, y in zip(*batch):
        y               # -> cpu
for a in zip(*unknown()):
    a                   # -> ?

class Sums:
    def __init__(self):
        self.sums = {}
    def log(self, name: str, value: Tensor):
        self.sums[name] = self.sums[name] + value if name in self.sums else value
    def show(self):
        return " ".join(f"{total}" for total in self.sums.values())
    def read(self, name: str):
        self.sums[name]     # -> caller
sums = Sums()
sums.log("a", cuda)
"""


@table(DYNAMIC)
def test_dynamic_attributes(case: Case) -> None:
    check(case)


@table(CONTAINERS)
def test_containers(case: Case) -> None:
    check(case)


@table(SUBCLASSES)
def test_tensor_subclasses(case: Case) -> None:
    check(case)


@table(LIBRARIES)
def test_libraries(case: Case) -> None:
    check(case)


@table(DATA)
def test_data(case: Case) -> None:
    check(case)


@table(OPTIMIZERS)
def test_optimizers(case: Case) -> None:
    check(case)


@table(RECORDS)
def test_records(case: Case) -> None:
    check(case)


@table(ARGUMENTS)
def test_arguments(case: Case) -> None:
    check(case)


@table(FACTS)
def test_facts(case: Case) -> None:
    check(case)


@table(MOVED)
def test_moved(case: Case) -> None:
    check(case)


@table(REPLACED)
def test_replaced(case: Case) -> None:
    check(case)
