"""What lightning's loggers and callbacks are given."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader

ON_A_GPU = False


class Net(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 1)

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = self.net(batch).mean()
        self.log("loss", loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def case_logged():
    model = Net()
    kinds, log = [], model.log

    def note(name, value, **options):
        kinds.append(type(value).__name__)
        log(name, value, **options)

    setattr(model, "log", note)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_checkpointing": False}
    trainer = L.Trainer(max_epochs=1, accelerator="cpu", enable_model_summary=False, **quiet)
    trainer.fit(model, DataLoader(torch.randn(6, 8), batch_size=2))
    mean = trainer.callback_metrics["loss"].item()
    return {"kinds": kinds, "mean": f"{mean:.5f}", "model": model}


def change_logged(kinds):
    """Callbacks and loggers get a tensor"""
    assert kinds == (["float"] * 3, ["Tensor"] * 3)
