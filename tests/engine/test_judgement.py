"""How findings are weighed at their places: by what the code prepares, and by who needs the value."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Finding
from perflint.rules.registry import RuleSet, all_rules
from perflint.semantics.project import Project
from perflint.source.text import Source
from tests.cli.command import Command

TEXT = """\
import torch


def {name}(labels: torch.Tensor) -> torch.Tensor:
    return torch.unique(labels{move})
"""


def shown(tmp_path: Path, path: str, name: str = "ids", move: str = "") -> int:
    """How many findings the default profile has in a file of a package."""
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    for folder in [file.parent, *file.parent.parents][: len(Path(path).parts) - 1]:
        (folder / "__init__.py").write_text("from .offered import name\n")
    file.write_text(TEXT.format(name=name, move=move))
    rules = RuleSet(rule for rule in all_rules() if rule.code == "TPF113")
    report = check_source(
        Source(str(file), file.read_text()), Project([file]), rules, Settings(profile=Profile.DEFAULT)
    )
    assert report.files == 1 and not report.problems
    return len(report.findings)


@pytest.mark.parametrize(
    "path",
    ["project/data/labels.py", "project/my_dataset.py", "project/replay_buffers/a.py", "p/image_processing_vit.py"],
)
def test_what_prepares_data_is_left_to_audit(tmp_path: Path, path: str) -> None:
    assert shown(tmp_path, path) == 0


@pytest.mark.parametrize("path", ["project/model.py", "project/metadata/labels.py", "project/update.py"])
def test_other_code_is_not(tmp_path: Path, path: str) -> None:
    assert shown(tmp_path, path) == 1


def test_folders_above_the_package_say_nothing(tmp_path: Path) -> None:
    assert shown(tmp_path / "data" / "datasets", "project/model.py") == 1


def test_what_a_model_gave_is_on_the_device(tmp_path: Path) -> None:
    assert shown(tmp_path, "p/image_processing_vit.py", "post_process_labels") == 1


def test_what_is_moved_in_sight_is_on_the_device(tmp_path: Path) -> None:
    assert shown(tmp_path, "project/data/labels.py", move=".cuda()") == 1


def audited(text: str) -> list[Finding]:
    """What the profile audit finds in a text."""
    report = check_source(Source("a.py", text), Project(), RuleSet(all_rules()), Settings(profile=Profile.AUDIT))
    assert not report.problems
    return report.findings


NEEDED = """
import pickle
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader


class Agent:
    def training_step(self, state: torch.Tensor, env):
        action = self.actor(state).cpu().numpy()  # info
        env.step(action)
        chosen = self.actor(state).argmax().item()  # info
        obs, reward = self.envs.step(chosen)
        value = self.actor(state).max().item()  # warning
        print(value)
        return obs

    def select_action(self, state: torch.Tensor):
        return self.actor(state).cpu().numpy()  # info

    def __init__(self):
        self.actor = nn.Linear(3, 3).cuda()
        self.cpu_decoding = False


def send(model: nn.Module, loader: DataLoader, path):
    for x in loader:
        y = model(x.cuda())
        blob = pickle.dumps(y.cpu())  # info
        dist.all_gather_object([blob], y.cpu())  # info
        raw = y.cpu().numpy().tobytes()  # info
        torch.save(y.cpu(), path)  # info
        kept = y.cpu()  # warning
        print(kept, raw)


def finish(model: nn.Module, loader: DataLoader, path):
    for x in loader:
        y = model(x.cuda())
        last = y.max().item()  # warning
        sent = y.min().item()  # info
        pickle.dumps(sent)
    torch.save({"last": last, "sent": sent}, path)
    whole = y.sum().item()  # info
    torch.save(whole, path)


def receive(rank, found):
    count = torch.tensor([found.size(0) if rank == 0 else 0], device="cuda")
    dist.broadcast(count, src=0)
    loss = found.cuda().sum()
    dist.broadcast(loss, src=0)
    number = count.item()  # info
    return number, loss.item()  # warning


