"""torch.nn modules, optimizers, schedulers, and the other classes that rules look at."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from functools import cache

import torch

OTHERS = (
    "torch.nn.Parameter torch.utils.data.Dataset torch.utils.data.IterableDataset torch.utils.data.Sampler "
    "torch.nn.utils.rnn.PackedSequence torch.utils.data.default_collate torch.utils.data.random_split "
    "torch.utils.data.DataLoader torch.utils.data.TensorDataset torch.utils.data.Subset torch.utils.data.ConcatDataset "
    "torch.utils.data.ChainDataset torch.utils.data.RandomSampler torch.utils.data.SequentialSampler "
    "torch.utils.data.WeightedRandomSampler torch.utils.data.SubsetRandomSampler torch.utils.data.BatchSampler "
    "torch.utils.data.distributed.DistributedSampler torch.amp.GradScaler torch.cuda.amp.GradScaler "
    "torch.amp.autocast torch.autocast torch.cuda.amp.autocast torch.cpu.amp.autocast torch.no_grad "
    "torch.inference_mode "
    "torch.enable_grad torch.set_grad_enabled torch.cuda.CUDAGraph torch.cuda.graph torch.cuda.Stream torch.cuda.Event "
    "torch.cuda.stream torch.cuda.synchronize torch.cuda.make_graphed_callables torch.nn.utils.clip_grad_norm_ "
    "torch.nn.utils.clip_grad_value_ torch.nn.utils.rnn.pad_sequence torch.nn.utils.rnn.pack_padded_sequence "
    "torch.nn.utils.rnn.pad_packed_sequence torch.utils.checkpoint.checkpoint torch.autograd.grad "
    "torch.autograd.set_detect_anomaly "
    "torch.autograd.detect_anomaly torch.profiler.profile torch.distributed.init_process_group "
    "torch.distributed.all_reduce "
    "torch.distributed.all_gather torch.distributed.reduce torch.distributed.broadcast "
    "torch.distributed.fsdp.FullyShardedDataParallel "
    "torch.nn.init.uniform_ torch.nn.init.normal_ torch.optim.swa_utils.AveragedModel"
)

_DEPRECATED = ("Container", "DistributedDataParallelCPU", "NLLLoss2d", "CrossMapLRN2d")

# The result of `forward`, for modules that do not return a single tensor.
RESULTS = {
    "tensor,tensor|none": "MultiheadAttention",
    "tensor,(tensor,tensor)": "LSTM",
    "tensor,tensor": "GRU RNN LSTMCell",
    "output,loss": "AdaptiveLogSoftmaxWithLoss",
    "any": "Module Sequential ModuleList ModuleDict ParameterList ParameterDict DataParallel RNNBase RNNCellBase",
}


_STATE = re.compile(r"\bdevice=None\b|\bParameter\(|\bregister_|_modules\b|_get_clones\b|\bmodule: ")
"""What the source of a class has if it makes or takes parameters, buffers or modules."""


@cache
def classes() -> dict[str, type]:
    """The public module, optimizer and scheduler classes by canonical name."""
    found: dict[str, type] = {}
    for prefix, holder, base in (
        ("torch.nn", torch.nn, torch.nn.Module),
        ("torch.nn.parallel", torch.nn.parallel, torch.nn.Module),
        ("torch.optim", torch.optim, torch.optim.Optimizer),
        ("torch.optim.lr_scheduler", torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler),
        ("torch.optim.lr_scheduler", torch.optim.lr_scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau),
    ):
        for name in sorted(dir(holder)):
            member = getattr(holder, name)
            public = (
                not name.startswith("_")
                and name not in _DEPRECATED
                and inspect.isclass(member)
                and issubclass(member, base)
            )
            if public and member not in found.values():
                found[f"{prefix}.{name}"] = member
    return found


@cache
def distributions() -> dict[str, type]:
    """The classes of torch.distributions by public name."""
    holder = torch.distributions
    members = {name: getattr(holder, name) for name in sorted(holder.__all__)}
    return {
        f"torch.distributions.{name}": member
        for name, member in members.items()
        if inspect.isclass(member) and issubclass(member, holder.Distribution)
    }


@cache
def others() -> dict[str, object]:
    """Further classes and Python functions by name."""
    return {name: _resolve(name) for name in OTHERS.split()}


def _resolve(name: str) -> object:
    import torch.distributed.fsdp
    import torch.optim.swa_utils
    import torch.profiler
    import torch.utils.checkpoint

    holder: object = torch
    for part in name.split(".")[1:]:
        holder = getattr(holder, part)
    return holder


def lines(words: Callable[[Iterable[str]], str]) -> list[str]:
    """The TOML lines."""
    groups: dict[str, list[str]] = {"module": [], "optimizer": [], "scheduler": []}
    for name, cls in classes().items():
        group = (
            "module"
            if issubclass(cls, torch.nn.Module)
            else "optimizer"
            if issubclass(cls, torch.optim.Optimizer)
            else "scheduler"
        )
        groups[group].append(name)
    found = [f"{group}s = {words(names)}" for group, names in groups.items()]
    losses = [
        name for name in groups["module"] if name.endswith("Loss") and name != "torch.nn.AdaptiveLogSoftmaxWithLoss"
    ]
    found += [f"losses = {words(losses)}"]
    stateless = [name for name in groups["module"] if not _has_state(classes()[name])]
    found += ["", "# Classes that hold no parameters, buffers or modules.", f"stateless = {words(stateless)}"]
    lineages = [f"{name} {' '.join(_bases(cls))}" for name, cls in sorted(classes().items()) if _bases(cls)]
    found += ["", "# A class and the public classes that it inherits from, nearest first.", *_block("bases", lineages)]
    found += ["", "# Where a class is defined, and its public name.", *_block("aliases", aliases())]
    found += ["", "# What `forward` gives where it is not a tensor.", "[results]"]
    found += [
        f'"{result}" = {words(f"torch.nn.{name}" for name in names.split())}' for result, names in RESULTS.items()
    ]
    return ["", *found]


def _has_state(cls: type) -> bool:
    """True if a class, or one that it inherits from, makes or takes parameters, buffers or modules."""
    own = cls.__mro__[: cls.__mro__.index(torch.nn.Module)]
    return not own or any(_STATE.search(inspect.getsource(base)) for base in own)


def _block(key: str, lines: list[str]) -> list[str]:
    return [f"{key} = '''", *lines, "'''"]


def _bases(cls: type) -> list[str]:
    """The public classes that it inherits from, nearest first, without the root."""
    roots = (torch.nn.Module, torch.optim.Optimizer, object)
    known = {member: name for name, member in classes().items()}
    return [known[base] for base in cls.__mro__[1:] if base in known and base not in roots]


def aliases() -> list[str]:
    """`name public-name` for where classes are defined."""
    found = dict(item.split() for item in _MORE_ALIASES.splitlines() if item)
    for name, member in {**classes(), **distributions(), **others()}.items():
        home = f"{member.__module__}.{member.__qualname__}"  # type: ignore[attr-defined]
        if home != name and home.startswith("torch."):
            found.setdefault(home, name)
    return [f"{home} {name}" for home, name in sorted(found.items())]


_MORE_ALIASES = """
torch.nn.parallel.DataParallel torch.nn.DataParallel
torch.nn.parameter.Parameter torch.nn.Parameter
torch.nn.parameter.Buffer torch.nn.Buffer
torch.optim.lr_scheduler._LRScheduler torch.optim.lr_scheduler.LRScheduler
torch.amp.autocast_mode.autocast torch.amp.autocast
torch._tensor.Tensor torch.Tensor
torch._C.TensorBase torch.Tensor
torch.Tensor._indices torch.Tensor.indices
torch.Tensor._values torch.Tensor.values
torch.sparse.DoubleTensor torch.sparse_coo_tensor
torch.sparse.FloatTensor torch.sparse_coo_tensor
"""
