"""eval-without-no-grad: evaluations that only look as if a gradient were needed, and their look-alikes."""

from __future__ import annotations

import textwrap

import pytest

from perflint.rules.base import Rule
from perflint.rules.evaluation.eval_without_no_grad import EvalWithoutNoGrad
from perflint.rules.evaluation.no_grad_instead_of_inference_mode import NoGradInsteadOfInferenceMode
from tests.rules.harness import lint

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Variable
from engine import Statistics, helper

"""


def _lines(code: str, profile: str, rule: type[Rule] = EvalWithoutNoGrad) -> list[str]:
    """The lines of findings, without the space before them."""
    text = HEAD + textwrap.dedent(code)
    return [text.splitlines()[each.span.line - 1].strip() for each in lint(text, [rule], profile)]


def _variables(detached: str) -> str:
    return f"""
        class Trainer:
            def __init__(self, model, loss_function):
                self.model = model
                self.loss_function = loss_function

            def evaluate(self, loader, hidden):
                self.model.eval()
                total = 0
                for x, y in loader:
                    out, hidden = self.model.forward(x, hidden)
                    total += self.loss_function(out, y).data
                    hidden = self.repackage(hidden)
                return total.item()

            def repackage(self, hidden):
                return tuple({detached} for each in hidden)
        """


def test_a_variable_is_detached_from_the_graph() -> None:
    assert _lines(_variables("Variable(each)"), "default") == ["out, hidden = self.model.forward(x, hidden)"]
    assert _lines(_variables("Variable(each, requires_grad=False)"), "default")


def test_a_variable_that_asks_for_a_gradient_is_none_of_an_evaluation() -> None:
    assert not _lines(_variables("Variable(each, requires_grad=True)"), "audit")


def _parameters(statement: str) -> str:
    return f"""
        def evaluate(model, loader):
            model.eval()
            for x in loader:
                print(model(x).argmax(1).tolist())

        def gather(model):
            {statement}
        """


@pytest.mark.parametrize(
    "statement",
    [
        "return [p.grad for p in model.parameters() if p.requires_grad]",
        "return sum(p.numel() for p in model.parameters() if not p.requires_grad)",
    ],
)
def test_reading_requires_grad_freezes_nothing(statement: str) -> None:
    code = f"model = helper()\n{textwrap.dedent(_parameters(statement)).replace('(model, loader)', '(loader)')}"
    assert _lines(code.replace("gather(model)", "gather()"), "default") == ["print(model(x).argmax(1).tolist())"]


def test_writing_requires_grad_freezes() -> None:
    code = """
        model = helper()
        for p in model.parameters():
            p.requires_grad = False

        def evaluate(loader):
            model.eval()
            for x in loader:
                print(model(x).argmax(1).tolist())
        """
    assert not _lines(code, "audit")


def _stepping(inner: str) -> str:
    return f"""
        class Trains:
            def run(self):
                def _step():
                    loss = self.model(self.inputs).sum()
                    loss.backward()
                for _ in range(10):
                    _step()

        class Infers:
            def __init__(self, model):
                self.model = model
                self.model.eval()

            def run(self):
                def _step():
                    {inner}
                with torch.no_grad():
                    for _ in range(10):
                        _step()
        """


def test_a_function_of_the_same_name_elsewhere_is_not_the_one_that_is_called() -> None:
    found = _lines(_stepping("self.model(self.inputs)"), "audit", NoGradInsteadOfInferenceMode)
    assert found == ["with torch.no_grad():"]


def test_the_nested_function_itself_counts() -> None:
    code = _stepping("self.model(self.inputs).sum().backward()")
    assert not _lines(code, "audit", NoGradInsteadOfInferenceMode)


def test_a_nested_function_that_comes_back_under_its_name_counts() -> None:
    code = """
        def make(model, optimizer):
            def step(x):
                loss = model(x).sum()
                loss.backward()
                optimizer.step()
                return loss
            return step

        def evaluate(model, loader, rounds):
            step = make(model, helper())
            model.eval()
            for x in loader:
                print(model(x).argmax(1).tolist())
                step(x)
        """
    assert not [line for line in _lines(code, "audit") if "step(x)" in line]
    assert all("Decorate" not in each.help for each in lint(HEAD + textwrap.dedent(code), [EvalWithoutNoGrad], "audit"))


def _validated(
    first: str, used: str, name: str = "validate", loop: str = "for x, y in loader:", last: str = "pass"
) -> str:
    return f"""
        class Trainer:
            def __init__(self, model, optimizer, report):
                self.model = model
                self.optimizer = optimizer
                self.report = report

            def train(self, loader, held_out):
                for x, y in loader:
                    loss = F.mse_loss(self.model(x), y)
                    loss.backward()
                    self.optimizer.step()
                result = self.{name}(held_out)
                {used}

            def {name}(self, loader):
                {first}
                stats = Statistics()
                {loop}
                    out = self.model(x)
                    stats.update(helper(out, y))
                {last}
                return stats
        """


@pytest.mark.parametrize(
    "code",
    [
        _validated("self.model.eval()", "self.report(result)"),
        _validated("self.model.eval()", "self.report(result)", "score"),
        _validated("self.kept = []", "self.report(result)"),
        # Neither its name nor a loop over data says that it is a validation.
        _validated("self.model.eval()", "self.report(result)", "score", last="self.model.train()"),
        _validated("self.model.eval()", "self.report(result)", loop="for x, y in helper():", last="self.model.train()"),
    ],
)
def test_results_that_go_to_unknown_code_of_a_trainer_are_for_audit(code: str) -> None:
    findings = lint(HEAD + textwrap.dedent(code), [EvalWithoutNoGrad], "audit")
    assert [(each.confidence.value, each.fix) for each in findings] == [("low", None)]
    assert not _lines(code, "default")


@pytest.mark.parametrize(
    "code",
    [
        # The caller trains through the result.
        _validated("self.model.eval()", "result.backward()"),
        # Neither its name nor its code says that it evaluates.
        _validated("self.kept = []", "self.report(result)", "score"),
        # An agent evaluates an action, to train with the value.
        _validated("x = y = loader", "self.report(result)", "evaluate", "if x is not None:"),
    ],
)
def test_results_that_a_trainer_may_train_with_are_silent(code: str) -> None:
    assert not _lines(code, "audit")


def test_a_validation_that_returns_the_model_to_training_is_shown() -> None:
    """Its results are scores of many batches in evaluation mode: a trainer reports them."""
    code = _validated("self.model.eval()", "self.report(result)", last="self.model.train()")
    findings = lint(HEAD + textwrap.dedent(code), [EvalWithoutNoGrad], "default")
    assert [(each.confidence.value, each.fix) for each in findings] == [("medium", None)]


METHOD = """
    class Speaker({base}):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRU(8, 8)

        def forward(self, x):
            return self.cell(x)[0]

        def speak(self, batches):
            kept = []
            for x in batches:
                kept.append(self(x){read}.cpu().numpy())
            return kept
    """


def test_a_method_of_a_module_that_detaches_its_result_records_it_for_nothing() -> None:
    assert _lines(METHOD.format(base="nn.Module", read=".detach()"), "default")


@pytest.mark.parametrize(
    ("base", "read"), [("nn.Module", ""), ("helper.Model", ".detach()")], ids=["not detached", "of a framework"]
)
def test_methods_that_may_run_without_autograd_are_for_audit(base: str, read: str) -> None:
    assert not _lines(METHOD.format(base=base, read=read), "default")


def _divergence(term: str) -> str:
    return f"""
        model = helper()
        optimizer = torch.optim.Adam(model.parameters())
        kept = []

        def loss_function(mean, spread: torch.Tensor):
            term = {term}
            return torch.sum(term)

        def measure(loader):
            total = 0
            for x in loader:
                mean, spread = model(x)
                total += loss_function(mean, spread)
            print(total.item())
        """


@pytest.mark.parametrize(
    "term",
    [
        "spread.pow(2).add_(spread.exp()).mul_(-1)",
        "mean.pow(2).add_(spread)",
        "torch.exp(spread).add_(mean)",
        "spread.clone().add_(mean)",
    ],
)
def test_a_write_into_a_new_tensor_keeps_nothing(term: str) -> None:
    assert _lines(_divergence(term), "audit") == ["mean, spread = model(x)"]


@pytest.mark.parametrize(
    "term", ["kept[0].view(-1).add_(spread)", "kept[0].detach().mul_(2).add_(spread)", "helper(mean).add_(spread)"]
)
def test_a_write_into_memory_that_others_have_keeps_the_graph(term: str) -> None:
    assert not _lines(_divergence(term), "audit")


def _calibration(run: str, before: str = "", after: str = "", beside: str = "") -> str:
    return f"""
        def calibrate(model: nn.Module, loader, device):
            {before or "pass"}
            for x, _ in loader:
                {run}
            {after or "pass"}

        def convert(model: nn.Module, loader):
            calibrate(model, loader, "cuda")
            print(model.state_dict()["scale"].item())

        {beside}
        """


def test_a_run_whose_result_nothing_uses_needs_no_graph() -> None:
    assert _lines(_calibration("model(x.to(device))"), "default") == ["model(x.to(device))"]


@pytest.mark.parametrize(
    "code",
    [
        _calibration("loss = helper(model(x.to(device)))"),
        _calibration("with torch.no_grad(): model(x.to(device))"),
        _calibration("model(x.to(device))", after="return model.penalty"),
        _calibration("model(x.to(device))", before="model.layer.register_forward_hook(helper)"),
        _calibration("model(x.to(device))", beside="def train(loss): loss.backward()"),
        _calibration("model(x.to(device))", before="for p in model.parameters(): p.requires_grad_(False)"),
    ],
)
def test_a_run_may_work_by_other_ways_than_its_result(code: str) -> None:
    assert not _lines(code, "audit")


def test_a_layer_may_keep_a_state_that_is_trained_through() -> None:
    code = """
        class Neurons(nn.Module):
            def __init__(self, cell: nn.Module):
                super().__init__()
                self.cell = cell

            def forward(self, x):
                for part in x:
                    self.cell(part)
                return helper(self)

        def measure(x):
            return Neurons(nn.GRU(3, 4))(x)[0].item()
        """
    assert "self.cell(part)" not in _lines(code, "audit")


def _speech(read: str) -> str:
    return f"""
        def probabilities(model, audio: torch.Tensor, window: int):
            found = []
            for start in range(0, audio.shape[-1], window):
                found.append(model(audio[start : start + window]){read})
            return found
        """


def test_a_number_that_is_read_at_once_needs_no_graph() -> None:
    """The file mentions no evaluation, and callers that are not seen may turn autograd off."""
    assert _lines(_speech(".item()"), "audit") == ["found.append(model(audio[start : start + window]).item())"]
    assert not _lines(_speech(".item()"), "default")
    assert _lines(_speech(".data.cpu()"), "audit")
    assert not _lines(_speech(""), "audit")


_PRETRAINED = """
    from transformers import AutoModel

    model = AutoModel.from_pretrained("some/model").to("cuda")
    model = torch.compile(model)

    {more}
    def vectors(texts, tokenizer):
        found = []
        for text in texts:
            {loop}
        return found
    """
_KEPT = "found.append(model(**tokenizer(text)).last_hidden_state.mean(1))"
_READ = "found.append(model(**tokenizer(text)).last_hidden_state.mean(1).tolist())"
_TRAINS = "model(torch.ones(2, dtype=torch.long)).last_hidden_state.sum().backward()\n"


@pytest.mark.parametrize(
    ("loop", "more", "profile", "found"),
    [
        (_READ, "", "default", 1),
        # Callers elsewhere may train through a result that is returned.
        (_KEPT, "", "default", 0),
        (_KEPT, "", "audit", 1),
        (_KEPT, _TRAINS, "audit", 0),
        (_KEPT, "@torch.no_grad()", "audit", 0),
        ("found.append(tokenizer(text))", "", "audit", 0),
    ],
)
def test_a_pretrained_model_is_in_evaluation_mode(loop: str, more: str, profile: str, found: int) -> None:
    lines = _lines(_PRETRAINED.format(loop=loop, more=more), profile)
    assert lines == [loop] * found
