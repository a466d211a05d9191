"""Waits in programs and files that evaluate models or analyse results, and train nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.engine.test_wanted import shown

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        if x.sum() > 0:  # warning
            return x
        return -x
"""
ANALYSIS = """
import numpy as np
import torch
from net import Net
from torch.utils.data import DataLoader


@torch.no_grad()
def collect(model: Net, loader: DataLoader):
    means, total = [], 0.0
    model.eval()
    for x, y in loader:
        x = x.cuda()  # {severity}
        out = model(x)
        means.append(out.mean(dim=1).cpu().numpy())  # warning
        total += out.sum().item()  # warning
        if (out > 0).all():  # {severity}
            break
        for row in out:
            means.append(row.cpu())  # warning
    return np.concatenate(means), total


@torch.no_grad()
def sample(model: Net, weights: torch.Tensor, n: int):
    found = []
    for _ in range(n):
        found.append(torch.multinomial(weights.cuda(), 1).item())  # {draws}
    return found
{more}
"""
RUNS = '\n\nif __name__ == "__main__":\n    collect(Net().cuda(), DataLoader([]))\n'
CALLS = "\n\ncollect(Net().cuda(), DataLoader([]))\n"
AGENT = """
import torch
from torch import nn


class Agent:
    def __init__(self, net):
        self.net, self.optimizer = net, torch.optim.Adam(net.parameters())

    def act(self, x):
        return self.net(x)

    def update(self, x):
        self.net(x).sum().backward()
        self.optimizer.step()

    def train(self, batches):
        for x in batches:
            self.update(x)


class Learner(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net, self.optimizer = net, torch.optim.Adam(net.parameters())

    def forward(self, x):
        self.net(x).sum().backward()
        self.optimizer.step()


class Plain(nn.Module):
    def forward(self, x):
        return x
"""
USES = """

def run(xs):
    made = {made}(Net().cuda())
    for x in xs:
        {call}(x)
"""
TRAINS = "\n\ndef fit(model, loss, optimizer):\n    loss.backward()\n    optimizer.step()\n"


def uses(made: str, call: str) -> str:
    """A program that calls an object of another file."""
    return f"\nfrom agent import {made}\n{USES.format(made=made, call=call)}{RUNS}"


@pytest.mark.parametrize(
    ("name", "more", "others", "severity"),
    [
        # In `collect` and, if it differs, in `sample`. Results that a list or a sum gathers could be read later.
        ("report.py", uses("Agent", "made.update"), {"agent.py": AGENT}, "info warning"),
        ("report.py", uses("Learner", "made"), {"agent.py": AGENT}, "info warning"),
        ("report.py", uses("Agent", "made.act"), {"agent.py": AGENT}, "info"),
        ("report.py", uses("Plain", "made"), {"agent.py": AGENT}, "info"),
        # It trains before the file analyses.
        ("report.py", uses("Agent", "made.train"), {"agent.py": AGENT}, "info"),
        ("report.py", RUNS, {}, "info"),
        ("report.py", CALLS, {}, "info"),
        ("report.py", RUNS + "\n# Optimized for one GPU, with scipy.optimize.\n", {}, "info"),
        ("report.py", TRAINS + RUNS, {}, "info warning"),
        ("report.py", "\n\ncollect\n", {}, "warning"),
        ("report.py", "\nfrom training import pretrain\n\npretrain(Net, collect)\n" + RUNS, {}, "warning"),
        (
            "report.py",
            "\nfrom training import launch_training\n" + RUNS + "    launch_training(step=collect)\n",
            {},
            "warning",
        ),
        ("report.py", "\nfrom training import train\n\ntrain(Net().cuda(), 3)\n" + RUNS, {}, "info"),
        ("report.py", "\nfrom data import train_split\n\ntrain_split(collect)\n" + RUNS, {}, "info"),
        ("report.py", "\n\ndef train(f):\n    return f\n\n\ntrain(collect)\n" + RUNS, {}, "info"),
        ("report.py", RUNS, {"run.py": "from report import collect\n"}, "info warning"),
        ("results.py", "", {"run.py": "from results import collect\n"}, "warning"),
        ("results.py", TRAINS, {"run.py": "from results import collect\n"}, "warning"),
        ("evaluator.py", "", {"run.py": "from evaluator import collect\n"}, "info"),
        ("tools/layer_analysis.py", "", {"run.py": "from tools.layer_analysis import collect\n"}, "info"),
        ("probe_layers.py", "", {"run.py": "import os\n"}, "info"),
        ("evaluator.py", TRAINS, {"run.py": "from evaluator import collect\n"}, "warning"),
        ("retrieval.py", "", {"run.py": "from retrieval import collect\n"}, "warning"),
        ("pkg/results.py", "", {"pkg/__init__.py": "from .results import collect\n"}, "warning"),
        ("pkg/evaluator.py", "", {"pkg/__init__.py": "from .evaluator import collect\n"}, "warning"),
    ],
)
def test_files_that_train_nothing(tmp_path: Path, name: str, more: str, others: dict[str, str], severity: str) -> None:
    collected, drawn = severity.split() if " " in severity else (severity, severity)
    text = ANALYSIS.format(severity=collected, draws=drawn, more=more)
    assert by_line(tmp_path, name, text, others) == commented(text)


