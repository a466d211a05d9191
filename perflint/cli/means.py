"""Options about the time that a run takes: the cache, worker processes, and the line that shows progress."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.engine.files import PLAIN, Means

if TYPE_CHECKING:
    from argparse import _ArgumentGroup

    from perflint.engine.timings import Timings

_SILENT = 1.0
"""Seconds of a run that needs no line of progress."""
_INTERVAL = 0.2


def add_cache(parser: ArgumentParser) -> _ArgumentGroup:
    """The options about the cache; the group, for more."""
    group = parser.add_argument_group("time")
    group.add_argument("--no-cache", action="store_true")
    group.add_argument(
        "--cache-dir", metavar="DIR", help="the folder of the cache (default: PERFLINT_CACHE_DIR, or the user's)"
    )
    return group


def add_jobs(parser: ArgumentParser) -> _ArgumentGroup:
    """The options about the cache and the number of processes; the group, for more."""
    group = add_cache(parser)
    group.add_argument("--jobs", "-j", type=_jobs, default=None, metavar="N")
    return group


def add_arguments(parser: ArgumentParser) -> None:
    """The options about the cache, processes and other machines."""
    group = add_jobs(parser)
    group.add_argument("--dask", metavar="ADDRESS")
    group.add_argument("--shard", type=_shard, default=(1, 1), metavar="I/N")
    group.add_argument("--timings", action="store_true")


def cache_folder(arguments: Namespace) -> Path | None:
    """The folder of the cache; None if there is to be none."""
    if arguments.no_cache:
        return None
    from perflint.engine.cache.places import user_folder

    return user_folder(arguments.cache_dir)


@contextmanager
def means(arguments: Namespace, writes_last: bool = False) -> Iterator[Means]:
    """The means of a run. A line of progress is shown on a terminal, and removed at the end.

    It needs a terminal without other lines: findings go elsewhere, or are written after the run.
    """
    given = vars(arguments)
    line = Progress() if sys.stderr.isatty() and (writes_last or not sys.stdout.isatty()) else None
    try:
        if given.get("timings"):
            yield _timed(arguments)
            return
        jobs = arguments.jobs or _processors()
        show = line.show if line is not None else None
        shard = given.get("shard", PLAIN.shard)
        yield Means(cache_folder(arguments), jobs, given.get("dask"), shard, progress=show)
    finally:
        if line is not None:
            line.clear()


def _timed(arguments: Namespace) -> Means:
    from perflint.engine.timings import Timings

    return Means(shard=arguments.shard, timings=Timings())


def timings_text(timings: Timings) -> str:
    """The phases in their order, and the rules, the slowest first."""
    rules = sorted(timings.rules.items(), key=lambda pair: -pair[1])
    rows = [
        *timings.phases.items(),
        ("rules", sum(timings.rules.values())),
        *((f"  {code}", each) for code, each in rules),
    ]
    width = max(len(name) for name, _ in rows)
    return "".join(f"{name:{width}}  {seconds * 1000:10.1f} ms\n" for name, seconds in rows)


class Progress:
    """One line on standard error that says how much is left."""

    def __init__(self) -> None:
        self._began = self._shown = time.monotonic()
        self._is_shown = False

    def show(self, done: int, size: int) -> None:
        """Write the line anew, but not too often."""
        now = time.monotonic()
        spent = now - self._began
        if spent < _SILENT or now - self._shown < _INTERVAL or not done:
            return
        left = spent * (size - done) / done
        self._write(f"perflint: {done * 100 // size}% checked, about {_duration(left)} left")
        self._shown = now

    def clear(self) -> None:
        """Remove the line."""
        if self._is_shown:
            self._write("")

    def _write(self, text: str) -> None:
        # To the start of the line, and clear it.
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
        self._is_shown = bool(text)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise ArgumentTypeError(f"`{text}` is not a part: write 3/16 for the third of sixteen")
    return int(part), int(parts)


def _jobs(text: str) -> int:
    if text == "auto":
        return _processors()
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise ArgumentTypeError(f"`{text}` is not a number of processes: write 1 to 1024, or auto")
    return int(text)
