"""TF32, autocast to bfloat16 and channels_last: their places, their results on a CPU, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from perflint.frozen import replace
from perflint.tune.evidence import Evidence
from perflint.tune.graphs.outlining import Seen
from perflint.tune.precision import in_bfloat16, in_channels_last, in_tf32
from perflint.tune.refused import Refused
from tests.tune.test_compiled import FUNCTIONS, HEAD, METHOD, PASSED, SCRIPT, seen

STEP = "optimizer.step()\n"


def written(
    text: str, others: dict[str, str] | None = None, busy: float | None = 5.0, oldest: tuple[int, int] | None = None
) -> str:
    evidence = Evidence(Seen({"a.py": {9}}, ()), (), 10.0, busy, oldest)
    return in_tf32({"a.py": text, **(others or {})}, evidence)["a.py"]


@pytest.mark.parametrize(
    ("imports", "torch"),
    [
        ("import torch\n", "torch"),
        ("import torch as th\nfrom torch import nn\n", "th"),
        ('"""A program."""\nfrom __future__ import annotations\nimport os, torch\nimport sys\n', "torch"),
        ("import torch\nfrom torch.nn import (\n    Linear,\n)\n", "torch"),
    ],
)
def test_it_stands_behind_the_imports(imports: str, torch: str) -> None:
    assert written(imports + STEP) == f'{imports}\n{torch}.set_float32_matmul_precision("high")\n{STEP}'


def test_it_runs() -> None:
    text = written("import torch\nbefore = torch.get_float32_matmul_precision()\n")
    seen: dict[str, object] = {}
    try:
        exec(compile(text, "a.py", "exec"), seen)
        assert seen["before"] == "high"
    finally:
        exec('import torch\ntorch.set_float32_matmul_precision("highest")')


@pytest.mark.parametrize("imports", ["from torch import nn\n", "import torch; x = 1\n", "x = 1\nimport torch\n"])
def test_no_place(imports: str) -> None:
    with pytest.raises(Refused, match="imports torch at its beginning"):
        written(imports + STEP)


@pytest.mark.parametrize(
    "choice",
    [
        'torch.set_float32_matmul_precision("medium")',
        "torch.backends.cuda.matmul.allow_tf32 = False",
        'torch.backends.cuda.matmul.fp32_precision = "ieee"',
    ],
)
def test_a_program_that_chooses_itself(choice: str) -> None:
    with pytest.raises(Refused, match=r"b\.py chooses the precision"):
        written("import torch\n" + STEP, {"b.py": choice})


IMAGES = """
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(288, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for _ in range(4):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(torch.randn(2, 3, 8, 8)), torch.tensor([1, 2]))
    loss.backward()
    optimizer.step()
    shown.append(loss.item())
