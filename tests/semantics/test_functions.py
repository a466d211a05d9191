"""Functions of the project: what their parameters are, what their calls give."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

ANNOTATIONS = """
def f(a: Tensor, b: int, c: float, d: str, e: bool, g: torch.device, h: torch.dtype):
    a               # -> caller
    b               # -> int
    c               # -> float
    d               # -> str
    e               # -> bool
    g               # -> device caller
    h               # -> dtype

def f(a: torch.types.Device, b: torch.cuda.Device, c: torch.cuda.Stream):
    a               # -> device caller
    torch.zeros(2).to(b)    # -> caller float 1
    c               # -> Stream

def f(a: "torch.Tensor", b: "Optional[int]", c: 'list[Tensor]'):
    a               # -> caller
    b               # -> int | None
    c               # -> list[caller]

def f(a: Optional[Tensor], b: Union[Tensor, None], c: Tensor | None, d: Union[int, Tensor]):
    a               # -> caller | None
    b               # -> caller | None
    c               # -> caller | None
    d               # -> caller | int

def f(a: List[Tensor], b: list[int], c: Tuple[Tensor, int], d: Tuple[int, ...], e: tuple):
    a[0]            # -> caller
    b               # -> list[int]
    c               # -> (caller, int)
    c[0]            # -> caller
    d               # -> tuple[int]
    e               # -> tuple[?]

def f(a: Dict[str, Tensor], b: dict, c: typing.Mapping[str, int], d: Iterable[Tensor]):
    a["x"]          # -> caller
    b               # -> dict[?]
    c               # -> dict[int]
    for x in d:
        x           # -> caller

def f(a: np.ndarray, b: torch.LongTensor, c: torch.BoolTensor, d: torch.FloatTensor, e: torch.Size):
    a               # -> array
    b               # -> caller int
    c               # -> caller bool
    d               # -> caller float
    e               # -> size[int]

def f(a: nn.Module, b: nn.Parameter, c: torch.optim.Optimizer, d: torch.utils.data.DataLoader):
    a               # -> Module
    a(host)         # -> batch[model]
    b               # -> model parameter
    c               # -> Optimizer
    for x in d:
        x           # -> batch[cpu]

def f(a: Any, b: Callable, c: "no such", d: 3, e: typing.Literal["a", "b"], g: typing.Type[nn.Module]):
    a               # -> ?
    b               # -> ?
    c               # -> ?
    d               # -> ?
    e               # -> str
    g               # -> ?

def f(a: typing.Annotated[Tensor, 3], b: typing.Sequence[Tensor], c: typing.Final[int] = 3):
    a               # -> caller
    b               # -> list[caller]
    c               # -> int=3

def f(a: Callable[[Tensor], Tensor], b: Callable[..., Tuple[Tensor, int]], c: Optional[Callable[[], Tensor]], x: Tensor):
    a(x)            # -> caller
    a(cuda)         # -> caller
    a(host)         # -> tensor
    a()             # -> tensor
    b(x)            # -> (caller, int)
    if c is not None:
        c()         # -> tensor
    a.weight        # -> ?
    torch.vmap(a)(x)    # -> caller

def f(a: Callable[[Tensor], float], b: Callable[[], None], c: Callable[[Tensor], Any], x: Tensor):
    a(x)            # -> ?
    b()             # -> ?
    c(x)            # -> ?

def twice(x):
    return x * 2
class Fit:
    def __init__(self):
        self.error: Callable[..., Tensor] = twice
    def run(self):
        self.error(host)    # -> cpu float 2
class Choice:
    error: Callable[..., Tensor]
    def __init__(self, name: str, error: Callable[..., Tensor] = twice):
        self.error = twice if name == "a" else error
    def run(self):
        self.error(host)    # -> cpu float 2

def f(net: Callable[[Tensor], Tensor], x: Tensor):
    net.eval(), net.parameters()
    net             # -> Module

def f(*args: Tensor, **kwargs: int):
    args            # -> tuple[caller]
    args[0]         # -> caller
    kwargs          # -> dict[int]
    kwargs["a"]     # -> int

