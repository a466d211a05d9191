"""Programs that are hard on an interpreter: large, deep, recursive or odd.

Each function of `GROWING` writes a program about as large as asked; what is analysed in linear time
takes twice as long for twice as much. `ODD` holds programs that no one should write.
"""

from __future__ import annotations

from collections.abc import Callable

Program = Callable[[int], str]

GROWING: dict[str, tuple[Program, int]] = {}
"""Programs by name, and the least size to ask for."""

ODD: dict[str, str] = {}
"""Programs by name that no one should write; "odd" is the name of their module."""

UNPARSABLE: dict[str, str] = {}
"""Programs by name that Python's parser cannot take."""


def growing(size: int) -> Callable[[Program], Program]:
    """Enter a program, with its least size."""

    def enter(program: Program) -> Program:
        GROWING[program.__name__] = program, size
        return program

    return enter


def _lines(pattern: str, count: int) -> str:
    return "".join(f"{pattern.replace('#', str(n)).replace('$', str(n + 1))}\n" for n in range(count))


def _block(head: str, body: str) -> str:
    return head + "\n" + "".join(f"    {line}\n" for line in body.splitlines() or ["pass"])


def _nested(pattern: str, depth: int, inner: str) -> str:
    """Compound statements one in the other."""
    lines = [" " * n + pattern.replace("#", str(n)) for n in range(depth)]
    return "\n".join([*lines, " " * depth + inner]) + "\n"


IMPORTS = "import torch\nfrom torch import nn\n"

# Long code


@growing(200)
def statements(n: int) -> str:
    return "import torch\nx = torch.rand(8).cuda()\n" + _lines("y# = x + #", n)


@growing(200)
def dependent_statements(n: int) -> str:
    return "import torch\nx0 = torch.rand(8).cuda()\n" + _lines("x$ = x# + x0 * #", n)


@growing(200)
def loop_body(n: int) -> str:
    return "import torch\nx = torch.rand(8)\n" + _block("for i in range(9):", _lines("x = x.add(#)", n))


@growing(200)
def function_body(n: int) -> str:
    return _block("def f(x, y):", _lines("x = x.add(y).float()", n) + "return x.item()")


@growing(120)
def if_ladder(n: int) -> str:
    return _block("def f(x):", "if x == 0:\n    y = 0\n" + _lines("elif x == $:\n    y = $", n) + "return y")


@growing(120)
def many_ifs(n: int) -> str:
    return _block("def f(x, y=None):", _lines("if y is not None and x > #:\n    x = x + y\nelse:\n    z# = x", n))


@growing(120)
def early_returns(n: int) -> str:
    return _block("def f(x, step):", _lines("if step % # == 0:\n    return x.item()", n))


@growing(120)
def rare_steps(n: int) -> str:
    body = _lines("if step % 9 != 0 or step > #:\n    continue\nx = x + 1", n)
    return _block("def f(x):", _block("for step in range(9):", body) + "return x.item()")


@growing(120)
def guards(n: int) -> str:
    return _block("def f(x, debug):", "return " + " or ".join(["(debug and x.item())"] * n))


@growing(200)
def dict_literal(n: int) -> str:
    return "d = {" + ", ".join(f"'k{k}': [{k}, 'v{k}']" for k in range(n)) + "}\nx = d['k1'], d['k99']\n"


@growing(200)
def list_literal(n: int) -> str:
    return "x = [" + ", ".join(f"({k}, {k}.0)" for k in range(n)) + "]\ny = x[1]\n"


@growing(120)
def dict_keys(n: int) -> str:
    return "import torch\nd = {}\n" + _lines("d['k#'] = torch.rand(#)\ny = d['k0']", n)


@growing(120)
def appends(n: int) -> str:
    return "import torch\nx = []\n" + _lines("x.append(torch.rand(#))\ny = x[-1]", n)


@growing(60)
def methods(n: int) -> str:
    body = _lines("def m#(self, x):\n    self.a# = x.float()\n    return self.m$(self.a#)", n)
    return IMPORTS + _block("class A(nn.Module):", body)


