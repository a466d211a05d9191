"""Caches that the configuration of a model switches off."""

from __future__ import annotations

import pytest

from perflint.rules.model.decoding_without_cache import DecodingWithoutCache
from tests.rules.harness import lint

CHAT = """\
import torch
from transformers import AutoConfig, AutoModelForCausalLM, Trainer

def load(name, exact=False):
    config = AutoConfig.from_pretrained(name)
    {switch}
    return AutoModelForCausalLM.from_pretrained(name, config=config).cuda()

def reply(model, ids):
    return model.generate(ids, max_new_tokens=64)

def train(model, loss):
    {trains}
"""


@pytest.mark.parametrize(
    ("switch", "trains", "found"),
    [
        ("config.use_cache = False", "pass", 1),
        ("model.generation_config.use_cache = False", "pass", 1),
        ("config.use_cache = exact", "pass", 0),
        ("config.use_cache = True", "pass", 0),
        ("table.use_cache = False", "pass", 0),
        ("if exact: config.use_cache = False", "pass", 0),
        ("config.use_cache = False", "loss.backward()", 0),
        ("config.use_cache = False", "Trainer(model).train()", 0),
        ("config.use_cache = False", "model.gradient_checkpointing_enable()", 0),
        ("config.use_cache = False", "model.config.use_cache = True", 0),
    ],
)
def test_a_cache_is_switched_off_by_the_configuration(switch: str, trains: str, found: int) -> None:
    findings = lint(CHAT.format(switch=switch, trains=trains), [DecodingWithoutCache], "default")
    assert len(findings) == found
