"""Loops over parameters: those that update them, and others."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader


def train(model: nn.Module, average: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters()):  # error: TPF603
                slow.mul_(0.99).add_(fast, alpha=0.01)


class Target(nn.Module):
    def __init__(self, online: nn.Module, target: nn.Module):
        super().__init__()
        self.online, self.target = online, target

    def forward(self, x):
        own = self.target.state_dict()
        for name, parameter in self.online.named_parameters():  # error: TPF603
            slow = own[name]
            slow.lerp_(parameter, 0.01)
        return self.online(x)


class Descent(torch.optim.Optimizer):
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:  # audit: TPF603
                if p.grad is None:
                    continue
                grad = p.grad
                buffer = self.state[p]["momentum"]
                buffer.mul_(0.9).add_(grad)
                p.add_(buffer, alpha=-group["lr"])


def soft_update(target: nn.Module, online: nn.Module, tau: float) -> None:
    for old, new in zip(target.parameters(), online.parameters()):  # audit: TPF603
        old.data.copy_(old.data * (1.0 - tau) + new.data * tau)


class TwinCritics:
    def __init__(self, critic: nn.Module, target: nn.Module, optimizer: torch.optim.Optimizer, tau: float):
        self.critic, self.target, self.optimizer, self.tau = critic, target, optimizer, tau

    def train(self, loader: DataLoader) -> None:
        for x in loader:
            self.critic(x).mean().backward()
            self.optimizer.step()
            for new, old in zip(self.critic.parameters(), self.target.parameters()):  # error: TPF603
                old.data.copy_(self.tau * new.data + (1 - self.tau) * old.data)

    def train_with_interpolation(self, loader: DataLoader) -> None:
        for x in loader:
            self.critic(x).mean().backward()
            self.optimizer.step()
            for new, old in zip(self.critic.parameters(), self.target.parameters()):  # error: TPF603
                old.copy_(torch.lerp(old, new, self.tau))
            current = dict(self.critic.named_buffers())
            for name, kept in self.target.named_buffers():  # error: TPF603
                kept.copy_(current[name].detach().lerp(kept, self.tau))

    def train_with_decay(self, loader: DataLoader, rate: float) -> None:
        """One operation out of place, and a copy: not measured."""
        for x in loader:
            self.critic(x).mean().backward()
            self.optimizer.step()
            for p in self.critic.parameters():  # audit: TPF603
                p.data.copy_(p.data * (1 - rate * 0.01))


class Clipped:
    def train(self, critic: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
        for x in loader:
            critic(x).mean().backward()
            optimizer.step()
            for p in critic.parameters():  # audit: TPF603
                p.data.clamp_(-0.01, 0.01)


def all_at_once(model: nn.Module, average: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    slow, fast = list(average.parameters()), list(model.parameters())
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
        torch._foreach_lerp_(slow, fast, 0.01)


def freeze(model: nn.Module) -> None:
    for p in model.parameters():
        p.requires_grad_(False)


def init_weights(model: nn.Module) -> None:
    for p in model.parameters():
        p.data.mul_(0.5)
        p.data.uniform_(-0.1, 0.1)


def copied_once(target: nn.Module, online: nn.Module) -> None:
    for old, new in zip(target.parameters(), online.parameters()):
        old.data.copy_(new.data)


def reads_only(model: nn.Module, loader: DataLoader, penalty: float) -> list[torch.Tensor]:
    losses = []
    for x in loader:
        total = torch.zeros((), device="cuda")
        for p in model.parameters():
            total = total + p.square().sum() * penalty
        losses.append(total)
    return losses


def sums_in_place(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    total = torch.zeros((), device="cuda")
    for x in loader:
        for p in model.parameters():
            total.add_(p.square().sum())
    return total


def over_other_things(layers: list[torch.Tensor], loader: DataLoader) -> None:
    for x in loader:
        for layer in layers:
            layer.mul_(0.9)


class Scaled:
    def __init__(self, params, optimizer: torch.optim.Optimizer):
        self.params, self.optimizer = params, optimizer

    def scale(self, factor: float) -> None:
        for p in self.params:  # audit: TPF603
            if p.grad is not None:
                p.grad.data.mul_(factor)

    def scale_at_once(self, factor: float) -> None:
        torch._foreach_mul_([p.grad for p in self.params], factor)


@torch.no_grad()
def clip(params, most: float) -> torch.Tensor:
    params = list(params)
    grads = [p.grad.detach() for p in params if p.grad is not None and not hasattr(p, "expert")]
    others = [p.grad.detach() for p in params if p.grad is not None and hasattr(p, "expert")]
    norm = torch.nn.utils.get_total_norm(grads)
    factor = (most / (norm + 1e-6)).clamp_(max=1)
    for grad in grads + others:  # audit: TPF603
        grad.mul_(factor)
    return norm


class Average(nn.Module):
    def __init__(self, model: nn.Module, decay: float = 0.99):
        super().__init__()
        self.module, self.decay = model, decay

    def _each(self, model: nn.Module, change) -> None:
        for own, other in zip(self.module.state_dict().values(), model.state_dict().values()):  # audit: TPF603
            change(own, other)

    def update(self, model: nn.Module) -> None:
        def mix(own, other):
            if own.is_floating_point():
                own.mul_(self.decay).add_(other, alpha=1 - self.decay)

        self._each(model, mix)

    def update_now_and_then(self, step: int, model: nn.Module) -> None:
        if step % 100 == 0:
            for own, other in zip(self.module.parameters(), model.parameters()):  # audit: TPF603
                own.detach().copy_(self.mean(own.detach(), other))

    def mean(self, own: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return (own + other) / 2


def from_file(model: nn.Module, path: str) -> None:
    saved = torch.load(path)
    for name, own in model.state_dict().items():
        own.copy_(saved[name])


def over_settings(params: dict[str, float], counts: list[torch.Tensor], loader: DataLoader) -> None:
    for x in loader:
        for name in params:
            counts[0].add_(x.sum() * params[name])


def seen(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    largest = torch.zeros((), device="cuda")
    for x in loader:
        for grad in [p.grad for p in model.parameters()]:
            largest = torch.maximum(largest, grad.abs().max())
    return largest


class Chosen:
    def __init__(self, foreach: bool):
        self.foreach = foreach

    @torch.no_grad()
    def update(self, average: nn.Module, model: nn.Module) -> None:
        own, other = list(average.parameters()), list(model.parameters())
        if self.foreach:
            torch._foreach_lerp_(own, other, 0.01)
        else:
            for slow, fast in zip(own, other):
                slow.lerp_(fast, 0.01)


def _single_tensor_descent(params: list[torch.Tensor], grads: list[torch.Tensor], lr: float) -> None:
    for p, grad in zip(params, grads):
        p.add_(grad, alpha=-lr)


def unflatten(model: nn.Module, flat: torch.Tensor) -> None:
    at = 0
    for p in model.parameters():
        p.grad.copy_(flat[at : at + p.numel()].view_as(p.grad))
        at += p.numel()


def by_key(model: nn.Module, target: nn.Module, decay: float) -> None:
    own, other = target.state_dict(), model.state_dict()
    for key in own.keys():  # error: TPF603
        own[key].copy_(own[key] * decay + other[key] * (1 - decay))


class Shadow:
    def __init__(self, model: nn.Module):
        self.kept = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        for name, p in model.named_parameters():  # error: TPF603
            self.kept[name].mul_(0.99).add_(p, alpha=0.01)

    @torch.no_grad()
    def restore(self, model: nn.Module) -> None:
        for name, p in model.named_parameters():
            p.copy_(self.kept[name])

    def sizes(self, model: nn.Module) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, p in model.named_parameters():
            found[name] = p.numel()
        return found


def run(model: nn.Module, target: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    shadow = Shadow(model)
    for x in loader:
        model(x).sum().backward()
        for p in model.parameters():  # audit: TPF603
            torch.nan_to_num(p.grad, nan=0.0, out=p.grad)
        optimizer.step()
        by_key(model, target, 0.99)
        shadow.update(model)


class Averager:
    def __init__(self, model: nn.Module):
        self.average = {name: value.clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module, beta: float) -> None:
        for name, value in model.state_dict().items():
            self.average[name] = beta * self.average[name] + (1 - beta) * value  # error: TPF603

    @torch.no_grad()
    def copy(self, model: nn.Module) -> None:
        for name, value in model.state_dict().items():
            self.average[name] = value.clone()


def trained_with_an_average(model: nn.Module, loader, optimizer: torch.optim.Optimizer):
    averager = Averager(model.cuda())
    for x in loader:
        model(x.cuda()).mean().backward()
        optimizer.step()
        averager.update(model, 0.99)


class Augmented:
    def __init__(self, model, decay: float = 0.99):
        self.average, self.decay = copy.deepcopy(model).eval(), decay

    @torch.no_grad()
    def follow(self, model) -> None:
        new = model.state_dict()
        for name, old in self.average.state_dict().items():  # error: TPF603
            if old.dtype.is_floating_point:
                old *= self.decay
                old += (1 - self.decay) * new[name]

    def train(self, model, loader: DataLoader, optimizer: torch.optim.Optimizer, workers: int) -> None:
        for x in loader:
            model(x).sum().backward()
            for parameter in model.parameters():  # audit: TPF603
                parameter.grad /= workers
            optimizer.step()
            self.follow(model)
            for name, parameter in model.named_parameters():
                name += ".weight"
                self.sizes[name] = parameter.shape
            count = 0
            for parameter in model.parameters():
                count += parameter.numel()


class Momentum(nn.Module):
    def __init__(self, fast: nn.Module, slow: nn.Module):
        super().__init__()
        self.fast, self.slow = fast, slow

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for q, k in zip(self.fast.parameters(), self.slow.parameters()):
            k.data = k.data * 0.99 + q.data * 0.01  # error: TPF603
        return self.fast(x) - self.slow(x)


class Copied(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for q, k in zip(self.fast.parameters(), self.slow.parameters()):
            k.data = q.data.clone()
        return self.fast(x)


class Polyak:
    def __init__(self, critic: nn.Module, target: nn.Module, tau: float):
        self.critic, self.target, self.tau = critic.cuda(), target.cuda(), tau

    def follow(self) -> None:
        with torch.no_grad():
            for p, t in zip(self.critic.parameters(), self.target.parameters()):  # error: TPF603
                t.data.mul_(1 - self.tau)
                t.data.add_(self.tau * p.data)

    def follow_into(self) -> None:
        for p, t in zip(self.critic.parameters(), self.target.parameters()):  # error: TPF603
            t.data.mul_(1 - self.tau)
            torch.add(t.data, p.data, alpha=self.tau, out=t.data)

    def decay(self) -> None:
        for p, t in zip(self.critic.parameters(), self.target.parameters()):  # audit: TPF603
            p.data.mul_(1 - self.tau)
            t.data.mul_(1 - self.tau)

    def train(self, loader, optimizer):
        for x in loader:
            self.critic(x.cuda()).mean().backward()
            optimizer.step()
            self.follow()
            self.follow_into()
            self.decay()
