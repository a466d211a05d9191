"""Changes of experiments as fixes: the text, the refusals, and the program that runs before and after."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from perflint.tracer.events import Experiment, Failure, ModuleCall, Place
from tests.cli.command import Command, Ran
from tests.tracer import warm
from tests.tracer.changes.recorded import SHAPE, call, experiment, place, record

NET = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x).relu()


"""


def fixed(
    perflint: Command, text: str, *records: Experiment | ModuleCall | Failure, steps: str = "optimizer"
) -> tuple[list[str], Ran]:
    """The lines that the fixes of experiments add to a program and take from it, and what the command says."""
    record(perflint.folder, text, *records, steps=steps)
    ran = perflint("fix", "--trace", "trace.jsonl.gz", "--experiments", "--risky-fixes", "program.py")
    changed = [line for line in ran.out.splitlines() if re.match(r"[+-](?![+-])", line)]
    return changed, ran


def compiled(perflint: Command, text: str, *records: ModuleCall) -> tuple[list[str], Ran]:
    """The same for `Net` and the rest of a program, if an experiment found `torch.compile` faster."""
    text = NET + text
    at = place(text, "Net(")
    return fixed(perflint, text, experiment("compile", at), call(at, *SHAPE), *records)


MAKING = [
    ("model = Net().cuda()\n", ["+model.compile()"]),
    ("model = Net()  # the model\n", ["+model.compile()"]),
    ("model = Net()", ["-model = Net()", "+model = Net()", "+model.compile()"]),
    ("model: nn.Module = Net()\nmodel.cuda()\nmodel = model.to('cuda')\nprint(model)\n", ["+model.compile()"]),
    (
        "class Agent:\n    def __init__(self):\n        self.net = Net().to('cuda')\n",
        ["+        self.net.compile()"],
    ),
    (
        "def build():\n    return Net().cuda()\n",
        ["-    return Net().cuda()", "+    model = Net().cuda()", "+    model.compile()", "+    return model"],
    ),
    (
        "def build(model):\n    return Net()\n",
        ["-    return Net()", "+    net = Net()", "+    net.compile()", "+    return net"],
    ),
    ("if True:\n    model = Net(\n    )\n    model.eval()\n", ["+    model.compile()"]),
    ("model = nn.parallel.DistributedDataParallel(Net())\n", []),
]


@pytest.mark.parametrize(("text", "added"), MAKING, ids=[text.splitlines()[0] for text, _ in MAKING])
def test_the_model_is_compiled_where_it_is_made(perflint: Command, text: str, added: list[str]) -> None:
    lines, ran = compiled(perflint, text)
    assert lines == added, ran.err


def test_a_statement_follows_the_moves_of_the_model_and_no_others(perflint: Command) -> None:
    _, ran = compiled(perflint, "model = Net()\nmodel.cuda()\nmodel = model.to('cuda')\nother = 1\nmodel.eval()\n")
    assert " model = model.to('cuda')\n+model.compile()\n other = 1\n" in ran.out


def test_the_faster_mode_is_written_in_the_quotes_of_the_file(perflint: Command) -> None:
    for mark in "\"'":
        text = NET + f"kind = {mark}small{mark}\n{LOOP}"
        lines, ran = fixed(perflint, text, *graphs(text))
        assert lines == [f"+model.compile(mode={mark}reduce-overhead{mark})"], ran.err


LOOP = """model = Net()
losses = []
for x in []:
    out = model(x)
    loss = nn.functional.mse_loss(out, x)
    print(out[0].detach().sum().item())
    loss.backward()
"""


def graphs(text: str) -> tuple[Experiment | ModuleCall, ...]:
    """Experiments by which CUDA graphs are the fastest, and the calls of a model that is called once in a step."""
    at, called = place(text, "Net("), place(text, "model(x")
    tried = (experiment(name, at, ratio, called=called) for name, ratio in (("compile", 1.5), (GRAPHS, 3.0)))
    return (*tried, call(at, *SHAPE))


