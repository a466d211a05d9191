"""The extension for VS Code: its own tests build it and drive the server of this checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from perflint import __version__
from perflint.config.settings import Profile
from perflint.integrations.lsp.actions import FIX_ALL
from perflint.integrations.lsp.choices import Choices, editor_choices

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
MANIFEST = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))


def test_version_and_names_are_those_of_perflint() -> None:
    assert MANIFEST["version"] == __version__
    assert f'"{FIX_ALL}"' in (FOLDER / "src" / "extension.ts").read_text(encoding="utf-8")


def test_settings_are_those_of_the_server() -> None:
    properties = MANIFEST["contributes"]["configuration"]["properties"]
    clients = {"perflint.path", "perflint.arguments", "perflint.settings", "perflint.trace.server"}
    defaults = {name.removeprefix("perflint."): properties[name]["default"] for name in properties.keys() - clients}
    assert defaults.pop("profile") == "" and properties["perflint.profile"]["enum"] == [
        "",
        *(each.value for each in Profile),
    ]
    # What a user sees without a choice is what the server does without one.
    assert len(defaults) == 3 and editor_choices(defaults) == replace(Choices(), options=editor_choices({}).options)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm")
@pytest.mark.skipif(not (FOLDER / "node_modules").exists(), reason="run `npm ci` in editors/vscode first")
def test_own_tests() -> None:
    environment = os.environ | {"PERFLINT": f"{sys.executable} -m perflint", "PYTHONPATH": str(FOLDER.parents[1])}
    done = subprocess.run(["npm", "test"], cwd=FOLDER, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout and "# pass 0" not in done.stdout
