"""`perflint check --watch`: checks again after each edit.

The files are polled: their stamps are compared a few times each second. The cache decides which reports an edit
changes.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from tempfile import TemporaryDirectory

from perflint.cli import options
from perflint.config.errors import ConfigurationError
from perflint.config.pyproject import OWN_FILES, PYPROJECT
from perflint.config.settings import combine
from perflint.engine.cache.files import MISSING, Stamp, stamp_of
from perflint.engine.projects import Projects
from perflint.output.summary import count
from perflint.output.terminal import printable_path
from perflint.output.writer import message_text
from perflint.source.files import STANDARD_INPUT, discover

_SETTINGS = (PYPROJECT, *OWN_FILES, ".gitignore", "requirements.txt", "setup.py", "setup.cfg")
"""Files of a project, besides its code, that the findings depend on."""
_INTERVAL = 0.3
"""Seconds between two looks at the known files and folders."""
_SHARE = 20
"""Searching the folders for new files takes at most one part in so many of the time."""
_CLEAR = "\x1b[2J\x1b[3J\x1b[H"
_MOST_NAMES = 3

Check = Callable[[Namespace], int]
State = Mapping[str, Stamp]


def watch(arguments: Namespace, check: Check) -> int:
    """Check, and check again when a file has changed, until the user interrupts. Raises ConfigurationError."""
    if STANDARD_INPUT in arguments.paths:
        raise ConfigurationError("`--watch` needs files: standard input does not change")
    for name in ("add_ignore", "show_files", "show_settings"):
        if getattr(arguments, name):
            raise ConfigurationError(f"`--watch` and `--{name.replace('_', '-')}` exclude each other")
    with TemporaryDirectory(prefix="perflint-") as folder:
        if arguments.no_cache or os.environ.get("PERFLINT_NO_CACHE"):
            # The user's cache stays as it is, and an edit costs no more than with it.
            arguments.no_cache, arguments.cache_dir = False, folder
            os.environ.pop("PERFLINT_NO_CACHE", None)
        try:
            _watch(arguments, check)
        except KeyboardInterrupt:
            sys.stdout.flush()
            sys.stderr.write("\n" if sys.stderr.isatty() else "")
    return 0


def _watch(arguments: Namespace, check: Check) -> None:
    """Check forever. Raises ConfigurationError if the first check does."""
    clears = sys.stdout.isatty() and arguments.output_file is None
    before: State = {}
    while True:
        began = time.monotonic()
        now = _state(arguments, before)
        searching = time.monotonic() - began
        changed = [path for path in {**before, **now} if before.get(path) != now.get(path)]
        if changed:
            if clears:
                sys.stdout.write(_CLEAR)
            elif before:
                sys.stderr.write(f"{_named(changed)} changed.\n")
            if before:
                _checked(arguments, check)
            else:
                # Faults of the first command end it.
                check(arguments)
            sys.stdout.flush()
            sys.stderr.write(f"Watching {count(len(now), 'file')}; Ctrl-C ends.\n")
            sys.stderr.flush()
            before = now
            # The command turns the collector off, which suits a run that ends.
            gc.collect()
        _wait(now, time.monotonic() + _SHARE * searching)


def _wait(state: State, until: float) -> None:
    """Wait until a known file or folder changes, or until a time."""
    folders = {os.path.dirname(path) or os.curdir for path in state}
    times = {folder: _written(folder) for folder in folders}
    while True:
        time.sleep(_INTERVAL)
        if any(stamp_of(path) != stamp for path, stamp in state.items()):
            return
        if time.monotonic() > until or any(_written(folder) != when for folder, when in times.items()):
            return


def _written(folder: str) -> int:
    """The time at which an entry of a folder was last added or removed; 0 if there is no such folder."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _checked(arguments: Namespace, check: Check) -> None:
    """Run one check. A fault of the settings is reported, and the next edit may mend it."""
    try:
        check(arguments)
    except ConfigurationError as error:
        sys.stdout.flush()
        sys.stderr.write(message_text("error", error.message, error.help, options.style(arguments, sys.stderr)))


def _state(arguments: Namespace, before: State) -> State:
    """The stamps of all files that the findings depend on."""
    try:
        paths = sorted(set(_watched(arguments)))
    except ConfigurationError:
        # The settings have a fault: wait for another edit of the files that are known.
        paths = sorted({*before, *_settings_files(".")})
    return {path: stamp for path in paths if (stamp := stamp_of(path)) != MISSING}


def _watched(arguments: Namespace) -> Iterator[str]:
    """The files that are checked, those of their projects, and those with settings. Raises ConfigurationError."""
    paths = options.paths(arguments)
    stated, root = options.stated(arguments, paths)
    settings = combine(*stated, root=root)
    yield from (place.selection.origin for place in stated)
    yield from discover(paths, settings, arguments.force_exclude, notebooks=True).files
    projects = Projects(settings)
    # The project of a folder is that of a file in it.
    tops = {projects.top_of(os.path.join(path, "_.py") if os.path.isdir(path) else path) for path in paths}
    for top in tops:
        yield from map(os.path.relpath, projects.at(top).files)
        yield from _settings_files(str(top))
    yield from _settings_files(".")
    yield from arguments.trace or ()
    if settings.baseline is not None:
        yield os.path.join(settings.root, settings.baseline)


def _settings_files(folder: str) -> Iterable[str]:
    return (os.path.relpath(os.path.join(folder, name)) for name in _SETTINGS)


def _named(paths: list[str]) -> str:
    """The names of some files, for a message."""
    shown = ", ".join(printable_path(path) for path in paths[:_MOST_NAMES])
    more = len(paths) - _MOST_NAMES
    return f"{shown} and {count(more, 'other file')}" if more > 0 else shown
