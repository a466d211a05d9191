"""TPF904: the deprecated argument that names the device for which a loader pins."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Fix, Heat, Safety, Severity
from perflint.rules._arguments import dropped
from perflint.rules._project_text import some_file_says
from perflint.rules.base import Calls, CallSite, Rule
from perflint.source.quoting import quoted

_ASKED = re.compile(r"\.pin_memory_device\b|vars\(|__dict__|[\"']pin_memory_device\b")
"""Texts that read the attributes of loaders."""


class PinMemoryDevice(Rule):
    """A loader names the device for which it pins memory.

    ## What it does
    Finds `DataLoader(…, pin_memory_device=…)`.

    ## Why is this bad
    torch pins for the accelerator that it finds, and ignores the argument: with `pin_memory=True`
    it warns in each epoch, without it nothing is pinned at all. It costs no measurable time. It is
    a warning because the argument has no effect, and will be removed.

    ## When it is fine
    Code that also runs on torch versions that read it. An empty string, which is the default.

    ## Bad
    ```python
    from torch.utils.data import DataLoader

    def loader(dataset):
        return DataLoader(dataset, batch_size=64, pin_memory=True, pin_memory_device="cuda")
    ```

    ## Good
    ```python
    from torch.utils.data import DataLoader

    def loader(dataset):
        return DataLoader(dataset, batch_size=64, pin_memory=True)
    ```

    ## Fix safety
    Safe: the argument is removed if it is a literal that torch ignores, "cuda" or "cuda:0". Batches
    are the same. Unsafe if a file that may run in the same process reads attributes of this name, or `vars(loader)`.

    ## How a GPU shows it
    A trace confirms the finding if the line ran under a torch that deprecates the name.

    It does not: "pin_memory_device is deprecated" shows on the CPU.

    ## References
    - [torch.utils.data.DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
    """

    code, name = "TPF904", "pin-memory-device"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Calls("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"),)
    since = (2, 13)
    is_deprecation = True

    def check(self, site: CallSite) -> Iterator[Finding]:
        given = next((item for item in site.node.keywords if item.arg == "pin_memory_device"), None)
        if given is None or (isinstance(given.value, ast.Constant) and not given.value.value):
            return
        span = site.model.source.span(given)
        yield self.finding(
            site,
            f"{quoted(site.model.source.segment(span))} is deprecated: torch pins memory for the accelerator that it "
            "finds",
            heat=Heat.WARM,
            span=span,
            help="Remove it: `pin_memory=True` is enough.",
            fix=_fix(site, given),
        )


def _fix(site: CallSite, given: ast.keyword) -> Fix | None:
    if not isinstance(given.value, ast.Constant) or given.value.value not in ("cuda", "cuda:0"):
        return None
    edit = dropped(site.model.source, site.node, given)
    safety = Safety.UNSAFE if some_file_says(site.model, _ASKED) else Safety.SAFE
    return Fix("Leave `pin_memory_device` out", safety, (edit,))
