"""TPF118: positions on the CPU that index a tensor on the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Need, Severity, lowered, surest, weakest
from perflint.rules.base import ExpressionSite, Group, Rule, SubscriptSite, device_confidence, often, shown
from perflint.rules.placement import host_confidence
from perflint.rules.sync._copied_once import copied_once
from perflint.rules.sync._indices import Index, Part, parts
from perflint.rules.sync._positions import on_device
from perflint.semantics.purpose.need import need_of_numbers
from perflint.semantics.structure import last_name
from perflint.semantics.values import Kind, Sequence, Tensor


class ListIndex(Rule):
    """
    ## What it does
    Finds GPU tensors that are indexed with positions on the CPU: a list (`x[[0, 2]]`,
    `x[:, [1, 3]]`), a range, a NumPy array, or a tensor of integers on the CPU.

    ## Why is this bad
    torch turns the positions into a tensor and copies it to the GPU from pageable memory. The CPU
    waits for this copy each time, although the positions often never change.

    ## When it is fine
    Integers and slices need no copy (`x[:, 1:3]` instead of `x[:, [1, 2]]`, but the result is a
    view). A boolean mask on the CPU is copied without blocking. Indexing on the CPU.

    ## Bad
    ```python
    import torch

    class Swap(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            return x[:, [2, 1, 0]]
    ```

    ## Good
    ```python
    import torch

    class Swap(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            return x.flip(1)
    ```

    ## Fix safety
    A range gets `device=`, also behind `[:, None]`, `unsqueeze`, `view` and `expand`: `x[torch.arange(n), y]` becomes
    `x[torch.arange(n, device=x.device), y]`, and
    `range(len(y))` becomes such a range. It is safe if x is certainly a tensor and the range certainly holds
    integers that `torch.arange` takes, and unsafe otherwise.

    A list of numbers at equal distances becomes a slice: `x[:, [4, 6, 8]]` becomes `x[:, 4:9:2]`, and `x[[-1]]`
    becomes `x[-1:]`. The slice is a view, so the fix is offered only if the result is read and nothing
    writes to x meanwhile. It is safe for operations that work element by element. It is unsafe for
    products, sums and layers, which may round differently for another layout. A store to a slice is
    unsafe, too: it raises for an expanded tensor. Positions outside of the tensor raise no error any
    more: the slice ends before them.

    Two to four other numbers get an unsafe fix: `x[:, [2, 0]]` becomes `torch.stack([x[:, 2], x[:, 0]], 1)`,
    whose layout in memory may differ. Longer lists that are written there have no fix: positions that never change
    belong in a buffer.

    The positions are copied once if a name stands for them, and nothing changes them or the name in between:
    `rows_at = torch.as_tensor(rows, device=x.device)` in front of the first use, `order.to(x.device)` for a tensor,
    and `x[rows_at]` at each use. The indexed tensors must certainly be on one device. A list of integers is copied
    from pinned memory without blocking the CPU, so that one use is enough; if only an annotation says that it is a
    list, the fix is only shown, because callers may pass an array or a mask. The copies are unsafe: the positions
    stay in memory on the GPU, and an array of 8-bit or 16-bit numbers raises an error, where torch made numbers of 64
    bits. An array that `numpy.arange` or `numpy.random.permutation` makes is copied with `dtype=torch.long`, which
    cuts floats as an index does. Other arrays that may hold floats, code in a `try` block, TorchScript, compiled code,
    and projects that trace or export models get no such fix.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line, once for each list; a trace shows
    `Memcpy HtoD (Pageable -> Device)` inside `aten::index`.

    ## References
    - [Tensor indexing](https://docs.pytorch.org/cppdocs/notes/tensor_indexing.html)
    """

    code, name = "TPF118", "list-index"
    effect, severity = Effect.SYNC, Severity.WARNING
    group = Group.NUMBERS
    measured = ("list-index-gpt", "list-index-gpt-host-work", "list-index-policy")
    listens = (SubscriptSite,)

    def need(self, site: ExpressionSite) -> Need:
        return need_of_numbers(site)

    def check(self, site: SubscriptSite) -> Iterator[Finding]:
        if (confidence := _confidence(site)) is not None:
            yield self.finding(
                site,
                f"{shown(site)} copies the positions to the GPU: the CPU waits for the copy{often(site)}",
                confidence=confidence,
                help=_cure(site),
                fix=on_device(site) or copied_once(site),
            )


def _cure(site: SubscriptSite) -> str:
    index = site.node.slice
    elements = index.elts if isinstance(index, ast.Tuple) else [index]
    if any(isinstance(each, ast.Call) and last_name(each) in ("range", "arange") for each in elements):
        return "Make the positions on the GPU: `torch.arange(…, device=…)`."
    return "Index with a slice or with integers, or keep the positions on the GPU, in a buffer."


def _confidence(site: SubscriptSite) -> Confidence | None:
    if site.mode == "delete":
        return None
    found = [confidence for part in parts(site) if (confidence := _copied(part, site)) is not None]
    if not found:
        return None
    receiver = _on_device(site)
    if receiver is None:
        return None
    return weakest(receiver, found[0], *([Confidence.MEDIUM] if _is_unclear(site) else []))


def _is_unclear(site: SubscriptSite) -> bool:
    """True if the index is a tuple of unknown length: its parts may stand for others."""
    index = site.value(site.node.slice)
    return isinstance(index, Sequence) and index.items is None and len(parts(site)) > 1


def _on_device(site: SubscriptSite) -> Confidence | None:
    """How sure it is that the indexed tensor is on the GPU: a tensor on the CPU takes no positions from the GPU."""
    receiver = device_confidence(site.value(site.node.value))
    if receiver is None:
        return None
    others = [part.value for part in parts(site) if part.kind is Index.POSITIONS]
    known = [confidence for value in others if (confidence := device_confidence(value)) is not None]
    # Positions of unknown rank may be one number, which a tensor on the CPU takes from any device.
    return surest(receiver, weakest(Confidence.MEDIUM, *known)) if known else receiver


def _copied(part: Part, site: SubscriptSite) -> Confidence | None:
    """How sure it is that a part of the index is copied to the device."""
    if part.kind is Index.LIST:
        return Confidence.HIGH if len(part.value.members) == 1 else Confidence.MEDIUM
    if part.kind is Index.HOST_MASK:
        return None if site.mode == "load" else host_confidence(part.value)
    if part.kind is not Index.HOST_POSITIONS:
        return None
    tensor = part.value.tensor
    assert isinstance(tensor, Tensor)
    if tensor.rank == 0:
        return None
    confidence = host_confidence(part.value)
    if confidence is None or tensor.kind is Kind.INT:
        return confidence
    return lowered(confidence)
