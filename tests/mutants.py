"""The share of small changes of a folder's code that its own tests notice.

`python -m tests.mutants fixes` draws changes of `perflint/fixes`, which mutmut 3 makes, runs those tests of the folder
that reach the changed function, and prints the changes that no test notices. It works in a copy of the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[1]
TESTS = {
    "fixes": [
        *(f"tests/fixes/test_{name}.py" for name in "apply edits imports layout leftovers properties write".split()),
        "tests/engine/test_fixing.py",
    ],
    "verify": ["tests/verify"],
}
_SETTINGS = """
[tool.mutmut]
source_paths = ["perflint"]
only_mutate = ["perflint/{folder}/*"]
also_copy = ["docs", "README.md"]
pytest_add_cli_args = ["-p", "no:cacheprovider"]
pytest_add_cli_args_test_selection = {tests}
timeout_constant = 10.0
timeout_multiplier = 4.0
use_git_change_detection = false
use_setproctitle = false
"""


_MUTMUT = [sys.executable, "-c", "from mutmut.__main__ import cli; cli()"]
_RESULTS = {0: "survived", 33: "not reached", None: "not tried"}
"""What statuses of mutmut mean. Others are those of tests that fail or take too long."""


def names(folder: str) -> list[str]:
    """The names of all changes that mutmut makes in a folder, by its settings in the working directory."""
    from mutmut.mutation.file_mutation import mutate_file_contents

    found = []
    for path in sorted(Path("perflint", folder).glob("*.py")):
        made = mutate_file_contents(str(path), path.read_text(encoding="utf-8")).mutant_names
        found += [f"perflint.{folder}.{path.stem}.{name}" for name in made]
    return found


def main() -> None:
    """Try the changes, and print what came of them."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", choices=TESTS)
    parser.add_argument("--sample", type=int, default=300, help="how many changes to try; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="perflint-mutants-") as temporary:
        copy = Path(temporary) / "perflint"
        left_out = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "benchmarks", "editors")
        shutil.copytree(ROOT, copy, ignore=left_out)
        with open(copy / "pyproject.toml", "a", encoding="utf-8") as file:
            file.write(_SETTINGS.format(folder=arguments.folder, tests=json.dumps(TESTS[arguments.folder])))
        os.chdir(copy)
        known = names(arguments.folder)
        chosen = Random(arguments.seed).sample(known, arguments.sample) if arguments.sample else known
        subprocess.run([*_MUTMUT, "run", "--max-children", "1", *chosen], check=True)
        results: Counter[str] = Counter()
        for name in chosen:
            path = Path(f"{name.rpartition('.')[0].replace('.', '/')}.py")
            codes = json.loads(Path("mutants", f"{path}.meta").read_text(encoding="utf-8"))["exit_code_by_key"]
            result = _RESULTS.get(codes[name], "noticed")
            results[result] += 1
            if result != "noticed":
                print(f"\n== {result}: {name}\n{get_diff_for_mutant(name, path=path)}")
        share = results["noticed"] / len(chosen)
        print(f"{len(chosen)} of {len(known)} changes were tried, {share:.1%} were noticed: {dict(results)}")


if __name__ == "__main__":
    main()
