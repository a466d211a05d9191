import torch
from torch.utils.data import DataLoader, TensorDataset

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def case_pinned_batches():
    model = torch.nn.Linear(6, 2).to(DEVICE)
    loader = DataLoader(TensorDataset(torch.randn(12, 6), torch.randn(12, 2)), batch_size=4, pin_memory=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for images, targets in loader:
        images = images.to(DEVICE)
        loss = (model(images) - targets.to(DEVICE)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return model, losses


def kept_where_the_host_writes_again(dataset):
    total = torch.zeros(()).to(DEVICE)
    for images, _ in DataLoader(dataset, pin_memory=True):
        total = total + images.to(DEVICE).sum()
        images.zero_()
    return total


def kept_where_nothing_is_pinned(dataset):
    return [images.to(DEVICE) for images, _ in DataLoader(dataset)]


def kept_where_the_host_writes_by_another_name(dataset):
    total = torch.zeros(()).to(DEVICE)
    for (images,) in DataLoader(dataset, pin_memory=True):
        rows = images.view(-1)
        total = total + images.to(DEVICE).sum()
        rows.zero_()
    for (images,) in DataLoader(dataset, pin_memory=True):
        total = total + images.to(DEVICE).sum()
        images.numpy()[0] = 1
    for (images,) in DataLoader(dataset, pin_memory=True):
        total = total + images.to(DEVICE).sum()
        torch.add(images, 1, out=images)
    return total
