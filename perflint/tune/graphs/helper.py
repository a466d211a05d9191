# mypy: ignore-errors
"""The helper that a patch writes into a program: the class, as it is here. It depends on torch alone."""

import gc

import torch


class GraphedStep:
    """Replays `step` as a CUDA graph after three calls with inputs of the same shapes; on a CPU just calls it.

    `step` must only compute on the GPU; `optimizers` are those that step in it. All other inputs than tensors are
    constants of a graph: each of their values has its own, up to `most` in all. Results are copies.
    """

    CONSTANTS = (bool, int, float, str, type(None), torch.dtype, torch.device)

    def __init__(self, step, *optimizers, most=8):
        self.step, self.optimizers, self.most = step, optimizers, most
        self.calls, self.graphs, self.memory, self.rates, self.stream = {}, {}, [], [], None

    def __call__(self, *inputs):
        groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        device = groups[0]["params"][0].device
        others = [x for x in inputs if not (torch.is_tensor(x) or callable(x) or isinstance(x, self.CONSTANTS))]
        if device.type != "cuda" or others:
            return self.step(*inputs)
        # A graph would keep a rate that is a number. It is a tensor in the step, and a number for all other code.
        numbers = [(group, group["lr"]) for group in groups if "capturable" in group]
        self.rates = self.rates or [torch.zeros((), device=device) for _ in numbers]
        for rate, (group, number) in zip(self.rates, numbers):
            group.update(lr=rate.fill_(number), capturable=True)
        try:
            return self._run(inputs, self._key(inputs, groups, device), device)
        finally:
            for group, number in numbers:
                group["lr"] = number

    def _key(self, inputs, groups, device):
        """The constants of a graph. Forgets all graphs if the state of the optimizers has moved: one was loaded."""
        states = [state for optimizer in self.optimizers for state in optimizer.state.values()]
        tensors = [x for group in groups for x in group["params"]] + [x for state in states for x in state.values()]
        memory = [x.data_ptr() for x in tensors if torch.is_tensor(x)]
        if memory != self.memory:
            self.calls, self.graphs, self.memory = {}, {}, memory
            for state in states:
                if torch.is_tensor(state.get("step")):
                    state["step"] = state["step"].to(device)
        options = [[x for name, x in group.items() if name != "params" and not torch.is_tensor(x)] for group in groups]
        shapes = [(x.shape, x.stride(), x.dtype) if torch.is_tensor(x) else None for x in inputs]
        others = [(type(x), x, getattr(x, "training", None)) for x in inputs if not torch.is_tensor(x)]
        return (*shapes, *others, str(options))

    def _run(self, inputs, key, device):
        given = [x for x in inputs if torch.is_tensor(x)]
        calls = self.calls.get(key, 0 if len(self.calls) < self.most else None)
        if calls is None or any(x.requires_grad for x in given):
            return self.step(*inputs)
        self.stream = self.stream or torch.cuda.Stream(device)
        if calls < 3:
            current, versions = torch.cuda.current_stream(), [x._version for x in given]
            self.stream.wait_stream(current)
            with torch.cuda.stream(self.stream):
                results = self.step(*inputs)
            current.wait_stream(self.stream)
            # A graph would write to a copy of an input, so a step that writes to one has none.
            self.calls[key] = calls + 1 if versions == [x._version for x in given] else None
            return results
        if key not in self.graphs:
            held = [x.to(device, copy=True) for x in given]
            # Gradients that are there now are added to by the graph, so their memory must stay.
            grads = [x.grad for x in gc.get_objects() if type(x) is torch.nn.Parameter]
            places, graph = iter(held), torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                results = self.step(*(next(places) if torch.is_tensor(x) else x for x in inputs))
            self.graphs[key] = graph, held, results, grads
        graph, held, results, _ = self.graphs[key]
        for copy, x in zip(held, given):
            copy.copy_(x, non_blocking=True)
        graph.replay()
        return tuple(x.detach().clone() if torch.is_tensor(x) else x for x in results)
