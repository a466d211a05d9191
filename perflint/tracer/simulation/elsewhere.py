"""Replacements in torch's other modules, which depend on the simulated GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from perflint.tracer.simulation.devices import gpu
from perflint.tracer.simulation.marks import Replacements, is_on_gpu, noted, silent, wait

Function = Callable[..., Any]
_READ_ON_THE_CPU = ("quantile", "nanquantile")
"""Checked on the CPU alone, by reading."""
_READ_INSIDE = ("cov", "corrcoef")
"""They read a tensor that they make themselves."""
_READ_BACKWARDS = ("prod", "cumprod", "masked_fill")
"""Their gradients look for zeros, or select, where no mode watches."""


def replacements() -> Replacements:
    """The originals and their replacements. Needs torch."""
    import torch

    found: Replacements = {}
    noted(found, torch.Generator, _generator(torch.Generator))
    for name in _READ_ON_THE_CPU:
        original = getattr(torch, name)
        noted(found, original, _silent(original))
        setattr(torch.Tensor, name, _silent(getattr(torch.Tensor, name)))
    for name in _READ_INSIDE:
        original = getattr(torch, name)
        noted(found, original, _reading(original))
        setattr(torch.Tensor, name, _reading(getattr(torch.Tensor, name)))
    for name in _READ_BACKWARDS:
        original = getattr(torch, name)
        noted(found, original, _reading_backwards(original))
        setattr(torch.Tensor, name, _reading_backwards(getattr(torch.Tensor, name)))
    original = torch.nn.functional.one_hot
    noted(found, original, _one_hot(original))
    return found


def tell_scripts(replaced: Replacements) -> None:
    """Have TorchScript, which knows functions by their identity, know what stands in for them."""
    from torch.jit import _builtins

    table: dict[int, str] = _builtins._get_builtin_table()  # type: ignore[no-untyped-call]
    for number, (_, replacement) in replaced.items():
        if number in table:
            table[id(replacement)] = table[number]


def install(note: Callable[[str, str], None]) -> None:
    """Install the other replacements; `note` is called with remarks for the user. Needs torch."""
    import torch

    _install_autocast(torch.autocast)
    _run_eagerly(torch, note)
    _let_all_attention_run(torch)
    _install_distributed(torch)


def _silent(original: Function) -> Function:
    @functools.wraps(original)
    def quiet(*args: Any, **named: Any) -> Any:
        with silent():
            return original(*args, **named)

    return quiet


def _reading(original: Function) -> Function:
    @functools.wraps(original)
    def read(*args: Any, **named: Any) -> Any:
        if is_on_gpu(_input(args, named)):
            wait()
        return original(*args, **named)

    return read


def _input(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return args[0] if args else named["input"]


def _reading_backwards(original: Function) -> Function:
    masks = original.__name__ == "masked_fill"

    @functools.wraps(original)
    def run(*args: Any, **named: Any) -> Any:
        result = original(*args, **named)
        value = result
        if masks:
            value = named["value"] if "value" in named else args[-1]
        if getattr(value, "requires_grad", False) and is_on_gpu(result) and _input(args, named).numel() > 1:
            result.register_hook(lambda _: wait())
        return result

    return run


def _one_hot(original: Function) -> Function:
    @functools.wraps(original)
    def one_hot(tensor: Any, num_classes: int = -1) -> Any:
        if num_classes < 0:
            return original(tensor, num_classes)
        with silent():
            return original(tensor, num_classes)

    return one_hot


def _generator(original: Any) -> Any:
    """A class of generators that takes the GPU for a device; what is the host's is one, too."""
    import torch

    class Kind(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, original)

    class Generator(original, metaclass=Kind):  # type: ignore[misc]
        def __new__(cls, device: Any = "cpu") -> Any:
            made = super().__new__(cls, "cpu")
            made._named = torch.device(device)
            return made

        @property
        def device(self) -> Any:
            named = self._named
            return gpu() if named.type == "cuda" else named

    Generator.__module__, Generator.__qualname__ = "torch", "Generator"
    return Generator


def _install_autocast(cls: Any) -> None:
    """Cast on the CPU where the program casts on the GPU."""
    import torch

    enter, exit_ = cls.__enter__, cls.__exit__

    def entered(context: Any) -> Any:
        result = enter(context)
        if context.device == "cuda":
            context._on_cpu = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
            torch.set_autocast_enabled("cpu", context._enabled)
            torch.set_autocast_dtype("cpu", context.fast_dtype)
        return result

    def left(context: Any, *error: Any) -> Any:
        if context.device == "cuda":
            enabled, dtype = context._on_cpu
            torch.set_autocast_enabled("cpu", enabled)
            torch.set_autocast_dtype("cpu", dtype)
        return exit_(context, *error)

    cls.__enter__, cls.__exit__ = entered, left


def _run_eagerly(torch: Any, note: Callable[[str, str], None]) -> None:
    compile_ = torch.compile
    told: list[bool] = []

    @functools.wraps(compile_)
    def compiled(model: Any = None, **named: Any) -> Any:
        if model is None:
            return lambda model: compiled(model, **named)
        if not told:
            told.append(True)
            note("torch.compile", "what the program compiles was run eagerly")
        torch.compiler.set_stance("force_eager")
        return compile_(model, **named)

    torch.compile = compiled


def _let_all_attention_run(torch: Any) -> None:
    """Replace attention kernels that only GPUs have with those of the CPU."""
    original = torch.nn.attention.sdpa_kernel

    @functools.wraps(original)
    def sdpa_kernel(backends: Any, *args: Any, **named: Any) -> Any:
        kinds = torch.nn.attention.SDPBackend
        return original([kinds.MATH, kinds.FLASH_ATTENTION], *args, **named)

    torch.nn.attention.sdpa_kernel = sdpa_kernel


def _install_distributed(torch: Any) -> None:
    distributed = torch.distributed
    if not distributed.is_available():
        return
    original = distributed.init_process_group

    @functools.wraps(original)
    def init_process_group(backend: Any = None, *args: Any, **named: Any) -> Any:
        named.pop("device_id", None)
        return original("gloo" if backend is None or "nccl" in str(backend) else backend, *args, **named)

    distributed.init_process_group = init_process_group
    distributed.distributed_c10d.init_process_group = init_process_group
    distributed.is_nccl_available = lambda: True
