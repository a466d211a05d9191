"""Idioms: unpacking, patterns, decorators, functions of the standard library and of torch that call functions."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

ASSIGNMENT = """
a, (b, *c), d = cuda, (1, host, ints), "x"
b                       # -> 1
c                       # -> [cpu float 2, cuda int 1]
[a, b] = cuda.unbind(0)
a                       # -> cuda float 1
first, *rest = cuda.split(2)
rest                    # -> list[cuda float 2]
a = b = cuda
b                       # -> cuda float 2
a, b = b, 1
a                       # -> cuda float 2
h, w = cuda.shape[-2:]
h                       # -> int
n, _ = cuda.size()
n                       # -> int

class Net:
    def __init__(self):
        self.total = 0
        self.sums = [0.0, 0]
        self.a, self.b = cuda, host
    def step(self, loss: Tensor):
        self.total += loss
        self.total      # -> caller
        self.a          # -> cuda float 2
        self.b          # -> cpu float 2
        self.sums[0] += loss
        self.sums[0]    # -> 0 | 0.0 | caller float
stats = {"loss": 0.0}
stats["loss"] += cuda.sum()
stats["loss"]           # -> cuda float 0
host[0] += 1
host                    # -> cpu float 2

if (m := cuda.max()) > 1:
    m                   # -> cuda float 0
kept = [y for x in [cuda, host] if (y := x * 2) is not None]
y                       # -> tensor float 2
kept                    # -> list[tensor float 2]
any((hit := x).sum() > 0 for x in [cuda])
hit                     # -> cuda float 2

for i, (x, y) in enumerate(zip([cuda], [host])):
    i                   # -> int
    x                   # -> cuda float 2
    y                   # -> cpu float 2
for k, (a, b) in {"x": (cuda, 1)}.items():
    a                   # -> cuda float 2
    b                   # -> 1
"""

MATCHING = """
def f(x):
    match x:
        case torch.Tensor():
            x               # -> caller
        case np.ndarray():
            x               # -> array
        case {"image": image, **rest}:
            rest            # -> dict[?]
        case [first, *others]:
            others          # -> list[?]
        case int() | float():
            x               # -> float | int
        case str(s):
            s               # -> str
        case None:
            x               # -> None
        case _:
            x               # -> ?

match {"image": cuda, "label": 1}:
    case {"image": image, "label": label}:
        image               # -> cuda float 2
        label               # -> 1

match (cuda, 1):
    case (a, b):
        a                   # -> cuda float 2
        b                   # -> 1
    case [a, *rest]:
        rest                # -> [1]

match cuda:
    case Tensor() as t:
        t                   # -> cuda float 2
    case whole:
        whole               # -> cuda float 2

@dataclasses.dataclass
class Batch:
    x: Tensor
    n: int
def f(batch: Batch, value: Union[Batch, Tensor]):
    match batch:
        case Batch(x=x, n=n):
            x               # -> caller
            n               # -> int
    match value:
        case Batch(x, n):
            x               # -> caller
        case Tensor(shape=shape):
            value           # -> caller
            shape           # -> size[int]

def f(kind: str, x: Tensor):
    match kind:
        case "host":
            y = x.cpu()
        case "device" | "cuda":
            y = x.cuda()
        case _:
            y = None
    return y                # -> tensor | None

match cuda:
    case 1:
        cuda                # -> 1
    case [a, b]:
        a                   # -> ?

def f(x: Tensor, y):
    match (x, y):
        case (Tensor(), None):
            z = x.cpu()
        case (_, Tensor() as y):
            z = y.cuda()
        case other:
            z = None
    return z                # -> tensor | None
match unknown():
    case {"a": a} if a is not None:
        a                   # -> ?
    case [Tensor() as t, *_]:
        t                   # -> caller
"""

TRYING = """
try:
    x = cuda
except ValueError:
    x = host
x                       # -> tensor float 2
try:
    y = cuda
except ValueError as error:
    raise RuntimeError from error
else:
    y = y + 1
finally:
    z = 1
y                       # -> cuda float 2
z                       # -> 1

def f():
    try:
        return cuda
    finally:
        print(1)
f()                     # -> cuda float 2

with open("a") as file, torch.no_grad():
    file                # -> ?
    x = cuda
x                       # -> cuda float 2

class Timer:
    def __enter__(self):
        self.x = cuda
        return self
    def __exit__(self, *args):
        pass