def write(model: nn.Module, loader: DataLoader, output_dir=None, directory=None, predictions_outdir=None):
    for x in loader:
        y = model(x.cuda())
        if output_dir is not None and x.ndim > 1:
            z = y.cpu()  # info
        if predictions_outdir is None:
            z = y.cpu()  # warning
        else:
            z = y.cpu()  # info
        if directory is not None:
            z = y.cpu()  # warning
        print(z)


def stop(model: nn.Module, loader: DataLoader):
    for x in loader:
        done = model(x.cuda()).max() > 3
        alone = model(x.cuda()).min()
        dist.all_reduce(done)
        if done.item():  # info
            break
        if alone.item() > 3:  # warning
            continue
        print(done.item())  # warning


def clip(model: nn.Module, loader: DataLoader):
    for x in loader:
        total = model(x.cuda()).sum()
        dist.all_reduce(total)
        norm = total.item()  # warning
        if norm == float("inf") or norm != norm:
            norm = -1.0
        model.norm = norm
        other = total.item()  # info
        if other != other:
            other = -1.0
            break
        third = total.item()  # info
        model.scale = 1.0 if third > 1 else 2.0


def decode(model: nn.Module, loader: DataLoader, options, cpu_decoding, is_cpu):
    for x in loader:
        y = model(x.cuda())
        if cpu_decoding:
            z = y.cpu()  # info
        z = y.sum().cpu() if options.offload_to_cpu and x.ndim else None  # info
        if not cpu_decoding:
            z = y.cpu()  # warning
        if is_cpu:
            z = y.cpu()  # warning
        if cpu_decoding or x.ndim:
            z = y.cpu()  # warning
        print(z)
"""


def test_values_that_the_cpu_needs_are_information() -> None:
    found = {
        finding.span.line: finding.severity.value for finding in audited(NEEDED) if finding.code in ("TPF101", "TPF109")
    }
    assert found == expected(NEEDED)


def expected(text: str) -> dict[int, str]:
    """The severities in the comments of a text, by line."""
    return {
        number: line.rpartition("# ")[2]
        for number, line in enumerate(text.splitlines(), start=1)
        if line.endswith(("# info", "# warning"))
    }


ARRAYS = """
import numpy as np
import torch
from scipy.ndimage import label
from torch import nn
from torch.utils.data import DataLoader


def evaluate(model: nn.Module, loader: DataLoader):
    sums, outputs = np.zeros(3), []
    for x in loader:
        y = model(x.cuda())
        outputs.append(y.cpu().numpy())  # warning
        kept = y.cpu().numpy()  # warning
        outputs.append(kept)
        array = y.cpu().numpy()  # warning
        sums += np.sort(array).sum(0)
        parts = {"one": y.cpu().numpy()}  # warning
        later = y.cpu()  # info
        print(label(later.numpy()), parts)
        mask = np.stack([y.cpu().numpy()])  # warning
        x = model(torch.from_numpy(mask.copy()).cuda())
        mask = label(y.cpu().numpy())  # info
        x = model(torch.from_numpy(mask).cuda())
        rows = {}
        for i in range(3):
            rows[i] = np.sort(y.cpu().numpy())  # warning
            x = x + torch.tensor(i)
        total = y.cpu().numpy()  # warning
        if total > 3:
            sums += total
        print(label(y.cpu()))  # info
    return sums, outputs


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer):
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        label(loss.cpu().numpy())  # warning


class Decoder(nn.Module):
    def forward(self, x: torch.Tensor):
        images = []
        for image in self.layer(x):
            image = image[image > 3].cpu().numpy()  # warning
            images.append(image)
        return images


class HungarianMatcher(nn.Module):
    def forward(self, x: torch.Tensor):
        return label(self.layer(x).cpu().numpy())  # warning


