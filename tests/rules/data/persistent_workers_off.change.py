"""Workers that are started for each epoch, and workers that stay."""

import torch
from torch.utils.data import DataLoader

ON_A_GPU = False


class Data:
    def __init__(self, settings):
        self.settings = settings

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.tensor([float(self.settings["epoch"]), float(index), torch.rand(()).item()])


def case_epochs():
    settings = {"epoch": 0}
    data = Data(settings)
    loader = DataLoader(data, num_workers=1, multiprocessing_context="fork")
    found = []
    for epoch in range(2):
        settings["epoch"] = epoch
        for x in loader:
            found.append(x[0])
    epochs, indices, drawn = torch.stack(found).T
    return {"seen": epochs.tolist(), "indices": indices.tolist(), "first": drawn[:2], "later": drawn[2:]}


def change_epochs(seen, later, random):
    """workers keep their copy of the data set and their random state, so that the random numbers drawn in them differ from the second epoch on, and changes of the data set do not reach them … The process itself draws one number less in each of these epochs"""
    assert seen == ([0, 0, 1, 1], [0, 0, 0, 0])


def kept_where_the_data_set_is_used():
    data = Data({"epoch": 0})
    loader = DataLoader(data, num_workers=1, multiprocessing_context="fork")
    for epoch in range(2):
        data.settings = {"epoch": epoch}
        for x in loader:
            print(x)
