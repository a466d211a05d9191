"""`torch.compile` where the model is made, with the mode that was faster."""

from __future__ import annotations

from perflint.findings import Edit, Fix, Safety
from perflint.fixes.edits import one_level
from perflint.rules._since import MARK_STEP, MODULE_COMPILE
from perflint.rules.traced.measured_compile import MeasuredCompile
from perflint.tracer.changes.base import Change, Refused, Won, quote, spelled
from perflint.tracer.changes.made import Made, made_at
from perflint.tracer.changes.marks import marked, turn_of
from perflint.tracer.changes.outputs import kept_output
from perflint.tracer.events import Experiment, ModuleCall, Place, TensorFacts
from perflint.tracer.experiments.launches import GRAPHS_MODE, IN_PLACE, Compile, CompileWithGraphs
from perflint.tracer.modules import TENSOR_LIMIT

_ANY_MODULE = (2, 0)
"""The first torch with `torch.compile`."""
_BY_MODULE = "module"
"""The source of steps that are calls of a model."""
_KEYS = "keys of checkpoints get the prefix `_orig_mod.`"
_BRINGS = ("TPF7",)
"""The rules that look at compiled code."""
_BRINGS_WITH_GRAPHS = (*_BRINGS, "TPF601")
"""Also the rule on optimizers, as only programs on a GPU have CUDA graphs."""
_DATA_PARALLEL = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
_WRAPPERS = {
    "DistributedDataParallel": "the experiment timed the model without the wrapper",
    "FullyShardedDataParallel": "the experiment timed the model without the wrapper",
}
"""Classes that call another model, and the reasons why they are not compiled."""
_REPLICAS = "it is given to DataParallel, whose replicas would all run the compiled code of the first one"


def _write(won: Won) -> Fix | None:
    """The fix for one model. Raises Refused."""
    if won.experiment.subject in _WRAPPERS:
        raise Refused(_WRAPPERS[won.experiment.subject])
    made = made_at(won.source, won.span)
    is_spread = won.experiment.subject == "DataParallel"
    _require_plain(made, is_spread=is_spread)
    _require_one_shape(won)
    mark = quote(won.source)
    has_graphs = won.experiment.name == CompileWithGraphs.name
    mode = f"mode={mark}{GRAPHS_MODE}{mark}" if has_graphs else ""
    is_marked = has_graphs and bool(_sharing(won))
    marks = _marks(won, made) if is_marked else ()
    brings = _BRINGS_WITH_GRAPHS if has_graphs else _BRINGS
    also = " and mark the beginning of a step" if marks else ""
    if is_spread and won.experiment.note != IN_PLACE:
        raise Refused(_REPLICAS)
    if won.experiment.note == IN_PLACE:
        statements = (
            # The replicas of several GPUs would run the compiled code of the first one.
            (f"if len({made.name}.device_ids) < 2:", f"{one_level(made.margin)}{made.name}.module.compile({mode})")
            if is_spread
            else (f"{made.name}.compile({mode})",)
        )
        on_one = " if it runs on one GPU" if is_spread else ""
        return Fix(
            f"Compile the model in place{on_one}{also}",
            Safety.RISKY if is_marked else Safety.UNSAFE,
            (*made.behind(*statements), *marks),
            since=MODULE_COMPILE,
            brings=brings,
        )
    spelling = spelled(made.symbols, "torch.compile", made.statement)
    given = ", ".join(part for part in (made.name, mode) if part)
    return Fix(
        f"Compile the model{also} ({_KEYS})",
        Safety.RISKY,
        (*made.behind(f"{made.name} = {spelling.text}({given})"), *marks),
        imports=spelling.imports,
        since=MARK_STEP if is_marked else _ANY_MODULE,
        brings=brings,
    )


def _require_plain(made: Made, *, is_spread: bool) -> None:
    """Raise Refused if the file compiles, scripts or replicates the model."""
    if made.has_call("compile") or made.has_call("module.compile") or made.is_passed_to("torch.compile"):
        raise Refused("the file compiles it elsewhere")
    if any(call in made.source.text for call in ("torch.jit.script(", "torch.jit.trace(")):
        raise Refused("the file gives models to TorchScript")
    if made.is_passed_to(*_DATA_PARALLEL) and not is_spread:
        raise Refused(_REPLICAS)


