"""TPF117: a list or array copied to the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Need, Safety, Severity, lowered, weakest
from perflint.rules._advice import source_of
from perflint.rules._names import READS
from perflint.rules.base import Calls, CallSite, ExpressionSite, Group, Rule, often, shown
from perflint.rules.placement import (
    LEGACY_CONSTRUCTORS,
    LEGACY_ON_DEVICE,
    MOVES,
    Content,
    content,
    creation_confidence,
    creator,
    host_confidence,
    move,
)
from perflint.rules.sync._filling import COUNTED, FILLED, counted_there, filled_there, made_by, same_number
from perflint.rules.sync._scalars import confidence_at
from perflint.rules.sync._uploading import uploaded_later
from perflint.semantics.around import loops_around
from perflint.semantics.dataflow.definitions import definitions
from perflint.semantics.dataflow.origins import Origin, Source
from perflint.semantics.purpose.need import need_of_numbers
from perflint.semantics.structure import keyword, walk
from perflint.semantics.values import NONE, UNKNOWN, Array, Const, Device, Scalar, Tensor, Unknown, Value
from perflint.source.quoting import quoted

_CONSTRUCTORS = ("torch.tensor", "torch.as_tensor", "torch.asarray", "torch.Tensor")
_NEW = ("torch.Tensor.new_tensor", "torch.Tensor.new")


class ListToCuda(Rule):
    """
    ## What it does
    Finds lists, tuples, NumPy arrays and other CPU data that are turned into a tensor and copied to
    the GPU: `torch.tensor(values, device=…)`, `torch.as_tensor(array, device=…)`,
    `torch.tensor(values).to(device)`, `torch.cuda.FloatTensor(values)`, `x.new_tensor([1, 2])`.

    ## Why is this bad
    The data comes from pageable memory, so the CPU waits for the copy. It launches no kernel
    meanwhile, and the GPU runs dry if this happens each step.

    ## When it is fine
    In constructors and set-up code. An empty list copies nothing. Outside of code that runs each
    step the copy is reported as info: once per call or image it takes microseconds. So are numbers
    for a collective, which must be on the GPU, lists that a program without training copies for
    its work, and numbers in place of an argument that is missing (`if lengths is None:`).

    ## Bad
    ```python
    import torch

    class Normalize(torch.nn.Module):
        def forward(self, x):
            mean = torch.tensor([0.485, 0.456, 0.406], device=x.device)
            return x - mean[:, None, None]
    ```

    ## Good
    ```python
    import torch

    class Normalize(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]))

        def forward(self, x):
            return x - self.mean[:, None, None]
    ```

    ## Fix safety
    A list that holds one number, or the same number again and again, becomes `torch.full` on the GPU:
    `torch.tensor([0] * 4, device=d)` becomes `torch.full((4,), 0, device=d)`, and `x.new_tensor([0])` becomes
    `x.new_full((1,), 0)`. That is safe for numbers and
    lengths in the source. It is unsafe for a variable, which may hold a NumPy scalar with a dtype of
    its own, and for a length that may be 0, because a list without elements becomes a tensor of the
    default dtype. For variables that are not proven to be numbers, and for numbers that the dtype cannot hold,
    see scalar-to-cuda.

    `torch.tensor(range(n), dtype=torch.long, device=d)` and `torch.LongTensor(list(range(n))).to(d)` become
    `torch.arange(n, …, device=d)`. That is safe if the first names an integer dtype and `n` is a length, and
    unsafe elsewhere: a negative length raises an error, and without elements and dtype the tensor held floats.
    `torch.Tensor(range(n)).to(d)` becomes `torch.arange(n, dtype=torch.float32, device=d)`, also if the program
    changed the default dtype. Floats above 2^24 may round in another way.

    Other lists get an unsafe fix: `torch.tensor(values, device=x.device)` becomes
    `torch.tensor(values, device="cpu", pin_memory=x.is_cuda).to(x.device, non_blocking=x.is_cuda)`, and
    `torch.cuda.is_available()` decides for a device that cannot be asked. Copies to other devices block as before:
    GPUs of Apple may read memory that is free already (torch 2.13). The values are the same; `device="cpu"`
    stands for callers that have set a default device. Two things change. The data takes pinned memory, which torch
    keeps for later copies. The CPU does not wait for the copy, so an error
    of the GPU appears at a later line. This fix is not offered in code that `torch.compile` compiles, and for data
    that may be a tensor or an array of NumPy, which torch does not pin. It is only shown

    - for a parameter or an attribute that only an annotation calls a list: callers may pass arrays,
    - if the device may be None, which stands for the default device, and other code may have set that to a GPU.

    Better than either: keep constants in a buffer, and make the values of a batch in the collate
    function.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a trace shows a
    `Memcpy HtoD (Pageable -> Device)` and a `cudaStreamSynchronize`.

    ## References
    - [register_buffer](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html)
    """

    code, name = "TPF117", "list-to-cuda"
    effect, severity = Effect.SYNC, Severity.WARNING
    group = Group.NUMBERS
    measured = ("list-to-cuda-gpt", "list-to-cuda-gpt-host-work", "list-to-cuda-policy")
    listens = (Calls(*_CONSTRUCTORS, *LEGACY_ON_DEVICE, *_NEW, *MOVES),)
    replaces = ("TPF201",)

    def need(self, site: ExpressionSite) -> Need:
        need = need_of_numbers(site)
        in_loop = next(loops_around(site.model, site.node), None) is not None
        return Need.ARRAY if need is Need.OPEN and in_loop else need

    def check(self, site: CallSite) -> Iterator[Finding]:
        confidence = _confidence(site)
        if confidence is None:
            return
        fix = _fix(site)
        yield self.finding(
            site,
            f"{shown(site)} is a blocking CPU-to-GPU copy of {_content(site)}{often(site)}",
            confidence=confidence,
            # Reading the file takes longer than the copy.
            severity=Severity.INFO if site.heat is not Heat.HOT and _is_of_file(site) else None,
            help=_cure(site, fix),
            fix=fix,
        )


def _confidence(site: CallSite) -> Confidence | None:
    made: ast.Call | None = site.node
    if site.target in MOVES:
        made = None if site.owner is None else creator(site, site.owner)
    if made is None:
        return None
    target = site.model.target(made)
    kind = content(site, made, target)
    place = _place(site)
    if place is None or kind not in (Content.DATA, Content.TENSOR):
        return None
    data = made.args[0] if made.args else keyword(made, "data")
    if data is None:
        return None
    value = site.value(data)
    if kind is Content.TENSOR:
        given = keyword(made, "device")
        source = host_confidence(value, None if given is None else site.value(given))
        tensor = value.tensor
        if tensor is not None and tensor.device is Device.UNKNOWN:
            # If the argument of `as_tensor` may be a tensor already, the call is mostly there for other values.
            return None
        if source is None and any(member.tensor is None and member != NONE for member in value.members):
            # It may also be a number or a list. Most old types take no tensor of the GPU.
            takes_any = target not in LEGACY_CONSTRUCTORS or target == "torch.Tensor"
            source = Confidence.LOW if takes_any else Confidence.MEDIUM
        return None if source is None else weakest(source, place)
    if value.is_unknown and target != "torch.tensor":
        # A tensor that is on the device already is not copied.
        if target in LEGACY_ON_DEVICE:
            # It may also be the size of a tensor that is left uninitialized.
            return Confidence.LOW
        return None if _stays(site, made, data) else lowered(place)
    return place


def _is_of_file(site: CallSite) -> bool:
    """True if the function that copies the numbers has read them from a file."""
    return any(
        isinstance(binding.value, ast.Call) and site.model.target(binding.value) in READS
        for name in walk(site.node)
        if isinstance(name, ast.Name)
        for binding in definitions(site.model.symbols, name, name.id).bindings
    )


def _stays(site: CallSite, made: ast.Call, data: ast.expr) -> bool:
    """True for `torch.as_tensor(x, device=x.device)`: a tensor, or an array, that stays on its device."""
    device = keyword(made, "device")
    return isinstance(device, ast.Attribute) and device.attr == "device" and site.text(device.value) == site.text(data)


def _data(site: CallSite) -> ast.expr | None:
    """The data that the tensor is made of."""
    made = site.node
    if site.target in MOVES and isinstance(site.node.func, ast.Attribute):
        made = creator(site, site.node.func.value) or made
    return made.args[0] if made.args else keyword(made, "data")


def _content(site: CallSite) -> str:
    """The kind of the data, as far as it is known."""
    data = _data(site)
    value = UNKNOWN if data is None else site.value(data)
    if any(isinstance(member, (Array, Tensor, Unknown)) for member in value.members):
        return "an array" if all(isinstance(member, Array) for member in value.members) else "numbers"
    return "Python numbers"


def _cure(site: CallSite, fix: Fix | None) -> str:
    """The advice, by the source of the numbers."""
    data = _data(site)
    origin = source_of(site, data) if data is not None else None
    if origin is not None and _is_constant(origin):
        return "Make it once and keep it on the GPU: `register_buffer` in `__init__`, or a name before the loop."
    if fix is not None and fix.message in _MADE_THERE:
        return f"{fix.message}: {_MADE_THERE[fix.message]}."
    if isinstance(data, ast.List) and len(data.elts) == 1 and _is_number(site.value(data.elts[0])):
        return f"{FILLED}: {_MADE_THERE[FILLED]}."
    if origin is not None and origin.source is Source.BATCH and data is not None:
        if all(member.tensor is not None for member in site.value(data).members):
            return f"Copy {shown(site, data)} itself: a tensor needs no constructor, and the loader can pin it."
        return "Make the tensor in the collate function, and copy it from pinned memory with `non_blocking=True`."
    if origin is not None and origin.source is Source.STATE and origin.root.startswith("self.") and data is not None:
        if site.text(data) == origin.root:
            return f"If {quoted(origin.root)} rarely changes, make the tensor where it is set, and keep it on the GPU."
    if origin is not None and _counts(site, origin.node):
        return f"Compute it on the GPU (`torch.arange`), or {_AT_ONCE}"
    return f"If the numbers rarely change, make the tensor once and keep it. Else {_AT_ONCE}"


_MADE_THERE = {FILLED: "`torch.full(size, number, device=…)`", COUNTED: "`torch.arange(…, device=…)`"}
_AT_ONCE = "copy all numbers of a step at once, from pinned memory with `non_blocking=True`."


def _is_constant(origin: Origin) -> bool:
    """True for numbers that are written out. A list that begins empty gets its numbers later."""
    if origin.source is not Source.LITERAL or (isinstance(origin.node, ast.List) and not origin.node.elts):
        return False
    return not any(map(_is_variable, ast.walk(origin.node)))


def _is_number(value: Value) -> bool:
    return all(isinstance(member, (Const, Scalar, Unknown)) for member in value.members)


def _counts(site: CallSite, node: ast.AST) -> bool:
    """True for a comprehension over ranges, whose numbers follow from counters."""
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return False
    iterated = [generator.iter for generator in node.generators]
    return all(isinstance(each, ast.Call) and site.model.target(each) == "builtins.range" for each in iterated)


def _fix(site: CallSite) -> Fix | None:
    """The tensor filled or counted on the GPU if its numbers allow that, or else copied from pinned memory."""
    made = made_by(site)
    filled = None if made is None or len(made.args) != 1 else same_number(site.model, made.args[0])
    fixes = (None if filled is None else filled_there(site, filled), counted_there(site), uploaded_later(site))
    possible = [fix for fix in fixes if fix is not None]
    return next((fix for fix in possible if fix.safety is not Safety.DISPLAY), possible[0] if possible else None)


def _is_variable(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))


def _place(site: CallSite) -> Confidence | None:
    if site.target in MOVES:
        moved = move(site)
        return moved.confidence if moved is not None and moved.blocking else None
    if site.target in LEGACY_ON_DEVICE:
        return Confidence.HIGH
    if site.target in _NEW and keyword(site.node, "device") is None:
        return None if site.receiver is None else confidence_at(site, site.receiver)
    return creation_confidence(site)
