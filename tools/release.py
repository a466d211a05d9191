"""Builds the wheel and the source distribution of this commit in dist/, and checks them as a new user would.

    python tools/release.py [--tag]

Needs `pip install -e ".[release]"`. With --tag, the commit gets the tag of its version; then the changelog must have
a section with its date. Publishing is `twine upload dist/*` and `git push --tags`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
SLOW = (
    "import torch\n\n\ndef train(model, loader):\n    for x in loader:\n        print(model(x.cuda()).sum().item())\n"
)
FOUND = "TPF101"


def main() -> None:
    """Build and check. Exits with a message at the first fault."""
    parser = argparse.ArgumentParser(description="build and check a release")
    parser.add_argument("--tag", action="store_true", help="tag the commit with its version")
    is_tagged: bool = parser.parse_args().tag
    if output("git", "status", "--porcelain"):
        raise SystemExit("the work tree has changes that are not committed")
    version = _version()
    if is_tagged and not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", _changelog(), re.MULTILINE):
        raise SystemExit(f"CHANGELOG.md has no section `## {version} (YYYY-MM-DD)`")
    with tempfile.TemporaryDirectory() as folder:
        files = _built(ROOT / "dist")
        again = _built(Path(folder) / "dist")
        if [file.read_bytes() for file in files] != [file.read_bytes() for file in again]:
            raise SystemExit("two builds of the same commit differ")
        run(sys.executable, "-m", "twine", "check", "--strict", *map(str, files))
        for file in files:
            _check_installed(file, version, Path(folder) / file.name)
        wheel = next(file for file in files if file.suffix == ".whl")
        run(sys.executable, "-m", "pipx", "run", "--spec", str(wheel), "perflint", "--version", cwd=Path(folder))
        _check_hook(Path(folder) / "hook")
    if is_tagged:
        run("git", "tag", "--annotate", f"v{version}", "--message", f"perflint {version}")
    print(f"perflint {version}: {', '.join(file.name for file in files)}")


def _version() -> str:
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "perflint" / "__init__.py").read_text("utf-8"), re.MULTILINE)
    if found is None or f"\n## {found[1]} (" not in _changelog():
        raise SystemExit("CHANGELOG.md has no section for the version of perflint/__init__.py")
    return found[1]


def _changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text("utf-8")


def _built(folder: Path) -> list[Path]:
    """The wheel and the source distribution, built into a folder."""
    for old in folder.glob("*"):
        old.unlink()
    # The time of the commit makes two builds equal.
    os.environ["SOURCE_DATE_EPOCH"] = output("git", "log", "-1", "--format=%ct")
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT))
    return sorted(folder.iterdir())


def _check_installed(file: Path, version: str, folder: Path) -> None:
    """Install a distribution into a clean environment, and check a file with it and with flake8."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    python = str(programs / "python")
    run(python, "-m", "pip", "install", "--quiet", f"torch-perflint[flake8] @ {file.as_uri()}")
    (folder / "slow.py").write_text(SLOW, "utf-8")
    said = output(str(programs / "perflint"), "--version")
    if version not in said:
        raise SystemExit(f"{file.name} says that it is {said}")
    for command in (("perflint", "check", "--isolated", "--no-cache", "--exit-zero"), ("flake8", "--exit-zero")):
        if FOUND not in output(python, "-m", *command, "slow.py", cwd=folder):
            raise SystemExit(f"{file.name}: {command[0]} does not find {FOUND}")


def _check_hook(folder: Path) -> None:
    """Check a file with the hook of this commit, as pre-commit does."""
    folder.mkdir()
    (folder / "slow.py").write_text(SLOW, "utf-8")
    for command in (("init", "--quiet"), ("add", "slow.py")):
        run("git", *command, cwd=folder)
    hook = [sys.executable, "-m", "pre_commit", "try-repo", str(ROOT), "perflint", "--files", "slow.py"]
    said = subprocess.run(hook, cwd=folder, check=False, stdout=subprocess.PIPE, text=True).stdout
    if FOUND not in said:
        raise SystemExit(f"the hook for pre-commit does not find {FOUND}:\n{said}")


def run(*command: str, cwd: Path = ROOT) -> None:
    """Run a command; exits with its status if it fails."""
    status = subprocess.run(command, cwd=cwd, check=False).returncode
    if status:
        raise SystemExit(status)


def output(*command: str, cwd: Path = ROOT) -> str:
    """What a command prints. Raises CalledProcessError."""
    return subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


if __name__ == "__main__":
    main()
