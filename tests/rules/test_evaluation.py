"""eval-without-no-grad in programs that look alike: what trains is silent, and a fix has its proof."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from perflint.config.settings import Profile, Settings
from perflint.engine.file import check_source
from perflint.findings import Finding, Safety
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
from engine import NativeScaler, accuracy, helper


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return self.body(x)

"""


def _program(code: str) -> str:
    return HEAD + textwrap.dedent(code)


def _found(code: str, profile: str = "audit") -> dict[int, bool]:
    """The lines of findings, counted from the first of the code, and whether they have a fix that can be written."""
    before = HEAD.count("\n")
    findings = lint(_program(code), [EvalWithoutNoGrad], profile)
    return {each.span.line - before: each.fix is not None and each.fix.safety is Safety.RISKY for each in findings}


SILENT = {
    "loss scaler, as in DeiT": """
        def train_one_epoch(model, criterion, loader, optimizer, loss_scaler):
            for x, y in loader:
                outputs = model(x)
                loss = criterion(outputs, y)
                loss_value = loss.item()
                loss_scaler(loss, optimizer, parameters=model.parameters())
        """,
    "the same without a parameter for the optimizer": """
        def one_epoch(model, criterion, loader):
            for x, y in loader:
                loss = criterion(model(x), y)
                print(loss.item())
                loss_scaler(loss, model)
        """,
    "accumulated loss, as in MAE": """
        def train_one_epoch(model, loader, optimizer, loss_scaler, steps):
            for step, x in enumerate(loader):
                loss, _, _ = model(x, mask_ratio=0.75)
                print(loss.item())
                loss /= steps
                loss_scaler(loss, optimizer, parameters=model.parameters(), update_grad=step % steps == 0)
        """,
    "divided loss under another name of the scaler": """
        def run(net: Net, loader, steps):
            scaler = NativeScaler()
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                print(loss.item())
                loss = loss / steps
                my_scaler(loss)
        """,
    "scaler that returns the norm, as in Swin": """
        def run(net: Net, criterion, loader, scaler):
            for x, y in loader:
                loss = criterion(net(x), y)
                norm = scaler(loss)
                print(loss.item(), norm)
        """,
    "scaled loss of apex": """
        def run(net: Net, loader, amp):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                print(loss.item())
                with amp.scale_loss(loss, optimizer) as scaled:
                    scaled.backward()
        """,
    "accelerate": """
        def run(net: Net, loader, accelerator):
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                print(loss.item())
                accelerator.backward(loss)
        """,
    "deepspeed engine": """
        def run(engine, loader):
            for x, y in loader:
                loss = engine(x)
                print(loss.item())
                engine.backward(loss)
                engine.step()
        """,
    "fabric": """
        def run(net: Net, loader, fabric, optimizer):
            net.eval()
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                print(loss.item())
                fabric.backward(loss)
        """,
    "step of a GAN": """
        def step(generator: Net, discriminator: Net, noise, real, g_opt, d_opt):
            fake = generator(noise)
            d_loss = F.softplus(discriminator(fake.detach())).mean() + F.softplus(-discriminator(real)).mean()
            d_loss.backward()
            d_opt.step()
            g_loss = F.softplus(-discriminator(fake)).mean()
            g_loss.backward()
            g_opt.step()
            return g_loss.item(), d_loss.item()
        """,
    "pix2pix stores what forward makes": """
        class Model:
            def __init__(self):
                self.generator = Net()
                self.optimizer = torch.optim.Adam(self.generator.parameters())

            def forward(self):
                self.fake = self.generator(self.real)
                print(self.fake.mean().item())

            def optimize(self):
                self.forward()
                F.l1_loss(self.fake, self.real).backward()
                self.optimizer.step()
        """,
    "log-probabilities that an actor returns": """
        class Agent:
            def __init__(self):
                self.policy = Net()
                self.optimizer = torch.optim.Adam(self.policy.parameters())

            def act(self, state):
                choice = torch.distributions.Categorical(logits=self.policy(state))
                action = choice.sample()
                print(action.item())
                return action, choice.log_prob(action)

            def learn(self, state, reward):
                _, score = self.act(state)
                (-score * reward).mean().backward()
                self.optimizer.step()
        """,
    "log-probabilities in an attribute": """
        class Agent:
            def __init__(self):
                self.policy, self.saved = Net(), []
                self.optimizer = torch.optim.Adam(self.policy.parameters())

            def act(self, state):
                choice = torch.distributions.Categorical(logits=self.policy(state))
                action = choice.sample()
                self.saved.append(choice.log_prob(action))
                return action.item()
        """,
    "log-probabilities in a list from elsewhere": """
        def act(net: Net, state, saved):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            scores = net(state)
            saved.append(scores)
            return scores.argmax().item()
        """,
    "the list has another name": """
        def collect(net: Net, states):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            kept = saved = []
            for state in states:
                scores = net(state)
                saved.append(scores)
                print(scores.argmax().item())
            torch.stack(kept).sum().backward()
            optimizer.step()
        """,
    "a dictionary of losses": """
        def step(net: Net, x, y):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            losses = {}
            losses["rec"] = F.mse_loss(net(x), y)
            print(losses["rec"].item())
            total = sum(losses.values())
            total.backward()
            optimizer.step()
        """,
    "a dictionary that is returned": """
        class Trainer:
            def __init__(self):
                self.net = Net()
                self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

            def losses(self, x, y):
                loss = F.mse_loss(self.net(x), y)
                print(loss.item())
                return {"loss": loss}
        """,
    "features that a probe is trained on": """
        def embed(backbone: Net, x):
            features = backbone(x)
            print(features.norm().item())
            return features

        def train(backbone, head, loader, optimizer):
            for x, y in loader:
                F.cross_entropy(head(embed(backbone, x)), y).backward()
                optimizer.step()
        """,
    "evaluation whose result a method of the class differentiates": """
        class Explainer:
            def _predict_masks(self, x):
                self.net.eval()
                return self.net(x).sigmoid()

            def _train(self, x, y):
                self.optimizer.zero_grad()
                loss = self._loss(self._predict_masks(x), y)
                loss.backward()
        """,
    "the caller asserts that there is a gradient": """
        class Actor:
            def _forward_micro_batch(self, batch):
                self.net.eval()
                logits = self.net(batch)
                return logits.log_softmax(-1)

            def update(self, batches):
                for batch in batches:
                    scores = self._forward_micro_batch(batch)
                    assert scores.requires_grad
                    self.learn(scores)
        """,
    "the body asks whether there is a gradient": """
        def evaluate(model, loader):
            model.eval()
            for x in loader:
                y = model(x)
                assert y.requires_grad
                helper(y)
        """,
    "frozen copy in one chain": """
        def run(net: Net, loader, device):
            teacher = copy.deepcopy(net).eval().requires_grad_(False).to(device)
            net.train()
            for x in loader:
                print(teacher(x).mean().item())
        """,
    "copy of a network that is made frozen": """
        def run(loader, device):
            net = Net().train().requires_grad_(False).to(device)
            ema = copy.deepcopy(net).eval()
            for x, y in loader:
                net.requires_grad_(True)
                F.mse_loss(net(x), y).backward()
                net.requires_grad_(False)
            print(torch.cat([ema(x).cpu() for x in loader]).numpy())
        """,
    "frozen copy of an attribute": """
        class Trainer:
            def __init__(self, net, device):
                self.ema = copy.deepcopy(net).eval().requires_grad_(False).to(device)

            def evaluate(self, loader):
                self.ema.eval()
                return [self.ema(x).argmax(1).cpu() for x in loader]
        """,
    "frozen in a function around it": """
        def build(net: Net):
            net.requires_grad_(False)
            net.eval()

            def predict(x):
                return net(x).argmax(1).tolist()
            return predict
        """,
    "a closure keeps the loss": """
        def make(net: Net, x, y):
            optimizer = torch.optim.LBFGS(net.parameters())
            loss = F.mse_loss(net(x), y)
            print(loss.item())

            def closure():
                return loss * 2
            return closure
        """,
    "a lambda keeps the loss": """
        def make(net: Net, x, y, todo):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            loss = F.mse_loss(net(x), y)
            print(loss.item())
            todo.append(lambda: loss.backward())
        """,
    "a global keeps the loss": """
        def step(net: Net, x, y):
            global last
            last = F.mse_loss(net(x), y)
            print(last.item())
        """,
    "a hook on the result": """
        def inspect(net: Net, x):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            y = net(x)
            y.register_hook(print)
            print(y.mean().item())
        """,
    "a generator yields the loss": """
        def losses(net: Net, loader):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                print(loss.item())
                yield loss
        """,
    "try and finally": """
        def step(net: Net, x, y):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            loss = None
            try:
                loss = F.mse_loss(net(x), y)
                print(loss.item())
            finally:
                if loss is not None:
                    finish(loss)
        """,
    "one branch backpropagates": """
        def step(net: Net, x, y, learning):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            loss = F.mse_loss(net(x), y)
            if not learning:
                return loss.item()
            loss.backward()
            optimizer.step()
            return 0.0
        """,
    "the loss of the last pass is backpropagated in the next": """
        def run(net: Net, loader):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            loss = None
            for x, y in loader:
                if loss is not None:
                    loss.backward()
                    optimizer.step()
                loss = F.mse_loss(net(x), y)
                print(loss.item())
        """,
    "a total over tasks": """
        def run(net: Net, tasks):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            total = 0
            for x, y in tasks:
                loss = F.mse_loss(net(x), y)
                total += loss
                print(loss.item())
            total.backward()
            optimizer.step()
        """,
    "written into a buffer that is differentiated": """
        def run(net: Net, states):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            values = torch.zeros(len(states))
            for index, state in enumerate(states):
                value = net(state).sum()
                values[index] = value
                print(value.item())
            values.mean().backward()
            optimizer.step()
        """,
    "written into a buffer of the caller": """
        def run(net: Net, states, values):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for index, state in enumerate(states):
                value = net(state).sum()
                values[index] = value
                print(value.item())
        """,
    "a helper of the file stores it": """
        def keep(store, value):
            store.value = value

        def run(net: Net, x, store):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            value = net(x).sum()
            keep(store, value)
            print(value.item())
        """,
    "a helper of the file backpropagates": """
        def finish(loss):
            loss.backward()

        def run(net: Net, x):
            loss = net(x).sum()
            finish(loss)
            print(loss.item())
        """,
    "a queue": """
        def run(net: Net, loader, queue):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for x in loader:
                y = net(x).sum()
                queue.put(y)
                print(y.item())
        """,
    "partial": """
        import functools

        def run(net: Net, x, optimizer):
            y = net(x).sum()
            print(y.item())
            return functools.partial(helper, y)
        """,
    "a parameter is learnt from a feature": """
        def invert(net: Net, x, target):
            z = torch.randn(1, 8, requires_grad=True)
            optimizer = torch.optim.Adam([z])
            for _ in range(100):
                loss = F.mse_loss(net(z), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(loss.item())
        """,
    "distillation, as the student": """
        def distill(student: Net, teacher: Net, loader):
            optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
            for x in loader:
                with torch.no_grad():
                    wanted = teacher(x)
                loss = F.mse_loss(student(x), wanted)
                print(loss.item())
                loss.backward()
                optimizer.step()
        """,
    "the gradient reaches the actor through a target network": """
        class Agent:
            def __init__(self):
                self.actor, self.critic = Net(), Net()
                self.target = copy.deepcopy(self.critic)
                self.actor_optimizer = torch.optim.Adam(self.actor.parameters())
                self.critic_optimizer = torch.optim.Adam(self.critic.parameters())

            def update(self, state):
                loss = -self.target(self.actor(state)).mean()
                loss.backward()
                self.actor_optimizer.step()
        """,
    "an average that is written under no_grad": """
        @torch.no_grad()
        def update(ema, net):
            for p, q in zip(ema.parameters(), net.parameters()):
                p.mul_(0.99).add_(q, alpha=0.01)
        """,
    "evaluation with an optimizer among its parameters": """
        def run_epoch(model, loader, criterion, optimizer=None):
            model.eval() if optimizer is None else model.train()
            for x, y in loader:
                loss = criterion(model(x), y)
                finish(loss, optimizer)
        """,
    "a gradient scaler among the parameters": """
        def evaluate_and_adapt(model, loader, grad_scaler):
            model.eval()
            for x, y in loader:
                grad_scaler(model(x))
        """,
    "forces are gradients of energies": """
        class Energy(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(3, 1)

            def forward(self, x):
                energy = self.body(x).sum()
                return energy, torch.autograd.grad(energy, x)[0]

        def evaluate(loader):
            model = Energy()
            model.eval()
            return [model(x)[0].item() for x in loader]
        """,
    "the model turns autograd off itself": """
        class Frozen(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(3, 1)

            @torch.no_grad()
            def forward(self, x):
                return self.body(x)

        def evaluate(loader):
            model = Frozen()
            model.eval()
            return [model(x).argmax().item() for x in loader]
        """,
    "forward stores an auxiliary loss": """
        class Routed(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(3, 1)

            def forward(self, x):
                y = self.body(x)
                self.balance = y.square().mean()
                return y

        def step(x):
            model = Routed()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            print(model(x).mean().item())
            model.balance.backward()
            optimizer.step()
        """,
    "hooks of Lightning": """
        import lightning

        class Lit(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = Net()

            def validation_step(self, batch, index):
                loss = F.mse_loss(self.net(batch), batch)
                self.log("loss", loss)
                return loss
        """,
    "the values of a tuple go different ways": """
        def run(net: Net, head: Net, x, y):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            logits, loss = head(net(x)), F.mse_loss(net(x), y)
            loss = loss + logits.square().mean()
            print(loss.item())
            loss.backward()
            optimizer.step()
        """,
    "an alias by the walrus": """
        def run(net: Net, x):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            if (loss := net(x).sum()).item() > 0:
                loss.backward()
            optimizer.step()
        """,
    "a raised result": """
        def run(net: Net, x):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            y = net(x)
            if y.sum().item() > 9:
                raise Overflow(y)
        """,
    "a method that backpropagates inside": """
        class Cached(nn.Module):
            def __init__(self, net):
                super().__init__()
                self.net = Net()

            def loss(self, x, y):
                loss = F.mse_loss(self.net(x), y)
                loss.backward()
                return loss.detach()

            def cached(self, x, y):
                loss = self.loss(x, y)
                return loss.detach()
        """,
    "a mask that a step compares": """
        class Guided(nn.Module):
            def __init__(self, net):
                super().__init__()
                self.net = Net()

            def similar(self, x, y):
                return self.net(x) @ y.T

            def learn(self, x, y):
                guide = self.similar(y, y)
                scores = self.similar(x, y)
                loss = scores.masked_fill(guide > 0.5, 0).sum()
                loss.backward()
                return loss.detach()
        """,
    "distributed data parallel": """
        def run(rank, loader):
            net = nn.parallel.DistributedDataParallel(Net().to(rank), device_ids=[rank])
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                loss.backward()
                optimizer.step()
                torch.distributed.all_reduce(loss)
                print(loss.item())
        """,
}


