# mypy: ignore-errors
"""The helper of a forward and backward pass, which a patch writes into a program as it is here."""

import torch


class GraphedBackward:
    """Calls `step`, the forward and backward pass of models, three times, then replays it as a CUDA graph. It is just
    called on a CPU. The models are among its inputs or given here. Each shape of tensors has a graph of its own; the
    last eight are kept. Results are copies. `numbers` are the positions of inputs that are another number in each
    step: they are tensors in it."""

    def __init__(self, step, *models, numbers=(), most=8):
        self.step, self.models, self.numbers, self.most = step, models, numbers, most
        self.graphs, self.stream = {}, None

    def __call__(self, *inputs):
        leaves, _ = torch.utils._pytree.tree_flatten(inputs)
        models = [*self.models, *(x for x in leaves if isinstance(x, torch.nn.Module))]
        parameters = [x for model in models for x in model.parameters()]
        device = next((x.device for x in parameters), torch.device("cpu"))
        if device.type != "cuda" or not hasattr(torch, "compiler"):  # torch is older than 2.1
            return self.step(*inputs)
        for at in (x for x in self.numbers if isinstance(inputs[x], float)):
            inputs = (*inputs[:at], torch.full((), inputs[at], device=device), *inputs[at + 1 :])
        leaves, form = torch.utils._pytree.tree_flatten(inputs)
        key = [(x.shape, x.dtype) if torch.is_tensor(x) else (x, type(x)) for x in leaves]
        key += [(each, each.training) for model in models for each in model.modules()]
        key += [(x.data_ptr(), x.requires_grad) for x in parameters]
        self.stream = self.stream or torch.cuda.Stream(device)
        self.stream.wait_stream(torch.cuda.current_stream(device))
        try:
            with torch.cuda.stream(self.stream):
                return self.run((*key, str(form)), inputs, leaves, [x for x in parameters if x.requires_grad], device)
        finally:
            torch.cuda.current_stream(device).wait_stream(self.stream)

    def run(self, key, inputs, leaves, parameters, device):
        calls, *captured = self.graphs.pop(key, (0,))
        before = [x.grad for x in parameters]
        if calls == 3 and not captured:
            for x in parameters:
                x.grad = None
                # An eager pass may have left a node that adds up the gradient on another stream.
                data, x.data = x.data, torch.empty(0)
                x.data = data
            held = self.each(lambda x: x.to(device, copy=True), inputs)
            graph = torch.cuda.CUDAGraph()
            torch.clear_autocast_cache()  # copies of weights that autocast keeps are made by the graph
            with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                result = self.step(*held)
            captured = graph, held, result, [x.grad for x in parameters]
        self.graphs[key] = min(calls + 1, 3), *captured
        if len(self.graphs) > self.most:
            del self.graphs[next(iter(self.graphs))]
        if captured:
            graph, held, result, made = captured
            for copy, x in zip(torch.utils._pytree.tree_flatten(held)[0], leaves):
                if torch.is_tensor(x):
                    copy.copy_(x, non_blocking=x.is_cuda or not x.is_pinned())
            # A replay writes over the gradients that it made before, to which it should add.
            before = [x.clone() if x is not None and x is y else x for x, y in zip(before, made)]
            graph.replay()
            for x, old, new in zip(parameters, before, made):
                x.grad = new if old is None else old if new is None else old.add_(new)
        return self.each(lambda x: x.detach().clone(), result if captured else self.step(*inputs))

    def each(self, change, values):
        return torch.utils._pytree.tree_map(lambda x: change(x) if torch.is_tensor(x) else x, values)
