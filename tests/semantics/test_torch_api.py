"""torch's facts, each held against torch itself where it is installed."""

from __future__ import annotations

import ast
import inspect
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from perflint.semantics.facts import torch_api
from tests.tracer import warm

ROOT = Path(__file__).parents[2]
with_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

# Names in the expressions below: dtype and rank.
OPERANDS = {
    "x": ("float", 2), "y": ("float", 2), "v": ("float", 1), "s": ("float", 0), "b": ("float", 3), "img": ("float", 4),
    "w": ("float", 4), "k": ("int", 2), "i": ("int", 1), "m": ("bool", 2), "q": ("bool", 1),
}  # fmt: skip

# An expression, and its result: kind, then dtype and rank of tensors ("?": the facts do not tell).
CASES = """
torch.Tensor.max(x)                             tensor float 0
torch.Tensor.max(x, 1)                          tensors:2 float,int 1
torch.Tensor.max(x, dim=1, keepdim=True)        tensors:2 float,int 2
torch.Tensor.max(x, y)                          tensor float 2
torch.Tensor.max(x, other=v)                    tensor float 2
torch.max(x)                                    tensor float 0
torch.max(x, 0)                                 tensors:2 float,int 1
torch.max(k, dim=0)                             tensors:2 int,int 1
torch.max(x, y)                                 tensor float 2
torch.min(k)                                    tensor int 0
torch.median(x, 1)                              tensors:2 float,int 1
torch.Tensor.median(x)                          tensor float 0
torch.mode(x)                                   tensors:2 float,int 1
torch.kthvalue(x, 1)                            tensors:2 float,int 1
torch.Tensor.kthvalue(x, 1, keepdim=True)       tensors:2 float,int 2
torch.aminmax(x)                                tensors:2 float,float 0
torch.Tensor.amax(x, 1)                         tensor float 1
torch.Tensor.sum(x)                             tensor float 0
torch.Tensor.sum(m)                             tensor int 0
torch.Tensor.sum(k)                             tensor int 0
torch.Tensor.sum(x, -1)                         tensor float 1
torch.Tensor.sum(b, (0, 1))                     tensor float 1
torch.Tensor.sum(b, dim=(0, 1), keepdim=True)   tensor float 3
torch.Tensor.mean(x)                            tensor float 0
torch.mean(x, 0)                                tensor float 1
torch.Tensor.std(x)                             tensor float 0
torch.Tensor.var(x, dim=0)                      tensor float 1
torch.std_mean(x)                               tensors:2 float,float 0
torch.var_mean(x, 1)                            tensors:2 float,float 1
torch.Tensor.prod(k)                            tensor int 0
torch.Tensor.any(m)                             tensor bool 0
torch.Tensor.all(x)                             tensor bool 0
torch.any(m, 1)                                 tensor bool 1
torch.Tensor.argmax(x)                          tensor int 0
torch.Tensor.argmax(x, dim=-1)                  tensor int 1
torch.Tensor.norm(x)                            tensor float 0
torch.norm(x, dim=1)                            tensor float 1
torch.linalg.norm(x)                            tensor float 0
torch.linalg.vector_norm(x, dim=1)              tensor float 1
torch.linalg.det(b)                             tensor float 1
torch.linalg.inv(x)                             tensor float 2
torch.linalg.eigh(x)                            tensors:2 float,float ?
torch.linalg.svd(x)                             tensors:3 float,float,float ?
torch.quantile(x, 0.5)                          tensor float ?
torch.Tensor.logsumexp(x, 1)                    tensor float 1
torch.Tensor.cumsum(m, 0)                       tensor int 2
torch.Tensor.cummax(x, 0)                       tensors:2 float,int 2
torch.Tensor.topk(x, 1)                         tensors:2 float,int 2
torch.topk(k, 1)                                tensors:2 int,int 2
torch.Tensor.sort(x)                            tensors:2 float,int 2
torch.Tensor.argsort(x)                         tensor int 2
torch.searchsorted(v, x)                        tensor int ?
torch.bincount(i)                               tensor int 1
torch.bincount(i, weights=v)                    tensor float 1
torch.nonzero(x)                                tensor int 2
torch.nonzero(x, as_tuple=True)                 tensors int 1
torch.Tensor.nonzero(m, as_tuple=False)         tensor int 2
torch.Tensor.argwhere(m)                        tensor int 2
torch.where(m)                                  tensors int 1
torch.where(m, x, y)                            tensor float 2
torch.where(m, 1.0, y)                          tensor float 2
torch.where(m, x, False)                        tensor float 2
torch.Tensor.where(x, m, y)                     tensor float 2
torch.unique(x)                                 tensor float 1
torch.unique(k, return_inverse=True)            tensors:2 int,int ?
torch.Tensor.unique(x, return_counts=True)      tensors:2 float,int ?
torch.unique(x, True, True, True)               tensors:3 float,int,int ?
torch.unique(x, dim=0)                          tensor float 2
torch.unique_consecutive(x, return_counts=True) tensors:2 float,int ?
torch.masked_select(x, m)                       tensor float 1
torch.Tensor.masked_fill(v, m, 0.0)             tensor float 2
torch.Tensor.masked_fill_(x, m, 0.0)            self float 2
torch.Tensor.repeat_interleave(x, 2)            tensor float 1
torch.repeat_interleave(x, 2, dim=0)            tensor float 2
torch.Tensor.index_select(x, 0, i)              tensor float 2
torch.gather(x, 1, k)                           tensor float 2
torch.nn.functional.one_hot(k)                  tensor int 3
torch.eq(x, y)                                  tensor bool 2
torch.Tensor.lt(x, 0)                           tensor bool 2
torch.isnan(x)                                  tensor bool 2
torch.Tensor.isfinite(x)                        tensor bool 2
torch.logical_and(m, q)                         tensor bool 2
torch.Tensor.logical_not(x)                     tensor bool 2
torch.bitwise_and(m, m)                         tensor bool 2
torch.isin(x, v)                                tensor bool ?
torch.isclose(x, y)                             tensor bool 2
torch.Tensor.long(x)                            tensor int 2
torch.Tensor.int(x)                             tensor int 2
torch.Tensor.float(k)                           tensor float 2
torch.Tensor.half(k)                            tensor float 2
torch.Tensor.bool(k)                            tensor bool 2
torch.add(k, x)                                 tensor float 2
torch.Tensor.mul(x, v)                          tensor float 2
torch.sub(k, i)                                 tensor int 2
torch.div(k, k)                                 tensor float 2
torch.div(k, k, rounding_mode="floor")          tensor int 2
torch.Tensor.floor_divide(k, k)                 tensor int 2
torch.maximum(k, x)                             tensor float 2
torch.Tensor.add_(x, 1)                         self float 2
torch.Tensor.unsqueeze_(x, 0)                   self float 3
torch.Tensor.requires_grad_(x)                  self float 2
torch.Tensor.copy_(x, k)                        self float 2
torch.exp(k)                                    tensor float 2
torch.sigmoid(x)                                tensor float 2
torch.Tensor.softmax(x, -1)                     tensor float 2
torch.Tensor.abs(k)                             tensor int 2
torch.Tensor.clamp(k, 0)                        tensor int 2
torch.Tensor.clamp(x, min=0)                    tensor float 2
torch.matmul(x, y)                              tensor float ?
torch.mm(x, y)                                  tensor float 2
torch.bmm(b, b)                                 tensor float 3
torch.Tensor.dot(v, v)                          tensor float 0
torch.einsum("ij,jk->ik", x, y)                 tensor float ?
torch.cdist(x, y)                               tensor float ?
torch.cat([x, y])                               tensor float 2
torch.stack([x, y])                             tensor float 3
torch.Tensor.flatten(b)                         tensor float 1
torch.Tensor.flatten(b, 1)                      tensor float ?
torch.Tensor.view(x, -1)                        tensor float 1
torch.Tensor.view(x, 2, 2, 4)                   tensor float 3
torch.Tensor.reshape(x, (16, 1))                tensor float 2
torch.Tensor.expand(v, 3, 4)                    tensor float 2
torch.Tensor.permute(b, 2, 0, 1)                tensor float 3
torch.Tensor.transpose(x, 0, 1)                 tensor float 2
torch.Tensor.unsqueeze(x, 0)                    tensor float 3
torch.Tensor.squeeze(x)                         tensor float ?
torch.Tensor.select(x, 0, 0)                    tensor float 1
torch.Tensor.unfold(x, 0, 2, 1)                 tensor float 3
torch.Tensor.detach(x)                          tensor float 2
torch.Tensor.clone(x)                           tensor float 2
torch.Tensor.contiguous(x)                      tensor float 2
torch.Tensor.cpu(x)                             tensor float 2
torch.Tensor.to(x, "cpu")                       tensor ? 2
torch.Tensor.type(x)                            str
torch.Tensor.chunk(x, 2)                        tensors float 2
torch.Tensor.split(x, 2)                        tensors float 2
torch.Tensor.unbind(x)                          tensors float 1
torch.meshgrid(v, v, indexing="ij")             tensors float ?
torch.Tensor.item(s)                            scalar
torch.Tensor.tolist(x)                          list
torch.Tensor.numpy(x)                           array
torch.Tensor.size(x)                            size
torch.Tensor.size(x, 0)                         int
torch.Tensor.size(x, dim=0)                     int
torch.Tensor.dim(x)                             int
torch.Tensor.numel(x)                           int
torch.Tensor.data_ptr(x)                        int
torch.Tensor.is_contiguous(x)                   bool
torch.Tensor.is_floating_point(x)               bool
torch.Tensor.equal(x, y)                        bool
torch.allclose(x, y)                            bool
torch.equal(x, y)                               bool
torch.is_tensor(x)                              bool
torch.is_grad_enabled()                         bool
torch.numel(x)                                  int
torch.get_default_dtype()                       dtype
torch.result_type(x, k)                         dtype
torch.get_num_threads()                         int
torch.zeros(2, 3)                               tensor float 2
torch.ones((2, 3, 4))                           tensor float 3
torch.empty(4)                                  tensor float 1
torch.rand(2, 3)                                tensor float 2
torch.randn(3)                                  tensor float 1
torch.full((2, 3), 1)                           tensor ? 2
torch.randint(0, 3, (2,))                       tensor int ?
torch.randperm(4)                               tensor int 1
torch.arange(4)                                 tensor ? 1
torch.linspace(0, 1, 4)                         tensor float 1
torch.eye(3)                                    tensor float 2
torch.tensor([1])                               tensor ? ?
torch.zeros_like(k)                             tensor int 2
torch.rand_like(x)                              tensor float 2
torch.Tensor.new_zeros(k, 3)                    tensor int 1
torch.Tensor.new_full(x, (2, 3), 1)             tensor float 2
torch.multinomial(x, 1)                         tensor int ?
torch.bernoulli(x)                              tensor float 2
torch.normal(x, 1.0)                            tensor float 2
torch.nn.functional.relu(k)                     tensor int 2
torch.nn.functional.dropout(x)                  tensor float 2
torch.nn.functional.linear(x, y)                tensor float 2
torch.nn.functional.conv2d(img, w)              tensor float 4
torch.nn.functional.max_pool2d(img, 2)          tensor float 4
torch.nn.functional.max_pool2d(img, 2, return_indices=True) tensors:2 float,int 4
torch.nn.functional.interpolate(img, scale_factor=2) tensor float 4
torch.nn.functional.pad(x, (1, 1))              tensor float 2
torch.nn.functional.layer_norm(x, (4,))         tensor float 2
torch.nn.functional.normalize(x)                tensor float 2
torch.nn.functional.embedding(i, x)             tensor float 2
torch.nn.functional.cross_entropy(x, i)         tensor float 0
torch.nn.functional.cross_entropy(x, i, reduction="none") tensor float ?
torch.nn.functional.mse_loss(x, y, reduction="sum") tensor float 0
torch.nn.functional.scaled_dot_product_attention(b, b, b) tensor float 3
torch.fft.fft(x)                                tensor float 2
torch.fft.fftfreq(4)                            tensor float 1
torch.special.erf(x)                            tensor float 2
torch.nn.init.normal_(x)                        tensor ? ?
torch.nn.utils.clip_grad_norm_([x], 1.0)        tensor float 0
"""


