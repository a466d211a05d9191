"""TPF961: hooks that make the CPU wait in each forward or backward pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._methods import calls_named
from perflint.rules._operators import operators
from perflint.rules.base import Files, FileSite, Rule, shown
from perflint.semantics.model import Model
from perflint.semantics.structure import calls_in

_REGISTERS = tuple(sorted(operators("hooks", "registers")))
_WAITS = frozenset({"cpu", "item", "tolist", "numpy"})


class SyncInHook(Rule):
    """A hook that reads tensors on the CPU, and stays registered.

    ## What it does
    Finds hooks of modules and parameters whose function calls `.item()`, `.cpu()`, `.tolist()` or
    `.numpy()`, if the handle that would remove them is dropped, in files that train.

    ## Why is this bad
    The hook runs in each forward or backward pass, for each module that has it, and each time the
    CPU waits until the GPU has caught up: with one hook for each layer, the CPU can never run
    ahead. The cost is the idle time that each wait exposes; see TPF101.

    ## When it is fine
    - A handle that is kept, so that the hook can be removed.
    - A program that only collects activations, once: files without a backward pass are not reported.
    - Hooks that keep tensors on the GPU (`output.detach()`).

    ## Bad
    ```python
    import torch

    seen = {}

    def keep(module, inputs, output):
        seen[module] = output.abs().mean().item()

    def train(model: torch.nn.Module, loader):
        for module in model.modules():
            module.register_forward_hook(keep)
        for x in loader:
            model(x).sum().backward()
    ```

    ## Good
    ```python
    import torch

    seen = {}

    def keep(module, inputs, output):
        seen[module] = output.detach().abs().mean()

    def train(model: torch.nn.Module, loader):
        for module in model.modules():
            module.register_forward_hook(keep)
        for x in loader:
            model(x).sum().backward()
    ```

    ## Fix safety
    No fix: the code that reads the stored values would then have to read them from the GPU.

    ## How a GPU shows it
    A trace confirms the finding if the CPU waited in the function that is registered, and refutes it if
    that function made nothing wait. `torch.cuda.set_sync_debug_mode("warn")` warns in the hook; a
    profile shows a gap at the end of each module that has it.

    ## References
    - [torch.nn.Module.register_forward_hook](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook)
    """

    code, name = "TPF961", "sync-in-hook"
    effect, severity = Effect.SYNC, Severity.INFO
    listens = (Files("_hook(", also=(".backward(", "training_step")),)

    def check(self, site: FileSite) -> Iterator[Finding]:
        for call in calls_named(site, *_REGISTERS):
            if not isinstance(site.model.parent(call.node), ast.Expr):
                continue
            hook = call.argument("hook", 0)
            body = None if hook is None else _body(site.model, hook)
            wait = None if body is None else _wait(body)
            if wait is None:
                continue
            yield self.finding(
                call,
                f"{shown(call)} registers a hook that runs {shown(site, wait)} in each pass: the CPU waits",
                confidence=Confidence.MEDIUM,
                # It is registered once, and runs in each pass.
                heat=Heat.HOT,
                help="Keep the values on the GPU, or keep the handle and remove the hook after use.",
            )


def _body(model: Model, hook: ast.expr) -> ast.AST | None:
    """The registered function: a lambda, or a function of the file, also as the result of another one."""
    if isinstance(hook, ast.Lambda):
        return hook
    info = model.function_of(model.value(hook))
    return None if info is None else info.node


def _wait(body: ast.AST) -> ast.Call | None:
    waits = (call for call in calls_in(body) if isinstance(call.func, ast.Attribute) and call.func.attr in _WAITS)
    return next((call if not call.args else None for call in waits), None)
