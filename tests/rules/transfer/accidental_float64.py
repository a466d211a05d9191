"""Arrays by the precision that they bring to the device."""

import numpy as np
import torch


def noise(n: int) -> torch.Tensor:
    return torch.from_numpy(np.random.randn(n, n)).cuda()  # audit: TPF209


class Positions(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = torch.tensor(np.linspace(0, 1, 8) * 2, device=x.device)  # audit: TPF209
        weights = torch.from_numpy(np.random.uniform(0, 1, size=8)).unsqueeze(0).to(x.device)  # audit: TPF209
        return x + steps * weights


def table(device: torch.device) -> torch.Tensor:
    return torch.as_tensor(np.zeros((4, 4))).to(device=device)  # audit: TPF209


def cast_on_the_way(n: int, device: torch.device) -> list[torch.Tensor]:
    return [
        torch.from_numpy(np.random.randn(n)).float().cuda(),
        torch.from_numpy(np.random.randn(n).astype(np.float32)).cuda(),
        torch.tensor(np.random.randn(n), dtype=torch.float32, device=device),
        torch.tensor(np.random.randn(n)).to(device, torch.float32),
        torch.tensor(np.random.randn(n), device=device).float(),
    ]


def other_types(device: torch.device) -> list[torch.Tensor]:
    return [
        torch.from_numpy(np.zeros(3, dtype=np.float32)).to(device),
        torch.from_numpy(np.zeros(3, np.int64)).to(device),
        torch.from_numpy(np.arange(3)).to(device),
        torch.tensor(np.random.randint(0, 3, size=4), device=device),
    ]


def meant(device: torch.device) -> torch.Tensor:
    return torch.tensor(np.linspace(0, 1, 8), dtype=torch.float64, device=device)


def on_the_host(n: int) -> torch.Tensor:
    return torch.from_numpy(np.random.randn(n)).unsqueeze(0)


def like_another(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.random.randn(3)).to(x)


def of_a_number() -> torch.Tensor:
    return torch.tensor(np.random.uniform(), device="cuda")


def unknown(array, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(array).to(device)


class Waves(torch.utils.data.Dataset):
    def __init__(self, waves: np.ndarray):
        self.waves = waves.astype(np.float32)

    def __getitem__(self, index: int) -> torch.Tensor:
        noise = np.random.normal(size=self.waves.shape[1])
        return torch.from_numpy(self.waves[index] + noise)  # audit: TPF209


def train_on_waves(flow: torch.nn.Module, waves: np.ndarray) -> None:
    for x in torch.utils.data.DataLoader(Waves(waves), batch_size=64, pin_memory=True):
        flow(x.cuda(non_blocking=True).abs()).mean().backward()


class Labelled(torch.utils.data.Dataset):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(np.random.normal(size=100)), index


def cast_with_the_move(flow: torch.nn.Module, device: torch.device) -> None:
    for x, _ in torch.utils.data.DataLoader(Labelled(), batch_size=64):
        flow(x.to(device, torch.float32)).mean().backward()


class Kept(torch.utils.data.Dataset):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(np.random.normal(size=100))


def batches_on_the_host(flow: torch.nn.Module) -> None:
    for x in torch.utils.data.DataLoader(Kept(), batch_size=64):
        flow(x).mean().backward()


def named_first(flow: torch.nn.Module, device: torch.device) -> torch.Tensor:
    scale = np.linspace(0, 1, 8)
    return flow(torch.as_tensor(scale).to(device))  # audit: TPF209
