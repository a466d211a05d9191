"""Number formats of trainers."""

import transformers
from transformers import Seq2SeqTrainingArguments, TrainingArguments

ARGUMENTS = TrainingArguments("out", dataloader_num_workers=0)  # audit: TPF950


def build(output: str, size: int):
    return transformers.TrainingArguments(output_dir=output, per_device_train_batch_size=size)  # audit: TPF950


def of_sequences(output: str):
    return Seq2SeqTrainingArguments(output, predict_with_generate=True)  # audit: TPF950


# Look-alikes


def in_half(output: str):
    return TrainingArguments(output, bf16=True)


def as_asked(output: str, is_half: bool):
    return TrainingArguments(output, fp16=is_half)


def on_tensor_cores(output: str):
    return TrainingArguments(output, tf32=True)


def as_given(output: str, options: dict[str, object]):
    return TrainingArguments(output, **options)


def on_the_cpu(output: str):
    return TrainingArguments(output, use_cpu=True)


def by_deepspeed(output: str):
    return TrainingArguments(output, deepspeed="zero.json")
