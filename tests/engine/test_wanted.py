"""True waits that are information: in files that only programs use, in evaluations, for collectives, after a wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.engine.test_judgement import audited, expected, marked

HELPER = """
import torch


def mean_size(boxes: torch.Tensor):
    return boxes.float().mean().item()
"""
USES = "from helper import mean_size\n\n\ndef report(boxes):\n    print(mean_size(boxes))\n"
MODEL = USES + "\n\nclass Net(nn.Module):\n    pass\n"


@pytest.mark.parametrize(
    ("others", "is_shown"),
    [
        ({}, True),
        ({"report.py": USES}, False),
        ({"report.py": USES, "serve.py": USES}, False),
        ({"net.py": MODEL}, True),
        ({"report.py": USES, "net.py": MODEL}, True),
        ({"pkg/__init__.py": "from helper import mean_size\n"}, True),
        ({"report.py": USES, "pkg/__init__.py": "from report import report\n"}, True),
        ({"test_report.py": "import pytest\n" + USES}, True),
        ({f"report{index}.py": USES for index in range(9)}, True),
    ],
)
def test_files_that_only_programs_use(tmp_path: Path, others: dict[str, str], is_shown: bool) -> None:
    assert shown(tmp_path, HELPER, others) == is_shown


HOOK = """
import torch


def mean_size(net):
    def hook(boxes: torch.Tensor):
        return boxes.sum().item()

    return hook
"""
PROPERTY = """
import torch


class Sizes:
    def __init__(self, boxes: torch.Tensor):
        self.boxes = boxes

    @property
    def mean_size(self):
        return self.boxes.float().mean().item()
"""


@pytest.mark.parametrize(
    ("package", "others", "is_shown"),
    [
        ("", {}, False),
        ("from ._version import __version__\n", {}, False),
        ("import torch\nfrom pathlib import Path\n", {}, False),
        ("from .train import main\n", {}, True),
        ("from app.train import main\n", {}, True),
        ("import app.train\n", {}, True),
        ("def __getattr__(name):\n    raise AttributeError(name)\n", {}, True),
        ("", {"app/net.py": MODEL.replace("helper", "app.helper")}, True),
        ("", {"app/parts/__init__.py": "from app.helper import mean_size\n"}, False),
    ],
)
def test_packages_that_offer_nothing(tmp_path: Path, package: str, others: dict[str, str], is_shown: bool) -> None:
    assert shown(tmp_path, HELPER, {"app/__init__.py": package, **others}, "app/helper.py") == is_shown


@pytest.mark.parametrize(
    "text",
    [
        HELPER.replace("boxes.float().mean().item()", "[box.sum().item() for box in boxes.unbind()]"),
        PROPERTY,
        HOOK,
        HELPER + "\n\nclass Net(torch.nn.Module):\n    pass\n",
    ],
    ids=["loop", "property", "hook", "model"],
)
def test_these_are_shown_although_only_programs_use_their_file(tmp_path: Path, text: str) -> None:
    uses = USES if "class Sizes" not in text else "from helper import Sizes\n"
    assert shown(tmp_path, text, {"report.py": uses})


METHOD = """
import torch
{head}

class Sizes{base}:
    def mean_size(self, boxes: torch.Tensor):
        return boxes.float().mean().item()
"""


BASE = """
class Base:
    def run(self, boxes, steps):
        {before}
            self.{method}(boxes)
"""


@pytest.mark.parametrize(
    ("before", "method", "is_shown"),
    [
        ("for _ in range(steps):", "mean_size", True),
        ("while steps.left():", "mean_size", True),
        ("for _ in range(steps):", "other", False),
        ("if steps:", "mean_size", False),
    ],
)
def test_methods_that_a_base_class_calls_in_a_loop_are_shown(
    tmp_path: Path, before: str, method: str, is_shown: bool
) -> None:
    text = METHOD.format(head="from base import Base\n", base="(Base)")
    others = {"base.py": BASE.format(before=before, method=method), "report.py": "from helper import Sizes\n"}
    assert shown(tmp_path, text, others) == is_shown


def test_methods_without_a_base_class_are_not(tmp_path: Path) -> None:
    assert not shown(tmp_path, METHOD.format(head="", base=""), {"report.py": "from helper import Sizes\n"})


def shown(folder: Path, text: str, others: dict[str, str], path: str = "helper.py") -> bool:
    """True if the default profile has a finding in a file that others may import."""
    for name, content in {path: text, **others}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    file = folder / path
    project = Project(sorted(folder.rglob("*.py")))
    report = check_source(Source(str(file), text), project, RuleSet(all_rules()), Settings(profile=Profile.DEFAULT))
    assert not report.problems
    return bool(report.findings)


ANSWER = """
import torch


