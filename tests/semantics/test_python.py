"""Python's own ways: enumerations, aliases of types, recursion, tests that constants decide."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

ENUMERATIONS = """
import enum
class Mode(enum.IntEnum):
    A = 1
    B = enum.auto()
    @property
    def device(self):
        return "cuda"
    def scale(self, x):
        return x * 2
Mode.A                  # -> Mode
Mode.A.value            # -> int
Mode.A.name             # -> str
Mode["A"]               # -> Mode
Mode(1)                 # -> Mode(1)
Mode.A.device           # -> 'cuda'
Mode.A.scale(cuda)      # -> cuda float 2
Mode.scale              # -> def Mode.scale
host.to(Mode.A.device)  # -> cuda float 2
for mode in Mode:
    mode                # -> Mode
    mode.scale(host)    # -> cpu float 2
if Mode.A == 1:         # -> bool
    pass

class Plain:
    A = 1
    _hidden = cuda
Plain.A                 # -> 1
Plain().A               # -> 1
Plain._hidden           # -> cuda float 2

class Box:
    value = 3
    name = "x"
Box.value               # -> 3
Box().name              # -> 'x'

import enum
class Metric(enum.Enum):
    NEAR = lambda x, y: x - y
    FAR = "far"
Metric.NEAR             # -> def Metric.<lambda>
Metric.NEAR(cuda, cuda) # -> cuda float 2
Metric.FAR              # -> Metric
Metric.FAR.value        # -> str
"""

TYPES = """
Device = Union[str, torch.device]
Maybe = Optional[Tensor]
Batch = Dict[str, Tensor]
Ids = list[int]
Any1 = Callable[..., Tensor]
Either = Tensor | None
def f(d: Device, m: Maybe, b: Batch, i: Ids, c: Any1, e: Either, n: "Batch", l: List[Batch]):
    d                   # -> device caller | str
    m                   # -> caller | None
    b                   # -> dict[caller]
    b["x"]              # -> caller
    i                   # -> list[int]
    c                   # -> partial typing.Callable
    c(host)             # -> tensor
    e                   # -> caller | None
    n["x"]              # -> caller
    l[0]["x"]           # -> caller
    host.to(d)          # -> caller float 2
class Net(nn.Module):
    def forward(self, b: Batch, e: Either):
        b["x"]          # -> model
        e               # -> model | None

Token = typing.NewType("Token", Tensor)
def f(t: Token):
    t                   # -> caller
Token(cuda)             # -> cuda float 2
Id = typing.NewType("Id", int)
Id(3)                   # -> 3

flags = 1 | 2
flags                   # -> int
both = mask | mask
both                    # -> cuda bool 2
merged = {"a": cuda} | {"b": 1}
merged                  # -> ?
"""

RECURSION = """
def f(x, n):
    if n == 0:
        return x
    return f(x[0], n - 1)
f(cuda, 3)              # -> cuda float

def f(n):
    return f(n - 1)
f(3)                    # -> ?

def f(n):
    if n == 0:
        return None
    return f(n - 1)
f(3)                    # -> None

def flat(tree):
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in flat(value)]
    return [tree]
flat({"a": cuda})       # -> list[cuda float 2]

class Node:
    def __init__(self, children: "list[Node]"):
        self.children = children
    def total(self, x):
        for child in self.children:
            x = child.total(x) + 1
        return x
Node([]).total(cuda)    # -> cuda float 2

def f(n) -> Tensor:
    return f(n - 1) if n else torch.zeros(3)
f(3)                    # -> cpu float 1
"""

FILES = """
from safetensors.torch import load_file, load
load_file("a", device="cuda")["w"]  # -> cuda
load_file("a", "cpu")["w"]  # -> cpu
load_file("a", device=where)["w"]   # -> caller
load(b"")["w"]          # -> cpu
"""

SUPER = """
class Net(nn.Linear):
    def __init__(self):
        super().__init__(3, 4)      # calls torch.nn.Linear.__init__
    def forward(self, x):
        return super().forward(x)   # calls torch.nn.Module.forward
class Base:
    def __init__(self):
        self.a = cuda
class Child(Base):
    def __init__(self):
        super().__init__()          # calls snippet.Base.__init__
        self.a                      # -> cuda float 2
class Alone:
    def __init__(self):
        super().__init__()
"""

VIEWS = """
cuda.view(torch.bool)   # -> cuda bool 2
cuda.view(dtype=torch.int64)    # -> cuda int 2
cuda.view(2, -1, 1)     # -> cuda float 3
dtype = pick()
cuda.view(dtype)        # -> cuda float
"""

DEVICES = """
def f(device="cpu"):
    host.to(device)     # -> tensor float 2