@growing(80)
def attributes_of_self(n: int) -> str:
    init = _block("def __init__(self):", _lines("self.layer# = nn.Linear(#, 8)", n))
    forward = _block("def forward(self, x):", _lines("x = self.layer#(x)", n) + "return x")
    return IMPORTS + _block("class A(nn.Module):", init + forward)


@growing(160)
def parameters(n: int) -> str:
    names = ", ".join(f"a{k}=None" for k in range(min(n, 250)))
    uses = _lines("if a# is not None:\n    a#.item()", min(n, 250))
    return _block(f"def f({names}):", uses) + _lines("f(a0=#)", n)


@growing(80)
def closures(n: int) -> str:
    return _block("def f(x):", _lines("y# = x\ndef g#(z):\n    return y# + z", n))


@growing(80)
def with_statements(n: int) -> str:
    return "import torch\n" + _lines("with torch.no_grad(), open('#') as f:\n    x = f.read()", n)


@growing(80)
def try_statements(n: int) -> str:
    body = _lines("try:\n    x = g(x)\nexcept ValueError as error:\n    raise\nfinally:\n    y = x", n)
    return _block("def f(x):", body)


@growing(80)
def match_cases(n: int) -> str:
    cases = _block("match x:", _lines("case {'k#': [a, *b], **rest} if a:\n    y = a, rest", n))
    return _block("def f(x):", cases)


@growing(80)
def strings(n: int) -> str:
    return "import torch\nx = torch.rand(3).cuda()\ns = ''\n" + _lines(
        "s += f'{x.mean():.3f} {x}' + str(x) + '%s' % x", n
    )


@growing(80)
def narrowings(n: int) -> str:
    test = " and ".join(f"isinstance(x{k % 9}, int) and x{k % 7} is not None" for k in range(n))
    return _block(f"def f({', '.join(f'x{k}' for k in range(9))}):", f"if {test}:\n    return x1\nreturn x2")


@growing(80)
def unpacked(n: int) -> str:
    return "x = [1, 2, 3]\n" + _lines("a, (b, *c), d = x, x, x\nx = [*x, a, *c]", n)


# Calls


@growing(80)
def call_chain(n: int) -> str:
    body = _lines("def f#(x):\n    return f$(x + 1)", n)
    return f"import torch\n{body}def f{n}(x):\n    return x.item()\nf0(torch.rand(3).cuda())\n"


@growing(80)
def call_chain_upwards(n: int) -> str:
    return "def f0(x):\n    return x.item()\n" + _lines("def f$(x):\n    return f#(x) + 1", n) + f"f{n}(3)\n"


@growing(60)
def doubled_calls(n: int) -> str:
    body = _lines("def f#(x, y):\n    return f$(x, y) + f$(y, x)", n)
    return f"import torch\n{body}def f{n}(x, y):\n    return x * y\nf0(torch.rand(3).cuda(), 2)\n"


@growing(30)
def doubled_methods(n: int) -> str:
    return IMPORTS + _block("class A:", _lines("def m#(self, x):\n    return self.m$(x).add(self.m$([x]))", n))


@growing(6)
def all_call_all(n: int) -> str:
    body = "\n    ".join(f"x = f{k}(x, i)" for k in range(n))
    return _lines(f"def f#(x, i):\n    {body}\n    return x", n)


@growing(50)
def mutual_recursion(n: int) -> str:
    body = _lines("def f#(x):\n    return f$(x) if x else f0(x - 1)", n)
    return f"{body}def f{n}(x):\n    return f0(x)\nf0(3)\n"


@growing(30)
def recursion_in_loops(n: int) -> str:
    loop = "for i in x:\n        for j in i:\n            x = f$(f#(j))"
    return _lines(f"def f#(x):\n    {loop}\n    return x", n)


@growing(30)
def calls_in_calls(n: int) -> str:
    return "def f(x, y):\n    return [x, y]\nx = 1\n" + _lines("x = f(f(x, #), f(#, x))", n)


