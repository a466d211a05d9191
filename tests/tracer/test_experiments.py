"""Experiments on the host: what is proposed, that both ways give the same, and that the program is as before."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import perflint
from perflint.output.terminal import Style
from perflint.output.trace import trace_text
from perflint.rules.registry import all_rules
from perflint.tracer.events import Experiment, Failure, Header, ModuleCall, Place, Step
from perflint.tracer.experiments import optimizers, run, timing
from perflint.tracer.experiments.attention import AttentionWeights
from perflint.tracer.experiments.base import Mode, NotPossible, Pair, Proposal, Run, difference
from perflint.tracer.experiments.chains import ChannelsLastChains
from perflint.tracer.experiments.copying import copied
from perflint.tracer.experiments.launches import compiles_in_place, draws, overwrite
from perflint.tracer.experiments.layers import followers, layer, layers, per_step, read_settings
from perflint.tracer.experiments.live import Live, unwrapped
from perflint.tracer.experiments.models import Subject
from perflint.tracer.experiments.norms import BiasBeforeNorm, ConvBnFusion
from perflint.tracer.experiments.sizes import ChannelMultiples, VocabularyPadding
from perflint.tracer.experiments.state import tf32, undisturbed
from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace
from tests.tracer import warm

if find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import prune


def recorded(module: nn.Module, *arguments: torch.Tensor, **named: Any) -> tuple[ModuleCall, ...]:
    """The records of one call, in a step of its own."""
    with perflint.trace() as session:
        module(*arguments, **named)
        session.step()
    assert session.trace is not None
    return session.trace.of(ModuleCall)


def proposed(experiment: Any, module: nn.Module, *arguments: torch.Tensor, **named: Any) -> list[Proposal]:
    return list(experiment.propose(recorded(module, *arguments, **named)))


class Calls(nn.Module):
    """Layers that a function calls."""

    def __init__(self, does: Callable[..., Any], *inner: nn.Module) -> None:
        super().__init__()
        self.inner = nn.ModuleList(inner)
        self.does = does

    def forward(self, *arguments: torch.Tensor) -> Any:
        return self.does(*self.inner, *arguments)


# Settings and rebuilt layers.


@pytest.mark.parametrize(
    ("kind", "text", "settings"),
    [
        ("Linear", "in_features=4, out_features=8, bias=True", {"in_features": 4, "out_features": 8, "bias": True}),
        (
            "Conv2d",
            "3, 4, kernel_size=(3, 3), stride=(1, 1), padding=same, padding_mode=reflect",
            {
                "in_channels": 3,
                "out_channels": 4,
                "kernel_size": (3, 3),
                "stride": (1, 1),
                "padding": "same",
                "padding_mode": "reflect",
            },
        ),
        ("BatchNorm2d", "4, eps=1e-05, momentum=None", {"num_features": 4, "eps": 1e-05, "momentum": None}),
        ("Linear", "", None),
        ("Linear", "1, 2, 3", None),
        ("Linear", "in_features=4", None),
        ("Linear", "in_features=4, out_features=__import__('os').getpid()", None),
        ("Linear", "in_features=4, out_features=8) or (1", None),
        ("Linear", "in_features='4', out_features=8", None),
        ("Linear", "**{'in_features': 4}, in_features=1, out_features=8", None),
        ("Conv2d", "(" * 10_000, None),
    ],
)
def test_settings_are_read_and_never_run(kind: str, text: str, settings: dict[str, Any] | None) -> None:
    assert read_settings(text, kind) == settings


LAYERS = [
    (nn.Linear(5, 7), (2, 5)),
    (nn.Linear(5, 7, bias=False), (2, 3, 5)),
    (nn.Conv1d(4, 6, 3), (2, 4, 9)),
    (nn.Conv2d(4, 6, (3, 1), stride=2, padding="valid", dilation=2, groups=2), (1, 4, 9, 9)),
    (nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular", bias=False), (1, 4, 9, 9)),
    (nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),
    (nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), (1, 4, 5, 5)),
    (nn.BatchNorm2d(4, affine=False), (2, 4, 3, 3)),
    (nn.BatchNorm1d(4, momentum=None), (2, 4)),
    (nn.InstanceNorm2d(4, affine=True, track_running_stats=True), (2, 4, 3, 3)),
]


@pytest.mark.parametrize(("module", "shape"), LAYERS, ids=lambda value: str(value) if isinstance(value, tuple) else "")
def test_a_layer_is_built_as_it_was(module: nn.Module, shape: tuple[int, ...]) -> None:
    (call,) = recorded(module.eval(), torch.ones(shape))
    found = layer(call)
    assert found is not None
    built = found.build()
    assert type(built) is type(module) and not built.training and built.extra_repr() == module.extra_repr()
    assert {k: v.shape for k, v in built.state_dict().items()} == {k: v.shape for k, v in module.state_dict().items()}
    built.load_state_dict(module.state_dict())
    (given,) = found.inputs()
    assert given.shape == shape and torch.equal(built(given), module(given))


def test_a_layer_is_built_in_its_types_and_layout() -> None:
    module = nn.Conv2d(4, 8, 3).to(dtype=torch.bfloat16, memory_format=torch.channels_last)
    given = torch.ones(2, 4, 8, 8, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    (found,) = layers(recorded(module, given))
    assert found.build().weight.dtype is torch.bfloat16
    assert found.build().weight.is_contiguous(memory_format=torch.channels_last)
    assert found.inputs()[0].is_contiguous(memory_format=torch.channels_last)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (found,) = layers(recorded(nn.Linear(4, 4), torch.ones(2, 4, dtype=torch.bfloat16)))
    assert found.build().weight.dtype is torch.float32
    assert Mode.of(found.call).autocast == "bfloat16"


def test_layers_of_others_are_left_alone() -> None:
    class Linear(nn.Linear):
        pass

    assert not list(layers(recorded(Linear(5, 7), torch.ones(2, 5))))
    assert not list(layers(recorded(nn.Tanh(), torch.ones(2, 5))))


# Who follows whom.


def pairs_of(module: nn.Module, *arguments: torch.Tensor) -> list[tuple[str, str]]:
    return [(first.name, second.name) for first, second in followers(recorded(module, *arguments))]


def test_what_follows_is_known_by_the_tensor() -> None:
    inner = nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 3)), nn.BatchNorm2d(4))
    assert ("0.0", "1") in pairs_of(inner, torch.ones(2, 3, 8, 8))
    straight = Calls(lambda a, b, x: b(a(x)), nn.Linear(4, 4), nn.BatchNorm1d(4))
    assert pairs_of(straight, torch.ones(2, 4)) == [("inner.0", "inner.1")]


@pytest.mark.parametrize(
    "does",
    [
        lambda a, b, x: b(F.relu(a(x))),
        lambda a, b, x: b(F.relu(a(x), inplace=True)),
        lambda a, b, x: b(a(x) + 1),
        lambda a, b, x: b(a(x).view(2, 4)),
        lambda a, b, x: (a(x), b(x)),
    ],
)
def test_what_is_between_separates(does: Callable[..., Any]) -> None:
    assert not pairs_of(Calls(does, nn.Linear(4, 4), nn.BatchNorm1d(4)), torch.ones(2, 4))


# Experiments of layers.


def checked(proposal: Proposal) -> Pair:
    """Both ways run, and give the same."""
    torch.manual_seed(0)
    pair = proposal.build()
    differs = pair.difference()
    assert differs is not None and differs < 1e-5
    pair.before()
    pair.after()
    return pair


def test_a_linear_layer_of_odd_width() -> None:
    (found,) = proposed(ChannelMultiples(), nn.Linear(64, 1001), torch.ones(2, 64))
    assert found.change == "out_features 1008 instead of 1001"
    pair = checked(found)
    assert isinstance(pair.before, Run) and isinstance(pair.after, Run)
    assert pair.before.module.weight.shape == (1001, 64) and pair.after.module.weight.shape == (1008, 64)
    assert pair.after.module.weight.grad.shape == (1008, 64)


def test_widths_that_are_handed_on() -> None:
    model = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 60), nn.Linear(60, 10))
    changes = [found.change for found in proposed(ChannelMultiples(), model, torch.ones(2, 64))]
    # The last layer's output is too small to matter, and so is the layer.
    assert changes == [
        "out_features 104 instead of 100",
        "in_features 104 instead of 100, out_features 64 instead of 60",
    ]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_convolution_of_odd_width(layout: Any) -> None:
    model = nn.Sequential(nn.Conv2d(3, 60, 3), nn.Conv2d(60, 60, 3), nn.ConvTranspose2d(60, 60, 3))
    given = torch.ones(2, 3, 9, 9).to(memory_format=layout)
    found = proposed(ChannelMultiples(), model.to(memory_format=layout), given)
    # Of the first, the images' three channels are too few for its size to matter.
    assert [proposal.change for proposal in found] == [
        "in_channels 64 instead of 60, out_channels 64 instead of 60"
    ] * 2
    for proposal in found:
        checked(proposal)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Linear(64, 1000), (2, 64)),
        (nn.Linear(64, 100), (2, 64)),
        (nn.Linear(1024, 10), (2, 1024)),
        (nn.Linear(64, 50257), (2, 64)),
        (nn.Conv2d(1020, 1020, 1, groups=1020), (1, 1020, 1, 1)),
        (nn.LayerNorm(1001), (2, 1001)),
    ],
)
def test_sizes_that_are_well_or_not_the_models_own(module: nn.Module, shape: tuple[int, ...]) -> None:
    assert not proposed(ChannelMultiples(), module, torch.ones(shape))


def test_a_vocabulary() -> None:
    (found,) = proposed(VocabularyPadding(), nn.Linear(8, 50257, bias=False), torch.ones(2, 3, 8))
    assert found.change == "out_features 50304 instead of 50257"
    pair = checked(found)
    assert isinstance(pair.after, Run) and pair.note == "with cross_entropy behind it"
    assert pair.after().dim() == 0 and pair.after.module.head.weight.grad.shape == (50304, 8)
    with torch.no_grad():
        (found,) = proposed(VocabularyPadding(), nn.Linear(8, 50257).eval(), torch.ones(2, 8))
    assert checked(found).note == ""
    assert not proposed(VocabularyPadding(), nn.Linear(8, 50264), torch.ones(2, 8))
    assert not proposed(VocabularyPadding(), nn.Linear(8, 1001), torch.ones(2, 8))


BIASES = [
    (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), (2, 3, 8, 8)),
    (nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4)), (2, 3, 8)),
    (nn.Sequential(nn.ConvTranspose2d(3, 4, 3), nn.InstanceNorm2d(4)), (2, 3, 8, 8)),
    (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=False)), (2, 3, 8, 8)),
    (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), (8, 3)),
]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("model", "shape"), BIASES)
def test_a_bias_before_a_norm(model: nn.Sequential, shape: tuple[int, ...], training: bool) -> None:
    (found,) = proposed(BiasBeforeNorm(), model.train(training), torch.randn(shape))
    assert found.change.startswith("bias=False before ") and found.calls[0].name == "0"
    pair = checked(found)
    assert isinstance(pair.before, Run) and isinstance(pair.after, Run)
    assert pair.before.module[0].bias is not None and pair.after.module[0].bias is None
    assert (pair.after.module[0].weight.grad is not None) == training


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4)), (2, 3, 8, 8)),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4)), (2, 3, 8, 8)),
        (nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4)), (2, 3)),
        (nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(5)), (2, 5, 8)),
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.BatchNorm2d(4)), (2, 3, 8, 8)),
        (nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 3, 3)), (2, 3, 8, 8)),
        (Calls(lambda a, b, x: b(F.relu(a(x))), nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), (2, 3, 8, 8)),
    ],
)
def test_biases_that_count(model: nn.Module, shape: tuple[int, ...]) -> None:
    assert not proposed(BiasBeforeNorm(), model, torch.randn(shape))
    assert not proposed(ConvBnFusion(), model, torch.randn(shape))


def test_equal_layers_are_one_experiment() -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)) for _ in range(3)))
    first, rest = proposed(BiasBeforeNorm(), model, torch.randn(2, 4, 8, 8))
    # The first takes a tensor without gradient.
    assert [call.name for call in first.calls] == ["0.0"]
    assert [call.name for call in rest.calls] == ["1.0", "2.0"]
    assert all(per_step(call) == 1 for call in rest.calls)


@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
def test_a_batch_norm_in_evaluation(kind: Any) -> None:
    model = nn.Sequential(kind(3, 4, 3), nn.BatchNorm2d(4))
    assert not proposed(ConvBnFusion(), model, torch.randn(2, 3, 8, 8))
    with torch.inference_mode():
        (found,) = proposed(ConvBnFusion(), model.eval(), torch.randn(2, 3, 8, 8))
    pair = checked(found)
    assert isinstance(pair.after, Run) and isinstance(pair.after.module, kind)


class Residual(nn.Module):
    def __init__(self, inplace: bool) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(8, 8, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = (nn.BatchNorm2d(8) for _ in range(2))
        self.relu = nn.ReLU(inplace=inplace)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.relu(self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x))))) + x)
        return result


@pytest.mark.parametrize("inplace", [True, False])
def test_chains_of_convolutions(inplace: bool) -> None:
    model = nn.Sequential(*(Residual(inplace) for _ in range(3)))
    x = torch.randn(2, 8, 6, 6, requires_grad=True)
    first, *rest = proposed(ChannelsLastChains(), model, x)
    # The others begin with the activation behind the sum.
    assert [[call.name for call in chain.calls] for chain in (first, *rest)] == [["0.conv1"], ["0.relu", "1.relu"]]
    assert first.subject == "Conv2d(8, 8, kernel_size=(3, 3), …) to 0.norm2, 5 layers"
    pair = checked(first)
    assert isinstance(pair.after, Run) and isinstance(pair.after.module[2], nn.ReLU)
    assert pair.after.module[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert pair.after.forward().is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), (2, 3, 8, 8)),
        (nn.Sequential(nn.Conv1d(3, 4, 3), nn.Conv1d(4, 4, 3)), (2, 3, 8)),
        (Calls(lambda a, b, x: b(a(x) * 2), nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)), (2, 3, 8, 8)),
    ],
)
def test_what_is_no_chain(model: nn.Module, shape: tuple[int, ...]) -> None:
    assert not proposed(ChannelsLastChains(), model, torch.ones(shape))
    images = torch.ones(2, 3, 8, 8).to(memory_format=torch.channels_last)
    both = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)).to(memory_format=torch.channels_last)
    assert not proposed(ChannelsLastChains(), both, images)


@pytest.mark.parametrize("settings", [{}, {"batch_first": True}, {"bias": False, "kdim": 12, "vdim": 6}])
def test_attention_that_gives_weights(settings: dict[str, Any]) -> None:
    module = nn.MultiheadAttention(8, 2, dropout=0.5, **settings)
    key, value = settings.get("kdim", 8), settings.get("vdim", 8)
    given = torch.ones(5, 3, 8), torch.ones(5, 3, key), torch.ones(5, 3, value)
    (found,) = proposed(AttentionWeights(), module, *given)
    pair = checked(found)
    assert isinstance(pair.before, Run)
    built = pair.before.module
    assert {k: v.shape for k, v in built.state_dict().items()} == {k: v.shape for k, v in module.state_dict().items()}
    assert built.num_heads == 2 and built.dropout == 0.5
    assert not proposed(AttentionWeights(), module, *given, need_weights=False)


def test_masks_of_attention() -> None:
    module = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.ones(3, 5, 8)
    padding, causal = torch.zeros(3, 5, dtype=torch.bool), torch.zeros(5, 5)
    for named in ({"key_padding_mask": padding}, {"attn_mask": causal}):
        (found,) = proposed(AttentionWeights(), module, x, x, x, **named)
        pair = checked(found)
        assert isinstance(pair.after, Run) and set(named) < set(pair.after.named)
    square = torch.ones(5, 5, 8)
    # Nobody can tell which of the two it is.
    assert not proposed(AttentionWeights(), module, square, square, square, attn_mask=causal)


# Timing.


class FakeClock(timing.Clock):
    """Says how long what it is given takes: a sample of the first way 3, of the other 2, then 9 and 3."""

    def __init__(self) -> None:
        super().__init__("cpu", queued=True)
        self.seen: list[str] = []

    def sample(self, run: Callable[[], object], calls: int, launching: float) -> float:
        name = str(run())
        self.seen.append(name)
        late = len(self.seen) > 4
        return {"a": 9.0 if late else 3.0, "b": 3.0 if late else 2.0}[name]


def test_both_ways_are_timed_in_turn() -> None:
    clock = FakeClock()
    result = timing.compare(lambda: "a", lambda: "b", clock, 0.0)
    assert clock.seen[:2] == ["a", "b"]
    assert clock.seen[2:] == ["b", "a", "a", "b", "b", "a", "a", "b", "b", "a"]
    assert result == timing.Timing(9.0, 3.0, 3.0, 1.5, 3.0, 5)


# The program is not harmed.


def test_the_process_is_left_as_it_was() -> None:
    numpy = pytest.importorskip("numpy")
    calls: list[str] = []
    handle = nn.modules.module.register_module_forward_hook(lambda *_: calls.append("hook"))
    try:
        torch.manual_seed(7)
        random.seed(7)
        numpy.random.seed(7)
        with undisturbed():
            expected = torch.rand(2)
        torch.manual_seed(7)
        benchmark, precise = torch.backends.cudnn.benchmark, torch.backends.cuda.matmul.allow_tf32
        with torch.no_grad(), torch.autocast("cpu"), torch.inference_mode():
            with undisturbed():
                assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
                assert not torch.is_inference_mode_enabled()
                assert torch.equal(torch.rand(2), expected)
                random.random()
                numpy.random.rand()
                torch.backends.cudnn.benchmark = not benchmark
                with tf32(matmul=True, convolution=True):
                    assert torch.backends.cuda.matmul.allow_tf32
                nn.ReLU()(torch.ones(1))
            assert not torch.is_grad_enabled() and torch.is_autocast_enabled("cpu")
        assert (torch.backends.cudnn.benchmark, torch.backends.cuda.matmul.allow_tf32) == (benchmark, precise)
        drawn = torch.rand(2), random.random(), numpy.random.rand()
        torch.manual_seed(7)
        random.seed(7)
        numpy.random.seed(7)
        assert torch.equal(drawn[0], torch.rand(2)) and drawn[1:] == (random.random(), numpy.random.rand())
        assert not calls
        nn.ReLU()(torch.ones(1))
        assert calls == ["hook"]
    finally:
        handle.remove()


def test_a_copy_has_no_gradients_and_no_hooks_of_the_program() -> None:
    calls: list[str] = []
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)), nn.Linear(2, 2))
    prune.random_unstructured(model[1], "weight", amount=0.5)
    model[0].register_forward_hook(lambda *_: calls.append("hook"))
    model[0].register_forward_pre_hook(lambda *_, **__: calls.append("hook"), with_kwargs=True)
    model(torch.ones(1, 2)).sum().backward()
    assert calls == ["hook", "hook"]
    other = copied(model)
    assert all(parameter.grad is None for parameter in other.parameters())
    assert all(parameter.grad is not None for parameter in model.parameters())
    # Pruning computes the weight in a hook of its own.
    assert len(other[1]._forward_pre_hooks) == 1
    assert torch.equal(other(torch.ones(1, 2)), copied(other)(torch.ones(1, 2)))
    assert calls == ["hook", "hook"]


class Cache:
    """Cannot be copied."""

    def __init__(self, *values: Any) -> None:
        self.lock = threading.Lock()
        self.values = {"last": values}


class Locked(nn.Linear):
    """Cannot be copied, and neither shared: a call of the copy would write to the tensors of the program."""

    def __init__(self) -> None:
        super().__init__(4, 4)
        self.cache = Cache(torch.zeros(2))


def test_what_cannot_be_copied_is_shared_if_it_holds_no_tensors() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].writer, model[1].writer = Cache("a", 1), Cache(print, random)
    model[1].sizes = [2, 2]
    other = copied(model)
    assert (other[0].writer, other[1].writer) == (model[0].writer, model[1].writer)
    assert other[1].sizes is not model[1].sizes
    assert other[1].weight is not model[1].weight and torch.equal(other[1].weight, model[1].weight)


@pytest.mark.parametrize("value", [torch.zeros(2), nn.Linear(2, 2), Cache(torch.zeros(2)), list(range(20_000))])
def test_what_may_hold_tensors_is_not_shared(value: Any) -> None:
    model = nn.Linear(2, 2)
    model.cache = Cache(value)  # type: ignore[assignment]
    with pytest.raises(NotPossible, match=r"cannot be copied: .*lock"):
        copied(model)


def test_models_that_cannot_be_copied_say_why() -> None:
    with pytest.raises(NotPossible, match=r"cannot be copied: .*lock"):
        copied(Locked())
    with pytest.raises(NotPossible, match="is compiled"):
        unwrapped(torch.compile(nn.Linear(2, 2), backend="eager"))
    with pytest.raises(NotPossible, match="SyncBatchNorm"):
        unwrapped(nn.Sequential(nn.SyncBatchNorm(2)))
    inner = nn.Linear(2, 2)
    assert unwrapped(nn.DataParallel(inner)) is inner


def test_arguments_are_kept_as_they_were() -> None:
    live, model = Live(), nn.Linear(2, 2)
    given = torch.ones(1, 2, requires_grad=True)
    live.called(model, (given,), {"mask": None, "more": [given * 2, (1, "a")]})
    live.called(model, (given,), {})
    live.called(nn.ReLU(), (given,), {})
    with torch.no_grad():
        given.zero_()
    root = live.root()
    assert root is not None and root.module() is model and root.count == 2
    assert root.arguments[0].sum() == 2 and root.arguments[0].requires_grad and root.named["more"][1] == (1, "a")
    foreign = Live()
    foreign.called(model, (object(),), {})
    root = foreign.root()
    assert root is not None and "called with a object" in root.missing
    del model
    assert live.root() is None


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
def test_an_optimizer_is_copied(kind: Any) -> None:
    model = nn.Linear(3, 3)
    optimizer = kind([{"params": [model.weight], "lr": 0.5}, {"params": [model.bias]}], lr=0.1)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    assert optimizers.applies(optimizer, "cpu") and not optimizers.applies(optimizer, "cuda:0")
    before = [value.clone() for value in model.state_dict().values()]
    pair = optimizers.build(optimizer)
    differs = pair.difference()
    assert differs is not None and differs < 1e-5
    pair.before()
    pair.after()
    assert all(torch.equal(old, new) for old, new in zip(before, model.state_dict().values(), strict=True))
    fused = kind(model.parameters(), lr=0.1, fused=True)
    assert not optimizers.applies(fused, "cpu")


# All of it.


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """As few rounds as possible."""
    monkeypatch.setattr(run, "LAYER_SECONDS", 0.0)
    monkeypatch.setattr(run, "MODEL_SECONDS", 0.0)
    monkeypatch.setattr(timing, "LEAST", 1)
    monkeypatch.setattr(timing, "WARMUP", 1)
    monkeypatch.setattr(timing, "SAMPLE_SECONDS", 0.0)


def a_network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Dropout(0.5), nn.Flatten(), nn.Linear(288, 1001), nn.Linear(1001, 10)
    )


def trained(model: nn.Module, optimizer: Any, steps: int) -> Iterator[None]:
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.rand(4, 3, 8, 8)).square().mean().backward()
        optimizer.step()
        yield


def outcome(experiments: bool) -> tuple[list[torch.Tensor], Trace]:
    """What a training leaves behind, some of it after the experiments."""
    torch.manual_seed(3)
    with perflint.trace(steps=2, warmup=1, experiments=experiments) as session:
        model = a_network()
        optimizer = torch.optim.Adam(model.parameters())
        for _ in trained(model, optimizer, 5):
            pass
    assert session.trace is not None
    grads = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    states = [state["exp_avg"] for state in optimizer.state.values()]
    return [*model.state_dict().values(), *grads, *states, torch.rand(3)], session.trace


@pytest.mark.usefixtures("hasty")
def test_a_program_ends_as_without_experiments() -> None:
    (without, bare), (with_, trace) = outcome(False), outcome(True)
    assert all(torch.equal(one, other) for one, other in zip(without, with_, strict=True))
    assert not bare.of(Experiment) and not trace.of(Failure)
    assert trace.header.steps == 2 and len(trace.of(Step)) == 2
    found = {each.name: each for each in trace.of(Experiment)}
    assert set(found) == {
        "autocast", "channels-last", "autocast-channels-last", "fused-optimizer", "channel-multiples",
        "bias-before-norm",
    }  # fmt: skip
    for each in found.values():
        assert each.before_ms > 0 and each.low <= each.ratio <= each.high and each.device == "cpu"
        assert each.calls_per_step == 1 and each.difference is not None and each.difference < 0.05
    fused = found["fused-optimizer"]
    assert fused.place is not None and fused.place.text == "optimizer = torch.optim.Adam(model.parameters())"
    assert (fused.scope, fused.subject, fused.codes) == ("optimizer", "Adam of 8 tensors", ("TPF601",))
    whole, bias = found["channels-last"], found["bias-before-norm"]
    assert (whole.scope, whole.subject, whole.shapes, whole.dtype) == (
        "model",
        "Sequential",
        ((4, 3, 8, 8),),
        "float32",
    )
    assert whole.place is not None and whole.place.text == "return nn.Sequential("
    assert bias.place is not None and bias.place.text.startswith("nn.Conv2d(3, 8, 3)") and bias.codes == ("TPF301",)
    assert bias.subject == "0 Conv2d(3, 8, kernel_size=(3, 3), …)"
    assert found["autocast"].dtype == "float32" and found["autocast"].change == "bfloat16 autocast"
    assert found["channel-multiples"].change in (
        "out_features 1008 instead of 1001",
        "in_features 1008 instead of 1001",
    )


@pytest.mark.usefixtures("hasty")
def test_an_evaluation() -> None:
    class Merged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)
            self.merged = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.one(x) if self.merged else self.one(x) + self.other(x)

        def reparameterize(self) -> None:
            with torch.no_grad():
                self.one.weight += self.other.weight
                self.one.bias += self.other.bias
            self.merged = True

    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.AdaptiveAvgPool2d((1, 4)), Merged()).eval()
    with perflint.trace(experiments=True) as session:
        for _ in range(3):
            with torch.inference_mode():
                model(torch.rand(2, 3, 8, 8))
            session.step()
    assert session.trace is not None and not session.trace.of(Failure)
    found = {(each.name, each.scope): each for each in session.trace.of(Experiment)}
    assert {("conv-bn-fusion", "layer"), ("conv-bn-fusion", "model"), ("reparameterisation", "model")} <= set(found)
    for name in ("conv-bn-fusion", "reparameterisation"):
        differs = found[name, "model"].difference
        assert differs is not None and differs < 1e-5
    assert not model[3].merged and isinstance(model[1], nn.BatchNorm2d)


@pytest.mark.usefixtures("hasty")
def test_an_evaluation_between_steps_of_training_is_tried_in_the_modes_of_its_call() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 36, 4))
    with perflint.trace(experiments=True, warmup=1) as session:
        for _ in range(5):
            model.eval()
            with torch.inference_mode():
                model(torch.rand(2, 3, 8, 8))
            model.train()
            model(torch.rand(2, 3, 8, 8)).sum().backward()
            session.step()
    assert session.trace is not None and not session.trace.of(Failure)
    found = {each.name: each for each in session.trace.of(Experiment) if each.scope == "model"}
    differs = found["conv-bn-fusion"].difference
    assert differs is not None and differs < 1e-5


def test_the_call_in_training_is_tried_before_an_evaluation() -> None:
    live, model = Live(), nn.Linear(2, 2)
    for size in (3, 4):
        model.eval()
        with torch.no_grad():
            live.called(model, (torch.ones(size, 2),), {})
        model.train()
        live.called(model, (torch.ones(2 * size, 2),), {})
    (root,) = live.roots()
    assert root.mode.backward and root.arguments[0].shape == (6, 2) and root.count == 2
    evaluation = live.evaluation_of(root)
    assert evaluation is not None and not evaluation.mode.training and evaluation.arguments[0].shape == (3, 2)
    assert live.evaluation_of(evaluation) is None


def test_a_copy_has_the_modes_that_each_module_had_in_the_call() -> None:
    live = Live()
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout())
    model[0].eval()
    live.called(nn.DataParallel(model), (torch.ones(1, 2),), {})
    live.called(model, (torch.ones(1, 2),), {})
    model.eval()
    (root,) = live.roots()
    copy = root.copy()
    assert [each.training for each in copy.modules()] == [True, False, True]
    assert not model.training and not model[1].training
    model.append(nn.ReLU())
    assert all(each.training for each in root.copy().modules())


@pytest.mark.parametrize("inference", [True, False])
def test_the_inputs_of_a_graph_are_written_in_the_mode_that_made_them(inference: bool) -> None:
    with torch.inference_mode(inference):
        kept = torch.zeros(2).requires_grad_(not inference)
    overwrite([kept], [torch.ones(2)], inference)
    assert kept.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("does", "random_numbers"),
    [
        (lambda inner, x: F.dropout(inner(x)), True),
        (lambda inner, x: inner(x) + torch.rand(4), True),
        (lambda inner, x: F.dropout(inner(x), training=False), False),
        (lambda inner, x: inner(x).relu(), False),
    ],
)
def test_random_numbers_of_functions_are_seen(does: Callable[..., Any], random_numbers: bool) -> None:
    live, model = Live(), Calls(does, nn.Linear(4, 4))
    live.called(model, (torch.ones(2, 4),), {})
    assert draws(Subject(live.roots()[0], (), None, 0)) is random_numbers


def test_numbers_are_compared_as_well_as_tensors() -> None:
    half = torch.tensor(0.5)
    assert difference((torch.ones(3, 2), half), (torch.ones(3, 2), half * 2)) == 1.0
    assert difference(half, half) == 0.0 and difference(half, torch.ones(1)) is None


@pytest.mark.usefixtures("hasty")
def test_a_model_that_gives_its_loss_besides_is_tried() -> None:
    def scores_and_loss(inner: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = inner(x)
        return scores, scores.square().mean()

    model = Calls(scores_and_loss, nn.Linear(4, 4))
    with perflint.trace(experiments=True) as session:
        for _ in range(3):
            model(torch.rand(2, 4))[1].backward()
            session.step()
    assert session.trace is not None and not session.trace.of(Failure)
    assert "autocast" in {each.name for each in session.trace.of(Experiment)}


class Once(nn.Linear):
    """Fails in experiments."""

    calls = 0

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls > 2:
            raise ValueError("called too often")
        return super().forward(input)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    ("first", "message"),
    [
        (Locked(), "of the whole model: the model cannot be copied"),
        (Once(4, 4), "of the whole model: a call of a copy of it crashed: ValueError: called too often"),
    ],
)
def test_what_cannot_be_done_is_told(first: nn.Module, message: str) -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.AdaptiveAvgPool2d((1, 4)), first)
    with perflint.trace(experiments=True) as session:
        for _ in range(2):
            model(torch.rand(2, 3, 8, 8)).sum().backward()
            session.step()
    trace = session.trace
    assert trace is not None
    assert [failure.part for failure in trace.of(Failure)] == ["experiments"]
    assert trace.of(Failure)[0].message.startswith(message)
    (chain,) = trace.of(Experiment)
    assert (chain.name, chain.scope) == ("channels-last", "layer")
    assert chain.subject == "0 Conv2d(3, 8, kernel_size=(3, 3), …) to 1, 2 layers"


@pytest.mark.usefixtures("hasty")
def test_a_fault_of_an_experiment_is_told_and_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError("broken")

    monkeypatch.setattr(ChannelMultiples, "propose", lambda *_: [replace(PROPOSAL, build=broken)])
    live = Live()
    calls = recorded(nn.Linear(2, 2), torch.ones(1, 2))
    result = run.Experiments(calls, live, None, 1, lambda _: None).run(60.0)
    (failure,) = result
    assert isinstance(failure, Failure) and "ZeroDivisionError: broken" in failure.message
    assert failure.message.startswith("x of layer")


PROPOSAL = Proposal(
    "x",
    (),
    (ModuleCall("layer", "", "", None, (), (), False, False, False, "", 1, 1),),
    "",
    "",
    1.0,
    lambda: None,  # type: ignore[arg-type, return-value]
)


PROGRAM = """
import sys
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1001)

    def forward(self, x, *, scale):
        return self.layer(x) * scale

torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    net(torch.ones(2, 8), scale=2.0).sum().backward()
    optimizer.step()
print(float(net.layer.weight.sum()), torch.rand(1).item())
sys.exit(3 if "fail" in sys.argv else 0)
"""


def test_a_program_that_ends_early_has_its_experiments_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    options = ("--experiments", "--warmup", "1")
    plain = warm.script(tmp_path, "program.py")
    done = warm.trace(tmp_path, *options, "program.py")
    assert (done.code, done.out) == (0, plain.out), done.err
    trace = read_trace(tmp_path / "perflint-trace.jsonl.gz")
    assert {"fused-optimizer", "autocast"} <= {each.name for each in trace.of(Experiment)}, trace.of(Failure)
    assert "experiments, on the CPU: before / after" in done.err
    (whole,) = (each for each in trace.of(Experiment) if each.name == "autocast")
    assert whole.place is not None and (whole.place.file, whole.place.text) == ("program.py", "net = Net()")
    assert whole.called is not None and whole.called.text == "net(torch.ones(2, 8), scale=2.0).sum().backward()"
    failed = warm.trace(tmp_path, *options, "program.py", "fail")
    assert failed.code == 3 and "experiments" not in failed.err


def test_time_is_limited() -> None:
    calls = recorded(nn.Linear(64, 1001), torch.ones(2, 64))
    (failure,) = run.Experiments(calls, Live(), None, 1, lambda _: None).run(0.0)
    assert isinstance(failure, Failure)
    assert failure.message.startswith("no time was left within 0 s for channel-multiples of Linear(")


def test_the_rules_that_experiments_speak_for_exist() -> None:
    codes = {rule.code for rule in all_rules()}
    spoken = [code for each in (*run.LAYERS, *run.MODELS) for code in each.codes] + list(optimizers.CODES)
    assert spoken and set(spoken) <= codes


class Compiles(nn.Module):
    """Means something of its own by compiling."""

    def compile(self, *arguments: object, **named: object) -> None: ...

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class Agent(nn.Module):
    """Calls two models of its own by themselves, as an agent does."""

    def __init__(self) -> None:
        super().__init__()
        self.large, self.small = nn.Linear(8, 64), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.small(x)


def test_all_models_that_a_program_calls_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, int]] = []

    def change(experiment: Any, subject: Subject) -> str:
        tried.append((experiment.name, subject.module.out_features))
        return ""

    for kind in (*run.MODELS, *run.SMALLER):
        monkeypatch.setattr(type(kind), "change", change)
    live, pair = Live(), Agent()
    for model in (pair.small, pair.large):
        live.called(model, (torch.ones(1, 8),), {})
    here = Place("a.py", 1, 1, 1, 2, "", "")
    list(run.Experiments((), live, None, 1, lambda _: here)._of_model())
    assert tried == [(each.name, 64) for each in run.MODELS] + [(each.name, 2) for each in run.SMALLER]
    tried.clear()
    list(run.Experiments((), live, None, 1, lambda _: None)._of_model())
    assert {size for _, size in tried} == {64}


def test_graphs_are_compiled_first_if_the_gpu_waits_most_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (*run.MODELS, *run.SMALLER):
        monkeypatch.setattr(type(kind), "change", lambda each, subject: each.name)
    monkeypatch.setattr(ChannelMultiples, "propose", lambda *_: [PROPOSAL])
    here = Place("a.py", 1, 1, 1, 2, "", "")
    orders = []
    for idle in (0.4, 0.6):
        live, pair = Live(), Agent()
        for model in (pair.large, pair.small):
            live.called(model, (torch.ones(1, 8),), {})
        tasks = list(run.Experiments((), live, idle, 1, lambda _: here)._tasks())
        orders.append([task.title.split(" of ")[0] for task in tasks])
    first, graphs = ["compile"] * 2, ["compile-with-graphs"] * 2
    assert orders[0][-5:] == ["x", "compile", "compile-with-graphs", "compile", "compile-with-graphs"]
    assert orders[1][-5:] == [*graphs, *first, "x"]


@pytest.mark.parametrize(
    ("module", "in_place"),
    [(Agent(), True), (nn.Sequential(nn.Linear(2, 2)), False), (nn.DataParallel(Agent()), True), (Compiles(), False)],
)
def test_where_a_model_can_be_compiled_in_place(module: nn.Module, in_place: bool) -> None:
    assert compiles_in_place(module) is in_place


# What the summary says of them.


def an_experiment(**changed: Any) -> Experiment:
    return replace(
        Experiment(
            "channels-last", (), "model", None, "Net", "channels_last", ((1, 3, 8, 8),), "float32", "cuda:0",
            13.4, 10.0, 1.34, 1.33, 1.35, 9, 1.0, 0.0,
        ),
        **changed,
    )  # fmt: skip


def test_the_summary_names_the_best_first() -> None:
    header = Header("", "", "", ("GPU",), (), "/", "", "marked", 0, 2, 1, "finished", True)
    records = (
        an_experiment(name="tf32", before_ms=1.0, after_ms=1.0, ratio=1.0),
        an_experiment(),
        an_experiment(before_ms=20.0, change="bfloat16 autocast", ratio=2.0),
    )
    text = trace_text(Trace(header, (Step(0, 2, 20.0), *records)), None, Style(False)).splitlines()
    at = next(number for number, line in enumerate(text) if line.startswith("3 experiments"))
    assert text[at + 1].split(maxsplit=5) == [
        "2.00",
        "x",
        "(1.33-1.35)",
        "10.000",
        "ms/step",
        "bfloat16 autocast of Net",
    ]
    assert text[at + 2].split(maxsplit=5) == ["1.34", "x", "(1.33-1.35)", "3.400", "ms/step", "channels_last of Net"]
    assert text[at + 3] == "1 more with less gain, none, or none that is certain: tf32."
