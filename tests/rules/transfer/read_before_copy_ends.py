"""Memory of asynchronous copies that the CPU reads or fills."""

import numpy as np
import torch


@torch.inference_mode()
def embed(model, loader):
    rows = []
    for batch in loader:
        out = model(batch.cuda(non_blocking=True))
        host = out.to("cpu", non_blocking=True)
        rows.append(host.numpy().mean(0))  # error: TPF215
    return rows


def at_once(x: torch.Tensor) -> list[float]:
    return x.cuda().softmax(-1).to("cpu", non_blocking=True).tolist()  # error: TPF215


def into_a_buffer(model, x: torch.Tensor) -> float:
    host = torch.empty(8, pin_memory=True)
    y = model(x.cuda())
    host.copy_(y, non_blocking=True)
    total = host + 1  # error: TPF215
    return float(total.max())


def in_numpy(x: torch.Tensor):
    host = x.cuda().to(device=torch.device("cpu"), non_blocking=True)
    return np.argmax(host, -1)  # error: TPF215


def refilled(model, queue):
    host = torch.empty(256, dtype=torch.int32, pin_memory=True)
    device = torch.empty(256, dtype=torch.int32, device="cuda")
    for batch in queue:
        host[: len(batch)] = torch.tensor(batch, dtype=torch.int32)  # error: TPF215
        device.copy_(host, non_blocking=True)
        model(device)


# Look-alikes


def after_an_event(x: torch.Tensor):
    host = x.cuda().to("cpu", non_blocking=True)
    done = torch.cuda.Event()
    done.record()
    done.synchronize()
    return host.tolist()


def after_another_read(x: torch.Tensor, y: torch.Tensor):
    host = x.cuda().to("cpu", non_blocking=True)
    total = y.cuda().sum().item()
    return host.tolist(), total


def only_kept(model, loader):
    kept = []
    for x in loader:
        host = model(x.cuda()).to("cpu", non_blocking=True)
        kept.append((host, host.shape))
    torch.cuda.synchronize()
    return [each.numpy() for each, _ in kept]


def blocking(x: torch.Tensor):
    return x.cuda().to("cpu").tolist(), x.cuda().to("cpu", non_blocking=False).tolist()


def to_the_gpu(x: torch.Tensor):
    y = x.pin_memory().to("cuda", non_blocking=True)
    return y * 2


def by_turns(model, queue):
    hosts = torch.empty(2, 256, pin_memory=True)
    done = [torch.cuda.Event(), torch.cuda.Event()]
    device = torch.empty(256, device="cuda")
    for step, batch in enumerate(queue):
        done[step % 2].synchronize()
        hosts[step % 2] = torch.tensor(batch)
        device.copy_(hosts[step % 2], non_blocking=True)
        done[step % 2].record()
        model(device)


def new_each_time(model, queue):
    device = torch.empty(256, device="cuda")
    for batch in queue:
        host = torch.tensor(batch).pin_memory()
        device.copy_(host, non_blocking=True)
        model(device)


def into_pageable_memory(x: torch.Tensor):
    host = torch.empty(8)
    host.copy_(x.cuda(), non_blocking=True)
    return host.tolist()


def returned(x: torch.Tensor):
    return x.cuda().to("cpu", non_blocking=True)


class Sampler:
    def __init__(self, model):
        self.model = model.cuda().eval()
        self.host = torch.empty(64, dtype=torch.long, pin_memory=True)
        self.done = torch.cuda.Event()

    @torch.inference_mode()
    def next(self, ids: torch.Tensor) -> list[int]:
        self.host.copy_(self.model(ids.cuda())[:, -1].argmax(-1), non_blocking=True)
        return self.host.tolist()  # error: TPF215

    @torch.inference_mode()
    def later(self, ids: torch.Tensor) -> list[int]:
        before = self.host.tolist()
        self.host.copy_(self.model(ids.cuda())[:, -1].argmax(-1), non_blocking=True)
        return before

    @torch.inference_mode()
    def after_an_event(self, ids: torch.Tensor) -> list[int]:
        self.host.copy_(self.model(ids.cuda())[:, -1].argmax(-1), non_blocking=True)
        self.done.record()
        self.done.synchronize()
        return self.host.tolist()


def of_a_dict(outputs: dict[str, torch.Tensor]):
    host = {name: value.to("cpu", non_blocking=True) for name, value in outputs.items()}
    return {name: value.tolist() for name, value in host.items()}  # error: TPF215


def of_a_list(outputs: list[torch.Tensor]):
    host = [value.to("cpu", non_blocking=True) for value in outputs]
    for value in host:
        print(value.sum().item())  # error: TPF215


def of_a_dict_that_waits(outputs: dict[str, torch.Tensor]):
    host = {name: value.to("cpu", non_blocking=True) for name, value in outputs.items()}
    torch.cuda.current_stream().synchronize()
    return {name: value.numpy() for name, value in host.items()}


def of_a_dict_for_later(outputs: dict[str, torch.Tensor]):
    host = {name: value.to("cpu", non_blocking=True) for name, value in outputs.items()}
    return host