def _cases() -> list[Any]:
    lines = [line.rpartition(")") for line in CASES.strip().splitlines()]
    return [pytest.param(f"{call})", expected.split(), id=f"{call})") for call, _, expected in lines]


def _words(node: ast.expr) -> object:
    """What a caller knows of an argument: literals, `...` for the rest."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ...


def _told(expression: str) -> tuple[torch_api.Result, list[tuple[str, int]], ast.Call]:
    """The facts about a call, its tensor operands, and the call."""
    call = ast.parse(expression, mode="eval").body
    assert isinstance(call, ast.Call)
    name = ast.unparse(call.func)
    arguments = call.args[1:] if name.startswith("torch.Tensor.") else call.args
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}

    def literal(name: str, position: int | None) -> object:
        if name in keywords:
            return _words(keywords[name])
        return _words(arguments[position]) if position is not None and position < len(arguments) else None

    result = torch_api.result(name)
    assert result is not None
    chosen = result.variant(
        lambda name, position: literal(name, position) is not None and literal(name, position) is not False,
        lambda position: position < len(arguments) and ast.unparse(arguments[position]) in OPERANDS,
        literal,
    )
    names = [
        node.id
        for argument in [*call.args, *keywords.values()]
        for node in ast.walk(argument)
        if isinstance(node, ast.Name)
    ]
    return chosen, [OPERANDS[name] for name in names], call


def _dtype(fact: str, operands: list[tuple[str, int]]) -> str:
    kinds = [kind for kind, _ in operands]
    if fact in ("same", "arith") and kinds:
        return "int" if fact == "arith" and kinds[0] == "bool" else kinds[0]
    if fact == "promote" and kinds:
        return max(kinds, key=("bool", "int", "float").index)
    return fact if fact in ("bool", "int", "float") else "?"


def _rank(result: torch_api.Result, operands: list[tuple[str, int]], call: ast.Call) -> str:
    ranks = [rank for _, rank in operands]
    if result.rank is not None:
        return str(result.rank)
    if result.shape and ranks:
        change = 0 if result.shape == "same" else None if result.shape == "broadcast" else int(result.shape)
        return str(max(ranks) if change is None else ranks[0] + change)
    literals = [_words(node) for node in call.args] + [_words(word.value) for word in call.keywords]
    if result.dims == "reduce":
        dims = next(value for value in literals if type(value) in (int, tuple))
        keeps = any(word.arg == "keepdim" for word in call.keywords)
        return str(ranks[0] - (0 if keeps else 1 if isinstance(dims, int) else len(dims)))  # type: ignore[arg-type]
    if result.dims in ("size", "sizes"):
        sizes = next((value for value in literals if isinstance(value, tuple)), None)
        return str(sum(isinstance(value, int) for value in literals) if sizes is None else len(sizes))
    return "?"


@pytest.mark.parametrize(("expression", "expected"), _cases())
def test_facts(expression: str, expected: list[str]) -> None:
    result, operands, call = _told(expression)
    found = [result.kind]
    if result.kind.startswith(("tensor", "self")):
        count = result.count or 1
        facts = result.dtype.split(",")
        facts *= count if len(facts) == 1 else 1
        found += [",".join(_dtype(fact, operands) for fact in facts), _rank(result, operands, call)]
    assert found == expected


@pytest.fixture(scope="module")
def operands() -> dict[str, Any]:
    """Small CPU tensors by name, for `eval`."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    dtypes = {"float": torch.float32, "int": torch.int64, "bool": torch.bool}
    made = {}
    for name, (dtype, rank) in OPERANDS.items():
        # Indices or probabilities, invertible as matrices.
        values = torch.ones((4,) * rank) + (torch.eye(4) if rank > 1 else 0)
        made[name] = values / 2 if dtype == "float" else values.to(dtypes[dtype])
    return {"torch": torch, **made}


