"""The reports of rules about a place in a file: spans, edits, fixes, findings and reports.

This module imports nothing else of perflint but `frozen`, so every layer may use it.
"""

from __future__ import annotations

from enum import Enum

from perflint.frozen import dataclass, field


class Severity(Enum):
    """How much a pattern costs.

    A rule's severity is the measured cost of its pattern (`rules/worth.toml`). The severity of a finding that is
    shown depends on its place, too (`engine/severity.py`).
    """

    ERROR = "error"
    """A quarter of a step or more in a representative program."""
    WARNING = "warning"
    """From three percent of a step."""
    INFO = "info"
    """Less, or dependent on shapes that the source does not show."""


class Confidence(Enum):
    """How sure perflint is that the code does what the finding says."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


_LEAST_FIRST = (Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)


def weakest(*confidences: Confidence) -> Confidence:
    """The least of several confidences."""
    return min(confidences, key=_LEAST_FIRST.index)


def surest(*confidences: Confidence) -> Confidence:
    """The most of several confidences."""
    return max(confidences, key=_LEAST_FIRST.index)


def lowered(confidence: Confidence) -> Confidence:
    """One step less, LOW at the least."""
    return _LEAST_FIRST[max(_LEAST_FIRST.index(confidence) - 1, 0)]


class Heat(Enum):
    """How often a line runs."""

    HOT = "hot"
    """In a training, evaluation or decode loop, in `forward`, or called from there."""
    WARM = "warm"
    """In a function whose callers are not known."""
    COLD = "cold"
    """In set-up, import-time, checkpointing, interval-guarded or dead code."""


class Frequency(Enum):
    """How often a line runs, as a unit: the innermost code that repeats it. The most frequent units come first.

    Each value is a word of `engine/judgement.toml`.
    """

    TOKEN = "token"
    LAYER = "layer"
    MICROBATCH = "microbatch"
    ITEM = "item"
    """Several times in a step: a loop inside of it."""
    STEP = "step"
    BATCH = "batch"
    """A batch of an evaluation, or of other code that trains nothing."""
    ITERATION = "iteration"
    """An iteration of a loop that is not known to be one over steps."""
    FILE = "file"
    """An iteration of a loop that reads a file each time."""
    EPOCH = "epoch"
    CALL = "call"
    """A call of a program or of its project: a request, an image, a report."""
    INTERVAL = "interval"
    """Now and then, such as each checkpoint."""
    RUN = "run"
    NEVER = "never"
    UNKNOWN = "unknown"
    """A call from code that is not known."""

    @property
    def words(self) -> str:
        """The frequency as the end of a sentence about a line: "runs every step"."""
        return _FREQUENCIES[self]


_FREQUENCIES = {
    Frequency.TOKEN: "runs for every token",
    Frequency.LAYER: "runs for every layer",
    Frequency.MICROBATCH: "runs for every micro-batch",
    Frequency.ITEM: "runs several times in each step",
    Frequency.STEP: "runs every step",
    Frequency.BATCH: "runs for every batch",
    Frequency.ITERATION: "runs in every iteration of a loop",
    Frequency.FILE: "runs for every file",
    Frequency.EPOCH: "runs once an epoch",
    Frequency.CALL: "runs once for each call of the program",
    Frequency.INTERVAL: "runs now and then",
    Frequency.RUN: "runs once",
    Frequency.NEVER: "does not run",
    Frequency.UNKNOWN: "runs as often as its callers, which are not known",
}


class Purpose(Enum):
    """The job of the code around a line. Each value is a word of `engine/judgement.toml`."""

    TRAINING = "training"
    INFERENCE = "inference"
    """It runs a model, and trains nothing."""
    DECODING = "decoding"
    """Each iteration goes on with the results of the last: tokens, steps of a diffusion."""
    EVALUATION = "evaluation"
    ANALYSIS = "analysis"
    """It evaluates a model or analyses its results, and no training leads to it."""
    METRICS = "metrics"
    DATA = "data"
    SETUP = "setup"
    CHECKPOINT = "checkpoint"
    DRAWING = "drawing"
    OUTPUT = "output"
    """It writes results to a file."""
    TESTS = "tests"
    UNREACHED = "unreached"
    """No program of the project reaches it."""
    COPY = "copy"
    """Its folder is a copy of another one."""
    LIBRARY = "library"
    """Other projects may call it."""
    OTHER = "other"


class Need(Enum):
    """Whether the CPU needs the value of a wait at its place. Each value is a word of `engine/judgement.toml`."""

    NOW = "now"
    """It does: what comes next depends on the value, or only the CPU can take it."""
    ARRAY = "array"
    """NumPy or another library computes with it on the CPU."""
    ONCE = "once"
    """It does not: one copy before or after the loop would do, or none."""
    LATER = "later"
    """It does not: the value could be read later, and together with others."""
    BESIDE = "beside"
    """Another wait right beside it stays, and is reported."""
    OPEN = "open"
    """Nothing is known about it."""

    @property
    def words(self) -> str:
        """The need as a clause; empty if nothing is known about it."""
        return _NEEDS[self]


_NEEDS = {
    Need.NOW: "the CPU needs the value here",
    Need.ARRAY: "code on the CPU computes with the array",
    Need.ONCE: "one copy before or after the loop would do, or none",
    Need.LATER: "the value could be read later, together with others",
    Need.BESIDE: "another wait beside it stays",
    Need.OPEN: "",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """How much a finding counts at its place, and the reason of the row of `engine/judgement.toml` that says so."""

    frequency: Frequency
    purpose: Purpose
    need: Need
    is_information: bool = False
    """True if little is to be gained at this place."""
    reason: str = ""
    evidence: str = ""
    """What shows the purpose, as a clause; empty if nothing does."""


class Effect(Enum):
    """The effect of the pattern on the GPU."""

    SYNC = "sync"
    TRANSFER = "transfer"
    ALLOCATION = "allocation"
    COMPUTE = "compute"
    MEMORY = "memory"
    GRAPH_BREAK = "graph-break"
    RECOMPILE = "recompile"
    CAPTURE = "capture"
    PIPELINE = "pipeline"
    CORRECTNESS = "correctness"


class Safety(Enum):
    """The degree of change that a fix may cause. The rule's page has the details."""

    SAFE = "safe"
    """Same meaning."""
    UNSAFE = "unsafe"
    """May differ in rounding, random numbers, memory or errors."""
    RISKY = "risky"
    """May change what is learned, or which keys a checkpoint has."""
    DISPLAY = "display-only"
    """Shown, never written."""


