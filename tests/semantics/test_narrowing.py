"""What tests say of names: `is None`, `isinstance`, `is_tensor`, truth, and returns that come early."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

NONE_TESTS = """
def f(x: Optional[Tensor]):
    x               # -> caller | None
    if x is None:
        x           # -> None
    else:
        x           # -> caller
    x               # -> caller | None

def f(x: Optional[Tensor] = None):
    if x is not None:
        x           # -> caller
    else:
        x           # -> None

def f(c, given):
    x = None if c else given
    x               # -> ? | None
    if x is None:
        x           # -> None
    else:
        x           # -> ?
    if x is not None:
        y = x       # -> ?
    x               # -> ? | None

def f(x: Tensor, n: int, is_tracing):
    torch.ceil(x) if torch.jit.is_tracing() else n                          # -> int
    x if torch.jit.is_tracing() and isinstance(x, torch.Tensor) else n      # -> int
    n if not torch.jit.is_tracing() else x                                  # -> caller | int
    x if is_tracing() else n                                                # -> caller | int
    x if torch.jit.is_tracing() or n else n                                 # -> caller | int

def f(x: Optional[Tensor], c):
    while x is None:
        if c:
            break
        x = step()
    x               # -> caller | ? | None

def f(x: Optional[Tensor]):
    if x is None:
        return 0
    x               # -> caller

def f(x: Optional[Tensor]):
    if x is None:
        x = torch.zeros(3)
    x               # -> tensor

def f(x: Optional[Tensor]):
    if not (x is None):
        x           # -> caller

def f(x: Optional[Tensor]):
    if x == None:
        return
    x               # -> caller

def f(x: Optional[Tensor]):
    assert x is not None
    x               # -> caller

def f(x: Optional[Tensor], y: Optional[Tensor]):
    if x is None and y is None:
        return
    x               # -> caller | None
    if x is not None and y is not None:
        y           # -> caller
    if x is None or y is None:
        return
    y               # -> caller

def f(x: Optional[int] = None):
    if x:
        x           # -> int

def f(x: Optional[Tensor]):
    return x.sum() if x is not None else 0      # -> 0 | caller 0

def f(x: Optional[Tensor]):
    return x is not None and x  # -> bool | caller

def f(x: Optional[Tensor]):
    while x is None:
        x = step()
    x               # -> caller | ?

def f(xs: List[Optional[Tensor]]):
    return [x for x in xs if x is not None]     # -> list[caller]

class Net(nn.Module):
    def __init__(self):
        self.cache = None
    def fill(self, x: Tensor):
        if self.cache is None:
            self.cache = x
        self.cache  # -> caller
        if self.cache is not None:
            self.cache.sum()    # -> caller 0

class Net(nn.Module):
    def __init__(self, bias=True):
        self.bias = nn.Parameter(torch.zeros(3)) if bias else None
        self.bias   # -> cpu float 1 parameter | None
    def forward(self, x: Tensor):
        self.bias   # -> model float 1 parameter | None
        if self.bias is not None:
            x = x + self.bias   # -> model float
"""

TYPES = """
def f(x: Union[Tensor, float]):
    x               # -> caller | float
    if isinstance(x, Tensor):
        x           # -> caller
    else:
        x           # -> float

def f(x: Union[Tensor, float]):
    if isinstance(x, (int, float)):
        x           # -> float
        x = torch.tensor(x)
    x               # -> tensor

def f(x: Union[Tensor, float]):
    if not isinstance(x, torch.Tensor):
        return 0
    x               # -> caller

def f(x):
    if isinstance(x, torch.Tensor):
        x           # -> caller
        return x.item()
    x               # -> ?

def f(x):
    if type(x) is torch.Tensor:
        x           # -> caller
    else:
        x           # -> ?
    if type(x) not in (torch.Tensor, list):
        return
    x               # -> caller | list[?]

def f(x):
    if torch.is_tensor(x):
        x           # -> caller
    elif isinstance(x, np.ndarray):
        x           # -> array
    elif isinstance(x, (list, tuple)):
        x           # -> list[?] | tuple[?]
    elif isinstance(x, dict):
        x           # -> dict[?]
    elif isinstance(x, str):
        x           # -> str
    else:
        x           # -> ?

def f(x):
    if not torch.is_tensor(x):
        x = torch.as_tensor(x)
    x               # -> tensor

def f(x: Union[Tensor, List[Tensor]]):
    if isinstance(x, list):
        x           # -> list[caller]
        x = torch.stack(x)
    x               # -> caller

def f(x: Union[Tensor, Dict[str, Tensor]]):
    if isinstance(x, dict):
        return x["a"]   # -> caller
    return x        # -> caller

