"""Speculative decoding with a key-value cache: a small model drafts, the large one checks."""
import argparse
import contextlib
import time
from typing import List, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = (
    "the quick brown fox jumps over the lazy dog while the slow green turtle walks under the busy bridge and "
    "the small red bird sings above the quiet river where the old grey heron waits for the silver fish to rise "
) * 12


class KVCache:
    """Keys and values of one layer, allocated once."""

    def __init__(self, batch: int, heads: int, max_len: int, dim: int, device, dtype):
        self.k = torch.zeros(batch, heads, max_len, dim, device=device, dtype=dtype)
        self.v = torch.zeros_like(self.k)
        self.length = 0

    def update(self, k: torch.Tensor, v: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        n = k.shape[2]
        self.k[:, :, self.length : self.length + n] = k
        self.v[:, :, self.length : self.length + n] = v
        self.length += n
        return self.k[:, :, : self.length], self.v[:, :, : self.length]

    def rollback(self, length: int) -> None:
        self.length = length


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], dim=-1)


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Block(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RMSNorm(dim), RMSNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.w1, self.w2, self.w3 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim), nn.Linear(dim, 2 * dim)

    def forward(self, x, cos, sin, cache: Optional[KVCache] = None):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        q, k = rotary(q, cos, sin), rotary(k, cos, sin)
        mask = None
        if cache is not None:
            k, v = cache.update(k, v)
            if t > 1:
                s = k.shape[2]
                mask = torch.ones(t, s, dtype=torch.bool, device=x.device).tril(diagonal=s - t)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=cache is None)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        h = self.norm2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class LM(nn.Module):
    def __init__(self, vocab: int, dim: int, layers: int, heads: int, max_len: int = 256):
        super().__init__()
        self.heads, self.dim, self.max_len = heads, dim, max_len
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm = RMSNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        half = dim // heads // 2
        freqs = torch.outer(torch.arange(max_len).float(), 10000.0 ** (-torch.arange(half).float() / half))
        self.register_buffer("cos", freqs.cos(), persistent=False)
        self.register_buffer("sin", freqs.sin(), persistent=False)

    def new_cache(self, batch: int) -> List[KVCache]:
        p = self.embed.weight
        head_dim = self.dim // self.heads
        return [KVCache(batch, self.heads, self.max_len, head_dim, p.device, p.dtype) for _ in self.blocks]

    def forward(self, ids: torch.Tensor, cache: Optional[List[KVCache]] = None) -> torch.Tensor:
        start = cache[0].length if cache else 0
        cos, sin = self.cos[start : start + ids.shape[1]], self.sin[start : start + ids.shape[1]]
        x = self.embed(ids)
        for i, block in enumerate(self.blocks):
            x = block(x, cos, sin, cache[i] if cache else None)
        return self.head(self.norm(x))


