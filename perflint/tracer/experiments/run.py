"""Chooses the experiments, makes them within their time, and says what they showed."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from perflint.engine.crashes import contained
from perflint.findings import Problem
from perflint.tracer.events import Experiment, Failure, ModuleCall, Place, Step
from perflint.tracer.experiments import optimizers
from perflint.tracer.experiments.attention import AttentionWeights
from perflint.tracer.experiments.base import LayerExperiment, Mode, NotPossible, Pair, Proposal
from perflint.tracer.experiments.chains import ChannelsLastChains
from perflint.tracer.experiments.launches import Compile, CompileWithGraphs, CudaGraph
from perflint.tracer.experiments.layers import per_step
from perflint.tracer.experiments.live import Live, RootCall
from perflint.tracer.experiments.models import (
    LAUNCH_BOUND,
    Autocast,
    AutocastChannelsLast,
    ChannelsLast,
    FusedNorms,
    ModelExperiment,
    Reparameterisation,
    Subject,
    Tf32,
)
from perflint.tracer.experiments.norms import BiasBeforeNorm, ConvBnFusion
from perflint.tracer.experiments.regions import GraphedCallables
from perflint.tracer.experiments.sizes import ChannelMultiples, VocabularyPadding
from perflint.tracer.experiments.state import undisturbed
from perflint.tracer.experiments.timing import Clock, Timing, compare
from perflint.tracer.modules import tensors
from perflint.tracer.trace import Trace

LAYERS: tuple[LayerExperiment, ...] = (
    VocabularyPadding(),
    BiasBeforeNorm(),
    AttentionWeights(),
    ChannelMultiples(),
    ConvBnFusion(),
)
INSTEAD: tuple[LayerExperiment, ...] = (ChannelsLastChains(),)
"""Experiments with layers, if the whole model cannot be tried."""
OF_EVALUATION: tuple[ModelExperiment, ...] = (FusedNorms(), Reparameterisation())
"""The experiments that change a model which is not trained any more."""
MODELS: tuple[ModelExperiment, ...] = (
    Tf32(),
    Autocast(),
    ChannelsLast(),
    AutocastChannelsLast(),
    *OF_EVALUATION,
    CudaGraph(),
    GraphedCallables(),
    Compile(),
    CompileWithGraphs(),
)
SMALLER: tuple[ModelExperiment, ...] = (Compile(), CompileWithGraphs())
"""The experiments with modules that the program calls besides the largest."""
MORE_ROOTS = 3
"""The most of these modules."""
LAYER_SECONDS, MODEL_SECONDS = 0.3, 1.5
"""For how long each is timed."""
STARTING = 10.0
"""Seconds that the compiler takes for the smallest model."""
MOSTLY_IDLE = 0.5
"""The part of a step in which the GPU is idle, from which graphs are compiled first: they remove waits for launches."""
PART = "experiments"


@dataclass(frozen=True, slots=True)
class _Task:
    """An experiment that is still to be made."""

    title: str
    seconds: float
    """About how long it takes before anything can be timed."""
    timed: float
    queued: bool
    build: Callable[[], Pair]
    records: Callable[[Timing, float | None, str], Iterator[Experiment]]
    is_late: bool = False
    """True if others that compile promise more."""


class Experiments:
    """Those of one program, once its steps have been recorded.

    `idle` is the part of a step in which the GPU had nothing to do, None if unknown; `steps`
    is how many the calls are of; `made` knows where modules were constructed.
    """

    def __init__(
        self,
        calls: Sequence[ModuleCall],
        live: Live,
        idle: float | None,
        steps: int,
        made: Callable[[Any], Place | None],
    ) -> None:
        devices = [facts.device for call in calls for facts in call.inputs]
        self._device = next((device for device in devices if device.startswith("cuda")), "cpu")
        # What is on another device is not timed: a clock is of one.
        self._calls = [call for call in calls if {facts.device for facts in call.inputs} <= {self._device}]
        self._live = live
        self._idle = idle
        self._steps = max(steps, 1)
        self._made = made
        self._problems: list[Problem] = []

    def run(self, seconds: float) -> list[Experiment | Failure]:
        """Make as many as fit into so many seconds. The process is as before when this returns."""
        found: list[Experiment | Failure] = []
        left_out: list[str] = []
        watched = contained(self._problems, PART, lambda: ("an experiment", None, "please report this"))
        with watched, undisturbed(), self._on_device():
            deadline = time.perf_counter() + seconds
            for task in self._tasks():
                if time.perf_counter() + task.seconds + task.timed > deadline:
                    left_out.append(task.title)
                else:
                    found.extend(self._made_of(task))
        self._live.forget()
        found.extend(Failure(problem.path or PART, problem.message) for problem in self._problems)
        if left_out:
            named = ", ".join(left_out[:3]) + (f" and {len(left_out) - 3} more" if len(left_out) > 3 else "")
            found.append(Failure(PART, f"no time was left within {seconds:g} s for {named}"))
        return found

    def _on_device(self) -> AbstractContextManager[Any]:
        import torch

        return torch.cuda.device(self._device) if self._device != "cpu" else nullcontext()

    def _tasks(self) -> Iterator[_Task]:
        """The cheap ones first, and those of layers by what they may save; those that compile last.

        If the GPU waits most of the time, faster layers save little: those of layers are last then.
        """
        of_model = list(self._of_model())
        yield from (task for task in of_model if not task.seconds)
        yield from self._of_optimizers()
        compiling = sorted((task for task in of_model if task.seconds), key=lambda task: task.is_late)
        of_layers = self._of_layers(LAYERS if of_model else (*LAYERS, *INSTEAD))
        yield from itertools.chain(compiling, of_layers) if self._is_mostly_idle else (*of_layers, *compiling)

    @property
    def _is_mostly_idle(self) -> bool:
        return self._idle is not None and self._idle >= MOSTLY_IDLE

    def _made_of(self, task: _Task) -> Iterator[Experiment | Failure]:
        import torch

        problems: list[Problem] = []
        with contained(problems, PART, lambda: (task.title, None, "please report this")):
            try:
                pair = task.build()
                differs = pair.difference()
                timing = compare(pair.before, pair.after, Clock(self._device, task.queued), task.timed)
                yield from task.records(timing, differs, pair.note)
            except NotPossible as reason:
                yield Failure(PART, f"{task.title}: {reason}")
            except torch.cuda.OutOfMemoryError:
                yield Failure(PART, f"{task.title}: the GPU's memory does not suffice")
        for problem in problems:
            yield Failure(PART, problem.message)

    # Layers.

    def _of_layers(self, experiments: Sequence[LayerExperiment]) -> Iterator[_Task]:
        proposals = [proposal for experiment in experiments for proposal in experiment.propose(self._calls)]
        for proposal in sorted(proposals, key=lambda each: -each.work):
            first = proposal.calls[0]

            def records(
                timing: Timing, differs: float | None, note: str, proposal: Proposal = proposal
            ) -> Iterator[Experiment]:
                return _of_places(proposal, timing, differs, note)

            title = f"{proposal.name} of {first.name or proposal.subject}"
            yield _Task(title, 0.0, LAYER_SECONDS, True, proposal.build, records)

    # The whole model.

    def _of_model(self) -> Iterator[_Task]:
        roots = self._live.roots()
        for first in roots[:1]:
            yield from self._of_root_module(first, MODELS, "the whole model")
            evaluation = self._live.evaluation_of(first)
            if evaluation is not None:
                yield from self._of_root_module(evaluation, OF_EVALUATION, "the whole model in evaluation")
        # A GAN has two models, and an agent may have several.
        known = [each for each in roots[1:] if self._made(each.module()) is not None]
        for root in known[:MORE_ROOTS]:
            yield from self._of_root_module(root, SMALLER, type(root.module()).__name__)

    def _of_root_module(self, root: RootCall, experiments: Sequence[ModelExperiment], named: str) -> Iterator[_Task]:
        """The experiments with one of the modules that the program calls by itself."""
        if root.mode.device != self._device:
            return
        if root.missing:
            self._problems.append(Problem(PART, f"of {named}: {root.missing}"))
            return
        subject = self._subject(root, named)
        if subject is None:
            return
        number = sum(1 for module in subject.module.modules() if not next(module.children(), None))
        for experiment in experiments:
            change = experiment.change(subject)
            if not change:
                continue

            def build(experiment: ModelExperiment = experiment) -> Pair:
                return experiment.build(subject)

            def records(
                timing: Timing,
                differs: float | None,
                note: str,
                experiment: ModelExperiment = experiment,
                change: str = change,
            ) -> Iterator[Experiment]:
                yield self._of_root(root, (experiment.name, experiment.codes, change), timing, differs, note)

            takes = STARTING + experiment.seconds * number if experiment.seconds else 0.0
            is_late = self._is_mostly_idle and experiment.name != CompileWithGraphs.name
            yield _Task(f"{change} of {named}", takes, MODEL_SECONDS, False, build, records, is_late)

    def _subject(self, root: RootCall, named: str) -> Subject | None:
        """A copy of the model that has been called once; None if that fails, which is reported once."""
        import torch

        doing = f"of {named}: a call of a copy of it"
        with contained(self._problems, PART, lambda: (doing, None, "please report this")):
            try:
                subject = Subject(root, self._calls, self._idle, _room())
                subject.run(subject.module)()
            except NotPossible as reason:
                self._problems.append(Problem(PART, f"of {named}: {reason}"))
            except torch.cuda.OutOfMemoryError:
                self._problems.append(Problem(PART, f"of {named}: the GPU's memory does not suffice"))
            else:
                return subject
        return None

    def _of_root(
        self,
        root: RootCall,
        what: tuple[str, tuple[str, ...], str],
        timing: Timing,
        differs: float | None,
        note: str,
    ) -> Experiment:
        module: Any = root.module()
        name, codes, change = what
        shapes = tuple(tuple(tensor.shape) for tensor in tensors((root.arguments, root.named)))
        parameter = next(iter(module.parameters()))
        dtype = root.mode.autocast or str(parameter.dtype).removeprefix("torch.")
        return _experiment(
            timing,
            name=name,
            codes=codes,
            scope="model",
            place=self._made(module),
            subject=type(module).__name__,
            change=change,
            shapes=shapes,
            dtype=dtype,
            device=root.mode.device,
            calls_per_step=root.count / self._steps,
            difference=differs,
            note=note,
            called=root.place,
        )

    # Optimizers.

    def _of_optimizers(self) -> Iterator[_Task]:
        for optimizer in self._live.optimizers():
            if not optimizers.applies(optimizer, self._device):
                continue

            def build(optimizer: Any = optimizer) -> Pair:
                return optimizers.build(optimizer)

            def records(
                timing: Timing, differs: float | None, note: str, optimizer: Any = optimizer
            ) -> Iterator[Experiment]:
                first = optimizer.param_groups[0]["params"][0]
                dtype = str(first.dtype).removeprefix("torch.")
                yield _experiment(
                    timing,
                    name=optimizers.NAME,
                    codes=optimizers.CODES,
                    scope="optimizer",
                    place=self._made(optimizer),
                    subject=optimizers.subject(optimizer),
                    change=optimizers.CHANGE,
                    shapes=(),
                    dtype=dtype,
                    device=str(first.device),
                    calls_per_step=1.0,
                    difference=differs,
                    note=note,
                )

            queued = self._idle is not None and self._idle < LAUNCH_BOUND
            yield _Task(f"{optimizers.CHANGE} of the optimizer", 0.0, MODEL_SECONDS, queued, build, records)


def _of_places(proposal: Proposal, timing: Timing, differs: float | None, note: str) -> Iterator[Experiment]:
    """A record for each place that constructed some of the layers."""
    places: dict[Place | None, list[ModuleCall]] = {}
    for call in proposal.calls:
        places.setdefault(call.made, []).append(call)
    for place, calls in places.items():
        first = calls[0]
        names = list(dict.fromkeys(call.name for call in calls))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        dtype = first.autocast or next((f.dtype for f in (*first.inputs, *first.outputs) if "int" not in f.dtype), "")
        yield _experiment(
            timing,
            name=proposal.name,
            codes=proposal.codes,
            scope="layer",
            place=place,
            subject=f"{names[0]}{more} {proposal.subject}".strip(),
            change=proposal.change,
            shapes=tuple(facts.shape for facts in first.inputs),
            dtype=dtype,
            device=Mode.of(first).device,
            calls_per_step=sum(map(per_step, calls)),
            difference=differs,
            note=note,
        )


def _experiment(timing: Timing, calls_per_step: float, **known: Any) -> Experiment:
    return Experiment(
        **known,
        before_ms=round(timing.before_ms, 5),
        after_ms=round(timing.after_ms, 5),
        ratio=round(timing.ratio, 4),
        low=round(timing.low, 4),
        high=round(timing.high, 4),
        repeats=timing.repeats,
        calls_per_step=round(calls_per_step, 4),
    )


def idle_part(trace: Trace) -> float | None:
    """The part of a step in which the GPU has nothing to do, from 0 to 1; None without a timeline."""
    profiled = [step for step in trace.of(Step) if step.profiled]
    if not profiled or not trace.step_ms:
        return None
    idle = trace.idle_share * sum(step.idle_ms for step in profiled) / len(profiled)
    return min(idle / trace.step_ms, 1.0)


def _room() -> int:
    """Bytes that a step takes beyond what stays, as far as the allocator remembers."""
    import torch

    cuda: Any = torch.cuda
    if not cuda.is_initialized():
        return 0
    return max(int(cuda.max_memory_allocated()) - int(cuda.memory_allocated()), 0)