SETTINGS = """
from mine import run
from transformers import TrainingArguments


def main():
    run(TrainingArguments(output_dir="out", logging_steps=1, logging_nan_inf_filter=False))  # warning


if __name__ == "__main__":
    main()
"""


def test_settings_of_a_trainer_hold_for_its_steps(tmp_path: Path) -> None:
    others = {"mine.py": "def run(arguments):\n    print(arguments)\n"}
    assert by_line(tmp_path, "start.py", SETTINGS, others) == commented(SETTINGS)


DECODER = """
import torch
from net import Net


def best(logits: torch.Tensor, k: int):
    values, _ = torch.topk(logits, k)
    return logits.masked_fill(logits < values[:, [-1]], -1.0)  # warning


def last(logits: torch.Tensor):
    return logits[:, [-1]]  # info


@torch.no_grad()
def decode(model: Net, x: torch.Tensor, n: int):
    for _ in range(n):
        out = best(model(x), 3)
        x = torch.cat((x, out[:, [0, 2]]), dim=1)  # warning
    return x[:, [0, 2]]  # info


@torch.no_grad()
def rank(model: Net, x: torch.Tensor, names):
    for name in names:
        out = model(x)
        print(name, out[:, [0, 2]].shape, last(out).shape)  # info


if __name__ == "__main__":
    rank(Net().cuda(), decode(Net().cuda(), torch.zeros(2, 9, device="cuda"), 3), ["a"])
"""


def test_positions_that_each_turn_of_a_decoding_copies(tmp_path: Path) -> None:
    assert by_line(tmp_path, "sample.py", DECODER, {}) == commented(DECODER)


EVALUATOR = """
import torch
from net import Net
from torch.utils.data import DataLoader


def loss_of(model: Net, loader: DataLoader):
    total = 0.0
    for x, y in loader:
        x = x.cuda()  # info
        total += model(x).sum().item()  # warning
    return total


def saliency(model: Net, loader: DataLoader):
    found = []
    for x, y in loader:
        x = x.cuda().requires_grad_()  # warning
        model(x).sum().backward()
        found.append(x.grad.cpu())  # warning
    return found
"""


HELPER = """
import torch
from net import Net
from torch.utils.data import DataLoader


def gather(model: Net, loader: DataLoader):
    found = []
    for x, y in loader:
        x = x.to("cuda")  # info
        out = model(x)
        found.append(out.cpu())  # warning
        found.append(out.cpu()[0].cuda())  # warning
    return found


class Wrapper(Net):
    def gather(self, loader: DataLoader):
        found = []
        for x, y in loader:
            found.append(self(x.cuda()).cpu())  # warning
        return found
"""
GATHERS = """
from helper import Wrapper, gather
from net import Net
from torch.utils.data import DataLoader

if __name__ == "__main__":
    model, loader = Net().cuda(), DataLoader([])
    print(gather(model, loader), Wrapper().cuda().gather(loader))
"""


def test_loops_over_batches_in_a_helper_of_the_project(tmp_path: Path) -> None:
    assert by_line(tmp_path, "helper.py", HELPER, {"run.py": GATHERS}) == commented(HELPER)


def test_batches_of_an_evaluation_whose_results_stay_on_the_gpu_and_gradients(tmp_path: Path) -> None:
    uses = {"run.py": "from evaluator import loss_of, saliency\n"}
    assert by_line(tmp_path, "evaluator.py", EVALUATOR, uses) == commented(EVALUATOR)


def test_models_of_a_program_that_evaluates(tmp_path: Path) -> None:
    text = NET + RUNS.replace("collect", "print")
    assert by_line(tmp_path, "report.py", text, {}) == commented(text)


SUMS = """
import torch
from net import Net
from torch.utils.data import DataLoader


@torch.no_grad()
def collect(model: Net, loader: DataLoader, thresholds):
    total = torch.zeros(8)
    shown, number = torch.zeros(8), torch.zeros(())
    for x, y in loader:
        scores, mean = 0, torch.zeros(8)
        for view in (x, x.flip(1)):
            out = model(view.cuda(non_blocking=True))
            scores = scores + out.mean(dim=0).cpu() / 2  # warning
            mean += out.sum(dim=0).cpu()  # warning
            number += out.sum().cpu()  # warning
            shown += out.sum(dim=0).cpu()  # warning
            print(shown)
        total += mean
    return total, scores


@torch.no_grad()
def compare(model: Net, loader: DataLoader, thresholds):
    found = []
    for x, y in loader:
        out = model(x.cuda(non_blocking=True))
        for i in range(3):
            found.append((out[i] > thresholds).cpu())  # warning
            found.append((out > thresholds[i]).cpu())  # warning
    return found
"""