WRITABLE = (Safety.SAFE, Safety.UNSAFE, Safety.RISKY)
"""The safeties of fixes that can be written, in rising degree: who allows one allows those before it."""


def up_to(greatest: Safety) -> tuple[Safety, ...]:
    """The safeties that are allowed where `greatest` is."""
    return WRITABLE[: WRITABLE.index(greatest) + 1]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a file; lines and columns from 1, columns in characters, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def __lt__(self, other: Span) -> bool:
        """True if it starts first, or ends first where both start at one place."""
        return (self.line, self.column, self.end_line, self.end_column) < (
            other.line,
            other.column,
            other.end_line,
            other.end_column,
        )

    def overlaps(self, other: Span) -> bool:
        """True if the two share a character."""
        return (self.line, self.column) < (other.end_line, other.end_column) and (
            other.line,
            other.column,
        ) < (self.end_line, self.end_column)

    def covers(self, line: int, column: int) -> bool:
        """True if the character at a place is in it."""
        return (self.line, self.column) <= (line, column) < (self.end_line, self.end_column)

    def contains(self, other: Span) -> bool:
        """True if the other lies within this one; each span contains itself."""
        starts = (self.line, self.column) <= (other.line, other.column)
        return starts and (other.end_line, other.end_column) <= (self.end_line, self.end_column)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text of `span` with `text`; an empty span inserts."""

    span: Span
    text: str
    cell: int | None = None
    """As in `Finding`."""


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together, and imports that they need.

    `imports` holds statements such as `import torch`; they are added once a file. `leaves` holds
    the codes of the smaller findings that stand where the cured one was: one bulk copy for many
    reads, one read after a loop for one in each iteration. `brings` holds the starts of codes that may be
    reported anywhere in the file afterwards, because other rules then apply. `since` is the first torch
    version that has the API that the fix writes; None stands for any version. `proof` says in a clause why a
    risky fix is right for this place; without it, the finding must have high confidence. The engine
    decides by both whether the fix is offered (`engine/offers.py`). `by_source` is True if the names and literals at
    the place show that the fix is right, so that it does not depend on what callers pass.
    """

    message: str
    safety: Safety
    edits: tuple[Edit, ...]
    imports: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    since: tuple[int, int] | None = None
    proof: str | None = None
    brings: tuple[str, ...] = ()
    by_source: bool = False