def f(x: Union[int, Tuple[int, int]]):
    if isinstance(x, int):
        x = (x, x)
    x               # -> (int, int)

def f(x: Tensor, mode):
    if isinstance(mode, str) and isinstance(x, Tensor):
        mode        # -> str
        x           # -> caller

def f(x):
    x.unsqueeze(0)
    if isinstance(x, float):
        x           # -> float
    x               # -> caller | float

def f(layer):
    if isinstance(layer, nn.Linear):
        layer       # -> Linear
        layer.weight    # -> model float parameter
    elif isinstance(layer, (nn.Conv2d, nn.Conv3d)):
        layer       # -> Conv2d | Conv3d

def f(x):
    assert isinstance(x, torch.Tensor), type(x)
    x               # -> caller

def f(x):
    return x if isinstance(x, Tensor) else torch.tensor(x)  # -> tensor

def f(x: Tensor):
    if isinstance(x, nn.Parameter):
        x           # -> caller parameter
    x               # -> caller

def f(x: Union[Tensor, str]):
    if x == "auto":
        x           # -> 'auto'
    elif callable(x):
        x           # -> str

def f(x):
    if isinstance(x, Known):
        x           # -> Known
    elif isinstance(x, Unheard):
        x           # -> ?
class Known: ...
"""


@table(NONE_TESTS)
def test_none(case: Case) -> None:
    check(case)


@table(TYPES)
def test_types(case: Case) -> None:
    check(case)


DEVICES = """
def f(x: Tensor, device: torch.device):
    if x.device.type == "cuda":
        x           # -> cuda
    else:
        x           # -> cpu
    if x.device.type != "cuda":
        return x    # -> cpu
    x               # -> cuda

def f(x: Tensor):
    low = x.cpu() if x.device.type == "mps" else x
    low             # -> tensor
    if x.is_cuda:
        x           # -> cuda
    if not x.is_cpu:
        x           # -> cuda
    if x.device.type != "cpu":
        x           # -> caller
    if x.type == "cuda":
        x           # -> caller

def f(x: Tensor, y: Tensor, n: int):
    z = n + y.cuda()
    if str(x.device) == "cpu":
        x           # -> cpu
        y           # -> cpu
        z           # -> cuda
    else:
        x           # -> caller
        y           # -> caller
    if "cuda" in str(x.device):
        x           # -> cuda
        y           # -> caller
    else:
        y           # -> cpu
    if x.device == torch.device("cpu"):
        x           # -> cpu
    if x.device == y.device or str(x) == "cpu" or "cpu" in x.device.kind:
        x           # -> caller

def chosen(x: Tensor):
    if x.device.type == "cpu":
        return x + 1
    return x.abs()
def f(x: Tensor, y: Tensor):
    if x.device.type == "cpu":
        y = y.abs()
        z = torch.zeros(3)
        z           # -> cpu float 1
    else:
        z = y * 2
    x               # -> caller
    y               # -> caller
    z               # -> caller
    chosen(y)       # -> caller
    if x.device.type == "mps":
        y = y.float()
        y           # -> caller float
    y               # -> caller

def f(config, x: Tensor):
    if config.device == "cpu":
        torch.zeros(3, device=config.device)    # -> cpu float 1
        x           # -> caller

def f(device: torch.device):
    if device.type == "cuda":
        torch.zeros(3, device=device)   # -> cuda float 1
    else:
        torch.zeros(3, device=device)   # -> cpu float 1

def f(x: Union[Tensor, float]):
    if isinstance(x, Tensor):
        x.sum().item()  # -> float
        return x        # -> caller
"""


@table(DEVICES)
def test_devices(case: Case) -> None:
    check(case)


ITEMS = """
def f(loader, name):
    for batch in loader:
        for k in batch:
            if isinstance(batch[k], Tensor):
                batch[k]        # -> cpu
            else:
                batch[k]        # -> ?
        if torch.is_tensor(batch["x"]):
            batch["x"]          # -> cpu
            batch["y"]          # -> cpu
        else:
            batch["x"]          # -> ?
            batch["y"]          # -> cpu

def f(loader):
    for batch in loader:
        if isinstance(batch, Tensor):
            batch       # -> cpu
        elif isinstance(batch, dict):
            batch       # -> dict[cpu]
        elif isinstance(batch, (list, tuple)):
            batch       # -> list[cpu]
        else:
            batch[0]    # -> cpu

def f(x: Tensor, flag):
    y = x if flag else None
    try:
        return float(y)
    except TypeError:
        y               # -> None
    try:
        return float(x)
    except ValueError:
        x               # -> caller

def f(loader):
    for x, y in loader:
        if isinstance(y, tuple):
            y = y[0]    # -> cpu
        y               # -> cpu
        if isinstance(x, dict):
            x           # -> dict[cpu]

