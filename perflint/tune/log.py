"""The runs of a search, kept in a file, so that one that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perflint.config.errors import ConfigurationError
from perflint.tracer.sketch import Sketch
from perflint.verify.execution import Run, Seen
from perflint.verify.states import States


class Log:
    """A file with a line for each run. The key of a run is all that it depends on.

    Raises ConfigurationError for a file that is something else, OSError for one that cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, deque[Run]] = defaultdict(deque)
        # A search that could not keep its runs ends before the first one.
        path.touch()
        whole, end, cut = path.read_bytes().rpartition(b"\n")
        try:
            for line in whole.splitlines():
                entry = json.loads(line)
                self._known[entry["key"]].append(_run(entry["run"]))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise ConfigurationError(f"{path} does not have the runs of a search", "move it away") from None
        if cut:
            # A search was killed while it wrote.
            path.write_bytes(whole + end)

    def run(self, key: str, do: Callable[[], Run]) -> tuple[Run, bool]:
        """The next run with a key, from the file or by `do`, and true if it is from the file."""
        digest = hashlib.sha256(key.encode()).hexdigest()[:24]
        if self._known[digest]:
            return self._known[digest].popleft(), True
        done = do()
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"key": digest, "run": asdict(done)}) + "\n")
        return done, False


def _run(values: dict[str, Any]) -> Run:
    seen = values["seen"]
    if seen is not None:
        kinds = ("start", "gradients", "final")
        sketches = {
            kind: {name: Sketch(**each | {"sums": tuple(each["sums"])}) for name, each in seen["states"][kind].items()}
            for kind in kinds
        }
        states = States(**seen["states"] | sketches)
        losses = tuple((step, loss) for step, loss in seen["losses"])
        lists = {name: tuple(seen[name]) for name in ("times", "problems")}
        values["seen"] = Seen(**seen | lists | {"losses": losses, "states": states})
    return Run(**values)