class Ruling(Enum):
    """The kind of a trace's verdict on a finding."""

    CONFIRMED = "confirmed"
    """It happened in recorded steps, and cost time or was not measured."""
    NO_COST = "confirmed, no cost"
    """It happened, and took nothing of a step."""
    REFUTED = "refuted"
    """The code ran, and it did not happen."""
    NOT_EXECUTED = "not executed"
    """The run did not reach the code."""
    UNDECIDED = "undecided"
    """The code ran, and the trace holds no evidence for or against the finding."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a trace on a finding."""

    ruling: Ruling
    why: str
    """The observation, in a clause."""
    ms: float | None = None
    """The cost per step, in milliseconds; None if it was not measured."""
    share: float | None = None
    """Of the step's time, from 0 to 1."""
    per_step: float = 0.0
    """How often it happened in a step."""
    ratio: float | None = None
    """The time of the code as it is over that of the changed code, where an experiment compared them."""


def place_of(path: str, cell: int | None) -> str:
    """A path with the number of a notebook's cell, if there is one."""
    return path if cell is None else f"{path}:cell {cell}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim of one rule about one place."""

    path: str
    span: Span
    code: str
    name: str
    message: str
    severity: Severity
    confidence: Confidence
    heat: Heat
    effect: Effect
    help: str | None = None
    """The advice for this place."""
    fix: Fix | None = None
    verdict: Verdict | None = None
    """The verdict of a trace; None without a trace, and where the trace cannot decide."""
    why: str | None = None
    """Why perflint believes it, in one clause: where the tensor comes from, and which loop runs the line."""
    cost: str | None = None
    """The measured cost of the pattern, in one short sentence with its conditions."""
    function: str | None = None
    """The qualified name of the function around the place; None outside of functions."""
    parts: tuple[Span, ...] = ()
    """Other expressions that the finding reports: there, too, its rule replaces more general ones."""
    group: str | None = None
    """Common to the findings of a rule in one function that have one cause; None if there are no others."""
    cell: int | None = None
    """The cell of a notebook that the lines count in, from 1; None if they count in the text of the file."""
    judgement: Judgement | None = None
    """How much it counts at its place; None for findings that are not about a place in the code."""

    @property
    def place(self) -> str:
        """The path, with the cell of a notebook."""
        return place_of(self.path, self.cell)


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that could not be checked, or a rule that crashed on it.

    `internal` marks perflint's own faults.
    """

    path: str
    message: str
    help: str | None = None
    line: int | None = None
    column: int | None = None
    internal: bool = False
    cell: int | None = None
    """As in `Finding`."""

    @property
    def place(self) -> str:
        """The path, with the cell of a notebook."""
        return place_of(self.path, self.cell)


class Silencer(Enum):
    """The reason why a finding is not shown although its profile would show it."""

    COMMENT = "comment"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class Silenced:
    """A finding that is not shown because a comment or the baseline names it."""

    finding: Finding
    by: Silencer
    reason: str = ""
    """The reason that the comment gives."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The findings of one function that the profile `pedantic` would add: true, but less is to be gained there."""

    path: str
    function: str | None
    """The qualified name; None outside of functions."""
    count: int


@dataclass(slots=True)
class Report:
    """The outcome of a run over some files."""

    findings: list[Finding] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    files: int = 0
    lines: int = 0
    silenced: list[Silenced] = field(default_factory=list)
    unchanged: int = 0
    """How many findings are not shown because their lines have not changed since a revision."""
    hidden: dict[str, int] = field(default_factory=dict)
    """How many findings each stricter profile would add to what is shown."""
    elsewhere: list[Elsewhere] = field(default_factory=list)
    """Those that the profile `pedantic` would add to the default one, by function."""
    verdicts: dict[Ruling, int] = field(default_factory=dict)
    """How many findings that the profile would show without a trace, or shows with it, got which verdict."""
    shard: tuple[int, int] = (1, 1)
    """The part of the files that the run was about, and the number of parts."""
    listing: str = ""
    """A digest of the names of the files of all parts, if there are several."""

    def add(self, part: Report) -> None:
        """Add the report of a file to that of a run."""
        self.findings += part.findings
        self.problems += part.problems
        self.files += part.files
        self.lines += part.lines
        self.silenced += part.silenced
        self.elsewhere += part.elsewhere
        self.unchanged += part.unchanged
        for profile, count in part.hidden.items():
            self.hidden[profile] = self.hidden.get(profile, 0) + count
        for ruling, count in part.verdicts.items():
            self.verdicts[ruling] = self.verdicts.get(ruling, 0) + count

    def silenced_by(self, by: Silencer) -> int:
        """How many findings a kind of silencer keeps from being shown."""
        return sum(each.by is by for each in self.silenced)
