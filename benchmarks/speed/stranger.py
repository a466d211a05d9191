"""Times the first hour of a new user, in a clean environment: from `pip install` to the first verified fix.

    python benchmarks/speed/stranger.py [--torch REQUIREMENT]

It builds the wheel (not timed), makes a virtual environment and a git repository with one training script, and runs the
commands of docs/guide/start.md as a user would. Each step is checked: a step without its result ends the script with 1.
Times of `pip` depend on the network and on its cache.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = '''"""Trains a small classifier on random data, on a GPU if there is one."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 10)

    def forward(self, images):
        return self.head(torch.relu(self.norm(self.conv(images))).mean((2, 3)))


def train(steps: int = 40) -> float:
    torch.manual_seed(0)
    model = Net().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    total = 0.0
    for _ in range(steps):
        images = torch.randn(32, 3, 16, 16).to(device)
        labels = torch.randint(0, 10, (32,)).to(device)
        weight = torch.ones(10).to(device)
        loss = nn.functional.cross_entropy(model(images), labels, weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / steps


if __name__ == "__main__":
    print(f"mean loss {train():.4f}")
'''
STEP = "        optimizer.step()\n"
NEW_WAIT = f"{STEP}        print(images.mean().item())\n"


class Hour:
    """The steps so far, and the folders that they work in."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.environment = folder / "environment"
        self.rows: list[tuple[str, str, float]] = []
        unwanted = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PERFLINT_CACHE_DIR", "VIRTUAL_ENV"}
        kept = {name: value for name, value in os.environ.items() if name not in unwanted}
        self.variables = kept | {"PATH": f"{self.environment / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        # The cache of a new user is empty.
        self.variables |= {"PERFLINT_CACHE_DIR": str(folder / "cache")}

    def run(self, *command: str, status: Sequence[int] = (0,)) -> str:
        """Run a command in the project. Ends the script if the exit status is another one."""
        done = subprocess.run(
            command, cwd=self.project, env=self.variables, capture_output=True, text=True, encoding="utf-8", check=False
        )
        if done.returncode not in status:
            raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    @contextmanager
    def step(self, title: str, command: str) -> Iterator[None]:
        """Time a step."""
        start = time.perf_counter()
        yield
        self.rows.append((title, command, time.perf_counter() - start))

    def timed(self, title: str, command: str, *, status: Sequence[int] = (0,), shows: str = "") -> str:
        """Run and time a command, whose output must contain a text."""
        with self.step(title, command):
            output = self.run(*command.split(), status=status)
        if shows not in output:
            raise SystemExit(f"{command}: `{shows}` is missing in\n{output}")
        return output


def main() -> None:
    """Print a table of the steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--torch", default="torch==2.13.0", help="the requirement of the program (default: torch==2.13.0)"
    )
    torch: str = parser.parse_args().torch
    with tempfile.TemporaryDirectory(prefix="perflint-stranger-") as name:
        folder = Path(name)
        hour = Hour(folder)
        make_project(hour)
        install(hour, built(folder))
        first_finding(hour)
        in_the_editor(hour)
        green_check(hour)
        first_verified_fix(hour, torch)
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    print("| step | command | seconds | since the start |\n|---|---|---:|---:|")
    total = 0.0
    for title, command, seconds in hour.rows:
        total += seconds
        print(f"| {title} | `{command}` | {seconds:.1f} | {total:.1f} |")


def built(folder: Path) -> Path:
    """The wheel of this checkout."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def make_project(hour: Hour) -> None:
    """The repository of the user."""
    hour.project.mkdir()
    (hour.project / "train.py").write_text(PROGRAM, encoding="utf-8")
    (hour.project / "pyproject.toml").write_text('[project]\nname = "example"\nversion = "0"\n', encoding="utf-8")
    hour.run("git", "init", "--quiet")
    commit(hour)


def commit(hour: Hour) -> None:
    """Commit all."""
    hour.run("git", "add", "--all")
    hour.run(
        "git", "-c", "user.name=user", "-c", "user.email=user@example.org", "commit", "--quiet", "--message", "work"
    )


def install(hour: Hour, wheel: Path) -> None:
    """A clean environment with perflint."""
    with hour.step("a clean environment", "python3 -m venv .venv"):
        subprocess.run([sys.executable, "-m", "venv", str(hour.environment)], check=True)
    with hour.step("installation", "pip install torch-perflint[lsp,flake8]"):
        hour.run("pip", "install", "--quiet", f"{wheel}[lsp,flake8]")


def first_finding(hour: Hour) -> None:
    """The findings in the terminal."""
    hour.timed("first finding", "perflint check", status=(1,), shows="TPF204")
    hour.timed("again, with the cache", "perflint check", status=(1,), shows="TPF204")


def in_the_editor(hour: Hour) -> None:
    """The findings in an editor: of flake8, and of the server."""
    hour.timed("in an editor with flake8", "flake8 --select TPF train.py", status=(1,), shows="TPF204")
    with hour.step("in an editor: from the start of the server to the diagnostics", "perflint lsp"):
        found = diagnostics(hour)
    if "TPF204" not in found:
        raise SystemExit(f"perflint lsp: {found}")


def diagnostics(hour: Hour) -> list[str]:
    """The codes that the server publishes for the script."""
    uri = (hour.project / "train.py").as_uri()
    document = {"uri": uri, "languageId": "python", "version": 1, "text": PROGRAM}
    root = hour.project.as_uri()
    messages = [
        {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": root, "capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
    ]
    command = [str(hour.environment / "bin" / "perflint"), "lsp"]
    with subprocess.Popen(
        command, cwd=hour.project, env=hour.variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        for message in messages:
            body = json.dumps({"jsonrpc": "2.0", **message}).encode()
            server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        server.stdin.flush()
        try:
            while True:
                answer = _message(server.stdout.readline, server.stdout.read)
                if answer.get("method") == "textDocument/publishDiagnostics":
                    return [str(each["code"]) for each in answer["params"]["diagnostics"]]
        finally:
            server.kill()


def _message(line: Callable[[], bytes], read: Callable[[int], bytes]) -> dict[str, dict[str, list[dict[str, object]]]]:
    """The next message of the protocol. Raises EOFError at the end."""
    length = 0
    while header := line().strip():
        name, _, value = header.partition(b":")
        length = int(value) if name == b"Content-Length" else length
    if not length:
        raise EOFError("the server ended")
    message: dict[str, dict[str, list[dict[str, object]]]] = json.loads(read(length))
    return message


def green_check(hour: Hour) -> None:
    """Settings and a baseline, with which continuous integration passes until there is a new finding."""
    hour.timed("settings", "perflint init")
    hour.timed("baseline", "perflint baseline")
    commit(hour)
    hour.timed("green in continuous integration", "perflint check --baseline perflint-baseline.json")
    script = hour.project / "train.py"
    script.write_text(PROGRAM.replace(STEP, NEW_WAIT), encoding="utf-8")
    command = "perflint check --baseline perflint-baseline.json"
    hour.timed("red after a new wait", command, status=(1,), shows="1 warning")
    script.write_text(PROGRAM, encoding="utf-8")


def first_verified_fix(hour: Hour, torch: str) -> None:
    """A fix that the program ran with, which may take torch."""
    with hour.step("torch, for those who do not have it", f"pip install {torch} numpy"):
        hour.run("pip", "install", "--quiet", torch, "numpy")
    command = "perflint verify --apply --repeat 2 --steps 30 --warmup 5 -- python train.py"
    hour.timed("first verified fix", command, status=(0, 1), shows="Kept 1 fix")
    if "torch.ones(10, device=device)" not in (hour.project / "train.py").read_text(encoding="utf-8"):
        raise SystemExit("the fix is not there")


if __name__ == "__main__":
    main()