def clean(boxes: torch.Tensor, keep: torch.Tensor):
    {answer}
    return boxes
"""
CLEANS = """
import torch
from torch import nn
from {module} import clean


class Net(nn.Module):
    def {method}(self, x):
        return clean(x, x)
"""


@pytest.mark.parametrize(
    ("answer", "is_shown"),
    [
        ("if boxes.min() == 3: boxes = boxes + 1", False),
        ("boxes = boxes[keep > 0.5]", False),
        ("if boxes.cuda().min() == 3: boxes = boxes + 1", True),
        ("boxes = [box[keep > 0.5] for box in boxes.unbind()]", False),
        ("boxes = [box[keep.cuda() > 0.5] for box in boxes.cuda().unbind()]", True),
        ("boxes = [box.min().item() for box in boxes.unbind()]", True),
        ("boxes = boxes.min().item()", True),
    ],
    ids=["test", "selection", "certain", "loop", "certain loop", "reads in a loop", "read"],
)
def test_answers_by_which_the_cpu_goes_on(tmp_path: Path, answer: str, is_shown: bool) -> None:
    text = ANSWER.format(answer=answer)
    assert shown(tmp_path, text, {"net.py": CLEANS.format(module="helper", method="prepare")}) == is_shown


NUMBERS = """
import torch


def clean(boxes: torch.Tensor, rows: list[torch.Tensor]):
    {copy}
    return boxes
"""


@pytest.mark.parametrize(
    ("copy", "method", "is_shown"),
    [
        ("boxes = boxes + torch.tensor([1, 2], device='cuda')", "prepare", False),
        ("boxes = boxes + torch.tensor([1, 2], device='cuda')", "forward", True),
        ("boxes = [row + torch.tensor(2.0, device='cuda') for row in rows]", "prepare", True),
        ("boxes = boxes + torch.tensor(sorted(boxes.cuda().cpu().numpy()), device='cuda')", "prepare", True),
    ],
    ids=["once", "step", "loop", "round trip"],
)
def test_a_few_numbers_in_files_of_a_project(tmp_path: Path, copy: str, method: str, is_shown: bool) -> None:
    text = NUMBERS.format(copy=copy)
    assert shown(tmp_path, text, {"net.py": CLEANS.format(module="helper", method=method)}) == is_shown


def test_a_few_numbers_in_packages(tmp_path: Path) -> None:
    text = NUMBERS.format(copy="boxes = boxes + torch.tensor([1, 2], device='cuda')")
    others = {
        "app/__init__.py": "from .helper import clean\n",
        "app/net.py": CLEANS.format(module="app.helper", method="run"),
    }
    assert shown(tmp_path, text, others, "app/helper.py")


def test_answers_in_packages(tmp_path: Path) -> None:
    text = ANSWER.format(answer="boxes = boxes[keep > 0.5]")
    others = {"app/net.py": CLEANS.format(module="app.helper", method="prepare")}
    assert not shown(tmp_path, text, {"app/__init__.py": "", **others}, "app/helper.py")
    assert shown(tmp_path, text, {"app/__init__.py": "from .helper import clean\n", **others}, "app/helper.py")


def test_answers_in_each_step(tmp_path: Path) -> None:
    net = CLEANS.format(module="helper", method="forward")
    assert shown(tmp_path, ANSWER.format(answer="boxes = boxes[keep > 0.5]"), {"net.py": net})


AFTER_WAIT = """
import torch
from torch import nn


def guarded(x: torch.Tensor, scores: torch.Tensor, model: nn.Module):
    x, scores = x.cuda(), scores.cuda()
    mask = x > 0
    if mask.any():
        x = scores[mask]  # info
    if (scores > 1).sum() > 0 and len(x):
        y = scores[scores > 1] * 2  # info
    else:
        y = scores[scores > 1] * 3  # warning
    found = scores > 2
    if found.any().item():
        y = model(y)
        y = y[found]  # warning
    z = y[y > 3] if (y > 3).any() else y  # info
    return x, y, z


