"""Runs what should be silent after a change on a GPU: does it wait all the same?

    python benchmarks/accuracy/history/waits.py export MIRRORS FOLDER
    python benchmarks/accuracy/history/waits.py run FOLDER [--device cpu] > benchmarks/accuracy/history/waits.jsonl

`export` takes the files of the cases below from git mirrors, `run` runs the function of each case alone, with small
inputs, under `torch.cuda.set_sync_debug_mode("warn")`, and prints the lines of the case's file that wait. Each case
has a process of its own, as several are of one package. With `--device cpu` nothing waits: a test of the script.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.machinery
import json
import subprocess
import sys
import tarfile
import types
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

HERE = Path(__file__).parent
Work = Callable[[], object]


def main() -> None:
    """Export, run all, or run one."""
    parser = argparse.ArgumentParser(description="whether lines that should be silent wait on a GPU")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("export")
    verb.add_argument("mirrors", type=Path)
    verb.add_argument("folder", type=Path)
    for name in ("run", "one"):
        verb = verbs.add_parser(name)
        verb.add_argument("folder", type=Path)
        verb.add_argument("--device", default="cuda")
        if name == "one":
            verb.add_argument("id")
    options = parser.parse_args()
    if options.verb == "export":
        for name in WORK:
            export(options.mirrors, options.folder, case(name))
    elif options.verb == "one":
        print(json.dumps(waits(options.folder, options.id, options.device)))
    else:
        for name in WORK:
            command = [sys.executable, __file__, "one", str(options.folder), name, "--device", options.device]
            subprocess.run(command, check=True)


def case(name: str) -> dict[str, Any]:
    """A case of `cases.jsonl`."""
    cases = map(json.loads, (HERE / "cases.jsonl").read_text(encoding="utf-8").splitlines())
    return next(each for each in cases if each["id"] == name)


def export(mirrors: Path, folder: Path, case: dict[str, Any]) -> None:
    """Write the package of a case as it was after the change."""
    project = mirrors / case["repo"].replace("/", "+")
    mirror = project / "repo" if (project / "repo").is_dir() else project
    package = Path(case["path"]).parts[0]
    command = ["git", "-C", str(mirror), "archive", case["commit"], package]
    with tarfile.open(fileobj=BytesIO(subprocess.run(command, check=True, capture_output=True).stdout)) as archive:
        archive.extractall(folder / case["id"], filter="data")


def waits(folder: Path, name: str, device: str) -> dict[str, Any]:
    """The lines of a case's file that wait."""
    import torch

    path = folder.absolute() / name / case(name)["path"]
    sys.path.insert(0, str(folder.absolute() / name))
    work = WORK[name](path, device)
    on_gpu = device == "cuda"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if on_gpu:
            torch.cuda.set_sync_debug_mode("warn")
        work()
        if on_gpu:
            torch.cuda.set_sync_debug_mode("default")
    syncs = [each for each in caught if "synchronizing CUDA operation" in str(each.message)]
    lines = sorted({each.lineno for each in syncs if each.filename == str(path)})
    gpu = torch.cuda.get_device_name() if on_gpu else "none"
    return {"id": name, "lines": lines, "device": gpu, "torch": torch.__version__}


# The functions, one by one


def apply_colormap(path: Path, device: str) -> Work:
    import torch

    stand_in("kornia_rs")
    module = importlib.import_module("kornia.color.colormap")
    image, colors = torch.rand(2, 1, 8, 8, device=device), module.ColorMap("jet", device=device, dtype=torch.float32)
    return lambda: module.apply_colormap(image, colors)


def distance_transform(path: Path, device: str) -> Work:
    import torch

    stand_in("kornia_rs")
    module = importlib.import_module("kornia.contrib.distance_transform")
    image = (torch.rand(1, 1, 16, 16, device=device) > 0.9).float()
    return lambda: module.distance_transform(image)


def krt_from_projection(path: Path, device: str) -> Work:
    import torch

    stand_in("kornia_rs")
    module = importlib.import_module("kornia.geometry.epipolar.projection")
    projection = torch.rand(2, 3, 4, device=device)
    return lambda: module.KRt_from_projection(projection)


def crop_and_resize(path: Path, device: str) -> Work:
    import torch

    # Its warp calls a function that torch no longer has; the lines of the case run before it.
    env: dict[str, Any] = {"torch": torch, "crop_by_boxes": lambda *given, **named: None}
    crop = function(path, "", "crop_and_resize", env)
    corners = torch.tensor([[[1.0, 1.0], [2.0, 1.0], [2.0, 2.0], [1.0, 2.0]]], device=device)
    image = torch.rand(1, 1, 8, 8, device=device)
    return lambda: crop(image, corners, (2, 2))


def topology(path: Path, device: str) -> Work:
    import torch

    cell = types.SimpleNamespace(forward=lambda x, weight: 2 * x)
    made = types.SimpleNamespace(
        num_blocks=2,
        num_depths=2,
        arch_code_a=torch.ones(2, 2, device=device),
        arch_code2in=[0, 1],
        arch_code2out=[0, 1],
        cell_tree={str((block, path)): cell for block in range(2) for path in range(2)},
    )
    forward = function(path, "TopologyInstance", "forward", {"torch": torch})
    inputs = [torch.rand(2, 3, device=device)] * 2
    return lambda: forward(made, inputs)


def moe(path: Path, device: str) -> Work:
    import torch

    first, last = case("torchtitan-bab83a4c-sync-item")["after_lines"][0] - 2, 630
    lines = path.read_text(encoding="utf-8").splitlines()[first - 1 : last]
    indent = len(lines[0]) - len(lines[0].lstrip())
    code = compile("\n" * (first - 1) + "\n".join(line[indent:] for line in lines), str(path), "exec")
    tokens = torch.randint(1, 5, (16,), device=device)
    names = {
        "torch": torch,
        "tokens_per_expert_group": tokens,
        "self": types.SimpleNamespace(experts_per_rank=4),
    }
    return lambda: exec(code, names)


def function(path: Path, owner: str, name: str, names: dict[str, Any]) -> Callable[..., Any]:
    """A function of a file without the rest of the file, on its own lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    around = next((n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == owner), tree)
    found = next(node for node in around.body if isinstance(node, ast.FunctionDef) and node.name == name)
    annotations = ast.ImportFrom("__future__", [ast.alias("annotations")], 0)
    module = ast.fix_missing_locations(ast.Module([annotations, found], []))
    exec(compile(module, str(path), "exec"), names)
    made: Callable[..., Any] = names[name]
    return made


class StandIn(types.ModuleType):
    """A compiled package that is not installed, and that nothing here calls."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def stand_in(name: str) -> None:
    """Let a package be imported that is not there."""
    module = StandIn(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    sys.modules[name] = module


WORK: dict[str, Callable[[Path, str], Work]] = {
    "kornia-09c05827-compile-graph-break": apply_colormap,
    "kornia-8f0ec5ac-compile-graph-break": distance_transform,
    "kornia-90209959-other": krt_from_projection,
    "kornia-02d80766-redundant-copy": crop_and_resize,
    "monai-b9e17e81-device-create": topology,
    "torchtitan-bab83a4c-sync-item": moe,
}


if __name__ == "__main__":
    main()