def g(device=None):
    host.to(device)     # -> caller float 2
def h(name="cuda"):
    h                   # -> def h

with torch.device("cuda"):
    torch.ones(2)               # -> cuda float 1
    torch.zeros(3, device="cpu")    # -> cpu float 1
    torch.from_numpy(a)         # -> cpu
    torch.zeros_like(host)      # -> cpu float 2
    torch.tensor([1])           # -> cuda int 1
torch.zeros(3)                  # -> cpu float 1

with torch.device("cuda"):
    with torch.device("cpu"):
        torch.ones(2)           # -> cpu float 1
    torch.ones(2)               # -> cuda float 1

with torch.cuda.device(0):
    torch.ones(2)               # -> cpu float 1

with torch.device(unknown()):
    torch.ones(2)               # -> caller float 1

torch.ones(2)                   # -> cpu float 1
torch.set_default_device("cuda")
torch.ones(2)                   # -> cuda float 1
def f():
    return torch.ones(2)        # -> cuda float 1
torch.get_default_device()      # -> device cuda

def main():
    torch.set_default_device("cuda")
    torch.ones(2)               # -> cuda float 1
def f():
    torch.ones(2)               # -> cuda float 1

torch.set_default_tensor_type("torch.cuda.FloatTensor")
torch.ones(2)                   # -> cuda float 1

torch.set_default_tensor_type(torch.DoubleTensor)
torch.ones(2)                   # -> cpu float 1

def main(args):
    torch.set_default_device(args.device)
def f():
    torch.ones(2)               # -> caller float 1

class Options:
    def set_default_device(self, device):
        self.device = device
Options().set_default_device("cuda")
torch.ones(2)                   # -> cpu float 1
"""

DELETED = """
def f(x: Tensor, y):
    if isinstance(x, torch.LongTensor):
        x               # -> caller int
    if isinstance(y, nn.Parameter):
        y               # -> model parameter
    if isinstance(x, (nn.Parameter, Tensor)):
        x               # -> caller
    if not isinstance(x, nn.Parameter):
        x               # -> caller

state = {"a": cuda, "b": 1}
del state["a"], state["b"]
state                           # -> dict[1 | cuda float 2]

class Holder:
    def __init__(self):
        self.x = cuda
h = Holder()
h.x = host
del h.x
h.x                             # -> cuda float 2

rows = [cuda, host]
del rows[0]
rows[0]                         # -> cuda float 2
"""

SUPPRESSED = """
def f(data, x=cuda):
    with contextlib.suppress(StopIteration):
        x = host
        next(data)
        raise ValueError
    x                   # -> tensor float 2
f(data)

def f(data):
    with torch.no_grad(), contextlib.suppress(KeyError) as nothing:
        return host
    return cuda
f(data)                 # -> caller float 2

def f(data):
    with torch.no_grad():
        return host
    return cuda
f(data)                 # -> cpu float 2

def f(data):
    with contextlib.suppress(KeyError):
        x = host
    x                   # -> cpu float 2
f(data)
"""

SET_INSIDE = """
def f():
    x, y = host, host
    def inner():
        nonlocal x
        x = cuda
        x               # -> cuda float 2
    inner()
    y                   # -> cpu float 2
    x                   # -> cpu float 2 | ?
"""

SET_ELSEWHERE = """
x, y, box = host, host, {"x": host}
def f():
    global x
    x = cuda
    x                   # -> cuda float 2 | ?
def g():
    global x, y
    x, y = None, host
    y                   # -> cpu float 2
def h():
    box["x"] = cuda
class Run:
    def __init__(self):
        self.x, self.y, self.box = host, host, {"x": host}
    def start(self):
        self.x, self.y, self.box = cuda, cuda, {"x": host}
        self.x          # -> cuda float 2
        self.stop()
        self.x          # -> tensor float 2
        self.y          # -> cuda float 2
        self.box["x"]   # -> cpu float 2 | ?
    def stop(self):
        self.x, self.box["x"] = host, cuda
    def given(self, call):
        self.x = cuda
        call()
        self.x          # -> tensor float 2
    def computed(self, x):
        self.x = cuda
        x = torch.exp(x)
        self.x          # -> cuda float 2
    async def waits(self, done):
        self.x = cuda
        await done
        self.x          # -> tensor float 2
    def turns(self, xs):
        self.x = cuda
        for x in xs:
            self.x      # -> tensor float 2
            self.stop()
