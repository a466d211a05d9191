"""nn.Module classes: what their attributes hold, what calling them gives, what follows the model."""

from __future__ import annotations

import inspect
from typing import Self

from torch import nn

from perflint.semantics.facts.modules import RETURN_MODULE
from tests.semantics.notation import Case, check, table

TORCH_MODULES = """
nn.Linear(3, 4)             # -> Linear(in_features=3, out_features=4)
nn.Linear(3, 4, bias=False) # -> Linear(in_features=3, out_features=4, bias=False)
nn.Conv2d(3, 8, 3, padding=1)   # -> Conv2d(in_channels=3, out_channels=8, kernel_size=3, padding=1)
nn.Linear(3, 4)(cuda)       # -> cuda float
nn.Linear(3, 4).to("cuda")  # -> Linear(in_features=3, out_features=4)
nn.Linear(3, 4).eval()      # -> Linear(in_features=3, out_features=4)
nn.Linear(3, 4).weight      # -> model float parameter
nn.Linear(3, 4).bias        # -> model float parameter
nn.Linear(3, 4).in_features # -> 3
nn.Linear(3, 4).training    # -> bool
nn.Conv2d(3, 8, 3).stride   # -> 1
nn.Conv2d(3, 8, 3).groups   # -> 1
nn.BatchNorm2d(8).running_mean  # -> model float 1 buffer
nn.Embedding(9, 3)(ints)    # -> cuda float
nn.Dropout(0.1).p           # -> 0.1
nn.CrossEntropyLoss()(cuda, ints)   # -> cuda float 0
nn.CrossEntropyLoss(reduction="none")(cuda, ints)   # -> cuda float
nn.MSELoss()(cuda, cuda)    # -> cuda float 0
nn.LSTM(3, 4)(cuda)         # -> (cuda float, (cuda float, cuda float))
nn.GRU(3, 4)(cuda)[1]       # -> cuda float
nn.utils.rnn.pack_padded_sequence(cuda, [2, 1]).data    # -> cuda float 2
nn.utils.rnn.pack_sequence([cuda, cuda]).data           # -> cuda float 2
nn.utils.rnn.pack_padded_sequence(cuda, [2, 1]).batch_sizes     # -> cpu int 1
nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_padded_sequence(cuda, [2, 1]))   # -> (cuda float, cpu int 1)
nn.GRU(3, 4)(nn.utils.rnn.pack_padded_sequence(cuda, [2, 1]))[0]    # -> PackedSequence(data=model float, enforce_sorted=True)
nn.GRU(3, 4)(nn.utils.rnn.pack_padded_sequence(cuda, [2, 1]))[1]    # -> model float
nn.utils.rnn.pad_packed_sequence(unknown)[1]    # -> cpu int 1
nn.MultiheadAttention(4, 1)(cuda, cuda, cuda)[0]    # -> cuda float
nn.ReLU()(host)             # -> cpu float
nn.ReLU()(cuda)             # -> cuda float
nn.ReLU()(unknown)          # -> model float
nn.Dropout(0.1)(host.cuda())    # -> cuda float
nn.Linear(3, 4)(host)       # -> cpu float
nn.MSELoss()(host, host)    # -> cpu float 0
nn.MSELoss()(cuda, host)    # -> cuda float 0
nn.MSELoss()(unknown, host) # -> cpu float 0
nn.Sequential(nn.Linear(3, 4), nn.ReLU())(cuda)     # -> cuda float
nn.Sequential(nn.Linear(3, 4), nn.ReLU())[0]    # -> Linear(in_features=3, out_features=4)
nn.Sequential(nn.Linear(3, 4), nn.ReLU())[-1]   # -> ReLU()
nn.Sequential(*[nn.Linear(3, 3) for _ in range(2)])[n]  # -> Linear(in_features=3, out_features=3)
nn.Sequential(nn.ReLU(), *[nn.Linear(3, 3) for _ in range(2)])(cuda)    # -> cuda float
nn.ModuleList([nn.Linear(3, 4), nn.ReLU()])[1]  # -> ReLU()
nn.ModuleList([nn.Linear(3, 4) for _ in range(2)])[n]   # -> Linear(in_features=3, out_features=4)
nn.ModuleDict({"a": nn.ReLU()})["a"]    # -> ReLU()
nn.Parameter(torch.zeros(3))    # -> model float 1 parameter
nn.Parameter(torch.zeros(3, dtype=torch.long), requires_grad=False) # -> model int 1 parameter
nn.ParameterList([nn.Parameter(host)])[0]   # -> model float parameter
nn.utils.parameters_to_vector([cuda])   # -> cuda 1
torch.optim.Adam([host], lr=0.1)    # -> Adam(params=[cpu float 2], lr=0.1)
torch.compile(nn.Linear(3, 4))  # -> Linear(in_features=3, out_features=4)
nn.DataParallel(nn.Linear(3, 4))    # -> Linear(in_features=3, out_features=4)
nn.DataParallel(unknown())          # -> Module
nn.parallel.DistributedDataParallel(unknown(), device_ids=[0])  # -> Module
torch.amp.GradScaler("cuda").scale(cuda)    # -> cuda float 2

model = nn.Linear(3, 4)
for p in model.parameters():
    p                       # -> model float parameter
for name, p in model.named_parameters():
    name                    # -> str
    p                       # -> model float parameter
for name, b in model.named_buffers():
    b                       # -> model buffer
for m in model.modules():
    m                       # -> Module
for name, m in model.named_children():
    m                       # -> Module
model.state_dict()["weight"]    # -> model
next(model.parameters())    # -> model float parameter
steps = nn.Sequential(nn.Linear(3, 3), nn.GELU())
steps[:1]                   # -> Sequential(Linear(in_features=3, out_features=3))
steps[5]                    # -> GELU() | Linear(in_features=3, out_features=3)
nn.ModuleList()[0]          # -> Module
nn.ModuleDict({"a": nn.ReLU()}).keys()  # -> iterator[str]
next(model.parameters()).device # -> device model
next(model.parameters()).is_cuda    # -> bool
host.to(next(model.parameters()).device)    # -> model float 2
list(model.parameters())    # -> list[model float parameter]
sum(p.numel() for p in model.parameters())  # -> int
model.weight.grad           # -> model float
model.weight.data.norm()    # -> model float 0
model.forward(cuda)         # -> cuda float
model.half()                # -> Linear(in_features=3, out_features=4)
model(cuda.cpu())           # -> cpu float
model(cuda.cpu(), ints)     # -> cpu float
model(unknown.cpu())        # -> cpu float
model(host, cuda.cpu())     # -> cpu float
model = model.cuda()
model(host)                 # -> cpu float

stack = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
for layer in stack:
    layer                   # -> Linear(in_features=3, out_features=3)
    layer(cuda)             # -> cuda float
len(stack)                  # -> int
for i, layer in enumerate(stack):
    layer.weight            # -> model float parameter
stack[0].in_features        # -> 3

steps = nn.Sequential(nn.Linear(3, 3), nn.GELU())
for step in steps:
    step                    # -> GELU() | Linear(in_features=3, out_features=3)
"""

