"""TPF116: one Python number copied to the GPU."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Need, Severity
from perflint.rules.base import Calls, CallSite, ExpressionSite, Group, Rule, device_confidence, often, shown
from perflint.rules.placement import MOVES, Content, content, creation_confidence, move
from perflint.rules.sync._filling import NEW_TENSOR, Filled, filled_there, made_by
from perflint.semantics.purpose.need import need_of_numbers
from perflint.semantics.structure import keyword

_CONSTRUCTORS = ("torch.tensor", "torch.as_tensor", "torch.asarray")


class ScalarToCuda(Rule):
    """
    ## What it does
    Finds single Python numbers that become a tensor on the CPU and are copied to the GPU:
    `torch.tensor(0.0, device=…)`, `torch.as_tensor(1, device=…)`, `torch.tensor(3).cuda()`,
    `x.new_tensor(1.0)`.

    ## Why is this bad
    The number is copied from pageable memory and the CPU waits for the copy. `torch.full` with the
    same arguments launches a kernel that takes the number as its argument. On an H200 the copy
    alone takes 1.6 times as long, and one in each of twelve layers adds 3 percent to a GPT training
    step.

    ## When it is fine
    In constructors and set-up code. Often the tensor is not needed at all: arithmetic accepts
    Python numbers.

    ## Bad
    ```python
    import torch

    class Loss(torch.nn.Module):
        def forward(self, predictions):
            total = torch.tensor(0.0, device=predictions.device)
            for prediction in predictions:
                total = total + prediction.mean()
            return total
    ```

    ## Good
    ```python
    import torch

    class Loss(torch.nn.Module):
        def forward(self, predictions):
            total = torch.full((), 0.0, device=predictions.device)
            for prediction in predictions:
                total = total + prediction.mean()
            return total
    ```

    ## Fix safety
    `torch.tensor(number, device=d)` becomes `torch.full((), number, device=d)`, with `dtype` and
    `requires_grad` kept, and `x.new_tensor(number)` becomes `x.new_full((), number)`. It is safe for a
    number in the source: both infer the same dtype. It is unsafe:

    - for a variable, which may hold a NumPy scalar with a dtype of its own: `isinstance(x, float)` is true of some;
    - if the move also changed the dtype, because the number was rounded twice;
    - for `True` and `False` without `dtype`, because `torch.full` turns them into integers in
      TorchScript;
    - for numbers above 65504 in float16 or in an unknown dtype: `torch.tensor` turns a number that
      the dtype cannot hold into infinity, while `torch.full` raises an error on a GPU;
    - for complex numbers without a dtype of at least 64 bits, for integers beyond int64 and numbers of
      `uint64`, because other numbers raise.

    The fix is only shown if the code does not prove that a variable is a number, because `torch.full` takes
    neither lists nor arrays, and waits for a tensor on the GPU. `float(x)`, `len(x)`, `x.item()`, sizes, what is
    computed of these, and a test with `isinstance` are proof. An annotation, a default and an attribute that others
    may set are not: callers pass other values in spite of them.

    `torch.tensor(number).cuda(gpu)` has no fix if `gpu` may be None: `.cuda(None)` is the current
    GPU, and `device=None` is the CPU.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns at the line; a trace shows a
    `Memcpy HtoD (Pageable -> Device)` of a few bytes and a `cudaStreamSynchronize`.

    ## References
    - [torch.full](https://docs.pytorch.org/docs/stable/generated/torch.full.html)
    """

    code, name = "TPF116", "scalar-to-cuda"
    effect, severity = Effect.SYNC, Severity.WARNING
    group = Group.NUMBERS
    measured = ("scalar-to-cuda-gpt", "scalar-to-cuda-gpt-host-work", "scalar-to-cuda-policy")
    listens = (Calls(*_CONSTRUCTORS, NEW_TENSOR, *MOVES),)
    replaces = ("TPF201",)

    def need(self, site: ExpressionSite) -> Need:
        return need_of_numbers(site)

    def check(self, site: CallSite) -> Iterator[Finding]:
        if (confidence := _confidence(site)) is not None:
            yield self.finding(
                site,
                f"{shown(site)} is a blocking CPU-to-GPU copy of one number{often(site)}",
                confidence=confidence,
                help="Use the Python number itself, or fill a tensor on the GPU: `torch.full((), number, device=…)`.",
                fix=_fix(site),
            )


def _confidence(site: CallSite) -> Confidence | None:
    made = made_by(site)
    if made is None or content(site, made, site.model.target(made)) is not Content.NUMBER:
        return None
    if site.target in MOVES:
        moved = move(site)
        return moved.confidence if moved is not None and moved.blocking else None
    if site.target == NEW_TENSOR and keyword(site.node, "device") is None:
        return None if site.receiver is None else device_confidence(site.receiver)
    return creation_confidence(site)


def _fix(site: CallSite) -> Fix | None:
    made = made_by(site)
    return filled_there(site, Filled("()", made.args[0])) if made is not None and made.args else None
