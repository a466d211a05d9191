"""Multiplies float32 matrices in TF32, on the tensor cores of a GPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from itertools import takewhile

from perflint.fixes.edits import insert
from perflint.source.text import Source
from perflint.tune.edited import edited
from perflint.tune.evidence import Evidence
from perflint.tune.refused import Refused

_SINCE = (1, 12)
"""The first torch with `torch.set_float32_matmul_precision`."""
_CHOICES = re.compile(r"\b(?:set_float32_matmul_precision|allow_tf32|fp32_precision)\b")


def in_tf32(texts: Mapping[str, str], evidence: Evidence) -> dict[str, str]:
    """A file that steps an optimizer, with TF32 switched on behind its imports. Raises Refused."""
    if evidence.busy is None:
        raise Refused("the steps use no GPU", 1)
    if evidence.oldest is not None and evidence.oldest < _SINCE:
        raise Refused("the project allows a torch older than 1.12", 1)
    chosen = next((path for path, text in sorted(texts.items()) if _CHOICES.search(text)), None)
    if chosen is not None:
        raise Refused(f"{chosen} chooses the precision of float32 itself", 1)
    for path in sorted(evidence.seen.steps):
        source = Source(path, texts[path])
        place = _behind_imports(source.tree.body)
        if place is not None:
            line, torch = place
            statement = f'{torch}.set_float32_matmul_precision("high")\n'
            return {path: edited(source, [insert(line, 1, statement)])}
    raise Refused("no file that steps an optimizer imports torch at its beginning", 1)


def _behind_imports(body: list[ast.stmt]) -> tuple[int, str] | None:
    """The line behind the first imports of a file, and its name for torch; None if they do not import it."""
    start = 1 if body and isinstance(body[0], ast.Expr) else 0
    imports = list(takewhile(lambda each: isinstance(each, (ast.Import, ast.ImportFrom)), body[start:]))
    modules = (alias for each in imports if isinstance(each, ast.Import) for alias in each.names)
    torch = next((alias.asname or "torch" for alias in modules if alias.name == "torch"), None)
    line = (imports[-1].end_lineno or 0) + 1 if imports else 0
    rest = body[start + len(imports) :]
    return None if torch is None or (rest and rest[0].lineno < line) else (line, torch)
