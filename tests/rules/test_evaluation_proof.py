"""eval-without-no-grad: code that a reader of one function does not see may still need the graph."""

from __future__ import annotations

import textwrap

import pytest

from perflint.findings import Safety
from perflint.rules.evaluation.eval_without_no_grad import EvalWithoutNoGrad
from tests.rules.harness import lint

HEAD = """
import copy
import torch
import torch.nn.functional as F
from torch import nn
from engine import Base, helper, make


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return self.body(x)

"""


def _found(code: str, profile: str = "audit") -> dict[int, bool]:
    """The lines of findings, counted from the first of the code, and whether they have a fix that can be written."""
    before = HEAD.count("\n")
    findings = lint(HEAD + textwrap.dedent(code), [EvalWithoutNoGrad], profile)
    return {each.span.line - before: each.fix is not None and each.fix.safety is Safety.RISKY for each in findings}


EVALUATES = """
        class Runner:
            def __init__(self, model):
                self.model = model

            def note(self, out):
                print(out.argmax().item())

            def evaluate(self, loader):
                self.model.eval()
                for x in loader:
                    self.note(self.model(x))
"""

WITHOUT_PROOF = {
    "a subclass overrides the method": f"""{EVALUATES}
        class Trainer(Runner):
            def note(self, out):
                out.sum().backward()
        """,
    "a subclass of a subclass does": f"""{EVALUATES}
        class Middle(Runner):
            pass

        class Trainer(Middle):
            def note(self, out):
                out.sum().backward()
        """,
    "a mixin of a subclass does": f"""{EVALUATES}
        class Backward:
            def note(self, out):
                out.sum().backward()

        class Trainer(Backward, Runner):
            pass
        """,
    "a base that is not seen may": f"""{EVALUATES}
        class Trainer(Base, Runner):
            pass
        """,
    "the body of a subclass assigns to the name": f"""{EVALUATES}
        class Trainer(Runner):
            note = helper
        """,
    "the object gets a function of that name": f"""{EVALUATES}
        def main(model):
            runner = Runner(model)
            runner.note = helper
        """,
    "setattr gives it one": f"""{EVALUATES}
        def main(model):
            setattr(Runner, "note", helper)
        """,
    "the method is only declared": EVALUATES.replace("print(out.argmax().item())", "raise NotImplementedError"),
    "the method does nothing yet": EVALUATES.replace("print(out.argmax().item())", "pass"),
    "a parameter has the name of a function": """
        def note(out):
            print(out.argmax().item())

        def evaluate(model, loader, note):
            model.eval()

            for x in loader:
                print(note(model(x)))
        """,
    "a variable has": """
        def note(out):
            print(out.argmax().item())

        def evaluate(model, loader):
            model.eval()
            note = make()
            for x in loader:
                print(note(model(x)))
        """,
    "the parameter of a lambda has": """
        def note(out):
            print(out.argmax().item())

        def evaluate(model, loader):
            model.eval()

            return [(lambda note, x: note(model(x)).item())(helper, x) for x in loader]
        """,
    "the function is another function's own": """
        def outer():
            def note(out):
                print(out.argmax().item())
        def evaluate(model, loader):
            model.eval()
            for x in loader:

                print(note(model(x)))
        """,
    "the file assigns to the name": """
        def note(out):
            print(out.argmax().item())

        note = make(note)
        def evaluate(model, loader):
            model.eval()
            for x in loader:
                print(note(model(x)))
        """,
}


@pytest.mark.parametrize("name", WITHOUT_PROOF)
def test_a_call_that_may_run_other_code_proves_nothing(name: str) -> None:
    code = WITHOUT_PROOF[name]
    line = next(n for n, text in enumerate(textwrap.dedent(code).split("\n"), 1) if "model(x)" in text)
    assert _found(code) == {line: False}


WITH_PROOF = {
    "a method that nothing replaces": EVALUATES,
    "a subclass with other methods": f"""{EVALUATES}
        class Trainer(Runner):
            def learn(self, out):
                out.sum().backward()
        """,
    "a method of that name in another class": f"""{EVALUATES}
        class Trainer:
            def note(self, out):
                out.sum().backward()
        """,
    "a function that is compiled": """
        def note(out):
            print(out.argmax().item())

        note = torch.compile(note)

        def evaluate(model, loader):
            model.eval()
            for x in loader:
                note(model(x))
        """,
    "a function beside the call": """
        def evaluate(model, loader):
            def note(out):
                print(out.argmax().item())

            model.eval()
            for x in loader:
                note(model(x))
        """,
}


@pytest.mark.parametrize("name", WITH_PROOF)
def test_a_call_that_runs_a_function_of_the_file_is_followed(name: str) -> None:
    assert list(_found(WITH_PROOF[name]).values()) == [True]