@pytest.mark.parametrize("name", SILENT)
def test_code_that_wants_the_graph_is_silent(name: str) -> None:
    assert not _found(SILENT[name])


FOUND = {
    "validation, with its fix": (
        """
        def validate(model, loader, criterion):
            model.eval()
            total = 0.0
            for x, y in loader:
                loss = criterion(model(x), y)
                total += loss.item()
            return total / len(loader)
        """,
        {6: True},
    ),
    "validation whose loss other code gets": (
        """
        def validate(model, loader, criterion, meter):
            model.eval()
            for x, y in loader:
                loss = criterion(model(x), y)
                meter.update(loss, len(x))
            return meter.average
        """,
        {5: False},
    ),
    "prediction that returns the scores": (
        """
        def predict(model, x):
            model.eval()
            return model(x).softmax(-1)
        """,
        {4: False},
    ),
    "helper of the file, which keeps nothing": (
        """
        def hits(scores, y, k=5):
            return (scores.topk(k)[1] == y[:, None]).any(1).sum().item()

        def validate(model, loader):
            model.eval()
            return sum(hits(model(x), y) for x, y in loader)
        """,
        {7: True},
    ),
    "helper of another file, which may keep anything": (
        """
        def validate(model, loader):
            model.eval()
            return sum(accuracy(model(x), y) for x, y in loader)
        """,
        {4: False},
    ),
    "unseen code gets the model": (
        """
        def validate(model, loader):
            model.eval()
            for x, y in loader:
                x = helper(model, x, y)
                print(model(x).argmax(1).tolist())
        """,
        {6: False},
    ),
    "a loss by its name alone proves nothing": (
        """
        def evaluate(net: Net, criterion, loader):
            total = 0.0
            for x, y in loader:
                loss = criterion(net(x), y)
                total += loss.item()
            return total
        """,
        {5: False},
    ),
    "predictions without a gradient": (
        """
        def predict(model, loader):
            model.eval()
            return [model(x).argmax(1).cpu() for x in loader]
        """,
        {4: True},
    ),
    "a scaler of data is not one of gradients": (
        """
        def evaluate(model, loader, scaler):
            model.eval()
            return [scaler.inverse_transform(model(x).detach().cpu().numpy()) for x in loader]
        """,
        {4: False},
    ),
    "a list of its own": (
        """
        def predict(model, loader):
            model.eval()
            rows = []
            for x in loader:
                rows.append(model(x))
            return torch.cat(rows).argmax(1).tolist()
        """,
        {6: True},
    ),
    "a list that is returned": (
        """
        def predict(model, loader):
            model.eval()
            rows = []
            for x in loader:
                rows.append(model(x))
            return rows
        """,
        {6: False},
    ),
    "an evaluation in the middle of training": (
        """
        def train(model, train_loader, val_loader, optimizer):
            for x, y in train_loader:
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
            model.eval()
            hits = 0
            for x, y in val_loader:
                hits += (model(x).argmax(1) == y).sum().item()
            return hits
        """,
        {9: False},
    ),
    "the actor's step in its environment": (
        """
        class Agent:
            def __init__(self):
                self.policy = Net()
                self.optimizer = torch.optim.Adam(self.policy.parameters())

            def act(self, state):
                scores = self.policy(torch.as_tensor(state))
                return scores.argmax().item()
        """,
        {8: True},
    ),
    "a target network on states that other code gives": (
        """
        class Agent:
            def __init__(self):
                self.net = Net()
                self.target = copy.deepcopy(self.net)
                self.optimizer = torch.optim.Adam(self.net.parameters())

            def learn(self, state, after):
                wanted = self.target(after).amax(1)
                loss = F.mse_loss(self.net(state).amax(1), wanted)
                loss.backward()
                self.optimizer.step()
        """,
        {9: False},
    ),
    "a target network on data": (
        """
        class Agent:
            def __init__(self):
                self.net = Net()
                self.target = copy.deepcopy(self.net)
                self.optimizer = torch.optim.Adam(self.net.parameters())

            def learn(self):
                after = torch.randn(4, 8)
                wanted = self.target(after).amax(1)
                loss = F.mse_loss(self.net(after).amax(1), wanted)
                loss.backward()
                self.optimizer.step()
        """,
        {10: True},
    ),
    "one of two runs is only read": (
        """
        def step(net: Net, x, y):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            before = net(x)
            loss = F.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            return before.argmax(1).tolist()
        """,
        {4: True},
    ),
    "a name that is used again": (
        """
        def step(net: Net, x, y):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            loss = F.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            loss = F.mse_loss(net(x), y)
            print(loss.item())
        """,
        {7: True},
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_graphs_that_are_not_used_are_found_and_mended_with_proof(name: str) -> None:
    code, expected = FOUND[name]
    assert _found(code) == expected


@pytest.mark.parametrize("path", ["tests/evaluate.py", "test_evaluate.py", "pkg/tests/helpers.py"])
def test_tests_of_the_project_are_silent(path: str) -> None:
    text = _program(FOUND["validation, with its fix"][0]) + "\n\ndef test_sum():\n    assert 1 + 1 == 2\n"
    settings = Settings(profile=Profile.AUDIT)

    def found(name: str) -> list[Finding]:
        return check_source(
            Source(name, text), Project([Path(name)]), RuleSet([EvalWithoutNoGrad()]), settings
        ).findings

    assert found("evaluate.py") and not found(path)


OF_ANOTHER_LIBRARY = """
import {library}
from nets import Net

def detect(image):
    net = Net()
    net.eval()
    output = net({library}.to_tensor(image))
    return output.data.numpy().argmax()
"""


def test_models_of_another_library_are_not_recorded() -> None:
    other, ours = (OF_ANOTHER_LIBRARY.format(library=library) for library in ("paddle", "torch"))
    assert lint(other, [EvalWithoutNoGrad], "audit") == []
    assert lint(ours, [EvalWithoutNoGrad], "audit")