with Timer() as t:
    t.x                 # -> cuda float 2
with contextlib.nullcontext(cuda) as c:
    c                   # -> cuda float 2
with contextlib.suppress(ValueError):
    w = cuda
w                       # -> cuda float 2

@contextlib.contextmanager
def on(x):
    yield x.cuda()
with on(host) as y:
    y                   # -> cuda float 2
"""

DECORATORS = """
def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        out = fn(*args, **kwargs)
        return out
    return wrapper
@timed
def f(x):
    return x.cuda()
f(host)                 # -> cuda float 2
f                       # -> def f

def repeat(n):
    def outer(fn):
        def wrapper(*args):
            return [fn(*args) for _ in range(n)]
        return wrapper
    return outer
@repeat(3)
def f(x):
    return x.cuda()
f(host)                 # -> list[cuda float 2]

def to_host(fn):
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs).cpu()
    return wrapper
@to_host
def f(x):
    return x.cuda()
f(host)                 # -> cpu float 2
class Net(nn.Module):
    @to_host
    def forward(self, x):
        return x.cuda()
    @timed
    def other(self, x):
        return x
Net()(host)             # -> cpu float 2

@functools.lru_cache(maxsize=None)
def f(n):
    return torch.zeros(n)
f(3)                    # -> cpu float 1
@functools.cache
def g(n):
    return torch.zeros(n, device="cuda")
g(3)                    # -> cuda float 1
@torch.no_grad()
def h(x):
    return x.cuda()
h(host)                 # -> cuda float 2
@torch.inference_mode
def h2(x):
    return x.cuda()
h2(host)                # -> cuda float 2
@torch.compile(fullgraph=True)
def h3(x):
    return x.cuda()
h3(host)                # -> cuda float 2
@torch.jit.script
def h4(x):
    return x.cuda()
h4(host)                # -> cuda float 2
@unknown.thing
def h5(x):
    return x.cuda()
h5(host)                # -> cuda float 2

class Net:
    @functools.cached_property
    def grid(self):
        return torch.zeros(3, device="cuda")
    @property
    def x(self):
        return self._x
    @x.setter
    def x(self, value):
        self._x = value.cuda()
    @staticmethod
    def make(n):
        return torch.zeros(n)
    @classmethod
    def build(cls, n):
        return cls()
Net().grid              # -> cuda float 1
Net().x                 # -> ?
Net.make(3)             # -> cpu float 1
Net.build(3)            # -> Net()
Net.build(3).grid       # -> cuda float 1

fast = torch.compile(lambda x: x.cuda())
fast(host)              # -> cuda float 2
class Net(nn.Module):
    def forward(self, x):
        return x, x.sum()
net = torch.compile(Net())
net(host)               # -> (cpu float 2, cpu float 0)
net = nn.DataParallel(Net())
net(host)               # -> (model float 2, model float 0)
net.module              # -> Net()
net = torch.nn.parallel.DistributedDataParallel(Net().cuda(), device_ids=[0])
net(cuda)               # -> (cuda float 2, cuda float 0)
net.module(cuda)        # -> (cuda float 2, cuda float 0)
scripted = torch.jit.script(Net())
scripted(cuda)          # -> (cuda float 2, cuda float 0)
torch.utils.checkpoint.checkpoint(Net(), cuda, use_reentrant=False)     # -> (cuda float 2, cuda float 0)
torch.func.functional_call(Net(), {}, (cuda,))      # -> (cuda float 2, cuda float 0)
torch.vmap(lambda x: x.sum())(cuda)     # -> cuda float 1
torch.func.grad(lambda x: x.sum())(cuda)    # -> cuda float 2

def guess(fn):
    def wrapper(*args):
        return unknown(fn, *args)
    return wrapper
@guess
def f(x):
    return x.cuda()
f(host)                 # -> cuda float 2

registry = {}
def register(name):
    def keep(fn):
        registry[name] = fn
        return fn
    return keep
@register("f")
def f(x):
    return x.cuda()
f(host)                 # -> cuda float 2
f(host)                 # calls snippet.f

def first(fn):
    def wrapper(x):
        return fn(x).cpu()
    return wrapper
def second(fn):
    return lambda x: [fn(x)]
@second
@first
def f(x):
    return x.cuda()
@second
def g(x):
    return x
