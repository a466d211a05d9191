"""Statements whose synchronisation is in question, and the tensors that they name.

One statement per line: whether it is believed to make the host wait (`yes`, `no`, `?`), the
statement, and after `<-` what must be done before it. In `ENVIRONMENT`, names that end in `_h`
live on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

ENVIRONMENT = """
device = torch.device(kind)
x = torch.rand(256, 256, device=device)
v = torch.rand(256, device=device)
p = torch.rand(256, 256, device=device, requires_grad=True)
spd = x @ x.T + 256 * torch.eye(256, device=device)
s = torch.tensor(3.0, device=device)
n = torch.tensor(3, device=device)
flag = torch.tensor(True, device=device)
k = torch.arange(256, device=device)
few = torch.tensor([0, 2, 5], device=device)
m = x > 0.5
row = v > 0.5
repeats = torch.full((256,), 2, device=device)
lengths = torch.full((4,), 50, device=device)
x_h = torch.rand(256, 256)
v_h = torch.rand(256)
few_h = torch.tensor([0, 2, 5])
row_h = torch.rand(256) > 0.5
large_h = torch.ones(1024, 1024)
pinned_h = large_h.pin_memory() if kind == "cuda" else large_h.clone()
large = torch.ones(1024, 1024, device=device)
array = numpy.ones((64, 64), dtype=numpy.float32)
encoder = lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, batch_first=True), 1).to(device)
causal = lambda: nn.Transformer.generate_square_subsequent_mask(256, device=device)
log_probs = lambda: torch.randn(50, 4, 20, device=device).log_softmax(2)
targets = k[:40].view(4, 10) % 19 + 1
"""

SNIPPETS = """
# Reads
yes  x.sum().item()
yes  v.tolist()
yes  float(s)
yes  int(n)
yes  bool(flag)
yes  f"{s:.2f}"
yes  str(v)
yes  str(s)
yes  f"{v}"
yes  range(n)
no   len(x)
no   str(x.shape)
no   [row_ for row_ in x]
yes  3.0 in v
yes  max(s, s + 1)
yes  not flag
yes  sorted([s, s - 1])
no   sum([s, s])
no   hash(x)
yes  math.sqrt(s)
yes  numpy.asarray(v.cpu())
yes  copy.deepcopy(v).cpu()
yes  pickle.dumps(v)
# Copies
yes  x.cpu()
yes  x.to("cpu")
?    large.to("cpu", non_blocking=True)
yes  large_h.copy_(large)
?    large_h.copy_(large, non_blocking=True)
no   pinned_h.copy_(large, non_blocking=True)
yes  x.type(torch.LongTensor) if kind == "cuda" else None
no   x.type(torch.long)
yes  large_h.to(device)
yes  pinned_h.to(device)
?    large_h.to(device, non_blocking=True)
no   pinned_h.to(device, non_blocking=True)
?    x_h[:2].to(device, non_blocking=True)
no   x.to(device)
no   x.to(device=device, dtype=torch.float16)
no   large_h.pin_memory()
?    large_h.pin_memory().to(device, non_blocking=True)
yes  torch.tensor(0.0, device=device)
yes  torch.tensor([1.0, 2.0], device=device)
yes  torch.tensor(3.0).to(device)
no   torch.full((), 3.0, device=device)
no   torch.zeros(3, device=device)
no   torch.arange(0, 10, device=device)
yes  torch.as_tensor(array, device=device)
yes  torch.as_tensor(3.0, device=device)
yes  torch.from_numpy(array).to(device)
?    torch.tensor([s, s])
?    torch.tensor([s, s], device=device)
?    torch.as_tensor([s, s])
?    torch.tensor(s)
no   torch.stack([s, s])
yes  x.new_tensor([1.0, 2.0])
no   x.new_zeros(3)
no   x.new_full((3,), 1.0)
?    torch.cuda.FloatTensor([1.0, 2.0]) if kind == "cuda" else None
?    torch.cuda.FloatTensor(3, 3) if kind == "cuda" else None
?    torch.Generator(device=device).manual_seed(1)
no   torch.manual_seed(1)
no   s + v_h[0]
?    torch.where(m, x, v_h[0])
# Indexing
yes  x[m]
yes  x[row]
yes  torch.masked_select(x, m)
no   x[few]
yes  x[[0, 2, 5]]
yes  x[:, [0, 2, 5]]
yes  x[few_h]
?    x[row_h]
?    x[n]
?    x[s.long()]
yes  x[:, :n]
yes  v_h[n]
yes  v_h[few]
no   x[0]
no   x[1:3, 2]
no   x[None, ..., 0]
?    x[k.tolist()] <- k = k.cpu()
no   x[m] = 3.0
no   x[row] = 3.0
?    x[m] = s
?    x[row] = v
yes  x[m] = x[m] * 2
?    x[few] = 0
?    x[few] = 0.0
?    x[few] = s
no   x[few] = spd[:3]
?    x[n] = 0.0
?    x[n] = v
?    x[n, n] += 1
?    x[few, few] += 1
?    x[0, 0] = s
no   x[0, 0] = 1.0
?    x[0] = v_h
?    x[0, 0] = v_h[0]
?    x[[0, 2, 5]] = 0.0
?    x[row_h] = 0.0
?    x[few_h] = 0.0
?    x_h[0] = v
yes  x[torch.where(m)] = 0.0
yes  x[m.nonzero(as_tuple=True)]
no   x.index_select(0, few)
no   x.index_fill_(0, few, 0.0)
?    x.index_fill_(0, few, s)
no   x.masked_fill_(m, 3.0)
?    x.masked_fill_(m, s)
?    x.masked_fill(m, s)
?    x.masked_fill(m, v_h[0])
no   torch.where(m, x, s)
no   torch.where(m, x, 0.0)
?    x.index_put_((row,), s)
?    x.index_put_((few,), v)
?    x.masked_scatter_(m, spd)
?    x.scatter_(1, k[:, None], 1.0)
no   x.gather(1, k[:, None])
?    x.take(few)
?    x.put_(few, v[:3])
no   torch.take_along_dim(x, k[:, None], dim=1)
?    x.sum().backward() <- x = p[m]
?    x.sum().backward() <- x = p[few]
?    x.sum().backward() <- x = torch.masked_select(p, m)
?    x.sum().backward() <- x = p[[0, 1]]
?    x.sum().backward() <- x = p.index_select(0, few)
# Sizes that depend on data
yes  m.nonzero()
yes  torch.where(m)
yes  torch.argwhere(m)
?    torch.nonzero_static(m, size=10)
yes  k.unique()
yes  torch.unique_consecutive(k)
yes  torch.bincount(k)
?    torch.bincount(k, minlength=256)
?    torch.histc(v, bins=10)
?    torch.histc(v, bins=10, min=0, max=1)
?    torch.histogram(v.cpu(), bins=10)
yes  torch.repeat_interleave(x, repeats, dim=0)
no   torch.repeat_interleave(x, repeats, dim=0, output_size=512)
?    torch.repeat_interleave(x, 2, dim=0)
?    x.repeat_interleave(2)
yes  torch.repeat_interleave(repeats)
yes  F.one_hot(k)
?    F.one_hot(k, num_classes=256)
?    F.one_hot(k, 256)
yes  torch.arange(n, device=device)
yes  torch.zeros(n, device=device)
yes  torch.linspace(0, s, 5, device=device)
?    torch.full((2,), s, device=device)
yes  x.split(few.tolist() + [249]) <- few = torch.tensor([3, 2, 2], device=device)
?    torch.tensor_split(x, few)
?    torch.tensor_split(x, few_h)
no   x.chunk(4)
?    torch.combinations(v[:8])
?    torch.cartesian_prod(v[:4], v[:4])
?    torch.triu_indices(5, 5, device=device)
?    torch.block_diag(x, x)
# Reductions, comparisons
yes  torch.equal(x, x)
yes  torch.allclose(x, x)
no   torch.isclose(x, x)
no   m.any()
no   torch.isnan(x).any()
yes  bool(m.any())
?    torch.nanmedian(v)
?    torch.median(v)
?    torch.quantile(v, 0.5)
?    torch.quantile(v, s / 4)
?    torch.kthvalue(v, 3)
?    torch.topk(v, 3)
?    torch.mode(v)
no   torch.sort(v)
?    torch.searchsorted(v, v)
?    torch.bucketize(v, v)
?    torch.clamp(x, min=s)
?    torch.clamp(x, min=v_h[0])
?    torch.pow(x, s)
?    torch.lerp(x, x, s)
?    torch.lerp(x, x, 0.5)
?    torch.add(x, x, alpha=2)
?    x.mul_(s)
?    x * v_h[0]
?    x.fill_(s)
?    x.addcmul_(x, x, value=2.0)
?    torch.trapezoid(v)
?    torch.isin(k, few)
?    torch.cov(x)
# Linear algebra
?    torch.linalg.inv(spd)
?    torch.linalg.inv_ex(spd)
?    torch.linalg.solve(spd, v)
?    torch.linalg.solve_ex(spd, v)
?    torch.linalg.cholesky(spd)
?    torch.linalg.cholesky_ex(spd)
?    torch.cholesky_inverse(spd)
?    torch.linalg.lu_factor(spd)
?    torch.linalg.lu_factor_ex(spd)
?    torch.linalg.ldl_factor(spd)
?    torch.linalg.eigh(spd)
?    torch.linalg.eigvalsh(spd)
?    torch.linalg.eig(x)
?    torch.linalg.svd(x)
?    torch.linalg.svdvals(x)
?    torch.linalg.qr(x)
?    torch.linalg.matrix_rank(x)
?    torch.linalg.cond(x)
?    torch.linalg.pinv(x)
?    torch.linalg.lstsq(spd, x)
?    torch.linalg.det(x)
?    torch.linalg.slogdet(x)
?    torch.linalg.matrix_exp(x)
?    torch.linalg.matrix_power(x, 3)
?    torch.linalg.norm(x)
?    torch.linalg.norm(x, ord=2)
?    torch.linalg.solve_triangular(spd, x, upper=True)
# Random numbers
?    torch.multinomial(v, 4)
?    torch.multinomial(v, 4, replacement=True)
?    torch.normal(0.0, v)
?    torch.normal(v, v)
?    torch.normal(v, 1.0)
no   torch.randn(3, device=device)
no   torch.randperm(256, device=device)
?    torch.randperm(100000, device=device)
no   torch.bernoulli(v)
?    x.exponential_()
?    torch.distributions.Normal(v, v + 1)
?    torch.distributions.Normal(v, v + 1, validate_args=False)
?    d.log_prob(v) <- d = torch.distributions.Normal(v, v + 1)
?    d.sample() <- d = torch.distributions.Normal(v, v + 1)
?    torch.distributions.Categorical(logits=x)
?    d.sample() <- d = torch.distributions.Categorical(logits=x)
# Modules and losses
?    F.ctc_loss(q, targets, (50,) * 4, (10,) * 4) <- q = log_probs()
?    F.ctc_loss(q, targets, lengths, lengths // 5) <- q = log_probs()
?    F.cross_entropy(x, k)
?    F.cross_entropy(x, k, weight=v)
?    F.nll_loss(x, k)
?    F.embedding(k, x)
?    F.embedding(k, p.detach() * 2, max_norm=1.0)
?    F.embedding_bag(k.view(16, 16), x)
?    F.embedding_bag(k, x, k[::16])
?    F.gumbel_softmax(x)
?    F.dropout(x)
?    F.interpolate(x[None, None], scale_factor=2.0)
?    F.grid_sample(x[None, None], x[:64, :64].reshape(1, 32, 64, 2))
?    F.adaptive_avg_pool2d(x[None, None], 7)
?    F.max_unpool2d(*q, 2) <- q = F.max_pool2d(x[None, None], 2, return_indices=True)
?    F.multi_margin_loss(x, k)
?    nn.utils.rnn.pack_padded_sequence(x.view(4, 64, 256), lengths.cpu(), batch_first=True, enforce_sorted=False)
?    nn.utils.rnn.pad_sequence([v, v[:100]])
?    nn.utils.clip_grad_norm_([p], 1.0) <- p.grad = x
?    nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True) <- p.grad = x
?    nn.utils.clip_grad_value_([p], 1.0) <- p.grad = x
?    b(x) <- b = nn.BatchNorm1d(256).to(device)
?    b(x) <- b = nn.BatchNorm1d(256, momentum=None).to(device)
?    t(q, mask=c) <- t = encoder(); q = x[None]; c = causal()
?    t(q, mask=c, is_causal=True) <- t = encoder(); q = x[None]; c = causal()
?    t(q, src_key_padding_mask=row[None]) <- t = encoder().eval(); q = x[None]
?    t(q, src_key_padding_mask=row[None]) <- t = encoder().train(); q = x[None]
?    a(q, q, q, key_padding_mask=row[:, None]) <- q = x[None]; a = nn.MultiheadAttention(256, 4).to(device)
?    g(q) <- g = nn.LSTM(256, 64).to(device); q = x[:, None]
?    torch.nested.nested_tensor([v, v[:5]])
?    torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 100, 256], device=device))
?    nn.Linear(256, 256, device=device)
# Optimizers and scalers
?    o.step() <- p.grad = x; o = torch.optim.Adam([p]); o.step()
?    o.step() <- p.grad = x; o = torch.optim.AdamW([p], fused=True); o.step()
?    o.step() <- p.grad = x; o = torch.optim.Adam([p], capturable=True); o.step()
?    o.step() <- p.grad = x; o = torch.optim.SGD([p], lr=0.1, momentum=0.9); o.step()
?    o.step() <- p.grad = x; o = torch.optim.RMSprop([p]); o.step()
?    o.step() <- p.grad = x; o = torch.optim.Adagrad([p]); o.step()
?    o.step() <- p.grad = x; o = torch.optim.RAdam([p]); o.step()
?    o.step() <- p.grad = x; o = torch.optim.NAdam([p]); o.step()
?    o.step() <- p.grad = x; o = torch.optim.Adafactor([p]); o.step()
?    o.step() <- p.grad = x; o = torch.optim.Adam([p]); o.step(); o.state[p]["step"] = o.state[p]["step"].to(device)
?    c.step(o) <- p.grad = x; o = torch.optim.Adam([p]); c = torch.amp.GradScaler(kind); c.scale(s)
?    c.step(o) <- p.grad = x; o = torch.optim.Adam([p], fused=True); c = torch.amp.GradScaler(kind); c.scale(s)
?    c.unscale_(o) <- p.grad = x; o = torch.optim.Adam([p]); c = torch.amp.GradScaler(kind); c.scale(s)
?    c.update() <- p.grad = x; o = torch.optim.SGD([p], lr=0.1); c = torch.amp.GradScaler(kind); c.scale(s); c.step(o)
?    c.get_scale() <- c = torch.amp.GradScaler(kind); c.scale(s)
?    c.step(s) <- c = torch.optim.lr_scheduler.ReduceLROnPlateau(torch.optim.SGD([p], lr=0.1))
?    w.update_parameters(q) <- q = nn.Linear(4, 4).to(device); w = torch.optim.swa_utils.AveragedModel(q)
# Autograd and autocast
no   (p * x).sum().backward()
?    y.backward(x) <- y = p * 2
?    torch.autograd.grad((p * x).sum(), p)
?    (p @ x).sum().backward()
?    torch.utils.checkpoint.checkpoint(torch.relu, p, use_reentrant=False)
# Sparse
?    x.to_sparse()
?    q.coalesce() <- q = torch.sparse_coo_tensor(k[:4].view(2, 2), v[:2], (9, 9), device=device, check_invariants=False)
?    q.to_dense() <- q = x.to_sparse()
?    q @ x <- q = x.to_sparse()
?    torch.sparse_coo_tensor(k[:4].view(2, 2), v[:2])
?    torch.sparse_coo_tensor(k[:4].view(2, 2), v[:2], (9, 9))
# Explicit
yes  torch.cuda.synchronize() if kind == "cuda" else None
yes  e.synchronize() <- e = torch.cuda.Event() if kind == "cuda" else torch.Event(); e.record()
no   e.record() <- e = torch.cuda.Event() if kind == "cuda" else torch.Event()
yes  torch.cuda.current_stream().synchronize() if kind == "cuda" else None
?    torch.cuda.empty_cache() if kind == "cuda" else None <- q = torch.empty(1 << 26, device=device); del q
?    torch.cuda.mem_get_info() if kind == "cuda" else None
no   torch.cuda.memory_allocated() if kind == "cuda" else None
?    torch.cuda.get_rng_state() if kind == "cuda" else None
?    torch.save(v, io.BytesIO())
"""

DETERMINISTIC = """
?    x[few] = 0.0
?    x[few, few] += 1
?    x.index_put_((few,), v)
?    x.index_add_(0, few, spd[:3])
?    x.scatter_add_(1, k[None].expand(256, -1), spd)
?    x.cumsum(0)
?    torch.bincount(k)
"""
"""Run again under torch.use_deterministic_algorithms(True)."""

DISTRIBUTED = """
?    dist.all_reduce(x)
?    dist.all_reduce(x, async_op=True)
?    dist.all_reduce(x, async_op=True).wait()
?    w.wait() <- w = dist.all_reduce(x, async_op=True)
?    dist.barrier()
?    dist.broadcast(x, 0)
?    dist.all_gather_into_tensor(torch.empty_like(x), x)
yes  dist.all_gather_object([None], {"a": 1})
yes  dist.broadcast_object_list([{"a": 1}], 0)
?    b(x) <- b = nn.SyncBatchNorm(256).to(device)
"""
"""Run in a process group of one process."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A statement, what goes before it, and what is believed of it."""

    statement: str
    before: str
    belief: str
    group: str


def parse(text: str, group: str = "") -> list[Snippet]:
    """The snippets of a listing; a comment starts a group."""
    found = []
    for line in text.strip().splitlines():
        if line.startswith("# "):
            group = line[2:]
            continue
        belief, _, code = line.partition(" ")
        statement, _, before = code.partition(" <- ")
        found.append(Snippet(statement.strip(), before.strip(), belief, group))
    return found