Sizes = Tuple[int, int]
Pair = Tuple[Tensor, Tensor]
def f(a: Sizes, b: Pair):
    a               # -> (int, int)
    b[0]            # -> caller

def f(*rest, **more):
    rest[0]         # -> cuda float 2
    more["a"]       # -> cuda int 1
f(cuda, a=ints)

def f(a: Tensor, *, b: Tensor, c=3):
    b               # -> caller
    c               # -> int=3

def f(a: Tensor, /, b: int):
    a               # -> caller

T = typing.TypeVar("T", bound=Tensor)
U = typing.TypeVar("U")
V = typing.TypeVar("V", bound="Tensor")
W = typing.TypeVar("W", bound="Missing")
def f(a: T, b: U, c: V, d: W) -> U:
    a               # -> caller
    b               # -> ?
    c               # -> caller
    d               # -> ?
    return b
f(cuda, host)       # -> cpu float 2

def scaled(x: Tensor, by: float, eps: float, n: int, k: float = 1.0):
    by              # -> cuda float 0
    eps             # -> float
    n               # -> int
    k               # -> float=1.0
    return x * by
scaled(cuda, cuda.max(), 1e-3, cuda.sum(), 2)
scaled(host, cuda.min(), cuda.max(), unknown(), cuda.max())
"""

DEFAULTS_AND_USE = """
def f(a=1, b=0.5, c="x", d=True, e=None, g=(1, 2), h=[], i=host):
    a               # -> int=1
    b               # -> float=0.5
    c               # -> str='x'
    d               # -> bool=True
    e               # -> ?
    g               # -> tuple[int]
    h               # -> list[?]
    i               # -> cpu float 2

def f(a: int = 1, b: Optional[int] = None, c: float = 1, d: Tensor = None):
    a               # -> int=1
    b               # -> int | None
    c               # -> float
    d               # -> caller | None

def f(a: Optional[Tensor] = True, b: Tensor = False, c: Tensor | bool = True, d: Tensor = False, e: Tensor = 1.0):
    a               # -> bool=True
    b               # -> bool=False
    c               # -> bool | caller
    d               # -> bool=False | caller
    e               # -> 1.0 | caller
    return d.masked_fill(mask, 0)

def f(x):
    y = x           # -> tensor
    return y.unsqueeze(0).masked_fill(mask, 0)

def f(x, y):
    x.unsqueeze(1)  # -> caller
    y.copy()
    y               # -> ?

def f(x, mask=None):
    if mask is not None:
        x = x.masked_fill(mask, 0.0)
    mask            # -> ?

def f(device, loader, train_loader, x_loader, loaders):
    device          # -> device caller
    loader          # -> DataLoader
    train_loader    # -> DataLoader
    loaders         # -> dict[DataLoader] | list[DataLoader]

def f(scaler, optimizer, scheduler, zoom):
    scaler          # -> GradScaler
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler       # -> ?
    scheduler.step()
    zoom            # -> ?
    zoom.scale(2)

def f(x):
    x.device        # -> device caller
    return x.permute(0, 1)

def f(unknown, batches):
    for batch in batches:
        loss = unknown(batch)       # -> model float 0
        loss.backward()

def f(unknown, batches):
    for batch in batches:
        loss = unknown(batch).cpu()     # -> cpu float 0
        loss.backward()
        loss.item()                     # -> float

def f(unknown, batches):
    for batch in batches:
        loss = unknown(batch).cuda()    # -> cuda float 0
        loss.backward()

class Net(nn.Module):
    def forward(self, x, encoder, decoder, pipe):
        x           # -> model
        encoder     # -> Module
        decoder     # -> ?
        pipe        # -> ?
        encoder.eval(), encoder.parameters(), encoder.device
        return torch.ones(3, device=x.device) + decoder(pipe).to(decoder.device)
    def move(self, pipe):
        pipe        # -> ?
        return pipe.device

def f(x):
    b, c = x.shape
    b               # -> ?

def f(x):
    return torch.relu(x)    # -> caller

