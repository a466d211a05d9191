"""Tensors that one of two branches moves to the GPU, and what is moved there without being known."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

SETTLED = """
def f(args, x=host):
    if args.cuda:
        x = x.cuda()
    x                   # -> caller float 2
f(unknown())

def f(args, x=host):
    if torch.cuda.is_available():
        x = x.cuda()
    else:
        print("no GPU")
    x                   # -> caller float 2
f(unknown())

def f(args, x=host):
    if args.gpu < 0:
        y = x
    else:
        y = x.to("cuda:0")
    y                   # -> caller float 2
f(unknown())

def f(args, x=host):
    y = x.cuda() if args.cuda else x
    y                   # -> caller float 2
f(unknown())

def to_gpu(x):
    if torch.cuda.is_available():
        return x.cuda()
    return x
to_gpu(host)            # -> cuda float 2

def to_gpu(x):
    if torch.cuda.is_available():
        x = x.cuda()
    return x
to_gpu(host)            # -> cuda float 2

def f(args, x=unknown()):
    if args.cuda:
        x = x.cuda()
    x.sum()             # -> caller 0
f(unknown())
"""

NOT_SETTLED = """
def f(args, x=cuda):
    if args.keep:
        x = x.cpu()
    x                   # -> tensor float 2
f(unknown())

def f(args, x=cuda):
    y = x.cpu() if args.keep else x
    y                   # -> tensor float 2
f(unknown())

def to_host(x, keep):
    if keep:
        return x
    return x.cpu()
to_host(cuda, unknown())    # -> tensor float 2
"""

MOVED = """
unknown().cuda().sum()      # -> cuda 0
unknown().cuda().encoder    # -> ?
unknown().to(unknown().device).argmax(1)    # -> caller int
unknown().cuda().mean.weight    # -> ?
"""


@table(SETTLED)
def test_settled(case: Case) -> None:
    check(case)


@table(NOT_SETTLED)
def test_not_settled(case: Case) -> None:
    check(case)


@table(MOVED)
def test_moved(case: Case) -> None:
    check(case)
