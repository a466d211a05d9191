"""Literals, containers, their items and methods, and Python's own functions."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

LITERALS = """
a = 1        # -> 1
a = -1       # -> -1
a = 1.5      # -> 1.5
a = True     # -> True
a = None     # -> None
a = ...      # -> Ellipsis
a = "a"      # -> 'a'
a = b"a"     # -> b'a'
a = 2j       # -> 2j
a = f"{host} is {1:02d}"    # -> str
a = "a" "b"  # -> 'ab'
not host     # -> bool
1 < 2        # -> bool
"a" in "abc" # -> bool
"%d" % 3     # -> str
"a" + "b"    # -> str
"a" * 3      # -> str
1 + 2        # -> 3
7 // 2       # -> 3
7 / 2        # -> 3.5
2 ** 3       # -> int
1 / 0        # -> float
1 if host is None else 2.0   # -> 1 | 2.0
"""

DISPLAYS = """
[]                  # -> []
[1, 2]              # -> [1, 2]
(1, "a")            # -> (1, 'a')
()                  # -> ()
{1, 2}              # -> {1, 2}
{}                  # -> {}
{"a": 1, "b": host} # -> {a: 1, b: cpu float 2}
{1: host}           # -> dict[cpu float 2]
{name: host for name in "ab"}   # -> dict[cpu float 2]
[host, cuda]        # -> [cpu float 2, cuda float 2]
[*[1, 2], 3]        # -> [1, 2, 3]
[*range(3), 1]      # -> list[int]
(*range(3), host)   # -> tuple[cpu float 2 | int]
{**{"a": 1}, "b": 2}    # -> {a: 1, b: 2}
{"a": 1, "a": host} # -> {a: cpu float 2}
[[1], [2, 3]]       # -> [[1], [2, 3]]
[x for x in [1, 2]] # -> list[int]
{x for x in "ab"}   # -> set[str]
(x for x in host)   # -> iterator[cpu float 1]
[x + y for x in cuda for y in [1, 2]]           # -> list[cuda float 1]
[x for x in [host, None] if x is not None]      # -> list[cpu float 2]
[a * b for a, b in zip(cuda, host)]             # -> list[cuda float 1]
[t for row in [[host], [host]] for t in row]    # -> list[cpu float 2]
"""

ITEMS = """
(1, 2)[0]           # -> 1
(1, 2)[-1]          # -> 2
[1, 2, 3][1:]       # -> [2, 3]
[1, 2, 3][::-1]     # -> [3, 2, 1]
[1, host][n]        # -> 1 | cpu float 2
{"a": 1}["a"]       # -> 1
{"a": host, "b": 1}[n]  # -> 1 | cpu float 2
"abc"[0]            # -> str
"abc"[1:]           # -> str
list(range(9))[2]   # -> int
sorted([3, 1])[0]   # -> int
[[host]][0][0]      # -> cpu float 2
{"a": {"b": cuda}}["a"]["b"]    # -> cuda float 2
(cuda if cond else {"a": host})["a"]  # -> cpu float 2
([cuda] if cond else {"a": host})["a"]    # -> cpu float 2
(cuda if cond else {"a": host})[0]  # -> tensor float

(host if n else None)[0]    # -> cpu float 1
(cuda if n else None)[0][1] # -> cuda float 0
([1] if n else None)[0] # -> 1
None[0]             # -> ?

pairs = [("a", host), ("b", host)]
pairs[0][1]         # -> cpu float 2
pairs[n][1]         # -> cpu float 2

batch = {"x": host, "y": host}
batch["x"] = cuda
batch["x"]          # -> cuda float 2
batch["y"]          # -> cpu float 2
batch[name] = ints
batch["z"]          # -> tensor

found = {}
found["a"] = cuda
found["b"] = 1
found               # -> {a: cuda float 2, b: 1}
found.get("a")      # -> cuda float 2
found.get("c", 1.5) # -> 1.5
del found["a"]
found["a"]          # -> ?

row = [1, 2]
row[0] = host
row[1]              # -> cpu float 2 | int