@pytest.mark.parametrize(("expression", "expected"), _cases())
def test_torch_agrees(expression: str, expected: list[str], operands: dict[str, Any]) -> None:
    copies = {name: value.clone() if name in OPERANDS else value for name, value in operands.items()}
    result = eval(expression, copies)
    torch = operands["torch"]
    kind, *rest = expected
    if not kind.startswith(("tensor", "self")):
        assert _plain(kind, result, torch)
        return
    items = [result] if kind in ("tensor", "self") else list(result)
    assert all(isinstance(item, torch.Tensor) for item in items)
    assert kind != "self" or result is copies[expression.partition("(")[2][0]]
    assert ":" not in kind or len(items) == int(kind.partition(":")[2])
    dtypes = rest[0].split(",") * (len(items) if "," not in rest[0] else 1)
    for item, dtype in zip(items, dtypes, strict=True):
        assert dtype in ("?", _dtype_of(item, torch))
        assert rest[1] in ("?", str(item.ndim))


def _plain(kind: str, result: object, torch: Any) -> bool:
    import numpy

    types: dict[str, Any] = {
        "bool": bool,
        "int": int,
        "str": str,
        "list": list,
        "array": numpy.ndarray,
        "scalar": (bool, int, float),
    }
    types |= {"size": (torch.Size, tuple), "dtype": torch.dtype}
    return isinstance(result, types[kind])