def f(x):
    return F.softmax(x, dim=-1) # -> caller float
"""

DOCSTRINGS = '''
def f(x, n, m, rest):
    """Do.

    Args:
        x (torch.Tensor): The input.
        n (int): How many.
        m (Tensor, optional): Where. Defaults to None.
        rest: Anything.
    """
    x               # -> caller
    n               # -> int
    m               # -> caller
    rest            # -> ?

def f(x, n, xs, s):
    """Do.

    Args:
        x (`torch.FloatTensor` of shape `(batch, n)`): The input.
        n (`int`, *optional*, defaults to 3): How many.
        xs (list[torch.Tensor]): Several.
        s (Tensor or None): It.
    """
    x               # -> caller
    n               # -> int
    xs              # -> ?
    s               # -> caller | None

def f(x, n, xs, p):
    """Do.

    Args:
        x: (tensor) The input.
        n: (int) How many.
        xs: (list of tensors) Several.
        :param p: (torch.Tensor) The place.
    """
    x               # -> caller
    n               # -> int
    xs              # -> ?
    p               # -> caller

def f(x):
    """Do.

    Args:
        x: (tensor) The input.
    """
    x               # -> caller float 2
f(torch.rand(3, 3))

def f(x, n):
    """Do.

    Parameters
    ----------
    x : torch.Tensor
        The input.
    n : int, optional
        How many.
    """
    x               # -> caller
    n               # -> int

def f(x, n):
    """Do.

    :param x: the input
    :type x: torch.Tensor
    :param int n: how many
    """
    x               # -> caller
    n               # -> int

class Labelled(torch.Tensor):
    pass
class Pair:
    def __init__(self, x: Tensor):
        self.x = x
class Columns(torch.Tensor):
    def __getitem__(self, names):
        return self
def f(point, columns, pair, model, table, missing, several, text):
    """Do.

    :param Columns columns: They have names.
    :param Labelled point: The point.
    :param Pair pair: Two.
    :param nn.Module model: It runs.
    :param np.ndarray table: Numbers.
    :param Missing missing: No class that the file knows.
    :param list several: Some.
    :param text: A Pair is described here.
    """
    point           # -> caller
    columns         # -> ?
    pair.x          # -> caller
    model           # -> Module
    table           # -> array
    missing         # -> ?
    several         # -> ?
    text            # -> ?

class Net(nn.Module):
    """A net.

    Args:
        weight (Tensor): The weight.
        size (int): The size.
    """
    def __init__(self, weight, size):
        super().__init__()
        weight      # -> caller
        size        # -> int

def f(x, marks, rows, n, names):
    """Do.

    params x: tensor in shape (B, C, N)
    @param marks: float tensor of marks, 0 denotes unmasked
    param rows: Tensor
    params n: number of tensors
    parameters names: tensor of names
    """
    x               # -> caller
    marks           # -> caller
    rows            # -> caller
    n               # -> ?
    names           # -> ?

def f(x: int):
    """Do.

    Args:
        x (Tensor): A lie; the annotation counts.
    """
    x               # -> int

def f(x):
    """A text that speaks of a Tensor x but gives no types."""
    x               # -> ?
'''

RESULTS = """
def f(x):
    return x
f(cuda)             # -> cuda float 2
f(host)             # -> cpu float 2
f(1)                # -> int
f("a")              # -> str
f([cuda])           # -> [cuda float 2]

def f(x):
    return x.sum(), x.shape[0]
a, b = f(cuda)      # -> cuda float 0, int
f(cuda)[0]          # -> cuda float 0

def f(x):
    if x.sum() > 0:
        return x
    return None
f(cuda)             # -> cuda float 2 | None

def f(x):
    print(x)
f(cuda)             # -> None

def f(x) -> Tensor:
    return unknown(x)
f(cuda)             # -> caller
f(host)             # -> tensor
f(3)                # -> tensor

