"""Run programs that reduce tensors over two processes, as they are and with their collectives joined.

    python -m tests.tune.reduced OUT

OUT.0 and OUT.1 become a JSON object with a sentence for each program: the fault, or how many collectives it makes
before and after.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from perflint.tune.collectives import joined
from perflint.tune.evidence import Evidence
from perflint.tune.graphs.outlining import Seen

HEAD = """import torch
import torch.distributed as dist
from torch import nn

torch.manual_seed(dist.get_rank())
model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
unused = nn.Linear(2, 2)
model(torch.randn(5, 4)).square().mean().backward()
size = dist.get_world_size()
one, two, whole = torch.randn(()), torch.randn(3, 2), torch.arange(4)
"""
TAIL = """
shown = [each.grad for each in model.parameters()] + [one, two, whole]
"""
LOOP = "for p in model.parameters():\n    dist.all_reduce(p.grad)\n"
PROGRAMS = {
    "loop": LOOP,
    "mean": f"{LOOP}    p.grad /= dist.get_world_size()\n",
    "method": (
        "for p in model.parameters():\n    dist.all_reduce(p.grad.data, dist.ReduceOp.SUM)\n    p.grad.div_(size)\n"
    ),
    "condition": (
        "for p in nn.ModuleList([model, unused]).parameters():\n    pass\nmodel.unused = unused\n"
        "for p in model.parameters():\n    if p.grad is not None and p.requires_grad:\n"
        "        dist.all_reduce(p.grad)\n        p.grad /= size\ndel model.unused\n"
    ),
    "neighbours": "dist.all_reduce(one)\ndist.all_reduce(two)\ndist.all_reduce(whole)\n",
    "maxima": "dist.all_reduce(one, op=dist.ReduceOp.MAX)\ndist.all_reduce(two, op=dist.ReduceOp.MAX)\n",
    "tuple": "for x in (one, two):\n    dist.all_reduce(x)\n",
    "shared": "part = whole[1:]\ndist.all_reduce(whole)\ndist.all_reduce(part)\n",
    "function": (
        "def reduce(model):\n    for p in model.parameters():\n        dist.all_reduce(p.grad)\n\nreduce(model)\n"
    ),
}


def changed(text: str, is_group: bool = True, oldest: tuple[int, int] | None = None, ran: int = 1000) -> str:
    """The program with its collectives joined, of which the first `ran` lines ran. Raises Refused."""
    seen = Seen({}, (), distributed=is_group, lines={"a.py": range(ran)})
    return joined({"a.py": text}, Evidence(seen, (), 1.0, None, oldest))["a.py"]


def _ran(text: str) -> tuple[list[Any], int]:
    """The numbers that a program shows, and how many collectives it has made."""
    import torch.distributed

    calls = []
    reduce = torch.distributed.all_reduce

    def counted(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        return reduce(*arguments, **named)

    names: dict[str, Any] = {}
    torch.distributed.all_reduce = counted
    try:
        exec(compile(text, "a.py", "exec"), names)
    finally:
        torch.distributed.all_reduce = reduce
    return [each.tolist() for each in names["shown"]], len(calls)


def main(target: str) -> None:
    """Write the sentences of both processes."""
    import torch.distributed

    child = os.fork()
    rank = 0 if child else 1
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{target}.store", rank=rank, world_size=2)
    found = {}
    for name, body in PROGRAMS.items():
        try:
            text = HEAD + body + TAIL
            (before, many), (after, few) = _ran(text), _ran(changed(text))
            found[name] = f"{many} to {few}" if before == after else f"{before} became {after}"
        except Exception:
            found[name] = traceback.format_exc()
            break
    Path(f"{target}.{rank}").write_text(json.dumps(found), encoding="utf-8")
    torch.distributed.destroy_process_group()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
