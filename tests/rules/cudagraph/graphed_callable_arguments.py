"""What make_graphed_callables refuses."""

import torch
from torch import nn


def graphed(model: nn.Module, x: torch.Tensor):
    with torch.autocast("cuda", dtype=torch.bfloat16):  # error: TPF804
        return torch.cuda.make_graphed_callables(model, (x, 0.5))  # error: TPF804


def several(first: nn.Module, second: nn.Module, x: torch.Tensor):
    scale = 2
    return torch.cuda.make_graphed_callables(
        (first, second),
        sample_args=(
            (x, None),  # error: TPF804
            (x, {"scale": scale, "mode": x}),  # error: TPF804
        ),
    )


def attend(x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    return x if mask is None else x * mask


def by_keyword(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    fast = torch.cuda.make_graphed_callables(attend, (x,))
    return fast(x, mask=mask)  # error: TPF804


class Kept:
    def __init__(self, model: nn.Module, x: torch.Tensor):
        self.fast = torch.cuda.make_graphed_callables(model, (x,))

    def run(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.fast(x, mask=mask)  # error: TPF804


def under_its_own_name(loader, causal: torch.Tensor) -> None:
    block = nn.TransformerEncoderLayer(512, 8).cuda()
    sample = torch.randn(8, 512, 512, device="cuda")
    block(sample, src_mask=causal)
    block = torch.cuda.make_graphed_callables(block, (sample,))
    for x in loader:
        block(x.cuda(), src_mask=causal).mean().backward()  # error: TPF804


class Rebound(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.TransformerEncoderLayer(512, 8)

    def capture(self, sample: torch.Tensor) -> None:
        self.block = torch.cuda.make_graphed_callables(self.block, (sample,))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.block(x, src_mask=mask)  # error: TPF804


def made_elsewhere(x: torch.Tensor) -> dict:
    pair = torch.cuda.make_graphed_callables((attend, attend), ((x,), (x,)))
    return {"first": pair[0], "second": pair[1]}


def of_a_dict(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return made_elsewhere(x)["first"](x, mask=mask)  # error: TPF804


# Look-alikes


def by_position(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    fast = torch.cuda.make_graphed_callables(attend, (x, mask))
    return fast(x, mask)


def one_of_two(x: torch.Tensor, mask: torch.Tensor, graphs: bool) -> torch.Tensor:
    fast = attend
    if graphs:
        fast = torch.cuda.make_graphed_callables(attend, (x,))
    return fast(x, mask=mask)


def elsewhere(fast, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return fast(x, mask=mask)


def tensors(model: nn.Module, x: torch.Tensor):
    return torch.cuda.make_graphed_callables(model, (x, {"mask": x > 0}, [x, x]))


def without_cache(model: nn.Module, x: torch.Tensor):
    with torch.autocast("cuda", cache_enabled=False):
        return torch.cuda.make_graphed_callables(model, (x,))


def under_a_switch(model: nn.Module, x: torch.Tensor, use_amp: bool):
    with torch.autocast("cuda", enabled=use_amp):
        return torch.cuda.make_graphed_callables(model, (x,))


def unknown(model: nn.Module, samples, **options):
    torch.cuda.make_graphed_callables(model, samples)
    return torch.cuda.make_graphed_callables(model, **options)


def warmed(model: nn.Module, x: torch.Tensor):
    return torch.cuda.make_graphed_callables(model, (x,), num_warmup_iters=11, allow_unused_input=True)


def autocast_elsewhere(model: nn.Module, x: torch.Tensor):
    with torch.autocast("cuda"):
        model(x)
    return torch.cuda.make_graphed_callables(model, (x,))


shared = torch.cuda.make_graphed_callables(attend, (torch.zeros(3, device="cuda"),))


def of_the_file(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return shared(x, mask=mask)  # error: TPF804


def of_its_own(shared, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return shared(x, mask=mask)


replaced = torch.cuda.make_graphed_callables(attend, (torch.zeros(3, device="cuda"),))


def replaces() -> None:
    global replaced
    replaced = attend


def either(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return replaced(x, mask=mask)