GRAPHS = "compile-with-graphs"
USED_UP = [
    ("print(out[0].detach().sum().item())", "print(out.sum().item(), out.view(-1) + 1, f'{out}', \"\")"),
    ("print(out[0].detach().sum().item())", "losses.append(out.sum().item())"),
    ("print(out[0].detach().sum().item())", "if (out > 0).all():\n        print(torch.stack([out, x]))"),
    ("out = model(x)", "out, *_ = [model(x) * 2]"),
    ("out = model(x)", "with torch.enable_grad():\n        out = model(x)"),
    ("    out = model(x)\n    loss = nn.functional.mse_loss(out, x)", "    out = loss = nn.functional.relu(model(x))"),
    ("loss.backward()", "loss.backward()\nprint(out.sum())"),
]


@pytest.mark.parametrize(("old", "new"), USED_UP)
def test_graphs_are_used_if_each_output_is_used_up_before_the_next_call(perflint: Command, old: str, new: str) -> None:
    assert old in LOOP
    text = NET + LOOP.replace(old, new)
    lines, ran = fixed(perflint, text, *graphs(text))
    assert lines == ['+model.compile(mode="reduce-overhead")'], ran.err


KEPT = [
    ("print(out[0].detach().sum().item())", "losses.append(out)", "line 19 keeps `out` for later"),
    ("print(out[0].detach().sum().item())", "losses.append(out[0].detach())", "line 19 keeps `out` for later"),
    ("print(out[0].detach().sum().item())", "losses[0] = out.view(-1)", "line 19 keeps `out` for later"),
    ("print(out[0].detach().sum().item())", "before = out", "line 19 keeps `out` for later"),
    ("print(out[0].detach().sum().item())", "keep = lambda: out", "other functions use the output `out`"),
    ("out = model(x)", "print(out)\n    out = model(x)", "line 17 reads `out`, which may be the output of"),
    ("out = model(x)", "losses[0] = model(x)", "line 17 stores the output"),
    ("out = model(x)", "out = last = model(x)", "line 17 binds the output to several names"),
    ("out = model(x)", "losses.append(model(x))", "line 17 keeps `model(x)` for later"),
    ("losses = []", "def run(x):\n    return model(x)", "line 16 keeps `model(x)` for later"),
    ("losses = []", "losses = [model(1) for _ in range(2)]", "line 15 keeps `model(1)` for later"),
]


@pytest.mark.parametrize(("old", "new", "reason"), KEPT)
def test_without_proof_that_outputs_are_used_up_the_default_mode_is_written(
    perflint: Command, old: str, new: str, reason: str
) -> None:
    assert old in LOOP
    text = NET + LOOP.replace(old, new)
    lines, ran = fixed(perflint, text, *graphs(text))
    assert lines == ["+model.compile()"], ran.err
    assert re.search(rf"reduce-overhead.*, 3.00 × .* was not written: {re.escape(reason)}", ran.err), ran.err


def test_graphs_are_used_only_for_one_model_that_is_called_once_in_a_step(perflint: Command) -> None:
    text = NET + LOOP + "other = Net()\n"
    known = graphs(text)
    at, other = place(text, "Net("), place(text, "Net(", nth=1)
    called = place(text, "model(x")
    slow = experiment("compile", at, 1.0)
    twice = (call(at, *SHAPE), "2 recorded steps called the model 4 times")
    second = (experiment(GRAPHS, other, 0.9), "the program calls 2 models, and a replay of one may overwrite")
    for record_, reason in (twice, second):
        lines, ran = fixed(perflint, text, *known, record_)
        assert lines == ["+model.compile()"] and reason in ran.err, ran.err
        # Without a gain of the default mode, nothing is written.
        lines, ran = fixed(perflint, text, slow, *known[1:], record_)
        assert not lines and reason in ran.err
    lines, ran = fixed(perflint, text, *known, steps="module")
    assert lines == ["+model.compile()"] and "each call of a model as a step" in ran.err
    elsewhere = replace(called, file="other.py")
    unseen = [replace(each, called=elsewhere) if isinstance(each, Experiment) else each for each in known]
    lines, ran = fixed(perflint, text, *unseen)
    assert lines == ["+model.compile()"] and "the model is called in another file" in ran.err


@pytest.mark.parametrize("kind", ["DistributedDataParallel", "FullyShardedDataParallel"])
def test_wrapped_models_are_not_compiled(perflint: Command, kind: str) -> None:
    text = NET + f"model = Net()\nif True:\n    model = torch.nn.{kind}(model).cuda()\n"
    at = place(text, "torch.nn.")
    lines, ran = fixed(perflint, text, experiment("compile", at, subject=kind), call(at, *SHAPE))
    assert not lines and re.search("was not written: .*without the wrapper", ran.err), ran.err