def fit(model: LM, data: torch.Tensor, steps: int, batch: int = 16, block: int = 48, lr: float = 3e-3) -> float:
    opt = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95))
    offsets = torch.arange(block + 1, device=data.device)
    losses = []
    for step in range(steps):
        start = torch.randint(len(data) - block - 1, (batch, 1), device=data.device)
        chunk = data[start + offsets]
        logits = model(chunk[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        losses.append(loss.detach())
        if step % 20 == 0:
            print(f"  step {step:3d} loss {loss:.3f}")
    return torch.stack(losses[-10:]).mean().item()


def probabilities(logits: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).float()
    probs = F.softmax(logits / temperature, dim=-1)
    if top_p < 1.0:
        ordered, index = probs.sort(dim=-1, descending=True)
        drop = ordered.cumsum(-1) - ordered > top_p
        ordered = ordered.masked_fill(drop, 0.0)
        probs = torch.zeros_like(probs).scatter(-1, index, ordered)
        probs = probs / probs.sum(-1, keepdim=True)
    return probs


@torch.inference_mode()
def autoregressive(model: LM, prompt: torch.Tensor, n: int, temperature: float, top_p: float, stop: int):
    cache = model.new_cache(prompt.shape[0])
    out, ids = [prompt], prompt
    for _ in range(n):
        probs = probabilities(model(ids, cache)[:, -1], temperature, top_p)
        ids = torch.multinomial(probs, 1)
        out.append(ids)
        if (ids == stop).all():
            break
    return torch.cat(out, dim=1)


@torch.inference_mode()
def speculative(target: LM, draft: LM, prompt: torch.Tensor, n: int, gamma: int, temperature: float, top_p: float):
    t_cache, d_cache = target.new_cache(1), draft.new_cache(1)
    target(prompt[:, :-1], t_cache)
    draft(prompt[:, :-1], d_cache)
    ids = prompt
    proposed = accepted = 0
    while ids.shape[1] < prompt.shape[1] + n:
        length = ids.shape[1]
        tokens, q_rows = [], []
        current = ids[:, d_cache[0].length :]
        for _ in range(gamma):
            q = probabilities(draft(current, d_cache)[:, -1], temperature, top_p)
            current = torch.multinomial(q, 1)
            tokens.append(current)
            q_rows.append(q)
        drafted = torch.cat(tokens, dim=1)
        q = torch.stack(q_rows, dim=1)
        p = probabilities(target(torch.cat([ids[:, -1:], drafted], dim=1), t_cache), temperature, top_p)
        p_tok = p[:, :-1].gather(-1, drafted.unsqueeze(-1)).squeeze(-1)
        q_tok = q.gather(-1, drafted.unsqueeze(-1)).squeeze(-1)
        ok = torch.rand_like(p_tok) < (p_tok / q_tok.clamp_min(1e-9))
        n_ok = int(ok.long().cumprod(dim=1).sum())
        if n_ok < gamma:
            residual = (p[:, n_ok] - q[:, n_ok]).clamp_min(0)
            total = residual.sum()
            residual = residual / total if total > 0 else p[:, n_ok]
            extra = torch.multinomial(residual, 1)
        else:
            extra = torch.multinomial(p[:, -1], 1)
        ids = torch.cat([ids, drafted[:, :n_ok], extra], dim=1)
        for cache in t_cache:
            cache.rollback(length + n_ok)
        for cache in d_cache:
            cache.rollback(min(length + n_ok, cache.length))
        proposed += gamma
        accepted += n_ok
    return ids[:, : prompt.shape[1] + n], accepted / proposed


@contextlib.contextmanager
def timed(name: str, tokens: int):
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    yield
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    print(f"{name}: {tokens / (time.perf_counter() - start):.1f} tokens/s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--gamma", type=int, default=4)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--top-p", type=float, default=0.95)
    args = parser.parse_args()
    torch.manual_seed(1337)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    chars = sorted(set(TEXT))
    stoi = {c: i for i, c in enumerate(chars)}
    data = torch.tensor([stoi[c] for c in TEXT], device=device)
    target = LM(len(chars), 96, 4, 4).to(device)
    draft = LM(len(chars), 48, 1, 2).to(device)
    for name, model in (("target", target), ("draft", draft)):
        print(name, f"{fit(model, data, args.steps):.3f}")
        model.eval()
    prompt = torch.tensor([[stoi[c] for c in "the slow green "]]).to(device)
    with timed("autoregressive", args.tokens):
        out = autoregressive(target, prompt, args.tokens, args.temperature, args.top_p, stop=-1)
    print("".join(chars[i] for i in out[0].tolist()))
    for temperature in (args.temperature, 0.0):
        with timed(f"speculative t={temperature}", args.tokens):
            out, rate = speculative(target, draft, prompt, args.tokens, args.gamma, temperature, args.top_p)
        print("".join(chars[i] for i in out[0]), f"(accepted {rate:.2f})")


if __name__ == "__main__":
    main()
