"""Outputs of CUDA graphs that are kept."""

import torch
from torch import nn


@torch.compile(mode="reduce-overhead")
def step(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


@torch.no_grad()
def run(batches) -> torch.Tensor:
    outputs = []
    for x in batches:
        outputs.append(step(x))  # error: TPF805
    return torch.cat(outputs)


@torch.no_grad()
def by_name(model: nn.Module, batches) -> dict:
    fast = torch.compile(model, mode="max-autotune")
    found = {}
    for index, x in enumerate(batches):
        found[index] = fast(x)  # error: TPF805
    return found


def replayed(model: nn.Module, batches, static_x: torch.Tensor) -> list:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_y = model(static_x)
    outputs = []
    for x in batches:
        static_x.copy_(x)
        graph.replay()
        outputs.append(static_y)  # error: TPF805
    return outputs


shared_x = torch.zeros(8, 3, device="cuda")
shared_graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(shared_graph):
    shared_y = shared_x * 2


@torch.inference_mode()
def read_after_the_next_call(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    a = step(left.cuda())  # error: TPF805
    b = step(right.cuda())
    return a + b


class Twice:
    def __init__(self, model: nn.Module) -> None:
        self.model = torch.compile(model.cuda().eval(), mode="reduce-overhead")

    @torch.no_grad()
    def guided(self, x: torch.Tensor) -> torch.Tensor:
        one = self.model(x.cuda())[0]  # error: TPF805
        if x.shape[0] > 1:
            one = one + self.model(x.cuda() * 2)[0]
        return one

    @torch.no_grad()
    def copied(self, x: torch.Tensor) -> torch.Tensor:
        one = self.model(x.cuda())[0].clone()
        return one + self.model(x.cuda() * 2)[0]

    @torch.no_grad()
    def used_up(self, x: torch.Tensor) -> torch.Tensor:
        one = self.model(x.cuda())
        total = one.sum()
        return total + self.model(one).sum()

    @torch.no_grad()
    def by_branch(self, x: torch.Tensor, is_first: bool) -> torch.Tensor:
        if is_first:
            y = self.model(x.cuda())
        else:
            y = self.model(x.cuda() * 2)
        return y

    def trained(self, x: torch.Tensor) -> None:
        one = self.model(x.cuda())
        two = self.model(x.cuda() * 2)
        (one - two).square().mean().backward()


def replayed_elsewhere(batches) -> list:
    outputs = []
    for x in batches:
        shared_x.copy_(x)
        shared_graph.replay()
        outputs.append(shared_y)  # error: TPF805
    return outputs


@torch.inference_mode()
def in_a_comprehension(model: nn.Module, batches) -> torch.Tensor:
    model = torch.compile(model.cuda().eval(), mode="reduce-overhead")
    return torch.cat([model(x.cuda()) for x in batches])  # error: TPF805


@torch.inference_mode()
def of_a_generator(model: nn.Module, batches) -> torch.Tensor:
    model = torch.compile(model.cuda().eval(), backend="cudagraphs")
    return torch.cat(list(model(x.cuda())[:, -1] for x in batches))  # error: TPF805


@torch.no_grad()
def graphed(model: nn.Module, batches, sample: torch.Tensor) -> list:
    model = torch.cuda.make_graphed_callables(model.eval(), (sample,))
    outputs = []
    for x in batches:
        y = model(x.cuda())
        outputs.append((y.detach(), x))  # error: TPF805
    return outputs


@torch.no_grad()
def graphed_pair(first: nn.Module, second: nn.Module, batches, sample: torch.Tensor) -> list:
    first, second = torch.cuda.make_graphed_callables((first, second), ((sample,), (sample,)))
    outputs = []
    for x in batches:
        outputs += [second(first(x.cuda()))]  # error: TPF805
    return outputs


class Held:
    def __init__(self, model: nn.Module) -> None:
        self.models = {"fast": torch.compile(model, mode="reduce-overhead")}
        self.outputs: list[torch.Tensor] = []

    def run(self, x: torch.Tensor) -> None:
        self.outputs.append(self.models["fast"](x.cuda()))  # error: TPF805


class Runner:
    def __init__(self, model: nn.Module) -> None:
        self.x = torch.zeros(8, 64, device="cuda")
        self.graph = torch.cuda.CUDAGraph()
        model(self.x)
        with torch.cuda.graph(self.graph):
            self.out = model(self.x)
        self.outputs: list[torch.Tensor] = []

    def step(self, x: torch.Tensor) -> torch.Tensor:
        self.x.copy_(x)
        self.graph.replay()
        self.outputs.append(self.out)  # error: TPF805
        return self.out

    def copied(self, x: torch.Tensor) -> torch.Tensor:
        self.x.copy_(x)
        self.graph.replay()
        return self.out.clone()


def serve(runner: Runner, batches) -> list:
    rows = []
    for x in batches:
        rows.append(runner.step(x))  # error: TPF805
    return rows


@torch.inference_mode()
def differences(model: nn.Module, batches):
    model = torch.compile(model.cuda().eval(), mode="reduce-overhead")
    previous = None
    for x in batches:
        y = model(x.cuda())
        if previous is not None:
            print((y - previous).norm().cpu())
        previous = y  # error: TPF805


# Look-alikes


def serve_copies(runner: Runner, batches) -> list:
    return [runner.copied(x) for x in batches]


def serve_last(runner: Runner, batches) -> torch.Tensor:
    for x in batches:
        y = runner.step(x)
    return y


@torch.inference_mode()
def on_the_host(model: nn.Module, dataset) -> list:
    model = torch.compile(model, backend="cudagraphs")
    out = []
    for x in torch.utils.data.DataLoader(dataset, 64):
        out.append(model(x))
    return out


@torch.inference_mode()
def computed(model: nn.Module, batches) -> list:
    model = torch.compile(model.cuda().eval(), mode="reduce-overhead")
    return [model(x.cuda()).argmax(1) for x in batches]


@torch.inference_mode()
def one_at_a_time(model: nn.Module, batches):
    model = torch.compile(model.cuda().eval(), mode="reduce-overhead")
    return sum(model(x.cuda()).mean() for x in batches)


@torch.inference_mode()
def fed_back(model: nn.Module, y: torch.Tensor, steps: int) -> torch.Tensor:
    model = torch.compile(model.cuda().eval(), mode="reduce-overhead")
    for _ in range(steps):
        before = y
        y = model(before)
    return y




def replayed_and_cloned(batches) -> list:
    outputs = []
    for x in batches:
        shared_x.copy_(x)
        shared_graph.replay()
        outputs.append(shared_y.clone())
    return outputs


def of_its_own(batches, shared_y: torch.Tensor) -> list:
    outputs = []
    for x in batches:
        shared_x.copy_(x)
        shared_graph.replay()
        outputs.append(shared_y)
    return outputs


@torch.no_grad()
def cloned(batches) -> torch.Tensor:
    outputs = []
    for x in batches:
        outputs.append(step(x).clone())
    return torch.cat(outputs)


def used_up(batches) -> float:
    total = torch.zeros((), device="cuda")
    for x in batches:
        total += step(x).sum()
    return total.item()


def copied(model: nn.Module, batches, static_x: torch.Tensor) -> list:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_y = model(static_x)
    outputs = []
    for x in batches:
        static_x.copy_(x)
        graph.replay()
        outputs.append(static_y.clone())
        outputs.append(static_y.cpu())
    return outputs


@torch.compile
def plain(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def without_graphs(batches) -> list:
    outputs = []
    for x in batches:
        outputs.append(plain(x))
    return outputs


def recorded_each(model: nn.Module, batches) -> list:
    outputs = []
    for x in batches:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = model(x)
        graph.replay()
        outputs.append(y)
    return outputs


@torch.compile(mode="max-autotune-no-cudagraphs")
def tuned(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def keeps_tuned(batches) -> list:
    outputs = []
    for x in batches:
        outputs.append(tuned(x))
    return outputs


class Change:
    def __init__(self, net: nn.Module):
        self.net = torch.compile(net.cuda().eval(), mode="reduce-overhead")
        self.last, self.seen = None, None

    @torch.inference_mode()
    def __call__(self, frame: torch.Tensor) -> torch.Tensor:
        now = self.net(frame.cuda())
        change = now if self.last is None else now - self.last
        self.last = now  # error: TPF805
        return change.clone()

    @torch.inference_mode()
    def copied(self, frame: torch.Tensor) -> torch.Tensor:
        now = self.net(frame.cuda()).clone()
        change = now if self.seen is None else now - self.seen
        self.seen = now
        return change

    @torch.inference_mode()
    def read_before(self, frame: torch.Tensor) -> torch.Tensor:
        before = 0 if self.kept is None else self.kept.sum()
        now = self.net(frame.cuda())
        self.kept = now
        return now - before


def recorded_in_a_closure(net: nn.Module, shape: tuple[int, int]):
    static_x, graph = torch.zeros(shape, device="cuda"), torch.cuda.CUDAGraph()
    net(static_x)
    with torch.cuda.graph(graph):
        out = net(static_x)

    def run(x: torch.Tensor) -> torch.Tensor:
        static_x.copy_(x)
        graph.replay()
        return out

    return run


def all_of_a_closure(net: nn.Module, batches):
    run = recorded_in_a_closure(net.cuda(), batches[0].shape)
    return [run(x) for x in batches]  # error: TPF805


def copies_of_a_closure(net: nn.Module, batches):
    run = recorded_in_a_closure(net.cuda(), batches[0].shape)
    return [run(x).clone() for x in batches]