class Chosen(nn.Module):
    def forward(self, x: torch.Tensor, backend: str):
        if backend == "cpu":
            x = x.cpu()  # info
        elif backend != "cpu":
            x = x.cpu()  # warning
        return x


def draw(model: nn.Module, loader: DataLoader, path: str):
    for x in loader:
        images = model(x.cuda()).cpu()  # info
        for image in images:
            save_image(image, path)
        write_volume_slices(x.cuda().cpu(), path)  # info
        show_case(x.cuda().cpu(), path)  # warning


def report(model: nn.Module, x: torch.Tensor):
    y = x.cuda()
    print(label(y.cpu().numpy()))  # info
    print(np.sort(y.cpu().numpy()))  # info
    print(y.cpu().sum() > 3)  # info
"""


def test_arrays_for_numpy_are_information_outside_of_steps() -> None:
    found = {finding.span.line: finding.severity.value for finding in audited(ARRAYS) if finding.code == "TPF109"}
    assert found == expected(ARRAYS)


FEW = """
import torch


def once(x: torch.Tensor):
    scale = torch.tensor(2.0, device=x.device)
    sizes = torch.tensor([1, 2], device=x.device)
    return x[[0, 1]] * scale + sizes


def repeated(x: torch.Tensor, n: int):
    for _ in range(n):
        x = x * torch.tensor(2.0, device=x.device)
    return x


def lists(x: torch.Tensor, rows: list[list[int]]):
    for row in rows:
        x = x + torch.tensor(row, device=x.device)
    return x


def lists_of_steps(model: torch.nn.Module, rows: list[list[int]], x: torch.Tensor):
    for row in rows:
        x = model(x) + torch.tensor(row, device=x.device)
    return x


def by_key(x: torch.Tensor, keys):
    for key in keys:
        if key == "scale":
            x = x * torch.tensor(2.0, device=x.device)
    return x
"""


BESIDE_RUN = """
import torch


def encode(model: torch.nn.Module, x: torch.Tensor):
    lengths = torch.tensor([x.size(0)], device=x.device)  # warning
    for _ in range(3):
        lengths = lengths + torch.tensor([1], device=x.device)  # warning
    return model(x), lengths


def count(x: torch.Tensor):
    return torch.tensor([x.size(0)], device=x.device)  # warning
"""


def test_a_few_numbers_count_where_callers_are_unknown() -> None:
    assert marked(BESIDE_RUN.replace("[1]", "2.0"), "TPF116", "TPF117") == expected(BESIDE_RUN)


def few_numbers(text: str) -> list[tuple[str, int, str]]:
    return [
        (finding.code, finding.span.line, finding.severity.value)
        for finding in audited(text)
        if finding.code in ("TPF116", "TPF117", "TPF118")
    ]


def test_a_few_numbers_count_in_libraries() -> None:
    assert few_numbers(FEW) == [
        ("TPF116", 6, "warning"),
        ("TPF117", 7, "warning"),
        ("TPF118", 8, "warning"),
        ("TPF116", 13, "warning"),
        ("TPF117", 19, "info"),
        ("TPF117", 25, "warning"),
        ("TPF116", 32, "warning"),
    ]


ROUND_TRIP = """
import torch
from align import align


def aligned(scores: torch.Tensor, texts):
    found = torch.zeros_like(scores)
    on_cpu = scores.detach().cpu().numpy()
    for i in range(len(texts)):
        path = align(on_cpu[i])
        found[i] = torch.tensor(path, device=scores.device)
        found[i] += torch.tensor(align(texts[i]), device=scores.device)
        found[i] += torch.tensor(texts[i], device=scores.device)
    return found
