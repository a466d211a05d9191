"""Classes that are no modules: attributes, dataclasses, named tuples, properties, subclasses of tensors."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

ATTRIBUTES = """
class Box:
    kind = "box"
    count = 0
    def __init__(self, x, n=2):
        self.x = torch.zeros(3, device="cuda")
        self.n = n
        self.items = []
        self.table = {"a": host}
    def grow(self):
        self.items.append(self.x)
        self.n += 1
        self.extra = self.x * 2
        return self
    def total(self):
        self.items      # -> list[cuda float 1]
        self.extra      # -> cuda float 1
        self.count      # -> 0
        return self.x.sum()
box = Box(1)
box                     # -> Box(x=1)
box.x                   # -> cuda float 1
box.kind                # -> 'box'
box.n                   # -> int
box.items               # -> list[cuda float 1]
box.table["a"]          # -> cpu float 2
box.extra               # -> cuda float 1
box.total()             # -> cuda float 0
box.grow().x            # -> cuda float 1
box.total               # -> def Box.total
box.nothing             # -> ?
Box.count               # -> 0
box.x = host
box.x                   # -> cpu float 2
Box(x=1, n=3)           # -> Box(x=1, n=3)

class Box:
    def __init__(self, x: Tensor):
        self.x = x
        self._y = x.cpu()
    @property
    def y(self):
        return self._y
    @property
    def on(self) -> bool:
        return unknown()
    @y.setter
    def y(self, value):
        self._y = value
    @classmethod
    def make(cls, n):
        return cls(torch.zeros(n))
    @staticmethod
    def ones(n):
        return torch.ones(n, device="cuda")
    def __call__(self, y):
        return self.x + y
    def __getitem__(self, i):
        return self.x[i]
    def __iter__(self):
        yield self.x
    def __len__(self):
        return 3
box = Box(cuda)
box.x                   # -> caller
box.y                   # -> cpu | ?
box.on                  # -> bool
Box.make(3)             # -> Box(x=cpu float 1)
Box.ones(3)             # -> cuda float 1
box(1)                  # -> caller
box[0]                  # -> caller
len(box)                # -> int
for x in box:
    x                   # -> caller

class Base:
    width = 4
    def __init__(self):
        self.a = host
    def get(self):
        return self.make()
    def make(self):
        return host
class Child(Base):
    height = 2
    def __init__(self):
        super().__init__()
        self.b = cuda
    def make(self):
        return cuda
    def old(self):
        return super().make()   # -> cpu float 2
Child().a               # -> cpu float 2
Child().b               # -> cuda float 2
Child().width           # -> 4
Child().get()           # -> cuda float 2
Child().old()           # -> cpu float 2
Base().get()            # -> cpu float 2 | ?

class Base:
    @dataclasses.dataclass
    class Item:
        x: Tensor
    def __init__(self):
        self.items = []
        self.items.append(self.wrapped(cuda))
    def wrapped(self, x):
        return self.__class__.Item(x)
    def copied(self):
        return self.__class__()
class Child(Base):
    def get(self):
        return [item.x for item in self.items]  # -> list[cuda float 2]
Child().copied()        # -> Child()
cuda.__class__          # -> ?

# inherited methods pass the arguments
class Base:
    def fit(self, x: Tensor):
        for _ in range(3):
            y = self._step(x, 3)
            self._pack(y)
            self._given(x, None)
            self._known(cuda)
            self._options({"size": y})
    def _step(self, x, n):
        raise NotImplementedError
class Child(Base):
    def _step(self, x, n):
        x               # -> caller
        n               # -> int
        return x.max(), cuda
    def _pack(self, pair):
        pair            # -> (caller 0, cuda float 2)
    def _given(self, x, y):
        x               # -> caller
        y               # -> None
    def _known(self, x):
        x               # -> cuda float 2
    def _options(self, options):
        options["size"]     # -> ?

# look-alikes: a call in the file says more, and nothing calls the others
class Base:
    def fit(self):
        self._called(self.make())
        self._read(self.make())
    def make(self):
        raise NotImplementedError
    def _unused(self, x):
        pass
class Child(Base):
    def make(self):
        return cuda
    def use(self):
        return self._called(3)
    def _called(self, x):
        x               # -> ?
    def _read(self, x):
        x               # -> cuda float 2
    def _unused(self, x):
        x               # -> ?

