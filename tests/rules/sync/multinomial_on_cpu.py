import torch
import torch as th
import torch.nn.functional as F
from torch import multinomial, nn


@torch.inference_mode()
def generate(model: nn.Module, ids: torch.Tensor, device: str, count: int):
    for _ in range(count):
        p = model(ids)[:, -1].softmax(-1)
        token = torch.multinomial(p.cpu(), num_samples=1).to(device)  # error: TPF134
        ids = torch.cat([ids, token], dim=1)
    return ids


class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 100)

    def forward(self, x: torch.Tensor, temperature: float):
        logits = self.head(x)
        p = F.softmax(logits / temperature, dim=-1)
        first = th.multinomial(p.to("cpu"), 1).squeeze(1).to(x.device)  # error: TPF134
        second = p.cpu().multinomial(1, replacement=True).cuda()  # error: TPF134
        third = multinomial((p + 1e-6).cpu(), 4).to(device="cuda", non_blocking=True)  # error: TPF134
        fourth = (  # keep
            torch.multinomial(p.detach().cpu(), 1)  # error: TPF134
            .view(-1)
            .to(x)
        )
        return first, second, third, fourth


# Look-alikes.


class OnDevice(nn.Module):
    def forward(self, p: torch.Tensor):
        return torch.multinomial(p, 1), p.multinomial(2), torch.multinomial(p.float(), 1).to(p.device)


class WithGenerator(nn.Module):
    """Numbers that are to be the same on every machine."""

    def forward(self, p: torch.Tensor, generator: torch.Generator):
        return torch.multinomial(p.cpu(), 1, generator=generator).to(p.device)


class ForTheHost(nn.Module):
    def forward(self, p: torch.Tensor):
        return torch.multinomial(p.cpu(), 1).item(), torch.multinomial(p.cpu(), 1)


def on_host(weights: list[float], device: str):
    p = torch.tensor(weights)
    return torch.multinomial(p, 4).to(device), torch.multinomial(torch.ones(8).cpu(), 2).to(device)


def arrays(rng, p, device):
    return torch.from_numpy(rng.multinomial(1, p.cpu())).to(device)


def other_draws(x: torch.Tensor):
    return torch.bernoulli(x.cpu()).to(x.device), torch.topk(x.cpu(), 1).values.to(x.device)


def where_it_is_missing(x: torch.Tensor):
    if x.device.type == "mps":
        return torch.multinomial(x.cpu(), 1).to(x.device)
    return torch.multinomial(x, 1)


def to_itself(x: torch.Tensor):
    return torch.multinomial(x.cpu(), 1).to("cpu"), torch.multinomial(x.cpu(), 1).to(torch.int32)
