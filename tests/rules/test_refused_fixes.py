"""Fixes that readers of public code judged harmful, and the like of them that are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.findings import WRITABLE, Finding, Safety
from perflint.fixes.apply import apply_fixes
from perflint.rules.base import Rule
from perflint.rules.sync._uploading import uploaded_later
from perflint.rules.sync.linalg_checked import LinalgChecked
from perflint.rules.sync.list_index import ListIndex
from perflint.rules.sync.list_to_cuda import ListToCuda
from perflint.rules.sync.per_element_read import PerElementRead
from perflint.rules.sync.scalar_read_in_loop import ScalarReadInLoop
from perflint.rules.sync.scalar_to_cuda import ScalarToCuda
from perflint.rules.sync.truth_of_tensor import TruthOfTensor
from perflint.semantics.model import Model
from perflint.semantics.project import Project
from perflint.semantics.sites import CallSite
from perflint.source.text import Source
from tests.rules.harness import lint


def fixed(rule: type[Rule], text: str) -> str:
    """A text after all fixes of a rule that may be written."""

    def relint(now: str) -> list[Finding]:
        return lint(now, [rule], "audit")

    findings = relint(text)
    assert findings, "nothing was found"
    return apply_fixes(text, findings, relint, WRITABLE).text


COUNT = """
import torch

model = torch.nn.Linear(8, 8).cuda()
episodes = 0
for step, data in enumerate(loader):
    out = model(data["x"].cuda())
    episodes += data["done"].cuda().sum().item()
{then}
"""


@pytest.mark.parametrize(
    "then",
    [
        "",
        "print(episodes)",
        "episodes = 0",
        "    if step % 100 == 0:\n        print(f'{episodes} episodes')\nprint(episodes / step)",
    ],
    ids=["for importers", "printed", "set again", "logged"],
)
def test_a_count_stays_a_whole_number(then: str) -> None:
    """Booleans and integers add up to an `int`; on the device the sum would be kept as a float."""
    text = COUNT.format(then=then)
    assert fixed(ScalarReadInLoop, text) == text


@pytest.mark.parametrize(
    "then",
    [
        "print(episodes / step)",
        "episodes /= step\nprint(episodes)",
        "    if step % 100 == 0:\n        print(episodes / step)\nprint(episodes / step)",
    ],
    ids=["divided", "divided in place", "logged"],
)
def test_a_count_that_is_only_divided_is_summed_on_the_device(then: str) -> None:
    assert "episodes = float(episodes)" in fixed(ScalarReadInLoop, COUNT.format(then=then))


READ = """
import torch

def run(model: torch.nn.Module, batches):
    kept = []
    for batch in batches:
        kept.append(model(batch.cuda()).float().mean())
    return {read}
"""


@pytest.mark.parametrize(
    ("read", "after"),
    [
        ("[each.item() for each in kept]", "torch.stack(kept).tolist() if kept else []"),
        ("sum([each.item() for each in kept])", "sum(torch.stack(kept).tolist() if kept else [])"),
        ("{'all': [each.item() for each in kept]}", "{'all': torch.stack(kept).tolist() if kept else []}"),
    ],
)
def test_a_list_that_may_be_empty_is_not_stacked(read: str, after: str) -> None:
    assert fixed(PerElementRead, READ.format(read=read)) == READ.format(read=after)


@pytest.mark.parametrize(
    "read",
    [
        "[each.item() for each in kept][-1]",
        "[each.item() for each in kept] + [1.0]",
    ],
    ids=["part", "operand"],
)
def test_lists_that_are_read_one_by_one(read: str) -> None:
    text = READ.format(read=read)
    assert fixed(PerElementRead, text) == text


SCALAR = """
import torch

def run(x: torch.Tensor, weight: float, mode: str):
    x = x.cuda()
    if mode == "a":
        return torch.as_tensor({number}, dtype=x.dtype, device=x.device)
    return torch.tensor({number}, device=x.device)