class Plain:
    def __init__(self, x: Tensor):
        self.x = x
class Cell(Plain):
    def __init__(self, x: Tensor, y: Tensor):
        super().__init__(x)
        self.y = y
        self.w = unknown()
class Open(Foreign):
    def __init__(self):
        self.z = 1
class Given(Plain):
    def __init__(self):
        self.w = cuda
def f(state: Plain | Cell, other: Cell | Open, given: Cell | Given):
    state.x             # -> caller
    state.y             # -> caller
    other.y             # -> caller | ?
    given.w             # -> cuda float 2 | ?

class Cache:
    def __init__(self):
        self.table = {}
        self.named = {}
        self.rows = []
        self.pair = [0, 0]
    def get(self, k):
        self.table[k]       # -> caller
        self.named["a"]     # -> cuda float 2
        self.rows[0]        # -> caller
        self.pair[1]        # -> 0 | cpu float 2
    def put(self, k, x: Tensor):
        self.table[k] = x
        self.named["a"] = cuda
        self.rows.append(x)
        self.pair[0] = host

class Schedule:
    def __init__(self):
        self.sigmas = torch.linspace(0, 1, 10)
        self.steps = torch.linspace(0, 1, 10)
        self.seen = torch.linspace(0, 1, 10)
        self.left = torch.linspace(0, 1, 10)
        self.branched = torch.linspace(0, 1, 10)
    def prepare(self, device="cuda:0", early=False):
        self.sigmas = torch.linspace(0, 1, 5).cuda()
        self.seen = torch.linspace(0, 1, 5).cuda()
        self.left = torch.linspace(0, 1, 5).cuda()
        self.steps = torch.linspace(0, 1, 5).cuda()
        self.branched = torch.linspace(0, 1, 5).cuda()
        self.look()
        self.sigmas = self.sigmas.cpu()
        self.seen = self.seen.cpu()
        if early:
            self.branched = self.branched.cpu()
            return
        self.left = self.left.cpu()
    def look(self):
        self.seen           # -> tensor float 1
    def use(self):
        self.sigmas         # -> cpu float 1
        self.steps          # -> tensor float 1
        self.left           # -> tensor float 1
        self.branched       # -> tensor float 1

class Schedule:
    def __init__(self):
        self.timesteps = torch.arange(1000)
    def set_timesteps(self, n: int, device: torch.device | None = None):
        self.timesteps = torch.arange(n).to(device)
    def step(self, timestep: int, t=None, prev_timestep: int | Tensor = 0):
        timestep            # -> caller int 0
        t                   # -> caller int 0
        prev_timestep       # -> caller int 0
    def named(self, timestep: str, n: int, time: int):
        timestep            # -> str
        n                   # -> int
        time                # -> int

class A:
    def f(self): return 1
class B(A):
    def g(self): return 2
class C(A):
    def f(self): return cuda
class D(B, C):
    pass
D().f()                 # -> cuda float 2

class Outer:
    class Inner:
        size = 3
        def f(self):
            return cuda
    def make(self):
        return self.Inner().f()
Outer.Inner.size        # -> 3
Outer().make()          # -> cuda float 2

def build():
    class Local:
        def f(self):
            return cuda
    return Local().f()  # -> cuda float 2

class Meta(type):
    pass
class Made(metaclass=Meta):
    x = 1
Made.x                  # -> 1

import enum
class Mode(enum.Enum):
    A = "a"
    B = "b"
Mode.A                  # -> Mode
Mode.A.value            # -> str

class Dynamic:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)
    def f(self):
        return self.anything    # -> ?

class Slots:
    __slots__ = ("x",)
    def __init__(self):
        self.x, self.y = cuda, host
        (self.z) = 3
        self.a = self.b = 1.5
        with open("f") as self.file:
            pass
        for self.i in range(3):
            pass
Slots().x               # -> cuda float 2
Slots().y               # -> cpu float 2
Slots().z               # -> 3
Slots().b               # -> 1.5
Slots().i               # -> int
"""

RECORDS = """
@dataclasses.dataclass
class Point:
    x: Tensor
    n: int = 3
    name: str = "p"
    weight: Optional[Tensor] = None
    items: List[Tensor] = dataclasses.field(default_factory=list)