def f(held: Dict[str, Tensor]):
    if isinstance(held.get("mask"), str):
        held["mask"]    # -> str
        held["image"]   # -> caller
    else:
        held["mask"]    # -> caller
    if isinstance(held.get("mask", ""), (str, os.PathLike)):
        held["mask"]    # -> ?
    if held.pop("mask") is None or held.get(other) is None:
        held["mask"]    # -> caller

def f(held: Dict[str, Tensor], k, other):
    if not isinstance(held[k], Tensor):
        held[k]         # -> ?
        held[k] = cuda
        held[k]         # -> caller
    if not isinstance(held[k], Tensor):
        k = 3
        held[k]         # -> caller

def f(held: Dict[str, Tensor], self, k, g):
    if not isinstance(held["x"], Tensor):
        len(held)
        held.get("y")
        held["x"].stop()
        held["x"]       # -> ?
        g(held["y"])
        held["x"]       # -> ?
        g(held)
        held["x"]       # -> caller
    if not isinstance(held["x"], Tensor):
        held.update(x=1)
        held["x"]       # -> 1
    if not isinstance(held[self.k], Tensor):
        held[self.k]    # -> 1 | ?
        self.k = 3
        held[self.k]    # -> 1 | caller | ?
    if not isinstance(held[k], Tensor):
        held = g()
        held[k]         # -> ?

class A:
    def f(self, k):
        self.held = [cuda]
        if not isinstance(self.held[k], Tensor):
            self.held[k]        # -> ?
            self.change()
            self.held[k]        # -> cuda float 2
        elif self.held[k].device.type == "cpu":
            self.held[k]        # -> cpu float 2
        if not isinstance(self.held[k], Tensor):
            self.held.append(1)
            self.held[k]        # -> 1 | cuda float 2

def f(x: Tensor, y: nn.Parameter, z: Tensor):
    if isinstance(x, Tensor):
        x               # -> caller
    else:
        x               # -> ?
    if not isinstance(y, nn.Parameter):
        y               # -> model parameter
    if not isinstance(x, (Tensor, int)):
        x               # -> ?
    w = 1 if isinstance(z, Tensor) else z       # -> 1 | ?

def f(x: Tensor, y: Optional[Tensor], z, g):
    if isinstance(x, Tensor):
        x               # -> caller
    x                   # -> caller
    if not isinstance(x, Tensor):
        g(x)
    x                   # -> caller
    if not isinstance(x, Tensor):
        x = torch.tensor(x)
    x                   # -> tensor
    if isinstance(y, Tensor):
        y.sum()
    y                   # -> caller | None
    if isinstance(z, Tensor):
        z.sum()
    z                   # -> caller | ?

def f(held, k):
    while not isinstance(held[k][0], Tensor):
        held[k][0]      # -> ?
        for k in held:
            held[k][0]  # -> ?
"""


@table(ITEMS)
def test_items(case: Case) -> None:
    check(case)


CLASSES = """
class Base: ...
class Left(Base): ...
class Right(Base): ...
class Plain: ...
def f(given, base: Base, left: Left):
    either = given or Right()
    either              # -> Right() | ?
    if isinstance(either, Left):
        either          # -> Left
    if isinstance(either, (Left, Right)):
        either          # -> Left | Right()
    if isinstance(either, Base):
        either          # -> Right()
    if isinstance(base, Left):
        base            # -> Left
    else:
        base            # -> Base
    if isinstance(left, Base):
        left            # -> Left
    one = Left() if given else Plain()
    if not isinstance(one, Left):
        one             # -> Plain()
    elif isinstance(one, Base):
        one             # -> Left()
def g(reward, x):
    reward.eval()
    reward(x)
    reward              # -> Module
    if isinstance(reward, nn.Module):
        reward          # -> Module
    else:
        reward          # -> ?
"""

NAMED_FUNCTIONS = """
def relu(x): return x
def sharp(x): return 1
def f(given, either=relu):
    one = relu if given else sharp
    if one.__name__ == "sharp":
        one(cuda)       # -> 1
    else:
        one(cuda)       # -> cuda float 2
    if one.__name__ != "sharp":
        one(cuda)       # -> cuda float 2
    if one.__name__ == given:
        one(cuda)       # -> 1 | cuda float 2
    if either.__name__ == "sharp":
        either(cuda)    # -> ?
    else:
        either(cuda)    # -> cuda float 2
"""


@table(NAMED_FUNCTIONS)
def test_functions_by_their_names(case: Case) -> None:
    check(case)


@table(CLASSES)
def test_classes(case: Case) -> None:
    check(case)
