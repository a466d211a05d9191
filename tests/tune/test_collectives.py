"""Joined collectives: equal results in two processes, bit for bit, and refusals."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.tune.refused import Refused
from tests.once import once
from tests.tracer import warm
from tests.tune.reduced import HEAD, LOOP, PROGRAMS, TAIL, changed

ROOT = Path(__file__).parents[2]
COUNTS = {"neighbours": "3 to 2", "maxima": "2 to 1", "tuple": "2 to 1", "shared": "2 to 2"}
"""How many collectives there are; 4 to 1 in the others."""
PAIR = "dist.all_reduce(one)\ndist.all_reduce(two)\n"


@pytest.fixture(scope="session")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """The sentences of both processes."""

    def run(target: Path) -> None:
        done = warm.script(ROOT, "tests/tune/reduced.py", str(target))
        assert done.code == 0, done.err
        target.write_text(json.dumps([json.loads(Path(f"{target}.{rank}").read_text("utf-8")) for rank in (0, 1)]))

    return list(once(tmp_path_factory, "reduced", run))


@pytest.mark.skipif(find_spec("torch") is None or not hasattr(os, "fork"), reason="needs torch, and forks")
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_processes_get_the_same_with_fewer_collectives(name: str, verdicts: list[dict[str, str]]) -> None:
    assert [each[name] for each in verdicts] == [COUNTS.get(name, "4 to 1")] * 2


def test_the_patch_is_readable() -> None:
    new = changed(HEAD + PROGRAMS["mean"] + TAIL)
    assert "from torch import nn\n\n\ndef all_reduce_together(" in new and "\n\n\ntorch.manual_seed" in new
    loop = "for p in model.parameters():\n    p.grad /= dist.get_world_size()\n"
    assert f"all_reduce_together([p.grad for p in model.parameters()])\n{loop}" in new
    with pytest.raises(Refused):
        changed(new)


@pytest.mark.parametrize(
    "body",
    [
        LOOP.replace("p.grad)", "p.grad, async_op=True)"),
        LOOP.replace("dist.all", "work = dist.all"),
        LOOP + "    one.add_(1)\n",
        LOOP + "    p.grad /= p.grad.norm()\n",
        LOOP + "    if p is None:\n        break\n",
        LOOP + "print(p)\n",
        LOOP + "else:\n    pass\n",
        LOOP.replace("    dist", "    p.grad.mul_(2)\n    dist"),
        LOOP.replace("    dist", "    if p.grad.sum() > 0:\n        dist"),
        LOOP.replace("model.parameters()", "list(model.parameters())[::2]"),
        LOOP.replace("p.grad)", "one)"),
        "for x in (one, two):\n    dist.all_reduce(x)\n    x /= size\n",
        "dist.all_reduce(one)\none /= size\ndist.all_reduce(two)\n",
        "dist.all_reduce(one)\ndist.all_reduce(two, op=dist.ReduceOp.MAX)\n",
        "dist.all_reduce(one); dist.all_reduce(two)\n",
        "dist.all_reduce(one)\ndist.all_reduce(one.add_(1))\n",
        "dist.all_reduce(one)\ndist.all_reduce(two[whole])\n",
    ],
)
def test_collectives_that_stay(body: str) -> None:
    with pytest.raises(Refused, match="no collectives that ran can be joined"):
        changed(HEAD + body + TAIL)


def test_what_a_change_needs() -> None:
    text = HEAD + PAIR + TAIL
    with pytest.raises(Refused, match="the process is alone"):
        changed(text, is_group=False)
    with pytest.raises(Refused, match=r"older than 2\.0"):
        changed(text, oldest=(1, 13))
    with pytest.raises(Refused, match="that ran"):
        changed(text, ran=5)
    with pytest.raises(Refused):
        changed(text.replace("import torch.distributed as dist", "import other as dist"))
    assert changed(text, oldest=(2, 0)) != text