def test_a_model_in_data_parallel_is_compiled_on_one_gpu(perflint: Command) -> None:
    text = NET + "model = Net()\nif True:\n    model = torch.nn.DataParallel(model).cuda()\n"
    at = place(text, "torch.nn.")
    known = (experiment("compile", at, subject="DataParallel"), call(at, *SHAPE))
    lines, ran = fixed(perflint, text, *known)
    added = ["    if len(model.device_ids) < 2:", "        model.module.compile()"]
    assert lines == [f"+{each}" for each in added], ran.err
    written = text + "\n".join(added) + "\n"
    lines, ran = fixed(perflint, written, *known)
    assert not lines and "the file compiles it elsewhere" in ran.err
    # A class with a `compile` of its own is not compiled in place.
    lines, ran = fixed(perflint, text, replace(known[0], note=""), known[1])
    assert not lines and "replicas" in ran.err
    # The model inside is another place, which the trace does not know as the called one.
    lines, _ = fixed(perflint, text, experiment("compile", place(text, "Net("), subject="Net"), call(at, *SHAPE))
    assert not lines


def test_a_call_with_more_tensors_than_its_record_has_is_found(perflint: Command) -> None:
    text = NET + "model = Net()\n"
    at = place(text, "Net(")
    shapes = tuple((number, 8) for number in range(1, 11))
    known = call(at, *SHAPE)
    for sizes in (shapes, ((9, 9), *shapes)):
        records = [
            replace(known, inputs=tuple(replace(known.inputs[0], shape=each) for each in kept[:8]))
            for kept in (shapes, sizes)
        ]
        lines, ran = fixed(perflint, text, experiment("compile", at, shapes=shapes), *records)
        assert lines == (["+model.compile()"] if sizes is shapes else []), ran.err
    lines, ran = fixed(perflint, text, experiment("compile", at), known, call(at, 3, 8))
    assert not lines and "2 different shapes" in ran.err
    lines, ran = fixed(perflint, text, experiment("compile", at), call(at, 3, 8))
    assert not lines and "no recorded step called the model with the shapes" in ran.err


def test_a_model_of_a_class_of_torch_gets_other_keys_and_a_risky_fix(perflint: Command) -> None:
    text = "import torch as t\nmodel = t.nn.Sequential(t.nn.Linear(8, 8)).cuda()\n"
    at = place(text, "t.nn.Sequential(")
    record(perflint.folder, text, experiment("compile", at, note=""), call(at, *SHAPE))
    options = ("--trace", "trace.jsonl.gz", "--experiments", "program.py")
    assert "+model = t.compile(model)\n" in perflint("fix", "--risky-fixes", *options).out
    assert perflint("fix", "--unsafe-fixes", *options).out == ""
    assert "_orig_mod." in perflint("check", *options).out


PRECISION = [
    ("tf32", "model = Net().cuda()\n", ['+torch.set_float32_matmul_precision("high")']),
    ("tf32", "def f():\n    return Net()\n", ['+    torch.set_float32_matmul_precision("high")']),
    ("tf32", "torch.backends.cuda.matmul.allow_tf32 = False\nmodel = Net()\n", []),
    ("tf32", "torch.set_float32_matmul_precision('highest')\nmodel = Net()\n", []),
    ("channels-last", "model = Net().cuda()\n", ["+model = model.to(memory_format=torch.channels_last)"]),
    ("channels-last", "layout = torch.channels_last\nmodel = Net()\n", []),
]


@pytest.mark.parametrize(("name", "text", "added"), PRECISION)
def test_precision_and_layout(perflint: Command, name: str, text: str, added: list[str]) -> None:
    text = NET + text
    at = place(text, "Net(")
    lines, ran = fixed(perflint, text, experiment(name, at))
    assert lines == added, ran.err


def test_all_changes_of_a_model_are_written_together(perflint: Command) -> None:
    text = NET + "model = Net()\n"
    at = place(text, "Net(")
    tried = [experiment(name, at) for name in ("compile", "tf32", "channels-last")]
    lines, ran = fixed(perflint, text, *tried, call(at, *SHAPE))
    assert lines == [
        '+torch.set_float32_matmul_precision("high")',
        "+model.compile()",
        "+model = model.to(memory_format=torch.channels_last)",
    ]
    assert "Would fix 3 findings in 1 file." in ran.err


