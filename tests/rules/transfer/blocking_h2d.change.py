"""Loaders that pin their batches from now on."""

import torch
from torch.utils.data import DataLoader, TensorDataset

DEVICE = torch.device("cuda")


def epoch(model, loader, optimizer, pinned):
    losses = []
    for images, targets in loader:
        pinned.append(images.is_pinned())
        loss = (model(images.to(DEVICE)) - targets.to(DEVICE)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def case_batches():
    model = torch.nn.Linear(6, 2).to(DEVICE)
    loader = DataLoader(TensorDataset(torch.randn(8, 6), torch.randn(8, 2)), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pinned = []
    losses = [epoch(model, loader, optimizer, pinned) for _ in range(2)]
    return {"model": model, "losses": losses, "pinned": pinned}


def change_batches(pinned):
    """into pages that the system cannot swap"""
    assert pinned == ([False] * 4, [True] * 4)


def collate(items):
    return {"x": torch.stack([item[0] for item in items]), "y": torch.stack([item[1] for item in items])}


def case_parts_of_batches():
    sums = []
    for batch in DataLoader(TensorDataset(torch.arange(8.0), torch.arange(8)), batch_size=4, collate_fn=collate):
        batch = {name: value.to(DEVICE) for name, value in batch.items()}
        sums.append(batch["x"].sum() + batch["y"].sum())
    return {"sums": sums}


class Embedded(torch.nn.Module):
    def forward(self, steps: torch.Tensor, size: int, beams: int):
        table = torch.exp(torch.arange(size, dtype=torch.float32) * -0.1)
        table = table.to(steps.device)
        start = (torch.ones(beams) * 0.5).to(steps.device)
        offsets = (torch.arange(0, size) * beams).unsqueeze(1).type_as(steps)
        return table[None] * steps[:, None], start, offsets, (torch.arange(3) + 1).cuda().float()


def case_computed():
    return {"made": Embedded()(torch.arange(3.0).to(DEVICE), 4, 2)}


def change_computed(waits):
    """`(torch.arange(n) * 2).to(x.device)` becomes `torch.arange(n, device=x.device) * 2`"""
    assert waits[1] < waits[0]


def kept_where_a_file_may_hold_tensors_of_the_gpu(path):
    sums = []
    for x in DataLoader(torch.load(path, map_location=DEVICE), batch_size=4):
        sums.append(x.to("cuda").sum())
    data = torch.load(path)
    for x in DataLoader(data, batch_size=4):
        sums.append(x.to("cuda").sum())
    return sums
