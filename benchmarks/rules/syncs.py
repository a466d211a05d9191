"""What each pattern that makes the host wait costs: alone, and in the steps of three programs.

A GPT-2 of 124 M parameters that keeps the GPU busy, the same with 2 ms of CPU work between the
pattern and the next step, and a policy network that is bound by its launches. Prints the rows of
`perflint/rules/worth.toml`.
Usage: python benchmarks/rules/syncs.py [--device cpu --quick] [PREFIX …]  (only the rows whose name starts so)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from programs import GPT, HOST_WORK_MS, Hook, gpt_step, ids, policy_step
from timing import OPTIONS, Pair, Run, main, synchronize, tensor
from torch.distributions import Categorical, Normal
from torch.nn import functional as F

GPT_SHAPE = "GPT-2 of 124 M parameters, batch 8 of 1024 tokens, AdamW fused"
POLICY_SHAPE = "8 × Linear(512, 512) with GELU, batch 256, AdamW fused"


class Fixed:
    """Tensors that patterns work on besides the program's own."""

    def __init__(self) -> None:
        device = OPTIONS.device
        self.hidden = tensor(8, 64 if OPTIONS.quick else 1024, 64 if OPTIONS.quick else 768)
        self.codes = torch.randint(0, 512, (8192,), device=device)
        self.labels = torch.randint(0, 10, (8192,), device=device)
        self.repeats = torch.full((64,), 2, device=device)
        self.mask = torch.rand(8192, device=device) > 0.5
        self.values = tensor(8192)
        self.image = tensor(16, 3, 32, 32)
        self.mean = torch.tensor([0.485, 0.456, 0.406], device=device)
        self.order = torch.tensor([2, 1, 0], device=device)
        self.lengths = torch.randint(10, 64, (64,), device=device)
        self.matrices = tensor(16, 3, 3) + 3 * torch.eye(3, device=device)
        self.matrix = torch.eye(3, device=device)
        self.positive = torch.rand(256, 8, device=device) + 0.1
        self.features = tensor(64, 1024)
        self.bad = torch.zeros((), dtype=torch.bool, device=device)


@dataclass(frozen=True)
class Pattern:
    """A pattern and its cure, given a tensor of the program: a layer's output, a loss or logits.

    `layer` says that code like it stands in layers rather than at the end of a step.
    """

    rule: str
    name: str
    words: str
    bad: Callable[[Fixed, torch.Tensor], object]
    good: Callable[[Fixed, torch.Tensor], object]
    layer: bool = True


def scalars() -> Iterator[Pattern]:
    """Numbers and truths that the host reads."""
    yield Pattern(
        "TPF101", "scalar-read-in-loop", ".item()", lambda f, x: x.mean().item(), lambda f, x: x.mean(), layer=False
    )
    yield Pattern("TPF102", "many-scalars", "four .item() against one stacked .tolist()", _four_reads, _one_read, False)
    yield Pattern(
        "TPF103",
        "per-element-read",
        "64 numbers read one by one against one .tolist()",
        lambda f, x: [float(value) for value in f.values[:64]],
        lambda f, x: f.values[:64].tolist(),
        layer=False,
    )
    yield Pattern(
        "TPF104",
        "tensor-of-tensors",
        "torch.tensor([a, b, c]) of GPU scalars against torch.stack",
        lambda f, x: torch.tensor([x.mean(), x.amin(), x.amax()], device=x.device),
        lambda f, x: torch.stack([x.mean(), x.amin(), x.amax()]),
    )
    yield Pattern("TPF105", "truth-of-tensor", "if t.any()", lambda f, x: bool(f.mask.all()), lambda f, x: f.mask.all())
    yield Pattern("TPF106", "redundant-any-guard", "if mask.any() around x[mask] = 0", _guarded, _unguarded)
    yield Pattern("TPF107", "nan-check-per-step", "if isnan(t)", _checked, _flagged, layer=False)
    yield Pattern(
        "TPF108", "eager-format", "a tensor in an f-string", lambda f, x: f"{x.mean()}", lambda f, x: x.mean(), False
    )
    yield Pattern(
        "TPF109",
        "device-to-host-copy-in-loop",
        "outputs.append(t.cpu()) against outputs.append(t)",
        lambda f, x: f.features.cpu(),
        lambda f, x: f.features,
        layer=False,
    )
    yield Pattern(
        "TPF120",
        "python-max-on-tensors",
        "max(t, 1) against t.clamp(min=1)",
        lambda f, x: max(f.mask.sum(), 1),
        lambda f, x: f.mask.sum().clamp(min=1),
    )
    yield Pattern(
        "TPF121",
        "equal-on-device",
        "torch.equal(a, b) against (a == b).all()",
        lambda f, x: torch.equal(f.values, f.values + 0),
        lambda f, x: (f.values == f.values + 0).all(),
    )
    words = "cuda.synchronize()"
    yield Pattern("TPF122", "explicit-synchronize", words, lambda f, x: synchronize(), lambda f, x: None, False)


