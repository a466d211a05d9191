# mypy: ignore-errors
"""The helper that a patch writes into a program: the class, as it is here. It depends on torch alone."""

import torch


class GraphedStep:
    """Calls `step` three times, then replays it as a CUDA graph. Results are copies. `step` is just called on a CPU.
    Each shape of tensors and each value of other inputs has a graph of its own; the last eight are kept.
    `numbers` are the positions of inputs that are another number in each step: they are tensors in it."""

    def __init__(self, step, *optimizers, numbers=(), most=8):
        self.step, self.optimizers, self.numbers, self.most = step, optimizers, numbers, most
        self.states, self.rates, self.graphs = [], [], {}

    def __call__(self, *inputs):
        groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        states, device = [optimizer.state for optimizer in self.optimizers], groups[0]["params"][0].device
        if device.type != "cuda" or not hasattr(torch, "compiler"):  # torch is older than 2.1
            return self.step(*inputs)
        for at in (x for x in self.numbers if isinstance(inputs[x], float)):
            inputs = (*inputs[:at], torch.full((), inputs[at], device=device), *inputs[at + 1 :])
        is_other = list(map(id, states)) != list(map(id, self.states))
        if is_other or len(groups) != len(self.rates):  # the first call, or a checkpoint was loaded
            self.states, self.graphs, self.stream = states, {}, torch.cuda.Stream(device)
            self.rates = [torch.zeros((), device=device) for _ in groups]
            for state in (x for each in states for x in each.values() if torch.is_tensor(x.get("step"))):
                state["step"] = state["step"].to(device)
        # A graph repeats numbers, so the learning rate is a tensor in the step. Other code finds the number.
        sgd = {"fused": True, "foreach": False}  # its fused form takes a tensor
        ways = [
            {"capturable": True} if "capturable" in x else sgd if {"fused", "nesterov"} <= {*x} else {} for x in groups
        ]
        numbers = [{x: group[x] for x in ("lr", *way) if way and x in group} for group, way in zip(groups, ways)]
        for group, way, rate in zip(groups, ways, self.rates):
            group.update(way and {"lr": rate.fill_(group["lr"]), **way})
        key = [(x.data_ptr(), x.requires_grad) for group in groups for x in group["params"]]
        key += [x for group in groups for x in group.values() if isinstance(x, (bool, int, float, tuple))]
        leaves, form = torch.utils._pytree.tree_flatten(inputs)
        key += [(x.shape, x.dtype) if torch.is_tensor(x) else (x, type(x)) for x in leaves]
        key += [(each, each.training) for x in leaves if isinstance(x, torch.nn.Module) for each in x.modules()]
        self.stream.wait_stream(torch.cuda.current_stream(device))
        try:
            with torch.cuda.stream(self.stream):
                return self.run((*key, str(form)), inputs, leaves, device)
        finally:
            torch.cuda.current_stream(device).wait_stream(self.stream)
            for group, number in zip(groups, numbers):
                group.update(number)

    def run(self, key, inputs, leaves, device):
        calls, *captured = self.graphs.pop(key, (0,))
        state = [x for each in self.states for part in each.values() for x in part.values() if torch.is_tensor(x)]
        if captured and list(map(id, state)) != list(map(id, captured[3])):  # it was cleared or replaced
            calls, captured = 0, []
        if calls == 3 and not captured:
            for optimizer in self.optimizers:
                optimizer.zero_grad(set_to_none=True)
            for x in (x for optimizer in self.optimizers for group in optimizer.param_groups for x in group["params"]):
                # An eager pass may have left a node that adds up the gradient on another stream.
                data, x.data = x.data, torch.empty(0)
                x.data = data
            held = self.each(lambda x: x.to(device, copy=True), inputs)
            graph = torch.cuda.CUDAGraph()
            torch.clear_autocast_cache()  # copies of weights that autocast keeps are made by the graph
            with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                captured = graph, held, self.step(*held), state
        self.graphs[key] = min(calls + 1, 3), *captured
        if len(self.graphs) > self.most:
            del self.graphs[next(iter(self.graphs))]
        if captured:
            for copy, x in zip(torch.utils._pytree.tree_flatten(captured[1])[0], leaves):
                if torch.is_tensor(x):
                    copy.copy_(x, non_blocking=x.is_cuda or not x.is_pinned())
            captured[0].replay()
        return self.each(lambda x: x.detach().clone(), captured[2] if captured else self.step(*inputs))

    def each(self, change, values):
        return torch.utils._pytree.tree_map(lambda x: change(x) if torch.is_tensor(x) else x, values)
