"""Waits in small programs, by all rules of waits: each block is a project, and `# wait` marks each line that waits.

A line that `# audit` marks is found by the profile audit alone. No other line may be found.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.engine.projects import Projects
from perflint.findings import Effect
from perflint.rules.registry import RuleSet, all_rules
from perflint.source.text import Source
from tests.rules.harness import NEWEST

_WAITING = {Effect.SYNC, Effect.TRANSFER}


def projects(text: str) -> list[dict[str, str]]:
    """The files of each project, which a line of equal signs ends; the first file may lack a `# file:` line."""
    return [_files(part) for part in re.split(r"^===+\n", text.lstrip("\n"), flags=re.MULTILINE)]


def _files(text: str) -> dict[str, str]:
    text = text if text.startswith("# file: ") else f"# file: main.py\n{text}"
    parts = re.split(r"^# file: (.*)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def waits(files: dict[str, str], folder: Path, profile: Profile) -> set[tuple[str, int]]:
    """The lines that are found to wait."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "pyproject.toml").touch()
    settings = Settings(profile=profile, torch_version=NEWEST)
    rules = RuleSet(rule for rule in all_rules() if rule.effect in _WAITING)
    project = Projects(settings).of(folder / next(iter(files)))
    found = set()
    for name, text in files.items():
        report = check_source(Source(str(folder / name), text), project, rules, settings)
        found |= {(name, each.span.line) for each in report.findings if each.effect in _WAITING}
    return found


def marked(files: dict[str, str], *marks: str) -> set[tuple[str, int]]:
    """The lines with one of some marks."""
    return {
        (name, number)
        for name, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
        if line.rpartition("#")[2].strip() in marks
    }


def check(files: dict[str, str], folder: Path) -> None:
    """Compare findings and marks."""
    assert waits(files, folder, Profile.AUDIT) == marked(files, "wait", "audit")
    assert waits(files, folder, Profile.DEFAULT) == marked(files, "wait")


LOSS_OR_LOSSES = """
import lightning.pytorch as pl
class Classifier(pl.LightningModule):
    def __init__(self, loss_fn):
        super().__init__()
        self.loss_fn = loss_fn
    def training_step(self, batch, index):
        loss = self.loss_fn(self(batch), batch)
        shown = {}
        if isinstance(loss, dict):
            for name, part in loss.items():
                shown[name] = part.item()                   # wait
            loss = loss["total"]
        else:
            shown["loss"] = loss.item()                     # wait
        return {"loss": loss, "shown": shown}
===
import lightning.pytorch as pl
class Base(pl.LightningModule):
    def __init__(self, loss_fn):
        super().__init__()
        self.loss_fn = loss_fn
    def forward(self, batch):
        raise NotImplementedError
    def training_step(self, batch, index):
        out = self(batch)
        loss = self.loss_fn(out, batch)
        if not isinstance(loss, (dict, list)):
            self.seen = loss.item()                         # wait
        else:
            self.seen = loss["total"].item()                # wait
        return loss
===
def show(loss):
    if isinstance(loss, float):
        return loss
    return loss.item()
"""


