"""TPF358: switches that make a program reproducible, or easy to debug, and slow."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.frozen import dataclass
from perflint.rules._guards import is_guarded
from perflint.rules._memory.flows import made
from perflint.rules._methods import in_tests, is_false, is_true
from perflint.rules._names import LIGHTNING
from perflint.rules._sources import passed_to, unpacked
from perflint.rules.base import Files, FileSite, Rule, Site, shown
from perflint.rules.worth import cost, sentence
from perflint.semantics.facts import rule_conventions
from perflint.semantics.model import Model
from perflint.semantics.purpose.evaluations import updates_weights
from perflint.semantics.structure import walk

_WAIT_FOR_KERNELS = ("CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL")
_RUNS_ON_THE_CPU = "PYTORCH_ENABLE_MPS_FALLBACK"
_WAIT_FOR_COLLECTIVES = ("TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT")
_DISTRIBUTED = "TORCH_DISTRIBUTED_DEBUG"
_CUDNN = "torch.backends.cudnn."
_FLOAT64 = ("torch.float64", "torch.double", "torch.DoubleTensor", "torch.cuda.DoubleTensor")
_DEFAULTS = ("torch.set_default_dtype", "torch.set_default_tensor_type")
_COMPUTES_EXACTLY = re.compile(r"linalg|autograd\.grad\b|\.(?:hessian|jacobian)|create_graph|odeint|gpytorch|\bscipy\b")


@dataclass(frozen=True, slots=True)
class _Switch:
    """The effect of a switch, its cost as far as it was measured, and the advice."""

    effect: Effect
    row: str | None
    does: str
    cure: str
    cost: str = ""


_OFF = _Switch(
    Effect.COMPUTE,
    "cudnn-off-step-resnet50-float32",
    "runs convolutions and recurrent layers without cuDNN, on slower kernels",
    "Leave cuDNN on: `cudnn.deterministic = True` makes it repeatable. If one layer fails with it, switch it off "
    "around that layer with `cudnn.flags(enabled=False)`.",
    "without cuDNN, training of a ResNet-50 is {0} slower",
)
_ALGORITHMS = _Switch(
    Effect.COMPUTE,
    "deterministic-algorithms-step-gpt",
    "forbids the faster algorithms of many operators, and fills new memory first",
    "Set it with a flag, for runs that must be repeatable bit for bit.",
    "deterministic algorithms make GPT-2 training {0} slower",
)
_BLOCKING = _Switch(
    Effect.SYNC,
    "launch-blocking-step-gpt",
    "makes the CPU wait for each kernel",
    "Set it on the command line, only while you look for the kernel that fails.",
    "waiting for each kernel makes GPT-2 training {0} slower",
)
_FALLBACK = _Switch(
    Effect.TRANSFER,
    None,
    "runs the operators that MPS lacks on the CPU, with copies both ways",
    "Set it on the command line, and replace the operators that torch warns about.",
)
_CHECKED = _Switch(
    Effect.PIPELINE,
    None,
    "compares the arguments of each collective over all processes first",
    "Set it on the command line, only while you look for processes that wait for each other.",
)
_WAITING = _Switch(
    Effect.SYNC,
    None,
    "makes the CPU wait for each collective",
    "Leave it out: `TORCH_NCCL_ASYNC_ERROR_HANDLING`, which is on, ends processes whose collectives fail.",
)
_DOUBLE = _Switch(
    Effect.COMPUTE,
    "float64-step-gpt",
    "makes all parameters and products float64",
    "Leave float32 as the default, and make the tensors that need it with `dtype=torch.float64`.",
    "float64 makes GPT-2 training {0} slower",
)
_VARIABLES = {
    **dict.fromkeys(_WAIT_FOR_KERNELS, _BLOCKING),
    **dict.fromkeys(_WAIT_FOR_COLLECTIVES, _WAITING),
    _RUNS_ON_THE_CPU: _FALLBACK,
}


class SlowSwitches(Rule):
    """A switch for debugging or for repeatable results is always on.

    ## What it does
    Finds `torch.backends.cudnn.enabled = False`, `torch.use_deterministic_algorithms(True)`, Lightning's
    `Trainer(deterministic=True)` and `os.environ["CUDA_LAUNCH_BLOCKING"] = "1"`, and its equals for AMD, that no flag
    guards. On Apple's GPUs, finds `os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"`, and with several processes
    `os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"` and `os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"`. In files
    that train on a GPU, finds `torch.set_default_dtype(torch.float64)` and its older form.

    ## Why is this bad
    They apply to the whole program. Without cuDNN, convolutions and recurrent layers use slower
    kernels: a training step of a ResNet-50 was 6.3 × slower on an H200, under bfloat16 autocast 8.9
    ×. Deterministic algorithms exclude the fast ones that add in any order, and each new tensor is
    filled first: 7% in float32, 30% under autocast, 13% for a GPT-2. `CUDA_LAUNCH_BLOCKING`
    waits for each kernel, so that the CPU prepares nothing while the GPU computes: 1.6 × for a
    small network, 1.8 × for the GPT-2. With `PYTORCH_ENABLE_MPS_FALLBACK`, an operator that MPS lacks waits for the
    GPU and copies its tensors to the CPU and back. `TORCH_DISTRIBUTED_DEBUG=DETAIL` runs an extra collective before
    each one to compare its arguments; torch's notes say that it may slow a program down. `TORCH_NCCL_BLOCKING_WAIT`
    makes the CPU wait for a collective where otherwise the stream does. None of them was measured, so they are
    information. Training of a GPT-2 in float64 was 1.4 × slower than in float32, without TF32, on an H200, whose
    units for float64 are as wide as those for float32; most other GPUs have 2 to 64 times fewer of them.

    ## When it is fine
    - Runs that must be the same bit for bit: a study, a regression test, the search for a bug. Then
      the switch should depend on a flag of the program. Tests, functions and files whose name
      mentions seeds or determinism, code that restores the old setting, and programs that also set
      `CUBLAS_WORKSPACE_CONFIG` are not reported. `cudnn.enabled = False` is reported there too,
      because repeatable results do not need it.
    - Around one layer that needs it: `with torch.backends.cudnn.flags(enabled=False)` is not
      reported.
    - `cudnn.deterministic` and `cudnn.benchmark` are not reported: neither made a measurable difference.

    ## Bad
    ```python
    import os

    import torch

    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    torch.backends.cudnn.enabled = False
    ```

    ## Good
    ```python
    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--deterministic", action="store_true")
    if parser.parse_args().deterministic:
        torch.use_deterministic_algorithms(True)
    ```

    ## Fix safety
    No fix: the result of a run may depend on the switch.

    ## How a GPU shows it
    A trace reads the switches at the end of each recorded step. A switch that was on there confirms the finding; one
    that was off in all steps refutes it.

    A timeline shows kernels such as `im2col` and `sgemm` instead of cuDNN's, or a
    `cudaDeviceSynchronize` after each launch.
    `benchmarks/rules/models.py cudnn deterministic launch-blocking` times them.

    ## References
    - [Reproducibility](https://docs.pytorch.org/docs/stable/notes/randomness.html): "deterministic operations are
      often slower than nondeterministic operations"
    - [torch.use_deterministic_algorithms](https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html)
    - [Debugging torch.distributed](https://docs.pytorch.org/docs/stable/distributed.html#torch-distributed-debug)
    - [MPS environment variables](https://docs.pytorch.org/docs/stable/mps_environment_variables.html)
    - [CUDA_LAUNCH_BLOCKING](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars)
    """

    code, name = "TPF358", "slow-switches"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = (
        "cudnn-off-step-resnet50-float32",
        "cudnn-off-step-resnet50-bfloat16",
        "launch-blocking-step-gpt",
        "launch-blocking-step-policy",
        "deterministic-algorithms-step-resnet50-float32",
        "deterministic-algorithms-step-resnet50-bfloat16",
        "deterministic-algorithms-step-gpt",
        "float64-step-gpt",
    )
    costs = None
    listens = (
        Files("cudnn", "deterministic", "set_default_dtype", "set_default_tensor_type", _DISTRIBUTED, *_VARIABLES),
    )

    def check(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        # The setting that cuBLAS needs to be deterministic is present only if determinism is intended.
        meant = model.says("CUBLAS_WORKSPACE_CONFIG")
        for statement, switch in _switches(model):
            if meant and switch is not _OFF:
                continue
            if is_guarded(model, statement) or _is_on_purpose(model, statement, switch):
                continue
            yield self.finding(
                Site(model, statement),  # type: ignore[arg-type]
                f"{shown(site, statement)} {switch.does}, for the whole program",
                severity=cost(switch.row).severity if switch.row else Severity.INFO,
                effect=switch.effect,
                # It is said once, and holds for every step.
                heat=Heat.HOT,
                help=switch.cure,
                cost=sentence(switch.cost, switch.row) if switch.row else None,
            )


def _switches(model: Model) -> Iterator[tuple[ast.Assign | ast.AugAssign | ast.Call, _Switch]]:
    names = model.symbols
    for statement in model.nodes(ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Attribute):
                full = names.full_name(target)
                if full == f"{_CUDNN}enabled" and is_false(statement.value):
                    yield statement, _OFF
            elif isinstance(target, ast.Subscript) and names.full_name(target.value) == "os.environ":
                if (switch := _variable(target.slice, statement.value)) is not None:
                    yield statement, switch
    for merged in model.nodes(ast.AugAssign):
        if isinstance(merged.value, ast.Dict) and names.full_name(merged.target) == "os.environ":
            yield from ((merged, switch) for switch in _of_dict(merged.value))
    for call in model.nodes(ast.Call):
        full = names.full_name(call.func) if call.args else ""
        if full in ("torch.use_deterministic_algorithms", "torch.set_deterministic") and is_true(call.args[0]):
            yield call, _ALGORITHMS
        elif full in _DEFAULTS and _is_double(model, call.args[0]) and _may_be_float32(model):
            yield call, _DOUBLE
        elif full in ("os.environ.setdefault", "os.putenv") and len(call.args) == 2:
            if (switch := _variable(*call.args)) is not None:
                yield call, switch
        elif model.target(call) in LIGHTNING and is_true(passed_to(model, call, "deterministic")):
            yield call, _ALGORITHMS
        elif names.full_name(call.func) == "os.environ.update":
            given, _ = unpacked(model, call)
            named = {each.arg: each.value for each in call.keywords if each.arg is not None}
            yield from ((call, switch) for switch in _of_items((given | named).items()))
            yield from ((call, switch) for each in call.args for switch in _of_dict(made(model, each)))


def _is_double(model: Model, given: ast.expr) -> bool:
    """True for `torch.float64` and `torch.cuda.DoubleTensor`, also as a text."""
    said = given.value if isinstance(given, ast.Constant) else model.symbols.full_name(given)
    return said in _FLOAT64


def _may_be_float32(model: Model) -> bool:
    """True if a file trains a network on a GPU, and does nothing that is known to need float64."""
    return model.says("cuda") and updates_weights(model) and not model.matches(_COMPUTES_EXACTLY)


def _of_dict(node: ast.expr) -> Iterator[_Switch]:
    """The switches that the items of a dict turn on."""
    items = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
    yield from _of_items((key.value, value) for key, value in items if isinstance(key, ast.Constant))


def _of_items(items: Iterable[tuple[object, ast.expr]]) -> Iterator[_Switch]:
    found = (_variable(ast.Constant(name), value) for name, value in items)  # type: ignore[arg-type]
    yield from (each for each in found if each is not None)


def _variable(name: ast.expr, value: ast.expr) -> _Switch | None:
    """The switch that an environment variable turns on."""
    given = str(value.value) if isinstance(value, ast.Constant) else ""
    if not isinstance(name, ast.Constant) or given in ("", "0"):
        return None
    if name.value == _DISTRIBUTED:
        return _CHECKED if given == "DETAIL" else None
    return _VARIABLES.get(str(name.value))


def _is_on_purpose(model: Model, node: ast.AST, switch: _Switch) -> bool:
    """True if a switch is intended at its place: in tests, in code named for it, or until it is restored."""
    # Repeatable results do not need cuDNN off.
    is_named_so = rule_conventions.tries_out if switch is _OFF else rule_conventions.is_on_purpose
    if in_tests(model) or is_named_so(model.source.path.replace("\\", "/").rpartition("/")[2]):
        return True
    function = model.function(node)
    if function is not None and sum(isinstance(each, ast.Call) and _is_switch(each) for each in walk(function)) > 1:
        return True
    return any(
        isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and is_named_so(outer.name)
        for outer in model.ancestors(node)
    )


def _is_switch(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "use_deterministic_algorithms"