class Op:
    def full(self) -> Tensor:
        raise NotImplementedError
    def applied(self, x) -> Tensor:
        raise NotImplementedError
    def __len__(self) -> Tensor:
        raise NotImplementedError
    @staticmethod
    def made() -> Tensor:
        raise NotImplementedError
class Layer(nn.Module):
    def full(self) -> Tensor:
        raise NotImplementedError
def f(op: Op, layer: Layer):
    op.full()           # -> caller
    op.applied(cuda)    # -> caller
    op.applied(host)    # -> tensor
    op.made()           # -> tensor
    op.__len__()        # -> tensor
    layer.full()        # -> caller

def f(x) -> Tuple[Tensor, int]:
    return unknown(x)
f(cuda)[1]          # -> int

def f(x) -> int:
    return x
f(cuda)             # -> cuda float 2
f(unknown())        # -> int
f(3)                # -> int

def accuracy(out: Tensor, target: Tensor) -> float:
    hits = out.argmax(1) == target
    return hits.float().mean()
accuracy(cuda, cuda)    # -> cuda float 0
accuracy(unknown(), unknown())  # -> float

def check(x: Tensor, n: int) -> bool:
    small = x.norm() < n
    large = x.max() < n
    return small and large
check(cuda, 3)      # -> cuda bool 0

# look-alikes
def read(x: Tensor, verbose: bool) -> float:
    if verbose:
        return float(x.mean())
    return x.mean().item() * 2
read(cuda, True)    # -> float

def either(x: Tensor, n: int) -> float:
    total = 0.0
    if n:
        total = x.sum()
    return total
either(cuda, n)     # -> float

def used(x) -> bool:
    return x.is_better(3)
used(cuda)          # -> bool

def f(x):
    raise NotImplementedError
f(cuda)             # -> ?

def f(x, *, scale=1.0, shift=None):
    return x * scale if shift is None else x + shift
f(ints)             # -> cuda float 1
f(cuda, scale=2)    # -> cuda float 2
f(cuda, shift=cuda) # -> cuda float 2
f(**{"x": cuda})    # -> cuda float 2
f(*[cuda])          # -> cuda float 2

def f(n):
    if n == 0:
        return torch.zeros(3)
    return f(n - 1) + 1
f(3)                # -> cpu float 1

def even(x, n):
    return x if n == 0 else odd(x + 1, n - 1)
def odd(x, n):
    return x if n == 0 else even(x + 1, n - 1)
even(cuda, 3)       # -> cuda float 2

def f(xs):
    for x in xs:
        yield x * 2
list(f([cuda]))     # -> list[cuda float 2]
for x in f([host, host]):
    x               # -> cpu float 2
next(f([cuda]))     # -> cuda float 2

def f():
    yield from (cuda, cuda)
list(f())           # -> list[cuda float 2]

@contextlib.contextmanager
def placed(x):
    try:
        yield x.cuda()
    finally:
        pass
with placed(host) as y:
    y               # -> cuda float 2

half = functools.partial(torch.mul, 0.5)
half(cuda)          # -> cuda float 2

def f(x, y, z=1):
    return x + y
g = functools.partial(f, cuda)
g(1)                # -> cuda float 2
functools.partial(f, y=2)(ints)     # -> cuda int 1

