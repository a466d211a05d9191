"""Several files: imports, re-exports, stars, cycles, classes whose bases and attributes lie elsewhere."""

from __future__ import annotations

import ast
from pathlib import Path

from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.semantics.notation import Case, check, projects, show

FUNCTIONS = """
# file: pkg/__init__.py
from .ops import scale, shift as move
from . import ops
from .deep import *
VERSION = 3

# file: pkg/ops.py
import torch
from torch import Tensor
LIMIT = 5
TABLE = torch.zeros(3, device="cuda")

def scale(x, factor=2.0):
    return x * factor

def shift(x: Tensor) -> Tensor:
    return x + TABLE

def sizes(x):
    return x.shape[0], x.sum()

def apply(function, x):
    return function(x)

def make(device):
    return torch.zeros(3, device=device)

# file: pkg/deep/__init__.py
from .inner import *
from .inner import _hidden

# file: pkg/deep/inner.py
import torch
__all__ = ["starred"]
def starred():
    return torch.ones(2, device="cuda")
def _hidden():
    return torch.ones(2)

# file: pkg/use.py
import torch
import pkg
import pkg.ops
import pkg.ops as operations
from pkg import VERSION, scale, move, starred
from pkg.ops import LIMIT, TABLE, make, sizes
from . import ops, missing
from .ops import apply
from .deep import _hidden
from .nowhere import nothing
from .. import toofar
from pkg.deep.inner import starred as again

x = torch.zeros(3, device="cuda")
scale(x)                    # -> cuda float 1
scale(x)                    # calls pkg.ops.scale
move(x)                     # -> cuda float 1
move(x)                     # calls pkg.ops.shift
starred()                   # -> cuda float 1
starred()                   # calls pkg.deep.inner.starred
again()                     # calls pkg.deep.inner.starred
_hidden()                   # -> cpu float 1
pkg.scale(x)                # -> cuda float 1
pkg.ops.scale(x)            # -> cuda float 1
pkg.ops.LIMIT               # -> 5
operations.scale(x)         # calls pkg.ops.scale
ops.scale(x)                # calls pkg.ops.scale
sizes(x)                    # -> (int, cuda float 0)
n, total = sizes(x)         # -> int, cuda float 0
apply(torch.relu, x)        # -> cuda float 1
apply(lambda t: t > 0, x)   # -> cuda bool 1
make("cuda")                # -> cuda float 1
make(x.device)              # -> cuda float 1
LIMIT                       # -> 5
VERSION                     # -> 3
TABLE                       # -> cuda float 1
nothing(x)                  # -> ?
missing.thing(x)            # -> ?
toofar                      # -> toofar

def f(y):
    from pkg.ops import shift
    shift(y)                # -> cuda float
    LIMIT                   # -> 5
    TABLE                   # -> cuda float 1
    return scale(x)         # -> cuda float 1
"""