def test_sums_and_comparisons_of_a_program_that_evaluates(tmp_path: Path) -> None:
    text = SUMS + RUNS
    assert by_line(tmp_path, "report.py", text, {}) == commented(text)


def by_line(folder: Path, name: str, text: str, others: dict[str, str]) -> dict[int, str]:
    """The severities of the waits in a file, by line."""
    for path, content in {"net.py": NET, name: text, **others}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    project = Project(sorted(folder.rglob("*.py")))
    source = Source(str(folder / name), text)
    report = check_source(source, project, RuleSet(all_rules()), Settings(profile=Profile.AUDIT))
    assert not report.problems
    waits = ("TPF101", "TPF105", "TPF109", "TPF118", "TPF201", "TPF942")
    return {each.span.line: each.severity.value for each in report.findings if each.code in waits}


def commented(text: str) -> dict[int, str]:
    """The severities in the comments of a text, by line."""
    lines = enumerate(text.splitlines(), start=1)
    return {number: line.rpartition("# ")[2] for number, line in lines if line.endswith(("# info", "# warning"))}


EVALUATED_EACH_STEP = """\
import torch


def accuracy(model, x, y):
    with torch.no_grad():
        found = model(x).argmax(1)
    return (found == y).sum().item()  # {severity}
"""
WHOLE_GRAPH = """\
import torch
from evaluator import accuracy
from net import Net


def train(x, y):
    model = Net().cuda()
    x, y = x.cuda(), y.cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(100):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        print(accuracy(model, x, y))
"""
BATCHES = WHOLE_GRAPH.replace("        model(x)", "        for x in batches:\n            model(x)")
REPORT = """\
from evaluator import accuracy
from net import Net


def report(batches):
    model = Net().cuda()
    for x, y in batches:
        print(accuracy(model, x.cuda(), y.cuda()))
"""


@pytest.mark.parametrize(
    ("other", "severity"),
    [
        (WHOLE_GRAPH, "warning"),
        # Once for each epoch.
        (BATCHES.replace("        optimizer.step()", "            optimizer.step()"), "info"),
        # The caller trains nothing.
        (REPORT, "info"),
    ],
)
def test_an_evaluation_in_each_step_of_a_training(tmp_path: Path, other: str, severity: str) -> None:
    text = EVALUATED_EACH_STEP.format(severity=severity)
    assert by_line(tmp_path, "evaluator.py", text, {"run.py": other}) == commented(text)


EER = """
import torch
from torch import nn


class Scores(nn.Module):
    def error(self, scores: torch.Tensor):
        return torch.min(scores).item()
"""
USES = """
import torch
from torch import nn
from {module} import Scores


class Model(nn.Module):
    scores = Scores()

    def forward(self, x):
        return x, self.scores.error
"""


@pytest.mark.parametrize(
    ("path", "module", "others", "is_shown"),
    [
        ("metrics.py", "metrics", {}, False),
        ("eval_metrics.py", "eval_metrics", {}, False),
        ("pkg/metrics/scores.py", "pkg.metrics.scores", {"pkg/__init__.py": "", "pkg/metrics/__init__.py": ""}, False),
        ("scores.py", "scores", {}, True),
        ("symmetrics.py", "symmetrics", {}, True),
        # A package that offers the metric to other code.
        (
            "pkg/metrics/scores.py",
            "pkg.metrics.scores",
            {"pkg/__init__.py": "from .metrics.scores import Scores\n"},
            True,
        ),
    ],
)
def test_scores(tmp_path: Path, path: str, module: str, others: dict[str, str], is_shown: bool) -> None:
    """A guess in a file of metrics is information, unless another project may compute the metric in each step."""
    model = USES.format(module=module)
    assert shown(tmp_path, EER, {"model.py": model, **others}, path) == is_shown


def test_scores_that_surely_wait(tmp_path: Path) -> None:
    text = EER.replace("min(scores)", "min(scores.cuda())")
    model = USES.format(module="metrics")
    assert shown(tmp_path, text, {"model.py": model}, "metrics.py")


def test_scores_in_each_step(tmp_path: Path) -> None:
    train = """
from metrics import Scores

def train(model, loader, optimizer):
    scores = Scores()
    for x, y in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        scores.error(loss)
"""
    assert shown(tmp_path, EER, {"train.py": train}, "metrics.py")