def _four_reads(f: Fixed, x: torch.Tensor) -> object:
    return x.mean().item(), x.amin().item(), x.amax().item(), x.sum().item()


def _one_read(f: Fixed, x: torch.Tensor) -> object:
    return torch.stack([x.mean(), x.amin(), x.amax(), x.sum()]).tolist()


def _guarded(f: Fixed, x: torch.Tensor) -> object:
    mask = torch.isnan(f.values)
    if mask.any():
        f.values[mask] = 0.0
    return f.values


def _unguarded(f: Fixed, x: torch.Tensor) -> object:
    f.values[torch.isnan(f.values)] = 0.0
    return f.values


def _checked(f: Fixed, x: torch.Tensor) -> object:
    if torch.isnan(x.mean()):
        raise FloatingPointError
    return None


def _flagged(f: Fixed, x: torch.Tensor) -> object:
    f.bad |= torch.isnan(x.mean())
    return f.bad


def sizes() -> Iterator[Pattern]:
    """Results whose size, or whose input, the host must know."""
    yield Pattern(
        "TPF110",
        "nonzero-family",
        "x[mask].sum() against where",
        lambda f, x: f.values[f.mask].sum(),
        lambda f, x: torch.where(f.mask, f.values, 0).sum(),
    )
    yield Pattern(
        "TPF112",
        "masked-fill-cuda-scalar",
        "masked_fill with a GPU scalar against where",
        lambda f, x: f.values.masked_fill(f.mask, f.values.min()),
        lambda f, x: torch.where(f.mask, f.values.min(), f.values),
    )
    yield Pattern(
        "TPF113",
        "unique-on-device",
        "torch.bincount against scatter_add_",
        lambda f, x: torch.bincount(f.codes, minlength=512),
        lambda f, x: f.codes.new_zeros(512).scatter_add_(0, f.codes, torch.ones_like(f.codes)),
    )
    yield Pattern(
        "TPF114",
        "repeat-interleave-no-size",
        "repeat_interleave without output_size",
        lambda f, x: f.features.repeat_interleave(f.repeats, dim=0),
        lambda f, x: f.features.repeat_interleave(f.repeats, dim=0, output_size=128),
    )
    yield Pattern(
        "TPF115",
        "one-hot-no-classes",
        "one_hot without num_classes",
        lambda f, x: F.one_hot(f.labels),
        lambda f, x: F.one_hot(f.labels, num_classes=10),
    )
    yield Pattern(
        "TPF119",
        "tensor-as-python-int",
        "x[:, :n] with n on the GPU",
        lambda f, x: f.features[:, : f.lengths.max()] * 2,
        lambda f, x: f.features[:, :63] * 2,
    )
    yield Pattern(
        "TPF136",
        "waiting-operator",
        "torch.cov against the same with matmul",
        lambda f, x: torch.cov(f.features),
        _covariance,
    )


def _covariance(f: Fixed, x: torch.Tensor) -> object:
    centered = f.features - f.features.mean(1, keepdim=True)
    return centered @ centered.mT / 1023


def uploads() -> Iterator[Pattern]:
    """Data of the host that the device gets on the way."""
    device = OPTIONS.device
    yield Pattern(
        "TPF116",
        "scalar-to-cuda",
        "torch.tensor(number, device=…) against torch.full",
        lambda f, x: torch.tensor(1.0, device=device),
        lambda f, x: torch.full((), 1.0, device=device),
    )
    yield Pattern(
        "TPF117",
        "list-to-cuda",
        "torch.tensor(list, device=…) against a buffer",
        lambda f, x: f.image - torch.tensor([0.485, 0.456, 0.406], device=device)[:, None, None],
        lambda f, x: f.image - f.mean[:, None, None],
    )
    yield Pattern(
        "TPF118",
        "list-index",
        "x[:, list] against a tensor of positions on the GPU",
        lambda f, x: f.image[:, [2, 1, 0]],
        lambda f, x: f.image[:, f.order],
    )
    yield Pattern(
        "TPF135",
        "number-store",
        "t[i, j] = number against fill_",
        _store,
        lambda f, x: f.matrix[0, 2].fill_(0.5),
    )
    host = torch.zeros(64, 1024)
    yield Pattern(
        "TPF201",
        "blocking-h2d",
        "t.to(device) of pageable memory against pinned and non_blocking",
        lambda f, x: host.to(device),
        _pinned_copy(64, 1024),
        layer=False,
    )
    yield Pattern(
        "TPF204",
        "create-then-move",
        "torch.ones(1024, 1024).to(device) against device=…",
        lambda f, x: torch.ones(1024, 1024).to(device),
        lambda f, x: torch.ones(1024, 1024, device=device),
    )