CLASSES = """
# file: base.py
import torch
from torch import nn

class Base(nn.Module):
    factor = 2
    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.norm = nn.BatchNorm2d(width)
        self.register_buffer("mask", torch.zeros(3, dtype=torch.bool))
        self.table = torch.arange(3)
        self.create()
    def create(self):
        self.weight = nn.Parameter(torch.zeros(3, 3))
    def encode(self, x):
        return self.norm(x) + self.offset(x)
    def offset(self, x):
        return 0
    @property
    def half(self):
        return self.width // 2

class Mixin:
    def loss(self, x):
        return x.sum()

# file: net.py
import torch
from torch import Tensor
from base import Base, Mixin
import base

class Net(Mixin, Base):
    def __init__(self):
        super().__init__(8)
        self.extra = base.Base(4)
    def offset(self, x):
        return x * 2
    def forward(self, x: Tensor):
        self.norm               # -> BatchNorm2d(num_features=int)
        self.mask               # -> model bool 1 buffer
        self.weight             # -> model float 2 parameter
        self.table              # -> cpu int 1
        self.width              # -> int
        self.factor             # -> 2
        self.half               # -> int
        self.extra              # -> Base(width=4)
        self.extra.norm.num_features    # -> int
        self.encode(x)          # -> model float
        self.encode(x)          # calls base.Base.encode
        self.loss(x)            # -> model 0
        self.loss(x)            # calls base.Mixin.loss
        super().encode(x)       # calls base.Base.encode
        x[self.mask]            # -> model
        x + self.table          # -> model
        return self.loss(self.encode(x))        # -> model float 0

# file: run.py
import torch
from net import Net
from helpers import build, Wrapper
import net as models

model = Net().cuda()
model                           # -> Net()
model(torch.zeros(1, 8).cuda()) # -> cuda float 0
model(torch.zeros(1, 8))        # calls torch.nn.Module.__call__
model.weight                    # -> model float 2 parameter
models.Net().half               # -> int
build()                         # -> Net()
build().mask                    # -> model bool 1 buffer
build().encode(torch.zeros(1).cuda())   # -> cuda float
wrapper = Wrapper(model)
wrapper.model                   # -> Net
wrapper.model.mask              # -> model bool 1 buffer
wrapper(torch.zeros(1).cuda())  # -> cuda float 0

# file: helpers.py
from net import Net
def build():
    return Net()
class Wrapper:
    def __init__(self, model: Net):
        self.model = model
    def __call__(self, x):
        return self.model(x)
"""

CYCLES = """
# file: a.py
import b
from b import second
import torch
def first(x, n=1):
    return x if n == 0 else second(x)
class A:
    value = torch.zeros(3, device="cuda")
    def peer(self):
        return b.B()
first(torch.zeros(2))           # -> cpu float 1

# file: b.py
import a
from a import first
import torch
def second(x):
    return x + 1
class B(a.A):
    def other(self):
        self.value              # -> cuda float 1
        self.peer()             # -> B()
        return first(self.value)    # -> cuda float 1

# file: c.py
from d import *
from a import *
import torch
helper(torch.zeros(2, device="cuda"))   # -> cuda float 1
first(torch.zeros(2, device="cuda"))    # -> cuda float 1
A().value                       # -> cuda float 1

# file: d.py
from c import *
def helper(x):
    return x * 2

# file: e.py
from e import itself
itself                          # -> e.itself
"""

TORCH_BESIDE = """
# file: torch.py
def zeros(*sizes):
    return 3

# file: settings.py
import torch
DEVICE = torch.device("cuda")
CPU = "cpu"
EPS = 1e-6
SIZES = [3, 4]
DTYPE = torch.bool

# file: run.py
import torch
import settings
from settings import CPU, DEVICE, DTYPE
torch.zeros(3)                  # -> cpu float 1
torch.zeros(3, device=DEVICE)   # -> cuda float 1
torch.zeros(3).to(settings.DEVICE)      # -> cuda float 1
torch.zeros(3).to(CPU)          # -> cpu float 1
torch.zeros(3, dtype=DTYPE)     # -> cpu bool 1
settings.EPS                    # -> 1e-06
settings.SIZES                  # -> [3, 4]
settings.nothing                # -> ?

# file: tests/run.py
import torch
from settings import DEVICE
torch.zeros(3, device=DEVICE)   # -> caller float 1
"""

ALL_IN_ONE_FOLDER = """
# file: lab/settings.py
import torch
DEVICE = torch.device("cuda")
SIZE = 3

# file: lab/models/parts.py
from lab.settings import DEVICE
SIZE = 5

# file: lab/models/run.py
import torch
import lab.models.parts as parts
import lab.nothing
import other.settings
from lab.settings import DEVICE, SIZE
from models.parts import SIZE as WIDTH
from elsewhere.settings import DEVICE as unknown
torch.zeros(3, device=DEVICE)           # -> cuda float 1
torch.zeros(3, device=parts.DEVICE)     # -> cuda float 1
torch.zeros(3, device=unknown)          # -> caller float 1
SIZE                                    # -> 3
WIDTH                                   # -> 5
lab.nothing.SIZE                        # -> lab.nothing.SIZE
other.settings.SIZE                     # -> other.settings.SIZE

# file: lab/train.py
from lab.models.parts import SIZE
SIZE                                    # -> 5
"""

