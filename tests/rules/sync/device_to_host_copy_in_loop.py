"""Copying device tensors to the host."""

import numpy as np
import torch
import wandb
from safetensors.torch import save_file
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.tensorboard import SummaryWriter
from torchvision import transforms
from torchvision.transforms.functional import to_pil_image
from torchvision.utils import make_grid, save_image


def predict(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    outputs = []
    with torch.no_grad():
        for x, _ in loader:
            y = model(x.cuda())
            outputs.append(y.cpu())  # error: TPF109
    return torch.cat(outputs)


def predict_classes(model: nn.Module, loader: DataLoader) -> torch.Tensor:
    classes = []
    for x, _ in loader:
        y = model(x.cuda()).view(-1, 10)
        classes.append(y.argmax(dim=1).cpu())  # error: TPF109
    return torch.cat(classes)


def predict_arrays(model: nn.Module, loader: DataLoader) -> list[np.ndarray]:
    outputs = []
    for x, _ in loader:
        y = model(x.cuda()).detach()
        outputs.append(y.to("cpu").numpy())  # error: TPF109
        outputs.append(y.numpy(force=True))  # error: TPF109
        outputs.append(np.array(y.softmax(dim=-1).tolist()))  # error: TPF109
    return outputs


def predict_into(model: nn.Module, loader: DataLoader, width: int) -> torch.Tensor:
    host = torch.zeros(8, width)
    device = torch.device("cpu")
    for x, _ in loader:
        y = model(x.cuda())
        host.copy_(y)  # error: TPF109
        z = y.to(device=device, dtype=torch.float32)  # error: TPF109
        host += z
    return host


def at_once(outputs: torch.Tensor) -> torch.Tensor:
    return outputs.cuda().cpu()  # audit: TPF109


def in_chunks(x: torch.Tensor, queries: torch.Tensor) -> list[tuple[float, int]]:
    found = []
    for query in queries.split(64):
        values, indices = torch.topk(query @ x.T, 5)
        scores = values.cpu().tolist()  # audit: TPF109
        places = indices.cpu().tolist()  # audit: TPF109
        first = indices[0].tolist()  # audit: TPF109
        for row, score in enumerate(scores):
            found += zip(score, places[row], strict=True)
        found.append((0.0, first[0]))
    return found


class Window:
    def __init__(self, length: int):
        self.memory = None
        self.length = length

    def append(self, x):
        if self.memory is None:
            self.memory = torch.zeros(self.length, *x.shape)
        if self.memory.device != x.device:
            x = x.to(self.memory)  # audit: TPF109
        self.memory[0] = x.detach()


def of_unknown_callers(x: torch.Tensor, n: int) -> list[float]:
    found = []
    for i in range(n):
        found.append(x[i].cpu())  # error: TPF109
        found.append((x * i).cpu())  # audit: TPF109
        found.append((x.cuda() * i).cpu())  # error: TPF109
    return found


def of_the_same_tensor(mask: torch.Tensor, grown: torch.Tensor, n: int) -> list[list[float]]:
    found = []
    for i in range(n):
        found.append(mask.sum(dim=1).tolist())  # error: TPF109
        found.append(mask.sum(dim=i).tolist())  # audit: TPF109
        grown[i] = 1
        found.append(grown.sum(dim=1).tolist())  # audit: TPF109
    return found


def by_rows(model: nn.Module, loader: DataLoader) -> list[np.ndarray]:
    rows = []
    for x, _ in loader:
        y = model(x.cuda())
        for i in range(len(y)):
            rows.append(y[i].cpu().numpy() + 1)  # error: TPF109
        for row in y.unbind():
            rows.append(row.detach().cpu().numpy() + 1)  # error: TPF109
        for i, row in enumerate(y):
            row = row[row > i]
            rows.append(np.sort(row.cpu().numpy()))  # error: TPF109
    return rows


class Stated(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = {"count": torch.zeros(3)}

    def forward(self, x: torch.Tensor, other) -> None:
        self.state["count"].copy_(x.sum(0))  # error: TPF109
        kept = self.state["count"] if len(x) else other.moment
        kept.copy_(x.sum(0))  # audit: TPF109


class Assigned(nn.Module):
    def forward(self, x: torch.Tensor, device=torch.device("cpu")) -> torch.Tensor:  # noqa: B008
        return x.detach().to(device)  # audit: TPF109


def writes(model: nn.Module, optimizer: torch.optim.Optimizer, writer: SummaryWriter, paths: list[str]) -> None:
    x = torch.rand(8, 3, 16, 16, device="cuda")
    torch.save(model.state_dict(), paths[0])  # audit: TPF109
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, paths[1])  # audit: TPF109
    torch.save(model, paths[2])  # audit: TPF109
    torch.save({"models": [model.state_dict()]}, paths[3])  # audit: TPF109
    save_file({"x": x}, paths[4])  # audit: TPF109
    save_image(x, paths[5])  # audit: TPF109
    to_pil_image(x[0])  # audit: TPF109
    transforms.ToPILImage()(make_grid(x))  # audit: TPF109
    writer.add_image("x", x[0], 0)  # audit: TPF109
    wandb.log({"x": wandb.Image(x[0])})  # audit: TPF109


# Look-alikes


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(8, 8)


def first_checkpoint(path: str) -> None:
    net = Net()
    state = {"net": net.state_dict(), "epoch": 0}
    torch.save(state, path)
    torch.save(net.state_dict(), path)
    net = Net().cuda()
    net.part(torch.zeros(8, 8, device="cuda"))


def trained_checkpoint(path: str, loader: DataLoader) -> None:
    net = Net()
    fit(net, loader)
    torch.save(net.state_dict(), path)  # audit: TPF109


def fit(net: Net, loader: DataLoader) -> None:
    net.cuda()
    for x in loader:
        net.part(x.cuda(non_blocking=True))


def writes_from_the_host(model: nn.Module, writer: SummaryWriter, path: str, options: dict[str, int]) -> None:
    x = torch.rand(8, 3, 16, 16)
    torch.save({"x": x, "options": options}, path)
    torch.save({"epoch": 3, "names": ["a"]}, path)
    torch.save(options, path)
    save_image(x, path)
    transforms.ToPILImage()(make_grid(x))
    writer.add_image("x", x[0], 0)
    wandb.log({"x": wandb.Image(path)})
    model.load_state_dict(torch.load(path, map_location="cpu"))


def host_already(values: np.ndarray) -> list[float]:
    x = torch.from_numpy(values)
    return x.cpu().numpy().tolist() + x.to("cpu").tolist()


def arrays(values: np.ndarray) -> list[float]:
    return values.tolist()


def to_the_device(x: torch.Tensor) -> torch.Tensor:
    return x.to("cuda")


def casts(x: torch.Tensor) -> torch.Tensor:
    return x.cuda().to(torch.float16).type(torch.float32)


def without_waiting(x: torch.Tensor) -> torch.Tensor:
    return x.cuda().to("cpu", non_blocking=True)


def raises_on_the_device(x: torch.Tensor) -> np.ndarray:
    return x.numpy()


def modules(model: nn.Module) -> nn.Module:
    return model.cpu()


class Activated(nn.Module):
    def forward(self, x: torch.Tensor, activation=None) -> float:
        if activation is not None:
            x = activation(x)
        return x.detach().cpu().sum()  # error: TPF109


class Selected(nn.Module):
    def forward(self, prompts, masks) -> list[list[int]]:
        """One copy of all before a loop on the host."""
        return [p[m].tolist() for p, m in zip(prompts.cpu(), masks.bool().cpu())]  # audit: TPF109


def predict_into_rows(model: nn.Module, loader: DataLoader, width: int) -> torch.Tensor:
    rows = torch.zeros(len(loader), width)
    there = torch.zeros(len(loader), width, device="cuda")
    for index, x in enumerate(loader):
        y = model(x.cuda())
        rows[index] = y  # error: TPF109
        rows[index, : width // 2] = y.mean(dim=0)  # error: TPF109
        there[index] = y
    return rows, there


def fill_rows(parts: list[torch.Tensor], given: torch.Tensor, table, width: int):
    rows = torch.zeros(len(parts), width)
    for index, part in enumerate(parts):
        rows[index] = torch.arange(width)
        rows[index, 0] = 1.0
        given[index] = part
        table[index] = part.cuda()
        rows[index] += 1
    return rows


def collate(items: list[tuple[torch.Tensor, int]]) -> torch.Tensor:
    rows = torch.zeros(len(items), 80)
    for index, (row, _) in enumerate(items):
        rows[index, : len(row)] = row
    return rows


class Assembled(nn.Module):
    """A table that is filled while the module is made, on the CPU."""

    def __init__(self, part: nn.Linear):
        super().__init__()
        table = torch.zeros(2, 8)
        table[0] = part.weight[0]
        self.register_buffer("table", table)


def added_up(model, loader):
    """A sum that nothing in the loop reads may stay on the GPU."""
    total = torch.zeros(16)
    for x, _ in loader:
        total += model(x.cuda()).mean(dim=0).cpu()  # error: TPF109
    return total


def added_up_and_shown(model, loader):
    total = torch.zeros(16)
    for x, _ in loader:
        total += model(x.cuda()).mean(dim=0).cpu()  # error: TPF109
        print(total)


def same_part_in_each_turn(model, loader, boxes, classes):
    for x in loader:
        found = boxes(model(x.cuda()))
        for one in classes:
            print((found[:, -1].cpu() == one).sum())  # error: TPF109


def of_tuple_or_tensor(loader, made):
    kept = []
    model = made.cuda()
    with torch.no_grad():
        for x, y in loader:
            output = model(x.cuda())
            if isinstance(output, tuple):
                output, other = output
            kept.append(output.cpu())  # error: TPF109
            if isinstance(y, tuple):
                y = y[0]
            kept.append(y.cpu())
    return kept