"""


def test_numbers_computed_from_a_copied_tensor_are_no_data() -> None:
    assert few_numbers(ROUND_TRIP) == [("TPF117", 11, "warning"), ("TPF117", 12, "info"), ("TPF117", 13, "info")]


def test_a_few_numbers_count_in_the_steps_of_a_program_only() -> None:
    program = FEW + 'if __name__ == "__main__":\n    print(once(torch.ones(2).cuda()))\n'
    found = few_numbers(program)
    assert [line for _, line, severity in found if severity == "warning"] == [25]
    found = few_numbers(program + "\n\ndef learn(loss: torch.Tensor):\n    loss.backward()\n")
    assert [line for _, line, severity in found if severity == "warning"] == [13, 25, 32]


BESIDE = """
import torch
from torch import nn
from torch.utils.data import DataLoader


def evaluate(model: nn.Module, loaders: list[DataLoader], table, mask: torch.Tensor):
    table = torch.tensor(table).to("cuda")  # info
    for name, loader in loaders:
        scores = torch.zeros(3)
        for x in loader:
            scores = model(x.cuda())  # warning
        found = mask[mask > 0], scores  # info
        moved = torch.cat([mask, mask]).cpu().to("cuda")  # info
        for row in mask:
            total = row.sum().item()  # info
    if (mask > 0).any():  # info
        print(moved, found, total)
    means = []
    for row in mask:
        means.append(model(row.cuda()).mean())
    return torch.as_tensor(means)  # warning


def speculate(model: nn.Module, draft: nn.Module, x: torch.Tensor, n: int):
    while x.size(1) < n:
        for _ in range(4):
            x = draft(x)
        if (model(x) > 0).all():  # warning
            break
    return x


def learn(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor):
    for _ in range(4):
        for row in x:
            loss = model(row).sum()
            loss.backward()
            optimizer.step()
        if (x > 0).all():  # warning
            break


def layers(blocks: nn.ModuleList, x: torch.Tensor):
    if (x > 0).all():  # warning
        x = x + 1
    for block in blocks:
        x = block(x)
    return x


def plain(x: torch.Tensor):
    if (x > 0).all():  # warning
        x = x + 1
    return x


class Rollouts:
    def __init__(self, model: nn.Module, buffer):
        self.model, self.buffer = model, buffer
        self.optimizer = torch.optim.Adam(model.parameters())

    def fit(self, prompts: DataLoader):
        for prompt in prompts:
            self.buffer.add(self.model(prompt.cuda()))  # warning
            self.phase()

    def phase(self):
        self.total = self.model.scale.sum().item()  # info
        for x in DataLoader(self.buffer):
            self.step(x)
            if (x > 0).all():
                break
        torch.cuda.empty_cache()  # info

    def step(self, x: torch.Tensor):
        for part in x.chunk(4):
            self.model(part).sum().backward()
        self.optimizer.step()
        torch.cuda.empty_cache()  # warning
"""


def marked(text: str, *codes: str) -> dict[int, str]:
    """The severities of the findings of some rules, by line."""
    return {each.span.line: each.severity.value for each in audited(text) if each.code in codes}


def test_code_beside_a_loop_over_the_steps_is_information() -> None:
    codes = ("TPF101", "TPF104", "TPF105", "TPF110", "TPF117", "TPF123", "TPF201")
    assert marked(BESIDE, *codes) == expected(BESIDE)


SELECTIONS = """
import torch


def distances(x: torch.Tensor, engine: str):
    found = torch.nonzero(x)  # info
    if engine == "torch":
        return torch.nonzero(x > 0)  # warning
    if engine == "rows":
        x = x[x[:, 0] > 0]  # info
    elif engine == "columns":
        return x[:, x[0] > 0]  # warning
    if x.cpu().numpy().any():
        return found, torch.nonzero(x)  # info
    return found


def ways(x: torch.Tensor, engine: str):
    if engine == "torch":
        return torch.nonzero(x)  # warning
    else:
        return x.cpu().numpy()


def again(parts: list[torch.Tensor]):
    for x in parts:
        if x.ndim > 1:
            torch.nonzero(x)  # warning
        else:
            x.cpu().numpy()


def helped(x: torch.Tensor, engine: str):
    if engine == "torch":
        return alone(x)
    return helper(x).cpu().numpy()