def test_a_switch_of_the_whole_program_is_written_once(perflint: Command) -> None:
    text = NET + "model = Net()\nother = Net()\n"
    places = [place(text, "Net(", nth=number) for number in (0, 1)]
    assert places[0] != places[1]
    lines, _ = fixed(perflint, text, *(experiment("tf32", at) for at in places))
    assert lines == ['+torch.set_float32_matmul_precision("high")']


REFUSED = [
    ("models = [Net()]\n", "inside a larger expression"),
    ("a = b = Net()\n", "bound to several names"),
    ("models = {}\nmodels['a'] = Net()\n", "an element of a container"),
    ("if True: model = Net()\n", "shares a line with others"),
    ("model = Net(); print(model)\n", "shares a line with others"),
    ("model = Net()\nfast = torch.compile(model)\n", "compiles it elsewhere"),
    ("model = Net()\nif fast:\n    model.compile()\n", "compiles it elsewhere"),
    ("model = Net()\nmodel = nn.DataParallel(model)\n", "it is given to DataParallel"),
    ("model = Net()\nscripted = torch.jit.script(model)\n", "TorchScript"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_nothing_is_written_and_the_reason_is_given(perflint: Command, text: str, reason: str) -> None:
    lines, ran = compiled(perflint, f"fast = False\n{text}")
    assert not lines
    assert re.search(rf"note: program.py:\d+: torch.compile, 2.00 × .* was not written: .*{reason}", ran.err)


def test_a_model_that_is_called_with_several_shapes_is_not_compiled(perflint: Command) -> None:
    text = NET + "model = Net()\n"
    at = place(text, "Net(")
    lines, ran = fixed(perflint, text, experiment("compile", at), call(at, *SHAPE), call(at, 3, 8))
    assert not lines and "the recorded steps called the model with 2 different shapes" in ran.err
    # The shapes do not matter for the precision.
    lines, _ = fixed(perflint, text, experiment("tf32", at), call(at, *SHAPE), call(at, 3, 8))
    assert len(lines) == 1


def test_a_gain_within_the_spread_or_on_the_cpu_or_of_no_part_of_the_step_is_none(perflint: Command) -> None:
    text = NET + "model = Net()\n"
    at = place(text, "Net(")
    for change in ({"low": 1.01}, {"device": "cpu"}, {"before_ms": 0.2, "after_ms": 0.1}, {"scope": "layer"}):
        lines, _ = fixed(perflint, text, experiment("compile", at, **change), call(at, *SHAPE))
        assert not lines, change


def test_what_was_not_tried_or_is_never_written_is_said(perflint: Command) -> None:
    text = NET + "model = Net()\n"
    at = place(text, "Net(")
    _, ran = fixed(
        perflint,
        text,
        experiment("graphed-callables", at, 5.0),
        experiment("tf32", None),
        Failure("experiments", "the model cannot be captured: it synchronizes"),
        Failure("timeline", "the profiler failed"),
    )
    assert "make_graphed_callables, 5.00 × (4.90-5.10) as fast was not written: it fails for any other shape" in ran.err
    assert "an experiment was not done: the model cannot be captured: it synchronizes" in ran.err
    assert "the trace did not see where the model was made" in ran.err and "profiler" not in ran.err


def test_experiments_need_a_trace_and_are_not_read_without_the_option(perflint: Command) -> None:
    text = NET + "model = Net()\n"
    at = place(text, "Net(")
    record(perflint.folder, text, experiment("compile", at), call(at, *SHAPE))
    assert perflint("fix", "--trace", "trace.jsonl.gz", "--risky-fixes", "program.py").out == ""
    ran = perflint("fix", "--experiments", "program.py")
    assert ran.code == 2 and "needs a trace" in ran.err


def test_the_fix_needs_a_torch_that_can_compile_in_place(perflint: Command) -> None:
    text = NET + "model = Net()\n"
    at = place(text, "Net(")
    perflint.write("pyproject.toml", '[tool.perflint]\ntorch-version = "2.0"\n')
    lines, _ = fixed(perflint, text, experiment("compile", at), call(at, *SHAPE))
    assert not lines
    perflint.write("pyproject.toml", '[tool.perflint]\ntorch-version = "2.2"\n')
    lines, _ = fixed(perflint, text, experiment("compile", at), call(at, *SHAPE))
    assert lines == ["+model.compile()"]


def test_breaks_that_other_rules_report_afterwards_do_not_hold_up_the_fix(perflint: Command) -> None:
    text = NET.replace("        return", "        print(x.sum().item())\n        return") + "model = Net().cuda()\n"
    at = place(text, "Net(")
    lines, ran = fixed(perflint, text, experiment("compile", at), call(at, *SHAPE))
    assert "+model.compile()" in lines, ran.err


STEP = """
def step(model, x, y, optimizer):
    scores = model(x)
    # Of the whole batch.
    loss = nn.functional.cross_entropy(
        scores, y
    )
    total = loss * 2
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
"""
CAST = """
def step(model, x, y, optimizer):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        scores = model(x)
        # Of the whole batch.
        loss = nn.functional.cross_entropy(
            scores, y
        )
        total = loss * 2
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
"""


def test_forward_and_loss_are_computed_under_autocast(perflint: Command) -> None:
    for text, after in ((NET + STEP, NET + CAST), (NET + STEP.replace("    ", "\t"), NET + CAST.replace("    ", "\t"))):
        at = place(text, "model(", "step")
        record(perflint.folder, text, experiment("autocast", None, called=at))
        perflint("fix", "--apply", "--trace", "trace.jsonl.gz", "--experiments", "--risky-fixes", "program.py")
        assert (perflint.folder / "program.py").read_text() == after


NOT_CAST = [
    ("scores = model(x)", "if x.sum():\n        scores = model(x)", "no later statement of the block"),
    ("total = loss * 2", "total = loss * 2; print(total)", "other statements stand between"),
    ("total = loss * 2", "print(loss)\n    total = loss * 2", "other statements stand between"),
    ("total.backward()", "(total + 1).backward()", "no later statement of the block calls `backward` of a name"),
    ("total.backward()", "other.backward()", "`other` is not computed in the block"),
    ("scores = model(x)", "scores = model(x).half()", "the file chooses formats itself"),
    ("cross_entropy(", "binary_cross_entropy(", "which does not work with autocast"),
    ("total = loss * 2", 'total = loss * len("""a\nb""")', "a text of several lines"),
]


@pytest.mark.parametrize(("old", "new", "reason"), NOT_CAST)
def test_a_step_of_another_form_is_not_cast(perflint: Command, old: str, new: str, reason: str) -> None:
    assert old in STEP
    text = NET + STEP.replace(old, new)
    at = place(text, "model(", "step")
    lines, ran = fixed(perflint, text, experiment("autocast", None, called=at))
    assert not lines and reason in ran.err


PROGRAM = (
    NET
    + """def main():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        loss = model(torch.ones(4, 8)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 5))
    print(list(model.state_dict()))


main()
"""
)
HARNESS = """
import functools, runpy, torch
from torch._dynamo.utils import counters
torch.compile = functools.partial(torch.compile, backend="aot_eager")
runpy.run_path("program.py", run_name="__main__")
print(dict(counters["stats"]).get("unique_graphs", 0), torch.get_float32_matmul_precision())
"""


def test_the_fixed_program_compiles_and_learns_the_same(perflint: Command) -> None:
    at: Place = place(PROGRAM, "Net(", "main")
    record(perflint.folder, PROGRAM, *(experiment(name, at) for name in ("compile", "tf32")), call(at, *SHAPE))
    perflint.write("harness.py", HARNESS)
    before = warm.script(perflint.folder, "harness.py")
    options = ("--trace", "trace.jsonl.gz", "--experiments", "--risky-fixes")
    ran = perflint("fix", "--apply", "--exit-zero", *options, "program.py")
    assert "Fixed 2 findings in 1 file." in ran.err
    after = warm.script(perflint.folder, "harness.py")
    assert before.out.splitlines()[-1] == "0 highest" and after.out.splitlines()[-1] == "1 high", after.err
    assert before.out.splitlines()[:-1] == after.out.splitlines()[:-1]
    again = perflint("fix", *options, "program.py")
    assert again.out == "" and "compiles it elsewhere" in again.err
