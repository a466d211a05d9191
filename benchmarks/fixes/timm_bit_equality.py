"""Shows that safe fixes change nothing: the smallest model of every module of timm.models, before and after.

    cp -r DIR/timm fixed/timm && perflint fix --apply fixed/timm
    python benchmarks/fixes/timm_bit_equality.py DIR fixed --results results.json

Both folders hold a `timm` package; torch, torchvision and what else timm imports must be
installed. For each module file the registered model with the fewest parameters is built from a
seed, in a process of its own for each folder, and run on a seeded input: forward in evaluation
mode, forward and backward in training mode. Outputs, gradients, buffers and the keys of the
state_dict are compared bit for bit. Results are kept after each module, so that a run that was
stopped goes on where it was. Exits with 1 where a model differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

SEED = 20
BATCH = 2
CANDIDATES = 3
"""How many models of a module are tried, from the smallest, before it is given up."""
REPEATS = 6
"""How often a model that differs is run again unchanged, to see what differs from run to run."""


def main() -> None:
    """Compare all modules, print a table, write JSON."""
    options = _arguments()
    if options.worker:
        print(json.dumps(_work(options)))
        return
    results = _load(options.results, _settings(options))
    left = [module for module in _modules(options) if module not in results["modules"]]
    start = time.perf_counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(compare, module, options): module for module in left}
        for done in as_completed(running):
            results["modules"][running[done]] = done.result()
            options.results.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    print(_table(results["modules"]))
    print(f"\n{len(left)} modules in {time.perf_counter() - start:.0f} s")
    raise SystemExit(any(result["verdict"] == "different" for result in results["modules"].values()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="compare timm before and after fixes, bit for bit")
    parser.add_argument("before", type=Path, help="folder that holds timm as released")
    parser.add_argument("after", type=Path, help="folder that holds timm after `perflint fix --apply`")
    parser.add_argument("--module", action="append", help="only this module")
    parser.add_argument("--results", type=Path, default=Path("timm_bit_equality.json"), help="where to keep results")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (default: all CPUs)")
    parser.add_argument("--timeout", type=int, default=150, help="seconds for one process (default: 150)")
    parser.add_argument("--worker", choices=["choose", "record"], help=argparse.SUPPRESS)
    parser.add_argument("--what", help=argparse.SUPPRESS)
    return parser.parse_args()


def _modules(options: argparse.Namespace) -> list[str]:
    """The module files of timm.models, the largest first, since they register the most models."""
    files = [path for path in (options.before / "timm" / "models").glob("*.py") if path.stem != "__init__"]
    names = [path.stem for path in sorted(files, key=lambda path: -path.stat().st_size)]
    return [name for name in names if name in options.module] if options.module else names


def _settings(options: argparse.Namespace) -> dict[str, str]:
    return {
        "device": options.device,
        "before": _digest(options.before / "timm"),
        "after": _digest(options.after / "timm"),
    }


def _digest(folder: Path) -> str:
    """A digest of the Python files of a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _load(path: Path, settings: dict[str, str]) -> dict[str, Any]:
    """The results of an earlier run over the same files, or none yet."""
    if path.exists():
        results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if results.get("settings") == settings:
            return results
    return {"settings": settings, "modules": {}}


def compare(module: str, options: argparse.Namespace) -> dict[str, Any]:
    """The verdict on one module: equal, different, not deterministic, no model, cannot run."""
    chosen = _run(options.before, "choose", module, options)
    if "error" in chosen:
        return {"verdict": "cannot run", "reason": chosen["error"]}
    if not chosen["models"]:
        return {"verdict": "no model", "reason": "registers no model"}
    reasons = []
    for name, parameters in chosen["models"][:CANDIDATES]:
        before = _run(options.before, "record", name, options)
        if "error" in before:
            reasons.append(f"{name}: {before['error']}")
            continue
        result = {"model": name, "parameters": parameters, "tensors": len(before["tensors"])}
        after = _run(options.after, "record", name, options)
        return {**result, **_judge(before, after, name, options)}
    return {"verdict": "cannot run", "reason": "; ".join(reasons)}


def _judge(before: dict[str, Any], after: dict[str, Any], name: str, options: argparse.Namespace) -> dict[str, Any]:
    if "error" in after:
        return {"verdict": "different", "reason": f"runs before, not after: {after['error']}"}
    differing = _differences(before, after)
    if not differing:
        return {"verdict": "equal"}
    unstable: set[str] = set()
    for _ in range(REPEATS):
        again = _run(options.before, "record", name, options)
        unstable.update(_differences(before, again) if "error" not in again else ())
        if unstable.issuperset(differing):
            return {"verdict": "not deterministic", "reason": f"differs from itself, too: {', '.join(differing[:3])}"}
    return {"verdict": "different", "reason": f"{len(differing)} differ: {', '.join(differing[:5])}"}


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    differing = [] if before["state"] == after["state"] else ["keys of the state_dict"]
    names = {**before["tensors"], **after["tensors"]}
    return differing + [name for name in names if before["tensors"].get(name) != after["tensors"].get(name)]


