"""What files say of the number formats that they, and the files they import, compute in."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Confidence, Finding, Severity
from perflint.rules.precision._region import Format, Region, region
from perflint.rules.precision.channels_by_dtype import ChannelsByDtype
from perflint.rules.precision.dims_not_multiple import DimsNotMultiple
from perflint.rules.precision.vocab_not_padded import VocabNotPadded
from perflint.rules.registry import RuleSet
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.source.text import Source


def region_of(text: str) -> Region:
    source = Source("example.py", text)
    return region(Model(source, Project([])))


def formats(text: str) -> set[Format]:
    return set(region_of(f"import torch\n{text}\n").formats)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("with torch.autocast('cuda', dtype=torch.bfloat16): pass", Format.BFLOAT16),
        ("with torch.autocast('cuda', torch.bfloat16): pass", Format.BFLOAT16),
        ("with torch.autocast('cuda'): pass", Format.FLOAT16),
        ("with torch.cuda.amp.autocast(): pass", Format.FLOAT16),
        ("scaler = torch.amp.GradScaler('cuda')", Format.FLOAT16),
        ("model.half()", Format.FLOAT16),
        ("model = model.bfloat16()", Format.BFLOAT16),
        ("model.to(torch.bfloat16)", Format.BFLOAT16),
        ("dtype = torch.float16 if cuda else torch.float32", Format.FLOAT16),
        ("trainer = Trainer(precision='bf16-mixed')", Format.BFLOAT16),
        ("trainer = Trainer(precision=16)", Format.FLOAT16),
        ("arguments = TrainingArguments(bf16=True)", Format.BFLOAT16),
        ("accelerator = Accelerator(mixed_precision='fp16')", Format.FLOAT16),
        ("torch.set_float32_matmul_precision('high')", Format.TF32),
        ("torch.backends.cuda.matmul.allow_tf32 = True", Format.TF32),
        ("torch.backends.cuda.matmul.fp32_precision = 'tf32'", Format.TF32),
        ("import transformer_engine.pytorch as te", Format.FLOAT8),
        ("from torchao.float8 import convert_to_float8_training", Format.FLOAT8),
        ("from torchao.quantization import Int8DynamicActivationInt8WeightConfig", Format.INT8),
        ("from torchao.quantization import Float8DynamicActivationFloat8WeightConfig", Format.FLOAT8),
        ("from torchao.quantization import float8_dynamic_activation_float8_weight", Format.FLOAT8),
        ("y = torch._int_mm(a, b)", Format.INT8),
    ],
)
def test_evidence(text: str, expected: Format) -> None:
    assert formats(text) == {expected}


@pytest.mark.parametrize(
    "text",
    [
        "with torch.autocast('cpu', dtype=torch.int8): pass",
        "with torch.autocast('cuda', enabled=False): pass",
        "with torch.autocast('cuda', dtype=torch.bfloat16, enabled=False): pass",
        "with torch.autocast('cuda', torch.bfloat16, False): pass",
        "with torch.autocast('cpu', dtype=torch.bfloat16): pass",
        "with torch.cuda.amp.autocast(False): pass",
        "if x.dtype == torch.float16: x = x.float()",
        "if x.dtype in (torch.float16, torch.bfloat16): x = x.float()",
        "OPTIONS = {'fp16': torch.float16}",
        "precision = metric.precision(1)",
        "from torchao.quantization import Float8WeightOnlyConfig",
        "torch.set_float32_matmul_precision('highest')",
        "torch.backends.cudnn.allow_tf32 = True",
        "arguments = TrainingArguments(bf16=False)",
        "x = x.half(3)",
        "def half(x): return x / 2",
    ],
)
def test_no_evidence(text: str) -> None:
    assert formats(text) == set()


def test_convolutions_in_plain_float32() -> None:
    assert region_of("torch.backends.cudnn.allow_tf32 = False").float32_convolutions
    assert not region_of("torch.backends.cudnn.allow_tf32 = True").float32_convolutions


MODEL = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 1001)
        self.second = nn.Linear(1001, 64)
        self.head = nn.Linear(64, 50257)
"""
TRAINING = """
import torch
from {origin} import Net

def train(batches):
    net = Net()
    for batch in batches:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            net(batch).sum().backward()
"""


def check(folder: Path, name: str, files: dict[str, str]) -> list[Finding]:
    for each, text in files.items():
        path = folder / each
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    project = Project(folder / each for each in files)
    rules = RuleSet([DimsNotMultiple(), VocabNotPadded(), ChannelsByDtype()])
    source = Source(str(folder / name), files[name])
    return check_source(source, project, rules, Settings(profile=Profile("audit"))).findings


def test_a_file_that_runs_the_model_tells_its_format(tmp_path: Path) -> None:
    found = check(tmp_path, "model.py", {"model.py": MODEL, "train.py": TRAINING.format(origin="model")})
    assert [(finding.span.line, finding.code) for finding in found] == [(7, "TPF351"), (8, "TPF351"), (9, "TPF352")]
    assert {finding.confidence for finding in found} == {Confidence.MEDIUM}
    assert found[-1].severity is Severity.WARNING


