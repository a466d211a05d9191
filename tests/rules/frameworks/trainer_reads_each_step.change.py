"""What the log of `transformers` says of a loss that is NaN once."""

import os
import tempfile

import torch
import transformers
from torch import nn

ON_A_GPU = False
os.environ.setdefault("HF_HUB_OFFLINE", "1")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return {"loss": (self.scale * 0 + x).mean()}


def logged(values):
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, max_steps=3, logging_steps=3, per_device_train_batch_size=1, report_to=[], disable_tqdm=True,
            use_cpu=True, save_strategy="no",
        )
        data = [{"x": torch.tensor(value)} for value in values]
        trainer = transformers.Trainer(Net(), arguments, train_dataset=data)
        trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
        trainer.train()
        return trainer.state.log_history[0]["loss"]


def case_finite():
    return {"loss": str(logged([1.0, 2.0, 3.0]))}


def case_nan():
    return {"nan": str(logged([1.0, float("nan"), 3.0])) == "nan"}


def change_nan(nan):
    """`logging_nan_inf_filter=False` lets a NaN of one step into the average loss of the log"""
    assert nan == (False, True)