"""
TWO = """
torch.manual_seed(0)
one, other = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*one.parameters(), *other.parameters()], lr=0.1)
for _ in range(4):
    hidden = one(torch.ones(2, 4))
    loss = other(hidden).square().mean()
    penalty = one(torch.ones(2, 4)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    penalty.backward()
    optimizer.step()
    shown.append(loss.item())
"""
Write = Callable[[dict[str, str], Evidence], dict[str, str]]


def changed(write: Write, body: str) -> str:
    text = HEAD + body
    return write({"a.py": text}, Evidence(seen(text), (), 10.0, 5.0))["a.py"]


def ran(text: str) -> tuple[list[float], dict[str, Any]]:
    import torch

    torch.manual_seed(0)
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, "a.py", "exec"), names)
    return names["shown"], names


@pytest.mark.filterwarnings("ignore:.*CUDA is not available")
@pytest.mark.parametrize(
    ("body", "under"),
    [
        (SCRIPT, ["loss = net(torch.ones(2, 4)).mean()"]),
        (FUNCTIONS, ["loss = model(torch.ones(2, 4)).mean()"]),
        (METHOD, ["loss = self.net(x).mean()"]),
        (IMAGES, ["loss = nn.functional.cross_entropy(net(torch.randn(2, 3, 8, 8)), torch.tensor([1, 2]))"]),
        (TWO, ["hidden = one(torch.ones(2, 4))", "loss = other(hidden).square().mean()"]),
    ],
    ids="SCRIPT FUNCTIONS METHOD IMAGES TWO".split(),
)
def test_autocast_stands_around_forward_pass_and_loss(body: str, under: list[str]) -> None:
    new = changed(in_bfloat16, body)
    lines = new.splitlines()
    at = next(number for number, line in enumerate(lines) if "autocast" in line)
    margin = lines[at][: -len(lines[at].lstrip())]
    assert lines[at] == f'{margin}with torch.autocast("cuda", dtype=torch.bfloat16):'
    assert lines[at + 1 : at + 1 + len(under)] == [f"{margin}    {each}" for each in under]
    # Without a GPU it does nothing; where it acts, the losses are others, but near.
    assert ran(new)[0] == (losses := ran(HEAD + body)[0])
    lower = ran(new.replace('"cuda"', '"cpu"'))[0]
    assert lower != losses and lower == pytest.approx(losses, rel=0.05, abs=0.02)


def test_each_model_that_can_be_is_under_autocast() -> None:
    new = changed(in_bfloat16, TWO)
    assert new.count("with torch.autocast(") == 1
    apart = TWO.replace("    optimizer.zero_grad()\n    loss.backward()\n", "    optimizer.zero_grad()\n")
    apart = apart.replace("    penalty =", "    loss.backward()\n    penalty =")
    assert changed(in_bfloat16, apart).count("with torch.autocast(") == 2


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (PASSED, "the model is not called in an assignment"),
        (SCRIPT.replace("loss.backward()", "(loss * 2).backward()"), "no later statement of the block calls"),
        (SCRIPT.replace("loss.backward()", "other = loss\n    other.backward()"), "other statements stand between"),
        (SCRIPT.replace("mean()", "mean(); other = 1"), "`loss` is not computed"),
        (
            SCRIPT.replace(
                "net(torch.ones(2, 4)).mean()", "nn.BCELoss()(net(torch.ones(2, 4)).sigmoid(), torch.ones(2, 1))"
            ),
            "uses `BCELoss`",
        ),
        (SCRIPT + "shown[0] = torch.tensor(shown[0]).numpy()\n", "uses `numpy`"),
        (SCRIPT + "torch.float16\n", "chooses formats itself"),
        (SCRIPT + "torch.bfloat16\n", "chooses formats itself"),
        (SCRIPT.replace("net(torch", "[net][0].forward(torch"), "the step calls no model"),
    ],
)
def test_no_autocast(body: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        changed(in_bfloat16, body)


@pytest.mark.parametrize(
    ("body", "before"),
    [
        (IMAGES, "for _ in range(4):"),
        (
            METHOD.replace("nn.Linear(4, 1)", "nn.Sequential(nn.Unflatten(0, (1, 1, 2)), nn.Conv2d(1, 4, 2))"),
            "        self.optimizer =",
        ),
    ],
    ids="IMAGES METHOD".split(),
)
def test_weights_are_converted_where_the_model_is_made(body: str, before: str) -> None:
    import torch

    new = changed(in_channels_last, body)
    model = "net" if body is IMAGES else "self.net"
    margin = before[: -len(before.lstrip())]
    assert f"{margin}{model}.to(memory_format=torch.channels_last)\n{before}" in new
    shown, names = ran(new)
    net = names["net"] if body is IMAGES else names["trainer"].net
    (first, *_) = (each for each in net.modules() if isinstance(each, torch.nn.Conv2d))
    assert first.weight.is_contiguous(memory_format=torch.channels_last)
    assert shown == pytest.approx(ran(HEAD + body)[0], rel=1e-4) and len(set(shown)) == len(shown)


def test_channels_last_needs_convolutions_in_one_process() -> None:
    with pytest.raises(Refused, match="no model with convolutions"):
        changed(in_channels_last, SCRIPT)
    text = HEAD + IMAGES
    group = replace(seen(text), distributed=True)
    with pytest.raises(Refused, match="one of a group"):
        in_channels_last({"a.py": text}, Evidence(group, (), 10.0, 5.0))
    with pytest.raises(Refused, match=r"a\.py chooses the layout itself"):
        changed(in_channels_last, IMAGES.replace("8, 8)", "8, 8).to(memory_format=torch.channels_last)"))


@pytest.mark.parametrize("write", [in_tf32, in_bfloat16, in_channels_last])
def test_without_a_gpu_or_with_an_old_torch(write: Write) -> None:
    text = HEAD + IMAGES
    facts = Evidence(seen(text), (), 10.0, 5.0)
    with pytest.raises(Refused, match="no GPU"):
        write({"a.py": text}, replace(facts, busy_ms=None))
    with pytest.raises(Refused, match=r"older than 1\.\d+"):
        write({"a.py": text}, replace(facts, oldest=(1, 4)))
    assert write({"a.py": text}, replace(facts, oldest=(1, 12)))["a.py"] != text