parts = [0.0, 1]
parts[0]            # -> 0.0
parts += [cuda]
parts[2]            # -> cuda float 2
"""

METHODS = """
"a,b".split(",")    # -> list[str]
"a".upper()         # -> str
"a".startswith("b") # -> bool
"{}".format(1)      # -> str
"a".encode()        # -> bytes
",".join(["a"])     # -> str
"a".find("b")       # -> int
[1].index(1)        # -> int
[host].pop()        # -> cpu float 2
[host].copy()       # -> list[cpu float 2]
{"a": 1}.keys()     # -> iterator[str]
{"a": host}.values()    # -> iterator[cpu float 2]
{"a": 1}.get("a")   # -> 1
{"a": 1}.get("b")   # -> 1 | None
{"a": 1}.get("b", host) # -> 1 | cpu float 2
{"a": host}.pop("a")    # -> cpu float 2
{"a": host}.copy()  # -> {a: cpu float 2}
{}.setdefault("a", host)    # -> cpu float 2
host.shape.numel()  # -> int

for key, value in {"a": host}.items():
    key             # -> str
    value           # -> cpu float 2

losses = []
losses.append(cuda)
losses              # -> list[cuda float 2]
losses.extend([host])
losses[0]           # -> tensor float 2

seen = set()
seen.add(3)
seen                # -> set[3]

total = {"loss": 0.0}
total.update(acc=cuda)
total["acc"]        # -> cuda float 2
total["loss"]       # -> 0.0
total.update({"loss": 1})
total["loss"]       # -> 1

both = [host]
both.insert(0, 1)
both                # -> list[1 | cpu float 2]

empty = []
empty[0]            # -> ?
empty.clear()
empty               # -> []
for x in empty:
    x               # -> never

def hooked(model: nn.Module, x: Tensor):
    outputs, kept = [], {}
    def hook(module, args, output):
        outputs.append(output)
        kept["x"] = output
    model.register_forward_hook(hook)
    model(x)
    outputs[-1]     # -> ?
    kept["x"]       # -> ?

def last(xs: List[Tensor]):
    history = []
    for x in xs:
        if history:
            x = x + history[-1]
        history.append(x)
        history[-1]         # -> caller
    return history[-1]
last([cuda])        # -> cuda float 2
"""

FUNCTIONS = """
len([1])            # -> int
int("3")            # -> int
int(3.7)            # -> 3
float(2)            # -> 2.0
float("inf")        # -> float
str(host)           # -> str
bool(1)             # -> True
int(host.sum())     # -> int
abs(-2)             # -> int
abs(cuda)           # -> cuda float 2
round(1.5)          # -> int
round(1.234, 2)     # -> float
max(1, 2)           # -> int
max([1.0, 2.0])     # -> float
max(host, cuda)     # -> tensor float 2
sum([1, 2])         # -> int
sum([0.5, 2])       # -> float
sum([cuda, cuda])   # -> cuda float 2
sum(x.sum() for x in [cuda])    # -> cuda float 0
min(host.shape)     # -> int
range(3)            # -> range[int]
list(range(3))      # -> list[int]
list((1, 2))        # -> [1, 2]
tuple([host])       # -> (cpu float 2)
set([1, 2])         # -> set[int]
dict(a=1)           # -> {a: 1}
dict({"a": 1}, b=host)  # -> {a: 1, b: cpu float 2}
sorted([2.0, 1.0])  # -> list[float]
list(zip([1], [host]))[0]   # -> (1, cpu float 2)
list(enumerate([host]))[0]  # -> (int, cpu float 2)
list(map(str, [1.5, n]))     # -> ['1.5', str]
list(map(lambda x: x + 1, [cuda])) # -> [cuda float 2]
list(filter(None, [host]))  # -> list[cpu float 2]
next(iter([host]))  # -> cpu float 2
next(iter([host]), None)    # -> cpu float 2 | None
list(reversed([1, host]))   # -> [cpu float 2, 1]
isinstance(host, Tensor)   # -> True
isinstance(name, Tensor)   # -> bool
hasattr(host, "a")  # -> bool
any([True])         # -> bool
print(host)         # -> None
getattr(host, "shape")      # -> size(int, int)
getattr(host, name, 3)      # -> 3 | ?
type(nn.Linear(1, 2))       # -> class Linear
open("a").read()    # -> ?
divmod(7, 2)        # -> ?
id(host)            # -> int
math.sqrt(2)        # -> float
math.inf            # -> float
math.ceil(2.5)      # -> int
"""


@table(LITERALS)
def test_literals(case: Case) -> None:
    check(case)


@table(DISPLAYS)
def test_displays(case: Case) -> None:
    check(case)


@table(ITEMS)
def test_items(case: Case) -> None:
    check(case)


@table(METHODS)
def test_methods(case: Case) -> None:
    check(case)


@table(FUNCTIONS)
def test_functions(case: Case) -> None:
    check(case)
