"""Counts the work of a check: numbers that the load of a machine does not change.

    python -m tests.engine.work PATH ...

prints, for one process with the profile audit, the nodes that are run for each node of the files, and the runs of
functions for each distinct (function, arguments).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from perflint.config.settings import Profile, Settings
from perflint.engine.active import active_rules
from perflint.engine.files import check_files
from perflint.semantics.interpreter import functions
from perflint.semantics.interpreter.analysis import Analysis
from perflint.semantics.interpreter.frame import Frame
from perflint.semantics.structure import FunctionInfo
from perflint.semantics.values import Value
from perflint.source.files import below

AUDIT = Settings(profile=Profile.AUDIT)


class Work:
    """The work of the checks that are made while it counts."""

    def __init__(self) -> None:
        self.analyses: list[Analysis] = []
        """The runs over files that begin, in order."""
        self.runs: Counter[tuple[object, ...]] = Counter()
        """The runs of functions, by place and arguments."""
        self.checked: set[Path] = set()

    @contextmanager
    def counting(self) -> Iterator[Work]:
        """Count what is done within."""
        run_alone, run_body = Analysis.run_alone, functions.run_body

        def analysed(analysis: Analysis, part: range | None = None) -> None:
            self.analyses.append(analysis)
            run_alone(analysis, part)

        def ran(inner: Frame, info: FunctionInfo) -> Value:
            place = inner.module.path, info.node.lineno, info.node.col_offset
            self.runs[
                (*place, inner.constructs, tuple(sorted((inner.names or {}).items(), key=lambda each: each[0])))
            ] += 1
            return run_body(inner, info)

        with ExitStack() as stack:
            stack.enter_context(patch.object(Analysis, "run_alone", analysed))
            stack.enter_context(patch.object(functions, "run_body", ran))
            yield self

    @property
    def steps(self) -> int:
        """Nodes that were run, those of called functions too."""
        return sum(each.recorder.steps for each in self.analyses)

    @property
    def steps_for_each_node(self) -> float:
        """Nodes that were run, for each node of the checked files."""
        sizes = {each.module.path: each.module.structure.size for each in self.analyses}
        return self.steps / sum(size for path, size in sizes.items() if path in self.checked)

    @property
    def runs_for_each_key(self) -> float:
        """Runs of functions for each distinct (function, arguments)."""
        return self.runs.total() / len(self.runs)


def worked(files: Iterable[str]) -> Work:
    """The work of a cold check of some files in this process."""
    with Work().counting() as work:
        for source, report in check_files(list(files), active_rules(AUDIT), AUDIT):
            assert not report.problems
            work.checked.add(Path(source.path).absolute())
    return work


if __name__ == "__main__":
    folders = (below(path, AUDIT) if Path(path).is_dir() else [path] for path in sys.argv[1:])
    done = worked(file for files in folders for file in files)
    print(
        f"{len(done.checked)} files, {done.steps_for_each_node:.2f} steps for each node, {done.runs_for_each_key:.2f} "
        f"runs for each of {len(done.runs)} (function, arguments)"
    )
