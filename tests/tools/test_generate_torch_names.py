"""The list of torch's public names against the installed torch."""

from __future__ import annotations

import pytest

from perflint.semantics.facts import torch_api
from tests.tools.loading import load_tool

torch = pytest.importorskip("torch")


def test_the_list_is_that_of_the_installed_torch() -> None:
    tool = load_tool("generate_torch_names")
    known = torch_api.table("names")
    if torch.__version__.partition("+")[0] != known["torch"]:
        pytest.skip(f"the list is of torch {known['torch']}")
    for module, names in known["names"].items():
        missing = set(names.split()) - tool.public(module)
        assert not missing, f"{module} has no {sorted(missing)}"