SCRIPTS_IN_A_PACKAGE = """
# file: lab/__init__.py

# file: lab/settings.py
import torch
DEVICE = torch.device("cuda")

# file: lab/layers/__init__.py
WIDTH = 4

# file: lab/train.py
import torch
import settings
from layers import WIDTH
from settings import DEVICE
torch.zeros(3, device=DEVICE)           # -> cuda float 1
torch.zeros(3, device=settings.DEVICE)  # -> cuda float 1
WIDTH                                   # -> 4
def double(x):
    return x * 2                        # -> cuda float 1

# file: lab/run.py
import torch
from train import double
double(torch.zeros(3, device="cuda"))   # -> cuda float 1

# file: lab/layers/parts.py
from settings import DEVICE
DEVICE                                  # -> settings.DEVICE

# file: lab/part.py
from .train import double
from settings import DEVICE
DEVICE                                  # -> settings.DEVICE

# file: lab/member.py
import lab.train
from settings import DEVICE
DEVICE                                  # -> settings.DEVICE

# file: lab/wandb.py
import wandb
def start():
    return 3
wandb.start                             # -> wandb.start

# file: lab/tests/__init__.py

# file: lab/tests/sizes.py
SIZE = 3

# file: lab/tests/test_sizes.py
from sizes import SIZE
SIZE                                    # -> sizes.SIZE
def test_it(): pass
"""

INHERITED = """
# file: base.py
import torch
class Other:
    def step(self, x): pass
    def put(self, x): pass
class Base:
    def fit(self, x: torch.Tensor):
        self.step(x.cuda())
        self.other.put(x.cuda())

# file: use.py
from base import Base
class Child(Base):
    def step(self, x): return x      # -> cuda
    def get(self, x): return x       # -> ?
"""


@projects(FUNCTIONS)
def test_functions(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@projects(CLASSES)
def test_classes(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@projects(INHERITED)
def test_methods_that_a_base_in_another_file_calls(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@projects(CYCLES)
def test_cycles(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@projects(SCRIPTS_IN_A_PACKAGE)
def test_a_script_in_a_package_imports_the_files_beside_it(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


@projects(ALL_IN_ONE_FOLDER)
def test_the_folder_of_all_files_is_imported_by_its_name(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


def test_a_folder_beside_other_files_is_found_as_before(tmp_path: Path) -> None:
    """The files of another folder of that name are not of the project."""
    for folder in ("lab", "beside/lab"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "settings.py").write_text("SIZE = 3\n", encoding="utf-8")
    source = Source(str(tmp_path / "beside" / "lab" / "run.py"), "from lab.settings import SIZE\nSIZE\n")
    Path(source.path).write_text(source.text, encoding="utf-8")
    listed = Model(source, Project([Path(source.path), tmp_path / "beside" / "lab" / "settings.py"]))
    unlisted = Model(source, Project([Path(source.path)]))
    found = [show(model.value(model.names(model.module.tree, "SIZE")[0])) for model in (listed, unlisted)]
    assert found == ["3", "lab.settings.SIZE"]


@projects(TORCH_BESIDE)
def test_packages_beside_the_project(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


def test_broken_and_missing_files_tell_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n", encoding="utf-8")
    (tmp_path / "latin.py").write_bytes(b"x = '\xe9'\n")
    (tmp_path / "null.py").write_bytes(b"x = 1\0\n")
    (tmp_path / "folder.py").mkdir()
    text = "import broken, latin, null, folder\nfrom broken import f\nf(1)\nlatin.f(1)\nnull.f(1)\nfolder.f(1)\n"
    model = Model(Source(str(tmp_path / "run.py"), text), Project())
    assert [show(model.value(call)) for call in model.nodes(ast.Call)] == ["?"] * 4
