"""Tensors that loops gather, and tensors that they use."""

import contextlib

import torch
from torch import nn
from torch.utils.data import DataLoader


def predictions(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    outputs = torch.empty(0, 10, device="cuda")
    for x in loader:
        y = model(x.cuda())
        outputs = torch.cat([outputs, y], dim=0)  # audit: TPF207
    return outputs


def rows(count: int) -> torch.Tensor:
    table = torch.zeros(1, 4)
    for i in range(count):
        table = torch.vstack((table, torch.full((1, 4), i)))  # audit: TPF207
    table = table[1:]
    return table


def two(model: nn.Module, loader: DataLoader) -> tuple[torch.Tensor, torch.Tensor]:
    labels, scores = torch.tensor([]), torch.tensor([])
    for x, y in loader:
        with torch.no_grad():
            scores = torch.cat((scores, model(x)), 0)  # audit: TPF207
        labels = torch.cat((y, labels))  # audit: TPF207
    return labels, scores


def by_key(model: nn.Module, loader: DataLoader) -> dict[str, torch.Tensor]:
    gathered: dict[str, torch.Tensor] = {}
    for x in loader:
        for key, part in model(x).items():
            if key not in gathered:
                gathered[key] = part
            else:
                gathered[key] = torch.cat([gathered[key], part])  # audit: TPF207
    return gathered


def by_number(losses: torch.Tensor, model: nn.Module) -> list[torch.Tensor]:
    parts = []
    for at in range(len(losses)):
        grads = torch.autograd.grad(losses[at], list(model.parameters()), retain_graph=True)
        for i, grad in enumerate(grads):
            if at == 0:
                parts.append(grad[None])
            else:
                parts[i] = torch.cat((parts[i], grad[None]))  # audit: TPF207
    return parts


def once_for_each_key(parts: dict[str, torch.Tensor], others: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    joined = dict(parts)
    for key in others:
        joined[key] = torch.cat([joined[key], others[key]])
    return joined


def key_of_each_turn(model: nn.Module, loader: DataLoader, parts: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    joined = dict(parts)
    for x in loader:
        key = str(x)
        joined[key] = torch.cat([joined[key], model(x)])
    return joined


def elements_that_are_read(model: nn.Module, loader: DataLoader) -> list[torch.Tensor]:
    memory = [torch.zeros(1, 4), torch.zeros(1, 4)]
    for x in loader:
        y = model(memory[0], x)
        memory[0] = torch.cat([memory[0], y])
    return memory


def started_again(model: nn.Module, loader: DataLoader) -> dict[str, torch.Tensor]:
    last: dict[str, torch.Tensor] = {}
    for x in loader:
        last["x"] = x
        last["x"] = torch.cat([last["x"], model(x)])
    return last


def first_of_all(model: nn.Module, loader: DataLoader) -> torch.Tensor | None:
    gathered = None
    for x in loader:
        gathered = model(x) if gathered is None else torch.cat([gathered, model(x)])
    return gathered


def once_more(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    gathered = torch.empty(0)
    for x in loader:
        if x is None:
            return gathered
        gathered = torch.cat([gathered, model(x)])
    return gathered


def in_a_list(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    outputs = []
    for x in loader:
        outputs.append(model(x))
    return torch.cat(outputs)


def decoded(model: nn.Module, tokens: torch.Tensor, count: int) -> torch.Tensor:
    for _ in range(count):
        following = model(tokens)[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, following], dim=1)
    return tokens


def channels(first: torch.Tensor, others: list[torch.Tensor]) -> torch.Tensor:
    for each in others:
        first = torch.cat([first, each.relu()], dim=1)
    return first


class Dense(nn.Module):
    def __init__(self, layers: list[nn.Module]):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


def with_a_token(x: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    x = torch.cat([token, x], dim=1)
    return x


def anew_in_each_turn(loader: DataLoader) -> list[torch.Tensor]:
    found = []
    for x in loader:
        y = x * 2
        y = torch.cat([y, x])
        found.append(y)
    return found


def what_fits(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    outputs = torch.empty(0, 10, device="cuda")
    for x in loader:
        y = model(x.cuda())
        try:
            outputs = torch.cat([outputs, y], dim=0)  # audit: TPF207
        except RuntimeError:
            pass
    return outputs


def as_far_as_it_got(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    outputs = torch.empty(0, 10, device="cuda")
    try:
        for x in loader:
            y = model(x.cuda())
            outputs = torch.cat([outputs, y], dim=0)  # audit: TPF207
    except KeyboardInterrupt:
        print("interrupted")
    return outputs


def without_errors(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    outputs = torch.empty(0, 10, device="cuda")
    for x in loader:
        with contextlib.suppress(RuntimeError):
            y = model(x.cuda())
            outputs = torch.cat([outputs, y], dim=0)  # audit: TPF207
    return outputs


def seen_inside(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    outputs = torch.empty(0, 10, device="cuda")

    def report() -> None:
        print(outputs.shape)

    for x in loader:
        y = model(x.cuda())
        outputs = torch.cat([outputs, y], dim=0)  # audit: TPF207
        report()
    return outputs


def with_precision(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    outputs = torch.empty(0, 10, device="cuda")
    for x in loader:
        with torch.autocast("cuda"), torch.inference_mode():
            y = model(x.cuda())
            outputs = torch.cat([outputs, y], dim=0)  # audit: TPF207
    return outputs


def longer(model: nn.Module, outputs: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    outputs = torch.cat([outputs, model(x.cuda())])  # audit: TPF207
    return outputs


def by_functions(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    outputs = torch.empty(0, 10, device="cuda")
    for x in loader:
        outputs = longer(model, outputs, x)
    return outputs


def read_too(model: nn.Module, outputs: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    outputs = torch.cat([outputs, model(x.cuda())])
    return outputs


def needed_in_each_iteration(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    outputs = torch.empty(0, 10, device="cuda")
    for x in loader:
        outputs = read_too(model, outputs, x)
        print(outputs.mean())
    return outputs


class Kept:
    pass


def in_an_object(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    kept = Kept()
    kept.outputs = torch.empty(0, 10, device="cuda")
    for x in loader:
        kept.outputs = torch.cat([kept.outputs, model(x.cuda())])  # audit: TPF207
    return kept.outputs