OWN_MODULES = """
class Net(nn.Module):
    scale = 2.0
    def __init__(self, size: int, rate=0.1, deep=False):
        super().__init__()
        self.size = size
        self.rate = rate
        self.fc = nn.Linear(size, 4)
        self.weight = nn.Parameter(torch.zeros(4, 4))
        self.register_buffer("table", torch.arange(4))
        self.register_buffer("cache", None, persistent=False)
        self.register_parameter("gain", nn.Parameter(torch.ones(4)))
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 2)})
        self.act = F.gelu
        self.norm = nn.LayerNorm(4) if deep else nn.Identity()
        self.sizes = [1, 2]
        self.weights = torch.tensor([0.5, 1.5])
        self.later = None
        self.tied: dict[str, nn.Parameter] = {}
        self.order: list[nn.Parameter] = []
        self.seen: dict[str, Tensor] = {}
        self.table          # -> cpu int 1 buffer
        self.fc.weight      # -> cpu float parameter
        self.weight         # -> cpu float 2 parameter

    def forward(self, x: Tensor, y: Optional[Tensor] = None, flag=True):
        x                   # -> model
        y                   # -> model | None
        flag                # -> bool=True
        self.size           # -> int
        self.rate           # -> float=0.1
        self.scale          # -> 2.0
        self.training       # -> bool
        self.fc             # -> Linear(in_features=int, out_features=4)
        self.fc(x)          # -> model float
        self.fc.weight      # -> model float parameter
        self.weight         # -> model float 2 parameter
        self.table          # -> model int 1 buffer
        self.cache          # -> None
        self.gain           # -> model float 1 parameter
        self.blocks[0]      # -> Linear(in_features=4, out_features=4)
        self.body(x)        # -> model float
        self.heads["a"](x)  # -> model float
        self.heads[flag]    # -> Linear(in_features=4, out_features=2)
        self.act(x)         # -> model float
        self.norm(x)        # -> model float
        self.sizes          # -> [1, 2]
        self.weights        # -> cpu float 1
        self.later          # -> None
        self.tied["a"]      # -> model parameter
        self.order[0]       # -> model parameter
        self.seen["a"]      # -> ?
        self.weights.to(x.device)   # -> model float 1
        self.device         # -> device model
        x * self.table      # -> model
        x @ self.weight     # -> model float
        x > self.gain       # -> model bool
        self.helper(x)      # -> model float
        self.unknown_thing  # -> ?
        self.half_size      # -> int
        self.limit          # -> int
        self.static(x)      # -> model
        self.named(3)       # -> Net(size=int)
        torch.zeros(3)      # -> cpu float 1
        torch.zeros(3, device=x.device)     # -> model float 1
        torch.zeros_like(x) # -> model
        x.new_zeros(3)      # -> model 1
        for block in self.blocks:
            x = block(x)    # -> model float
        mask = x.sum(-1) > 0
        mask                # -> model bool
        return self.fc(x)

    def helper(self, x):
        return self.fc(x) * 2

    @property
    def half_size(self):
        return self.size // 2

    @functools.cached_property
    def limit(self) -> int:
        return compute()

    @staticmethod
    def static(x):
        return x + 1

    @classmethod
    def named(cls, n):
        return cls(n)
net = Net(3)
net                         # -> Net(size=3)
net(cuda)                   # -> cuda float
net.fc                      # -> Linear(in_features=int, out_features=4)
net.table                   # -> model int 1 buffer
net.scale                   # -> 2.0
net.half_size               # -> int
Net.scale                   # -> 2.0
Net.static(cuda)            # -> cuda float 2
Net.named(3)                # -> Net(size=int)
net.to("cuda").table        # -> model int 1 buffer

class Base(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.norm = nn.BatchNorm1d(width)
    def encode(self, x: Tensor):
        return self.norm(x) # -> model float
    def loss(self, x):
        return x.sum()
class Child(Base):
    def __init__(self):
        super().__init__(8)
        self.out = nn.Linear(self.width, 2)
    def forward(self, x: Tensor):
        self.norm           # -> BatchNorm1d(num_features=int)
        self.width          # -> int
        h = self.encode(x)  # -> model float
        self.out(h)         # -> model float
        super().encode(x)   # -> model float
        super().training    # -> bool
        return self.loss(h) # -> model float 0
Child()(cuda)               # -> cuda float 0
Child().width               # -> int

class Heads(nn.Module):
    def __init__(self, names: List[str]):
        super().__init__()
        self.heads = nn.ModuleDict()
        self.blocks = nn.ModuleList()
        for name in names:
            self.heads[name] = nn.Linear(3, 3)
            self.blocks.append(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
        self.heads["last"] = nn.Identity()
        self.blocks.extend([nn.GELU()])
    def forward(self, x: Tensor):
        self.heads["last"]      # -> Identity() | Linear(in_features=3, out_features=3)
        self.heads["a"]         # -> Linear(in_features=3, out_features=3)
        for name, head in self.heads.items():
            name                # -> str
            head(x)             # -> model float
        for head in self.heads.values():
            head                # -> Identity() | Linear(in_features=3, out_features=3)
        for block in self.blocks[:2]:
            block(x)            # -> model float
        self.blocks[0](x)       # -> model float

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.inners = nn.ModuleList([Inner() for _ in range(2)])
        self.more = nn.ModuleList()
        for i in range(2):
            self.more.append(nn.Linear(3, 3))
        self.all = [Inner()]
    def forward(self, x: Tensor):
        a, b = self.inner(x)    # -> model float, int
        self.inners[0](x)[0]    # -> model float
        self.inner.fc           # -> Linear(in_features=3, out_features=3)
        self.inner.fc.weight    # -> model float parameter
        self.more[0]            # -> Linear(in_features=3, out_features=3)
        self.all[0](x)          # -> (model float, int)
        return {"out": a, "n": b}
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
    def forward(self, x):
        return self.fc(x), x.shape[0]
Outer()(cuda)["out"]        # -> cuda float
Outer()(cuda)["n"]          # -> int

class Losses(nn.Module):
    def __init__(self, weight: Optional[Tensor] = None, size: Tuple[int, int] = (3, 4)):
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("grid", self.make(4))
        self.h, self.w = size
        self.crit = nn.MSELoss(reduction="none")
    @staticmethod
    def make(n):
        return torch.zeros(n)
    def forward(self, pred: Tensor, target: Tensor):
        self.weight             # -> model buffer | None
        self.grid               # -> model float 1 buffer
        self.h                  # -> int
        self.crit(pred, target) # -> model float
        n = pred.shape[0]
        if self.weight is not None:
            pred = pred * self.weight   # -> model
        return (pred - target).abs().mean()     # -> model float 0
Losses()(cuda, cuda)            # -> cuda float 0

class Unannotated(nn.Module):
    def forward(self, q, k, mask, options, sizes):
        b, n = q.shape
        q               # -> model
        k.transpose(-2, -1)     # -> model
        mask            # -> ?
        options["a"]    # -> ?
        options.keys()  # -> ?
        sizes.index(1)  # -> ?
        return load(q), q.cpu(), {"loaded": load(q)}
def helper(q):
    q.shape
    q                   # -> ?
def load(path) -> Tensor:
    return path.read()
net = Unannotated()
given = read()
net(*given)[0]   # -> model
net(*given)[1]   # -> cpu
net(*given)[2]["loaded"] # -> caller

class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0
        self.memory = None
        self.history = []
    def forward(self, x: Tensor):
        self.step += 1
        self.step               # -> int
        if self.memory is None:
            self.memory = torch.zeros(3, device=x.device)
        self.memory             # -> model float 1
        self.history.append(x.detach())
        self.history[0]         # -> model
        setattr(self, "foo", x)
        self.buffer = x.cpu()
        self.buffer             # -> cpu
        return x
    def report(self):
        self.memory             # -> model float 1 | None
        self.history            # -> list[model]

class Positions(nn.Module):
    def __init__(self, n: int, d: int):
        super().__init__()
        pe = torch.zeros(n, d)
        pe[:, 0::2] = torch.sin(torch.arange(n).float())[:, None]
        self.register_buffer("pe", pe.unsqueeze(0))
        self.rates = torch.linspace(0, 1, n).tolist()
        self.starts = [x.item() for x in torch.linspace(0, 1, n)]
    def forward(self, x: Tensor):
        self.pe                 # -> model float 3 buffer
        self.rates              # -> list[float]
        self.starts             # -> list[float]
        return x + self.pe[:, : x.size(1)]      # -> model float

class Wrapped(nn.Module):
    def __init__(self, backbone: nn.Module, head=None, layers: int = 2):
        super().__init__()
        self.backbone = backbone
        self.head = head or nn.Linear(3, 3)
        self.act = nn.ReLU if layers > 2 else nn.GELU
        self.fn = self.act()
    def forward(self, x: Tensor):
        self.backbone           # -> Module
        self.backbone(x)        # -> batch[model]
        self.head(x)            # -> model float | ?
        self.fn(x)              # -> model float

@dataclasses.dataclass
class Output:
    pooled: torch.Tensor | None = None
    name: str = ""
class Tower(nn.Module):
    def features(self, x: torch.Tensor) -> Output:
        found = Output(pooled=unknown(x))
        return self.inner(x, return_dict=True)
    def described(self, output: Output):
        return output.pooled    # -> caller | None
    def forward(self, x: torch.Tensor, given: Output):
        output = self.features(x)
        output.pooled           # -> model | None
        given.pooled            # -> model | None
        output.name             # -> str=''
class Convolved(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = find("norm")
    def forward(self, x):
        return self.norm(x).transpose(1, 2)
class User(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolved = Convolved()
    def forward(self, x: torch.Tensor):
        self.convolved(x)       # -> model
        self.other(x).transpose(1, 2)   # -> caller
class Same(nn.Module):
    def forward(self, x):
        return x
Same()(host)                        # -> cpu float 2
nn.DataParallel(Same())(host)       # -> model float 2
nn.DataParallel(Same())(cuda)       # -> cuda float 2
nn.DataParallel(Same()).module(host)    # -> cpu float 2
nn.DataParallel(Same()).to("cuda")(x=host)  # -> model float 2
nn.parallel.DistributedDataParallel(Same())(host)   # -> cpu float 2
nn.parallel.DistributedDataParallel(Same(), device_ids=None)(host)  # -> cpu float 2
nn.parallel.DistributedDataParallel(Same(), device_ids=[0])(host)   # -> model float 2
maybe = Same()
if flag:
    maybe = nn.DataParallel(maybe)
maybe(host)                         # -> model float 2
"""

LIKELY_ON_CPU = """
def score(preds: torch.Tensor, targets: torch.Tensor):
    preds, targets = preds.to("cpu"), targets.to("cpu")
    nn.KLDivLoss()(preds, targets)          # -> cpu float 0
    nn.KLDivLoss()(preds, cuda)             # -> model float 0
    nn.CrossEntropyLoss()(preds, targets)   # -> cpu float 0
    nn.Softmax(-1)(preds)                   # -> cpu float
    nn.Linear(3, 4)(preds)                  # -> model float
"""


@table(LIKELY_ON_CPU)
def test_modules_without_parameters_compute_where_their_inputs_are(case: Case) -> None:
    check(case)


@table(TORCH_MODULES)
def test_torch_modules(case: Case) -> None:
    check(case)


@table(OWN_MODULES)
def test_own_modules(case: Case) -> None:
    check(case)


def test_the_methods_that_return_the_module_are_those_of_torch() -> None:
    methods = {name: method for name, method in vars(nn.Module).items() if inspect.isfunction(method)}
    returning = {name for name, method in methods.items() if inspect.signature(method).return_annotation is Self}
    assert returning | {"to"} == RETURN_MODULE
