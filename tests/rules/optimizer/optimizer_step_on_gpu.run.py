import io

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def trained():
    """A model, its optimizer after two steps, and a file with both."""
    model = torch.nn.Linear(3, 2).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    step(model, optimizer)
    step(model, optimizer)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, file)
    file.seek(0)
    return model, file


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(4, 3, device=DEVICE)).square().sum().backward()
    optimizer.step()


def case_both():
    _, file = trained()
    model = torch.nn.Linear(3, 2).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    checkpoint = torch.load(file, map_location=DEVICE)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    step(model, optimizer)
    return model


def case_at_once():
    model, file = trained()
    state = io.BytesIO()
    torch.save(torch.load(file)["optimizer"], state)
    state.seek(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    optimizer.load_state_dict(torch.load(state, map_location=DEVICE))
    step(model, optimizer)
    return model


def kept_where_more_is_read():
    model, file = trained()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    checkpoint = torch.load(file, map_location=DEVICE)
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["model"]


class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))
        self.scale = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.layers(x) * self.scale


def case_own_class():
    first = Net(4).to(DEVICE)
    optimizer = torch.optim.Adam(first.parameters(), lr=0.1)
    step(first, optimizer)
    file = io.BytesIO()
    torch.save({"model": first.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    model = Net(4).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    checkpoint = torch.load(file, map_location=DEVICE)
    model.load_state_dict(checkpoint["model"], strict=False)
    optimizer.load_state_dict(checkpoint["optimizer"])
    step(model, optimizer)
    return model


def kept_where_what_is_loaded_is_assigned():
    _, file = trained()
    model = torch.nn.Linear(3, 2).to(DEVICE)
    checkpoint = torch.load(file, map_location=DEVICE)
    model.load_state_dict(checkpoint["model"], True, True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    optimizer.load_state_dict(checkpoint["optimizer"])
    return model


def kept_where_a_closure_reads_more():
    model, file = trained()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    checkpoint = torch.load(file, map_location=DEVICE)
    optimizer.load_state_dict(checkpoint["optimizer"])
    return lambda: checkpoint["model"]


def kept_where_the_checkpoint_is_global():
    global CHECKPOINT
    model, file = trained()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    CHECKPOINT = torch.load(file, map_location=DEVICE)
    optimizer.load_state_dict(CHECKPOINT["optimizer"])
    return model


def kept_where_a_class_is_not_in_sight(model: torch.nn.Module, file):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    checkpoint = torch.load(file, map_location=DEVICE)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return model


class Wrapped(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner


def kept_where_a_part_is_not_in_sight(inner, file):
    model = Wrapped(inner)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    checkpoint = torch.load(file, map_location=DEVICE)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return model
