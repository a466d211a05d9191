"""Runs the packed extension in a real VS Code: code-server, in headless Chromium.

    npm run package
    python editors/vscode/test/host.py --code-server COMMAND [--picture FILE]

COMMAND starts code-server, such as `code-server` or `node out/node/entry.js`. The environment of this script must have
`perflint[lsp]`. Checked: findings of an opened file, all safe fixes, a restart, and the report of a trace.
It takes about a minute and is no part of the tests, because few machines have code-server.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.browser import Page, browser, executable

ROOT = Path(__file__).parents[3]
PORT = 8899
SECONDS = 60.0
_SETTINGS = {
    "security.workspace.trust.enabled": False,
    "workbench.startupEditor": "none",
    "workbench.colorTheme": "Default Light Modern",
    "editor.minimap.enabled": False,
}
_KEYS = {"F1": 112, "Enter": 13}
_FOCUS = "document.querySelector('.monaco-editor textarea, .monaco-editor .native-edit-context')?.focus()"


class Address:
    """The page of a workspace with an open file."""

    def __init__(self, workspace: Path, name: str) -> None:
        opened = json.dumps([["openFile", f"vscode-remote://127.0.0.1:{PORT}{workspace / name}"]])
        self._text = f"http://127.0.0.1:{PORT}/?folder={workspace}&payload={opened}"

    def as_uri(self) -> str:
        """What `Page.open` asks of a path."""
        return self._text


def main() -> None:
    """Run all checks. Exits with 1 at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--code-server", required=True, metavar="COMMAND")
    parser.add_argument("--picture", type=Path, help="where to write a picture of the editor, as WebP")
    arguments = parser.parse_args()
    program = executable()
    extensions = sorted((ROOT / "editors" / "vscode").glob("*.vsix"))
    if program is None or not extensions:
        raise SystemExit("needs Chromium, and a .vsix of `npm run package`")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workspace = prepared(folder)
        command = [*shlex.split(arguments.code_server), "--user-data-dir", f"{folder}/data"]
        command += ["--extensions-dir", f"{folder}/extensions"]
        subprocess.run([*command, "--install-extension", str(extensions[-1])], check=True)
        options = [
            "--auth",
            "none",
            "--bind-addr",
            f"127.0.0.1:{PORT}",
            "--disable-telemetry",
            "--disable-update-check",
        ]
        with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL) as server:
            try:
                time.sleep(3)
                with browser(program) as page:
                    if page is None:
                        raise SystemExit(f"{program} does not start")
                    checks(page, workspace, arguments.picture)
            finally:
                server.terminate()


def prepared(folder: Path) -> Path:
    """A workspace with the example project and a trace, and the settings of the user."""
    workspace = folder / "example"
    shutil.copytree(ROOT / "docs" / "examples", workspace, ignore=shutil.ignore_patterns("tracing", "__pycache__"))
    shutil.copy(ROOT / "docs" / "examples" / "tracing" / "slow.jsonl.gz", workspace)
    perflint = folder / "perflint"
    perflint.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m perflint "$@"\n', encoding="utf-8")
    perflint.chmod(0o755)
    user = folder / "data" / "User"
    user.mkdir(parents=True)
    (user / "settings.json").write_text(json.dumps({**_SETTINGS, "perflint.path": str(perflint)}), encoding="utf-8")
    return workspace


def checks(page: Page, workspace: Path, picture: Path | None) -> None:
    """What a user does."""
    script = workspace / "train.py"
    page.resize(1280, 800)
    page.open(Address(workspace, "train.py"))  # type: ignore[arg-type]
    until("the editor", lambda: "def balance" in text(page))
    time.sleep(5)
    run(page, "View: Focus Problems")
    until("findings", lambda: "TPF204" in text(page))
    if picture is not None:
        time.sleep(2)
        shot = page.call("Page.captureScreenshot", format="webp", quality=70)["data"]
        picture.write_bytes(base64.b64decode(shot))
    run(page, "View: Focus Active Editor Group")
    run(page, "perflint: Apply all safe fixes")
    until("fewer findings", lambda: "TPF204" not in text(page) and "TPF107" in text(page))
    run(page, "File: Save")
    until("the fix in the file", lambda: "images.to(device, non_blocking=True)" in script.read_text(encoding="utf-8"))
    run(page, "perflint: Restart the server")
    until("findings after the restart", lambda: "TPF107" in text(page))
    run(page, "perflint: Show the report")
    until("the report", lambda: "extensionId=perflint.perflint" in json.dumps(page.call("Page.getFrameTree")))
    print("all checks passed")


def text(page: Page) -> str:
    """The text of the window, with plain spaces."""
    return str(page.evaluate("document.body.innerText")).replace("\xa0", " ")


def run(page: Page, command: str) -> None:
    """Run a command of the palette."""
    page.evaluate(_FOCUS)
    press(page, "F1")
    time.sleep(1)
    page.call("Input.insertText", text=command)
    time.sleep(1.5)
    press(page, "Enter")
    time.sleep(2)


def press(page: Page, key: str) -> None:
    """Press a key."""
    more = {"text": "\r"} if key == "Enter" else {}
    for kind in ("keyDown", "keyUp"):
        typed = more if kind == "keyDown" else {}
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_KEYS[key], **typed)


def until(wanted: str, holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"not seen: {wanted}")
        time.sleep(0.5)
    print(wanted, flush=True)


if __name__ == "__main__":
    os.environ.pop("PERFLINT_CACHE_DIR", None)
    main()
