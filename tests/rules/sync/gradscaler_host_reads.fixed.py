import torch
from sklearn.preprocessing import StandardScaler
from torch import autocast
from torch.amp import GradScaler
from torch.cuda.amp import GradScaler as OlderGradScaler


def train(model, loader):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    scaler = GradScaler()
    for batch in loader:
        optimizer.zero_grad()
        with autocast("cuda", dtype=torch.float16):
            loss = model(batch).sum()
        scaler.scale(loss).backward()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if float(scaler.get_scale()) < before:
            print(f"step skipped, scale {scaler.get_scale():.0f}")


def train_one_epoch(model, loader, optimizer, scaler, use_scaler):
    older = OlderGradScaler(enabled=use_scaler)
    for batch in loader:
        loss = model(batch).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        older.scale(loss).backward()
        older.step(optimizer=torch.optim.SGD(model.parameters(), lr=0.1, fused=True))


class Trainer:
    def __init__(self, model, fused):
        self.scaler = GradScaler("cuda")
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
        self.other = torch.optim.Adam(model.parameters(), fused=fused)

    def training_step(self, loss):
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.step(self.other)
        self.scaler.update()

    def save(self, path):
        torch.save(self.scaler.state_dict(), path)


# Look-alikes.


def fused(model, loader):
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    scaler = GradScaler()
    for batch in loader:
        scaler.scale(model(batch).sum()).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def switched_off(model, loader):
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = GradScaler(enabled=False)
    for batch in loader:
        scaler.scale(model(batch).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        print(scaler.get_scale())


def on_the_host(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = GradScaler("cpu")
    for batch in loader:
        scaler.scale(model(batch).sum()).backward()
        scaler.step(optimizer)
        scaler.update()


def without_scaler(model, loader, optimizer, scheduler):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        scheduler.step()


class Zoom:
    def __init__(self):
        self.scale = 1.0

    def get_scale(self):
        return self.scale

    def step(self, amount):
        self.scale *= amount


def of_the_same_name(loader):
    zoom, standard = Zoom(), StandardScaler()
    for batch in loader:
        zoom.step(2.0)
        standard.fit(batch)
    return zoom.get_scale()
