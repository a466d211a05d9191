"""Assignment in all its forms, comprehensions, lambdas, closures and scopes."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

ASSIGNMENT = """
a = b = cuda        # -> cuda float 2
b                   # -> cuda float 2

a, b = 1, host      # -> 1, cpu float 2
a, b = b, a         # -> cpu float 2, 1
(a, b), c = [host, cuda], 2     # -> cpu float 2, cuda float 2, 2
[a, b] = 1, 2       # -> 1, 2
a, *b = 1, 2, 3     # -> 1, [2, 3]
*a, b = 1, 2, 3     # -> [1, 2], 3
a, *b, c = cuda, 1, 2, host     # -> cuda float 2, [1, 2], cpu float 2
a, *b = cuda        # -> cuda float 1, list[cuda float 1]
a, b = cuda         # -> cuda float 1, cuda float 1
a, b = host.shape   # -> int, int
a, b = "xy"         # -> str, str
a, b = unknown()    # -> ?, ?
values, indices = cuda.max(dim=1)   # -> cuda float 1, cuda int 1
(a) = 3             # -> 3

box.a = cuda
box.a               # -> cuda float 2
box = other
box.a               # -> ?

count = 1
count += 1
count               # -> 2

total = 0
total += cuda
total               # -> cuda float 2

total = cuda
total += host.sum()
total               # -> cuda float 2

flag = ints
flag &= mask[0]
flag                # -> cuda int 1

text = "a"
text += "b"
text                # -> str

cuda[0] += 1
cuda                # -> cuda float 2

def f():
    a: Tensor = unknown()       # -> caller
    a: "Tensor" = unknown()     # -> caller
    a: int = unknown()          # -> int
    a: int = 3                  # -> 3
    a: Tensor                   # -> caller
    a: Optional[Tensor] = None  # -> None
    a: List[Tensor] = []        # -> []
    a: Tensor = cuda.to(place)  # -> cuda float 2

if (n := len([1])) > 2:
    n               # -> int
n                   # -> int

[y := cuda, y.sum()][1]     # -> cuda float 0
[last := x for x in [host]] # -> list[cpu float 2]
last                # -> cpu float 2

while (chunk := unknown()) is not None:
    chunk           # -> ?

a = 1
del a
a                   # -> ?

for i, (x, y) in enumerate(zip(cuda, [1, 2])):  # -> int, cuda float 1, int
    x               # -> cuda float 1

for name, *rest in [("a", host, cuda)]:
    rest            # -> [cpu float 2, cuda float 2]

import os.path as path, torch as th
from torch import zeros as make
th.ones(2)          # -> cpu float 1
make(3)             # -> cpu float 1
path.join("a", "b") # -> str

from math import pi
pi                  # -> float
"""

SCOPES = """
x = 1
[x for x in [host]]     # -> list[cpu float 2]
x                   # -> 1

scale = lambda t: t * 2
scale(cuda)         # -> cuda float 2
scale(3)            # -> int
(lambda: host)()    # -> cpu float 2
(lambda a, b=cuda: b)(1)    # -> cuda float 2
(lambda *a: a)(1)   # -> (int)
sorted([cuda], key=lambda t: t.sum())   # -> list[cuda float 2]

def outer(t: Tensor):
    size = t.shape[0]
    def inner(u):
        size            # -> int
        t               # -> caller
        return u + t
    return inner(t)     # -> caller

def outer():
    weight = torch.ones(3, device="cuda")
    def inner():
        return weight
    return inner
outer()()           # -> cuda float 1

def outer():
    weight = torch.ones(3, device="cuda")
    return lambda t: t * weight
outer()(host)       # -> cuda float 2

def counter():
    total = 0
    def add():
        nonlocal total
        total += cuda
        return total    # -> cuda float 2
    return add

LIMIT = 4
def use():
    LIMIT           # -> 4

def use():
    return LATER    # -> cuda float 2
LATER = cuda

TABLE = None
def use():
    global TABLE
    TABLE = cuda
    TABLE           # -> cuda float 2

def shadow(host):
    host            # -> ?

def shadow():
    torch = unknown()
    torch.zeros(2)  # -> ?

class Box:
    size = 3
    double = size * 2
    double          # -> 6
Box.size            # -> 3
Box.double          # -> 6

def make(n: int):
    return [torch.zeros(n) for _ in range(n)]
make(3)             # -> list[cpu float 1]
make(3)[0].sum()    # -> cpu float 0

def apply(function, *args):
    return function(*args)
apply(torch.relu, cuda)     # -> cuda float 2

def compose(first, second):
    return lambda t: second(first(t))
compose(torch.relu, torch.sigmoid)(cuda)    # -> cuda float 2
"""


@table(ASSIGNMENT)
def test_assignment(case: Case) -> None:
    check(case)


@table(SCOPES)
def test_scopes(case: Case) -> None:
    check(case)
