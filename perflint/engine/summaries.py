"""Makes the summaries of files before they are checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from perflint.config.disk import absolute
from perflint.engine.crashes import Crash, contained
from perflint.engine.projects import Projects
from perflint.semantics.callers.kept import summaries
from perflint.semantics.callers.summary import Summary
from perflint.semantics.depth import deep_stack
from perflint.semantics.model import summary_of
from perflint.semantics.project import TEXT_IN_MEMORY, Project
from perflint.semantics.test_files import is_test_path

_Key = TypeVar("_Key")


def await_checks(projects: Projects, files: Iterable[str]) -> None:
    """Keep the runs that the summaries of some files are made from until the files are checked."""
    for file in files:
        summaries(projects.of(file)).awaited.add(absolute(file))


def groups(sizes: Mapping[_Key, int], processes: int) -> Iterator[list[_Key]]:
    """Parts of the work, in its order, with no more text each than some processes have memory for.

    A process keeps the runs and the trees of files from their first summaries until they are checked.
    """
    found = dict[int, list[_Key]]()
    before = 0
    for part, size in sizes.items():
        found.setdefault(before // (TEXT_IN_MEMORY * processes), []).append(part)
        before += size
    yield from found.values()


def users_first(projects: Projects, files: Iterable[str]) -> list[str]:
    """Some files, each after those that may call its functions.

    A check asks the summaries of these. Each is made from a run, which is kept until the check of that file, too.
    """
    found: dict[Project, dict[Path, str]] = {}
    for file in files:
        found.setdefault(projects.of(file), {})[absolute(file)] = file
    order: dict[str, None] = {}
    for project, by_path in found.items():
        first = project.texts.users_first(by_path) if len(by_path) > 1 else []
        order.update(dict.fromkeys(by_path[path] for path in (*first, *by_path)))
    return list(order)


def summary_before_checks(project: Project, file: str, round: int) -> Summary | None:
    """The summary of a file in a round if its check, or checks of other files, may need it."""
    path = absolute(file)
    if not project.texts.is_connected(path) or is_test_path(path):
        return None
    with contained([], file, _crash), deep_stack():
        return summary_of(project, path, round)
    return None


def _crash() -> Crash:
    # It is reported when a check needs the summary.
    return "a summary", None, ""
