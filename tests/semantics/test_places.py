"""Where tensors are: which operands decide it, which names and classes say it."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

SIZES = """
n = ints.sum()
torch.arange(4).reshape(n, -1)      # -> cpu int
host.view(n, 2)         # -> cpu float
host.unsqueeze(n)       # -> cpu float 3
host.repeat(n, 1)       # -> cpu float
host.expand(n, -1)      # -> cpu float
host.expand_as(cuda)    # -> cpu float
host.sum(dim=n)         # -> cpu float
host.roll(shifts=n)     # -> cpu float 2
host.split(n)           # -> tuple[cpu float 2]
torch.topk(host, n)     # -> (cpu float 2, cpu int 2)
torch.linalg.norm(host, dim=n)      # -> cpu float
F.one_hot(torch.arange(3), n)       # -> cpu int 2
F.pad(host, (0, n))     # -> cpu float 2
F.interpolate(host, size=(n, n))    # -> cpu float 2
torch.zeros(n, 3)       # -> cpu float
cuda.reshape(host.sum().long(), -1) # -> cuda float
cuda.topk(torch.tensor(2))          # -> (cuda float 2, cuda int 2)

host.gather(0, ints)    # -> cuda float 2
host.masked_fill(mask, 0)           # -> cuda float 2
host.clamp(ints.sum())  # -> cuda float 2
host.clamp(max=ints.sum())          # -> cuda float 2
torch.add(host.sum(), cuda)         # -> cuda float 2
torch.add(host, cuda, out=cuda)     # -> cuda float 2
torch.einsum("ij,jk", host, cuda)   # -> cuda float
host.index_select(0, index=ints)    # -> cuda float 2
host.repeat_interleave(ints)        # -> cuda float 1
torch.stack([cuda, cuda])           # -> cuda float 3

def meets(x: Tensor, rows: Tensor):
    torch.tensor([1.0, 2.0]).gather(0, rows)        # -> cpu float
    F.linear(x, torch.ones(3, 4))   # -> cpu float
    torch.maximum(torch.zeros(3), x)    # -> cpu float
    torch.maximum(torch.tensor(0.0), x) # -> caller float
    F.ctc_loss(x, x, torch.tensor([3]), torch.tensor([4]))  # -> caller float 0
    x.index_put((torch.tensor([0, 1]),), x)     # -> caller
"""


@table(SIZES)
def test_operands_decide_where_the_result_is_and_sizes_do_not(case: Case) -> None:
    check(case)
