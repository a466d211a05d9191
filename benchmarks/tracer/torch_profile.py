"""Records a profile of torch.profiler on this machine's GPU, and compares the verdicts of `perflint check --trace`.

    python benchmarks/tracer/torch_profile.py [FOLDER]

The program waits in known lines. The verdicts with the profile are printed beside those with a trace that
`perflint trace` records of the same program. Without a GPU the script shows that it works, and no verdict is expected.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """\
import sys

import torch
from torch.profiler import ProfilerActivity, profile, schedule

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def norms(model):
    total = 0.0
    for parameter in model.parameters():
        total += parameter.grad.norm().item() ** 2
    return total


def train(model, loader, optimizer, done):
    total = 0.0
    for x in loader:
        x = x.to(DEVICE)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if loss > 1e9:
            break
        rows = x[x[:, 0] > 0]
        total += float(rows.sum()) + norms(model)
        done()
    return total


def main():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(2048, 2048) for _ in range(8)]
    model = torch.nn.Sequential(*layers).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loader = torch.utils.data.DataLoader(torch.randn(64 * 30, 2048), batch_size=64)
    if "--profile" not in sys.argv:
        train(model, loader, optimizer, lambda: None)
        return
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()
    with profile(activities=activities, with_stack=True, schedule=schedule(wait=5, warmup=2, active=8)) as profiler:
        train(model, loader, optimizer, profiler.step)
    profiler.export_chrome_trace("profile.json.gz")


if __name__ == "__main__":
    main()
"""


def main() -> None:
    """Record both, and print the verdicts."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="perflint-profile-"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program.py").write_text(PROGRAM)
    run(folder, "program.py", "--profile")
    run(folder, "-m", "perflint", "trace", "-o", "trace.jsonl.gz", "program.py")
    found = {name: verdicts(folder, name) for name in ("profile.json.gz", "trace.jsonl.gz")}
    for line in sorted({line for each in found.values() for line in each}):
        print(f"line {line}: {PROGRAM.splitlines()[line - 1].strip()}")
        for name, each in found.items():
            print(f"    {name:16} {each.get(line, 'no verdict')}")


def run(folder: Path, *command: str) -> str:
    """The output of Python with some arguments."""
    ran = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} failed:\n{ran.stdout}\n{ran.stderr}")
    return ran.stdout


def verdicts(folder: Path, trace: str) -> dict[int, str]:
    """The verdicts on the findings by line."""
    options = ("--profile=audit", "--output-format=json", "--no-cache", f"--trace={trace}")
    found = json.loads(run(folder, "-m", "perflint", "check", "program.py", *options))["findings"]
    rows: dict[int, str] = {}
    for each in found:
        if each["verdict"]:
            text = f"{each['code']} {each['verdict']['ruling']}: {each['verdict']['why']}"
            rows[each["line"]] = f"{rows[each['line']]}; {text}" if each["line"] in rows else text
    return rows


if __name__ == "__main__":
    main()
