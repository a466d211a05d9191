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
