"""`perflint trace --simulate` finds without a GPU what a GPU found."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.output.trace import missing_lines
from perflint.tracer.events import Failure, ModuleCall, PageableCopy, Sync
from perflint.tracer.file import read_trace
from perflint.tracer.trace import Trace
from tests.sample import sample
from tests.tracer import warm
from tests.tracer.device import ROOT, Done, python

sys.path.insert(0, str(ROOT))

from benchmarks.accuracy.recorded import unpacked
from benchmarks.tracer.simulate import Truth, score

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

OUTPUT = "perflint-trace.jsonl.gz"
HEAD = "import copy, io, threading\nimport numpy as np\nimport torch\nfrom torch import nn\n"
PLACES = """
host = torch.rand(4, 4)
x = torch.rand(4, 4, device="cuda")
w = torch.rand(4, 4, device="cuda", requires_grad=True)
scalar = x.sum()

# What waits on a GPU.
scalar.item()  # sync
float(scalar)  # sync
f"{scalar:.2f}"  # sync
str(x)  # sync
x.tolist()  # sync
x.cpu()  # sync
host.cuda()  # sync
host.to("cuda")  # sync
host.to(device="cuda", dtype=torch.float16)  # sync
host.to(x)  # sync
host.type(torch.cuda.FloatTensor)  # sync
torch.tensor([1.0], device="cuda")  # sync
torch.as_tensor(np.ones(3), device="cuda")  # sync
torch.cuda.FloatTensor([1.0])  # sync
x.new_tensor([1.0])  # sync
torch.tensor([scalar, 1.0])  # sync
x[x > 0.5]  # sync
x[[0, 1]]  # sync
x[torch.tensor([0, 1])]  # sync
x[0, 0] = 1.0  # sync
x[x > 0.5] = scalar  # sync
host[0] = x[0]  # sync
host.copy_(x)  # sync
x.nonzero()  # sync
torch.where(x > 0.5)  # sync
x.unique()  # sync
x.masked_fill(x > 0.5, scalar)  # sync
torch.linalg.inv(torch.eye(4, device="cuda"))  # sync
torch.equal(x, x + 1)  # sync
torch.repeat_interleave(x, torch.tensor([1, 2, 1, 2], device="cuda"), dim=0)  # sync
nn.functional.one_hot(torch.arange(3, device="cuda"))  # sync
if scalar > 0: pass  # sync
torch.save(x, io.BytesIO())  # sync
loss = w[w > 0.5].sum()  # sync
loss.backward()  # sync
w.cumprod(0).sum().backward()  # sync
torch.prod(input=w, dim=0).sum().backward()  # sync
torch.cov(input=x)  # sync
with torch.inference_mode():
    inferred = x.mean()
inferred.item()  # sync
with torch.device("cuda"):
    torch.tensor([1])  # sync
thread = threading.Thread(target=lambda: x.max().item()); thread.start(); thread.join()  # sync
torch.cuda.synchronize()  # explicit
torch.cuda.current_stream().synchronize()  # explicit

