"""Makes each fact about loaders and their copies happen.

Trace it with `perflint trace --warmup 0 --steps 0`: each line with a comment `# fact: NAME` has an observation of NAME.
The loader that gives tensors on the GPU comes early: on a GPU, no calls are watched in the steps that are profiled.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

device = "cuda"


class Rows(Dataset):
    def __init__(self, place: str = "cpu") -> None:
        self.place = place

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> torch.Tensor:
        row = torch.full((64,), float(index))  # fact: item.on-host
        return row.to(self.place)  # fact: item.to-gpu


def padded(rows: list[torch.Tensor]) -> torch.Tensor:
    cut = [row[: 32 + 8 * at] for at, row in enumerate(rows)]
    return functional_pad(pad_sequence(cut, batch_first=True))  # fact: padding.sequences


def functional_pad(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.pad(x, (0, 64 - x.shape[1]))


model = nn.Linear(64, 64).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train(loader: DataLoader) -> None:
    for x in loader:
        model(x.to(device, non_blocking=True)).sum().backward()  # facts: upload.pageable, upload.pinned, upload.none
        optimizer.step()
        optimizer.zero_grad()


alone = DataLoader(Rows(), 4)  # facts: loader.new, no-workers, first-batch, batch, pageable, smaller-batch
pinned = DataLoader(Rows(), 5, pin_memory=True)  # facts: loader.pinned, even-batches
workers = DataLoader(Rows(), 5, num_workers=2)  # facts: loader.workers-started, again
kept = DataLoader(Rows(), 5, num_workers=2, persistent_workers=True)  # fact: loader.workers-kept
placed = DataLoader(Rows(device), 5)  # fact: loader.on-gpu
cut = DataLoader(Rows(), 4, collate_fn=padded)
for each in (alone, placed, pinned, workers, workers, kept, kept, cut):
    train(each)
rows = torch.ones(64, 64)
ready = rows.pin_memory()  # fact: pin.copied
again = ready.pin_memory()  # fact: pin.same
