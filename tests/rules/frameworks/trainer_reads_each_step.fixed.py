"""Settings of trainers."""

import transformers
from transformers import Seq2SeqTrainingArguments, TrainingArguments


def each_step() -> TrainingArguments:
    return TrainingArguments("out", logging_steps=1, logging_nan_inf_filter=False)


def of_sequences() -> Seq2SeqTrainingArguments:
    return Seq2SeqTrainingArguments(
        output_dir="out",
        torch_empty_cache_steps=4,
        logging_nan_inf_filter=False,
    )


def by_default() -> TrainingArguments:
    return transformers.TrainingArguments("out", logging_nan_inf_filter=False)


def seldom() -> TrainingArguments:
    return TrainingArguments("out", logging_steps=50, logging_nan_inf_filter=False)


def as_the_user_says(steps: int, keep: bool) -> TrainingArguments:
    return TrainingArguments("out", logging_steps=steps, logging_nan_inf_filter=keep)


def hidden(options: dict[str, object]) -> TrainingArguments:
    return TrainingArguments("out", **options)


def now_and_then() -> TrainingArguments:
    return TrainingArguments("out", torch_empty_cache_steps=500, logging_nan_inf_filter=True)


def of_another_library(library) -> object:
    return library.TrainingArguments("out", logging_steps=1)


ARGUMENTS = {"logging_steps": 1, "logging_nan_inf_filter": False}


def from_a_dict() -> TrainingArguments:
    return TrainingArguments("out", **ARGUMENTS)