"""


@pytest.mark.parametrize("number", ["weight", "weight * 2", "max(weight, 1.0)"])
def test_a_number_by_annotation_alone_is_not_filled(number: str) -> None:
    """Callers pass tensors, for which `torch.full` waits, and lists, for which it raises."""
    text = SCALAR.format(number=number)
    assert fixed(ScalarToCuda, text) == text


@pytest.mark.parametrize("number", ["0.5", "float(weight)", "len(x) + 1", "x.shape[0]", "x.numel()"])
def test_numbers_for_certain_are_filled(number: str) -> None:
    assert fixed(ScalarToCuda, SCALAR.format(number=number)).count(f"torch.full((), {number}, ") == 2


LIST = """
import torch

class Head(torch.nn.Module):
    def __init__(self, scale: list[float], device=None):
        self.scale = scale
        self.kept = [0.5, 1.5]
        self.device = device

    def forward(self, x: torch.Tensor, sizes: list[int], place: torch.device):
        return torch.tensor({data}, device={device})
"""


@pytest.mark.parametrize(
    ("data", "device"),
    [
        ("sizes", "x.device"),
        ("self.scale", "x.device"),
        ("sizes[1:]", "x.device"),
        ("[1, len(x)]", "self.device"),
        ("[1, len(x)]", "place"),
    ],
)
def test_a_list_or_a_device_by_annotation_alone_is_not_pinned(data: str, device: str) -> None:
    """Callers pass arrays, which torch does not pin, and None for the default device, which may be a GPU."""
    text = LIST.format(data=data, device=device)
    assert fixed(ListToCuda, text) == text


@pytest.mark.parametrize(
    ("data", "device", "pin"),
    [
        ("list(sizes)", "x.device", "x.is_cuda"),
        ("self.kept", "x.device", "x.is_cuda"),
        ("x.shape", "x.device", "x.is_cuda"),
        ("[1, len(x)]", "torch.device('cuda')", "torch.cuda.is_available()"),
        ("[1, len(x)]", "'cuda'", "True"),
        ("[1, len(x)]", "self.where", 'self.where.type == "cuda"'),
    ],
)
def test_lists_for_certain_are_pinned(data: str, device: str, pin: str) -> None:
    """A process of a loader, which works on the CPU, pins no memory: it cannot start CUDA."""
    text = LIST.format(data=data, device=device)
    text = text.replace("self.device = device", "self.where = torch.device('cuda:0')")
    after = fixed(ListToCuda, text)
    assert f"non_blocking={pin}" in after and f"pin_memory={pin}" in after


@pytest.mark.parametrize(
    ("made", "pin"),
    [
        ("torch.tensor([1, len(x)]).to(x.device)", "x.is_cuda"),
        ("torch.tensor([1, len(x)]).to(x)", "x.is_cuda"),
        ("torch.tensor([1, len(x)]).cuda()", "True"),
        ("x.new_tensor([1, len(x)])", "x.is_cuda"),
    ],
)
def test_moved_lists_are_pinned(made: str, pin: str) -> None:
    text = f"import torch\n\ndef run(x: torch.Tensor):\n    x = x.cuda()\n    y = {made}\n    return x, y\n"
    assert f"pin_memory={pin}" in fixed(ListToCuda, text)


SETS = "import torch\ntorch.set_default_device('cuda')\n"
WITHIN = "import torch\nfrom train import Head\nwith torch.device('cuda'):\n    Head()\n"


@pytest.mark.parametrize(
    ("path", "files", "is_pinned"),
    [
        ("train.py", {}, True),
        ("train.py", {"run.py": "from train import Head\nHead([1.0])\n"}, True),
        ("train.py", {"run.py": WITHIN}, False),
        ("train.py", {"run.py": "from train import Head\nfrom tool import place\n", "tool.py": SETS}, False),
        ("pkg/train.py", {"pkg/__init__.py": "from pkg.train import Head\n"}, False),
    ],
)
def test_a_default_device_that_other_code_may_set(
    tmp_path: Path, path: str, files: dict[str, str], is_pinned: bool
) -> None:
    """None is the default device for `torch.tensor`, and no device at all for `x.to`."""
    text = LIST.format(data="[1, len(x)]", device="self.device")
    text += "" if files else "\nif __name__ == '__main__':\n    Head([1.0])\n"
    files = {path: text, **files}
    for name, other in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(other)
    model = Model(Source(str(tmp_path / path), text), Project([tmp_path / name for name in files]))
    (site,) = (site for site in model.sites() if isinstance(site, CallSite) and site.target == "torch.tensor")
    fix = uploaded_later(site)
    assert fix is not None and (fix.safety is not Safety.DISPLAY) is is_pinned


@pytest.mark.parametrize(
    "function", ["torch.linalg.inv(x)", "torch.inverse(x)", "x.inverse()", "torch.linalg.cholesky(x)"]
)
def test_the_error_of_a_singular_matrix_stays(function: str) -> None:
    text = f"import torch\n\ndef run(weight: torch.Tensor):\n    x = weight.cuda()\n    return {function}\n"
    assert fixed(LinalgChecked, text) == text


PARTS = """
import torch

