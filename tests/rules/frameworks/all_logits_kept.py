"""Evaluations of trainers, and the logits that they keep."""

import numpy as np
import transformers
from transformers import Trainer


def accuracy(result):
    return {"accuracy": (result.predictions.argmax(-1) == result.label_ids).mean()}


def accuracy_of_pairs(result):
    logits, labels = result
    predictions = np.argmax(logits, axis=-1)
    return {"accuracy": (predictions == labels).mean()}


def loss_of(result):
    return {"spread": result.predictions.std()}


def build(model, train, test):
    return Trainer(model=model, train_dataset=train, eval_dataset=test, compute_metrics=accuracy)  # audit: TPF949


def of_pairs(model, test):
    return transformers.Trainer(model, eval_dataset=test, compute_metrics=accuracy_of_pairs)  # audit: TPF949


def in_line(model, test):
    return Trainer(  # audit: TPF949
        model,
        eval_dataset=test,
        compute_metrics=lambda result: {"right": (result.predictions.argmax(-1) == result.label_ids).sum()},
    )


# Look-alikes


def reduced(model, test):
    return Trainer(
        model,
        eval_dataset=test,
        compute_metrics=accuracy,
        preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
    )


def of_scores(model, test):
    return Trainer(model, eval_dataset=test, compute_metrics=loss_of)


def without(model, test):
    return Trainer(model, eval_dataset=test)


def as_given(model, metrics, options):
    return Trainer(model, compute_metrics=metrics), Trainer(model, compute_metrics=accuracy, **options)


def none(model, test):
    return Trainer(model, eval_dataset=test, compute_metrics=None)