def _run(root: Path, work: str, what: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run one worker on one folder; {"error": reason} where it fails."""
    command = [
        sys.executable,
        __file__,
        str(root),
        str(root),
        "--device",
        options.device,
        "--worker",
        work,
        "--what",
        what,
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root.resolve()), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=options.timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {options.timeout} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1][:300] if lines else f"exit status {done.returncode}"}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _work(options: argparse.Namespace) -> dict[str, Any]:
    import timm

    if Path(timm.__file__).resolve().parent != (options.before / "timm").resolve():
        raise SystemExit(f"imported timm from {timm.__file__}")
    if options.worker == "choose":
        return {"models": _models_by_size(options.what)}
    return record(options.what, options.device)


def _models_by_size(module: str) -> list[tuple[str, int]]:
    """The models that a module registers and their numbers of parameters, the smallest first."""
    import timm

    sizes = []
    for name in timm.list_models(module=module):
        for parameters_only in (True, False):
            try:
                with _without_memory(parameters_only):
                    model = timm.create_model(name, pretrained=False)
            except (RuntimeError, NotImplementedError, ValueError, TypeError, ImportError):
                continue  # It cannot be built without memory; another of the module can.
            sizes.append((name, sum(parameter.numel() for parameter in model.parameters())))
            break
    return sorted(sizes, key=lambda item: (item[1], item[0])) or [(name, 0) for name in timm.list_models(module=module)]


@contextmanager
def _without_memory(parameters_only: bool) -> Iterator[None]:
    """Build modules on the meta device: their parameters alone, or all tensors.

    Constructors that compute with tensors want the former, those that compute with their
    parameters the latter.
    """
    import torch

    if not parameters_only:
        with torch.device("meta"):
            yield
        return
    register = torch.nn.Module.register_parameter

    def on_meta(module: torch.nn.Module, name: str, parameter: torch.nn.Parameter | None) -> None:
        if parameter is not None:
            parameter = torch.nn.Parameter(parameter.detach().to("meta"), parameter.requires_grad)
        register(module, name, parameter)

    torch.nn.Module.register_parameter = on_meta
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register


def record(name: str, device: str) -> dict[str, Any]:
    """Digests of all that a seeded run of a model yields, and the keys of its state_dict."""
    import timm
    import torch

    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.manual_seed(SEED)
    model = timm.create_model(name, pretrained=False).to(device)
    size = model.pretrained_cfg.get("input_size") or (3, 224, 224)
    images = torch.rand(BATCH, *size, generator=torch.Generator().manual_seed(SEED)).to(device)
    tensors: dict[str, str] = {}
    model.eval()
    torch.manual_seed(SEED)
    with torch.no_grad():
        tensors.update(_digests("output in evaluation", model(images)))
    model.train()
    torch.manual_seed(SEED)
    outputs = model(images)
    tensors.update(_digests("output in training", outputs))
    sum(tensor.float().square().mean() for tensor in _tensors(outputs) if tensor.requires_grad).backward()
    for key, parameter in model.named_parameters():
        tensors[f"gradient of {key}"] = "none" if parameter.grad is None else _hash(parameter.grad)
    for key, value in model.state_dict().items():
        tensors[f"state {key}"] = _hash(value)
    return {"tensors": tensors, "state": list(model.state_dict())}


def _tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of an output, which may be nested, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


def _digests(label: str, value: Any) -> dict[str, str]:
    return {f"{label} {index}": _hash(tensor) for index, tensor in enumerate(_tensors(value))}


def _hash(tensor: torch.Tensor) -> str:
    """A digest of dtype, shape and every bit."""
    import torch

    host = tensor.detach().cpu().contiguous()
    data = host.reshape(-1).view(torch.uint8).numpy().tobytes() if host.numel() else b""
    return hashlib.sha256(f"{host.dtype}{tuple(host.shape)}".encode() + data).hexdigest()[:16]


def _table(modules: dict[str, dict[str, Any]]) -> str:
    lines = ["| module | model | parameters | tensors compared | verdict |", "|---|---|---:|---:|---|"]
    for module, result in sorted(modules.items()):
        model, size = result.get("model", ""), result.get("parameters")
        verdict = f"{result['verdict']}: {result['reason']}" if "reason" in result else result["verdict"]
        count = result.get("tensors", "")
        lines.append(f"| {module} | {model} | {'' if size is None else f'{size:,}'} | {count} | {verdict} |")
    counts = Counter(result["verdict"] for result in modules.values())
    return "\n".join([*lines, "", ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())])


if __name__ == "__main__":
    main()