@growing(12)
def functions_as_values(n: int) -> str:
    return "def g0(x):\n    return x\n" + _lines("def g$(x, f=g#):\n    return f(f(x)), g#\nh# = g$(g#)", n)


@growing(40)
def callbacks(n: int) -> str:
    return "from functools import partial\np0 = print\n" + _lines("p$ = partial(p#, p#, key=p#)\np$(#)", n)


@growing(60)
def properties(n: int) -> str:
    return _block("class A:", _lines("@property\ndef p#(self):\n    return self.p$, self.p0", n))


@growing(30)
def self_changing(n: int) -> str:
    return _block("class A:", _lines("def m#(self):\n    self.a = [self.a, self.b]\n    self.b = {'k': self.a}", n))


@growing(40)
def decorators(n: int) -> str:
    return "def d(f):\n    def g(*a, **k):\n        return f(*a, **k)\n    return g\n" + _lines(
        "@d\n@d\ndef f#(x):\n    return f$(x)", n
    )


@growing(40)
def sequential(n: int) -> str:
    layers = ", ".join(["nn.Linear(8, 8), nn.ReLU()"] * n)
    return f"{IMPORTS}m = nn.Sequential({layers})\ny = m(torch.rand(3, 8)).item()\n"


# Classes


@growing(80)
def wide_hierarchy(n: int) -> str:
    return (
        IMPORTS
        + "class A(nn.Module):\n    x = 1\n"
        + _lines("class B#(A):\n    def forward(self, x):\n        return super().forward(x) + self.x", n)
    )


@growing(40)
def deep_hierarchy(n: int) -> str:
    body = _lines("class A$(A#):\n    def forward(self, x):\n        return super().forward(x) + self.y", n)
    return IMPORTS + "class A0(nn.Module):\n    def forward(self, x):\n        self.y = x\n        return x\n" + body


@growing(30)
def diamonds(n: int) -> str:
    body = _lines("class L$(A#): pass\nclass R$(A#): pass\nclass A$(L$, R$):\n    y# = 1", n)
    return f"class A0:\n    x = 1\n{body}z = A{n}().x\n"


@growing(40)
def nested_classes(n: int) -> str:
    depth = min(n, 90)
    return _nested("class A#:", depth, "x = 1") + "y = " + ".".join(f"A{k}" for k in range(depth)) + ".x\n"


@growing(40)
def dataclass_fields(n: int) -> str:
    fields = _lines("a#: int = #\nb#: 'list[A]' = None", n)
    return "from dataclasses import dataclass\n@dataclass\n" + _block("class A:", fields) + _lines("A(#).b#", n)


# Deep code


@growing(20)
def nested_loops(n: int) -> str:
    return "x = 0\n" + _nested("for i# in range(9):", min(n, 90), "x = f(x, i0)")


@growing(20)
def nested_whiles(n: int) -> str:
    return "x = 0\n" + _nested("while (x := x + 1) < 9:", min(n, 90), "x = f(x)")


@growing(20)
def nested_ifs(n: int) -> str:
    return "import torch\nx = torch.rand(3)\n" + _nested(
        "if x is not None and x.sum() > #:", min(n, 90), "x = x.cuda()"
    )


@growing(15)
def nested_tries(n: int) -> str:
    depth = min(n, 18)
    lines = [" " * k + "try:" for k in range(depth)] + [" " * depth + "x = 1"]
    for k in reversed(range(depth)):
        lines += [" " * k + "except E:", " " * k + " x = 2", " " * k + "finally:", " " * k + " y = x"]
    return "\n".join(lines) + "\n"


@growing(15)
def nested_withs(n: int) -> str:
    return _nested("with open('#') as x:", min(n, 18), "y = x")


@growing(30)
def nested_functions(n: int) -> str:
    return _nested("def f#(x#, y=None):", min(n, 90), "return x0.item()")