def leaving(x: torch.Tensor, y: torch.Tensor, model: nn.Module):
    x, y = x.cuda(), y.cuda()
    mask = x > 0
    if not mask.any():
        return None
    x = y[mask]  # info
    if (y > 1).sum() == 0:
        return x
    y = model(y)
    return y[y > 1]  # warning


def turns(x: torch.Tensor, masks: list[torch.Tensor], rows: list[torch.Tensor]):
    x = x.cuda()
    for row in rows:
        mask = row.cuda() > 0
        if mask.sum() < 1:
            continue
        x = x + row.cuda()[mask].sum()  # info
    keep = x > 0
    if keep.any():
        for row in rows:
            x = row.cuda()[keep]  # warning
    while (x > 1).any():
        x[x > 1] = x[x > 1] / 2  # info
    return x


def again(x: torch.Tensor, y: torch.Tensor):
    x, y = x.cuda(), y.cuda()
    mask = x > 0
    if mask.any():
        return x[mask].sum() + y[mask].sum()  # warning
    return x[y > 0]  # warning


def searched(x: torch.Tensor, y: torch.Tensor, model: nn.Module):
    x, y = x.cuda(), y.cuda()
    mask = x > 0
    if len(mask.nonzero()) > 0:  # warning
        x[mask] = y[mask] * 2  # info
        y = y[mask.nonzero()[:, 0]]  # info
    if mask.sum() == 0:
        return y
    else:
        z = mask.nonzero()  # info
    kept = y > 1
    if len(kept.nonzero()) > 0:  # warning
        y = model(y)
        return z, y[kept]  # warning
    return z, torch.nonzero(y > 3)  # warning


def sized(x: torch.Tensor):
    ids = torch.unique(x.cuda())
    ids = ids[ids > 0]  # info
    other = torch.unique(x.cuda())
    x = x.cuda() @ x.cuda()
    return ids, other[other > 0], x[x > 0]  # warning
"""


def test_selections_right_after_a_wait_for_their_mask_are_information() -> None:
    assert marked(AFTER_WAIT, "TPF110") == expected(AFTER_WAIT)


PROBE = """
import torch
from torch import nn
from torch.utils.data import DataLoader
{imports}

class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        return x + torch.tensor([1.0, 2.0], device=x.device)  # warning


def answers(model: Net, tokenizer, prompts, device):
    model.cuda()
    for prompt in prompts:
        ids = torch.tensor([tokenizer.encode(prompt)], device="cuda")  # {severity}
        out = model(ids)
        best = out[out > 0]  # {severity}
        token = int(best.argmax())
        ids = torch.cat([ids, torch.tensor([[token]], device="cuda")], dim=1)  # warning
        torch.cuda.empty_cache()  # warning


def score(model: Net, loader: DataLoader):
    for x, _ in loader:
        out = model(x.cuda())
        print(out[out > 0].shape)  # {severity}

{more}
if __name__ == "__main__":
    answers(Net(), None, ["a"], "cuda")
"""


@pytest.mark.parametrize(
    ("imports", "more", "severity"),
    [
        ("", "", "info"),
        ("from sklearn.linear_model import Ridge\n", "\ndef probe(x, y):\n    return Ridge().fit(x, y)\n\n", "info"),
        ("from net import Solver\n", "\ndef train(model, data):\n    Solver(model).fit(data)\n\n", "warning"),
        ("", "\ndef train(loss):\n    loss.backward()\n\n", "warning"),
        ("", "OPTIMAL = 3\n", "info"),
    ],
)
def test_work_of_a_program_that_trains_nothing(imports: str, more: str, severity: str) -> None:
    text = PROBE.format(imports=imports, more=more, severity=severity)
    assert marked(text, "TPF117", "TPF110", "TPF123") == expected(text)


COLLECTIVE = """
import torch
import torch.distributed as dist


