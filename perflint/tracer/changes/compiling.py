"""`torch.compile` where the model is made, with the mode that was faster."""

from __future__ import annotations

from perflint.findings import Fix, Safety
from perflint.rules._since import MODULE_COMPILE
from perflint.rules.traced.measured_compile import MeasuredCompile
from perflint.tracer.changes.base import Change, Refused, Won, quote, spelled
from perflint.tracer.changes.made import Made, made_at
from perflint.tracer.changes.outputs import kept_output
from perflint.tracer.events import Experiment, ModuleCall, TensorFacts
from perflint.tracer.experiments.launches import GRAPHS_MODE, IN_PLACE, Compile, CompileWithGraphs
from perflint.tracer.modules import TENSOR_LIMIT

_ANY_MODULE = (2, 0)
"""The first torch with `torch.compile`."""
_BY_MODULE = "module"
"""The source of steps that are calls of a model."""
_KEYS = "keys of checkpoints get the prefix `_orig_mod.`"
_BRINGS = ("TPF7",)
"""The rules that look at compiled code."""
_DATA_PARALLEL = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
_WRAPPERS = {
    "DataParallel": "DataParallel copies the model in each call, and the copies run the compiled code of the first",
    "DistributedDataParallel": "the experiment timed the model without the wrapper",
    "FullyShardedDataParallel": "the experiment timed the model without the wrapper",
}
"""Classes that call another model, and the reasons why they are not compiled."""


def _write(won: Won) -> Fix | None:
    """The fix for one model. Raises Refused."""
    if won.experiment.subject in _WRAPPERS:
        raise Refused(_WRAPPERS[won.experiment.subject])
    made = made_at(won.source, won.span)
    _require_plain(made)
    _require_one_shape(won)
    mark = quote(won.source)
    mode = f"mode={mark}{GRAPHS_MODE}{mark}" if won.experiment.name == CompileWithGraphs.name else ""
    if won.experiment.note == IN_PLACE:
        return Fix(
            "Compile the model in place",
            Safety.UNSAFE,
            made.behind(f"{made.name}.compile({mode})"),
            since=MODULE_COMPILE,
            brings=_BRINGS,
        )
    spelling = spelled(made.symbols, "torch.compile", made.statement)
    given = ", ".join(part for part in (made.name, mode) if part)
    return Fix(
        f"Compile the model ({_KEYS})",
        Safety.RISKY,
        made.behind(f"{made.name} = {spelling.text}({given})"),
        imports=spelling.imports,
        since=_ANY_MODULE,
        brings=_BRINGS,
    )


def _require_plain(made: Made) -> None:
    """Raise Refused if the file compiles, scripts or replicates the model."""
    if made.has_call("compile") or made.is_passed_to("torch.compile"):
        raise Refused("the file compiles it elsewhere")
    if any(call in made.source.text for call in ("torch.jit.script(", "torch.jit.trace(")):
        raise Refused("the file gives models to TorchScript")
    if made.is_passed_to(*_DATA_PARALLEL):
        raise Refused("it is given to DataParallel, whose replicas would all run the compiled code of the first one")


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

    A replay overwrites the outputs of the call before. So the model must be called once in a step, no other model may
    replay graphs, and each output must be used up before the next call. Raises Refused if no mode can be written.
    """
    if won.experiment.name != CompileWithGraphs.name:
        return ""
    if won.trace.header.step_source == _BY_MODULE:
        return "the trace counts each call of a model as a step, as in a loop that decodes"
    places = {each.place for each in won.trace.of(Experiment) if each.name == CompileWithGraphs.name}
    if len(places) > 1:
        return f"the program calls {len(places)} models, and a replay of one may overwrite outputs of the others"
    calls = _calls(won)
    number, steps = sum(call.count for call in calls), max((call.steps for call in calls), default=0)
    if number != steps:
        return f"{steps} recorded steps called the model {number} times, and a replay overwrites the output before"
    made = made_at(won.source, won.span)
    if won.called is None:
        return "the model is called in another file, which may keep its outputs until the next call"
    return kept_output(made, won.called)


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
