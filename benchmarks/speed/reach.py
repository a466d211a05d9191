"""Measures the times that users feel, over unpacked packages and repositories.

    python benchmarks/speed/reach.py FOLDER ... [--jobs 1,2,8] [--rounds 3] [--edits 20] [--json FILE]
        [--warm all|edited]

For each folder, all rules, profile audit:

- cold: CPU seconds of one process against `libcst.parse_module` and `ast.parse` of the same files;
- processes: wall seconds of a cold run with N of them;
- nothing changed: CPU and wall seconds of a second run;
- one edited file: wall and CPU milliseconds of a fresh `perflint check FILE` after a new function at its end (median
  and p90), and how many files a changed comment in that file checks again;
- `fix` (a diff, all degrees) against `check`, CPU seconds, both cold;
- memory: the peak of any process, in MiB.

With `--warm edited` the cache holds the reports of the edited files and all that these need, and no more; for projects
whose cold run takes too long. Then no comment is changed.

Folders are copied first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from packages import table

PERFLINT = [sys.executable, "-m", "perflint"]
CHECK = [*PERFLINT, "check", "--isolated", "--exit-zero", "--profile", "audit", "--output-format", "json"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Compiled modules are kept, as where packages are installed."""
LIMIT = 540
"""Seconds for one command."""
PARSE = """
import ast, pathlib, sys
if sys.argv[2] == "libcst":
    import libcst
    parse = libcst.parse_module
else:
    parse = ast.parse
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.py")):
    try:
        parse(path.read_bytes())
    except (SyntaxError, ValueError):
        pass
    except Exception as error:
        if type(error).__name__ != "ParserSyntaxError":
            raise
"""
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="measure the times that users feel")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--jobs", default="1,2", help="numbers of processes (default: 1,2)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each figure (default: 3)")
    parser.add_argument("--edits", type=int, default=20, help="edited files (default: 20)")
    parser.add_argument("--warm", choices=["all", "edited"], default="all", help="files checked before an edit")
    parser.add_argument("--skip", default="", help="figures to leave out: cold, processes, same, edit, fix, memory")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to a file")
    options = parser.parse_args()
    jobs = [int(each) for each in options.jobs.split(",")]
    skipped = set(options.skip.split(","))
    print(f"Python {sys.version.split()[0]}, {len(os.sched_getaffinity(0))} CPUs", flush=True)
    figures: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(prefix="perflint-speed-") as temporary:
        for folder in options.folders:
            copy = Path(temporary) / folder.name
            shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.so", ".git", "__pycache__"))
            (copy / "pyproject.toml").touch()
            found = figures[folder.name] = Folder(copy, Path(temporary) / "cache", options.rounds).figures(
                jobs, options.edits, skipped, options.warm == "all"
            )
            print(table(["figure", folder.name], [[name, str(value)] for name, value in found.items()]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def cpu(command: list[str]) -> tuple[float, float]:
    """CPU and wall seconds of a command with its children; infinite if it takes too long."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    try:
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return float("inf"), float("inf")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return round(spent, 3), round(time.perf_counter() - start, 3)


class Folder:
    """One copy of a project."""

    def __init__(self, folder: Path, cache: Path, rounds: int) -> None:
        self.folder = folder
        self.cache = cache
        self.rounds = rounds
        self.files = sorted(folder.rglob("*.py"))

    def figures(self, jobs: list[int], edits: int, skipped: set[str], whole: bool) -> dict[str, object]:
        """All figures by name. If not `whole`, only the files that are edited are checked before the edits."""
        lines = sum(file.read_bytes().count(b"\n") for file in self.files)
        found: dict[str, object] = {"files": len(self.files), "lines": lines}
        if "cold" not in skipped:
            found |= self.cold()
        if "processes" not in skipped:
            for number in jobs:
                found[f"wall_{number}_processes"] = self.median(lambda n=number: self.fresh(n)[1])
        chosen = random.Random(0).sample(self.files, min(edits, len(self.files)))
        if whole and not {"same", "edit"} <= skipped:
            self.fresh(max(jobs), keep=True)
        elif "edit" not in skipped:
            cpu([*CHECK, "--cache-dir", str(self.cache), "--jobs", str(max(jobs)), *map(str, chosen)])
        if "same" not in skipped:
            found |= self.same()
        if "edit" not in skipped:
            found |= self.edited(chosen, whole)
        if "fix" not in skipped:
            found |= self.fixed()
        if "memory" not in skipped:
            found |= self.memory(max(jobs))
        return found

    def median(self, measure: object) -> float:
        """The median of some runs."""
        return round(statistics.median(measure() for _ in range(self.rounds)), 3)  # type: ignore[operator]

    def fresh(self, jobs: int, keep: bool = False) -> tuple[float, float]:
        """A cold run; with `keep`, its cache stays."""
        shutil.rmtree(self.cache, ignore_errors=True)
        where = ["--cache-dir", str(self.cache)] if keep else ["--no-cache"]
        return cpu([*CHECK, *where, "--jobs", str(jobs), str(self.folder)])

    def cold(self) -> dict[str, object]:
        """One process against parsers, by turns."""
        samples: dict[str, list[float]] = {"libcst": [], "ast": [], "perflint": []}
        for _ in range(self.rounds):
            for parser in ("libcst", "ast"):
                samples[parser].append(cpu([sys.executable, "-c", PARSE, str(self.folder), parser])[0])
            samples["perflint"].append(self.fresh(1)[0])
        medians = {name: statistics.median(times) for name, times in samples.items()}
        ratio = round(medians["perflint"] / medians["libcst"], 2)
        return {f"cpu_{name}": time for name, time in medians.items()} | {"over_libcst": ratio}

    def same(self) -> dict[str, object]:
        """A run after which nothing has changed."""
        command = [*CHECK, "--cache-dir", str(self.cache), "--jobs", "1", str(self.folder)]
        times = [cpu(command) for _ in range(self.rounds)]
        cpus, walls = zip(*times, strict=True)
        return {"same_cpu": statistics.median(cpus), "same_wall": statistics.median(walls)}

    def edited(self, chosen: list[Path], whole: bool) -> dict[str, object]:
        """Checks of one file after an edit of it; if the cache is `whole`, also the files that a comment concerns."""
        walls, cpus, again = [], [], []
        before = self.cache.with_name("before")
        shutil.rmtree(before, ignore_errors=True)
        shutil.copytree(self.cache, before)
        for file in chosen:
            text = file.read_bytes()
            if whole:
                file.write_bytes(text.rstrip() + b"  # a comment\n")
                again.append(self.stale())
                shutil.rmtree(self.cache)
                shutil.copytree(before, self.cache)
            file.write_bytes(text + b"\n\ndef added(x):\n    return x + 1\n")
            spent, wall = cpu([*CHECK, "--cache-dir", str(self.cache), "--jobs", "1", str(file)])
            walls.append(wall * 1000)
            cpus.append(spent * 1000)
            file.write_bytes(text)
            shutil.rmtree(self.cache)
            shutil.copytree(before, self.cache)
        walls.sort()
        cpus.sort()
        at = max(int(len(walls) * 0.9) - 1, 0)
        found: dict[str, object] = {
            "edit_wall_ms_median": round(statistics.median(walls)),
            "edit_wall_ms_p90": round(walls[at]),
            "edit_cpu_ms_median": round(statistics.median(cpus)),
            "edit_cpu_ms_p90": round(cpus[at]),
        }
        return found | ({"comment_checks_files": round(statistics.median(again))} if again else {})

    def stale(self) -> int:
        """The number of files that a run would check."""
        script = (
            "import sys; from pathlib import Path\n"
            "from perflint.config.settings import Profile, Settings\n"
            "from perflint.engine.active import active_rules\n"
            "from perflint.engine.cache.caches import Caches\n"
            "from perflint.engine.projects import Projects\n"
            "from perflint.source.files import below\n"
            "settings = Settings(profile=Profile.AUDIT)\n"
            "caches = Caches(Projects(settings), settings, active_rules(settings), Path(sys.argv[1]))\n"
            "print(sum(caches.report(file) is None for file in below(sys.argv[2], settings)))\n"
            "caches.close()\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(self.cache), str(self.folder)],
            check=True,
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
        )
        return int(done.stdout)

    def fixed(self) -> dict[str, object]:
        """`fix` against `check`, cold, in one process."""
        plain = ["--isolated", "--no-cache", str(self.folder)]
        check = cpu([*PERFLINT, "check", "--exit-zero", "--jobs", "1", *plain])[0]
        fix = cpu([*PERFLINT, "fix", "--exit-zero", "--risky-fixes", *plain])[0]
        return {"check_cpu": check, "fix_cpu": fix, "fix_over_check": round(fix / check, 2)}

    def memory(self, jobs: int) -> dict[str, object]:
        """The peak of the largest process, in MiB."""
        found: dict[str, object] = {}
        for number in dict.fromkeys((1, jobs)):
            command = [*CHECK, "--no-cache", "--jobs", str(number), str(self.folder)]
            done = subprocess.run(
                [sys.executable, "-c", PEAK, *command], capture_output=True, text=True, env=ENVIRONMENT
            )
            found[f"peak_mib_{number}_processes"] = int(done.stdout) // 1024
        return found


if __name__ == "__main__":
    main()
