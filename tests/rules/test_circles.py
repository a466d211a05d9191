"""Rules that follow names end, also where a name gets its value from itself."""

from __future__ import annotations

import textwrap

import pytest

from perflint.rules.registry import all_rules
from tests.rules.harness import lint

PROGRAMS = {
    "TPF311": """
        while n:
            mask = mask.tril()
            F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        """,
    "TPF312": """
        while n:
            k = k.transpose(1, 2).contiguous()
            F.scaled_dot_product_attention(q, k, k.repeat(1))
        """,
    "TPF313": """
        h = layer(q)
        while n:
            h = h.float()
        """,
    "TPF317": """
        while n:
            ids = torch.cat([ids, q], dim=1)
            seen = seen[:, -n:]
            h = h.float()
            h = model(seen).float()
            t = h[:, -1]
        """,
    "TPF928": """
        for g in gs:
            while n:
                g = g.detach()
                dist.all_reduce(g)
        """,
    "TPF215": """
        host = q.cuda().to("cpu", non_blocking=True)
        while n:
            host = host.view(-1)
        """,
}
HEAD = """\
import torch
import torch.distributed as dist
import torch.nn.functional as F

layer = torch.nn.Linear(8, 16)

def run(n, q, v, model, gs):
"""


@pytest.mark.parametrize("code", PROGRAMS)
def test_circles_end(code: str) -> None:
    (rule,) = (type(rule) for rule in all_rules() if rule.code == code)
    assert lint(HEAD + textwrap.indent(textwrap.dedent(PROGRAMS[code]), "    "), [rule], "audit") == []
