"""The records of a trace. Times are in milliseconds unless a name says otherwise."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """An expression of the user's code; lines and columns from 1, columns in characters, end exclusive."""

    file: str
    """Below the root of the trace with slashes, otherwise absolute."""
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    """The qualified name of the function, `<module>` for the file itself."""
    text: str
    """The first of its lines, stripped, at most `places.TEXT_LIMIT` characters."""


@dataclass(frozen=True, slots=True)
class Hits:
    """How often something happened."""

    steps: int
    """In recorded steps."""
    outside: int = 0
    """In set-up, in warm-up and after the recorded steps, as far as they were watched."""
    windows: tuple[int, ...] = ()
    """In recorded steps, by windows of `Header.steps_per_window` of them; zeros at the end are left out."""


@dataclass(frozen=True, slots=True)
class Header:
    """The traced program, and the settings. The first record of a file."""

    perflint: str
    python: str
    torch: str
    """Empty where the program never imported it."""
    devices: tuple[str, ...]
    """The names of the GPUs that the process could use; empty where it used none."""
    program: tuple[str, ...]
    """The program and its arguments; empty for a trace of a `with` block."""
    root: str
    """The folder that places are relative to."""
    started: str
    """The time in UTC, ISO 8601."""
    step_source: str
    """The source of the steps: `marked`, `optimizer`, `loader`, `module`; empty if there were none."""
    warmup: int
    steps: int
    """How many recorded steps ended, those of the timeline included."""
    steps_per_window: int
    ended: str
    """`finished`, `exit STATUS`, `interrupted`, or the type of the exception that ended the program;
    `running` where the program did not live to say."""
    lines_recorded: bool
    """True if `CandidateLine` records name every line that ran; otherwise only those of some steps, or those that
    were not compiled."""
    rank: int = 0
    world_size: int = 1
    simulated: bool = False
    """True if there was no GPU: a device is the one that a tensor would have been on."""
    line_steps: int = 0
    """In how many recorded steps, from the first on, lines were counted (`CandidateLine.steps`)."""
    watched: bool = True
    """False if the program imported torch in a way that the tracer did not see, so that it recorded only lines."""
    children_seconds: float = 0.0
    """The time that CPUs worked in processes that the program started and waited for: they are not in this trace."""
    call_steps: int = 0
    """In how many recorded steps, from the first on, built-in functions were watched (`Observation.sampled`)."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the user's as it was when it was traced."""

    file: str
    digest: str
    """Of the whole text."""
    lines: tuple[str, ...] = ()
    """Digests of its lines without the space around them, by which lines that have moved are found;
    none where there are more than `places.LINE_LIMIT`."""
    indents: tuple[int, ...] = ()
    """Characters before the text of each line."""


@dataclass(frozen=True, slots=True)
class Step:
    """Recorded steps that followed each other."""

    index: int
    """Of the first, from 0."""
    count: int
    """One, or more where a long run was summed up."""
    ms: float
    """Of one step, the mean if there are more: on the clock of the GPU, or without a GPU, of the host."""
    profiled: bool = False
    """True if the profiler ran: `ms` may then be too long, and the following are known."""
    busy_ms: float = 0.0
    """How long the GPU did anything."""
    idle_ms: float = 0.0
    kernels: int = 0
    copies: int = 0


@dataclass(frozen=True, slots=True)
class Sync:
    """A place where the host waited for the GPU."""

    place: Place
    kind: str
    """`implicit` (torch's sync debug mode saw it), `explicit` (`synchronize` of the device, a stream or an event,
    and `torch.cuda.empty_cache`) or `fallback` (the GPU has no kernel for the operator, which runs on the CPU)."""
    hits: Hits
    allowed: str = ""
    """The reason that `perflint.allow_sync` gave."""
    origin: str = ""
    """`module-move` for a whole module on its way to the device, `compile` for the compiler's own."""
    thread: str = "MainThread"
    inner: str = ""
    """`file:line` of the innermost frame, which may be torch's."""
    stack: tuple[str, ...] = ()
    """`file:line function`, innermost first, without frames of torch and the standard library."""
    promise: str = ""
    """The function around it that is marked `perflint.sync_free`, or that the settings list as free of syncs."""


