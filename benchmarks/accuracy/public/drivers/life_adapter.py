"""Adapt a small language model to a random text for some steps, and ask it."""

from contextlib import contextmanager
from types import SimpleNamespace

import torch
from substitutes import here
from transformers import LlamaConfig, LlamaForCausalLM

here()
torch.manual_seed(0)
from app.morpheus.train import CptConfig, LifeAdapter


class Adapted(LlamaForCausalLM):
    """A small model with one trained parameter."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.requires_grad_(False)
        self.lora_scale = torch.nn.Parameter(torch.ones(config.vocab_size))

    def forward(self, *inputs: object, **options: object) -> object:
        """The logits, scaled."""
        out = super().forward(*inputs, **options)
        out.logits = out.logits * self.lora_scale
        return out

    @contextmanager
    def disable_adapter(self) -> object:
        """Without the trained parameter, which is kept."""
        yield


class Letters:
    """A tokenizer with one token for each letter."""

    eos_token_id = 0

    def __call__(self, text: str, add_special_tokens: bool, return_tensors: str | None = None) -> SimpleNamespace:
        ids = [1 + ord(letter) % 60 for letter in text]
        return SimpleNamespace(input_ids=ids if return_tensors is None else torch.tensor([ids]))

    def decode(self, ids: torch.Tensor, skip_special_tokens: bool) -> str:
        """A text of the tokens."""
        return "".join(chr(96 + number % 26) for number in ids.tolist())


sizes = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
model = Adapted(LlamaConfig(**sizes, eos_token_id=0, pad_token_id=0)).to("cuda:0")
adapter = LifeAdapter(model, Letters(), "cuda:0")
text = "the night reads the day again and again " * 40
adapter.train_on(text, CptConfig(epochs=2, seq_len=32, batch_size=4, log_every=3))
with adapter.base_only():
    adapter.answer("who?", max_new_tokens=4)
adapter.answers(["what?", "when?", "where?", "why?", "how?", "who?"], max_new_tokens=4)
adapter.save("adapter")
