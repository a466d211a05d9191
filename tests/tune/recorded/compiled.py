"""A small transformer with layers written by hand, which is evaluated with other batches now and then."""

import torch
from torch import nn


class Block(nn.Module):
    """Attention and a gated layer, each behind a norm of its own."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.scales = nn.ParameterList(nn.Parameter(torch.ones(width)) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.gate = nn.Linear(width, 8 * width)
        self.down = nn.Linear(4 * width, width)

    def norm(self, x, scale):
        """The input with a mean square of one."""
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * scale

    def forward(self, x):
        """The input and what the layers add."""
        q, k, v = (
            each.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for each in self.qkv(self.norm(x, self.scales[0])).chunk(3, -1)
        )
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        gate, up = self.gate(self.norm(x, self.scales[1])).chunk(2, -1)
        return x + self.down(nn.functional.silu(gate) * up)


class Language(nn.Module):
    """Predicts the next letter."""

    def __init__(self, letters=64, width=256, depth=6):
        super().__init__()
        self.embedding = nn.Embedding(letters, width)
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(depth)))
        self.head = nn.Linear(width, letters)

    def forward(self, x):
        """The scores of the letters at each place."""
        return self.head(self.blocks(self.embedding(x)))


def loss_of(model, text):
    """The loss of some texts."""
    return nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


@torch.no_grad()
def evaluate(model, text):
    """The loss of other texts."""
    model.eval()
    loss = loss_of(model, text)
    model.train()
    return loss.item()


def main():
    """Train."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    texts = torch.randint(0, 64, (32, 16, 129), device=device)
    model = Language().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=device == "cuda")
    for step in range(200):
        optimizer.zero_grad()
        loss = loss_of(model, texts[step % 32])
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(step, evaluate(model, texts[0, :4]))


main()