def run(image: torch.Tensor):
    swapped = image.cuda(){whole}
    return swapped
"""


@pytest.mark.parametrize(
    ("whole", "is_fixed"),
    [
        ("[:, [2, 0]]", True),
        ("[:, [2, 0]] if image.ndim == 4 else image", True),
        ("[:, [2, 1, 0], ...] if image.ndim == 4 else image.cuda()[[2, 1, 0], ...]", False),
    ],
)
def test_a_conditional_that_becomes_too_long_stays(whole: str, is_fixed: bool) -> None:
    text = PARTS.format(whole=whole).replace("image.cuda()", "image")
    text = text.replace("    swapped", "    image = image.cuda()\n    swapped")
    assert (fixed(ListIndex, text) != text) is is_fixed


@pytest.mark.parametrize(
    ("made", "is_fixed"),
    [
        ("torch.tensor([1, 2], device=x.device)", True),
        ("torch.tensor([1, 2], device=x.device).flatten()", False),
        ("torch.tensor(\n        [1, 2],\n        device=x.device,\n    ).flatten()", False),
    ],
)
def test_a_chain_of_calls_that_becomes_too_long_stays(made: str, is_fixed: bool) -> None:
    text = f"import torch\n\ndef run(x: torch.Tensor):\n    x = x.cuda()\n    return {made}\n"
    assert (fixed(ListToCuda, text) != text) is is_fixed


TESTS = """
import torch

def run(a: torch.Tensor, b: torch.Tensor, c: int):
    a, b = a.cuda(), b.cuda()
    if (
{test}
    ):
        return 1
"""


@pytest.mark.parametrize(
    ("test", "after"),
    [
        ("        a.any()\n        or b.any()", "        a.any()\n        | b.any()"),
        ("        a.any()\n        or b.any()\n        or c > 1", "        a.any() | b.any()\n        or c > 1"),
        ("        not a.any()\n        and not b.any()", None),
    ],
)
def test_tests_in_several_lines_are_joined_as_formatters_break_them(test: str, after: str | None) -> None:
    text = TESTS.format(test=test)
    assert fixed(TruthOfTensor, text) == (text if after is None else TESTS.format(test=after))


@pytest.mark.parametrize(("length", "is_fixed"), [(10, True), (60, False)])
def test_a_number_in_a_conditional_that_becomes_too_long_stays(length: int, is_fixed: bool) -> None:
    name = "x" * length
    text = f"import torch\n\ndef run({name}: torch.Tensor):\n    y = {name}.cuda()\n"
    text += f"    return {name}.mean() if len({name}) else torch.tensor(0.0, device=y.device)\n"
    text += f"\n\nLONGEST = [{', '.join(['1'] * 36)}]\n"
    assert (fixed(ScalarToCuda, text) != text) is is_fixed


@pytest.mark.parametrize(
    ("code", "is_fixed"),
    [
        ("return torch.sqrt(torch.tensor([0.5, scale]).to(x.device))", True),
        ("return 1.0 + torch.tanh(torch.sqrt(torch.tensor([0.5, scale]).to(x.device)) * (x + 0.044715 * x))", False),
        (
            "return use(torch.tensor([0.5, 1.5, 2.5] * len(x) + [0.5, scale] * (len(x) - 1)).to(\n"
            "        x.device\n    ))",
            False,
        ),
    ],
)
def test_an_operand_and_code_in_several_lines_that_become_too_long_stay(code: str, is_fixed: bool) -> None:
    text = f"import torch\n\ndef run(x: torch.Tensor, use):\n    x, scale = x.cuda(), float(len(x))\n    {code}\n"
    assert (fixed(ListToCuda, text) != text) is is_fixed
