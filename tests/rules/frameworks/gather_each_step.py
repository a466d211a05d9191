"""How often values are gathered."""

import torch
from accelerate import Accelerator


def train(model, loader, optimizer) -> None:
    accelerator = Accelerator()
    for x in loader:
        loss = model(x).sum()
        accelerator.backward(loss)
        optimizer.step()
        mean = accelerator.gather(loss.detach()).mean()  # audit: TPF944
        accelerator.print(mean)  # audit: TPF944


class Trainer:
    def __init__(self, model):
        self.accelerator = Accelerator()
        self.model = model

    def run(self, loader, optimizer) -> None:
        for epoch in range(3):
            for x in loader:
                loss = self.model(x).sum()
                self.accelerator.backward(loss)
                optimizer.step()
                total = self.accelerator.reduce(loss)  # audit: TPF944
                print(total)


def now_and_then(model, loader, optimizer) -> None:
    accelerator = Accelerator()
    for step, x in enumerate(loader):
        loss = model(x).sum()
        accelerator.backward(loss)
        optimizer.step()
        if step % 100 == 0:
            accelerator.print(accelerator.gather(loss).mean())


def evaluate(model, loader, metric) -> None:
    accelerator = Accelerator()
    with torch.no_grad():
        for x, y in loader:
            metric.add_batch(*accelerator.gather_for_metrics((model(x), y)))


def after_the_loop(model, loader, optimizer) -> None:
    accelerator = Accelerator()
    total = 0
    for x in loader:
        loss = model(x).sum()
        total += loss.detach()
        accelerator.backward(loss)
        optimizer.step()
    accelerator.print(accelerator.gather(total))


def only_steps(model, loader, optimizer) -> None:
    accelerator = Accelerator()
    for x in loader:
        accelerator.backward(model(x).sum())
        optimizer.step()


def of_another_library(model, loader, optimizer, library) -> None:
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        library.gather(loss)