def outer():
    held, kept = {"x": host}, {"x": host}
    def inner():
        held["x"] = cuda
    inner()
    held["x"]           # -> cpu float 2 | ?
    kept["x"]           # -> cpu float 2
def late():
    held, kept = host, host
    def inner():
        held            # -> cpu float 2 | ?
        kept            # -> cpu float 2
    inner()
    held = None
    inner()
shown, counted, first, plain = host, 0, host, host
def count():
    global shown, counted, first, plain
    for shown in [cuda]:
        counted += 1
    first, _ = host, 3
    plain = cuda
def reader():
    shown               # -> cpu float 2 | ?
    counted             # -> int
    first               # -> cpu float 2
    plain               # -> tensor float 2
class Stepwise:
    def __init__(self):
        self.z = host
    def steps(self):
        self.z = cuda
        yield
        self.z          # -> tensor float 2
    def stop(self):
        self.z = host
    def drained(self):
        steps = self.steps()
        self.z = host
        list(steps)
        self.z          # -> cpu float 2 | ?
class Base:
    def __init__(self, name):
        self.w = self.u = self.v = host
        self.device, self.target = "cuda", "cuda"
    def one(self): return host
    def two(self): return host
    def three(self): return host
    def use(self):
        self.one()          # -> cpu float 2 | ?
        self.two()          # -> cpu float 2 | ?
        self.three()        # -> cpu float 2
        self.w              # -> cpu float 2 | ?
        self.u              # -> cpu float 2 | ?
        self.v              # -> cpu float 2
        self.device         # -> 'cuda'
        self.target         # -> 'cuda' | ?
        self.w.contiguous() # -> cpu
        self.below          # -> cpu float 2 | ?
        self.mixed()        # -> cpu float 2 | ?
    below = host
    def mixed(self): return host
class Mixed:
    def mixed(self): return None
class Sub(Mixed, Base):
    below = None
    def one(self): return None
class Guarded:
    def __init__(self):
        self.x = host
    def __setattr__(self, name, value):
        object.__setattr__(self, name, None)
    def use(self):
        self.x              # -> cpu float 2 | ?
class Strict:
    def __init__(self):
        self.x = host
    def __setattr__(self, name, value):
        if name == "fixed":
            raise AttributeError(name)
        super().__setattr__(name, value)
    def use(self):
        self.x              # -> cpu float 2
class Renaming(Strict):
    def __init__(self):
        self.z = host
    def __setattr__(self, name, value):
        if name == "y":
            name = "x"
        super().__setattr__(name, value)
    def use(self):
        self.z              # -> cpu float 2 | ?
class Skipping:
    def __init__(self):
        self.x = host
    def __setattr__(self, name, value):
        if name == "x":
            return
        super().__setattr__(name, value)
    def use(self):
        self.x              # -> cpu float 2 | ?
def outside(base, value):
    base.w, base.two, base.target = None, value, torch.float64
    base.device = "cpu"
    setattr(base, "u", value)
class Hooked:
    def __init__(self):
        self.last = host
    def start(self):
        def hook(*_):
            self.last = None
        self.last = cuda
        hook()
        self.last       # -> tensor float 2 | ?
def fill(into, x):
    into["x"] = cuda
def caller():
    given, others = {"x": host}, {"x": host}
    fill(given, 3)
    given["x"]          # -> cpu float 2 | ?
    others["x"]         # -> cpu float 2
x                       # -> cpu float 2 | ?
box["x"]                # -> cpu float 2 | ?
"""

CHANGED = """
first, second = [host, cuda], [host, cuda]
first[0]                # -> cpu float 2
first.reverse()
first[0]                # -> tensor float 2
second[0]               # -> cpu float 2
held = {}
held.setdefault("x", host)
held["x"]               # -> cpu float 2
also = second
also[0] = None
second[0]               # -> tensor float 2 | None
taken = (x := cuda) if held else None
x                       # -> cuda float 2
x = host
made = (x := cuda) if held else None
x                       # -> tensor float 2
f = lambda y=(x := None): y
x                       # -> None
"""

TRIED = """
x = host
try:
    x = cuda
    raise ValueError
except ValueError:
    x                   # -> tensor float 2
x                       # -> tensor float 2

try:
    x = cuda
    x = host
    x = 1
except ValueError:
    x                   # -> 1 | tensor float 2

x = host
try:
    try:
        x = cuda
        raise ValueError
    except KeyError:
        pass
except ValueError:
    x                   # -> tensor float 2

x = host
try:
    x = cuda
finally:
    x                   # -> tensor float 2
x                       # -> cuda float 2