# What looks like it and does not.
host.sum().item()
host.to("cpu")
host.tolist()
host[host > 0.5]
host[torch.arange(2, device="cuda")]
float(host[0, 0])
x.to("cuda")
x.to(torch.float16)
x.cuda()
x.shape, len(x), x.device, x.is_cuda, x.numel()
host.to("cuda", non_blocking=True)
host.pin_memory().to("cuda", non_blocking=True)
torch.full((), 3.0, device="cuda")
torch.tensor([], device="cuda").tolist()
torch.zeros(3, device="cuda")
x.new_zeros(3)
torch.zeros_like(x)
x[0], x[1:3], x[:, torch.arange(2, device="cuda")]
x[x > 0.5] = 0.0
x[0] = 1.0
x.masked_fill_(x > 0.5, 0.0)
torch.where(x > 0.5, x, 0.0)
x + host[0, 0]
torch.clamp(x, scalar)
nn.functional.one_hot(torch.arange(3, device="cuda"), 5)
torch.quantile(x, 0.5)
torch.linalg.inv_ex(torch.eye(4, device="cuda"))
torch.equal(x, x)
copy.deepcopy(x)
(w * 2).sum().backward()
w.masked_fill(x > 0.5, 1.0).sum().backward()
nn.utils.clip_grad_norm_([w], 1.0)
optimizer = torch.optim.Adam([w]); optimizer.step()
zeros = torch.zeros_like(x, device="cpu"); zeros.sum().item()
with torch.autocast("cuda", torch.float16): (x @ x).sum()
"""
DEVICES = """
x = torch.zeros(2, device="cuda")
model = nn.Linear(2, 2).to("cuda")
print(x.device, x.is_cuda, x.get_device(), x.type(), x.cpu().device, x.untyped_storage().device)
print((x + 1).device, x[0].device, x.view(1, 2).device, x.half().device, copy.deepcopy(x).device)
model(x).sum().backward()
print(model.weight.device, model.weight.grad.device, next(model.parameters()).data.device)
file = io.BytesIO(); torch.save(model.state_dict(), file); file.seek(0)
print(torch.load(file)["weight"].device, (file.seek(0), torch.load(file, map_location="cpu"))[1]["weight"].device)
optimizer = torch.optim.AdamW(model.parameters()); optimizer.step()
print(optimizer.state[model.weight]["exp_avg"].device, optimizer.state[model.weight]["step"].device)
with torch.autocast("cuda", torch.bfloat16):
    print(model(x).dtype, torch.is_autocast_enabled("cuda"))
torch.set_default_device("cuda"); print(torch.ones(1).device); torch.set_default_device(None)
print(torch.Generator("cuda").device, isinstance(torch.default_generator, torch.Generator))
print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.memory_allocated(), torch.ones(1).device)
print(torch.func.vmap(lambda row: row * 2)(x).device, x)
layers = nn.LSTM(2, 3), nn.GRU(2, 3, bidirectional=True), nn.RNN(2, 3, 2)
for here in layers:
    there = copy.deepcopy(here).cuda()
    sums = [layer(torch.ones(4, 1, 2, device=d))[0].sum() for layer, d in ((here, "cpu"), (there, "cuda"))]
    sums[0].backward(); sums[1].backward()
    pairs = zip(here.parameters(), there.parameters())
    print(sums[1].device, {(a.grad.device, b.grad.device, torch.allclose(a.grad, b.grad.cpu())) for a, b in pairs})
try: x.numpy()
except TypeError as error: print(error)
"""
SEEN = """\
cuda:0 True 0 torch.cuda.FloatTensor cpu cuda:0
cuda:0 cuda:0 cuda:0 cuda:0 cuda:0
cuda:0 cuda:0 cuda:0
cuda:0 cpu
cuda:0 cpu
torch.bfloat16 True
cuda:0
cuda:0 True
True 1 0 cpu
cuda:0 tensor([0., 0.], device='cuda:0')
cuda:0 {(device(type='cpu'), device(type='cuda', index=0), True)}
cuda:0 {(device(type='cpu'), device(type='cuda', index=0), True)}
cuda:0 {(device(type='cpu'), device(type='cuda', index=0), True)}
can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.
"""
LOADER = """
from torch.utils.data import DataLoader, TensorDataset
model = nn.Linear(2, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.rand(8, 2))
for pinned in (True, False):
    for (x,) in DataLoader(data, batch_size=2, pin_memory=pinned):
        x = x.to("cuda", non_blocking=True)
        model(x).sum().backward()
        optimizer.step()
