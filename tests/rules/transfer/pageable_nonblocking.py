import numpy as np
import torch


def send(values: np.ndarray, numbers: list[float], device: torch.device):
    first = torch.from_numpy(values).to(device, non_blocking=True)  # error: TPF202
    second = torch.tensor(numbers).cuda(non_blocking=True)  # error: TPF202
    third = torch.zeros(1000).to("cuda", non_blocking=True)  # error: TPF202
    fourth = torch.as_tensor(values).float().to(device="cuda", non_blocking=True)  # error: TPF202
    return first, second, third, fourth


# Look-alikes.


def pinned(size: int):
    return torch.empty(size, pin_memory=True).to("cuda", non_blocking=True)


def pinned_now(values: np.ndarray):
    return torch.from_numpy(values).pin_memory().to("cuda", non_blocking=True)


def given(x: torch.Tensor, non_blocking: bool):
    return x.to("cuda", non_blocking=True), torch.zeros(3).to("cuda", non_blocking=non_blocking)


def blocking(values: np.ndarray):
    return torch.from_numpy(values).to("cuda"), torch.from_numpy(values).cuda(non_blocking=False)


def on_device():
    return torch.zeros(3, device="cuda").to("cuda:1", non_blocking=True)


def stays(values: np.ndarray):
    return torch.from_numpy(values).to("cpu", non_blocking=True), torch.zeros(3).to(torch.float16, non_blocking=True)


def batches(dataset):
    for images in torch.utils.data.DataLoader(dataset, pin_memory=True):
        yield images.to("cuda", non_blocking=True)


def nothing_to_copy():
    return torch.tensor([]).to("cuda", non_blocking=True)
