"""The options of a trace."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

DEFAULT_OUTPUT = "perflint-trace.jsonl.gz"
EXPERIMENT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a trace; paths are absolute, because programs change folders."""

    output: str
    """The file to write; empty for none."""
    root: str
    """The folder that places are relative to."""
    steps: int = 10
    """How many steps to record after warm-up; 0 for all."""
    warmup: int = 5
    """How many steps to let pass; 0 to record from the start."""
    window: int = 3
    """For how many steps to run the profiler; 0 for none."""
    own: tuple[str, ...] = ()
    """Folders and files that are the user's; without any, all that is not installed."""
    fail_on_sync: bool = False
    """True if a program that would succeed fails where a recorded step has a sync that nothing allows."""
    sync_free: tuple[str, ...] = ()
    """Functions that must not wait, as the setting `sync-free-functions` lists them."""
    simulate: bool = False
    """True if there is no GPU and the program is to believe that there is one."""

    experiments: float = 0.0
    """For how many seconds to make experiments when the steps have been recorded; 0 for none."""

    def to_json(self) -> str:
        """A text that `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Options:
        """Read what `to_json` wrote."""
        values = json.loads(text)
        return cls(**values | {name: tuple(values[name]) for name in ("own", "sync_free")})


def output_of(output: str, suffix: str) -> Path:
    """The file with a suffix before its endings: `a.jsonl.gz` and `rank3` give `a.rank3.jsonl.gz`."""
    path = Path(output)
    if not suffix:
        return path
    stem, dot, endings = path.name.lstrip(".").partition(".")
    hidden = path.name[: len(path.name) - len(path.name.lstrip("."))]
    return path.with_name(f"{hidden}{stem}.{suffix}{dot}{endings}")