@dataclass(frozen=True, slots=True)
class PageableCopy:
    """A copy with `non_blocking=True` whose memory on the host is not pinned: it may block all the same."""

    place: Place
    direction: str
    """`host-to-device` or `device-to-host`."""
    bytes: int
    """Of the largest."""
    hits: Hits
    allowed: str = ""
    stack: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CandidateLine:
    """A line of the user's code that ran."""

    file: str
    line: int
    in_steps: bool
    """In a recorded step."""
    outside: bool = False
    """In set-up, in warm-up or after the recorded steps."""
    steps: int = 0
    """In how many of the first `Header.line_steps` recorded steps."""
    watched: bool = True
    """False if it ran only after the recorded steps, when waits were not watched any more."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The outcome of calls at one place, as a witness saw it."""

    place: Place | None
    """None for a fact about the whole process."""
    fact: str
    """The outcome, by the witness that saw it, such as `to.same-tensor`: `witnesses` lists them."""
    hits: Hits
    bytes: int = 0
    """Of the largest tensor concerned."""
    ms: float = 0.0
    """Summed over the hits; 0 if nothing was timed."""
    detail: str = ""
    """Of the first hit: shapes and dtypes, or the options in force."""
    total_bytes: int = 0
    """Summed over the hits."""
    sampled: bool = False
    """True if such calls were watched in the first `Header.call_steps` recorded steps only."""


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """A tensor as a module got or gave it."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    layout: str
    """`contiguous`, `channels_last`, `channels_last_3d`, `strided`, or torch's name of a sparse layout."""
    requires_grad: bool = False


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """Calls of one module with the same kinds of arguments."""

    name: str
    """From the root module, with dots; empty for the root."""
    type: str
    settings: str
    """The text of `extra_repr`; for a `MultiheadAttention`, which has none, the arguments of its constructor."""
    made: Place | None
    """The place of the user's code that constructed it."""
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    training: bool
    grad: bool
    inference: bool
    autocast: str
    """Its dtype; empty where it is off."""
    count: int
    steps: int
    """In how many recorded steps calls were watched at all."""
    follows: str = ""
    """The module whose output is the first of the inputs, unchanged; empty if it is unknown."""


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """The place at which torch.compile gave up on one graph."""

    place: Place | None
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Recompile:
    """Why torch.compile compiled a function again."""

    file: str
    line: int
    """Of the function."""
    function: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Compilation:
    """The time that torch.compile took for a function, or for the rest of it after a graph break."""

    file: str
    line: int
    """Of the function, or of the graph break."""
    function: str
    count: int
    """How often it was compiled."""
    seconds: float


@dataclass(frozen=True, slots=True)
class CudagraphSkip:
    """Why the compiler did not use CUDA graphs."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class AllocatorChurn:
    """The requests of recorded steps to the caching allocator and to the driver."""

    device: int
    steps: int
    allocations: int
    segments_allocated: int
    """`cudaMalloc`; in steady state there should be none."""
    segments_freed: int
    """`cudaFree`, which synchronises."""
    retries: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class HeldMemory:
    """Memory of a GPU that was in use when most of it was, in one recorded step."""

    device: int
    place: Place | None
    """The line of the user's code that allocated it in the step; None if no such line did."""
    source: str
    """`step`: allocated in the step; `before`: parameters, states and others from before it."""
    bytes: int
    count: int
    """Allocations; 0 from before the step."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Time in which the GPU had nothing to do, summed over what has the same cause, place and step."""

    step: int
    """The index of the step."""
    cause: str
    """`sync`: the host had just waited for the GPU and had queued nothing; `loader`: it waited for
    data; `host`: it was behind for another reason."""
    place: Place | None
    """Of the sync; None where no line is known for it."""
    count: int
    ms: float
    """From the end of the work that the host waited for to the start of the next."""
    blocked_ms: float = 0.0
    """How long the host waited: as far ahead of the GPU it would have been without the sync."""
    behind_ms: float = 0.0
    """Further gaps until the host waited again, in which it was still catching up."""

    @property
    def cost_ms(self) -> float:
        """The time that the step would save without the sync: the gaps that the lost lead would have filled."""
        return min(self.blocked_ms, self.ms + self.behind_ms) if self.cause == "sync" else self.ms


