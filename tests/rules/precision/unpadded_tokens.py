"""Collators of a program that trains in bfloat16."""

import transformers
from transformers import (
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    DataCollatorForSeq2Seq,
    DataCollatorWithPadding,
    TrainingArguments,
    default_data_collator,
)

ARGUMENTS = TrainingArguments("out", bf16=True)


def padded(tokenizer: AutoTokenizer, model):
    first = DataCollatorWithPadding(tokenizer)  # audit: TPF353
    second = DataCollatorForSeq2Seq(tokenizer, model=model)  # audit: TPF353
    third = transformers.DataCollatorForLanguageModeling(  # audit: TPF353
        tokenizer=tokenizer,
        mlm=False,
    )
    return first, second, third


# Look-alikes


def to_a_multiple(tokenizer: AutoTokenizer):
    return DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8)


def as_asked(tokenizer: AutoTokenizer, fp16: bool):
    return DataCollatorForSeq2Seq(tokenizer, pad_to_multiple_of=8 if fp16 else None)


def with_options(tokenizer: AutoTokenizer, **options):
    return DataCollatorForLanguageModeling(tokenizer, **options)


def otherwise(tokenizer: AutoTokenizer, padding):
    return DataCollatorWithPadding(tokenizer, padding=padding)


def of_tensors():
    return default_data_collator


class DataCollatorForTokenClassification:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer


def of_its_own(tokenizer: AutoTokenizer):
    return DataCollatorForTokenClassification(tokenizer)
