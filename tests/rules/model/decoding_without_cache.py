"""Decoding loops with and without a cache."""

import torch
from torch import nn
from transformers import AutoModelForCausalLM, GenerationConfig


@torch.inference_mode()
def generate(model, ids: torch.Tensor, steps: int):
    ids = ids.cuda()
    for _ in range(steps):
        logits = model(ids).logits  # error: TPF317
        token = logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, token], dim=1)
    return ids


class Language(nn.Module):
    def __init__(self, body: nn.Module, longest: int):
        super().__init__()
        self.body, self.longest = body, longest

    @torch.no_grad()
    def generate(self, ids: torch.Tensor, steps: int, temperature: float) -> torch.Tensor:
        for _ in range(steps):
            seen = ids if ids.size(1) <= self.longest else ids[:, -self.longest :]
            logits = self(seen)  # error: TPF317
            logits = logits[:, -1, :] / temperature
            token = torch.multinomial(torch.softmax(logits, dim=-1), num_samples=1)
            ids = torch.cat((ids, token), dim=1)
        return ids


pretrained = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()


@torch.no_grad()
def until(ids: torch.Tensor, end: int):
    while ids.shape[1] < end:
        out = pretrained(input_ids=ids)  # error: TPF317
        ids = torch.cat([ids, out.logits[:, -1:].argmax(-1)], dim=-1)
    return ids


def next_one(model, tokens: torch.Tensor) -> torch.Tensor:
    scores = model(tokens)  # error: TPF317
    tokens = torch.cat([tokens, scores[:, -1, :].argmax(-1, keepdim=True)], dim=1)
    return tokens


def through_a_function(model, tokens: torch.Tensor, steps: int):
    for _ in range(steps):
        tokens = next_one(model, tokens)
    return tokens


class WithLoss(nn.Module):
    """Returns the scores, and a loss if there are targets."""

    def __init__(self, body: nn.Module, words: int):
        super().__init__()
        self.body, self.head = body, nn.Linear(768, words, bias=False)

    def forward(self, ids: torch.Tensor, targets: torch.Tensor | None = None):
        logits = self.head(self.body(ids))
        loss = None if targets is None else nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss

    @torch.no_grad()
    def generate(self, ids: torch.Tensor, steps: int) -> torch.Tensor:
        for _ in range(steps):
            logits, _ = self(ids)  # error: TPF317
            probabilities = torch.softmax(logits[:, -1, :], dim=-1)
            ids = torch.cat((ids, torch.multinomial(probabilities, num_samples=1)), dim=1)
        return ids


# Look-alikes


@torch.inference_mode()
def with_a_state(model, ids: torch.Tensor, steps: int):
    for _ in range(steps):
        logits, state = model(ids)
        ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return ids, state


@torch.inference_mode()
def with_a_cache(model, ids: torch.Tensor, steps: int):
    token, cache = ids, None
    for _ in range(steps):
        out = model(token, past_key_values=cache, use_cache=True)
        cache, token = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, token], dim=1)
    return ids


@torch.inference_mode()
def of_one_token(model, ids: torch.Tensor, steps: int):
    for _ in range(steps):
        logits = model(ids[:, -1:])
        ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return ids


@torch.inference_mode()
def of_rows(model, rows: torch.Tensor, steps: int):
    for _ in range(steps):
        y = model(rows)
        rows = torch.cat([rows, y[:, -1].argmax(-1, keepdim=True)], dim=0)
    return rows


def train(model, x: torch.Tensor, y: torch.Tensor, steps: int):
    both = torch.cat([x, y], dim=1)
    for _ in range(steps):
        loss = model(both)[:, -1].mean()
        loss.backward()


def features(layers: nn.ModuleList, x: torch.Tensor):
    """A dense block: each layer needs all of them."""
    for layer in layers:
        new = layer(x)
        x = torch.cat([x, new], dim=1)
    return x


OPTIONS = dict(max_new_tokens=64, use_cache=False)


def told_so(lm, ids: torch.Tensor):
    return lm.generate(ids, max_new_tokens=64, use_cache=False)  # error: TPF317


def told_so_by_a_dict(lm, ids: torch.Tensor):
    return lm.generate(ids, **OPTIONS)  # error: TPF317


def told_so_by_a_dict_that_is_changed(lm, ids: torch.Tensor, **options):
    options["use_cache"] = False
    return lm.generate(ids, **options)  # error: TPF317


def told_to_use_it(lm, ids: torch.Tensor, cached: bool):
    return lm.generate(ids, use_cache=True), lm.generate(ids, use_cache=cached)


def told_so_with_a_flag(lm, ids: torch.Tensor, debug: bool):
    if debug:
        return lm.generate(ids, use_cache=False)
    return lm.generate(ids)


WITHOUT = GenerationConfig(max_new_tokens=64, use_cache=False)  # error: TPF317
WITH = GenerationConfig(max_new_tokens=64)


def configured(lm, ids: torch.Tensor):
    return lm.generate(ids, generation_config=WITHOUT), lm.generate(ids, generation_config=WITH)


def told_the_model(lm, ids: torch.Tensor, steps: int):
    while ids.size(1) < steps:
        logits = lm(input_ids=ids, use_cache=False).logits  # error: TPF317
        ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return ids


def told_the_model_to_use_it(lm, ids: torch.Tensor, steps: int):
    past = None
    while ids.size(1) < steps:
        out = lm(input_ids=ids if past is None else ids[:, -1:], past_key_values=past, use_cache=True)
        past = out.past_key_values
        ids = torch.cat([ids, out.logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return ids
