"""Accumulation in a file that wraps its models."""

from contextlib import nullcontext

import torch
from accelerate import Accelerator
from lightning.fabric import Fabric
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def wrap(model: nn.Module) -> nn.Module:
    return DDP(model)


def plain(model, loader, optimizer: torch.optim.Optimizer, accumulate: int) -> None:
    model = wrap(model)
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y) / accumulate
        loss.backward()  # error: TPF604
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def scaled(model, loader, optimizer, scaler) -> None:
    for i, (x, y) in enumerate(loader):
        scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()  # error: TPF604
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            scaler.step(optimizer)
            scaler.update()


def either(model, loader, optimizer, scaler) -> None:
    for i, x in enumerate(loader):
        loss = model(x).sum()
        if scaler is not None:
            scaler.scale(loss).backward()  # error: TPF604
        else:
            loss.backward()
        if (i + 1) % 4 == 0:
            optimizer.step()


def clipped(model, loader, settings) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        nn.functional.cross_entropy(model(x), y).backward()  # error: TPF604
        if i % settings.every == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


def named_boundary(model, loader, optimizer, accumulate: int) -> None:
    for i, x in enumerate(loader):
        steps = (i + 1) % accumulate == 0
        model(x).sum().backward()  # error: TPF604
        if steps:
            optimizer.step()


def micro_batches(model, loader, micro: int) -> None:
    net = DDP(model.cuda())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)
    for batch in loader:
        optimizer.zero_grad()
        for part in batch.chunk(micro):
            (net(part.cuda()).mean() / micro).backward()  # error: TPF604
        optimizer.step()


def one_step(model, batches, optimizer) -> None:
    for x in batches:
        model(x).sum().backward()  # error: TPF604
    optimizer.step()


def backward_alone(model, loader, optimizer, every: int) -> None:
    ddp = DDP(model.cuda())
    for i, x in enumerate(loader):
        loss = ddp(x.cuda()).mean() / every
        if (i + 1) % every:
            with ddp.no_sync():  # error: TPF604
                loss.backward()
        else:
            loss.backward()
            optimizer.step()


# Look-alikes


def forward_too(model, loader, optimizer, every: int) -> None:
    for i, x in enumerate(loader):
        steps = (i + 1) % every == 0
        with nullcontext() if steps else model.no_sync():
            loss = model(x.cuda()).mean()
            loss.backward()
        if steps:
            optimizer.step()


def sync_of(model, last: bool):
    model.require_backward_grad_sync = last
    return model


def by_a_helper(model, batches, optimizer) -> None:
    for i, x in enumerate(batches):
        sync_of(model, i == len(batches) - 1)(x).sum().backward()
    optimizer.step()


def until_it_fits(model, batches, optimizer) -> None:
    for x in batches:
        try:
            model(x).sum().backward()
            break
        except torch.cuda.OutOfMemoryError:
            continue
    optimizer.step()


def each_turn(model, loader, optimizer) -> None:
    for x, y in loader:
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()


def logged(model, loader, optimizer, log) -> None:
    for i, (x, y) in enumerate(loader):
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if i % 100 == 0:
            log.step()


def both_seldom(model, loader, optimizer) -> None:
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y)
        if i % 2 == 0:
            loss.backward()
            optimizer.step()


def schedules(model, loader, optimizer, scheduler) -> None:
    for i, (x, y) in enumerate(loader):
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if (i + 1) % 10 == 0:
            scheduler.step()


def once(model, batch, optimizer) -> None:
    model(batch).sum().backward()
    if batch.shape[0] % 2 == 0:
        optimizer.step()


def under_a_short_name(config, model, opt, loader):
    accelerator = Accelerator()
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for step, batch in enumerate(loader):
        loss = model(**batch).loss / config.steps
        accelerator.backward(loss)  # error: TPF604
        if step % config.steps == config.steps - 1:
            opt.step()
            opt.zero_grad()


def by_fabric(fabric: Fabric, model, optimizer, loader, every: int):
    model, optimizer = fabric.setup(model, optimizer)
    for i, batch in enumerate(loader):
        fabric.backward(model(batch).mean() / every)  # error: TPF604
        if (i + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()


def by_fabric_without(fabric: Fabric, model, optimizer, loader, every: int):
    model, optimizer = fabric.setup(model, optimizer)
    for i, batch in enumerate(loader):
        with fabric.no_backward_sync(model, enabled=(i + 1) % every != 0):
            fabric.backward(model(batch).mean() / every)
        if (i + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()


def steps_by_default(model, get_batch, optimizer, rank: int, gradient_accumulation_steps=8):
    model = DistributedDataParallel(model.to(rank), device_ids=[rank])
    while True:
        for _ in range(gradient_accumulation_steps):
            loss = model(get_batch()).mean() / gradient_accumulation_steps
            loss.backward()  # error: TPF604
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