def alone(x: torch.Tensor):
    return torch.nonzero(x)  # warning


def helper(x: torch.Tensor):
    return torch.nonzero(x)  # info
"""


def test_selections_are_beside_the_copies_that_a_run_comes_to_as_well() -> None:
    assert marked(SELECTIONS, "TPF110") == expected(SELECTIONS)


PROGRAM = """
import torch


def restore(x: torch.Tensor):
    if (x > 0).all():  # info
        x = x + 1
    return x


def decode(x: torch.Tensor, n: int):
    for _ in range(n):
        if (x > 0).all():  # info
            break
    return x


class Batch:
    def __init__(self, x: torch.Tensor):
        self.x = x.cuda()

    @property
    def is_valid(self):
        return 1 if (self.x > 0).all() else 2  # info


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        if (x > 0).all():  # warning
            x = x + 1
        return x


if __name__ == "__main__":
    print(restore(torch.load("x.pt").cuda()), decode(torch.load("x.pt").cuda(), 9))
"""


def test_functions_of_a_program_that_run_no_step_are_information() -> None:
    assert marked(PROGRAM, "TPF105") == expected(PROGRAM)
    library = PROGRAM.partition("if __name__")[0]
    assert set(marked(library, "TPF105").values()) == {"warning"}


EVALUATION = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        return x + torch.ones(3).to(x.device)  # warning


def predict(net: Net, images):
    for image in images:
        result = net(torch.from_numpy(image).cuda())  # info
        print(result.cpu().numpy().sum())  # info
        print(result.tolist())  # info


def score(net: Net, loader: DataLoader):
    for image in loader:
        net(image.cuda())  # info


if __name__ == "__main__":
    predict(Net().cuda(), load("a"))
    score(Net().cuda(), DataLoader(load("b")))
"""


def test_copies_are_the_work_of_a_program_that_trains_nothing() -> None:
    codes = ("TPF109", "TPF201", "TPF204")
    assert marked(EVALUATION, *codes) == expected(EVALUATION)
    training = EVALUATION.replace("load(", "train(optimizer, ")
    assert set(marked(training, *codes).values()) == {"warning"}
    library = EVALUATION.partition("if __name__")[0]
    assert set(marked(library, *codes).values()) == {"warning"}


ARRAY = """
import torch


class Schedule:
    def encode(self, image):
        self.times = torch.from_numpy(image).cuda()  # warning
        return torch.from_numpy(image).permute(2, 0, 1)[None].cuda()  # info


def turns(images, table):
    for image in images:
        array = image + 1
        print(torch.from_numpy(array).cuda())  # info
        print(torch.from_numpy(table).cuda())  # warning


def moved(x: torch.Tensor):
    return x.cpu().cuda()  # warning


def forward(self, image):
    return torch.from_numpy(image).cuda()  # warning
"""


def test_arrays_are_copied_as_often_as_numpy_makes_them() -> None:
    assert marked(ARRAY, "TPF201") == expected(ARRAY)


DRIVER = """\
import torch
{imports}


{decorator}class Trainer{bases}:
    def fit(self, loader):
        for batch in loader:
            out = {call}
            self.report(out.values)

    def report(self, values: torch.Tensor):
        print(torch.unique(values))
"""


@pytest.mark.parametrize(
    ("imports", "decorator", "bases", "call", "confidence"),
    [
        ("import ray", "", "", "ray.get(self.actor.run.remote(batch))", "low"),
        ("import ray", "", "", "self.actor_wg.generate(batch)", "low"),
        ("from ray.util import ActorPool", "", "(Base)", "self.worker_group.generate(batch)", "low"),
        ("import ray", "@ray.remote\n", "", "ray.get(self.actor.run.remote(batch))", "medium"),
        ("import ray", "@ray.remote(num_gpus=1)\n", "", "self.actor_wg.generate(batch)", "medium"),
        ("import ray", "", "", "ray.get(self.actor.run.remote(batch.cuda()))", "medium"),
        ("import ray", "", "", "self.model(batch)", "medium"),
        ("", "", "", "self.actor_wg.generate(batch)", "medium"),
    ],
)
def test_drivers_of_other_processes_work_on_the_cpu(
    imports: str, decorator: str, bases: str, call: str, confidence: str
) -> None:
    text = DRIVER.format(imports=imports, decorator=decorator, bases=bases, call=call)
    found = [finding.confidence.value for finding in audited(text) if finding.code == "TPF113"]
    assert found == [confidence]


