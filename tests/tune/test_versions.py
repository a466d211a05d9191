"""What patches write is there in the oldest torch for which they are offered."""

from __future__ import annotations

import ast

from perflint.semantics.structure import path_of
from perflint.tune.graphs.writing import HELPERS, _helper_text

FIRST = {
    "torch.clear_autocast_cache": (1, 6),
    "torch.cuda.CUDAGraph": (1, 10),
    "torch.cuda.Stream": (1, 0),
    "torch.cuda.current_stream": (1, 0),
    "torch.cuda.graph": (1, 10),
    "torch.cuda.stream": (1, 0),
    "torch.device": (0, 4),
    "torch.empty": (0, 4),
    "torch.full": (0, 4),
    "torch.is_tensor": (1, 0),
    "torch.utils._pytree.tree_flatten": (1, 8),
    "torch.utils._pytree.tree_map": (1, 9),
    "torch.zeros": (1, 0),
}
"""The first torch that has a function, as far as release notes and its repository tell."""
KEYWORDS = {("torch.cuda.graph", "stream"): (1, 10), ("torch.cuda.graph", "capture_error_mode"): (2, 1)}


def test_the_helpers_use_nothing_newer_than_the_oldest_torch_for_graphs() -> None:
    texts = "\n".join(map(_helper_text, HELPERS))
    calls = [node for node in ast.walk(ast.parse(texts)) if isinstance(node, ast.Call)]
    used = {path_of(call.func): call for call in calls if path_of(call.func).startswith("torch.")}
    given = {(name, each.arg) for name, call in used.items() for each in call.keywords if name == "torch.cuda.graph"}
    assert used.keys() == FIRST.keys() and given == KEYWORDS.keys()
    # An older torch than 2.1 has no `torch.compiler`, by which the helpers tell it.
    assert max(*FIRST.values(), *KEYWORDS.values()) == (2, 1)
    assert texts.count('if device.type != "cuda" or not hasattr(torch, "compiler"):') == len(HELPERS)