def _require_one_shape(won: Won) -> None:
    """Raise Refused if the recorded steps called the model with other shapes than the experiment."""
    shapes = _shapes(won)
    if not shapes:
        raise Refused("no recorded step called the model with the shapes that the experiment timed")
    if len(shapes) > 1:
        raise Refused(
            f"the recorded steps called the model with {len(shapes)} different shapes, and the experiment timed one"
        )


def _no_replays(won: Won) -> str:
    """The reason why the program may break the rules of CUDA graphs; empty if it follows them, or without graphs.

    A replay overwrites the outputs of the call before. So each output must be used up before the step calls the model
    again. If the model is called more often than once in a step, or another model replays graphs, a mark must begin
    each step. Raises Refused if no mode can be written.
    """
    if won.experiment.name != CompileWithGraphs.name:
        return ""
    if won.trace.header.step_source == _BY_MODULE:
        return "the trace counts each call of a model as a step, as in a loop that decodes"
    made = made_at(won.source, won.span)
    if won.called is None:
        return f"{_sharing(won)}the model is called in another file, which may keep its outputs until the next call"
    if reason := kept_output(made, won.called):
        return reason
    try:
        if shared := _sharing(won):
            _marks(won, made)
    except Refused as reason:
        return f"{shared}{reason}"
    return ""


def _sharing(won: Won) -> str:
    """The reason why a replay may overwrite outputs that a step still needs, as the start of a clause; else empty."""
    places = _tried_with_graphs(won)
    if len(places) > 1:
        return f"the program calls {len(places)} models, and a replay of one may overwrite outputs of the others; "
    number, steps = _per_step(won)
    if number != steps:
        return f"{steps} recorded steps called the model {number} times, and a replay overwrites the output before; "
    return ""


def _tried_with_graphs(won: Won) -> set[Place | None]:
    return {each.place for each in won.trace.of(Experiment) if each.name == CompileWithGraphs.name}


def _per_step(won: Won) -> tuple[int, int]:
    """The number of recorded calls of the model, and of the steps that made them."""
    calls = _calls(won)
    return sum(call.count for call in calls), max((call.steps for call in calls), default=0)


def _marks(won: Won, made: Made) -> tuple[Edit, ...]:
    """The mark of the step that all models with graphs share. Raises Refused."""
    number, steps = _per_step(won)
    if won.called is None or not steps:
        raise Refused("no recorded step called the model")
    turn = turn_of(made, won.called, number / steps)
    beside = [(made_at(won.source, span), called) for span, called in won.beside if span != won.span]
    if len(beside) + 1 < len(_tried_with_graphs(won)):
        raise Refused("one of them is made in another file")
    for other, called in beside:
        if called is None or turn_of(other, called).owner is not turn.owner:
            raise Refused("they are not called in one step")
    return marked(made, turn)


def _calls(won: Won) -> list[ModuleCall]:
    """The recorded calls of models that the same place made."""
    return [
        call for call in won.trace.of(ModuleCall) if not call.name and call.made == won.experiment.place and call.inputs
    ]


def _shapes(won: Won) -> set[tuple[tuple[int, ...], ...]]:
    """The shapes that the model was called with in recorded steps, of calls in the mode of the experiment."""
    calls = _calls(won)
    # The record of a call has the first of its tensors only.
    timed = [call for call in calls if _sizes(call.inputs) == won.experiment.shapes[:TENSOR_LIMIT]]
    modes = {(call.training, call.grad) for call in timed}
    return {_sizes(call.inputs) for call in calls if (call.training, call.grad) in modes}


def _sizes(inputs: tuple[TensorFacts, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(facts.shape for facts in inputs)


CHANGE = Change(
    MeasuredCompile,
    (Compile.name, CompileWithGraphs.name),
    "Compile the model where it is made.",
    _write,
    hinders=_no_replays,
)
