"""Operators on tensors, numbers and arrays: dtype, device and rank of what they give."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

ARITHMETIC = """
cuda + 1            # -> cuda float 2
1 + cuda            # -> cuda float 2
cuda * 2.5          # -> cuda float 2
ints + 1            # -> cuda int 1
ints * 2.5          # -> cuda float 1
ints / 2            # -> cuda float 1
ints // 2           # -> cuda int 1
ints / ints         # -> cuda float 1
ints % 2            # -> cuda int 1
ints ** 2           # -> cuda int 1
1 - ints            # -> cuda int 1
1 / ints            # -> cuda float 1
cuda // 1           # -> cuda float 2
ints + cuda         # -> cuda float 2
mask + 1            # -> cuda int 2
mask * cuda         # -> cuda float 2
mask / 2            # -> cuda float 2
-cuda               # -> cuda float 2
-ints               # -> cuda int 1
+cuda               # -> cuda float 2
abs(-ints)          # -> cuda int 1
cuda @ cuda.T       # -> cuda float 2
cuda @ ints.float() # -> cuda float 1
cuda + host.sum()   # -> cuda float 2
host.sum() + cuda   # -> cuda float 2
cuda.sum() + cuda   # -> cuda float 2
cuda[:, None] + cuda    # -> cuda float 3
ints << 1           # -> cuda int 1
host * np.ones(3)   # -> cpu float 2
np.ones(3) * host   # -> cpu float 2
cuda + unknown()    # -> cuda float 2
unknown() * cuda    # -> cuda float 2
[cuda] + [host]     # -> [cuda float 2, cpu float 2]
cuda + (1, 2)       # -> tuple[?]
[host] + cuda       # -> list[?]
"""

COMPARISONS = """
cuda > 0            # -> cuda bool 2
0 < cuda            # -> cuda bool 2
cuda >= cuda        # -> cuda bool 2
cuda == 1           # -> cuda bool 2
cuda != ints        # -> cuda bool 2
ints == ints.max()  # -> cuda bool 1
host < cuda.sum()   # -> cuda bool 2
cuda == unknown()   # -> cuda bool 2
unknown() == cuda   # -> cuda bool 2
cuda is None    # -> False
name is None    # -> bool
cuda is not host    # -> bool
1 in cuda           # -> bool
cuda == None        # -> bool
name == "auto"      # -> bool
host.shape == cuda.shape    # -> bool
host.dtype == torch.float32 # -> bool
host.device == cuda.device  # -> bool
np.ones(3) > 0      # -> array bool 1
unknown() > 0       # -> ?
1 < 2 < 3           # -> bool
cuda.eq(1)          # -> cuda bool 2
torch.gt(cuda, 0)   # -> cuda bool 2
cuda.isnan()        # -> cuda bool 2
torch.isfinite(cuda)    # -> cuda bool 2
torch.isin(ints, ints)  # -> cuda bool
"""

BITS = """
mask & mask         # -> cuda bool 2
mask | (cuda < 1)   # -> cuda bool 2
~mask               # -> cuda bool 2
mask ^ mask         # -> cuda bool 2
ints & 1            # -> cuda int 1
~ints               # -> cuda int 1
mask & True         # -> cuda bool 2
not mask            # -> bool
mask.any()          # -> cuda bool 0
(cuda > 0) & (cuda < 1) | ~mask     # -> cuda bool 2
mask.logical_and(mask)      # -> cuda bool 2
torch.logical_not(ints)     # -> cuda bool 1
mask and cuda       # -> cuda 2
cuda or host        # -> tensor float 2
mask.sum()          # -> cuda int 0
mask.float()        # -> cuda float 2
mask.long()         # -> cuda int 2
mask.to(cuda.dtype) # -> cuda float 2
mask.to(other.dtype)    # -> cuda 2
ints + unknown()    # -> cuda 1
mask.type_as(cuda)  # -> cuda float 2
mask == 0           # -> cuda bool 2
1 - mask.float()    # -> cuda float 2
"""

INDEXING = """
cuda[0]             # -> cuda float 1
cuda[0, 1]          # -> cuda float 0
cuda[:, 1]          # -> cuda float 1
cuda[:, :2]         # -> cuda float 2
cuda[None]          # -> cuda float 3
cuda[..., None]     # -> cuda float 3
cuda[..., 0]        # -> cuda float 1
cuda[..., :-1, 0]   # -> cuda float 1
cuda[-1]            # -> cuda float 1
cuda[n]             # -> cuda float
cuda[ints]          # -> cuda float 2
cuda[mask]          # -> cuda float 1
cuda[mask[:, 0]]    # -> cuda float 2
cuda[:, ints]       # -> cuda float 2
cuda[[0, 1]]        # -> cuda float 2
cuda[cuda.argmax()] # -> cuda float 1
cuda[len([1])]      # -> cuda float 1
cuda[1:][0]         # -> cuda float 1
host.shape[0]       # -> int
host.shape[-1]      # -> int
host.shape[:-1]     # -> (int)
host.shape[1:]      # -> (int)
host.size()[0]      # -> int
host[ints.cpu()]    # -> cpu float 2

for row in cuda:
    row             # -> cuda float 1
    for number in row:
        number      # -> cuda float 0

first, *rest = cuda
first               # -> cuda float 1
rest[0]             # -> cuda float 1
"""


@table(ARITHMETIC)
def test_arithmetic(case: Case) -> None:
    check(case)


@table(COMPARISONS)
def test_comparisons(case: Case) -> None:
    check(case)


@table(BITS)
def test_bits(case: Case) -> None:
    check(case)


@table(INDEXING)
def test_indexing(case: Case) -> None:
    check(case)


MEETINGS = """
from numba import cuda as device_code
import numba

def f(x: Tensor, y: "tuple[torch.FloatTensor]"):
    x + torch.eye(3)                            # -> cpu float
    torch.ones(3) * x                           # -> cpu float
    x + torch.tensor(1.0)                       # -> caller float
    x + torch.ones(3, device=x.device)          # -> caller float
    torch.cat([x, torch.zeros(1)])              # -> cpu
    torch.cat((torch.zeros(1, dtype=torch.long), x.nonzero().flatten()))    # -> cpu int 1
    torch.stack([x, x.sum()])                   # -> caller
    y.shape[1]                                  # -> int

@device_code.jit("(float32[:])")
def kernel(x):
    x                                           # -> ?
    \"\"\"Arguments
    x : torch.Tensor
    \"\"\"

@numba.njit
def loop(x: Tensor):
    x                                           # -> ?
"""


@table(MEETINGS)
def test_host_tensors_say_where_the_others_are(case: Case) -> None:
    check(case)


IN_PLACE = """
def f(given):
    x = torch.zeros(3)
    x += given
    x                   # -> cpu float 1
"""


@table(IN_PLACE)
def test_a_tensor_that_is_changed_in_place_stays_where_it_is(case: Case) -> None:
    check(case)