@pytest.mark.parametrize("files", projects(LOSS_OR_LOSSES))
def test_a_loss_or_a_dict_of_losses(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


SELECTED = """
class Trainer:
    def __init__(self, net, optimizer, draw, loss_fn):
        self.net, self.optimizer, self.draw, self.loss_fn = net, optimizer, draw, loss_fn
    def train_step(self):
        observed, actions, weight = self.draw(64)
        out = self.net.forward(observed, weight)
        out = out.reshape(-1, 3)[weight.reshape(-1) > 0]            # wait
        actions = actions.reshape(-1, 3)[weight.reshape(-1) > 0]    # wait
        loss = self.loss_fn(out, actions)
        loss.backward()
        self.optimizer.step()
===
def update(net, optimizer, states, weight):
    weight = weight.cuda()
    out = net(states)
    rows = out[weight > 0]                                          # wait
    rows.mean().backward()
    optimizer.step()
===
def update(net, optimizer, states, weight, device):
    keep = weight.to(device) > 0
    rows = states.to(device)[keep]                                  # wait
    net(rows).mean().backward()
    optimizer.step()
===
import numpy as np
import torch
def update(net, optimizer, prices, counts, limit):
    rows = prices[counts > limit]
    out = net(torch.as_tensor(rows))
    loss = out.mean()
    loss.backward()
    optimizer.step()
    best = counts[counts > limit]
    return best
===
def update(net, optimizer, states, weight):
    out = net(states)
    rows = out[weight > 0]
    return rows.mean()
"""


@pytest.mark.parametrize("files", projects(SELECTED))
def test_elements_that_a_mask_selects_for_the_loss(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


MOVED = """
class Critic:
    def __init__(self, critic):
        self.critic = critic.cuda()
        self.parts = {}
    def step(self, x):
        self.parts["mean"] = self.critic(x).mean()
        self.parts["mean"].backward()
    def numbers(self):
        return {name: float(part) for name, part in self.parts.items()}     # wait
def fit(critic, loader):
    trained = Critic(critic)
    for x in loader:
        trained.step(x.cuda(non_blocking=True))
        print(trained.numbers())
===
def fit(net, optimizer, loader, scale):
    scale = scale.cuda()
    for x in loader:
        loss = net(x.cuda(non_blocking=True)).mean()
        if scale * 2 > 1:                                                   # wait
            loss = loss * 2
        loss.backward()
        optimizer.step()
===
def fit(net, optimizer, loader):
    net = net.cuda()
    for x in loader:
        loss = net(x.cuda(non_blocking=True)).mean()
        if net.depth > 3:
            loss = loss * 2
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("files", projects(MOVED))
def test_something_unknown_that_was_moved(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


DECODED = """
import torch
def speak(talker, prompt, end, limit):
    token = prompt
    for position in range(limit):
        scores = talker(token, position)
        token = torch.multinomial(scores[:, -1].float().softmax(-1), 1)
        if token.item() == end:                                     # wait
            break
    return token
===
import torch
def extend(network, words, end):
    while words.shape[1] < 100:
        result, state = network.step(words)
        chosen = pick(result.scores[..., -1, :])
        words = torch.cat([words, chosen], dim=1)
        if chosen.item() == end:                                    # wait
            break
    return words
===
import torch
def last_scores(network, parts):
    found = []
    for part in parts:
        result = network.step(part)
        found.append(torch.softmax(result[:, -1], -1).max().item())  # audit
    return found
"""


@pytest.mark.parametrize("files", projects(DECODED))
def test_a_choice_from_the_last_position_that_is_given_back_decodes(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


PLACED_BY_THE_PROGRAM = """
import functools
import torch
def fit(net, game, optimizer):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    as_tensor = functools.partial(torch.tensor, dtype=torch.float32, device=device)
    on_cpu = functools.partial(torch.tensor, dtype=torch.float32)
    seen = game.reset()
    for step in range(1000):
        loss = net(as_tensor(seen)).mean()                  # wait
        limit = on_cpu([1.0, 2.0])
        loss.backward()
        optimizer.step()
        seen = game.next(limit)
===
import torch
torch.set_default_tensor_type(torch.cuda.FloatTensor)
def fit(net, parts, optimizer):
    for part in parts:
        start = torch.zeros(3)
        sizes = torch.tensor([1, 2])                        # wait
        scale = torch.Tensor([0.5, 2.0])                    # wait
        if start.sum() > 0:                                 # wait
            pass
        net(start * scale).mean().backward()
        optimizer.step()
===
# file: main.py
import torch
from steps import step
def main():
    torch.set_default_device("cuda")
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(1000):
        step(net, optimizer)
if __name__ == "__main__":
    main()
# file: steps.py
import torch
def step(net, optimizer):
    noise = torch.randn(8, 4)
    keep = torch.rand(8) > 0.5
    loss = net(noise)[keep].mean()                          # wait
    loss.backward()
    optimizer.step()
    if noise.max() > 3:                                     # wait
        print("large")
===
# file: other.py
import torch
def main():
    torch.set_default_device("cuda")
if __name__ == "__main__":
    main()
# file: steps.py
import torch
def step(net, optimizer):
    noise = torch.randn(8, 4)
    if noise.max() > 3:
        print("large")
    net(noise).mean().backward()
    optimizer.step()
===
import torch
device = None
def step(net, optimizer):
    noise = torch.randn(8, 4, device=device)
    loss = net(noise)[noise > 0].mean()                     # wait
    loss.backward()
    optimizer.step()
    print(noise.sum().item())                               # wait
def main():
    global device
    device = torch.device("cuda:0")
    net = torch.nn.Linear(4, 4).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(1000):
        step(net, optimizer)
main()
===
import torch
device = None
def step(net, optimizer):
    noise = torch.randn(8, 4, device=device)
    net(noise).mean().backward()
    optimizer.step()
    print(noise.sum().item())
def main():
    device = torch.device("cuda:0")
    print(device)
===
import torch
def fit(net, loader, optimizer, size, config):
    for x in loader:
        count = len(x)
        one = torch.cuda.LongTensor(count)
        two = torch.cuda.FloatTensor(count if size is None else size)
        three = torch.cuda.LongTensor(size)                 # audit
        four = torch.cuda.LongTensor([1, 2])                # wait
        net(x.cuda(non_blocking=True), one, two, three, four).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize("files", projects(PLACED_BY_THE_PROGRAM))
def test_tensors_that_the_program_places(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


FIELDS = """
import torch
class Head(torch.nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
    def forward(self, ids, keep):
        out = self.body(ids, attention_mask=keep)
        if out.last_hidden_state.sum() > 0:                 # wait
            return out.hidden_states[-1].sum().item()       # wait
        return out.logits[keep > 0]                         # wait
===
def show(report, limit):
    if report.count > limit:
        print(report.scores[limit > 3])
"""


@pytest.mark.parametrize("files", projects(FIELDS))
def test_fields_of_outputs(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


DRAWN = """
import torch
def fit(model, stream, optimizer):
    model.cuda()
    for _ in range(1000):
        x, sizes = next(stream)
        most = sizes.tolist()
        x = x.to("cuda")                                    # wait
        loss = model(x).mean() * max(most)
        loss.backward()
        optimizer.step()
===
import torch
def fit(model, stream, optimizer):
    model.cuda()
    for _ in range(1000):
        x, sizes = next(stream)
        most = sizes.tolist()                               # wait
        loss = model(x).mean() * max(most)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("files", projects(DRAWN))
def test_batches_that_next_gives(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


CHOSEN_BY_NAME = """
import torch
class Criterion(torch.nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.kinds = kinds
    def loss_boxes(self, outputs, targets):
        boxes = outputs["boxes"]
        return boxes.sum() / boxes.abs().sum().item()       # wait
    def other(self, boxes):
        return boxes.sum().item()                           # audit
    def forward(self, outputs, targets):
        return [getattr(self, f"loss_{kind}")(outputs, targets) for kind in self.kinds]
"""


@pytest.mark.parametrize("files", projects(CHOSEN_BY_NAME))
def test_methods_that_a_name_chooses(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


SCALERS = """
import torch
FORMAT = "bfloat16"
def fit(model, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda", enabled=FORMAT == "float16")
    for x in loader:
        scaler.scale(model(x.cuda(non_blocking=True)).mean()).backward()
        scaler.step(optimizer)
        scaler.update()
===
import torch
FORMAT = "float16"
def fit(model, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda", enabled=FORMAT == "float16")
    for x in loader:
        scaler.scale(model(x.cuda(non_blocking=True)).mean()).backward()
        scaler.step(optimizer)                              # wait
        scaler.update()
===
import torch
class _Trainer:
    def __init__(self, model, optimizer, mixed=False):
        self.model, self.optimizer = model.cuda(), optimizer
        self.mixed = mixed
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.mixed)
    def fit(self, loader):
        for x in loader:
            self.scaler.scale(self.model(x.cuda(non_blocking=True)).mean()).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
def main(model, optimizer, loader):
    _Trainer(model, optimizer).fit(loader)
if __name__ == "__main__":
    main(None, None, None)
===
import torch
class _Trainer:
    def __init__(self, model, optimizer, mixed=False):
        self.model, self.optimizer = model.cuda(), optimizer
        self.mixed = mixed
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.mixed)
    def fit(self, loader):
        for x in loader:
            self.scaler.scale(self.model(x.cuda(non_blocking=True)).mean()).backward()
            self.scaler.step(self.optimizer)                # wait
            self.scaler.update()
def main(model, optimizer, loader):
    _Trainer(model, optimizer, mixed=True).fit(loader)
if __name__ == "__main__":
    main(None, None, None)
"""


@pytest.mark.parametrize("files", projects(SCALERS))
def test_scalers_that_a_setting_disables(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


DISTRIBUTIONS = """
import torch
from torch.distributions import Normal
class Clipped(Normal):
    def score(self, action):
        return super().log_prob(action).sum(-1)             # audit
    def mode(self):
        return self.mean
class Own(Normal):
    def __init__(self, mean, std):
        super().__init__(mean, std, validate_args=False)
class Actor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(8, 4)
    def forward(self, x):
        mean = self.head(x)
        chosen = Clipped(mean, mean.exp())                  # wait
        unchecked = Clipped(mean, mean.exp(), False)
        return chosen.log_prob(mean), unchecked, Own(mean, mean.exp())  # wait
"""


@pytest.mark.parametrize("files", projects(DISTRIBUTIONS))
def test_classes_that_inherit_from_distributions(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


CHOSEN_FROM_A_DICT = """
import torch
class _Criterion(torch.nn.Module):
    def loss_boxes(self, outputs, indices):
        rows = self.rows(indices)
        return outputs["boxes"][rows].sum()                 # wait
    def loss_labels(self, outputs, indices, log=True):
        return outputs["labels"][self.rows(indices)].sum()  # wait
    def rows(self, indices):
        return torch.cat([torch.full_like(i, n) for n, i in enumerate(indices)]), torch.cat([i for i in indices])
    def loss(self, kind, outputs, indices, **options):
        losses = {"boxes": self.loss_boxes, "labels": self.loss_labels}
        return losses[kind](outputs, indices, **options)
    def forward(self, outputs: torch.Tensor, positions, **options):
        outputs = {"boxes": outputs, "labels": outputs}
        indices = [torch.as_tensor(each, dtype=torch.int64) for each in positions]
        return self.loss("boxes", outputs, indices, **options)
"""


@pytest.mark.parametrize("files", projects(CHOSEN_FROM_A_DICT))
def test_methods_of_a_dict_that_get_options(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


def _calling(name: str, called: list[str]) -> str:
    return f"def {name}(kind):\n    return {' + '.join(f'{each}(kind)' for each in called)}\n"


def _tree(name: str, depth: int) -> str:
    """A function that calls ten others, which call ten others in turn."""
    if not depth:
        return f"def {name}(kind):\n    return kind + 1 + 2 + 3 + 4\n"
    parts = [f"{name}_{i}" for i in range(10)]
    return "".join(_tree(part, depth - 1) for part in parts) + _calling(name, parts)


def test_a_short_program_that_calls_much_code(tmp_path: Path) -> None:
    program = """
import torch
from loop import Loop
from long import make
from loaders import load
def main(kind, path):
    model = make(kind)
    Loop(model=model, data=load(path)).run()
if __name__ == "__main__":
    main(3, "train")
"""
    loaders = """
import torch
def load(path):
    loader = torch.utils.data.DataLoader(torch.load(path), batch_size=4)
    while True:
        yield from loader
"""
    loop = """
import torch
class Loop:
    def __init__(self, model, data):
        self.model, self.data = model, data
    def run(self):
        while True:
            batch, more = next(self.data)
            self.step(batch, more)
    def step(self, batch, more):
        batch[:2].to("cuda")                                # audit
        {name: value[:2].to("cuda") for name, value in more.items()}  # audit
"""
    check({"loop.py": loop, "main.py": program, "long.py": _tree("make", 2), "loaders.py": loaders}, tmp_path)


NUMBERS_OF_NUMPY = """
import numpy as np
import torch
class Grid(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = np.broadcast_to(np.asarray(size), [2])
    def forward(self, x: torch.Tensor):
        theta = torch.eye(2, 3, device=x.device)
        theta[0, 0] = 0.5 * self.size[0]                    # wait
        theta[0, 1:2] = 0.5 * self.size[0]
        return theta @ x
"""


@pytest.mark.parametrize("files", projects(NUMBERS_OF_NUMPY))
def test_stores_of_numbers_of_numpy(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


FILLED_LATER = """
import torch
_totals = {}
_losses = []
_NONE = ()
def add(name, x):
    _totals[name] = x.sum().cuda(non_blocking=True)
    _losses.append(x.mean().cuda(non_blocking=True))
def report():
    shown = [total.item() for total in _totals.values()]    # audit
    shown += [loss.item() for loss in _losses]              # audit
    return shown + [each.item() for each in _NONE]
"""


@pytest.mark.parametrize("files", projects(FILLED_LATER))
def test_containers_that_functions_fill(files: dict[str, str], tmp_path: Path) -> None:
    check(files, tmp_path)


def test_loops_that_step_an_optimizer_through_methods_of_other_files(tmp_path: Path) -> None:
    helper = """
class Helper:
    def go_back(self, loss):
        loss.backward()
    def optimize(self, opt):
        if self.is_half:
            return self._scaled(opt)
        return self._plain(opt)
    def _scaled(self, opt):
        for p in self.params:
            p.grad.mul_(0.5)
        opt.step()
    def _plain(self, opt):
        opt.step()
        return True
    def again(self, opt, n):
        return n and self.again(opt, n - 1)
"""
    program = """
import torch
from torch import nn
import torch.nn.functional as F
from helper import Helper
def main():
    model = nn.Linear(3, 3).cuda()
    helper = Helper(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    def go(batch, target):
        for part in batch.split(3):
            loss = F.cross_entropy(model(part), target)
            helper.go_back(loss)
        print(loss.item())                                  # wait
    def look(batch):
        print(batch.cuda().sum().item())                    # audit
    for turn in range(100):
        go(torch.rand(3, 3, device="cuda"), torch.rand(3, device="cuda"))
        helper.optimize(opt)
    for turn in range(3):
        look(torch.rand(3, 3))
        helper.again(opt, 3)
if __name__ == "__main__":
    main()
"""
    check({"program.py": program, "helper.py": helper}, tmp_path)