@growing(30)
def nested_lambdas(n: int) -> str:
    return "f = " + "".join(f"lambda x{k}: " for k in range(n)) + "x0.item()\n"


@growing(30)
def nested_comprehensions(n: int) -> str:
    text = "x"
    for _ in range(min(n, 60)):
        text = f"[{text} for x in x]"
    return f"x = []\ny = {text}\n"


@growing(30)
def comprehension_of_comprehensions(n: int) -> str:
    return "x = []\ny = [x0 " + " ".join(f"for x{k} in x if x{k}" for k in range(n)) + "]\n"


@growing(50)
def nested_lists(n: int) -> str:
    depth = min(n, 90)
    one = "[" * depth + "1" + "]" * depth
    return f"import torch\nx = {one}\ny = {one} if x else {one}\nprint(x, y)\nz = torch.tensor(x)\n"


@growing(50)
def nested_calls(n: int) -> str:
    depth = min(n, 90)
    return "import torch\nx = torch.rand(3)\ny = " + "torch.relu(" * depth + "x" + ")" * depth + "\n"


@growing(40)
def method_chain(n: int) -> str:
    return "import torch\nx = torch.rand(3).cuda()" + ".add(1)" * n + ".item()\n"


@growing(40)
def attribute_chain(n: int) -> str:
    return "import a\nx = a" + ".b" * n + "\nx.y = 1\na.b.c = 2\ny = a" + ".b" * n + ".item()\n"


@growing(40)
def subscript_chain(n: int) -> str:
    return "x = [[1]]\ny = x" + "[0]" * n + "\n"


@growing(80)
def additions(n: int) -> str:
    return "import torch\nx = torch.rand(3).cuda()\ny = " + " + ".join(["x"] * n) + "\nprint(y.item())\n"


@growing(80)
def concatenations(n: int) -> str:
    return "import torch\nx = torch.rand(3).cuda()\nprint(" + " + ".join(["str(x.item())"] * n) + ")\n"


@growing(80)
def operands(n: int) -> str:
    return "import torch\nx = torch.rand(3).cuda()\nif " + " and ".join(["x"] * n) + ":\n    y = 1\n"


@growing(80)
def comparisons(n: int) -> str:
    return "import torch\nx = torch.rand(3).cuda()\ny = " + " < ".join(["x"] * n) + "\n"


@growing(40)
def negations(n: int) -> str:
    return "import torch\nx = torch.rand(3).cuda()\nif " + "not " * n + "x:\n    y = 1\n"


@growing(40)
def conditionals(n: int) -> str:
    return "def f(x):\n    return " + "".join(f"x[{k}] if x == {k} else " for k in range(n)) + "x\n"


# Values that hold themselves


@growing(60)
def values_in_lists(n: int) -> str:
    return "x = [1]\n" + _lines("x = [x, x]", n)