def decorator(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper
@decorator
def f(x):
    return x.sum()
f(cuda)             # -> cuda float 0

@torch.no_grad()
def f(x):
    return x.sum()
f(cuda)             # -> cuda float 0

@torch.jit.script
def f(x: Tensor):
    return x + 1
f(cuda)             # -> cuda float 2

@functools.lru_cache(maxsize=None)
def f(n):
    return torch.zeros(n, device="cuda")
f(3)                # -> cuda float 1

async def f():
    return cuda
async def g():
    return await f()    # -> cuda float 2

def f(x, function=torch.relu):
    return function(x)
f(cuda)             # -> cuda float 2
f(mask, torch.sum)  # -> cuda int 0

def f(inputs: dict[str, torch.Tensor], given: dict[str, int]):
    inputs["use_cache"]             # -> bool
    inputs.get("return_loss")       # -> bool | None
    inputs["returns"]               # -> caller
    inputs["is_first"]              # -> caller
    given["use_cache"]              # -> int
    inputs["use_cache"] = x = torch.zeros(3)
    inputs["use_cache"]             # -> cpu float 1

def f(x, **kwargs):
    return kwargs["y"] + x
f(cuda, y=cuda)     # -> cuda float 2

def f(*xs):
    return xs[0]
f(cuda, 1)          # -> cuda float 2

def f(*xs):
    return torch.stack(xs)
f(cuda, cuda)       # -> cuda float 3

def f(x: Tensor, n: int = 2):
    out = []
    for i in range(n):
        out.append(x[i])
    return torch.stack(out)
f(cuda)             # -> cuda float 2

def f(x: Tensor) -> "Tensor":
    return x.cpu()
f(cuda)             # -> cpu float 2

def f(x: Tensor, to: str = "cpu"):
    return x.to(to)
f(cuda)             # -> cpu float 2
f(host, "cuda")     # -> cuda float 2

def f(state):
    state["x"] = cuda
    return state
f({})["x"]          # -> cuda float 2

def f(x):
    return {"loss": x.mean(), "n": len(x)}
f(cuda)["loss"]     # -> cuda float 0
f(cuda)["n"]        # -> int

def f(x):
    return lambda y: x + y
f(cuda)(1)          # -> cuda float 2
"""

CALL_SITES = """
class Episodes:
    def __init__(self, count: int):
        self.count = count
        self.labels = torch.zeros(count)
class Net(nn.Module):
    def training_step(self, batch, index):
        self.run(batch)
    def run(self, batch: Episodes):
        batch.count     # -> int
    def forward(self, batch):
        self.pass_on(batch)
    def pass_on(self, batch):
        batch.count     # -> model

def helper(x):
    x               # -> cuda float 2
    return x * 2
helper(cuda)

def outer():
    def inner():
        later       # -> cuda float 2 | ?
    later = cuda
    inner()
    later = None

def outer(flag):
    def inner():
        later       # -> ?
    later = cuda

def helper(x, n):
    x               # -> cpu float 2
    n               # -> int
def caller():
    helper(host, 3)

def helper(x):
    x               # -> tensor float 2
helper(cuda)
helper(host)

class Kept(nn.Module):
    def forward(self, x, lengths):
        return x, lengths.cpu()
def evaluated(model, x, lengths):
    model.eval()
    model(x, lengths)[1]        # -> cpu float 2
evaluated(Kept(), cuda, cuda)

def evaluated(model, x):
    model.eval()
    model(x)        # -> batch[model]

def helper(x, flag=False):
    x               # -> cuda float 2
    flag            # -> bool=False
helper(x=cuda)

def helper(x):
    x               # -> cuda float 2 | ?
helper(cuda)
helper(unknown())

def helper(x, device="cpu"):
    torch.zeros(3, device=device)   # -> caller float 1
def caller(x: Tensor):
    helper(x, device=x.device)

def helper(x):
    x               # -> caller
    return x.shape, x.device
def other(x):
    x               # -> ?
    return x.dtype, x.device

def helper(x: Tensor):
    x               # -> caller
helper(cuda)

def _helper(x: Tensor):
    x               # -> cpu
def one(n: list):
    _helper(torch.tensor(n))
def two(n: list):
    _helper(host)

def _helper(x: Tensor):
    x               # -> caller
def one(n: list):
    _helper(torch.tensor(n))
def two(x):
    _helper(x)

def _helper(x: Tensor):
    x               # -> caller
def one(xs):
    _helper(host)
    return list(map(_helper, xs))

def helper(x: Tensor):
    x               # -> caller
helper(host)

class Net(nn.Module):
    def _make(self, sizes: Tensor):
        def hook():
            return sizes    # -> cpu
        return hook
    def _other(self, sizes: Tensor):
        return sizes        # -> caller
    def attribute(self, layers: list, net):
        self._other(host)
        net.inner._other(layers[0])
        return self._make(torch.cumsum(torch.IntTensor([0] + layers), dim=0))

class Net(nn.Module):
    def forward(self, x: Tensor):
        return self._scale(x, 2)
    def _scale(self, x, factor):
        x           # -> model
        factor      # -> int
        return x * factor

def step(model, batch, size):
    batch           # -> batch[cpu]
    size            # -> int
    model           # -> Linear(in_features=3, out_features=4)
def train():
    model = nn.Linear(3, 4).cuda()
    loader = torch.utils.data.DataLoader(data, batch_size=2)
    for batch in loader:
        step(model, batch, 3)
"""

TEXTS = """
def make(kind="a", size=0):
    if kind == "a":
        layer = nn.Linear(1, 1)
        return layer
    elif kind == "b":
        if size == 0:
            raise ValueError
        return nn.Conv2d(1, 1, 1)
    elif kind in ("c", "d"):
        return nn.ReLU()
    raise ValueError
make()                  # -> Linear(in_features=1, out_features=1)
make("b", 3)            # -> Conv2d(in_channels=1, out_channels=1, kernel_size=1)
make(kind="d")          # -> ReLU()
make(kind=name)         # -> Conv2d(in_channels=1, out_channels=1, kernel_size=1) | Linear(in_features=1, out_features=1) | ReLU()
make(kind="a" if cond else "d") # -> Conv2d(in_channels=1, out_channels=1, kernel_size=1) | Linear(in_features=1, out_features=1) | ReLU()

def reduced(x: Tensor, reduction="mean"):
    if reduction != "none":
        x = x.mean()
    return x
reduced(torch.rand(3, 3, device="cuda"))            # -> cuda float 0
reduced(torch.rand(3, 3, device="cuda"), "none")    # -> cuda float 2

def lowered(kind):
    kind = kind.lower()
    if kind == "a":
        return 1
    return "text"
lowered("a")            # -> 'text' | 1

def changes(kind):
    for turn in turns:
        if kind == "a":
            found = 1
        else:
            found = "text"
        kind = "b"
    return found
changes("a")            # -> 'text' | 1

MODE = "a"
def of_file():
    if MODE == "a":
        return 1
    return "text"
of_file()               # -> 'text' | 1

class Store:
    kind = "a"
    def make(self):
        if self.kind == "a":
            return 1
        return "text"
Store().make()          # -> 'text' | 1

mode = "a"
if mode == "b":
    here = 1            # -> 1
else:
    here = "text"
here                    # -> 'text' | 1
"""


@table(TEXTS)
def test_texts_that_a_function_compares(case: Case) -> None:
    check(case)


@table(ANNOTATIONS)
def test_annotations(case: Case) -> None:
    check(case)


@table(DEFAULTS_AND_USE)
def test_defaults_and_use(case: Case) -> None:
    check(case)


REPLACED = """
def f(x, t=None, y=None, z=None, w=None, v=None, u=None):
    if t is None:
        n = len(x)
        t = torch.linspace(0, 1, n, device=x.device).view(-1)
    else:
        t           # -> caller
    if y is None:
        y = torch.LongTensor([3] * 4).to(x.device)
    y               # -> caller
    z = torch.zeros_like(x) if z is None else z
    z               # -> caller
    w = w if w is not None else x.new_ones(3)
    w               # -> caller
    if v is None:
        v = torch.ones(3).type_as(x)
    helper(v)
    v               # -> caller
    if u is None:
        u = torch.randn(3, device=device)
    u               # -> caller

def f(x, cpu=None, fixed=None, eps=None, listed=None, made=None, given=3, other=None):
    if cpu is None:
        cpu = torch.arange(3)
    else:
        cpu         # -> ?
    if fixed is None:
        fixed = torch.arange(3, device="cpu")
    else:
        fixed       # -> ?
    if eps is None:
        eps = torch.finfo(x.dtype).eps
    else:
        eps         # -> ?
    if listed is None:
        listed = torch.zeros(3, device=x.device)
    elif isinstance(listed, list):
        listed      # -> list[?]
    if made is None:
        made = torch.zeros_like(x)
    else:
        made        # -> ?
        made = torch.as_tensor(made)
    if given is None:
        given = torch.zeros_like(x)
    else:
        given       # -> int=3
    if other is None:
        other = make(x.device)
    else:
        other       # -> ?

def f(x, n: int = None):
    if n is None:
        n = torch.zeros_like(x)
    else:
        n           # -> int
"""


DEVICES = """
def a(n: int, device: typing.Optional[str] = None):
    device              # -> device caller
def b(n: int, device: torch.device | str | None = None):
    device              # -> device caller
def c(n: int, dev=None):
    dev                 # -> device caller
def some(n: int, device: typing.Optional[str] = None):
    device              # -> str | None
def named(n: int, device: typing.Optional[str] = None):
    device              # -> str | None
def host(n: int, device: typing.Optional[torch.device] = None):
    device              # -> device caller | None
def text(n: int, name: typing.Optional[str] = None):
    name                # -> str | None
def f(x: Tensor):
    a(3, x.device)
    a(4, device=x.device)
    b(3, device=x.device)
    c(3, x.device)
    some(3, x.device)
    some(3)
    named(3, x.device)
    named(3, "cpu")
    host(3, x.cpu().device)
    text(3, "a")
"""


@table(DEVICES)
def test_devices_of_tensors_that_all_calls_pass(case: Case) -> None:
    check(case)


@table(REPLACED)
def test_parameters_that_a_tensor_replaces(case: Case) -> None:
    check(case)


PASSED = """
def f(x, y, z, w, kept, joined):
    x           # -> caller
    y           # -> caller
    z           # -> caller
    w           # -> caller
    kept        # -> ?
    joined      # -> caller
    F.conv2d(x, weight)
    out = torch.exp(y[:, None]) if cond else z
    for turn in turns:
        z = torch.sum(z, 0)
        kept = kept[0]
    w = torch.cat((w[:, 1:], out))
    joined = torch.stack([joined, out])
    return torch.nn.functional.relu(kept) if cond else torch.softmax(kept, -1)

def f(bound, converted, asked, array, element, entry, other, named, listed, inner, method):
    bound = load(bound)
    torch.exp(bound)
    bound           # -> ?
    torch.exp(torch.as_tensor(converted))
    torch.exp(converted)
    converted       # -> ?
    if isinstance(asked, list):
        asked       # -> list[?]
    else:
        torch.exp(asked)
    np.abs(array) if cond else torch.abs(array)
    array           # -> ?
    torch.exp(element[0])
    element         # -> ?
    torch.exp(entry["x"])
    entry           # -> ?
    torch.add(other, 1)
    other           # -> ?
    torch.full_like(named, other)
    torch.stack(listed)
    listed          # -> ?
    def g(z):
        torch.exp(inner)
    inner           # -> ?
    method.run()
    helper.exp(method)
    method          # -> ?

def f(marks, weights, scores, text, size, ends, both):
    marks           # -> caller
    torch.where(marks == 0)[0]
    weights         # -> caller
    torch.sum(weights[:, 1:] > -0.5)
    scores          # -> caller
    torch.nonzero(-1 < scores)
    scores = torch.where(scores, size, 0)
    text            # -> ?
    torch.any(text == "end")
    size            # -> ?
    ends            # -> ?
    torch.all(ends[0] == 0)
    both            # -> ?
    torch.all(both == size)

def f(called, sized: int, given=0, maybe=None):
    called          # -> cuda float 2
    sized           # -> int
    given           # -> int=0
    maybe           # -> caller | None
    return torch.exp(called), torch.exp(sized), torch.exp(given), torch.exp(maybe)
f(torch.rand(3, 3, device="cuda"), 3)
"""


@table(PASSED)
def test_parameters_that_torch_gets(case: Case) -> None:
    check(case)


@table(DOCSTRINGS)
def test_docstrings(case: Case) -> None:
    check(case)


@table(RESULTS)
def test_results(case: Case) -> None:
    check(case)


@table(CALL_SITES)
def test_call_sites(case: Case) -> None:
    check(case)
