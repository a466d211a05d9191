"""Distributions of torch behind classes that inherit from them."""

from __future__ import annotations

from perflint.semantics.sites import CallSite
from perflint.semantics.values import Instance, Super, Value


def of_torch(site: CallSite, value: Value, cls: str) -> Instance | None:
    """The object that a class of torch makes, or one that inherits from it; None if a value has no such object."""
    if isinstance(value, Super):
        return Instance(cls)
    found = (each for each in value.members if isinstance(each, Instance) and cls in site.model.lineage(each.cls))
    return next((Instance(cls, each.arguments) for each in found), None)