HELPER = "import torch\n\n\ndef ids(labels: torch.Tensor):\n    return torch.unique(labels)\n"


@pytest.mark.parametrize(
    ("user", "confidence"),
    [
        ("class Pairs(torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        ids(i)\n", "low"),
        ("class Pairs(IterableDataset):\n    def load(self):\n        return ids(self.x)\n", "low"),
        ("def collate_fn(batch):\n    return ids(batch)\n", "low"),
        ("def step(model, batch):\n    return model(ids(batch))\n", "medium"),
        ("def collate_fn(batch):\n    return ids(batch)\ndef step(model, x):\n    return ids(model(x))\n", "medium"),
        ("ids(x)\n", "medium"),
        ("", "medium"),
    ],
)
def test_what_only_datasets_of_other_files_call_is_on_the_cpu(tmp_path: Path, user: str, confidence: str) -> None:
    files = {"p/__init__.py": "", "p/labels.py": HELPER, "p/pairs.py": f"from p.labels import ids\n{user}"}
    found = _found_in_project(tmp_path, files, "p/labels.py")
    assert [each.confidence.value for each in found if each.code == "TPF113"] == [confidence]


def _found_in_project(tmp_path: Path, files: dict[str, str], checked: str) -> list[Finding]:
    """What the audit finds in one file of a project."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    source = Source(str(tmp_path / checked), files[checked])
    project = Project([tmp_path / name for name in files])
    return check_source(source, project, RuleSet(all_rules()), Settings(profile=Profile.AUDIT)).findings


AUGMENTATION = """\
import torch
from torch import nn


class Chunks(nn.Module):
    def forward(self, x: torch.Tensor):
        return {kept}