def training_step(self, batch: torch.Tensor, accelerator, world: int):
    totals = torch.tensor([len(batch), 2.0], device=batch.device)  # info
    totals = accelerator.reduce(totals, reduction="sum")
    dist.all_reduce(torch.tensor([world, 1], device="cuda"))  # info
    count = torch.tensor([len(batch)], device="cuda")  # warning
    if dist.is_initialized():
        dist.all_reduce(count)
    weights = torch.tensor([1.0, 2.0], device="cuda")  # warning
    return totals, count, (batch.cuda() * weights).sum()
"""


def test_numbers_for_a_collective_are_information() -> None:
    assert marked(COLLECTIVE, "TPF117") == expected(COLLECTIVE)


FILES = """
import cv2
import numpy as np
import soundfile as sf
import torch
from PIL import Image
from torch import nn


def read(path: str):
    wave, _ = sf.read(path)
    return torch.from_numpy(wave).float()


def listen(model: nn.Module, paths: list[str]):
    for path in paths:
        x = read(path).cuda()  # info
        print(model(x).mean().item())  # info


def validate(model: nn.Module, paths: list[str], device):
    for path in paths:
        wave, _ = sf.read(path)
        x = torch.from_numpy(wave).float()
        out = model(x.cuda())  # info
        print(out.mean().item())  # info
    for path in paths:
        out = model(torch.from_numpy(np.array(Image.open(path))).cuda())  # info
    with torch.no_grad():
        for path in paths:
            picture = cv2.imread(path)
            for row in out.cuda():
                print(model(row).sum().item())  # info


def train(model: nn.Module, optimizer: torch.optim.Optimizer, paths: list[str], rows: list[torch.Tensor]):
    for path in paths:
        wave, _ = sf.read(path)
        loss = model(torch.from_numpy(wave).float().cuda()).sum()  # warning
        loss.backward()
        optimizer.step()
        print(loss.item())  # warning
    pictures = [Image.open(path) for path in paths]
    for row in rows:
        with open("log", "a") as log:
            log.write(f"{model(row.cuda()).sum().item()}")  # warning
    for row in rows:
        print(model(row.cuda()).sum().item())  # warning
"""


def test_waits_in_a_loop_that_reads_files_are_information() -> None:
    assert marked(FILES, "TPF101", "TPF201") == expected(FILES)


RESULTS = """
import json
import cv2
import numpy as np
import torch
from torch import nn

{more}
def export(model: nn.Module, rows: list[torch.Tensor]):
    model.cuda()
    for row in rows:
        found = model(row.cuda())
        if found.sum() > 0:
            np.save("found.npy", found.cpu().numpy())


def measure(model: nn.Module, rows: list[torch.Tensor]):
    model.cuda()
    for row in rows:
        print(model(row.cuda()).sum() > 0)


def resized(model: nn.Module, rows: list[torch.Tensor]):
    model.cuda()
    for row in rows:
        found = model(row.cuda()).cpu()
        yield {paint}(found.numpy(), (9, 9)), model(row.cuda()).cpu().numpy()
"""
FIT = "def fit(loss, optimizer):\n    loss.backward()\n    optimizer.step()\n\n"
IMPORTS = {"run.py": "from helper import export, resized\n"}


@pytest.mark.parametrize(
    ("more", "paint", "others", "written", "drawn"),
    [
        ("", "cv2.resize", IMPORTS, False, False),
        (FIT, "cv2.resize", IMPORTS, True, False),
        (FIT, "np.resize", IMPORTS, True, True),
        ("", "cv2.resize", {}, True, False),
        ("", "cv2.resize", {"__init__.py": "from .helper import export\n"}, True, True),
    ],
    ids=["both", "file that trains", "array", "one file", "package"],
)
def test_functions_that_write_or_draw_results(
    tmp_path: Path, more: str, paint: str, others: dict[str, str], written: bool, drawn: bool
) -> None:
    text = RESULTS.format(more=more, paint=paint)
    for name, content in {"helper.py": text, **others}.items():
        (tmp_path / name).write_text(content)
    project = Project(sorted(tmp_path.rglob("*.py")))
    settings = Settings(profile=Profile.DEFAULT)
    report = check_source(Source(str(tmp_path / "helper.py"), text), project, RuleSet(all_rules()), settings)
    found = {(each.code, each.span.line) for each in report.findings}
    lines = text.splitlines()
    tests = [n for n, line in enumerate(lines, 1) if "if found.sum()" in line]
    copies = [n for n, line in enumerate(lines, 1) if ".cpu()" in line and "np.save" not in line]
    assert any(("TPF105", n) in found for n in tests) == written
    assert any(("TPF109", n) in found for n in copies) == drawn


STATE = """
import torch
from torch import nn


