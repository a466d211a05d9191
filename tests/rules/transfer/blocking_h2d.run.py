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


def case_pinned_batches_of_an_iterator():
    loader = DataLoader(TensorDataset(torch.arange(12.0)), batch_size=4, pin_memory=True)
    sums = []
    for count, (part,) in enumerate(iter(loader)):
        sums.append(part.to(DEVICE).sum() * count)
    return sums


def kept_where_an_iterator_calls_a_function(dataset):
    sums = []
    batches = list(DataLoader(dataset, pin_memory=True))
    for (part,) in iter(batches.pop, None):
        sums.append(part.to(DEVICE).sum())
    return sums


def kept_where_the_host_writes_again(dataset):
    total = torch.zeros(()).to(DEVICE)
    for images, _ in DataLoader(dataset, pin_memory=True):
        total = total + images.to(DEVICE).sum()
        images.zero_()
    return total


def collated(items):
    return {"x": torch.stack([item[0] for item in items]), "y": torch.stack([item[1] for item in items])}


def case_lists_and_dicts(pins: bool = True):
    sums = []
    dataset = TensorDataset(torch.randn(8, 3), torch.arange(8))
    for batch in DataLoader(dataset, batch_size=4, collate_fn=collated, pin_memory=pins):
        batch = {name: value.to(DEVICE) for name, value in batch.items()}
        sums.append((batch["x"].sum(), batch["y"].sum()))
    for images, numbers in DataLoader(dataset, batch_size=4, pin_memory=pins):
        rows = [image.to(DEVICE) for image in images]
        sums.append((numbers.to(DEVICE).sum(), sum(row.sum() for row in rows)))
    return sums


def kept_where_a_part_is_written_by_another_name(dataset):
    total = torch.zeros(()).to(DEVICE)
    for batch in DataLoader(dataset, pin_memory=True):
        moved = {k: v.to(DEVICE) for k, v in batch.items()}
        zeros = [v.zero_() for k, v in batch.items()]
        total = total + moved["x"].sum() + len(zeros)
    for images in DataLoader(dataset, pin_memory=True):
        moved = [image.to(DEVICE) for image in images]
        held = [image for image in images]
        held[0].zero_()
        total = total + moved[0].sum()
    return total


def kept_where_nothing_is_pinned(dataset):
    return [images.to(DEVICE) for images, _ in DataLoader(dataset)]


def kept_where_nothing_is_to_be_pinned(dataset):
    total = 0
    for images, _ in DataLoader(dataset, pin_memory=False):
        total = total + images.to(DEVICE).sum()
    return total


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


def mean_of(x):
    return x.float().mean().item()


def case_helpers_that_read():
    means = []
    dataset = TensorDataset(torch.arange(12.0), torch.arange(12))
    for step, batch in enumerate(DataLoader(dataset, batch_size=4, pin_memory=True)):
        if step == 1:
            continue
        x = batch[0].to(DEVICE)
        means.append((mean_of(batch[1]), x.sum().item(), len(batch[0])))
        x.zero_()
    return means


def scramble(x):
    x.zero_()


def kept_where_a_helper_writes(dataset):
    total = torch.zeros(()).to(DEVICE)
    for (images,) in DataLoader(dataset, pin_memory=True):
        total = total + images.to(DEVICE).sum()
        scramble(images)
    return total


def kept_where_unknown_code_may_write(dataset, scrambles):
    total = torch.zeros(()).to(DEVICE)
    for (images,) in DataLoader(dataset, pin_memory=True):
        total = total + images.to(DEVICE).sum()
        scrambles(images)
    return total


def kept_where_a_container_holds_it(dataset):
    total = torch.zeros(()).to(DEVICE)
    for (images,) in DataLoader(dataset, pin_memory=True):
        total = total + images.to(DEVICE).sum()
        held = [images]
        held[0].zero_()
    return total


def kept_where_it_outlives_the_loop(dataset):
    kept = []
    total = torch.zeros(()).to(DEVICE)
    for (images,) in DataLoader(dataset, pin_memory=True):
        total = total + images.to(DEVICE).sum()
        kept.append(images)
    kept[-1].zero_()
    return total


def kept_where_the_consumer_may_write(dataset):
    for (images,) in DataLoader(dataset, pin_memory=True):
        yield images, images.to(DEVICE)


def kept_where_a_method_writes(dataset):
    class Mixed:
        def mix(self, x):
            x[0] = 0

        def total(self):
            total = torch.zeros(()).to(DEVICE)
            for (images,) in DataLoader(dataset, pin_memory=True):
                total = total + images.to(DEVICE).sum()
                self.mix(images)
            return total

    return Mixed().total()


class Filtered(DataLoader):
    def __iter__(self):
        for (images,) in super().__iter__():
            yield (images[images > 0],)


def kept_where_the_loader_makes_other_tensors(dataset):
    total = 0
    for (images,) in Filtered(dataset, pin_memory=True):
        total = total + images.to(DEVICE).sum()
    return total


class Nested:
    def __init__(self, items):
        self.tensors = torch.stack([item[0] for item in items])

    def to(self, device):
        return self.tensors.to(device)


def kept_where_batches_have_methods_of_their_own(dataset):
    total = 0.0
    for batch in DataLoader(dataset, batch_size=4, collate_fn=Nested, pin_memory=True):
        batch = batch.to(DEVICE)
        total = total + batch.sum()
    return total