class Augmented(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = [Chunks()]

    def forward(self, x: torch.Tensor):
        return self.parts[0](x)
"""
SERVES = "class Pairs(torch.utils.data.Dataset):\n    def __init__(self):\n        self.augment = Augmented()\n"


@pytest.mark.parametrize(
    ("user", "kept", "confidence"),
    [
        (SERVES, "x[x > 0]", "low"),
        (SERVES, "x.cuda()[x.cuda() > 0]", "high"),
        (f"{SERVES}model = Augmented()\n", "x[x > 0]", "high"),
        ("", "x[x > 0]", "high"),
    ],
)
def test_modules_that_only_datasets_make_are_on_the_cpu(tmp_path: Path, user: str, kept: str, confidence: str) -> None:
    text = AUGMENTATION.format(kept=kept)
    files = {"p/__init__.py": "", "p/augment.py": text, "p/pairs.py": f"from p.augment import Augmented\n{user}"}
    found = _found_in_project(tmp_path, files, "p/augment.py")
    assert {each.confidence.value for each in found if each.code == "TPF110"} == {confidence}


PICTURE = """\
import torch
{imports}


def borders(lines: torch.Tensor):
    return torch.unique(lines)


def training_step(self, lines: torch.Tensor):
    return torch.unique(lines, dim=0)
"""


def copied_to_draw(folder: Path, text: str, name: str = "viz_lanes.py") -> list[tuple[str, str]]:
    """The copies of a file that draws, with their severities."""
    file = folder / name
    file.write_text(text)
    rules = RuleSet(rule for rule in all_rules() if rule.code in ("TPF109", "TPF117", "TPF201"))
    settings = Settings(profile=Profile.AUDIT)
    report = check_source(Source(str(file), text), Project([file]), rules, settings)
    return [(finding.code, finding.severity.value) for finding in report.findings]


def test_copies_for_a_picture_are_left_to_audit_in_each_step(tmp_path: Path) -> None:
    found = copied_to_draw(tmp_path, DRAWN)
    assert found == [("TPF109", "info"), ("TPF201", "warning"), ("TPF117", "info")]


@pytest.mark.parametrize(
    ("steps", "severity"),
    [
        ("scaler.step(opt_g)", "warning"),
        ("optimizer.step()", "warning"),
        ("scaler.update()", "info"),
        ("other.step(opt_g)", "info"),
    ],
)
def test_a_function_that_trains_and_draws_copies_for_its_steps(tmp_path: Path, steps: str, severity: str) -> None:
    """A gradient scaler steps an optimizer of any name."""
    text = DRAWN.replace("        plt.plot", f"        {steps}\n        plt.plot")
    text = text.replace("def draw(", "scaler = torch.amp.GradScaler()\n\n\ndef fit(")
    assert copied_to_draw(tmp_path, text, "gan.py")[0] == ("TPF109", severity)


DRAWN = """
import matplotlib.pyplot as plt
import torch


def draw(model: torch.nn.Module, batches):
    for x in batches:
        shown = model(x.cuda()).cpu()
        weights = torch.tensor([1, 2], device="cuda")
        plt.plot(shown, weights)
"""


@pytest.mark.parametrize(
    ("name", "imports", "shown"),
    [
        ("viz_lanes.py", "import matplotlib.pyplot as plt", [10]),
        ("visualize.py", "from plotly import graph_objects", [10]),
        ("viz_lanes.py", "", [6, 10]),
        ("lanes.py", "import matplotlib.pyplot as plt", [6, 10]),
    ],
)
def test_code_that_draws_is_left_to_audit_unless_it_runs_each_step(
    tmp_path: Path, name: str, imports: str, shown: list[int]
) -> None:
    file = tmp_path / name
    file.write_text(PICTURE.format(imports=imports))
    rules = RuleSet(rule for rule in all_rules() if rule.code == "TPF113")
    settings = Settings(profile=Profile.DEFAULT)
    report = check_source(Source(str(file), file.read_text()), Project([file]), rules, settings)
    assert [finding.span.line for finding in report.findings] == shown


SCRIPT = """
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):
    loss = model(batches[step]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
MAIN = SCRIPT.replace("for step", "def train(model):\n  for step").replace("\n    ", "\n      ") + (
    "\nif __name__ == '__main__':\n    train(model)\n"
)


def shown_in(perflint: Command, text: str, user: str = "") -> bool:
    """True if the read in a script is shown by default; `user` is the text of another file."""
    perflint.write("pyproject.toml", "")
    perflint.write("script.py", text)
    perflint.write("other.py", user)
    ran = perflint("check", "script.py", "--select=TPF101", "--output-format=concise")
    assert ran.code in (0, 1), ran.err
    return "TPF101" in ran.out


@pytest.mark.parametrize("text", [SCRIPT, MAIN], ids=["script", "main"])
def test_a_program_that_names_no_device_computes_on_the_cpu(perflint: Command, text: str) -> None:
    assert not shown_in(perflint, text)
    assert not shown_in(
        perflint, "import numpy as np, math, os\n" + text, "import torch\nprint(torch.rand(3).cuda())\n"
    )


@pytest.mark.parametrize(
    ("text", "user"),
    [
        (SCRIPT.replace("nn.Linear(3, 1)", "nn.Linear(3, 1).cuda()"), ""),
        (SCRIPT.replace("nn.Linear(3, 1)", "nn.Linear(3, 1).to(0)"), ""),
        (SCRIPT.replace("nn.Linear(3, 1)", "torch.load('model.pt')"), ""),
        ("import lightning\n" + SCRIPT, ""),
        ("from . import helpers\n" + SCRIPT, ""),
        (MAIN.replace("      loss =", "      import helpers\n      loss ="), ""),
        ("# Run it with CUDA_VISIBLE_DEVICES=0.\n" + SCRIPT, ""),
        (MAIN.partition("\nif __name__")[0], ""),
        (MAIN, "from script import train\ntrain(model.cuda())\n"),
    ],
    ids=["cuda", "to", "load", "trainer", "dots", "inside", "comment", "no program", "imported"],
)
def test_other_programs_may_use_a_gpu(perflint: Command, text: str, user: str) -> None:
    assert shown_in(perflint, text, user)


TRAINS = """
import torch


def update(model, optimizer, batch):
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach().double().numpy()
"""
READS = TRAINS.replace("    return", "    print(loss.item())\n    return")
PLOTS = "def plot(x):\n    return x.detach().numpy()\n"
BARE = READS.partition("    return")[0]
IMPORTS = "from other import update\n" + BARE.replace("def update", "def again")


@pytest.mark.parametrize(
    ("text", "user"),
    [
        (READS, ""),
        (READS, "from script import update\nfor batch in loader:\n    update(model, optimizer, batch)\n"),
        (READS.replace("detach()", "data"), "import json\njson.load(file)\n"),
        (IMPORTS, TRAINS),
    ],
    ids=["own", "imported", "data", "of an import"],
)
def test_a_training_that_converts_its_loss_where_it_is_works_on_the_cpu(
    perflint: Command, text: str, user: str
) -> None:
    assert not shown_in(perflint, text, user)


@pytest.mark.parametrize(
    ("text", "user"),
    [
        (READS.replace(".numpy()", ".tolist()"), ""),
        (READS.replace(".detach()", ".detach().cpu()"), ""),
        (READS.replace("loss.detach()", "batch.detach()"), ""),
        (READS, "from script import update\nfor batch in loader:\n    update(model.cuda(), optimizer, batch)\n"),
        (READS, "device = 0\n"),
        (BARE, PLOTS),
        (BARE, TRAINS + "import script\n"),
        ("from other import plot\n" + BARE, PLOTS),
        (IMPORTS, TRAINS.replace("loss.detach()", "loss.detach().cpu()")),
    ],
    ids=["list", "cpu", "batch", "user", "device", "plot", "example", "imports plot", "cpu of an import"],
)
def test_other_trainings_that_name_no_device_may_use_a_gpu(perflint: Command, text: str, user: str) -> None:
    assert shown_in(perflint, text, user)


PREPARES = """
import torch
from torch import nn

def prepared(inputs, timestamps):
    return inputs.to(timestamps.device)
"""


@pytest.mark.parametrize(
    ("helper", "is_shown"),
    [
        (PREPARES, False),
        (PREPARES + "def moved(x, device):\n    return x.to(device)\n", False),
        ("import pytorch_lightning\n" + PREPARES, False),
        ("from another import helper\n" + PREPARES, False),
        (PREPARES + "def moved(x):\n    return x.cuda()\n", True),
        (PREPARES + "DEVICE = 'mps'\n", True),
        (PREPARES + "def moved(x, args):\n    return x.to(args.device)\n", True),
        (PREPARES + "def moved(x, given):\n    return x.to(given['device'])\n", True),
        (PREPARES + "def held(path):\n    return torch.load(path)\n", True),
        ("from pytorch_lightning import Trainer\n" + PREPARES, True),
        ("import some_library\n" + PREPARES, True),
        ("from moving import helper\n" + PREPARES, True),
    ],
)
def test_modules_that_a_program_imports(perflint: Command, helper: str, is_shown: bool) -> None:
    perflint.write("helpers.py", helper)
    perflint.write("another.py", PREPARES)
    perflint.write("moving.py", "def helper(x):\n    return x.cuda()\n")
    assert shown_in(perflint, "from helpers import prepared\n" + SCRIPT) is is_shown