def f():
    x = host
    try:
        x = cuda
        return 1
    finally:
        x               # -> tensor float 2

x, y = host, cuda
for i in range(3):
    try:
        y = host
        break
    finally:
        x = cuda
x                       # -> tensor float 2

box.a = host
try:
    box.a = cuda
    raise ValueError
finally:
    box.a               # -> tensor float 2

x = host
if unknown():
    try:
        raise ValueError
    finally:
        x = cuda
x                       # -> cpu float 2
"""

DECIDED = """
def f(x, mask=None):
    if mask is None:
        return x.cpu()
    return x
f(cuda)                 # -> cpu float 2
f(cuda, mask)           # -> cuda float 2
f(cuda, unknown())      # -> tensor float 2

def f(x, flag=False):
    return x.cpu() if not flag else x
f(cuda)                 # -> cpu float 2
f(cuda, True)           # -> cuda float 2
f(cuda, flag=unknown()) # -> tensor float 2

def f(x):
    if isinstance(x, (list, tuple)):
        return [f(y) for y in x]
    if isinstance(x, dict):
        return {k: f(v) for k, v in x.items()}
    if isinstance(x, np.ndarray):
        x = torch.from_numpy(x)
    return x.cuda()
f(host)                 # -> cuda float 2
f([host])               # -> list[cuda float 2]
f({"a": host})          # -> dict[cuda float 2]
f({"a": [host, host]})  # -> dict[list[cuda float 2]]
f(np.zeros(3))          # -> array | cuda float 1

def f(x, y: Tensor, l: typing.Sequence[int], c: nn.Module, u: Union[Tensor, int], *args):
    isinstance(x, Tensor)       # -> bool
    isinstance(y, Tensor)       # -> True
    isinstance(y, dict)         # -> False
    isinstance(y, nn.Parameter) # -> bool
    isinstance(l, list)         # -> bool
    isinstance(l, Tensor)       # -> False
    isinstance(c, nn.Module)    # -> True
    isinstance(c, nn.Linear)    # -> bool
    isinstance(c, Tensor)       # -> False
    isinstance(u, Tensor)       # -> bool
    isinstance(u, dict)         # -> False
    isinstance(u, (Tensor, int))    # -> True
    isinstance(args, list)      # -> bool
    isinstance(3, int)          # -> True
    isinstance(True, int)       # -> True
    isinstance(3, float)        # -> False
    isinstance((1, 2), tuple)   # -> True
    isinstance((1, 2), Iterable)    # -> bool
    isinstance(None, Tensor)    # -> False
    isinstance(x, unknown())    # -> bool
    isinstance({"a": 1}, dict)  # -> True
    isinstance(cuda.shape, torch.Size)  # -> bool
    not isinstance(y, Tensor)   # -> False

class Base(nn.Module):
    pass
class Net(Base):
    def forward(self, x):
        return x
class Config(dict):
    pass
isinstance(Net(), Base)         # -> True
isinstance(Net(), nn.Module)    # -> True
isinstance(Base(), Net)         # -> bool
isinstance(Config(), dict)      # -> True
isinstance(Config(), Tensor)    # -> bool

def f(x):
    return x if x is None or x.dim() > 1 else x.cpu()
f(None)                 # -> None
f(cuda)                 # -> tensor float 2
"""


@table(ENUMERATIONS)
def test_enumerations(case: Case) -> None:
    check(case)


@table(TYPES)
def test_types(case: Case) -> None:
    check(case)


@table(RECURSION)
def test_recursion(case: Case) -> None:
    check(case)


@table(FILES)
def test_files_of_tensors(case: Case) -> None:
    check(case)


@table(SUPER)
def test_super(case: Case) -> None:
    check(case)


@table(VIEWS)
def test_views(case: Case) -> None:
    check(case)


@table(DEVICES)
def test_default_devices(case: Case) -> None:
    check(case)


@table(DELETED)
def test_deleted(case: Case) -> None:
    check(case)


@table(SUPPRESSED)
def test_code_after_suppressed_exceptions(case: Case) -> None:
    check(case)


@table(SET_INSIDE)
def test_names_that_a_function_inside_sets(case: Case) -> None:
    check(case)


@table(SET_ELSEWHERE)
def test_what_other_functions_set(case: Case) -> None:
    check(case)


@table(CHANGED)
def test_what_an_expression_changes(case: Case) -> None:
    check(case)


@table(TRIED)
def test_code_that_an_error_leaves(case: Case) -> None:
    check(case)


@table(DECIDED)
def test_decided_tests(case: Case) -> None:
    check(case)