@dataclass(frozen=True, slots=True)
class SyncCost:
    """The cost of the syncs of a place per step, from a replay of the profiled steps without their waits."""

    place: Place
    ms: float
    """Their share of what a step saves without any sync: where two wait for the same work, each has half."""
    alone_ms: float
    """The time that a step saves if only these are removed."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Work of one name on the GPU in the profiled steps."""

    name: str
    kind: str
    """`kernel`, `copy` or `set`."""
    count: int
    ms: float


@dataclass(frozen=True, slots=True)
class Activity:
    """One piece of work on the GPU, for a picture of the profiled steps."""

    step: int
    start_us: float
    """From the start of the first profiled step."""
    us: float
    stream: int
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Idle:
    """One stretch in which the GPU had nothing to do, for a picture: the longest of those that `Gap` sums up."""

    step: int
    start_us: float
    """From the start of the first profiled step."""
    us: float
    cause: str
    """As in `Gap`."""
    place: Place | None


@dataclass(frozen=True, slots=True)
class Experiment:
    """A change that was timed with the program's own shapes and types, before and after in turn."""

    name: str
    """The kind of change: `bias-before-norm`, `autocast`, `compile`, …"""
    codes: tuple[str, ...]
    """The rules whose findings it confirms or refutes; empty without any."""
    scope: str
    """The timed part: `layer`, `model` (all of its forward, and backward if it trains) or `optimizer` (its step)."""
    place: Place | None
    """The place of the user's code that constructed the changed module. Equal layers of several places are timed
    once and have a record for each."""
    subject: str
    """The changed part: `layer1.0.conv1 Conv2d(3, 64, …)`."""
    change: str
    """In words: `out_features 1008 instead of 1001`."""
    shapes: tuple[tuple[int, ...], ...]
    """Of the tensors that went in."""
    dtype: str
    """The dtype of the computation; under autocast that of autocast."""
    device: str
    """`cuda:0`, or `cpu`: then times are the host's, and not those of a GPU."""
    before_ms: float
    """Medians of one call."""
    after_ms: float
    ratio: float
    """The median of before / after over the repeats; above 1 the change is faster."""
    low: float
    """The least and the greatest of the repeats' ratios, a twentieth on either side left out."""
    high: float
    repeats: int
    calls_per_step: float
    """How often a recorded step does this, with all layers of `place` that are equal."""
    difference: float | None
    """The largest difference of the outputs, relative to the largest output; None where they are not to be equal."""
    note: str = ""
    called: Place | None = None
    """The user's call of the whole model; None for other scopes."""

    @property
    def saved_ms(self) -> float:
        """The time that a step saves if it is GPU-bound; below 0 the change is slower."""
        return (self.before_ms - self.after_ms) * self.calls_per_step


@dataclass(frozen=True, slots=True)
class Failure:
    """A part of the tracer that could not do its work."""

    part: str
    message: str


Record = (
    SourceFile
    | Step
    | Sync
    | PageableCopy
    | CandidateLine
    | Observation
    | ModuleCall
    | GraphBreak
    | Recompile
    | Compilation
    | CudagraphSkip
    | AllocatorChurn
    | HeldMemory
    | Gap
    | SyncCost
    | Kernel
    | Activity
    | Idle
    | Experiment
    | Failure
)
KINDS: dict[str, type] = {
    "source": SourceFile,
    "step": Step,
    "sync": Sync,
    "pageable": PageableCopy,
    "line": CandidateLine,
    "observation": Observation,
    "module": ModuleCall,
    "graph-break": GraphBreak,
    "recompile": Recompile,
    "compilation": Compilation,
    "cudagraph-skip": CudagraphSkip,
    "allocator": AllocatorChurn,
    "held-memory": HeldMemory,
    "gap": Gap,
    "cost": SyncCost,
    "kernel": Kernel,
    "activity": Activity,
    "idle": Idle,
    "experiment": Experiment,
    "failure": Failure,
}
"""The records that follow the header, by the `record` that a line of the file says it is."""