def _dtype_of(tensor: Any, torch: Any) -> str:
    if tensor.dtype is torch.bool:
        return "bool"
    return "float" if tensor.dtype.is_floating_point or tensor.dtype.is_complex else "int"


ATTRIBUTES = {
    "tensor": "T mT H real data grad",
    "size": "shape",
    "dtype": "dtype",
    "device": "device",
    "bool": "is_cuda is_cpu requires_grad is_leaf is_sparse is_meta",
    "int": "ndim itemsize nbytes",
}


@pytest.mark.parametrize(("kind", "names"), list(ATTRIBUTES.items()))
def test_attributes(kind: str, names: str) -> None:
    for name in names.split():
        result = torch_api.result(f"torch.Tensor.{name}")
        assert result is not None and result.kind == kind, name


@pytest.mark.parametrize(
    ("device", "names"),
    [
        (
            "cpu-factory",
            "zeros ones full empty rand randn randint arange linspace eye tensor as_tensor from_numpy randperm Tensor "
            "FloatTensor",
        ),
        ("like", "zeros_like randn_like Tensor.new_zeros Tensor.new_tensor Tensor.add_ Tensor.copy_"),
        ("host", "Tensor.cpu get_rng_state"),
        ("device", "Tensor.cuda cuda.FloatTensor"),
        ("argument", "Tensor.to"),
        ("follow", "add Tensor.sum cat where nn.functional.relu normal"),
        ("unknown", "Tensor.item is_tensor"),
    ],
)
def test_devices(device: str, names: str) -> None:
    for name in names.split():
        result = torch_api.result(f"torch.{name}")
        assert result is not None and result.device == device, name