@growing(60)
def values_in_loops(n: int) -> str:
    body = (
        "x = [x, x]\nd = {'a': d, 'b': d, 'c': x}\no = A(o, o)\np = partial(p, p, k=o)\nt = (t, d) if x else (d, t)\n"
    )
    start = "from functools import partial\nclass A: pass\nx, d, o, p, t = [1], {}, A(), print, ()\n"
    return start + _block("for i in range(9):", body * max(n // 5, 1)) + "f(x, d, o, p, t)\n"


@growing(60)
def values_by_branches(n: int) -> str:
    return "x, y = [1], {}\n" + _lines("if z:\n    x = [x, y]\nelse:\n    y = {'k#': x, 'l': y}", n)


@growing(60)
def values_in_calls(n: int) -> str:
    return "def f(x):\n    return (x, [x])\nx = 1\n" + _lines("x = f(x)", n)


@growing(60)
def values_in_objects(n: int) -> str:
    start = "from torch import nn\nclass A:\n    def __init__(self, a, b=None):\n        self.a = a\nx = A(1)\n"
    return start + _lines("x = A(x, nn.Sequential(x, x))\ny = x.a.a", n)


# Programs that nobody should write


def _odd(name: str, text: str) -> None:
    ODD[name] = text


_odd("own base", "class A(A):\n    x = 1\ny = A().x.z\nclass B(B.C, *B, **B): pass\nB().c()\n")
_odd("bases in circles", "class A(B): pass\nclass B(A):\n    def f(self): return super().f()\nx = A().f() + B().x\n")
_odd("metaclass", "class M(type):\n    def __call__(cls, *a): return cls\nclass A(metaclass=M): pass\nx = A()()().y\n")
_odd("own metaclass", "class A(type, metaclass=A):\n    def __getattr__(cls, n): return cls[n]\nx = A.b.c, A(A)(A)\n")
_odd("any attribute", "class A:\n    def __getattr__(self, n): return getattr(self, n)\nx = A().a.b.c()\n")
_odd(
    "own attributes",
    "class A:\n    def __getattribute__(self, n): return self.x\n    def x(self): return self.x.x\nA().x\n",
)
_odd("own slots", "class A:\n    __slots__ = A.__slots__\n    def __set_name__(self, o, n): o.x = self\n    x = A()\n")
_odd("own star import", "from odd import *\nfrom .odd import *\nfrom . import *\nx = y\n__all__ = ['x', *__all__]\n")
_odd("own import", "import odd\nfrom odd import x, y\nimport odd.x.y as z\nx = odd.x.odd.y\ny = z.a(x)\n")
_odd(
    "circular import", "from other import *\nimport other\nx = other.x\ny = other.odd.other.y\nclass A(other.A): pass\n"
)
_odd("import of nothing", "from . import x\nfrom ... import y\nfrom .. import *\nx = y.z\n")
_odd("own value", "x = x\ny = y(y)\nz[z] = z\nw.w = w\nu: u = u\nu += u\n(v := v)\n")
_odd(
    "value in itself",
    "x = []\nx.append(x)\nx.extend(x)\nd = {}\nd['d'] = d\nd.update(d)\nfor y in x: x.append([y, d])\nx[0][0]\n",
)
_odd(
    "object in itself",
    "class A:\n    def __init__(self, a): self.a = A(self); self.b = [self, self.a.b]\nx = A(A(A)).a.a.b\n",
)
_odd(
    "protocols",
    """
class A:
    def __iter__(self): return self
    def __next__(self): return self
    def __getitem__(self, i): return self[i][self]
    def __enter__(self): return self.__enter__()
    def __call__(self, *a): return self(self, *a)
    def __add__(self, o): return o + self
    def __await__(self): yield self
    __contains__ = __len__ = __bool__ = __call__
    p = property(lambda self: self.p)
a = A()
for b in a:
    for c, *d in b:
        with c as e, e() as f: x = f[a][b] + c() in d and len(a)
""",
)
_odd(
    "functions that return themselves",
    "def f(): return f\nx = f()()()\ng = lambda: g\ny = g()()\nh = lambda h: h(h)\nh(h)\n",
)
_odd(
    "fixed point", "y = (lambda f: (lambda x: f(lambda v: x(x)(v)))(lambda x: f(lambda v: x(x)(v))))\nz = y(y)(y)(3)\n"
)
_odd(
    "own decorator",
    "@f\n@f(f)\ndef f(g=f):\n    @f\n    def h(): return h()\n    return f(g)(h)\n@C\nclass C: f = f(f)\n",
)
_odd(
    "own generator",
    "def f(x):\n    yield f(x)\n    y = yield from f(f(x))\n    async def g(): return await g()\nfor z in f(f): z\n",
)
_odd("own partial", "from functools import partial\np = partial(p, p)\nq = partial(partial, partial)\nq(q)(p)(q)\n")
_odd(
    "super",
    "super().x\nsuper(A, B).y()\nclass A:\n    super().z\n    def f(self): return super(A, super()).f()\nA.f(A)\n",
)
_odd(
    "statements in odd places",
    "return x\nyield y\nawait z\nbreak\ncontinue\nnonlocal a\nglobal b, b\nraise\ndel (c, [d, e]), f[0].g\n",
)
_odd(
    "unreachable",
    "def f(x):\n    return x\n    return x.item()\n    while 1: pass\n    raise f\nwhile True: f(1)\nf(2)\n",
)
_odd(
    "endless",
    "while True:\n    while True:\n        while True:\n            try: continue\n            finally: break\n    else: x = 1\n",
)
_odd(
    "targets",
    "*a, (b, *c), [d.e, f[0]] = a\nfor *a, b.c[d] in e: pass\nwith f as (a, *b), g as h.i[0]: pass\n(a, b), c = c = a\n",
)
_odd(
    "walrus",
    "x = [y := (z := y, z) for w in (v := y) if (u := v, u)]\nlambda: (t := t)\ndef f(a=(b := c), *d: (e := f)): pass\n",
)
_odd(
    "patterns",
    """
match x:
    case [*_, {"a": A(b=[c, *d]) as e, **f}] | (1 | -2 | 3j as c) if (g := c): x = c, g
    case A.B | None | "t" | b"u": x = A
    case A(): pass
    case _: match = match
""",
)
_odd("try star", "try: x = 1\nexcept* A as e: x = e.exceptions[0]\nelse: y = x\nfinally: del x\n")
_HUGE = f"0x{'f' * 3500}"
_odd(
    "huge numbers",
    f"""
import torch
x = {_HUGE}
y = [1, 2][x], 'a' * x, -x, float(x), str(x), x + 1e999, (1, 2)[-x:x], range(x), torch.zeros(x, x)[x]
print(f'{{x}}', y)
torch.set_default_device(x)
class A(torch.nn.Module):
    def f(self, a=x):
        self.register_buffer({_HUGE}, a)
        self.add_state({_HUGE}, a)
A(precision={_HUGE}, mixed_precision=x)
torch.nn.Linear({_HUGE}, 3), torch.nn.Embedding({_HUGE}, x), torch.nn.Conv2d(x, {_HUGE}, x)
""",
)
_odd(
    "odd texts",
    "x = '\\ud800'\nd = {'\\ud800': x, '\\0': 1}\ny = d['\\ud800'].z, f'{x!r:{x}}', b'\\xff'\nprint(x % y, '%s' % (d,))\n",
)
_odd(
    "odd annotations",
    "def f(a: '\\0', b: '(', c: '\"\\'f\\'\"', d: 'a' * 9, e: f = f, *g: *h, **i: 'x' + 1) -> 'f(': pass\nx: 'x' = f\n",
)
_odd(
    "types of themselves",
    "T = list['T']\nU = dict[U, 'U'] | U\ndef f(x: T, y: 'U') -> 'T': return f(x[0], y)\nz: T = f(z, z)[0][0]\n",
)
_odd(
    "nothing in brackets",
    """
import typing, torch
from jaxtyping import Float
from typing import *
def f(a: list[()], b: dict[()], c: tuple[()], d: Optional[()], e: Union[()], g: Literal[()], h: Coroutine[()]) -> Float[()]:
    return list[()], dict[()](), tuple[()](a), Optional[()], Union[()][()], Callable[(), ()][()], a[()][b[()]]
x: Annotated[()] = f[()](*(), **{}) or torch.rand(())[()] or torch.stack(()) or torch.nn.Sequential()[()] or max() or print(())
(), [] = (), []
for () in (): pass
""",
)
_odd(
    "records of themselves",
    """
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
@dataclass
class A:
    a: 'A' = None
    b: list['A'] = A
class N(NamedTuple):
    n: 'N'
    m: int = N
class E(Enum):
    A = E
    B = A, E.A
x = A(A(A)).a.a.b[0].b
n = N(N(n)).n.n[0][1]
e = E.A.value.B.name, E['A'], E(E)
""",
)
_odd(
    "modules in themselves",
    """
import torch
from torch import nn
m = nn.Sequential()
m.append(m)
m = nn.Sequential(m, m, *m)
l = nn.ModuleList([m])
l.append(l)
l.extend(l)
d = nn.ModuleDict({'d': l})
d['d'] = d
d.update(d)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
        self.nets = nn.ModuleList([self, self.net, *self.nets])
    def forward(self, x):
        for net in self.nets: x = net(self(x))
        return self.forward(x) + self.net(x)
y = Net()(m(l[0](d['d']['d'](torch.rand(3)))))
print(y.item())
""",
)
_odd(
    "tensors as they are not",
    """
import torch
x = torch.rand(3).cuda()
x.x = x
x[x] = x
x.item().item().item()
torch.stack([x, [x, [x]]])[x][x:x, ..., None, x].item()[0]
torch.Tensor(torch.Tensor)(torch)[torch]
x.to(x).to(x.to).to(device=x, device_=x)
for x in x:
    for x in x: x = x(x)
torch.cuda.stream(torch.cuda)(torch.device(x)(x))
print(x, x, x)
""",
)
_odd("nothing", "")
_odd("only a comment", "# -*- coding: utf-8 -*-\n# type: ignore\n")
_odd("only a docstring", '"""x: torch.Tensor"""')
_odd("form feeds", "\f\nif x:\n\f    y = 1\n\f\f    z = y\n\r\nw = 1\r")
_odd("backslashes", "x = \\\n  1 + \\\n  2; y = \\\n  x; \\\n  z = y\n")
_odd("1000 operands", additions(1000))
_odd("1000 texts", concatenations(300) + "s = " + " + ".join(["'x'"] * 1000) + "\n")
_odd("500 attributes", attribute_chain(500))
_odd("500 calls", method_chain(500))
_odd("900 negations", negations(900))
_odd("900 conditionals", conditionals(900))
_odd("900 functions in one another", nested_lambdas(900))
_odd("900 branches", if_ladder(900))

UNPARSABLE.update(
    {
        "300 parentheses": "x = " + "(" * 300 + ")" * 300 + "\n",
        "300 brackets": "x = " + "[" * 300 + "]" * 300 + "\n",
        "9000 negations": "x = " + "not " * 9000 + "y\n",
        "100000 attributes": "x = a" + ".b" * 100_000 + "\n",
        "100000 operands": "x = " + " + ".join(["a"] * 100_000) + "\n",
        "100 levels": "".join(" " * n + "if x:\n" for n in range(101)) + " " * 101 + "y = 1\n",
        "null byte": "x = '\0'\n",
        "open string": "x = '''\n",
        "digits": f"x = {'9' * 5000}\n",
        "wrong indentation": "if x:\n\ty = 1\n        z = 2\n",
    }
)

ODD["a class inside of torch.Tensor"] = """
import torch
class Group(torch.nn.Module):
    def forward(self, points, centres):
        # type: (Group, torch.Tensor. torch.Tensor) -> torch.Tensor
        return points.transpose(1, 2) - centres.transpose(1, 2)
def typed(points: torch.Tensor.torch.Tensor):
    return points.transpose(1, 2).sum(), torch.Tensor.Unheard(points).item()
"""

ODD["an object of a class inside of torch.Tensor"] = """
from torch.Tensor.data import DataLoader
x = None
def f(loader: DataLoader):
    return loader.to("cuda"), loader.sum().item()
"""
ODD["generators that bind names of each other"] = """
import torch
def copies(batches: list[torch.Tensor], pairs, device: torch.device):
    return [batch.to("cuda") for batch in batches for batches in batch for batch in batches]
def parts(box, device: torch.device):
    box.made = [(torch.ones(1), torch.ones(2))]
    return [one.to("cuda") for box.x, box.y in box.made for box.z in box.x for one in box.z if box.x.to(device) is not one]
def all_of(box, apart):
    box.made = [(torch.ones(1), torch.ones(2))]
    box.places = [("cuda", "cpu")]
    return [apart(box.x.to(box.a), box.y.to(box.b)) for box.x, box.y in box.made for box.a, box.b in box.places]
"""
