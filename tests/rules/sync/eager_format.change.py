"""What a logger writes."""

import io
import logging

import torch

logger = logging.getLogger("scenario")
logger.propagate = False
logger.setLevel(logging.DEBUG)


class Late(logging.StreamHandler):
    """Makes the text when it is asked for it."""

    def __init__(self):
        super().__init__(io.StringIO())
        self.records = []

    def emit(self, record):
        self.records.append(record)

    def text(self):
        return [record.getMessage() for record in self.records]


def step(batches, late):
    logger.handlers[:] = [late]
    loss = torch.zeros((), device="cuda")
    whole = torch.zeros(2, device="cuda")
    for number, x in enumerate(batches):
        loss = (x * 0.25).sum()
        logger.debug(f"{number} of 100%: {loss} {{braces}}")
        whole.add_(x)
        logger.debug(f"{whole!r}")
    return loss


def case_lines():
    late = Late()
    loss = step(torch.ones(1, 2, device="cuda"), late)
    return {"scalar": late.text()[0], "whole": late.text()[1], "loss": loss}


def change_lines(scalar, waits):
    """The text of a zero-dimensional tensor changes (`%s` writes `tensor(0.5000, device='cuda:0')` where an f-string writes `0.5`) … formatting waits as before, and longer for the form that `%s` shows"""
    assert waits == (2, 4)
    assert scalar == ("0 of 100%: 0.5 {braces}", "0 of 100%: tensor(0.5000, device='cuda:0') {braces}")


def case_in_place():
    late = Late()
    step(torch.ones(2, 2, device="cuda"), late)
    return {"wholes": late.text()[1::2]}


def change_in_place(wholes):
    """a tensor changed in place before a handler formats it shows its later value"""
    assert wholes[0] == ["tensor([1., 1.], device='cuda:0')", "tensor([2., 2.], device='cuda:0')"]
    assert wholes[1] == ["tensor([2., 2.], device='cuda:0')"] * 2