def test_normal_makes_a_tensor_only_from_a_size() -> None:
    result = torch_api.result("torch.normal")
    assert result is not None
    assert result.variant(lambda name, position: name == "size").device == "cpu-factory"


FACTORIES = """
zeros(2) ones(2) full((2,),1) empty(2) rand(2) randn(2) randint(3,(2,)) arange(3) linspace(0,1,3) logspace(0,1,3) eye(2)
tensor([1]) as_tensor([1]) asarray([1]) randperm(3) tril_indices(2,2) triu_indices(2,2) hann_window(3) scalar_tensor(1)
empty_strided((2,),(1,)) fft.fftfreq(3)
"""


@with_torch
@pytest.mark.parametrize("call", FACTORIES.split())
def test_factories_follow_the_default_device_alone(call: str) -> None:
    import torch

    result = torch_api.result("torch." + call.partition("(")[0])
    assert result is not None and result.device == "cpu-factory"
    with torch.device("meta"):
        made = eval(f"torch.{call}", {"torch": torch})
    assert made.device.type == "meta"
    assert eval(f"torch.{call}", {"torch": torch}).device.type == "cpu"


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("torch.nn.modules.conv.Conv2d", "torch.nn.Conv2d"),
        ("torch.nn.modules.Conv2d", "torch.nn.Conv2d"),
        ("torch.nn.modules.module.Module.to", "torch.nn.Module.to"),
        ("torch.nn.parameter.Parameter", "torch.nn.Parameter"),
        ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("torch.optim.adam.Adam", "torch.optim.Adam"),
        ("torch.optim.adam.Adam.step", "torch.optim.Adam.step"),
        ("torch.functional.F.relu", "torch.nn.functional.relu"),
        ("torch.torch.rand", "torch.rand"),
        ("torch.torch.nn.Linear", "torch.nn.Linear"),
        ("torch.torchvision", "torch.torchvision"),
        ("torch.functional.einsum", "torch.einsum"),
        ("torch._tensor.Tensor", "torch.Tensor"),
        ("torch.cuda.amp.grad_scaler.GradScaler", "torch.cuda.amp.GradScaler"),
        ("torch.amp.autocast_mode.autocast", "torch.amp.autocast"),
        ("torch.concat", "torch.concat"),
        ("torch.nn.functional.relu", "torch.nn.functional.relu"),
        ("numpy.array", "numpy.array"),
    ],
)
def test_canonical(name: str, public: str) -> None:
    assert torch_api.canonical(name) == public


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        (
            "torch.nn.Conv2d",
            "in_channels out_channels kernel_size stride padding dilation groups bias padding_mode device dtype",
        ),
        ("torch.nn.Linear", "in_features out_features bias device dtype"),
        (
            "torch.nn.LSTM",
            "input_size hidden_size num_layers bias batch_first dropout bidirectional proj_size device dtype",
        ),
        ("torch.nn.Tanh", ""),
        ("torch.Tensor.to", "device dtype non_blocking copy memory_format"),
        ("torch.Tensor.cuda", "device non_blocking memory_format"),
        ("torch.Tensor.repeat_interleave", "repeats dim output_size"),
        ("torch.nn.functional.one_hot", "tensor num_classes"),
        ("torch.bincount", "input weights minlength"),
        ("torch.where", "condition input other out"),
        ("torch.unique", "input sorted return_inverse return_counts dim"),
        ("torch.amp.autocast", "device_type dtype enabled cache_enabled"),
        ("torch.amp.GradScaler", "device init_scale growth_factor backoff_factor growth_interval enabled"),
        ("torch.argsort", "input dim descending stable out"),
        ("torch.zeros", "size out dtype layout device pin_memory requires_grad"),
    ],
)
def test_parameters(name: str, parameters: str) -> None:
    assert torch_api.parameters(name) == tuple(parameters.split())


