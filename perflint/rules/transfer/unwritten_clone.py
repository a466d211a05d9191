"""TPF213: a copy that is never written to, of a tensor that is not written to either."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Safety, Severity
from perflint.rules._memory.bodies import Writers, writers_during
from perflint.rules._memory.operators import is_fresh
from perflint.rules._memory.uses import Fate, Uses
from perflint.rules.base import Calls, CallSite, Rule, often, shown
from perflint.rules.transfer._clones import without_clone
from perflint.semantics.structure import calls_in, last_name
from perflint.semantics.values import Device, Evidence, Instance, Sequence, Tensor, Value

_BY_FUNCTION = ("torch.tensor", "torch.cat", "torch.concat")
_DEEP = "copy.deepcopy"
_DEEPEST = 3
_READS = frozenset({Fate.READ, Fate.COMPUTED, Fate.LAYER})


class UnwrittenClone(Rule):
    """A tensor is cloned, and neither the copy nor the tensor is written to.

    ## What it does
    Finds `x.clone()` whose result is only read (added, compared, concatenated, stored into a part
    of another tensor, passed to a layer), if nothing writes to `x`, or to a tensor that shares its
    memory, while the copy is in use. `.contiguous()` of a slice or of an expanded tensor is also
    such a copy if the result is only read element by element, because strides do not matter then.

    ## Why is this bad
    The copy reads and writes the whole tensor for nothing, doubles the memory, and autograd records
    one more node. Alone, `x.clone() + y` took 1.7 times as long as `x + y` on an H200; a clone
    before each residual branch cost a step of a vision transformer 2%.

    ## When it is fine
    - The copy preserves the value of the tensor before a write to it: `old = x.clone(); x.add_(1)`,
      the parameters before a step of the optimizer. Not reported if a write, or a call that may
      write, is found.
    - Autograd keeps the copy for the backward pass, and the tensor is written to before that, as
      with the queue of keys in contrastive learning. Not reported if the function, or another
      method, writes to it.
    - The copy is written to, returned or stored. Not reported.
    - The tensor is a view of the tensor into which it is stored: `x[1:] = x[:-1].clone()`. Not
      reported.
    - Copies of results of CUDA graphs or compiled functions, which the next call overwrites. Not
      reported if a call to code outside this file stands between the copy and its last use.
    - `.contiguous()` before `.view(…)`, a product, a sum, or any operation that reads in memory
      order: not reported.
    - Layers that write to their input, such as `nn.ReLU(inplace=True)`: if the copy or the tensor
      goes into a layer, the finding has low confidence.

    ## Bad
    ```python
    import torch

    def relative(x: torch.Tensor, centre: torch.Tensor):
        moved = x.clone()
        return moved - centre
    ```

    ## Good
    ```python
    import torch

    def relative(x: torch.Tensor, centre: torch.Tensor):
        return x - centre
    ```

    ## Fix safety
    Risky: `.clone()` or `.contiguous()` is removed. The other forms have no fix, and neither has
    `new = old.clone()`, which would leave a second name for the same tensor. Values and gradients
    are the same. But autograd may keep the tensor itself for the backward pass: if a
    caller writes to it before `backward()`, that raises an error.

    ## How a GPU shows it
    A trace confirms the finding if neither the copy nor its source was written to while the copy lived,
    and refutes it if one of them was, or if `.contiguous()` returned its argument. Torch does not count
    the writes of inference mode, of NumPy and through `.data`: then the trace cannot decide. A profile
    shows `aten::clone` with a copy kernel.

    ## References
    - [torch.clone](https://docs.pytorch.org/docs/stable/generated/torch.clone.html)
    """

    code, name = "TPF213", "unwritten-clone"
    effect, severity = Effect.MEMORY, Severity.INFO
    measured = ("clone-each-layer-vit",)
    listens = (Calls("torch.Tensor.clone", "torch.Tensor.contiguous", *_BY_FUNCTION, _DEEP),)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if site.target == _DEEP:
            if site.heat is Heat.HOT and _holds_tensors(site):
                yield self._whole(site, "copies each tensor in it")
            return
        copied = _copied(site)
        if copied is None or not _may_be_needless(site, copied):
            return
        uses = Uses(site.model)
        uses.follow(site.node)
        harmless = {Fate.READ} if site.target == "torch.Tensor.contiguous" else _READS
        read = bool(uses.fates) and uses.fates <= harmless
        source = _source_confidence(site, copied, uses) if read else None
        if source is None:
            if site.target in _BY_FUNCTION:
                yield self._whole(site, "copies the tensor that it is given")
            return
        tensor = site.value(copied).tensor
        into_layer = Fate.LAYER in uses.fates or source is Confidence.LOW
        low = into_layer or tensor is None or tensor.device is Device.CPU
        yield self.finding(
            site,
            f"{shown(site)} is a copy that nothing writes to{often(site)}",
            confidence=Confidence.LOW if low else Confidence.HIGH,
            help=f"Remove `.{site.target.rpartition('.')[2]}()`."
            if site.target.startswith("torch.Tensor.")
            else f"Use {shown(site, copied)} itself.",
            fix=None if into_layer or _would_be_a_name(site, copied) else without_clone(site, Safety.RISKY),
        )

    def _whole(self, site: CallSite, does: str) -> Finding:
        """The finding for a copy of a whole tensor, whose need is not checked: low confidence."""
        return self.finding(
            site,
            f"{shown(site)} {does}{often(site)}",
            confidence=Confidence.LOW,
            help="Pass the tensors themselves, unless something writes to them.",
        )


def _may_be_needless(site: CallSite, copied: ast.expr) -> bool:
    """True if a call copies a tensor that is not fresh, judged without its uses."""
    tensor = site.value(copied).tensor
    if tensor is None or tensor.evidence is Evidence.USE:
        return False
    if site.target in _BY_FUNCTION:
        return True
    if site.node.args or site.node.keywords:
        return False
    if site.target == "torch.Tensor.clone":
        return not is_fresh(site.model, copied, surely=False)
    return _is_slice(site)


def _copied(site: CallSite) -> ast.expr | None:
    """The tensor that a call copies."""
    if site.target.startswith("torch.Tensor."):
        return site.owner
    if site.has_unpacking or not site.node.args:
        return None
    given = site.node.args[0]
    if site.target == "torch.tensor":
        # With a dtype or device it casts or moves. A value that may also be a list becomes a tensor here.
        plain = isinstance(site.value(given), Tensor) and not site.node.keywords
        return given if plain and not _is_asked_for_its_type(site) else None
    if not isinstance(given, (ast.List, ast.Tuple)) or len(given.elts) != 1 or isinstance(given.elts[0], ast.Starred):
        return None
    return given.elts[0]


def _would_be_a_name(site: CallSite, copied: ast.expr) -> bool:
    """True if a second name for the same tensor would be left: `new = old`, which no author would write."""
    around = site.model.parent(site.node)
    if isinstance(around, (ast.Tuple, ast.List)):
        around = site.model.parent(around)
    return isinstance(copied, (ast.Name, ast.Attribute)) and isinstance(around, (ast.Assign, ast.AnnAssign))


def _is_asked_for_its_type(site: CallSite) -> bool:
    """True if a test around a call looks at types, whatever annotations say."""
    tests = (outer.test for outer in site.model.ancestors(site.node) if isinstance(outer, (ast.If, ast.IfExp)))
    return any(last_name(call) in ("isinstance", "is_tensor", "hasattr", "callable") for call in calls_in(*tests))


def _holds_tensors(site: CallSite) -> bool:
    """True if a deep copy is of tensors, in lists or in objects; those of modules are another matter."""
    return bool(site.node.args) and _is_of_tensors(site, site.value(site.node.args[0]), _DEEPEST)


def _is_of_tensors(site: CallSite, value: Value, depth: int) -> bool:
    if isinstance(value, Tensor):
        return value.evidence is not Evidence.USE
    if depth == 0:
        return False
    if isinstance(value, Sequence):
        return _is_of_tensors(site, value.element, depth - 1)
    if isinstance(value, Instance) and not site.model.is_module(value):
        return any(_is_of_tensors(site, each, depth - 1) for _, each in value.arguments or ())
    return False


_EXPANDS = ("torch.Tensor.expand", "torch.Tensor.expand_as", "torch.Tensor.broadcast_to", "torch.broadcast_to")


def _is_slice(site: CallSite) -> bool:
    """True if the copied tensor is a slice or an expanded tensor, which can be read as it is."""
    assert isinstance(site.node.func, ast.Attribute)
    made = site.node.func.value
    if isinstance(made, ast.Call):
        return site.model.target(made) in _EXPANDS
    if not isinstance(made, ast.Subscript):
        return False
    parts = made.slice.elts if isinstance(made.slice, ast.Tuple) else [made.slice]
    return any(isinstance(part, ast.Slice) for part in parts)


def _source_confidence(site: CallSite, copied: ast.expr, uses: Uses) -> Confidence | None:
    """How sure it is that nothing writes to the source while the copy is in use; None if something may."""
    found = writers_during(site.model, site.node, copied, uses)
    if found > Writers.LAYERS:
        return None
    return Confidence.LOW if found is Writers.LAYERS else Confidence.HIGH
