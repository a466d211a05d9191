"""What a file passes to the constructors of its classes, and what follows of methods called on what they hold."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

HELD = """
class Trainer:
    def __init__(self, model, weight: Tensor, steps=3, hook=None, accelerator="auto"):
        if accelerator == "auto":
            accelerator = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(accelerator)
        self.model, self.weight, self.steps, self.hook = model, weight, steps, hook
    def run(self):
        self.model      # -> Linear(in_features=3, out_features=3)
        self.weight     # -> caller
        self.steps      # -> int
        self.hook       # -> ?
        self.device     # -> device cuda
def main():
    Trainer(nn.Linear(3, 3), host, 5).run()
main()

class Box:
    def __init__(self, x, y):
        self.x, self.y = x, y
first, second = Box(cuda, 1), Box(host, y="a")
first.x                 # -> tensor float 2
first.y                 # -> int | str

class Box:
    def __init__(self, x, y=None):
        self.x, self.y = x, y
first, second = Box(cuda, ints), Box(cuda)
first.x                 # -> cuda float 2
second.y                # -> cuda int 1 | None

class Box:
    def __init__(self, x):
        self.x = x
Box(cuda), Box(unknown())
Box(cuda).x             # -> ?

class Box:
    def __init__(self, x, y):
        self.x, self.y = x, y
box = Box(**settings)
box.x                   # -> ?

class Box:
    def __init__(self, x):
        self.x = x
def never_called():
    return Box(cuda)
never_called().x        # -> cuda float 2

class Box:
    def __init__(self, x):
        self.x = x
    def get(self):
        return self.x
def never_called():
    Box(cuda).get()     # -> cuda float 2

class Base:
    def __init__(self, x):
        self.x = x
class Child(Base):
    def double(self):
        return self.x * 2
Child(cuda).double()    # -> cuda float 2

class Base:
    def __init__(self, x):
        self.x = x
class Child(Base):
    def __init__(self, x, y):
        super().__init__(x)
        self.y = y
child = Child(cuda, ints)
child.y                 # -> cuda int 1
child.x                 # -> cuda float 2 | ?
"""

CALLED = """
class Metric:
    def update(self, preds, target):
        raise NotImplementedError
class Hits(Metric):
    def update(self, preds, target):
        preds           # -> cuda float 2
        target          # -> cuda int 1
class Misses(Metric):
    def update(self, preds, target):
        preds           # -> cuda float 2
class Unrelated:
    def update(self, preds, target):
        preds           # -> ?
class Loop:
    def __init__(self, metrics, named):
        self.metrics, self.named = metrics, named
    def run(self, data):
        for metric in self.metrics:
            metric.update(cuda, ints)
        for name, metric in self.named.items():
            metric          # -> Hits()
            metric.update(cuda, ints)
Loop([Hits(), Misses()], {"hits": Hits()}).run(host)

class Callback:
    def on_end(self, loop, outputs): ...
class Printer(Callback):
    def on_end(self, loop, outputs):
        outputs["loss"]     # -> cuda float 2
        loop.step           # -> 0
class Loop:
    def __init__(self, callbacks: Optional[List[Callback]] = None):
        self.callbacks = callbacks or []
        self.step = 0
    def fit(self, model, loader):
        for callback in self.callbacks:
            callback.on_end(self, {"loss": cuda})
Loop([Printer()]).fit(nn.Linear(3, 3), [])
"""

MADE_IN_FUNCTIONS = """
class Wrapped:
    def __init__(self, scaler, rate=None):
        self.scaler, self.rate = scaler, rate
    def step(self):
        self.scaler                     # -> GradScaler(device='cuda')
        self.rate                       # -> float | None
def run(loader):
    wrapped = Wrapped(torch.amp.GradScaler("cuda"))
    other = Wrapped(torch.amp.GradScaler("cuda"), 0.5)
    for x in loader:
        wrapped.step()

def run(loader):
    return Later(nn.Linear(3, 3), loader)
class Later:
    def use(self):
        self.net                        # -> Linear(in_features=3, out_features=3)
        self.loader                     # -> DataLoader
    def __init__(self, net, loader):
        self.net = net
        self.loader = loader

class Any:
    def __init__(self, net):
        self.net = net
    def use(self):
        self.net                        # -> ?
def one():
    Any(nn.Linear(3, 3))
def other(make):
    Any(make())

class Annotated:
    def __init__(self, net: nn.Module):
        self.net = net
    def use(self):
        self.net                        # -> Module
def make():
    return Annotated(nn.Linear(3, 3))
"""

DEVICES = """
def f(name="auto"):
    if name == "auto":
        name = "cuda:0" if torch.cuda.is_available() else "cpu"
    torch.zeros(3, device=name)         # -> cuda float 1
    torch.device(name)                  # -> device cuda
    return torch.zeros(3).to(name)
f()                                     # -> cuda float 1

def f(name: str):
    if name == "auto":
        name = "cpu"
    torch.zeros(3, device=name)         # -> tensor float 1

def g(mode="train"):
    if mode == "train":
        mode = "warmup"
    mode                                # -> str
"""


@table(HELD)
def test_held(case: Case) -> None:
    check(case)


@table(CALLED)
def test_called(case: Case) -> None:
    check(case)


@table(MADE_IN_FUNCTIONS)
def test_made_in_functions(case: Case) -> None:
    check(case)


@table(DEVICES)
def test_named_devices(case: Case) -> None:
    check(case)