@with_torch
@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_recurrent_modules_take_these_in_order(name: str) -> None:
    import torch

    found = torch_api.parameters(f"torch.nn.{name}")
    assert found is not None
    values = {**torch_api.defaults(f"torch.nn.{name}"), "input_size": 2, "hidden_size": 3, "num_layers": 2}
    if name == "LSTM":
        # The modules hand these on by position, after the mode that each sets itself.
        assert ("mode", *found) == tuple(inspect.signature(torch.nn.RNNBase).parameters)
    module = getattr(torch.nn, name)(*(values[key] for key in found))
    assert (module.input_size, module.hidden_size, module.num_layers) == (2, 3, 2)
    assert module.bias is True and module.batch_first is False and module.dropout == 0.0


def test_defaults() -> None:
    assert torch_api.defaults("torch.nn.Conv2d")["bias"] is True
    assert torch_api.defaults("torch.optim.Adam")["betas"] == (0.9, 0.999)
    assert torch_api.defaults("torch.utils.data.DataLoader")["num_workers"] == 0
    assert torch_api.defaults("torch.amp.GradScaler")["init_scale"] == 65536.0
    assert "in_channels" not in torch_api.defaults("torch.nn.Conv2d")
    assert torch_api.defaults("torch.no.such") == {}
    assert torch_api.parameters("torch.no.such") is None


def test_modules() -> None:
    attention, recurrent = torch_api.module("torch.nn.MultiheadAttention"), torch_api.module("torch.nn.LSTM")
    assert attention is not None and attention.result == "tensor,tensor|none"
    assert (
        recurrent is not None
        and recurrent.result == "tensor,(tensor,tensor)"
        and recurrent.bases == ("torch.nn.RNNBase",)
    )
    loss, lazy = torch_api.module("torch.nn.CrossEntropyLoss"), torch_api.module("torch.nn.modules.conv.LazyConv2d")
    assert loss is not None and loss.loss and loss.result == "tensor"
    assert lazy is not None and lazy.name == "torch.nn.LazyConv2d" and lazy.bases == ("torch.nn.Conv2d",)
    assert torch_api.module("torch.optim.Adam") is None


def test_kinds_of_classes() -> None:
    assert torch_api.is_module("torch.nn.BatchNorm2d") and not torch_api.is_module("torch.nn.Parameter")
    assert torch_api.is_optimizer("torch.optim.AdamW") and not torch_api.is_optimizer("torch.optim.lr_scheduler.StepLR")


@with_torch
def test_modules_give_what_is_said() -> None:
    import torch

    x = torch.ones(2, 3, 4)
    for name, arguments, inputs in (
        ("MultiheadAttention", (4, 1), (x, x, x)),
        ("LSTM", (4, 4), (x,)),
        ("GRU", (4, 4), (x,)),
        ("LSTMCell", (4, 4), (x[0],)),
        ("GRUCell", (4, 4), (x[0],)),
        ("Linear", (4, 4), (x,)),
    ):
        facts = torch_api.module(f"torch.nn.{name}")
        assert facts is not None
        assert _shape(getattr(torch.nn, name)(*arguments)(*inputs)) == facts.result.removesuffix("|none"), name


