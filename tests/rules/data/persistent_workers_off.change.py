"""Workers that are started for each epoch, and workers that stay."""

import torch
from torch.utils.data import DataLoader

ON_A_GPU = False


class Data:
    def __init__(self):
        self.epoch = 0

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.tensor([float(self.epoch), float(index), torch.rand(()).item()])


def case_epochs():
    data = Data()
    loader = DataLoader(data, num_workers=1, multiprocessing_context="fork")
    found = []
    for epoch in range(2):
        data.epoch = epoch
        for x in loader:
            found.append(x[0])
    epochs, indices, drawn = torch.stack(found).T
    return {"seen": epochs.tolist(), "indices": indices.tolist(), "first": drawn[:2], "later": drawn[2:]}


def change_epochs(seen, later, random):
    """workers keep their copy of the data set and their random state, so that the random numbers drawn in them differ from the second epoch on … The process itself draws one number less in each of these epochs"""
    assert seen == ([0, 0, 1, 1], [0, 0, 0, 0])
