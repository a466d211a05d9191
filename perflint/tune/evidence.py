"""The facts of a run that say which changes may pay."""

from __future__ import annotations

from statistics import fmean

from perflint.frozen import dataclass
from perflint.tune.graphs.outlining import Model, Seen
from perflint.tune.graphs.reached import Called
from perflint.verify.execution import Run


@dataclass(frozen=True, slots=True)
class Loader:
    """A loader by the line that makes it, and the share of a step that waits for it."""

    path: str
    line: int
    workers: int
    share: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts of one run; paths are those from the folder of the project."""

    seen: Seen
    loaders: tuple[Loader, ...]
    step_ms: float
    """The mean of its steps."""
    busy_ms: float | None
    """The time of a step in which the GPU works; None without one."""
    oldest: tuple[int, int] | None = None
    """The oldest torch that the project allows; None if that is unknown."""

    @property
    def files(self) -> set[str]:
        """The files of the project that ran in the first steps."""
        called = {path for each in self.seen.calls for path in (each.path, each.callee)}
        called |= {path for each in self.seen.models for path in (each.path, each.holder)}
        called |= {path for path, _ in (*self.seen.evaluations, *self.seen.backwards)}
        return called | set(self.seen.steps) | {each.path for each in self.loaders if each.path}

    @property
    def loading(self) -> float:
        """The share of a step that waits for batches."""
        return min(sum(each.share for each in self.loaders), 1.0)

    @property
    def busy(self) -> float | None:
        """The share of a step in which the GPU works."""
        return None if self.busy_ms is None or not self.step_ms else min(self.busy_ms / self.step_ms, 1.0)


def evidence_of(run: Run, oldest: tuple[int, int] | None = None) -> Evidence:
    """The facts of a run that looked, in a project that allows torch from `oldest` on."""
    look = run.seen.look if run.seen is not None else None
    if run.seen is None or look is None:
        return Evidence(Seen({}, ()), (), 0.0, None, oldest)
    steps: dict[str, set[int]] = {}
    for path, line, _ in look["steps"]:
        steps.setdefault(path, set()).add(line)
    calls = tuple(Called(*each) for each in look["calls"])
    loaders = tuple(Loader(*each) for each in look["loaders"])
    step = fmean(run.seen.times) if run.seen.times else 0.0
    models = tuple(Model(*each) for each in look.get("models", ()))
    evaluations = tuple((path, line) for path, line in look.get("evaluations", ()))
    lines: dict[str, set[int]] = {}
    for path, line in look.get("lines", ()):
        lines.setdefault(path, set()).add(line)
    return Evidence(
        Seen(
            steps,
            calls,
            models,
            evaluations,
            look.get("compiles", False),
            look.get("distributed", False),
            lines,
            look.get("reduces", False),
            tuple((path, line) for path, line in look.get("backwards", ())),
            tuple((path, line) for path, line in look.get("again", ())),
            tuple((*each,) for each in look.get("clears", ())),
            None if "logs" not in look else tuple((*each,) for each in look["logs"]),
            (),
            tuple((*each,) for each in look.get("moving", ())),
        ),
        loaders,
        step,
        look["busy_ms"],
        oldest,
    )