def test_a_package_that_runs_the_model_tells_its_format(tmp_path: Path) -> None:
    files = {
        "nets/__init__.py": "from .model import Net\n",
        "nets/model.py": MODEL,
        "train.py": TRAINING.format(origin="nets"),
    }
    assert len(check(tmp_path, "nets/model.py", files)) == 3


def test_a_file_that_does_not_import_the_model_tells_nothing(tmp_path: Path) -> None:
    found = check(tmp_path, "model.py", {"model.py": MODEL, "train.py": TRAINING.format(origin="other")})
    assert [(finding.code, finding.severity) for finding in found] == [("TPF352", Severity.INFO)]


@pytest.mark.parametrize(
    ("setting", "width", "figure"),
    [
        (
            'torch.set_float32_matmul_precision("high")',
            768,
            "Measured on an H200 (TF32): such a head with its loss, forward and backward, is about 2.0 × slower.",
        ),
        (
            "torch.set_default_dtype(torch.bfloat16)",
            768,
            "Measured on an H200 (bf16): such a head with its loss, forward and backward, is about 3.1 × slower.",
        ),
        ('torch.set_float32_matmul_precision("high")', 770, None),
        ("torch.set_default_dtype(torch.float16)", 768, None),
    ],
)
def test_a_head_is_held_against_the_measurements_of_its_format(
    tmp_path: Path, setting: str, width: int, figure: str | None
) -> None:
    text = f"import torch\nfrom torch import nn\n\n{setting}\nhead = nn.Linear({width}, 50257)\n"
    (found,) = [found for found in check(tmp_path, "head.py", {"head.py": text}) if found.code == "TPF352"]
    assert found.cost == figure


def test_a_layer_in_float16_quotes_no_figure_of_bfloat16(tmp_path: Path) -> None:
    for dtype, is_measured in {"bfloat16": True, "float16": False}.items():
        text = f"import torch\nfrom torch import nn\ntorch.set_default_dtype(torch.{dtype})\n"
        text += "net = nn.Sequential(nn.Linear(1024, 1001), nn.Linear(1001, 1024))\n"
        found = check(tmp_path, f"{dtype}.py", {f"{dtype}.py": text})
        assert len(found) == 2
        assert all((each.cost is not None) is is_measured for each in found)


TWO_FORMATS = """
from torch import nn
from torchao.float8 import convert_to_float8_training
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(1024, 1000)
        self.second = nn.Linear(1000, 1008)
        self.third = nn.Linear(1008, 1024)

def build():
    small = nn.Sequential(nn.Linear(1024, 1008), nn.Linear(1008, 1024))
    large = Net()
    other = nn.Sequential(nn.Linear(1024, 1002), nn.Linear(1002, 1024))
    quantize_(small, Int8DynamicActivationInt8WeightConfig())
    large = convert_to_float8_training(large)
    return small, large, other
"""


def test_models_that_one_function_converts_to_two_formats(tmp_path: Path) -> None:
    text = """
from torch import nn
from torchao.quantization import Float8DynamicActivationFloat8WeightConfig
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

first = nn.Sequential(nn.Linear(1040, 1040))
second = nn.Sequential(nn.Linear(1040, 1040))
third = nn.Sequential(nn.Linear(1032, 1040))
quantize_(first, Int8DynamicActivationInt8WeightConfig())
quantize_(second, Float8DynamicActivationFloat8WeightConfig())
quantize_(third, Float8DynamicActivationFloat8WeightConfig())
"""
    found = [each for each in check(tmp_path, "two.py", {"two.py": text}) if each.code == "TPF374"]
    assert [(each.span.line, "in INT8" in each.message, "in FP8" in each.message) for each in found] == [
        (6, True, False),
        (8, False, True),
    ]


def test_each_model_has_its_own_eight_bit_format(tmp_path: Path) -> None:
    found = check(tmp_path, "two.py", {"two.py": TWO_FORMATS})
    told = {
        (each.span.line, *(word for word in ("INT8", "FP8") if f"in {word}" in each.message), each.confidence.value)
        for each in found
        if each.code == "TPF374"
    }
    assert told == {(9, "FP8", "medium"), (10, "FP8", "medium"), (14, "INT8", "medium"), (16, "INT8", "low")}


@pytest.mark.parametrize("moved", ["", ".cuda()", ".to('cuda').half().eval()"])
def test_a_layer_is_counted_once_if_methods_return_it(tmp_path: Path, moved: str) -> None:
    text = f"from torch import nn\n\nnet = nn.Linear(1001, 1003){moved}\nnet = net.cuda()\nnet.half()\n"
    found = check(tmp_path, "net.py", {"net.py": text})
    assert [(each.code, each.span.line) for each in found] == [("TPF351", 3)]
