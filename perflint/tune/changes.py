"""The changes that are tried, each as a function from the files of the program to new ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from perflint.frozen import dataclass, replace
from perflint.tune.collectives import joined
from perflint.tune.compiled import OVERHEAD, compiled
from perflint.tune.evidence import Evidence
from perflint.tune.graphs.failing import failing
from perflint.tune.graphs.outlining import outlined, outlined_backward
from perflint.tune.loader import with_workers
from perflint.tune.precision import in_bfloat16, in_channels_last, in_tf32
from perflint.tune.refused import Refused

Texts = Mapping[str, str]
"""Files by their paths from the folder of the project."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a program. `write` returns the new files; it raises Refused."""

    name: str
    title: str
    write: Callable[[Texts, Evidence], dict[str, str]]
    forecast: Callable[[Evidence], float]
    """The share of a step that it may save at most."""
    clears: bool = False
    """True if it is kept as long as it is not slower, since others need it."""
    eager: Callable[[str], str] | None = None
    """Turns its graphs off in a new file, for the proof that they compute the same."""
    is_slow: bool = False
    """True if a trial takes minutes, so that what is quick to try comes first."""
    again: bool = False
    """True if it is tried again once it is kept, since it changes one place at a time."""
    beside: Change | None = None
    """Another change to be tried together with it where it gains nothing, since steps then wait for batches instead."""
    learn: Callable[[str, Texts, Texts], Sequence[Change]] = lambda *_: ()
    """Makes other forms of it where a run of it failed, by what that printed, the texts before and those that ran."""
    parts: Callable[[], Sequence[Change]] = tuple
    """Makes the changes that it consists of, to be tried where it fails or is not proved to compute the same."""
    is_inexact: bool = False
    """True if it may change the numbers where the user allows that."""


def graph(texts: Texts, evidence: Evidence, is_whole: bool = True) -> dict[str, str]:
    """The step as a CUDA graph, or its forward and backward pass; that alone if not `is_whole`. Raises Refused."""
    if evidence.busy is None:
        raise Refused("the steps use no GPU", 1)
    if any(OVERHEAD in text for text in texts.values()):
        raise Refused("a compiled model has graphs of its own", 1)
    ways = [(outlined, evidence.seen.steps), (outlined_backward, {path for path, _ in evidence.seen.backwards})]
    reasons: list[tuple[str, Refused]] = []
    for outline, paths in ways if is_whole else ways[1:]:
        refused: list[tuple[str, Refused]] = []
        for path in sorted(paths):
            try:
                return {path: outline(path, texts, evidence.seen)}
            except Refused as reason:
                refused.append((path, reason))
        reasons += refused[:1]
    if not reasons:
        raise Refused("no line of the project steps an optimizer", 1)
    # The same reason often holds for the whole step and for its forward and backward pass alone.
    told = dict.fromkeys(f"{path}:{reason.line}: {reason.reason}" for path, reason in reasons)
    raise Refused("; without the optimizer's step: ".join(told), reasons[0][1].line)


def _backward(texts: Texts, evidence: Evidence) -> dict[str, str]:
    """The forward and backward pass as a CUDA graph, where the whole step was one. Raises Refused."""
    written = graph(texts, evidence, is_whole=False)
    if written == graph(texts, evidence):
        raise Refused("the forward and backward pass alone was tried", 1)
    return written


def _learned(told: str, known: Texts, tried: Texts, before: tuple[tuple[str, str], ...] = ()) -> list[Change]:
    """A graph without the statement with which the making of this one failed, besides those before."""
    found = failing(told, known, tried)
    if found is None or found in before:
        return []
    all_found = (*before, found)

    def write(texts: Texts, evidence: Evidence) -> dict[str, str]:
        return graph(texts, replace(evidence, seen=replace(evidence.seen, failing=all_found)))

    return [replace(GRAPH, write=write, learn=partial(_learned, before=all_found))]


def _kernels(texts: Texts, evidence: Evidence) -> dict[str, str]:
    """Compiled models without graphs, where they had some. Raises Refused."""
    written = compiled(texts, evidence, "")
    if written == compiled(texts, evidence):
        raise Refused("the compiled models have no graphs", 1)
    return written


def _busy(evidence: Evidence) -> float:
    """Kernels of another format or layout may save half of the work of the GPU."""
    return (evidence.busy or 0.0) / 2


def _idle(evidence: Evidence) -> float:
    return 0.0 if evidence.busy is None else max(1 - evidence.busy - evidence.loading, 0.0)


def _compiling(evidence: Evidence) -> float:
    """Compiled kernels may save half of the work of the GPU. The optimizer's calls stay, unlike in a graph."""
    return max(_idle(evidence) * 0.9, _busy(evidence))


def without_graphs(text: str) -> str:
    """A file whose helper makes no graph: each step is eager, and is observed like a replay."""
    text = text.replace(", most=8)", ", most=0)")
    whole = '__import__("perflint.tracer.replays", fromlist=["replays"]).run_whole(self.step, inputs)'
    return text.replace("self.step(*inputs)", whole)


LOADER = Change(
    "loader", "batches are prepared by worker processes", with_workers, lambda each: each.loading, again=True
)
KERNELS = Change(
    "compile",
    "models are compiled, without CUDA graphs",
    _kernels,
    _busy,
    is_slow=True,
)
COMPILE = Change(
    "compile",
    "models are compiled, with CUDA graphs",
    compiled,
    _compiling,
    eager=without_graphs,
    is_slow=True,
    parts=lambda: [KERNELS],
    beside=LOADER,
)
COLLECTIVES = Change(
    "collectives",
    "collectives of several tensors are joined",
    joined,
    lambda each: max(1 - (each.busy or 0.0) - each.loading, 0.0),
)
LAYOUT = Change(
    "channels_last",
    "weights of convolutions are kept in channels_last",
    in_channels_last,
    _busy,
    is_inexact=True,
)
PRECISION = (
    Change("tf32", "float32 matrices are multiplied in TF32", in_tf32, _busy, is_inexact=True),
    Change("bf16", "forward pass and loss are computed in bfloat16", in_bfloat16, _busy, is_inexact=True),
)
"""Those that change the numbers, if only little."""
GRAPH = Change(
    "graph",
    "the step is replayed as a CUDA graph",
    graph,
    _idle,
    eager=without_graphs,
    again=True,
    beside=LOADER,
    learn=_learned,
    parts=lambda: [
        Change(
            "graph",
            "forward and backward pass are replayed as a CUDA graph",
            _backward,
            _idle,
            eager=without_graphs,
            again=True,
        )
    ],
)


def fixes(
    write: Callable[[Texts, Evidence], dict[str, str]], rules: str = "", parts: Callable[[], Sequence[Change]] = tuple
) -> Change:
    """The fixes of all rules, or of those that are named, which `write` applies."""
    title = f"the fixes of {rules or '`perflint fix --unsafe-fixes`'}"
    return Change("fixes", title, write, lambda _: 1.0, clears=True, parts=parts)
