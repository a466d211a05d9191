"""Imports a script of `tools/` as a module."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

TOOLS = str(Path(__file__).parents[2] / "tools")


def load_tool(name: str) -> ModuleType:
    """The module; scripts import each other from their own folder."""
    if TOOLS not in sys.path:
        sys.path.insert(0, TOOLS)
    return importlib.import_module(name)
