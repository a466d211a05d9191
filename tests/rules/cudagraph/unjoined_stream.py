"""Streams beside the recorded one, and the waits for them."""

import torch
from torch import nn


def without_an_end(left: nn.Module, right: nn.Module, x: torch.Tensor):
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # error: TPF817
            b = right(x)
        a = left(x)
    return graph, x, a, b


def without_a_beginning(left: nn.Module, right: nn.Module, x: torch.Tensor):
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with torch.cuda.stream(side):  # error: TPF817
            b = right(x)
        a = left(x)
        torch.cuda.current_stream().wait_stream(side)
    return graph, x, a, b


def a_warm_up(model: nn.Module, x: torch.Tensor):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # audit: TPF817
        for _ in range(3):
            model(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    return graph, x, y


# Look-alikes


def on_both_ends(left: nn.Module, right: nn.Module, x: torch.Tensor):
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            b = right(x)
        a = left(x)
        torch.cuda.current_stream().wait_stream(side)
    return graph, x, a, b


def by_events(left: nn.Module, right: nn.Module, x: torch.Tensor):
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    start, end = torch.cuda.Event(), torch.cuda.Event()
    with torch.cuda.graph(graph):
        start.record()
        with torch.cuda.stream(side):
            side.wait_event(start)
            b = right(x)
            end.record(side)
        a = left(x)
        end.wait()
    return graph, x, a, b


def a_warm_up_that_waits(model: nn.Module, x: torch.Tensor):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    return graph, x, y


def a_warm_up_after_all_work(model: nn.Module, x: torch.Tensor):
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        model(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        y = model(x)
    return graph, x, y


def no_graph(left: nn.Module, right: nn.Module, x: torch.Tensor):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        b = right(x)
    return left(x), b


def another_model(model: nn.Module, teacher: nn.Module, x: torch.Tensor):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        target = teacher(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    return graph, x, y, target


def recorded_within(engine, bound: dict[str, torch.Tensor]) -> torch.cuda.CUDAGraph:
    """The block of the stream is that of the capture."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        engine.run(stream.cuda_stream)
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            engine.run(stream.cuda_stream)
    return graph
