"""Is imported by each interpreter that starts during `perflint verify`, before the program.

It stands in front of a module of this name that the environment may have, and imports that, too.
The interpreter need not have perflint: the probe is loaded from where this file is.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location


def _start_probe() -> None:
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    spec = spec_from_file_location("perflint", os.path.join(package, "__init__.py"))
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["perflint"] = module
    spec.loader.exec_module(module)
    importlib.import_module("perflint.tracer.probe").start()


def _import_the_other() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    this = sys.modules.pop("sitecustomize", None)
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        if this is not None:
            sys.modules["sitecustomize"] = this


_start_probe()
_import_the_other()
