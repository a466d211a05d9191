"""TPF903: the deprecated context that selects an attention kernel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Edit, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.imports import spell
from perflint.rules._since import SDPA_KERNEL
from perflint.rules.base import Calls, CallSite, Rule, shown

_PARAMETERS = ("enable_flash", "enable_math", "enable_mem_efficient", "enable_cudnn")
_BACKENDS = {
    "enable_flash": "FLASH_ATTENTION",
    "enable_mem_efficient": "EFFICIENT_ATTENTION",
    "enable_math": "MATH",
    "enable_cudnn": "CUDNN_ATTENTION",
}
"""In the order in which torch's own `sdp_kernel` hands them on."""


class SdpKernelContext(Rule):
    """`torch.backends.cuda.sdp_kernel` selects the attention kernel.

    ## What it does
    Finds calls of `torch.backends.cuda.sdp_kernel`.

    ## Why is this bad
    It is deprecated, raises a FutureWarning each time and will be removed. Its defaults allow
    kernels that the call does not mention: `sdp_kernel(enable_math=False)` leaves flash,
    memory-efficient and cuDNN attention on. `torch.nn.attention.sdpa_kernel` takes the list of
    allowed kernels. It costs no measurable time. It is a warning because the name will be removed.

    ## When it is fine
    In a branch for torch before 2.3, which has no alternative.

    ## Bad
    ```python
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    def attend(q, k, v):
        with torch.backends.cuda.sdp_kernel(enable_flash=True, enable_math=False, enable_mem_efficient=False):
            return scaled_dot_product_attention(q, k, v)
    ```

    ## Good
    ```python
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    def attend(q, k, v):
        backends = [torch.nn.attention.SDPBackend.FLASH_ATTENTION, torch.nn.attention.SDPBackend.CUDNN_ATTENTION]
        with torch.nn.attention.sdpa_kernel(backends):
            return scaled_dot_product_attention(q, k, v)
    ```

    ## Fix safety
    Safe: `sdp_kernel` itself calls `sdpa_kernel` with the same list. The fix is offered only if all
    arguments are literals. It names cuDNN's kernels if they were on by default, which is so since
    torch 2.5.

    ## How a GPU shows it
    A trace confirms the finding if the line ran under a torch that deprecates the name.

    It does not: the same kernels run. The warning shows on the CPU.

    ## References
    - [torch.nn.attention.sdpa_kernel](https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.sdpa_kernel.html)
    """

    code, name = "TPF903", "sdp-kernel-context"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Calls("torch.backends.cuda.sdp_kernel"),)
    since = (2, 5)
    is_deprecation = True

    def check(self, site: CallSite) -> Iterator[Finding]:
        yield self.finding(
            site,
            f"{shown(site, site.node.func)} is deprecated and warns at each call",
            heat=Heat.WARM,
            help="Use `torch.nn.attention.sdpa_kernel([…])` with the allowed backends.",
            fix=_fix(site),
        )


def _fix(site: CallSite) -> Fix | None:
    allowed = _allowed(site)
    kernel = spell(site.model.symbols, "torch.nn.attention.sdpa_kernel", site.node)
    backend = spell(site.model.symbols, "torch.nn.attention.SDPBackend", site.node)
    if not allowed or kernel is None or backend is None:
        return None
    names = [f"{backend.text}.{_BACKENDS[name]}" for name in allowed]
    listed = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
    edit = Edit(site.span, f"{kernel.text}({listed})")
    imports = tuple(dict.fromkeys((*kernel.imports, *backend.imports)))
    return Fix("Use `sdpa_kernel`", Safety.SAFE, (edit,), imports, since=SDPA_KERNEL)


def _allowed(site: CallSite) -> list[str]:
    """The parameters that are on; empty if none is, or if that is unknown."""
    if site.has_unpacking or len(site.node.args) > len(_PARAMETERS):
        return []
    given: dict[str, ast.expr] = dict(zip(_PARAMETERS, site.node.args, strict=False))
    given.update({item.arg: item.value for item in site.node.keywords if item.arg is not None})
    on = dict.fromkeys(_PARAMETERS, True)
    for name, value in given.items():
        if name not in on or not isinstance(value, ast.Constant) or not isinstance(value.value, bool):
            return []
        on[name] = value.value
    return [name for name in _BACKENDS if on[name]]
