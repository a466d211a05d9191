import torch


def send(x: torch.Tensor, device: torch.device):
    first = x.pin_memory().to("cuda", non_blocking=True)  # audit: TPF203
    second = x.float().pin_memory().to(device, non_blocking=True)  # audit: TPF203
    third = x.cpu().pin_memory().cuda(non_blocking=True)  # audit: TPF203
    return first, second, third


# Look-alikes.


def plain(x: torch.Tensor):
    return x.to("cuda", non_blocking=True), x.cuda()


class Buffer:
    def __init__(self, size: int):
        self.pinned = torch.empty(size).pin_memory()

    def send(self, x: torch.Tensor):
        self.pinned.copy_(x)
        return self.pinned.to("cuda", non_blocking=True)


def allocated(size: int):
    return torch.empty(size, pin_memory=True).to("cuda", non_blocking=True)


def kept(x: torch.Tensor):
    return x.pin_memory()


def stays(x: torch.Tensor):
    return x.pin_memory().to("cpu"), x.pin_memory().to(torch.float16)


def in_the_loader(dataset):
    return torch.utils.data.DataLoader(dataset, pin_memory=True)
