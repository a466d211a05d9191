"""Inputs of a graph that are bound anew, and inputs that are filled."""

import torch


def replayed(batches, static_x):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = static_x * 2
    results = []
    for x in batches:
        static_x = x.cuda()
        graph.replay()
        results.append(y.tolist())
    return results


def case_results():
    static_x = torch.zeros(2, device="cuda")
    results = replayed([torch.ones(2), torch.full((2,), 3.0)], static_x)
    return {"results": results, "old": static_x}


def change_results(results, old):
    """`static_x = batch` becomes `static_x.copy_(batch)`, which is probably the intention, so results change. … the old tensor no longer keeps its contents."""
    assert results == ([[0, 0], [0, 0]], [[2, 2], [6, 6]])
    assert old[0].tolist() == [0, 0] and old[1].tolist() == [3, 3]


def case_another_shape():
    return {"results": replayed([torch.ones(3)], torch.zeros(2, device="cuda"))}


def change_another_shape(error):
    """A batch of another shape raises"""
    assert error[0] is None and "must match the size" in error[1]


def case_broadcast():
    return {"results": replayed([torch.ones(1)], torch.zeros(2, device="cuda"))}


def change_broadcast(results):
    """or is broadcast"""
    assert results == ([[0, 0]], [[2, 2]])