p = Point(cuda, 2)
p                       # -> Point(x=cuda float 2, n=2)
p.x                     # -> cuda float 2
p.n                     # -> 2
p.name                  # -> str='p'
p.weight                # -> caller | None
p.items                 # -> list[caller]
def f(q: Point):
    q.x                 # -> caller
    q.n                 # -> int=3
    q.items[0]          # -> caller

class Out(NamedTuple):
    loss: Tensor
    n: int = 0
o = Out(cuda.sum(), 1)
o.loss                  # -> cuda float 0
o.n                     # -> 1
a, b = o                # -> cuda float 0, 1
o[0]                    # -> cuda float 0
def f() -> Out:
    return Out(cuda, 2)
f().loss                # -> cuda float 2

from collections import namedtuple, OrderedDict, defaultdict, deque
Pair = namedtuple("Pair", "a b")
Pair(cuda, 1).a         # -> cuda float 2
OrderedDict(a=cuda)["a"]    # -> cuda float 2
d = defaultdict(list)
d["a"].append(cuda)
d["a"]                  # -> list[cuda float 2]
q = deque(maxlen=3)
q.append(cuda)
q[0]                    # -> cuda float 2
q.popleft()             # -> cuda float 2

class Config(typing.TypedDict):
    x: Tensor
    n: int
def f(c: Config):
    c["x"]              # -> caller
"""

TENSORS = """
class Mine(torch.Tensor):
    def longest(self):
        super().max()   # -> caller 0
        super().size(0) # -> int
        return super().__repr__()
def f(x: Mine):
    x                   # -> caller
    x.sum()             # -> caller 0
Mine([1])               # -> cpu

class Weight(nn.Parameter):
    pass
Weight(host)            # -> cpu

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        return x * scale
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * x, None
Op.apply(cuda, 2)       # -> cuda float 2
"""

ITERATORS = """
class Batches:
    def __init__(self, n):
        self.n = n
        self.i = 0
    def __iter__(self):
        self.i = 0
        return self
    def __next__(self):
        if self.i >= self.n:
            raise StopIteration
        self.i += 1
        return torch.zeros(3, device="cuda")
batches = Batches(4)
for x in batches:
    x                   # -> cuda float 1
for i, x in enumerate(batches):
    x                   # -> cuda float 1
next(iter(batches))     # -> cuda float 1
next(batches)           # -> cuda float 1
list(batches)           # -> list[cuda float 1]
class Endless:
    def __next__(self):
        return host
next(Endless())         # -> cpu float 2
class Through:
    def __init__(self, inner):
        self.inner = inner
    def __iter__(self):
        return iter(self.inner)
for x in Through(Through(batches)):
    x                   # -> cuda float 1
class Shared:
    def __iter__(self):
        return Batches(2)
for x in Shared():
    x                   # -> cuda float 1
class Either:
    def __iter__(self):
        return self if unknown() else [host]
    def __next__(self):
        return cuda
for x in Either():
    x                   # -> tensor float 2
class Mistaken:
    def __iter__(self):
        return self
for x in Mistaken():
    x                   # -> ?
class Left:
    def __iter__(self):
        return Right()
class Right:
    def __iter__(self):
        return Left()
for x in Left():
    x                   # -> ?
class Deeper:
    def __init__(self, inner):
        self.inner = inner
    def __iter__(self):
        return Deeper(self)
for x in Deeper(1):
    x                   # -> ?
cuda                    # -> cuda float 2
"""


@table(ATTRIBUTES)
def test_attributes(case: Case) -> None:
    check(case)


@table(RECORDS)
def test_records(case: Case) -> None:
    check(case)


@table(TENSORS)
def test_tensor_classes(case: Case) -> None:
    check(case)


@table(ITERATORS)
def test_iterators(case: Case) -> None:
    check(case)


FROM_OUTSIDE = """
class Config: ...
def double(x):
    return x * 2
def use(config):
    config.function(cuda)   # -> cuda float 2
    config.value            # -> cuda float 2
    config.later            # -> cpu float 2
    config.missing          # -> ?
config = Config()
config.function = double
config.value = cuda
def main(config):
    config.later = host
    use(config)
main(config)

# what the class sets itself is what its objects have
class Holder:
    def __init__(self):
        self.x = cuda
def read(holder):
    holder.x                # -> cuda float 2
holder = Holder()
holder.x = host
read(holder)
"""


@table(FROM_OUTSIDE)
def test_attributes_that_other_code_sets(case: Case) -> None:
    check(case)
