"""perflint: the performance linter for PyTorch."""

__version__ = "0.1.0"

# typing takes longer to import than --version to answer.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from perflint.tracer.allow import allow_sync as allow_sync
    from perflint.tracer.allow import sync_free as sync_free
    from perflint.tracer.session import trace as trace

_FOR_PROGRAMS = {
    "allow_sync": "perflint.tracer.allow",
    "sync_free": "perflint.tracer.allow",
    "trace": "perflint.tracer.session",
}
"""The names for traced programs, loaded on first use."""


def __getattr__(name: str) -> object:
    if name in _FOR_PROGRAMS:
        import importlib

        return getattr(importlib.import_module(_FOR_PROGRAMS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
