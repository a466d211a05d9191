"""Reading one number of a device tensor."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def train_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> float:
    total = 0.0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach().double()
    total = float(total)
    return total / len(loader)


def train_epoch_weighted(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> float:
    seen = 0
    total = 0.0
    correct = 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(y)
        total += loss.detach().double() * len(y)
        correct += (logits.argmax(dim=1) == y).sum()
    correct = int(correct)
    total = float(total)
    return total / seen + correct / seen


def train_epoch_and_stop(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> float:
    total = 0.0
    for step, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        total += float(loss)
        if total > 1e6:
            break
    return total


def evaluate(model: nn.Module, loader: DataLoader) -> float:
    total = 0
    with torch.no_grad():
        for x, y in loader:
            total += len(y) * F.nll_loss(model(x.cuda()), y.cuda()).detach().double()
        total = float(total)
    return total / len(loader)


def count_halves(model: nn.Module, loader: DataLoader) -> float:
    halves = 0
    for x, y in loader:
        halves += (model(x.cuda()).argmax(dim=1) == y.cuda()).sum().double() * 0.5
    halves = float(halves)
    return halves


class Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.linear = nn.Linear(width, width)
        self.limit = torch.ones(3).max().item()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gain = float(self.scale)
        longest = int(x.abs().sum(dim=1).argmax())
        return self.linear(x)[:longest] * gain


def generate(model: nn.Module, tokens: torch.Tensor, end: int) -> torch.Tensor:
    tokens = tokens.cuda()
    for _ in range(100):
        token = model(tokens)[:, -1].argmax(dim=-1)
        tokens = torch.cat([tokens, token[:, None]], dim=1)
        if token[0].item() == end:
            break
    return tokens


def train_with_a_log(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for step, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(loss.item())


class Engine:
    def __init__(self, scaling):
        self.scaling, self.norms = scaling, {}

    def note(self, key: str, gradient: torch.Tensor) -> None:
        self.norms[key] = gradient.norm(2)

    def forget(self, key: str) -> None:
        self.norms[key] = 0.0

    def backward(self, loss, key: str) -> float:
        if self.scaling:
            loss = self.scaling.scale(loss)
        else:
            loss = loss.unsqueeze(0) / 2
        norm = self.norms[key].item()
        return loss.mean().item() / norm

def in_a_row(check, x: torch.Tensor) -> None:
    x = x.cuda()
    check(((x >= 0).all() & (x <= 1).all()).item())


# Look-alikes


def on_the_host_already(model: nn.Module, loader: DataLoader) -> list[float]:
    losses = []
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda()).cpu()
        losses.append(loss.item())
    return losses


def labels_of_a_batch(loader: DataLoader) -> int:
    positives = 0
    for _, y in loader:
        positives += int(y.sum())
    return positives


def shapes_are_numbers(x: torch.Tensor) -> float:
    x = x.cuda()
    return float(x.shape[0]) + int(x.size(1)) + float(x.numel()) + int(len(x))


def numpy_scalars(values: np.ndarray) -> float:
    return np.asarray(values).mean().item() + float(np.max(values))


def numbers(text: str) -> float:
    return float(text) + int("12") + float(random.random())


def shuffled(count: int) -> int:
    order = torch.randperm(count)
    return order[0].item()


def accumulated_on_device(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    total = torch.zeros((), device="cuda", dtype=torch.float64)
    for x, y in loader:
        total += F.mse_loss(model(x.cuda()), y.cuda()).detach()
    return total


class Settings:
    def item(self) -> int:
        return 1


def item_of_something_else(settings: Settings) -> int:
    return settings.item()


class EngineOnHost:
    def backward(self, loss, values) -> float:
        loss = values if loss is None else torch.zeros(3)
        return loss.mean().item()


class Average:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / self.count


class Printed(Average):
    """Another class has the arithmetic."""


class Shown:
    def __init__(self, spec: str = ":.3f"):
        self.spec = spec
        self.avg = 0.0

    def update(self, val, weight: float = 0.1):
        if weight:
            self.avg = (1 - weight) * self.avg + weight * val

    def __str__(self):
        return ("{avg" + self.spec + "}").format(**self.__dict__)


class Comparing:
    def __init__(self):
        self.avg = 0.0

    def update(self, val):
        self.avg = val if self.avg is None else 0.9 * self.avg + 0.1 * val

    def as_list(self):
        return [self.avg]


class Keeping:
    def __init__(self):
        self.values = []

    def update(self, val):
        self.values.append(val)


def train_with_meters(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, spec: str):
    losses, norms = Average(), Average()
    single = Average()
    shown = Shown(spec)
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        losses.update(x.cuda().square().mean().detach().double(), len(y))
        # Meters in a row are kept on the GPU only together.
        count = len(y)
        single.update(loss.detach().double())
        count += 1
        assert count
        shown.update(loss.detach().double())
        if step % 100 == 0:
            print(f"{single.val:.3f} {single.avg} {shown}", "%.3f" % single.avg)
            print("{loss.val:.2f} ({loss.avg:.2f}) of {loss.count}".format(loss=single), str(shown))
    if float(single.avg) < 0.1:
        print(single.count, round(float(single.avg), 3))
    return float(single.avg), norms.count


class Previous:
    """An object that keeps the sum of before: a tensor that is added to in place would change it."""

    def __init__(self):
        self.sum = self.before = 0.0

    def update(self, val):
        self.before = self.sum
        self.sum += val


class First:
    def __init__(self):
        self.sum = None

    def update(self, val):
        self.sum = val if self.sum is None else self.sum
        self.sum += val


def train_with_shared_sums(model: nn.Module, loader: DataLoader):
    previous = Previous()
    first = First()
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        previous.update(loss.item())
        first.update(loss.item())
    return previous.before, first.sum


def train_with_other_meters(model: nn.Module, loader: DataLoader, board, file):
    each_step, kept, given, compared, text, printed = Average(), Keeping(), Average(), Average(), Average(), Printed()
    logged = Average()
    asked = Comparing()
    texts = Average()
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        logged.update(loss.item())
        board.add(logged.avg)
        asked.update(loss.item())
        texts.update(loss.item())
        kept.update(loss.item())
        printed.update(loss.item())
    board.keep(texts)
    print(f"{asked.avg!r}", asked.as_list())
    return kept, each_step, given, compared, text


def train_shared_meter(model: nn.Module, loader: DataLoader, meter: Average):
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        meter.update(loss.item())


def train_and_log(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, board):
    for epoch in range(10):
        running = 0.0
        for step, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            running += loss.detach().double()
            if step % 200 == 199:
                print("[%d, %5d] %.3f" % (epoch, step, float(running) / 200), f"{float(running):.3f}")
                board.add_scalar("loss", float(running), step)
                running = 0.0
        running = float(running)
        print(running)


def train_and_show(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, board):
    shown = 0.0
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        shown += loss.item()
        board.show(shown)
    return shown


def losses_of(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer):
    losses, kept = [0.0], []
    means = []
    norms = []
    best = []
    for x, y in loader:
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        losses.append(loss.item())
        size = len(x)
        means.append(loss.mean().detach().clone())
        assert size
        norms.append(round(loss.item(), 3))
        best.append(loss.item())
        if best[-1] < 0.1:
            break
        loss.backward()
        optimizer.step()
    means = torch.stack(means).tolist() if means else []
    return losses, means, norms, best, kept


def evaluated(model: nn.Module, loader: DataLoader):
    values = []
    with torch.no_grad():
        for x, y in loader:
            with torch.autocast("cuda"):
                value = F.mse_loss(model(x.cuda()), y.cuda())
            values.append(value.detach())
        values = torch.stack(values).tolist() if values else []
    return sum(values) / len(values)


def old_style(model: nn.Module, loader: DataLoader):
    total = 0.0
    means = []
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        total += loss.data.double()
        means.append(loss.data.float().clone())
    means = torch.stack(means).tolist() if means else []
    total = float(total)
    return total, means


def interrupted(model: nn.Module, loader: DataLoader):
    values = []
    try:
        for x, y in loader:
            values.append(F.mse_loss(model(x.cuda()), y.cuda()).item())
    except KeyboardInterrupt:
        print(values)
    return values


if __name__ == "__main__":
    program = nn.Linear(3, 2).cuda()
    meter = Average()
    for inputs, targets in DataLoader([]):
        loss = F.cross_entropy(program(inputs.cuda()), targets.cuda())
        loss.backward()
        meter.update(loss.detach().double())
    print(float(meter.avg))


def statistics(values: torch.Tensor, other: torch.Tensor, count: int) -> dict[str, float]:
    low, mean, high = torch.stack(
        [torch.min(values).detach(), torch.mean(values).detach(), torch.max(values).detach()]
    ).tolist()
    other_min, other_max, other_median = torch.stack([other.min(), other.max(), other.median()]).tolist()
    return {
        "low": low,
        "mean": mean,
        "high": high,
        "least": other_min / count,
        "most": int(other_max),
        "size": other.numel(),
        "middle": other_median,
        "sum": other.sum().item(),
    }


def logged_together(x: torch.Tensor, log) -> None:
    """The sum of whole numbers is a whole number, which is not stacked with the others."""
    halves = x.float() * 0.5
    halves_min, halves_sum, halves_var = torch.stack([halves.min(), halves.sum(), halves.var()]).tolist()
    log(halves_min)
    log(halves_sum, halves_var)
    halves_any, halves_any_2, halves_any_3 = torch.stack(
        [(halves > 0).any(), (halves > 1).any(), (halves < 0).any()]
    ).tolist()
    log(halves_any, halves_any_2, halves_any_3)


def not_together(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, change, keep: bool):
    """Devices and dtypes may differ, values change in between, and some reads do not always run."""
    a, b, c = x.max().item(), y.max().item(), z.max().item()
    d = x.min().item()
    change(x)
    e = x.min().item()
    x.add_(1)
    f = x.min().item()
    x = x[1:] if keep else x
    g = x.min().item(), x.max().item() if keep else 0
    h = keep and x.median().item()
    i = (y.min().item(), y.sum().item(), y.cpu().max().item())
    try:
        j = (z.min().item(), z.max().item(), z.mean().item())
    except RuntimeError:
        j = None
    interrupted = z.amin().item()
    interrupted = interrupted + z.amax().item()
    z = z * 2
    return a, b, c, d, e, f, g, h, i, j, z.median().item(), interrupted


def changed_in_the_middle(x: torch.Tensor):
    """The third number is that of a new tensor, so that only the other three are read together."""
    values = x.float().cuda()
    low, high, mean, other = values.min(), values.max(), values.mean(), values.sum()
    low_value, mean_value, other_value = torch.stack([low, mean, other]).tolist()
    a = low_value
    high = high * mean_value
    b = high.item()
    c = other_value
    return a, b, c


def train_epoch_of_two(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, seen: float):
    total = 0.0
    steps = 0
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        other = F.l1_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        # The sum that came in may be of any kind, so the CPU waits for its number in any case.
        total += loss.item()
        steps += 1
        seen += other.item()
    return total / steps, seen


def train_epoch_of_three(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer):
    total = 0.0
    first_part = 0.0
    second_part = 0.0
    for step, (x, y) in enumerate(loader):
        one = F.mse_loss(model(x.cuda()), y.cuda())
        two = F.l1_loss(model(x.cuda()), y.cuda())
        loss = one + two
        loss.backward()
        optimizer.step()
        total += loss.detach().double()
        first_part += one.detach().double()
        second_part += two.detach().double()
        if step % 100 == 0:
            print(float(total), float(first_part), float(second_part))
    second_part = float(second_part)
    first_part = float(first_part)
    total = float(total)
    return total, first_part, second_part


def train_epoch_listed(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer):
    losses, rates = [], []
    total = 0.0
    for x, y in loader:
        out = model(x.cuda())
        loss = F.mse_loss(out, y.cuda())
        loss.backward()
        optimizer.step()
        rates += [out.argmax(dim=1).float().mean().item() / len(y)]
        losses += [loss.item()]
        total += loss.item()
    return losses, rates, total


def train_until_an_error(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer):
    losses = []
    total = 0.0
    for x, y in loader:
        try:
            loss = F.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        except RuntimeError:
            break
        try:
            other = F.mse_loss(model(x.cuda()), y.cuda())
            total += other.detach().double()
        finally:
            optimizer.zero_grad()
    total = float(total)
    return losses, total


def train_epoch_weighted_by_the_gpu(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer):
    total = 0.0
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        total += loss.item() * (y.cuda() > 0).sum().item()
    return total


@torch.inference_mode()
def decoding_last_positions(lm, token, position, steps: int):
    token, position = token.cuda(), position.cuda()
    for _ in range(steps):
        at = position[0].item()
        token = lm(token, start=at).argmax(-1)
        position = position + 1
    return token
