"""Functions that the hooks of frameworks, base classes and entry points of other files call."""

from __future__ import annotations

from pathlib import Path

from tests.semantics.callers.programs import programs
from tests.semantics.notation import Case, check

HOOKS = """
# file: ops.py
def read(x):
    return x.item()                 # hot
def late(x):
    return x.item()                 # hot
def make(x):
    return x.item()                 # cold
def restore(x):
    return x.item()                 # cold
# file: net.py
import lightning as L
from ops import read, late, make, restore
class Net(L.LightningModule):
    def training_step(self, batch, index):
        loss = self.model(batch)
        read(loss)
        return loss
    def on_train_batch_end(self, outputs, batch, index):
        late(outputs)
    def configure_optimizers(self):
        make(self.rate)
    def on_load_checkpoint(self, state):
        restore(state)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
def check(x):
    return x.item()                 # hot
# file: net.py
import pytorch_lightning as pl
from ops import read, check
class Net(pl.LightningModule):
    def validation_step(self, batch, index):
        check(self(batch))
    def forward(self, x):
        return read(x)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from transformers import Trainer
from ops import read
class Own(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        loss = model(**inputs).loss
        read(loss)
        return loss
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from transformers import Trainer
from ops import read
class Own(Trainer):
    def training_step(self, model, inputs):
        return read(super().training_step(model, inputs))
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from accelerate import Accelerator
from ops import read
accelerator = Accelerator()
model, optimizer, loader = accelerator.prepare(make_model(), make_optimizer(), make_loader())
for batch in loader:
    with accelerator.accumulate(model):
        loss = model(batch)
        accelerator.backward(loss)
        optimizer.step()
        read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from lightning.fabric import Fabric
from ops import read
def main(model, optimizer, loader):
    fabric = Fabric()
    model, optimizer = fabric.setup(model, optimizer)
    for batch in fabric.setup_dataloaders(loader):
        loss = model(batch)
        fabric.backward(loss)
        optimizer.step()
        read(loss)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from ignite.engine import Engine
from ops import read
def train_step(engine, batch):
    loss = model(batch)
    loss.backward()
    optimizer.step()
    return read(loss)
trainer = Engine(train_step)
trainer.run(loader)
===
# file: base.py
class Base:
    def fit(self, model, loader, optimizer):
        self.setup()
        for x in loader:
            loss = model(x)
            loss.backward()
            optimizer.step()
            self.after_step(loss)
        self.finish(loss)
    def setup(self): pass
    def after_step(self, loss): pass
    def finish(self, loss): pass
# file: own.py
from base import Base
class Own(Base):
    def after_step(self, loss):
        loss.item()                 # hot
        self.show(loss)
    def show(self, loss):
        loss.item()                 # hot
    def setup(self):
        self.x.item()               # cold
    def after_all(self, loss):
        loss.item()                 # warm
===
# file: base.py
class Base:
    def note(self, loss):
        loss.item()                 # hot
    def final(self, loss):
        loss.item()                 # warm
# file: own.py
from base import Base
class Own(Base):
    def fit(self, model, loader, optimizer):
        for x in loader:
            loss = model(x)
            loss.backward()
            optimizer.step()
            self.note(loss)
===
# file: base.py
class Base:
    def note(self, loss):
        loss.item()                 # hot
# file: own.py
from base import Base
class Own(Base):
    pass
# file: train.py
from own import Own
own = Own()
@step own.note(loss)
===
# file: base.py
class Base:
    def note(self, loss):
        loss.item()                 # hot
# file: middle.py
from base import Base
class Middle(Base):
    pass
# file: own.py
from middle import Middle
class Own(Middle):
    pass
# file: train.py
from own import Own
own = Own()
@step own.note(loss)
===
# file: mixin.py
class Mixin:
    def note(self, loss):
        loss.item()                 # hot
# file: own.py
from torch import nn
from mixin import Mixin
class Own(Mixin, nn.Module):
    def forward(self, x):
        self.note(x)
        return x
===
# file: base.py
class Base:
    def note(self, loss):
        loss.item()                 # warm
# file: own.py
from base import Base
class Own(Base):
    def note(self, loss):
        pass
# file: train.py
from own import Own
own = Own()
@step own.note(loss)
===
# file: hooks.py
class Hook:
    def after_step(self, runner):
        pass
# file: runner.py
from hooks import Hook
class Runner:
    def __init__(self):
        self.hooks = []
    def register(self, hook: Hook):
        self.hooks.append(hook)
    def call(self, name):
        for hook in self.hooks:
            getattr(hook, name)(self)
    def fit(self, model, loader, optimizer):
        for x in loader:
            model(x).backward()
            optimizer.step()
            self.call("after_step")
# file: log.py
from hooks import Hook
class Log(Hook):
    def after_step(self, runner):
        runner.loss.item()          # warm
===
# file: ops.py
def read(x):
    return x.item()                 # cold
def save(x):
    read(x)
# file: train.py
from ops import save
@step if step % 1000 == 0: save(model)
===
# file: ops.py
def once(x):
    return x.item()                 # cold
# file: train.py
from ops import once
def main(args):
    model = make()
    once(model.weight)
    for x in loader:
        model(x).backward()
        optimizer.step()
if __name__ == "__main__":
    main(1)
===
# file: ops.py
def read(x):
    return x.item()                 # hot
# file: train.py
from ops import read
def main():
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        read(loss)
if __name__ == "__main__":
    main()
===
# file: engine.py
def train_one(model, loader, optimizer, meter):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        meter.update(loss=loss)
# file: meters.py
class Meter:
    def update(self, **values):
        for name, value in values.items():
            value.item()            # hot
    def synchronize(self):
        self.total.item()           # warm
# file: main.py
from engine import train_one
from meters import Meter
meter = Meter()
for epoch in range(3):
    train_one(model, loader, optimizer, meter)
===
# file: engine.py
from meters import Meter
def train_one(model, loader, optimizer):
    meter = Meter()
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        meter.update(loss=loss)
    meter.synchronize()
# file: meters.py
class Meter:
    def update(self, **values):
        for name, value in values.items():
            value.item()            # hot
    def synchronize(self):
        self.total.item()           # warm
"""


@programs(HOOKS)
def test_hooks(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