class Trainer:
    def on_eval_end(self, model: nn.Module, extra: dict[str, torch.Tensor], improved: bool):
        model.cuda()
        if improved:
            self.best = {k: v.clone().cpu() for k, v in model.state_dict().items()}  # info
        self.extra = {k: v.cuda().relu().cpu() for k, v in extra.items()}  # info

    def training_step(self, model: nn.Module):
        model.cuda()
        return {k: v.detach().cpu() for k, v in model.state_dict().items()}  # warning
"""


def test_copies_of_weights_are_information_outside_of_steps() -> None:
    assert marked(STATE, "TPF109") == expected(STATE)


TEXT = """
import torch


def train(model, loader, optimizer, every: int):
    for step, x in enumerate(loader):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"{loss}")  # warning
        if step > 5:
            print(f"{loss}")  # warning
        print(f"{loss}")  # warning
"""


def test_text_of_every_fifth_step() -> None:
    assert marked(TEXT, "TPF108") == expected(TEXT)


PICTURES = """
import torch
from torch import nn
from torch.utils.data import DataLoader


def validate(model: nn.Module, loader: DataLoader, queue, names):
    images, outputs = [], []
    for i, batch in enumerate(loader):
        out = model(batch.cuda())
        images.append(out.cpu())  # info
        images.extend([out.cpu()])  # info
        outputs.append(out.cpu())  # warning
        queue.put({"gt_image": out.cpu(), "epoch": i})  # info
        queue.put({"epoch": i, "score": out.cpu()})  # warning
        names.append(images.index(out.cpu()))  # warning
    return images, outputs


def training_step(model: nn.Module, batch: torch.Tensor, optimizer):
    images = []
    out = model(batch.cuda())
    out.sum().backward()
    optimizer.step()
    images.append(out.cpu())  # warning
    return images


def visualize_features(x: torch.Tensor):
    return x.cuda()[x.cuda() > 0].sum().item()  # info


class ViewerOptions:
    def show(self, x: torch.Tensor):
        return x.cuda().sum().item()  # info


class Views:
    def show(self, x: torch.Tensor):
        return x.cuda().sum().item()  # warning
"""


def test_pictures_belong_on_the_cpu() -> None:
    assert marked(PICTURES, "TPF101", "TPF109") == expected(PICTURES)


COLLATED = """
import torch
from torch.utils.data import Dataset
from torch_geometric.transforms import BaseTransform


class Pad(BaseTransform):
    def forward(self, box: torch.Tensor):
        return torch.cat([box, torch.zeros(9 - len(box), 4).to(box)])  # low


class PadOnGpu(BaseTransform):
    def forward(self, box: torch.Tensor):
        box = box.cuda()
        return torch.cat([box, torch.zeros(9 - len(box), 4).to(box)])  # high


class Pads(BaseTransforms):
    def forward(self, box: torch.Tensor):
        return torch.cat([box, torch.zeros(9 - len(box), 4).to(box)])  # medium


class Boxes(Dataset):
    @staticmethod
    def padding_collate_fn(batch: list[tuple[str, torch.Tensor]]):
        names, boxes = zip(*batch)
        return [torch.cat([box, torch.zeros(9 - len(box), 4).to(box)]) for box in boxes]  # low


class Padder:
    def pad(self, batch: list[tuple[str, torch.Tensor]]):
        names, boxes = zip(*batch)
        return [torch.cat([box, torch.zeros(9 - len(box), 4).to(box)]) for box in boxes]  # medium


def gpu_collate_fn(batch: list[torch.Tensor]):
    batch = [box.cuda() for box in batch]
    return [torch.cat([box, torch.zeros(9 - len(box), 4).to(box)]) for box in batch]  # high
"""


def test_functions_and_transforms_for_a_loader_work_on_the_cpu() -> None:
    found = {each.span.line: each.confidence.value for each in audited(COLLATED) if each.code == "TPF204"}
    lines = enumerate(COLLATED.splitlines(), start=1)
    assert found == {number: line.rpartition("# ")[2] for number, line in lines if "# " in line}