f(host)                 # -> [cpu float 2]
g(cuda)                 # -> [cuda float 2]
f(host)                 # calls snippet.f

def scaled(factor):
    def apply(x):
        return x * factor
    return apply
scaled(2)(cuda)         # -> cuda float 2
scaled(cuda)(2)         # -> cuda float 2
double, on = scaled(2), scaled(cuda)
double(host)            # -> cpu float 2
on(1)                   # -> cuda float 2

def memo(fn):
    return fn(0)
@memo
def value(n):
    return torch.zeros(n)

class Counted:
    def __init__(self, fn):
        self.fn = fn
    def __call__(self, *args):
        return self.fn(*args)
@Counted
def f(x):
    return x.cuda()
f(host)                 # -> cuda float 2

def recursive(fn):
    def wrapper(x):
        return f(x) if x is None else fn(x)
    return wrapper
@recursive
def f(x):
    return x.cuda()
f(host)                 # -> cuda float 2
"""

FUNCTIONAL = """
functools.partial(torch.add, cuda)(1)       # -> cuda float 2
functools.reduce(lambda a, b: a + b, [cuda, cuda])  # -> cuda float 2
functools.reduce(lambda a, b: a * b, [1, 2])  # -> int
import operator, itertools
functools.reduce(operator.add, [cuda, cuda])    # -> cuda float 2
functools.reduce(operator.mul, (1, 2), 1)    # -> int
operator.itemgetter(0)((cuda, 1))       # -> cuda float 2
operator.itemgetter("a")({"a": cuda})       # -> cuda float 2
operator.attrgetter("shape")(cuda)      # -> size(int, int)
operator.add(cuda, 1)   # -> cuda float 2
operator.gt(cuda, 1)    # -> cuda bool 2
list(map(lambda x: x.cpu(), [cuda]))    # -> [cpu float 2]
list(map(torch.Tensor.cpu, [cuda]))    # -> [cpu float 2]
list(map(float, [cuda]))    # -> [float]
list(filter(None, [cuda]))  # -> list[cuda float 2]
max([cuda, cuda], key=lambda x: x.sum())   # -> cuda float 2
max([(1, cuda)], key=operator.itemgetter(0))[1]   # -> cuda float 2
max({"a": 1}, key=len)  # -> str
sorted({"a": cuda}.items(), key=lambda kv: kv[1])[0][1]  # -> cuda float 2
sum(x.sum() for x in [cuda])    # -> cuda float 0
sum([1, 2])             # -> int
sum([cuda], start=host) # -> cuda float 2
sum([[cuda], [host]], [])   # -> list[tensor float 2]
list(itertools.chain([cuda], [cuda]))   # -> list[cuda float 2]
list(itertools.chain.from_iterable([[cuda]]))   # -> list[cuda float 2]
[a for a, b in itertools.product([cuda], [1])]  # -> list[cuda float 2]
list(itertools.islice([cuda], 3))   # -> list[cuda float 2]
next(itertools.cycle([cuda]))   # -> cuda float 2
[a for a, b in itertools.combinations([cuda], 2)]  # -> list[cuda float 2]
next(itertools.count())     # -> int
list(itertools.repeat(cuda, 3))   # -> list[cuda float 2]
[list(g) for k, g in itertools.groupby([cuda], key=len)]    # -> list[list[cuda float 2]]
[a for a, b in zip(*[(cuda, 1), (cuda, 2)])]    # -> list[1 | cuda float 2]
xs, ys = zip(*[(cuda, 1), (cuda, 2)])
xs                      # -> (cuda float 2, cuda float 2)
ys                      # -> (1, 2)
def pairs(data: List[Tuple[Tensor, int]]):
    images, labels = zip(*data)
    images              # -> tuple[caller]
    labels              # -> tuple[int]
    torch.stack(images) # -> caller
    torch.tensor(labels)    # -> cpu int 1
    images, labels = list(zip(*data))
    labels              # -> tuple[int]
    images, labels = map(list, zip(*data))
    images              # -> list[caller]
