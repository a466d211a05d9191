"""Weights of four bits and the type that they compute in."""

import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig


def by_default(name: str):
    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")  # error: TPF945
    return AutoModelForCausalLM.from_pretrained(name, quantization_config=config)


def plain(name: str):
    config = BitsAndBytesConfig(load_in_4bit=True)  # error: TPF945
    return AutoModelForCausalLM.from_pretrained(name, quantization_config=config)


def by_position():
    return BitsAndBytesConfig(False, True)  # error: TPF945


def without_a_config(name: str):
    return AutoModelForCausalLM.from_pretrained(name, load_in_4bit=True, device_map="auto")  # error: TPF945


# Look-alikes


def by_another_library(library, name: str):
    return library.from_pretrained(name, load_in_4bit=True), AutoModelForCausalLM.from_pretrained(name)


def in_half(name: str):
    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)
    return AutoModelForCausalLM.from_pretrained(name, quantization_config=config)


def on_purpose():
    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.float32)


def of_eight_bits():
    return BitsAndBytesConfig(load_in_8bit=True)


def as_the_user_says(four: bool, settings: dict[str, object]):
    return BitsAndBytesConfig(load_in_4bit=four), BitsAndBytesConfig(load_in_4bit=True, **settings)


def of_another_library(library):
    return library.BitsAndBytesConfig(load_in_4bit=True)


QUANTIZED = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
EXACT = {"load_in_4bit": True, "bnb_4bit_compute_dtype": torch.float32}
IN_HALF = dict(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)


def from_a_dict():
    return BitsAndBytesConfig(**QUANTIZED)  # error: TPF945


def from_a_dict_on_purpose():
    return BitsAndBytesConfig(**EXACT)


def from_a_dict_in_half_precision():
    return BitsAndBytesConfig(**IN_HALF)


def from_a_dict_that_is_changed(extra):
    options = {"load_in_4bit": True}
    options.update(extra)
    return BitsAndBytesConfig(**options)
