"""Emptying the cache over and over."""

import gc

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def train(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        del loss
        torch.cuda.empty_cache()  # error: TPF123
        gc.collect()  # error: TPF123


class Block(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.relu()
        torch.cuda.empty_cache()  # error: TPF123
        return x


def train_with_care(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for step, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            torch.cuda.empty_cache()  # audit: TPF123
        if model.training:
            torch.cuda.empty_cache()  # error: TPF123


def train_on_what_there_is(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()

        # Make room
        # for the next batch.
        if torch.cuda.is_available():
            # All of it.
            torch.cuda.empty_cache()  # error: TPF123

    print("done")


def tidy_up() -> None:
    # No fix: nothing else is here.
    gc.collect()  # error: TPF123


def train_and_tidy_up(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for x, y in loader:
        F.mse_loss(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
        tidy_up()


class Steps(nn.Module):
    def __init__(self, layer: nn.Module, teacher: nn.Module) -> None:
        super().__init__()
        self.layer, self.teacher = layer, teacher

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        out = self.layer(batch)
        out.cpu()
        torch.cuda.empty_cache()  # error: TPF123
        return out.mean()

    def validation_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        out = self.layer(batch)
        torch.cuda.empty_cache()  # audit: TPF123
        for part in out:
            gc.collect()  # error: TPF123
        return out.mean()

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        for part in batch.chunk(4):
            batch = self.layer(part)
            torch.cuda.empty_cache()  # error: TPF123
        torch.cuda.empty_cache()  # audit: TPF123
        if self.training:
            for part in batch:
                gc.collect()  # error: TPF123
        else:
            gc.collect()  # error: TPF123
        return batch

    def distill(self, loader: DataLoader) -> None:
        for x, _ in loader:
            out = self.layer(x.cuda())
            out.cpu()
            self.teacher.to("cuda")
            torch.cuda.empty_cache()  # error: TPF123


# Look-alikes


class Offloads(nn.Module):
    def __init__(self, layer: nn.Module, teacher: nn.Module) -> None:
        super().__init__()
        self.layer, self.teacher = layer, teacher

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        self.teacher.to(device="cpu")
        torch.cuda.empty_cache()
        return self.layer(batch).mean()

    def test_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        self.teacher.cpu()
        torch.cuda.empty_cache()
        return self.layer(batch).mean()


def free_again_and_again(attempts: int, device=torch.cuda) -> None:
    for attempt in range(attempts):
        before = device.memory_reserved()
        gc.collect()
        torch.cuda.empty_cache()
        freed = before - device.memory_reserved()
        print(f"attempt {attempt}: {freed / 2**30:.2f} GB")
        if freed < 2**30:
            break


def try_again(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        torch.cuda.empty_cache()
        try:
            return model(x.cuda())
        except torch.cuda.OutOfMemoryError:
            x = x[::2]
    raise MemoryError


def until_it_fits(model: nn.Module, x: torch.Tensor) -> None:
    while torch.cuda.memory_allocated() > 2**30:
        x = model(x.cuda()).cpu()
        torch.cuda.empty_cache()


def once(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    turns = 0
    for step, (x, y) in enumerate(loader):
        F.mse_loss(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
        if step == 0:
            gc.collect()
        turns += 1
        if turns == 1000:
            torch.cuda.empty_cache()


def change_of_phase(model: nn.Module, loader: DataLoader) -> None:
    for x, _ in loader:
        model(x.cuda())
    gc.collect()
    torch.cuda.empty_cache()


def out_of_memory(model: nn.Module, loader: DataLoader) -> None:
    for x, _ in loader:
        try:
            model(x.cuda()).sum().backward()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()


def one_model_after_the_other(widths: list[int], x: torch.Tensor) -> None:
    for width in widths:
        model = nn.Linear(x.shape[1], width).cuda()
        model(x.cuda())
        del model
        torch.cuda.empty_cache()


def when_full(model: nn.Module, loader: DataLoader) -> None:
    for x, _ in loader:
        model(x.cuda()).sum().backward()
        if torch.cuda.memory_reserved() > 2**34:
            torch.cuda.empty_cache()


def collected_elsewhere(garbage: list[object]) -> None:
    garbage.clear()
    gc.collect()


class Agent:
    def __init__(self, model: nn.Module):
        self.model = model.cuda()

    def next_token(self, tokens: torch.Tensor) -> int:
        logits = self.model(tokens.cuda())
        torch.cuda.empty_cache()  # audit: TPF123
        return int(logits.argmax(-1)[0])

    def reset(self) -> None:
        self.states = []
        torch.cuda.empty_cache()


def explained(model: nn.Module, loader: DataLoader) -> None:
    for x, _ in loader:
        model(x.cuda()).sum().backward()
        torch.cuda.empty_cache()  # batches differ in size: the next one did not fit  # error: TPF123


def largest_batch(model: nn.Module, loader: DataLoader) -> int:
    """It measures memory, so the cache has to be empty."""
    peak = 0
    for x, _ in loader:
        torch.cuda.empty_cache()  # error: TPF123
        torch.cuda.reset_peak_memory_stats()
        model(x.cuda()).sum().backward()
        peak = max(peak, torch.cuda.max_memory_allocated())
    return peak


def serve(model: nn.Module, pipe) -> None:
    """The last command frees the memory, once."""
    while True:
        command, x = pipe.recv()
        if command == "step":
            pipe.send(model(x.cuda()))
        elif command == "close":
            with torch.no_grad():
                gc.collect()
                torch.cuda.empty_cache()
            break


def serve_until(model: nn.Module, pipe) -> None:
    while True:
        command, x = pipe.recv()
        if command == "step":
            pipe.send(model(x.cuda()))
            gc.collect()  # error: TPF123
        if command == "close":
            gc.collect()
            return


def in_parts(model: nn.Module, loader: DataLoader, parts: list[torch.Tensor]) -> torch.Tensor:
    """The parts are given up one by one: the call is there for their memory, and has no fix."""
    whole = parts[0]
    for k, x in enumerate(loader):
        whole = torch.cat([whole, model(x.cuda())])
        parts[k] = torch.empty(0)
        gc.collect()  # error: TPF123
    return whole


class Replays:
    def __init__(self, graph: torch.cuda.CUDAGraph, latent: torch.Tensor, noise: torch.Tensor) -> None:
        self.graph, self.latent, self.noise = graph, latent, noise

    def sample(self, steps: int) -> torch.Tensor:
        for _ in range(steps):
            torch.cuda.empty_cache()  # error: TPF123
            self.graph.replay()
            self.latent.sub_(self.noise)
        return self.latent.clone()
