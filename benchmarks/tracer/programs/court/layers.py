"""Makes each fact about layers and operations happen in every step.

Trace it with `perflint trace --warmup 2 --steps 8`: each line with a comment `# fact: NAME` has an observation of NAME,
in the first two recorded steps.
"""

import torch
from torch import nn
from torch.nn import functional

device = "cuda"


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.read = nn.MultiheadAttention(64, 4, batch_first=True)
        self.hooked = nn.MultiheadAttention(64, 4, batch_first=True)
        self.hooked.register_forward_hook(lambda *_: None)
        self.cell = nn.LSTMCell(64, 64)
        self.softmax = nn.Softmax(-1)
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.wide = nn.Linear(64, 1001)
        self.back = nn.Linear(1001, 64)
        self.table = nn.Embedding(10001, 64)

    def images(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.read(x, x, x)  # fact: attention.weights
        y, _ = self.hooked(y, y, y)  # fact: attention.hooked
        y, _ = self.read(y, y, y, need_weights=False)  # fact: attention.no-weights
        state = None
        for row in y.unbind(1):
            state = self.cell(row, state)  # fact: cell.step
        y = self.back(self.wide(y)) + self.softmax(y)  # fact: softmax.module
        scores = torch.softmax(y @ y.transpose(-2, -1), dim=-1)  # fact: softmax.matrix
        one = torch.softmax(y[0, 0], dim=0)  # fact: softmax.other
        logits = functional.linear(y, self.table.weight)  # fact: product.odd
        log = torch.log(scores)  # fact: log.of-probabilities
        other = torch.log(y.abs() + 1)  # fact: log.of-others
        first = logits.argsort(-1)[..., :5]  # fact: sort.few
        most = logits.sort(-1).values[..., 1:]  # fact: sort.many
        pairs = (y[:, 0, None] - self.table.weight[None, :8]).pow(2).sum(-1)  # fact: reduction.last
        return sum(each.sum() for each in (one, log, other, most, pairs)) + first.sum()  # fact: reduction.other


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(x))


model, images = Model().to(device), Images().to(device)
on_host = Images()
optimizer = torch.optim.SGD([*model.parameters(), *images.parameters()], lr=1e-4)
for _ in range(12):
    x, image = torch.randn(2, 8, 64, device=device), torch.randn(2, 3, 32, 32, device=device)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        first = images(image)  # fact: convolution.channels-first
        last = images(image.contiguous(memory_format=torch.channels_last))  # fact: convolution.channels-last
    full = images(image)  # fact: convolution.other-dtype
    on_host(image.cpu())  # fact: convolution.on-host
    a = torch.ones(32, 64, dtype=torch.int8, device=device)
    torch._int_mm(a, a.t())
    loss = model(x) + sum(each.float().sum() for each in (first, last, full))
    loss = loss + model.images(image).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