list(zip([cuda], [host]))[0][1]     # -> cpu float 2
dict(zip(["a"], [cuda]))["a"]       # -> cuda float 2
dict([("a", cuda)])["a"]            # -> cuda float 2
{k: v.cpu() for k, v in {"a": cuda}.items()}["a"]   # -> cpu float 2
dict(a=cuda, b=1)["a"]  # -> cuda float 2
{**{"a": cuda}, "b": 1}["a"]    # -> cuda float 2
dict({"a": cuda}, b=1)["a"]     # -> cuda float 2
import collections
d = collections.defaultdict(list)
d["a"].append(cuda)
d["a"][0]               # -> cuda float 2
nested = {"a": {"b": []}}
nested["a"]["b"].append(cuda)
nested["a"]["b"][0]     # -> cuda float 2
nested["a"]["c"] = host
nested["a"]["c"]        # -> cpu float 2
rows = [[], []]
rows[0].append(cuda)
rows[0][0]              # -> cuda float 2
d = collections.defaultdict(float)
d["a"] += 1
d["a"]                  # -> float
d["b"] += cuda.sum()
d["b"]                  # -> cuda float 0
c = collections.Counter([1])
c["a"]                  # -> int
q = collections.deque(maxlen=3)
q.append(cuda)
q[0]                    # -> cuda float 2
q.popleft()             # -> cuda float 2
o = collections.OrderedDict()
o["a"] = cuda
o["a"]                  # -> cuda float 2
for v in o.values():
    v                   # -> cuda float 2
P = collections.namedtuple("P", ["x", "y"])
p = P(cuda, 1)
p.x                     # -> cuda float 2
p[1]                    # -> 1
x, y = p
x                       # -> cuda float 2
"""


LOSSES = """
def train(step, batches, scaler):
    for x in batches:
        loss = step(x)
        loss            # -> model float 0
        loss = loss / 4
        loss            # -> model float 0
        other = step(x)
        other           # -> ?
        scaler.scale(loss).backward()

def handed_over(step, accelerator):
    loss, logs = step()
    loss                # -> model float 0
    logs                # -> ?
    accelerator.backward(loss)

def summed(step, penalty, weight, x, log):
    scale = weight(x)
    scale               # -> ?
    near = step(x)
    near                # -> model float 0
    far = penalty(x)
    far                 # -> model float 0
    quiet = penalty(x)
    quiet               # -> ?
    both = near + scale * far
    both                # -> model float 0
    loss = both / 4 + quiet
    loss += 2 * penalty(x)
    log(near.item(), far.item(), both.item(), quiet.name)
    loss.backward()
    far = log(near)
    far                 # -> ?

def not_summed(step, x, log):
    near = step(x)
    near                # -> ?
    best = near + 1
    log(near.item(), best.item())
    loss = step(x)
    loss.backward()

def known(criterion: nn.Module, x: Tensor):
    cpu = torch.zeros(3, requires_grad=True)
    loss = (cpu * 2).sum()
    loss                # -> cpu float 0
    loss.backward()

def counted(n):
    loss = 0
    loss                # -> 0
    loss.backward()

def of_another_function(step):
    loss = step()
    loss                # -> ?

from helpers import *
def loaders(create):
    train_loader, loaders = create()
    train_loader        # -> DataLoader
    loaders             # -> dict[DataLoader] | list[DataLoader]
    for x, y in tqdm(train_loader):
        x               # -> cpu
    np.zeros(3)         # -> array float 1
    unheard_of(3)       # -> ?
    loader = None
    loader              # -> None

def norms(parameters):
    norm = nn.utils.clip_grad_norm_(parameters, 1.0)
    norm                # -> model float 0
    host = [torch.zeros(3)]
    nn.utils.clip_grad_norm_(host, 1.0)     # -> cpu float 0

def f(batches, step):
    total = 0.0
    for batch in batches:
        loss = step(batch)              # -> model float 0
        loss.backward()
        total += loss.item()
        loss = total / (batches.n + 1)  # -> ?
        print(loss)                     # -> None

def f(batches, step):
    for batch in batches:
        loss = step(batch)              # -> model float 0
        if batch.twice:
            loss.backward()
            loss = step(batch)          # -> model float 0
        loss.backward()
"""


@table(LOSSES)
def test_losses(case: Case) -> None:
    check(case)


@table(ASSIGNMENT)
def test_assignment(case: Case) -> None:
    check(case)


@table(MATCHING)
def test_match_statements(case: Case) -> None:
    check(case)


@table(TRYING)
def test_tries(case: Case) -> None:
    check(case)


@table(DECORATORS)
def test_decorators(case: Case) -> None:
    check(case)


@table(FUNCTIONAL)
def test_functional(case: Case) -> None:
    check(case)