def _shape(value: object) -> str:
    if isinstance(value, tuple):
        inner = (f"({_shape(item)})" if isinstance(item, tuple) else _shape(item) for item in value)
        return ",".join(inner)
    return "tensor"


def test_tensor_only_methods() -> None:
    only, calls = torch_api.tensor_only_methods(), torch_api.tensor_only_calls()
    assert {"unsqueeze", "detach", "backward_"} & only == {"unsqueeze", "detach"}
    assert {"index_select", "masked_fill", "is_cuda", "permute", "requires_grad", "contiguous"} <= only
    assert (
        not {"shape", "dtype", "sum", "mean", "item", "copy", "values", "dim", "name", "to", "T", "stride", "cuda"}
        & only
    )
    assert {"dim", "size", "unsqueeze"} <= calls
    assert only <= torch_api.tensor_methods()


@with_torch
def test_tensor_only_methods_are_only_of_tensors() -> None:
    import numpy
    import torch

    others = (numpy.ndarray, numpy, list, dict, str, torch.nn.Module, torch.nn.Conv2d(1, 1, 1), torch.optim.Optimizer)
    for other in others:
        assert not torch_api.tensor_only_methods() & set(dir(other)) - {"requires_grad"}
    missing = torch_api.tensor_methods() - set(dir(torch.Tensor))
    assert missing <= {"align_to", "refine_names", "rename", "rename_", "names", "name"}, (
        "those of named tensors, before 2.13"
    )


def _tagged(tag: str) -> set[str]:
    """The functions that torch itself gives a tag."""
    return set(torch_api.table("syncs")[tag]["names"].split())


def test_syncs() -> None:
    assert {"torch.nonzero", "torch.Tensor.nonzero", "torch.masked_select", "torch.unique"} <= _tagged(
        "dynamic_output_shape"
    )
    assert {"torch.Tensor.item", "torch.equal", "torch.allclose"} <= _tagged("data_dependent_output")
    assert "torch.add" not in _tagged("dynamic_output_shape") | _tagged("data_dependent_output")


def test_unknown_names() -> None:
    assert torch_api.result("torch.no_such_function") is None
    assert torch_api.result("numpy.zeros") is None
    assert torch_api.result("builtins.print") is None


def test_all_facts_are_of_known_kinds() -> None:
    data = tomllib.loads(Path(torch_api.__file__).with_name("functions.toml").read_text())
    seen = 0
    for namespace, groups in data["kind"].items():
        for names in groups.values():
            for name in names.split():
                result = torch_api.result(f"{namespace}.{name}")
                assert result is not None
                for found in (result, *(chosen for _, chosen in result.variants)):
                    assert found.kind.partition(":")[0] in KINDS
                    assert set(found.dtype.split(",")) <= DTYPES
                    seen += 1
    assert seen > 1500


KINDS = {
    "tensor", "tensors", "self", "int", "float", "bool", "scalar", "str", "size", "dtype", "device", "list", "array",
    "none", "any",
}  # fmt: skip
DTYPES = {"bool", "int", "float", "same", "arith", "promote", "scalars", "unknown"}


def test_arguments_that_are_read_as_numbers() -> None:
    numbers = torch_api.numbers()
    assert torch_api.Number("alpha", None, False) in numbers["torch.Tensor.add_"]
    assert torch_api.Number("size", 0, True) in numbers["torch.zeros"]
    assert torch_api.Number("p", 1, False) in numbers["torch.nn.functional.dropout"]
    # Another form of these takes a tensor, also in the place of the number.
    assert not {"torch.mul", "torch.Tensor.clamp", "torch.Tensor.fill_", "torch.lerp"} & numbers.keys()
    assert torch_api.Number("value", None, False) in numbers["torch.scatter"]


@with_torch
def test_files_are_what_the_generator_writes() -> None:
    import numpy
    import torch

    written = tomllib.loads(Path(torch_api.__file__).with_name("functions.toml").read_text())
    if (torch.__version__.split("+")[0], numpy.__version__) != (written["torch"], written["numpy"]):
        pytest.skip("written with other versions")
    done = warm.script(ROOT, "tools/generate_torch_api.py", "--check")
    assert done.code == 0, done.out + done.err
