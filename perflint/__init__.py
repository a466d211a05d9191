"""perflint: the performance linter for PyTorch."""

__version__ = "0.1.0"
