"""Copies with non_blocking=True: those of memory that is not pinned say `# pageable`."""

import numpy
import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Move(nn.Module):
    def forward(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: value.to(DEVICE, non_blocking=True) for name, value in batch.items()}  # pageable


def main() -> None:
    torch.manual_seed(0)
    plain = torch.randn(256, 256)
    pinned = plain.pin_memory() if DEVICE == "cuda" else plain
    target = torch.empty(256, 256, device=DEVICE)
    back = torch.empty(256, 256)
    back_pinned = back.pin_memory() if DEVICE == "cuda" else back
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1, device=DEVICE))], lr=0.1)
    data = torch.utils.data.TensorDataset(plain)
    for _ in range(4):
        plain.to(DEVICE, non_blocking=True)  # pageable
        plain.to(DEVICE, torch.float16, True)  # pageable
        plain.to(target, non_blocking=True)  # pageable
        pinned.to(DEVICE, non_blocking=True)
        plain.to(DEVICE)
        target.copy_(plain, non_blocking=True)  # pageable
        target.copy_(plain, True)  # pageable
        target.copy_(pinned, non_blocking=True)
        # torch pins what it makes here (`pin_out` of `_to_copy`).
        target.to("cpu", non_blocking=True)
        back.copy_(target, non_blocking=True)  # pageable
        back_pinned.copy_(target, non_blocking=True)
        target.to(DEVICE, non_blocking=True)
        torch.from_numpy(numpy.ones((4, 4))).to(DEVICE, non_blocking=True)  # pageable
        pinned[:, :3].clone().to(DEVICE, non_blocking=True)  # pageable
        pinned[2:].to(DEVICE, non_blocking=True)
        Move()({"x": plain, "y": plain})
        if DEVICE == "cuda":
            plain.cuda(non_blocking=True)  # pageable
            plain.cuda(torch.device("cuda"), True)  # pageable
            pinned.cuda(non_blocking=True)
        optimizer.step()
    for pins in (False, True):
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=64, pin_memory=pins and DEVICE == "cuda"):
            if pins:
                batch.to(DEVICE, non_blocking=True)
            else:
                batch.to(DEVICE, non_blocking=True)  # pageable


if __name__ == "__main__":
    main()