"""
RANKS = """
import os
import torch.distributed as dist
dist.init_process_group("nccl")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2).to(device), device_ids=[device])
model(torch.ones(2, 2, device=device)).sum().backward()
total = torch.ones(1, device=device)
dist.all_reduce(total)
assert total.device == device == next(model.parameters()).device and total.item() == torch.cuda.device_count() == 2
dist.destroy_process_group()
"""
COMPILED = """
model = torch.compile(nn.Linear(2, 2).cuda())
print(model(torch.ones(1, 2, device="cuda")).sum().item() is not None, "_orig_mod" in str(list(model.state_dict())))
"""


SUBCLASSES = """
class Image(torch.Tensor):
    pass

class Boxes(torch.Tensor):
    def __new__(cls, data, kind=None, **options):
        return super().__new__(cls, data, **options)
    def __init__(self, data, kind=None):
        self.kind = kind

class Mask(torch.Tensor):
    def __new__(cls, data):
        return torch.Tensor._make_subclass(cls, data)

def about(x):
    return type(x).__name__, x.device.type, x.requires_grad, x.is_leaf, tuple(x.shape), x.dtype

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.ones(2, device=device)
w = torch.ones(2, device=device, requires_grad=True)
mine = Image(x)
boxes = Boxes(x, "xyxy")
mask = Mask(x)
made = x.as_subclass(Image)
by_hand = torch.Tensor.__new__(Image, x)
empty, sized, listed = Image(), Image(2, 3), Image([[1, 2]])
weight = nn.Parameter(Image(x))
mine.add_(1)
(Boxes(w) * 2).sum().backward()
if mine.sum() > 0: pass  # sync
boxes.sum().item()  # sync
mask.cpu()  # sync
made.tolist()  # sync
float(by_hand[0])  # sync
float(weight[0])  # sync
listed.tolist(), float(listed[0, 0]), Image(2, 3).cpu(), bool(Image([1.0]))
Image(torch.ones(2)).tolist()
print(*map(about, (mine, boxes, mask, made, by_hand, listed, sized, empty, weight, mine + 1, Boxes(w))))
print(boxes.kind, Image(w).grad_fn is not None, w.grad.tolist(), x.tolist(), Image([x[0], x[1]]).tolist())  # sync
for wrong in (lambda: Image("abc"), lambda: Image(x, x)):
    try: wrong()
    except TypeError as error: print(error)
"""


def simulated(folder: Path, program: str, *options: str) -> tuple[Trace, Done]:
    """Trace a program without a GPU."""
    (folder / "program.py").write_text(HEAD + program)
    done = warm.trace(folder, "--simulate", "--warmup", "0", "--steps", "0", *options, "program.py")
    return read_trace(folder / OUTPUT), done


def test_what_waits_and_what_does_not(tmp_path: Path) -> None:
    trace, done = simulated(tmp_path, PLACES)
    assert done.code == 0, done.err
    kinds = {"sync": "implicit", "explicit": "explicit"}
    marked = ((number, line.partition("  # ")[2]) for number, line in enumerate((HEAD + PLACES).splitlines(), 1))
    assert {(sync.place.line, sync.kind) for sync in trace.of(Sync)} == {
        (number, kinds[mark]) for number, mark in marked if mark
    }


def test_tensors_say_where_they_would_be(tmp_path: Path) -> None:
    _, done = simulated(tmp_path, DEVICES)
    assert (done.code, done.out) == (0, SEEN), done.err


def test_tensors_of_the_programs_own_classes(tmp_path: Path) -> None:
    trace, done = simulated(tmp_path, SUBCLASSES)
    assert done.code == 0, done.err
    marked = {number for number, line in enumerate((HEAD + SUBCLASSES).splitlines(), 1) if line.endswith("  # sync")}
    assert {sync.place.line for sync in trace.of(Sync)} == marked
    plain = python(tmp_path, "program.py")
    assert (plain.code, plain.out.replace("cuda", "cpu")) == (0, done.out.replace("cuda", "cpu")), plain.err


def test_arrays_are_not_pinned(tmp_path: Path) -> None:
    _, done = simulated(tmp_path, "import numpy\ntorch.tensor([1.0], pin_memory=True)\n")
    assert done.code == 0, done.err
    _, done = simulated(tmp_path, "import numpy\ntorch.tensor(numpy.ones(3), pin_memory=True)\n")
    assert "Can't pin tensor constructed from numpy" in done.err


def test_steps_and_copies(tmp_path: Path) -> None:
    trace, done = simulated(tmp_path, LOADER)
    assert done.code == 0, done.err
    header = trace.header
    assert (header.simulated, header.steps, header.step_source, header.devices) == (
        True,
        8,
        "optimizer",
        ("simulated GPU",),
    )
    (copy,) = trace.of(PageableCopy)
    # Memory is pinned in half of the steps.
    assert (copy.direction, copy.hits.steps) == ("host-to-device", 4)
    assert {sync.origin for sync in trace.of(Sync)} == {"module-move"}
    assert "8 steps (counted by optimizer.step()), simulated: no GPU, so no times" in done.err


def test_what_the_tracer_itself_reads_is_not_the_programs(tmp_path: Path) -> None:
    """An `EmbeddingBag` says its weights where others say their settings."""
    program = """
