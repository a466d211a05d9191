"""Makes each fact about copies, growth, rows, data and files happen in every step.

Trace it with `perflint trace --warmup 2 --steps 8`: each line with a comment `# fact: NAME` has an observation of NAME.
The last lines check that the tracer keeps no memory of the copies and leaves versions alone.
"""

import copy
import gc

import numpy as np
import torch
from torch import nn

device = "cuda"
model = nn.Linear(1024, 1024).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total, losses = torch.zeros((), device=device), []
plain = torch.zeros((), device=device)
arrays = [np.ones(512, np.float32) for _ in range(256)]
held = torch.ones(1024, device=device)
memory = []


def grown(parts: list[torch.Tensor]) -> torch.Tensor:
    out = parts[0]
    for part in parts:
        out = torch.cat([out, part])  # fact: cat.grew
    return out


for _ in range(12):
    x, z = torch.ones(256, 1024, device=device), torch.ones(256, 1024, device=device)
    needless = x.clone()  # fact: copy.unwritten
    y = x + needless
    written = x.clone()  # fact: copy.written
    written.add_(1)
    before = held.clone()  # fact: copy.source-written
    held.add_(1)
    fresh = (x + y).clone()  # fact: copy.of-temporary
    wide = held.repeat(64, 1)  # fact: copy.of-kept
    same = x.contiguous()  # fact: copy.returned
    deep = copy.deepcopy(x)  # fact: copy.unwritten
    pointed = x.clone()  # fact: copy.unknown
    pointed.__dlpack__()
    grown([x] * 8)
    apart = torch.cat([x, y])  # fact: cat.apart
    row = x[0]  # fact: row.read
    z[1] = row  # fact: row.stored
    z[2, 3] = 1.0  # fact: number.stored
    host = torch.zeros(8)
    host[0] = 1.0  # fact: number.stored-on-cpu
    listed = torch.tensor(arrays)  # fact: list.of-arrays
    numbers = torch.tensor([1.0, 2.0], device=device)  # fact: made.other-dtype
    double = torch.tensor(np.ones(8), device=device)  # fact: made.float64
    came = torch.from_numpy(np.ones((64, 64))).to(device)  # fact: arrived.float64
    single = host.to(device)  # fact: arrived.other-dtype
    gone = x.cpu()  # fact: left.device
    here = host.tolist()  # fact: left.cpu
    stays = x.to(device)  # fact: to.same-tensor
    half = x.half()  # fact: to.same-device
    loss = model(y).sum()
    total += loss  # fact: sum.with-graph
    plain += loss.detach()  # fact: sum.without-graph
    losses.append(loss)
    loss.backward()  # fact: loss.kept
    optimizer.step()
    optimizer.zero_grad()
    torch.save(model.state_dict(), "/tmp/court-copies.pt")  # fact: save.from-device
    gc.collect()  # fact: gc.full
    memory.append(torch.cuda.memory_allocated())
    assert (needless._version, written._version) == (0, 1)

# Losses and their sum keep little; the copies of a step are freed in the next one.
assert max(memory[3:]) - min(memory[3:]) < 1_000_000, memory
