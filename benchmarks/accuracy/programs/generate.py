"""Batched autoregressive decoding with a key/value cache and stopping criteria (random weights)."""

import argparse
import time
from dataclasses import dataclass
from typing import Optional

import torch
import torch.nn as nn
import torch.nn.functional as F

BOS, EOS, PAD = 1, 2, 0


@dataclass
class CausalLMOutput:
    logits: torch.Tensor
    past_key_values: Optional[list] = None
    loss: Optional[torch.Tensor] = None


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, position_ids):
        freqs = position_ids[..., None].float() * self.inv_freq
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos()[:, None], emb.sin()[:, None]


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


class DecoderLayer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.head_dim = hidden // heads
        self.norm1 = nn.LayerNorm(hidden)
        self.norm2 = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def forward(self, hidden_states, cos, sin, attention_mask=None, past_key_value=None):
        bsz, q_len, _ = hidden_states.size()
        qkv = self.qkv(self.norm1(hidden_states)).view(bsz, q_len, 3, self.heads, self.head_dim)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        query = query * cos + rotate_half(query) * sin
        key = key * cos + rotate_half(key) * sin
        if past_key_value is not None:
            key = torch.cat([past_key_value[0], key], dim=2)
            value = torch.cat([past_key_value[1], value], dim=2)
        attn = F.scaled_dot_product_attention(query, key, value, attn_mask=attention_mask)
        hidden_states = hidden_states + self.out(attn.transpose(1, 2).reshape(bsz, q_len, -1))
        return hidden_states + self.down(F.gelu(self.up(self.norm2(hidden_states)))), (key, value)


class TinyLM(nn.Module):
    def __init__(self, vocab=512, hidden=128, layers=4, heads=4):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, hidden, padding_idx=PAD)
        self.rotary = RotaryEmbedding(hidden // heads)
        self.layers = nn.ModuleList(DecoderLayer(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.lm_head = nn.Linear(hidden, vocab, bias=False)

    def forward(self, input_ids, attention_mask, past_key_values=None, labels=None):
        q_len = input_ids.shape[1]
        past_len = past_key_values[0][0].shape[2] if past_key_values is not None else 0
        position_ids = attention_mask.long().cumsum(-1) - 1
        position_ids.masked_fill_(attention_mask == 0, 1)
        position_ids = position_ids[:, past_len : past_len + q_len]
        causal = torch.ones(q_len, past_len + q_len, dtype=torch.bool, device=input_ids.device).tril(past_len)
        mask = causal[None, None] & attention_mask[:, None, None, :].bool()
        mask = mask | torch.eye(q_len, past_len + q_len, dtype=torch.bool, device=input_ids.device)[None, None]
        cos, sin = self.rotary(position_ids)
        hidden_states = self.embed_tokens(input_ids)
        cache = []
        for i, layer in enumerate(self.layers):
            past = past_key_values[i] if past_key_values is not None else None
            hidden_states, present = layer(hidden_states, cos, sin, mask, past)
            cache.append(present)
        logits = self.lm_head(self.norm(hidden_states))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=PAD)
        return CausalLMOutput(logits=logits, past_key_values=cache, loss=loss)


def apply_repetition_penalty(logits, input_ids, penalty):
    score = torch.gather(logits, 1, input_ids)
    score = torch.where(score < 0, score * penalty, score / penalty)
    return logits.scatter(1, input_ids, score)


def top_p_filter(logits, top_p):
    sorted_logits, sorted_indices = torch.sort(logits, descending=True)
    cumulative = sorted_logits.softmax(dim=-1).cumsum(dim=-1)
    remove = cumulative > top_p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = False
    return logits.masked_fill(remove.scatter(1, sorted_indices, remove), float("-inf"))


@torch.inference_mode()
def generate(model, input_ids, attention_mask, max_new_tokens, do_sample=True, temperature=0.9, top_p=0.95):
    batch = input_ids.shape[0]
    unfinished = torch.ones(batch, dtype=torch.long, device=input_ids.device)
    past, cur = None, input_ids
    for step in range(max_new_tokens):
        outputs = model(cur, attention_mask, past_key_values=past)
        past = outputs.past_key_values
        next_logits = outputs.logits[:, -1, :].float()
        next_logits = apply_repetition_penalty(next_logits, input_ids, 1.1)
        if do_sample:
            probs = top_p_filter(next_logits / temperature, top_p).softmax(dim=-1)
            next_tokens = torch.multinomial(probs, num_samples=1).squeeze(1)
        else:
            next_tokens = torch.argmax(next_logits, dim=-1)
        next_tokens = next_tokens * unfinished + PAD * (1 - unfinished)
        input_ids = torch.cat([input_ids, next_tokens[:, None]], dim=-1)
        attention_mask = torch.cat([attention_mask, attention_mask.new_ones((batch, 1))], dim=-1)
        unfinished = unfinished.mul((next_tokens != EOS).long())
        cur = next_tokens[:, None]
        if unfinished.max() == 0:
            break
    return input_ids


def stream(model, prompt, max_new_tokens, device):
    """Greedy decoding of one prompt, token by token, as a chat loop does it."""
    tokens = torch.tensor([prompt], device=device)
    past = None
    with torch.no_grad():
        for _ in range(max_new_tokens):
            mask = torch.ones(1, len(prompt), dtype=torch.long, device=device)
            cur = tokens if past is None else tokens[:, -1:]
            out = model(cur, mask, past)
            past = out.past_key_values
            token = int(out.logits[0, -1].argmax())
            yield token
            if token == EOS:
                return
            prompt = prompt + [token]
            tokens = torch.cat([tokens, torch.tensor([[token]], device=device)], dim=1)


def pad_batch(prompts):
    longest = max(len(p) for p in prompts)
    ids = torch.full((len(prompts), longest), PAD, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, longest - len(prompt) :] = torch.tensor(prompt)
        mask[row, longest - len(prompt) :] = 1
    return {"input_ids": ids, "attention_mask": mask}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-new-tokens", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--batches", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = TinyLM().to(device).eval()

    lengths = torch.randint(4, 16, (args.batches * args.batch_size,)).tolist()
    prompts = [[BOS] + torch.randint(3, 512, (n,)).tolist() for n in lengths]
    total, start = 0, time.perf_counter()
    for first in range(0, len(prompts), args.batch_size):
        batch = pad_batch(prompts[first : first + args.batch_size])
        batch = {k: v.to(device) for k, v in batch.items()}
        sequences = generate(model, **batch, max_new_tokens=args.max_new_tokens)
        prompt_len = batch["input_ids"].shape[1]
        for sequence in sequences:
            new = [t for t in sequence[prompt_len:].tolist() if t not in (PAD, EOS)]
            total += len(new)
        with torch.no_grad():
            nll = model(sequences, (sequences != PAD).long(), labels=sequences).loss
        print(f"batch {first // args.batch_size}: {sequences.shape[1] - prompt_len} steps, perplexity {nll.exp().item():.1f}")
    elapsed = time.perf_counter() - start
    print(f"{total} tokens, {total / elapsed:.1f} tok/s")
    print("stream:", *[str(t) for t in stream(model, prompts[0], 16, device)])


if __name__ == "__main__":
    main()
