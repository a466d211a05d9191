"""The order in which statements run: branches, loops, `with`, `try`, `match`, and what joins after them."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

BRANCHES = """
def f(flag):
    if flag:
        x = cuda
    else:
        x = host
    x           # -> tensor float 2

def f(flag):
    x = cuda
    if flag:
        x = x.bool()
    x           # -> cuda 2

def f(flag):
    x = 1
    if flag:
        x = None
    x           # -> 1 | None

def f(flag):
    x = 1
    if flag:
        x = 2
    x           # -> int

def f(flag):
    if flag:
        x = cuda
    x           # -> cuda float 2

def f(flag):
    x = host
    if flag:
        return None
    else:
        x = cuda
    x           # -> cuda float 2

def f(flag):
    if flag:
        raise ValueError
    elif flag is None:
        x = cuda
    else:
        x = cuda + 1
    x           # -> cuda float 2

def f(a, b):
    if a:
        x = 1
    elif b:
        x = "a"
    else:
        x = None
    x           # -> 'a' | 1 | None

def f(flag):
    return cuda if flag else None   # -> cuda float 2 | None

def f(flag):
    x = unknown()
    if flag:
        x = cuda
    x           # -> cuda float 2 | ?

def f(flag):
    pair = (host, 1) if flag else (cuda, 2)
    pair        # -> (tensor float 2, int)

def f(flag):
    out = {"loss": cuda}
    if flag:
        out["extra"] = host
    out["loss"] # -> cuda float 2

def f(a):
    x = a or cuda
    x           # -> cuda float 2 | ?

def f(a=None):
    a = a or torch.zeros(3)     # -> cpu float 1 | ?

def f(flag):
    x = flag and cuda.sum()
    x           # -> cuda float 0 | ?

def f():
    if torch.cuda.is_available():
        x = torch.zeros(2).cuda()
    else:
        x = torch.zeros(2)
    return x
f()             # -> cuda float 1
"""

LOOPS = """
def f():
    total = 0
    for x in cuda:
        total = total + x.sum()
    total       # -> 0 | cuda float 0

def f():
    x = host
    for _ in range(3):
        x       # -> tensor float 2
        x = x.cuda()
    x           # -> tensor float 2

def f():
    x = host
    while True:
        x = cuda
        break
    x           # -> cuda float 2

def f(items):
    for x in items:
        found = cuda
        if x:
            break
    else:
        found = host
    found       # -> tensor float 2

def f(items):
    for x in items:
        if x:
            continue
        y = cuda
    y           # -> cuda float 2

def f():
    losses = []
    for x in cuda:
        losses.append(x.sum())
    losses      # -> list[cuda float 0]
    torch.stack(losses)     # -> cuda float 1

def f():
    n = 0
    while n < 10:
        n += 1
    n           # -> int

def f():
    x = None
    for _ in range(3):
        if x is None:
            x = cuda
        else:
            x = x + cuda
            x   # -> cuda float 2
    x           # -> cuda float 2 | None

def f():
    prev = None
    for x in cuda:
        prev    # -> cuda float 1 | None
        prev = x

def f():
    state = (host, host)
    for _ in range(2):
        a, b = state
        state = (a.cuda(), b)
    state       # -> (tensor float 2, cpu float 2)

def f():
    for a in cuda:
        for b in a:
            for c in [b]:
                c   # -> cuda float 0

def f():
    while (x := step()) > 0:
        pass
    return x    # -> ?

async def f():
    async for x in unknown():
        x       # -> ?
    y = await g()   # -> cuda float 2
async def g():
    return cuda
"""

WITH_AND_TRY = """
with torch.no_grad():
    x = cuda * 2
x               # -> cuda float 2

with open("a") as file, torch.no_grad():
    file        # -> ?

with torch.cuda.stream(torch.cuda.Stream()) as s:
    y = cuda

@contextlib.contextmanager
def placed():
    yield cuda
with placed() as t:
    t           # -> cuda float 2

class Guard:
    def __enter__(self):
        return host
    def __exit__(self, *args): ...
with Guard() as g:
    g           # -> cpu float 2

class Timer:
    def __enter__(self):
        self.start = 1.0
        return self
    def __exit__(self, *args): ...
with Timer() as t:
    t.start     # -> 1.0

try:
    x = cuda
except RuntimeError:
    x = host
x               # -> tensor float 2

try:
    x = cuda
except RuntimeError:
    raise
x               # -> cuda float 2

try:
    x = host
except ValueError as error:
    error       # -> ?
else:
    x = cuda
finally:
    done = True
x               # -> tensor float 2
done            # -> True

def f():
    try:
        return cuda
    finally:
        x = 1
        x       # -> 1
f()             # -> cuda float 2

def f():
    x = None
    try:
        x = cuda
        risky()
    except ValueError:
        pass
    x           # -> cuda float 2 | None

try:
    import accelerate
except ImportError:
    accelerate = None
accelerate      # -> accelerate | None

try:
    x = cuda
except* ValueError:
    x = host
x               # -> tensor float 2
"""

MATCH = """
def f(mode):
    match mode:
        case "a":
            x = cuda
        case _:
            x = cuda + 1
    x           # -> cuda float 2

def f(mode):
    x = host
    match mode:
        case 1:
            x = cuda
    x           # -> tensor float 2

def f(pair: Tuple[Tensor, Tensor]):
    match pair:
        case (a, b):
            a   # -> caller
            b   # -> caller
        case whole:
            whole   # -> (caller, caller)

def f(mode):
    match mode:
        case "a":
            x = cuda
        case "b":
            raise ValueError
        case _:
            return
    x           # -> cuda float 2

def f(item):
    match item:
        case {"loss": loss, **rest}:
            loss    # -> ?
        case [first, *others]:
            others  # -> list[?]
        case nn.Linear(weight=w):
            w       # -> model float parameter

def f(x: Tensor):
    match x.dim():
        case 3 if x.sum() > 0:
            x   # -> caller
        case n:
            n   # -> int
"""


@table(BRANCHES)
def test_branches(case: Case) -> None:
    check(case)


@table(LOOPS)
def test_loops(case: Case) -> None:
    check(case)


@table(WITH_AND_TRY)
def test_with_and_try(case: Case) -> None:
    check(case)


@table(MATCH)
def test_match(case: Case) -> None:
    check(case)
