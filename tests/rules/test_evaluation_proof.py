"""eval-without-no-grad: code that a reader of one function does not see may still need the graph."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Safety
from perflint.rules.evaluation.eval_without_no_grad import EvalWithoutNoGrad
from perflint.rules.registry import RuleSet
from perflint.semantics.project import Project
from perflint.source.text import Source
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
    "a subclass alone keeps nothing": f"""{EVALUATES.replace("print(out.argmax().item())", "self.kept = out")}
        class Printer(Runner):
            def note(self, out):
                print(out.argmax().item())

        Printer(make()).evaluate(loader)
        """,
    "a caller gives the object": """
        class Notes:
            def note(self, out):
                print(out.argmax().item())

        def evaluate(notes, model, loader):
            model.eval()
            for x in loader:
                notes.note(model(x))

        def main(model, loader):
            evaluate(Notes(), model, loader)
        """,
    "another function gives the name something else": """
        def note(out):
            print(out.argmax().item())

        def keep(f):
            global note
            note = f

        def evaluate(model, loader):
            model.eval()
            for x in loader:
                note(model(x))
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
    "a method of an object of the file": """
        class Notes:
            def note(self, out):
                print(out.argmax().item())

        class Runner:
            def __init__(self, model):
                self.model, self.notes = model, Notes()

            def evaluate(self, loader):
                self.model.eval()
                for x in loader:
                    self.notes.note(self.model(x))
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


SILENT = {
    "a hook keeps the output of a layer": """
        kept = {}

        def keep(module, given, output):
            kept["x"] = output

        def train(model, loader, optimizer):
            model.backbone.register_forward_hook(keep)
            for x, y, target in loader:
                print((model(x).argmax(1) == y).sum().item())
                loss = F.mse_loss(kept["x"], target)
                loss.backward()
                optimizer.step()
        """,
    "the model keeps its loss": """
        def train(model, loader):
            optimizer = torch.optim.Adam(model.parameters())
            for x, y in loader:
                print((model(x).argmax(1) == y).sum().item())
                loss = model.loss
                loss.backward()
                optimizer.step()
        """,
    "the model gives its loss": """
        def train(model, loader):
            optimizer = torch.optim.Adam(model.parameters())
            for x, y in loader:
                print((model(x).argmax(1) == y).sum().item())
                loss = model.auxiliary_loss()
                loss.backward()
                optimizer.step()
        """,
    "a method stores the log-probability of what it returns": """
        class Policy(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 2)
                self.saved = []

            def forward(self, x):
                return self.net(x)

            def act(self, x):
                chances = torch.distributions.Categorical(logits=self.forward(x))
                action = chances.sample()
                self.saved.append(chances.log_prob(action))
                return action

        def train(env):
            policy = Policy()
            optimizer = torch.optim.Adam(policy.parameters())
            for episode in range(100):
                x = env.reset()
                for step in range(100):
                    action = policy.act(x).detach()
                    x = env.step(action.item())
                loss = torch.stack(policy.saved).sum()
                loss.backward()
                optimizer.step()
        """,
    "a row of the larger values": """
        def step(net: Net, x, other):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            row = torch.max(net(x), other)[1]
            print(row.mean().item())
            row.sum().backward()
            optimizer.step()
        """,
    "a model that is back in training mode": """
        def distill(student, teacher, tokens):
            student.eval()
            with torch.no_grad():
                tokens = student.generate(tokens)
            student.train()
            loss = student(tokens).logits.mean()
            return loss, loss.item()
        """,
    "a method that gives paths": """
        def predict(model, loader):
            model.eval()
            for x in loader:
                with torch.no_grad():
                    model(x)
                print(model.get_image_paths())
        """,
    "a target whose object is trained as a whole": """
        class Agent(nn.Module):
            def __init__(self, net):
                super().__init__()
                self.net = net
                self.target = copy.deepcopy(net)
                self.part = torch.optim.Adam(self.net.parameters())
                self.whole = torch.optim.Adam(self.parameters())

            def learn(self, x, y):
                loss = F.mse_loss(self.net(x), self.target(y))
                loss.backward()
                self.whole.step()
        """,
}


@pytest.mark.parametrize("name", SILENT)
def test_training_by_other_ways_than_the_result_is_silent(name: str) -> None:
    assert not _found(SILENT[name])


ADVICE = {
    "a method that trains in between": (
        """
        class Rollouts:
            def __init__(self, policy):
                self.policy = policy

            def run(self, scenes):
                self.policy.eval()
                values = []
                for scene in scenes:
                    values.append(self.policy(scene).mean().item())
                    self._update(scene)
                return values

            def _update(self, scene):
                self._refresh(scene)

            def _refresh(self, scene):
                loss = self.policy(scene).mean()
                loss.backward()
                nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
        """,
        "Call it under `with torch.no_grad():`.",
    ),
    "a method of another object that trains": (
        """
        class Rollouts:
            def __init__(self, policy):
                self.policy = policy

            def run(self, scenes, other):
                self.policy.eval()
                values = []
                for scene in scenes:
                    values.append(self.policy(scene).mean().item())
                    other.refresh(scene)
                return values

            def refresh(self, scene):
                loss = self.policy(scene).mean()
                loss.backward()
                nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
        """,
        "Decorate `run` with `@torch.no_grad()`.",
    ),
}


@pytest.mark.parametrize("name", ADVICE)
def test_a_function_that_trains_in_a_call_is_not_decorated(name: str) -> None:
    code, advice = ADVICE[name]
    assert [each.help for each in lint(HEAD + textwrap.dedent(code), [EvalWithoutNoGrad], "default")] == [advice]


AUDIT = {
    "the loss comes of code that is not seen": """
        def train(model, loader):
            optimizer = torch.optim.Adam(model.parameters())
            for x, y in loader:
                print((model(x).argmax(1) == y).sum().item())
                loss = helper(x, y)
                loss.backward()
                optimizer.step()
        """,
    "an agent evaluates actions in order to train": """
        class Agent:
            def __init__(self, actor):
                self.actor = actor

            def evaluate(self, state, action):
                logits = self.actor(state)
                print(logits.argmax(1).float().mean().item())
                return logits.log_softmax(-1).gather(1, action)

            def test(self, env):
                self.actor.eval()
        """,
}


@pytest.mark.parametrize("name", AUDIT)
def test_graphs_that_unseen_code_may_use_are_shown_by_audit_only(name: str) -> None:
    assert list(_found(AUDIT[name]).values()) == [False]
    assert not _found(AUDIT[name], "default")


RECORDED = {
    "autograd is on if a variable says so": """
        def evaluate(net: Net, average: Net, loader, phase):
            average.eval()
            found = []
            for x in loader:
                with helper.grad_mode(phase == "train"):
                    out = net(x)
                found.append(out.mean())
                print(average(x).argmax(1).tolist())
            return found
        """,
    "a part of a model is frozen": """
        class Agent:
            def __init__(self, target):
                self.net, self.average, self.target = Net(), Net(), target
                for parameter in self.target.parameters():
                    parameter.requires_grad = False

            def evaluate(self, loader):
                self.average.eval()
                found = []
                for x in loader:
                    found.append(self.net(x).mean())
                    print(self.average(x).argmax(1).tolist())
                return found
        """,
    "a hook of the file keeps outputs": """
        def watch(model, keep):
            model.register_forward_hook(keep)

        def evaluate(model, loader):
            model.eval()
            for x in loader:
                print(model(x).argmax(1).tolist())
        """,
    "the model keeps features that leave": """
        def evaluate(model, loader):
            model.eval()
            for x in loader:
                print(model(x).argmax(1).tolist())
            return model.features
        """,
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_function_that_lets_a_graph_out_has_no_fix(name: str) -> None:
    assert list(_found(RECORDED[name]).values()) == [False]


MENDED = {
    "indices along a dimension": """
        def step(net: Net, x, dim):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            best = torch.max(net(x), dim)[1]
            loss = net(x).gather(1, best).sum()
            loss.backward()
            optimizer.step()
        """,
    "a loss of a seen model, stored in between": """
        class Pair:
            def __init__(self, critic: Net, actor: Net):
                self.critic, self.actor = critic, actor
                self.optimizer = torch.optim.Adam(self.critic.parameters())

            def learn(self, x):
                made = self.actor(x).detach()
                self.loss = F.mse_loss(self.critic(made), x)
                self.loss.backward()
                self.optimizer.step()
        """,
    "a frozen model beside the evaluated one": """
        class Judge:
            def __init__(self, teacher: Net, net: Net):
                self.net, self.teacher = net, teacher
                self.teacher.requires_grad_(False)

            def evaluate(self, loader):
                self.net.eval()
                found = []
                for x in loader:
                    with torch.no_grad():
                        found.append(self.teacher(torch.ones(8)).mean())
                    print(self.net(x).argmax(1).tolist())
                return found
        """,
    "a model whose settings leave": """
        def evaluate(model, loader):
            model.eval()
            for x in loader:
                print(model(x).argmax(1).tolist())
            return model.config
        """,
    "features that a method of the model extracts": """
        def evaluate(loader):
            net = torch.load("net.pt")
            net.eval()
            for x in loader:
                print(net.get_image_features(x).argmax(1).tolist())
        """,
}


@pytest.mark.parametrize("name", MENDED)
def test_a_graph_that_nothing_uses_is_mended(name: str) -> None:
    found = _found(MENDED[name], "default")
    assert len(found) == 1 and (True in found.values() or "extracts" in name)


@pytest.mark.parametrize(
    ("other", "is_mended"),
    [
        ("class Trainer(Runner):\n    def note(self, out):\n        out.sum().backward()\n", False),
        ("class Trainer(\n    runner.Runner,\n):\n    def note(self, out): ...\n", False),
        ("class Trainer(Runner):\n    def learn(self, out):\n        out.sum().backward()\n", True),
        ("class Trainer:\n    def note(self, out):\n        out.sum().backward()\n", True),
    ],
)
def test_a_subclass_in_another_file_may_train(tmp_path: Path, other: str, is_mended: bool) -> None:
    path = tmp_path / "runner.py"
    path.write_text(HEAD + textwrap.dedent(EVALUATES), encoding="utf-8")
    trainer = tmp_path / "trainer.py"
    trainer.write_text("import runner\nfrom runner import Runner\n\n" + other, encoding="utf-8")
    source = Source(str(path), path.read_text(encoding="utf-8"))
    checked = check_source(
        source, Project([path, trainer]), RuleSet([EvalWithoutNoGrad()]), Settings(profile=Profile.AUDIT)
    )
    assert [each.fix is not None for each in checked.findings] == [is_mended]


@pytest.mark.parametrize(
    ("value", "is_fixed"),
    [
        ("net(torch.ones(8)).argmax()", True),
        ("[net(x).argmax() for x in torch.ones(2, 8)]", True),
        ("lambda x: net(x).argmax()", False),
        ("(net(x).argmax() for x in torch.ones(2, 8))", False),
    ],
)
def test_a_statement_is_put_under_no_grad_only_if_it_runs_the_model_itself(value: str, is_fixed: bool) -> None:
    found = _found(
        f"""
        net = Net().cuda()
        optimizer = torch.optim.Adam(net.parameters())
        for step in range(3):
            optimizer.zero_grad()
            net(torch.ones(8)).sum().backward()
            optimizer.step()
        reads = {value}
        for x in range(100):
            print(reads)
        """
    )
    assert found.get(8, False) is is_fixed, found


@pytest.mark.parametrize(
    ("before", "after", "fixed"),
    [
        ("", "print(out.shape, out.sum().item())", True),
        ("net.eval()", "print(f'{out.sum().item()} {out.mean():.3f}')", True),
        ("net.train()\n    net.eval()", "print(out.sum().item())", True),
        ("net.train(False)", "print(out.sum().item())", True),
        ("net.train()", "print(out.sum().item())", False),
        ("net.train(True)", "print(out.sum().item())", False),
        ("", "print(out)", False),
        ("", "print(f'Output: {out}')", False),
        ("", "text = str(out)", False),
    ],
)
def test_runs_that_show_training_or_a_graph(before: str, after: str, fixed: bool) -> None:
    lines = [
        "reference = Net().eval()",
        "net = Net().cuda()",
        "x = torch.randn(2, 8).cuda()",
        *before.split("\n    "),
        "out = net(x)",
        after,
    ]
    found = _found("\n".join(line for line in lines if line) + "\n")
    assert found and set(found.values()) == {fixed}


HOOKED = """
    import torch
    from torch import nn


    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(8, 8)

        def save(self, grad):
            self.grad = grad

        def forward(self, x):
            x = self.body(x)
            x.register_hook(self.save)
            return x


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Attention()

        def forward(self, x):
            return self.attention(x)
"""


@pytest.mark.parametrize(("hooks", "is_mended"), [(True, False), (False, True)])
@pytest.mark.parametrize("known", [True, False])
def test_a_part_of_the_model_may_need_the_graph(tmp_path: Path, known: bool, hooks: bool, is_mended: bool) -> None:
    parts = tmp_path / "parts.py"
    text = textwrap.dedent(HOOKED)
    parts.write_text(text if hooks else text.replace("x.register_hook(self.save)", "pass"), encoding="utf-8")
    path = tmp_path / "evaluate.py"
    made = "from parts import Net\nscorer = Net()\n" if known else "from elsewhere import make\nscorer = make()\n"
    body = (
        "def evaluate(loader):\n    scorer.eval()\n    for x in loader:\n        print(scorer(x).argmax(1).tolist())\n"
    )
    path.write_text(HEAD + made + body, encoding="utf-8")
    source = Source(str(path), path.read_text(encoding="utf-8"))
    checked = check_source(
        source, Project([path, parts]), RuleSet([EvalWithoutNoGrad()]), Settings(profile=Profile.AUDIT)
    )
    assert any(each.fix is not None for each in checked.findings) is is_mended