bag = nn.EmbeddingBag(4, 2, device="cuda")
for _ in range(3):
    bag(torch.zeros(2, dtype=torch.long, device="cuda"), torch.zeros(1, dtype=torch.long, device="cuda"))
"""
    trace, done = simulated(tmp_path, program)
    assert done.code == 0, done.err
    assert trace.of(ModuleCall)
    assert not trace.of(Sync)


def test_a_default_device_adds_no_waits(tmp_path: Path) -> None:
    """The mode of the default device passes each call on: the copy below it is none of its own."""
    program = """
torch.set_default_device("cuda")
x = torch.ones(3)
y = x.to("cuda"), x.to("cuda", torch.float16), x.cuda()
host = x.to("cpu")
back = host.to("cuda")
print(x.device, y[1].device, y[1].dtype, host.device, back.device)
"""
    trace, done = simulated(tmp_path, program)
    assert (done.code, done.out) == (0, "cuda:0 cuda:0 torch.float16 cpu cuda:0\n"), done.err
    seen = [(sync.place.text, sync.hits.outside + sync.hits.steps) for sync in trace.of(Sync)]
    assert sorted(seen) == [('back = host.to("cuda")', 1), ('host = x.to("cpu")', 1)]


def test_each_process_of_torchrun_has_a_gpu(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(HEAD + RANKS)
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python")
    done = python(tmp_path, *launch, sys.executable, "-m", "perflint", "trace", "--simulate", "program.py")
    assert done.code == 0, done.err
    for rank in range(2):
        trace = read_trace(tmp_path / f"perflint-trace.rank{rank}.jsonl.gz")
        assert [sync.place.text[:6] for sync in trace.of(Sync) if not sync.origin] == ["assert"]


def test_pageable_copies_are_told_from_pinned_ones(tmp_path: Path) -> None:
    program = (ROOT / "benchmarks" / "tracer" / "pageable_copies.py").read_text("utf-8")
    trace, done = simulated(tmp_path, program)
    assert done.code == 0, done.err
    lines = (tmp_path / "program.py").read_text("utf-8").splitlines()
    planted = {number for number, line in enumerate(lines, 1) if line.endswith("# pageable")}
    assert {copy.place.line for copy in trace.of(PageableCopy)} == planted
    assert len(planted) > 10


def test_compiled_code_runs_eagerly_and_the_trace_says_so(tmp_path: Path) -> None:
    trace, done = simulated(tmp_path, COMPILED)
    assert (done.code, done.out) == (0, "True True\n"), done.err
    assert Failure("torch.compile", "what the program compiles was run eagerly") in trace.of(Failure)


def test_what_cannot_be_simulated_says_so(tmp_path: Path) -> None:
    _, done = simulated(tmp_path, "torch.cuda.CUDAGraph()\n")
    assert done.code == 1
    assert "`perflint trace --simulate` cannot run CUDA graphs: the CPU cannot play them again." in done.err
    _, done = simulated(tmp_path, "torch.zeros(1, device='cuda:1')\n")
    assert "RuntimeError: CUDA error: invalid device ordinal" in done.err


def test_the_program_keeps_its_output_and_its_status(tmp_path: Path) -> None:
    program = "x = torch.ones(2, device='cuda')\nprint('a')\nraise SystemExit(3)\n"
    trace, done = simulated(tmp_path, program)
    assert (done.code, done.out, trace.header.ended) == (3, "a\n", "exit 3")
    _, done = simulated(tmp_path, "torch.ones(2, device='cuda').sum().item()\n", "--fail-on-sync")
    assert done.code == 1
    # A program that uses no GPU has nothing simulated that it could tell.
    _, done = simulated(tmp_path, "print(torch.ones(2).sum().item())\n")
    assert (done.code, done.out) == (0, "2.0\n")
    assert "The program put nothing on the simulated GPU" in done.err and "--simulate" not in done.err


def test_the_guide_shows_what_is_printed(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guide" / "tracing.md").read_text("utf-8").partition("## Without a GPU")[2]
    program, printed = (guide.partition(f"```{language}\n")[2].partition("```")[0] for language in ("python", "text"))
    (tmp_path / "train.py").write_text(program)
    done = warm.trace(tmp_path, "--simulate", "train.py")
    said = done.err.replace(str(tmp_path) + os.sep, "")
    if sys.version_info < (3, 12):
        sentence = missing_lines(sys.version_info[:2])
        assert said.count(sentence) == 1
        said = said.replace(f"{sentence}\n", "")
    assert (done.code, said) == (0, printed)


def test_experiments_need_a_gpu(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("")
    done = python(tmp_path, "-m", "perflint", "trace", "--simulate", "--experiments", "program.py")
    assert done.code == 2
    assert "leave out one of the two" in done.err


def test_statements_wait_as_they_did_on_a_gpu(tmp_path: Path) -> None:
    done = warm.script(tmp_path, str(ROOT / "tests" / "tracer" / "simulated_statements.py"))
    assert done.code == 0, done.err
    rows = json.loads(done.out)
    assert len(rows) > 380
    # torch 2.13 draws anew until all numbers fit, which it looks at; the GPU was asked with 2.11.
    differ = [row for row in rows if bool(row["gpu"]) != bool(row["simulated"]) and "trunc_normal" not in row["code"]]
    assert not differ


QUICK = ("programs/train_amp.py", "heldout/gnn.py", "heldout/quantile_ddp.py")
"""Programs that take few seconds. The held-out set was written without a look at perflint."""


@pytest.mark.parametrize("program", sample(QUICK, len(QUICK)))
def test_a_program_waits_where_it_did_on_a_gpu(program: str, tmp_path: Path) -> None:
    name, _, script = program.partition("/")
    _holds_against_the_gpu(unpacked(name, tmp_path), (script,))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["programs", "heldout"])
def test_all_programs_wait_where_they_did_on_a_gpu(name: str, tmp_path: Path) -> None:
    _holds_against_the_gpu(unpacked(name, tmp_path))


def _forked(folder: Path, arguments: list[str], limit: float) -> tuple[int, str]:
    done = warm.trace(folder, *arguments)
    return done.code, done.err


def _holds_against_the_gpu(folder: Path, programs: tuple[str, ...] = ()) -> None:
    truth = Truth(folder)
    scores = [score(truth, program, run=_forked) for program in programs or truth.programs]
    assert not [made for made in scores if made.status]
    found, known = sum(len(made.found) for made in scores), sum(made.truth for made in scores)
    false = sum(len(made.false) for made in scores)
    assert found >= 0.9 * known, [made.missed for made in scores]
    assert false <= 0.05 * known, [made.false for made in scores]