def _store(f: Fixed, x: torch.Tensor) -> object:
    f.matrix[0, 2] = 0.5
    return f.matrix


def _pinned_copy(*shape: int) -> Callable[[Fixed, torch.Tensor], object]:
    memory = torch.zeros(*shape)
    pinned = memory.pin_memory() if OPTIONS.device == "cuda" else memory
    return lambda f, x: pinned.to(OPTIONS.device, non_blocking=True)


def checks() -> Iterator[Pattern]:
    """What torch itself looks at on the host."""
    yield Pattern(
        "TPF126",
        "linalg-checked",
        "linalg.inv against inv_ex",
        lambda f, x: torch.linalg.inv(f.matrices),
        lambda f, x: torch.linalg.inv_ex(f.matrices)[0],
    )
    yield Pattern(
        "TPF127",
        "distributions-validate",
        "Normal(…).log_prob with checks against validate_args=False",
        lambda f, x: Normal(f.positive, f.positive).log_prob(f.positive),
        lambda f, x: Normal(f.positive, f.positive, validate_args=False).log_prob(f.positive),
    )
    yield Pattern(
        "TPF127",
        "distributions-validate-categorical",
        "Categorical(…).log_prob of a sample with checks against validate_args=False",
        _categorical(None),
        _categorical(False),
        layer=False,
    )


def _categorical(checks: bool | None) -> Callable[[Fixed, torch.Tensor], object]:
    def act(f: Fixed, x: torch.Tensor) -> object:
        policy = Categorical(logits=f.positive, validate_args=checks)
        return policy.log_prob(policy.sample())

    return act


PATTERNS = (scalars, sizes, uploads, checks)
_MODELS: list[GPT] = []


def gpt() -> GPT:
    """One model for all patterns: building it takes longer than measuring."""
    if not _MODELS:
        _MODELS.append(GPT().to(OPTIONS.device))
    return _MODELS[0]


def planted(action: Callable[[Fixed, torch.Tensor], object], fixed: Fixed) -> Hook:
    """A pattern as a hook."""
    return lambda x: action(fixed, x)


def in_gpt(pattern: Pattern, ms: float) -> tuple[Run, Run]:
    """Steps of the GPT with the pattern in its layers or at its end, and with its cure."""
    fixed, batch = Fixed(), ids(8, 1024)
    hooks = (planted(pattern.bad, fixed), planted(pattern.good, fixed))
    place = "layer" if pattern.layer and not ms else "end"
    bad, good = (gpt_step(gpt(), batch, ms=ms, **{place: hook}) for hook in hooks)
    return bad, good


def alone(pattern: Pattern) -> tuple[Run, Run]:
    """The pattern and its cure by themselves."""
    fixed = Fixed()
    return lambda: pattern.bad(fixed, fixed.hidden), lambda: pattern.good(fixed, fixed.hidden)


def in_policy(pattern: Pattern) -> tuple[Run, Run]:
    """Steps of the policy network, with the pattern and with its cure at their end."""
    fixed = Fixed()
    return policy_step(planted(pattern.bad, fixed)), policy_step(planted(pattern.good, fixed))


def operations() -> Iterator[Pair]:
    """Patterns alone, where the cure is an operation too."""
    for pattern in (pattern for family in PATTERNS for pattern in family()):
        if pattern.rule in ("TPF109", "TPF122"):
            continue
        where = "as in benchmarks/rules/syncs.py"
        yield Pair(
            f"{pattern.name}-operation", pattern.rule, pattern.words, "float32", where, lambda p=pattern: alone(p)
        )


def steps() -> Iterator[Pair]:
    """Patterns in steps."""
    behind = f", {HOST_WORK_MS:g} ms of CPU work after it"
    for pattern in (pattern for family in PATTERNS for pattern in family()):
        where = "in each of 12 layers" if pattern.layer else "at the end of each step"
        for name, shape, place, make in (
            ("gpt", GPT_SHAPE, where, lambda p=pattern: in_gpt(p, 0)),
            ("gpt-host-work", GPT_SHAPE, f"at the end of each step{behind}", lambda p=pattern: in_gpt(p, HOST_WORK_MS)),
            ("policy", POLICY_SHAPE, "in each step of a launch-bound loop", lambda p=pattern: in_policy(p)),
        ):
            dtype = "float32" if name == "policy" else "bfloat16 autocast"
            words = f"{pattern.words} {place}"
            yield Pair(f"{pattern.name}-{name}", pattern.rule, words, dtype, shape, make, scope="step")


if __name__ == "__main__":
    main("syncs", __doc__, (operations, steps))
