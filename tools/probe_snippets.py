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
cuts = [64, 60, 9, 3]
batch = x.view(4, 64, 256)
packed = lambda **more: nn.utils.rnn.pack_padded_sequence(batch, cuts, batch_first=True, **more)
lstm = lambda: nn.LSTM(256, 64, batch_first=True).to(device)
decoder = lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(256, 4, batch_first=True), 1).to(device)
window = torch.ones(64, device=device)
spectrum = lambda **more: torch.stft(v, 64, return_complex=True, **more)

def scaler(optimizer, done="scale", **more):
    p.grad = x.clone()
    made = torch.amp.GradScaler(kind, **more)
    made.scale(s)
    if done == "unscale":
        made.unscale_(optimizer)
    elif done == "step":
        made.step(optimizer)
    return made
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
?    torch.where(m, v_h[0], x)
?    torch.where(m, x, torch.tensor(0.0))
?    torch.where(m, x, v_h[:1].to(device))
?    x.index_fill(0, few, s)
?    x.index_add_(0, few, spd[:3])
?    x.put_(few_h, v_h[:3])
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
?    torch.unravel_index(k, (16, 16))
?    torch.linspace(0, 1, 5, device=device)
?    torch.hann_window(16, device=device)
?    torch.hamming_window(16, device=device)
?    torch.signal.windows.hann(16, device=device)
?    torch.signal.windows.gaussian(16, device=device)
?    nn.utils.rnn.unpad_sequence(batch, lengths, batch_first=True)
?    torch.bincount(k, weights=v)
?    torch.histogramdd(x[:, :2].cpu(), bins=2)
?    x[k.argmax()]
?    torch.tensor_split(x, few.cpu())
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
?    torch.isin(k, k)
?    torch.isin(k.repeat(4096), k)
?    torch.corrcoef(x)
?    torch.cdist(x, x)
?    torch.masked.mean(x, mask=m)
?    torch.masked.softmax(x, 1, mask=m)
?    torch.stft(v, 64, return_complex=True, window=window)
?    torch.istft(q, 64) <- q = spectrum()
?    torch.istft(q, 64, window=window) <- q = spectrum(window=window)
?    torch.trapz(v)
?    torch.nanquantile(v, 0.5)
?    torch.vander(v[:4])
?    torch.clamp(x, min=s, max=s)
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
?    torch.linalg.svd(x, full_matrices=False)
?    torch.linalg.svd(x[:3, :3])
?    torch.linalg.svd(x[:8].view(8, 16, 16)[:, :3, :3])
?    torch.linalg.eigh(spd[:3, :3])
?    torch.linalg.pinv(x[:3, :3])
?    torch.linalg.matrix_norm(x, ord="nuc")
?    torch.svd(x)
?    torch.svd(x[:3, :3])
?    torch.pinverse(x)
?    torch.inverse(x)
?    torch.cholesky_solve(v[:, None], spd)
?    torch.logdet(spd)
?    torch.lu_solve(v[:, None], *q) <- q = torch.linalg.lu_factor(spd)
?    torch.pca_lowrank(x)
?    torch.svd_lowrank(x)
?    torch.lobpcg(spd, 2)
?    torch.linalg.cholesky(spd[:3, :3].clone())
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
?    x.normal_(0.0, 1.0)
?    torch.normal(v_h, v_h)
?    torch.poisson(v)
?    torch.binomial(v * 10, v)
?    torch.randint(0, 5, (3,), device=device)
?    nn.init.orthogonal_(q) <- q = torch.empty(16, 16, device=device)
?    nn.init.trunc_normal_(q) <- q = torch.empty(16, 16, device=device)
?    torch.distributions.kl_divergence(d, d) <- d = torch.distributions.Normal(v, v + 1)
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
?    nn.utils.rnn.pack_padded_sequence(batch, torch.tensor(cuts), batch_first=True)
?    nn.utils.rnn.pack_padded_sequence(batch, c, batch_first=True, enforce_sorted=False) <- c = lengths.cpu()
?    nn.utils.rnn.pack_padded_sequence(batch, cuts, batch_first=True, enforce_sorted=False)
?    nn.utils.rnn.pad_packed_sequence(q) <- q = packed()
?    nn.utils.rnn.pad_packed_sequence(q) <- q = packed(enforce_sorted=False)
?    nn.utils.rnn.pack_sequence([v, v[:100]])
?    nn.utils.rnn.pack_sequence([v, v[:100]], enforce_sorted=False)
?    g(q) <- g = lstm(); q = packed()
?    g(q) <- g = lstm(); q = packed(enforce_sorted=False)
?    F.gaussian_nll_loss(x, x, x + 1)
?    nn.GaussianNLLLoss()(x, x, x + 1)
?    nn.CTCLoss()(q, targets, (50,) * 4, (10,) * 4) <- q = log_probs()
?    q.sum().backward() <- q = F.ctc_loss(p[:50].view(50, 4, 64).log_softmax(2), targets, (50,) * 4, (10,) * 4)
?    F.cross_entropy(x, k, ignore_index=3)
?    F.one_hot(k, num_classes=-1)
?    F.embedding_bag(k, x, k[::16], per_sample_weights=v, mode="sum")
?    nn.utils.parametrizations.spectral_norm(q)(x) <- q = nn.Linear(256, 256).to(device)
?    nn.utils.clip_grad_norm_([p], 1.0, foreach=False) <- p.grad = x
?    nn.utils.clip_grad_norm_([p], 1.0, norm_type=float("inf")) <- p.grad = x
?    nn.utils.parameters_to_vector([p])
?    b(x) <- b = nn.BatchNorm1d(256, momentum=None).to(device).eval()
?    t(q, q) <- t = decoder(); q = x[None]
?    t(q, q, tgt_mask=c) <- t = decoder(); q = x[None]; c = causal()
?    t(q, q, tgt_mask=c, tgt_is_causal=True) <- t = decoder(); q = x[None]; c = causal()
?    t(q, mask=c, is_causal=False) <- t = encoder(); q = x[None]; c = causal()
?    t(q) <- t = encoder(); q = x[None]
?    t(q, src_mask=c) <- t = nn.TransformerEncoderLayer(256, 4, batch_first=True).to(device); q = x[None]; c = causal()
?    t(q, q, tgt_mask=c) <- t = nn.Transformer(256, 4, 1, 1, batch_first=True).to(device); q = x[None]; c = causal()
?    nn.Transformer.generate_square_subsequent_mask(256, device=device)
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
?    c.state_dict() <- c = torch.amp.GradScaler(kind); c.scale(s)
?    c.scale(s) <- c = torch.amp.GradScaler(kind); c.scale(s)
?    c.scale(s) <- c = torch.amp.GradScaler(kind)
?    c.step(o) <- o = torch.optim.SGD([p], lr=0.1); c = scaler(o, "unscale")
?    c.step(o) <- o = torch.optim.SGD([p], lr=0.1, fused=True); c = scaler(o, "unscale")
?    c.step(o) <- o = torch.optim.Adagrad([p], fused=True); c = scaler(o)
?    c.step(o) <- o = torch.optim.SGD([p], lr=0.1); c = scaler(o, enabled=False)
?    c.update() <- o = torch.optim.AdamW([p], fused=True); c = scaler(o, "step")
?    c.update(2.0) <- o = torch.optim.SGD([p], lr=0.1); c = scaler(o, "step")
?    c.get_scale() <- c = torch.amp.GradScaler(kind, enabled=False)
?    o.step(lambda: (p * x).sum()) <- p.grad = x; o = torch.optim.LBFGS([p])
?    o.step() <- p.grad = x; o = torch.optim.ASGD([p]); o.step()
?    o.step() <- p.grad = x; o = torch.optim.Rprop([p]); o.step()
?    o.step() <- p.grad = x; o = torch.optim.Adamax([p]); o.step()
?    o.step() <- p.grad = x; o = torch.optim.Adadelta([p]); o.step()
?    o.step() <- p.grad = x; o = torch.optim.Adam([p], lr=torch.tensor(0.1)); o.step()
?    o.step() <- p.grad = x; o = torch.optim.SGD([p], lr=torch.tensor(0.1, device=device)); o.step()
?    o.step() <- p.grad = x; o = torch.optim.Adam([p], foreach=False); o.step()
?    o.zero_grad() <- p.grad = x; o = torch.optim.Adam([p])
?    o.state_dict() <- p.grad = x; o = torch.optim.Adam([p]); o.step()
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
?    torch.sparse_coo_tensor(k[:4].view(2, 2), v[:2], (9, 9), check_invariants=True)
?    torch.sparse_csr_tensor(torch.tensor([0, 1, 2], device=device), k[:2], v[:2])
?    torch.sparse_csr_tensor(torch.tensor([0, 1, 2], device=device), k[:2], v[:2], (2, 2))
?    x.to_sparse_csr()
?    torch.sparse.mm(q, x) <- q = x.to_sparse()
?    torch.sparse.sum(q, 0) <- q = x.to_sparse()
?    q.indices() <- q = x.to_sparse()
?    q.values() <- q = x.to_sparse()
?    q + q <- q = x.to_sparse()
?    q.t().coalesce() <- q = x.to_sparse()
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
?    x_h.type("torch.cuda.FloatTensor") if kind == "cuda" else None
?    x_h.type(torch.cuda.FloatTensor) if kind == "cuda" else None
?    x.type("torch.FloatTensor") if kind == "cuda" else None
?    x.type(torch.cuda.FloatTensor) if kind == "cuda" else None
?    x.type_as(v)
?    x_h.type_as(v)
?    v.type_as(x_h)
?    torch._assert_async(flag)
?    torch.is_nonzero(flag)
?    v.share_memory_()
?    copy.deepcopy(v)
?    x.storage()
?    torch.cuda.manual_seed_all(1) if kind == "cuda" else None
?    torch.cuda.set_rng_state(torch.cuda.get_rng_state()) if kind == "cuda" else None
?    torch.cuda.ipc_collect() if kind == "cuda" else None
?    torch.cuda.max_memory_allocated() if kind == "cuda" else None
?    torch.cuda.memory_stats() if kind == "cuda" else None
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
