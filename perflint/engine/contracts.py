"""Syncs that the program allows (`perflint.allow_sync`), and code that it states to be free of them (`sync_free`)."""

from __future__ import annotations

import ast

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.frozen import replace
from perflint.semantics.model import Model
from perflint.semantics.sites import FileSite, Site

_ALLOW, _FREE = "perflint.allow_sync", "perflint.sync_free"
_WAITS = (Effect.SYNC, Effect.TRANSFER)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def held(finding: Finding, site: Site) -> Finding | None:
    """The finding as the statements of the program make it count; None if the program allows it."""
    kept = where_syncs_are_allowed(finding, site)
    return None if kept is None else in_sync_free_code(kept, site)


def where_syncs_are_allowed(finding: Finding, site: Site) -> Finding | None:
    """The program states that it means the wait: there is nothing to report."""
    if finding.effect not in _WAITS or isinstance(site, FileSite) or "allow_sync" not in site.model.source.text:
        return finding
    for outer in site.model.ancestors(site.node):
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            made = [item.context_expr for item in outer.items]
        else:
            made = outer.decorator_list if isinstance(outer, _Function) else []
        if any(_name(site.model, each) == _ALLOW for each in made):
            return None
    return finding


def in_sync_free_code(finding: Finding, site: Site) -> Finding:
    """A wait in a function that is stated to have none is an error, however often the function runs."""
    if finding.effect not in _WAITS or isinstance(site, FileSite):
        return finding
    declared = site.model.view.project.declared
    if not declared.sync_free and "sync_free" not in site.model.source.text:
        return finding
    for outer in site.model.ancestors(site.node):
        if isinstance(outer, _Function) and _is_sync_free(site.model, outer):
            message = f"{finding.message}, in `{outer.name}`, which must be free of syncs"
            return replace(finding, message=message, severity=Severity.ERROR, heat=Heat.HOT)
    return finding


def _is_sync_free(model: Model, function: _Function) -> bool:
    if any(_name(model, each) == _FREE for each in function.decorator_list):
        return True
    info = model.module.defined_by(function)
    return info is not None and model.view.project.declared.is_sync_free(model.module.name, info.qualname)


def _name(model: Model, node: ast.expr) -> str:
    """The full name of a decorator or of a context manager, without its arguments."""
    return model.symbols.full_name(node.func if isinstance(node, ast.Call) else node)
