"""Device tensors that are turned into text."""

import logging

import torch
import torch.nn.functional as F
import wandb
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

logger = logging.getLogger(__name__)


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, writer: SummaryWriter) -> None:
    bar = tqdm(loader)
    for step, (x, y) in enumerate(bar):
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        print(loss)
        print(f"step {step}: {loss:.3f}")
        print("loss: {}".format(loss))
        print("loss: %f" % loss)
        bar.set_postfix(loss=loss, step=step)
        writer.add_scalar("loss", loss, step)
        logger.debug("%s of 100%%: %s {braces}", step, loss)
        logger.debug('%r', loss)
        logger.debug(f"{loss:.2f}")
        logger.info("loss %s", loss)
        logger.warning("loss %s", loss)
        wandb.log({"loss": loss, "step": step})
        text = str(loss)
        bar.set_description(text)


class Shown(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def __repr__(self) -> str:
        return f"Shown({self.weight})"


def train_step(loss: torch.Tensor, epoch: int, digits: str) -> str:
    values = {"epoch": epoch, "loss": loss.cuda()}
    text = "{epoch} {loss:.3f}".format(**values)
    text += ("{epoch} {loss" + digits + "}").format(**values)
    return text + "%(epoch)d %(loss).3f" % values


def report(model: nn.Module, writer: SummaryWriter, epoch: int) -> None:
    """Text that surely waits is reported in any loop."""
    for name, parameter in model.cuda().named_parameters():
        print(name, parameter)
        writer.add_scalar(name, parameter.max(), epoch)


def epochs(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for epoch in range(10):
        total = torch.zeros((), device="cuda")
        for x, y in loader:
            loss = F.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(epoch, total)


class Tested(nn.Module):
    def test_step(self, batch: dict[str, torch.Tensor], batch_idx: int):
        image_path = str(batch["image"])
        mask_path = str(batch["mask"]) if isinstance(batch.get("mask"), str) else None
        loss_name = str(batch["image"].mean())
        text = str(batch["image"])
        return image_path, mask_path, loss_name, text, dict(name=str(batch["name"]))


class Predicted(nn.Module):
    def __init__(self, cache: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.layer, self.cache = nn.Linear(8, 1), cache

    def predict_step(self, batch: tuple[torch.Tensor, ...], batch_idx: int):
        keys, features, texts = batch
        found = []
        for key, x, text in zip(keys, features, texts):
            found.append(f"{key}")
            found.append(f"{self.layer(x)}")
            print(text)
        return found, {name: self.cache[str(name)] for name in keys}

    def test_step(self, batch, batch_idx: int):
        for key, x in zip(batch[0], batch[1]):
            print(f"{key}")
            print(f"{x.mean()}")
        for name, loss in batch.items():
            print(f"{loss}")


def behind_a_test(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, shows: bool) -> None:
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        if shows:
            print(loss)
        if not loss > 0.5 or shows:
            print(loss)
        else:
            print(loss)
        if (shown := f"{loss}"):
            print(shown)


class Logged(nn.Module):
    def __init__(self, logger) -> None:
        super().__init__()
        self.layer, self.logger, self.steps = nn.Linear(8, 1), logger, 0

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        loss = self.layer(batch).mean()
        board = self.logger.experiment
        board.add_scalar("loss", loss, self.steps)
        board.add_scalars("losses", {"train": loss, "steps": self.steps}, self.steps)
        board.add_scalar("steps", self.steps, self.steps)
        board.add_scalar("size", loss.numel(), self.steps)
        board.add_scalar(loss)
        if self.steps % 100 == 0:
            board.add_scalar("loss", loss, self.steps)
        return loss


# Look-alikes


class Sums:
    """Keeps tensors: a class of the project that writes nothing."""

    def __init__(self) -> None:
        self.kept: dict[str, list[torch.Tensor]] = {}

    def add_scalar(self, name: str, value: torch.Tensor) -> None:
        self.kept.setdefault(name, []).append(value.detach())


def kept_for_later(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    sums = Sums()
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        sums.add_scalar("loss", loss)


def shapes(x: torch.Tensor) -> None:
    x = x.cuda()
    print(x.shape, x.dtype, x.device, len(x))
    print(f"{x.shape[0]} rows of {x.dtype}, {x.numel()} in all")


def numbers(x: torch.Tensor) -> None:
    mean = x.cuda().mean().item()
    print(f"mean {mean:.3f}")
    logger.info("mean %s", mean)


def errors(x: torch.Tensor, name: str) -> None:
    x = x.cuda()
    assert x.dim() == 2, f"{name}: {x}"
    if x.shape[0] == 0:
        raise ValueError(f"{name} is empty: {x}")


def host(x: torch.Tensor) -> str:
    return f"{x.cpu()}"


def lazy(x: torch.Tensor) -> None:
    logger.debug("x is %s", x.cuda())


def other_text(name: str, count: int) -> str:
    return f"{name}: {count}" + str(count) + "%d" % count


def others_named(loss: torch.Tensor, epoch: int) -> str:
    values = {"epoch": epoch, "loss": loss.cuda()}
    return "{epoch} {{loss}}".format(**values) + "%(epoch)d" % values


def checked(x: torch.Tensor, holds: bool) -> str:
    return "x is positive" if holds else f"x must be positive, got {x.cuda()}"


class Decoder(torch.nn.Module):
    def predict_step(self, batch, batch_idx):
        keys, features, transcripts, scores = batch
        lines = []
        for key, feature, transcript, score in zip(keys, features, transcripts, scores):
            feature = feature.unsqueeze(0)
            lines.append(f"{key} {transcript}")
            lines.append(f"{score}")
        return lines


def cached(cache: dict, batch: dict[str, torch.Tensor], model: torch.nn.Module, loader, optimizer):
    for item in loader:
        for number, x in zip(batch["numbers"], batch["features"]):
            known = cache[str(number)], cache.get(str(number))
            print(str(number))
            loss = model(x).sum() + known[0]
            loss.backward()
            optimizer.step()
            key = torch.rand(1, device="cuda")
            print(f"{key}")


def told(model: torch.nn.Module, loader, optimizer):
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        if loss.isfinite() and loss > 100:
            print("large", loss)


class Logger:
    def __init__(self):
        self.kept = []

    def log(self, step: int, name: str, value: torch.Tensor):
        self.kept.append((step, name, value))


def logged_by_own_code(model, loader, optimizer):
    kept = Logger()
    for step, batch in enumerate(loader):
        loss = model(batch.cuda()).sum()
        loss.backward()
        optimizer.step()
        kept.log(step, "loss", loss.detach())
        logger.log(20, "loss %s", loss.detach())


class Captioned(torch.nn.Module):
    def test_step(self, batch, batch_idx):
        images, captions, scores = batch
        titles = torch.rand(len(images), device="cuda")
        lines = []
        for i in range(len(images)):
            lines.append(f"{i}_{captions[i]}.png")
            lines.append(f"{i}: {scores[i]}")
            lines.append(f"{i}: {titles[i]}")
        return lines


def behind_a_level(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(f"asked for {loss}")
        if logger.getEffectiveLevel() <= logging.DEBUG and loader:
            logger.debug(f"as low {loss}")
        if logging.DEBUG < logger.level:
            continue
        logger.debug(f"not above {loss}")


def above_a_level(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        if logger.level > logging.DEBUG:
            print(loss)


class Meter:
    def __init__(self):
        self.val, self.sum = 0, 0

    def update(self, val, n: int = 1):
        self.val = val
        self.sum += val * n


def train_with_averages(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer):
    losses, right = Meter(), Meter()
    for x, y in loader:
        out = model(x.cuda())
        loss = out.sum()
        losses.update(loss.item())
        right.update((out.argmax(dim=1) == y.cuda()).float().mean())
        loss.backward()
        optimizer.step()
        print("loss {loss.val:.3f} {0}".format(1, loss=losses))
        print("right {right.val:.3f}".format(right=right))
        print("right {0.sum:.3f} {{0.val}}".format(right))
        print("right {right.missing".format(right=right))
