"""TPF964: a checkpoint that is read to the GPU beside the model that gets it."""

from __future__ import annotations

from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._methods import in_tests
from perflint.rules._sources import passed_to
from perflint.rules._states import is_state
from perflint.rules.base import Calls, CallSite, Mentions, Rule, shown
from perflint.rules.placement import place_confidence
from perflint.semantics.values import Device, Value

_SAFE = ("safetensors.torch.load_file",)
_CURE, _SAFE_CURE = 'Pass `map_location="cpu", mmap=True`', "Leave `device` out"
_OPEN = (Device.CALLER, Device.UNKNOWN)


class CheckpointTwiceOnGpu(Rule):
    """A checkpoint is read to the GPU and copied into a model that is there already.

    ## What it does
    Finds `torch.load(path, map_location="cuda")`, and `load_file(path, device="cuda")` of safetensors, whose result
    goes to `load_state_dict`.

    ## Why is this bad
    The GPU holds the weights twice until the checkpoint is freed, and with the states of an optimizer three times
    as much again. A model that fits may then fail to load, or leave a fragmented pool behind. `load_state_dict`
    copies each tensor to the device of its parameter anyway. GPT-2 in float32 took 1.38 GiB at its peak instead of
    0.77, and 3.4 × as long as from a file that is mapped to memory (320 ms, not 93).

    ## When it is fine
    - Small models.
    - `load_state_dict(…, assign=True)`, which takes the tensors themselves.

    ## Bad
    ```python
    import torch

    def restore(model: torch.nn.Module, path: str):
        model.cuda()
        model.load_state_dict(torch.load(path, map_location="cuda"))
    ```

    ## Good
    ```python
    import torch

    def restore(model: torch.nn.Module, path: str):
        model.cuda()
        model.load_state_dict(torch.load(path, map_location="cpu", mmap=True))
    ```

    ## Fix safety
    No fix: other code may need the checkpoint on the GPU.

    ## How a GPU shows it
    `torch.cuda.max_memory_allocated()` after loading is about twice `torch.cuda.memory_allocated()`.

    ## References
    - [Tips for loading a model](https://docs.pytorch.org/tutorials/recipes/recipes/module_load_state_dict_tips.html)
    """

    code, name = "TPF964", "checkpoint-twice-on-gpu"
    effect, severity = Effect.MEMORY, Severity.INFO
    listens = (Calls("torch.load", *_SAFE),)
    mentions = Mentions("load_state_dict", without=("assign=True",))

    def check(self, site: CallSite) -> Iterator[Finding]:
        is_safe = site.target in _SAFE
        model, place = site.model, passed_to(site.model, site.node, "device" if is_safe else "map_location", 1)
        sure = None if place is None or _is_open(site.value(place)) else place_confidence(site.value(place))
        if sure is None or in_tests(model) or not is_state(model, site.node):
            return
        yield self.finding(
            site,
            f"{shown(site)} holds all weights on the GPU a second time, beside those of the model",
            confidence=sure,
            heat=Heat.WARM,
            help=f"{_SAFE_CURE if is_safe else _CURE}: `load_state_dict` copies the tensors to the GPU.",
        )


def _is_open(place: Value) -> bool:
    """True for a device that the file does not show, which may be the CPU."""
    return place.is_unknown or any(getattr(each, "device", None) in _OPEN for each in place.members)
