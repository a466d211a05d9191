"""Computes in the formats and the layout that a GPU is fast in: TF32, bfloat16, channels_last."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping

from perflint.findings import Edit
from perflint.fixes.edits import insert
from perflint.fixes.imports import import_edits
from perflint.rules._since import AMP_AUTOCAST
from perflint.source.text import Source
from perflint.tracer.changes import base, tf32
from perflint.tracer.changes.autocast import FORMATS, under_autocast
from perflint.tune.compiled import Finder
from perflint.tune.edited import behind_imports, edited
from perflint.tune.evidence import Evidence
from perflint.tune.refused import Refused

_CHOICES = re.compile(rf"\b(?:set_float32_matmul_precision|{'|'.join(tf32.SETTINGS)})\b")
_LAYOUT = re.compile(r"\bchannels_last\b")


def in_tf32(texts: Mapping[str, str], evidence: Evidence) -> dict[str, str]:
    """A file that steps an optimizer, with TF32 switched on behind its imports. Raises Refused."""
    _require(texts, evidence, tf32.SINCE, _CHOICES, "the precision of float32")
    for path in sorted(evidence.seen.steps):
        source = Source(path, texts[path])
        line, imports = behind_imports(source.tree.body) or (0, ())
        modules = (alias for each in imports if isinstance(each, ast.Import) for alias in each.names)
        torch = next((alias.asname or "torch" for alias in modules if alias.name == "torch"), None)
        if torch is not None:
            statement = f'\n{torch}.set_float32_matmul_precision("high")\n'
            return {path: edited(source, [insert(line, 1, statement)])}
    raise Refused("no file that steps an optimizer imports torch at its beginning", 1)


def in_bfloat16(texts: Mapping[str, str], evidence: Evidence) -> dict[str, str]:
    """The files that call models in the step, these calls and the losses under autocast. Raises Refused."""
    _require(texts, evidence, AMP_AUTOCAST, FORMATS, "formats")
    edits: dict[str, list[Edit]] = defaultdict(list)
    reasons = [Refused("the step calls no model with parameters", 1)]
    ends: dict[str, int] = {}
    for path, line in sorted({(each.path, each.line) for each in evidence.seen.models}):
        if line <= ends.get(path, 0):
            continue
        finder = Finder(Source(path, texts[path]))
        try:
            cast = under_autocast(finder.source, finder.statement(line))
        except base.Refused as refused:
            reasons.append(Refused(f"{path}:{line}: {refused}", line))
            continue
        ends[path] = cast.end
        edits[path] += [*cast.edits, *import_edits(finder.source, cast.imports)]
    if not edits:
        raise reasons[-1]
    return {path: edited(Source(path, texts[path]), changes) for path, changes in edits.items()}


def in_channels_last(texts: Mapping[str, str], evidence: Evidence) -> dict[str, str]:
    """The files that hold models with convolutions, which are converted there. Raises Refused."""
    _require(texts, evidence, (1, 5), _LAYOUT, "the layout")
    models = [each for each in evidence.seen.models if each.has_images]
    if not models:
        raise Refused("the step calls no model with convolutions over images", 1)
    if evidence.seen.distributed:
        raise Refused("the process is one of a group", 1)
    finders = {path: Finder(Source(path, texts[path])) for path in {each.holder for each in models}}
    edits: dict[str, list[Edit]] = defaultdict(list)
    for path, name, line, margin in dict.fromkeys(
        (each.holder, each.name, *finders[each.holder].place(each)) for each in models
    ):
        edits[path].append(insert(line, 1, f"{margin}{name}.to(memory_format=torch.channels_last)\n"))
    return {
        path: edited(finders[path].source, [*changes, *import_edits(finders[path].source, ["import torch"])])
        for path, changes in edits.items()
    }


def _require(
    texts: Mapping[str, str], evidence: Evidence, since: tuple[int, int], choices: re.Pattern[str], chosen: str
) -> None:
    """Raise Refused if the steps use no GPU, torch may be too old, or the project chooses by itself."""
    if evidence.busy is None:
        raise Refused("the steps use no GPU", 1)
    if evidence.oldest is not None and evidence.oldest < since:
        raise Refused(f"the project allows a torch older than {'.'.join(map(str, since))}", 1)
    if (path := next((path for path, text in sorted(texts.items()) if choices.search(text)), None)) is not None:
        raise Refused(f"{path} chooses {chosen} itself", 1)
