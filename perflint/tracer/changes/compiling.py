"""`torch.compile` where the model is made, with the mode that was faster."""

from __future__ import annotations

from perflint.findings import Fix, Safety
from perflint.fixes.imports import spell
from perflint.rules._since import MODULE_COMPILE
from perflint.rules.traced.measured_compile import MeasuredCompile
from perflint.tracer.changes.base import Change, Refused, Won, quote
from perflint.tracer.changes.made import made_at
from perflint.tracer.events import ModuleCall, TensorFacts
from perflint.tracer.experiments.launches import GRAPHS_MODE, IN_PLACE, Compile, CompileWithGraphs

_ANY_MODULE = (2, 0)
"""The first torch with `torch.compile`."""
_KEYS = "keys of checkpoints get the prefix `_orig_mod.`"
_BRINGS = ("TPF7",)
"""The rules that look at compiled code."""
_DATA_PARALLEL = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")


def _write(won: Won) -> Fix | Refused | None:
    """The fix for one model."""
    made = made_at(won.source, won.span)
    if isinstance(made, str):
        return Refused(made)
    if made.has_call("compile") or made.is_passed_to("torch.compile"):
        return Refused("the file compiles it elsewhere")
    if won.source.text.count("torch.jit.script(") or won.source.text.count("torch.jit.trace("):
        return Refused("the file gives models to TorchScript")
    if won.experiment.subject != "DataParallel" and made.is_passed_to(*_DATA_PARALLEL):
        return Refused("it is given to DataParallel, whose replicas would all run the compiled code of the first one")
    shapes = _shapes(won)
    if len(shapes) > 1:
        return Refused(
            f"the recorded steps called the model with {len(shapes)} different shapes, and the experiment timed one"
        )
    graphs = won.experiment.name == CompileWithGraphs.name
    mark = quote(won.source)
    mode = f"mode={mark}{GRAPHS_MODE}{mark}" if graphs else ""
    if won.experiment.note == IN_PLACE:
        return Fix(
            "Compile the model in place",
            Safety.UNSAFE,
            made.behind(f"{made.name}.compile({mode})"),
            since=MODULE_COMPILE,
            brings=_BRINGS,
        )
    spelling = spell(made.symbols, "torch.compile", made.statement)
    if spelling is None:
        return Refused("the name `torch` means something else there")
    given = ", ".join(part for part in (made.name, mode) if part)
    return Fix(
        f"Compile the model ({_KEYS})",
        Safety.RISKY,
        made.behind(f"{made.name} = {spelling.text}({given})"),
        imports=spelling.imports,
        since=_ANY_MODULE,
        brings=_BRINGS,
    )


def _shapes(won: Won) -> set[tuple[tuple[int, ...], ...]]:
    """The shapes that the model was called with in recorded steps, of calls in the mode of the experiment."""
    calls = [
        call for call in won.trace.of(ModuleCall) if not call.name and call.made == won.experiment.place and call.inputs
    ]
    timed = [call for call in calls if _sizes(call.inputs) == won.experiment.shapes]
    modes = {(call.training, call.grad) for call in timed}
    return {_sizes(call.inputs) for call in calls if (call.training, call.grad) in modes}


def _sizes(inputs: tuple[TensorFacts, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(facts.shape for facts in inputs)


CHANGE = Change(MeasuredCompile, (Compile.name, CompileWithGraphs.name), "Compile the model where it is made.", _write)
