"""Tensors: attributes, methods, moves between devices, functions of torch, factories."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

ATTRIBUTES = """
cuda.shape          # -> size(int, int)
cuda.shape[0]       # -> int
cuda.size()         # -> size(int, int)
cuda.size(0)        # -> int
cuda.size(dim=-1)   # -> int
cuda.ndim           # -> int
cuda.dim()          # -> int
cuda.numel()        # -> int
len(cuda)           # -> int
cuda.dtype          # -> dtype (float)
mask.dtype          # -> dtype bool
cuda.device         # -> device cuda
host.device         # -> device cpu
host.device.type    # -> str
cuda.device.index   # -> int
cuda.is_cuda        # -> bool
cuda.requires_grad  # -> bool
cuda.is_floating_point()    # -> bool
cuda.is_contiguous()    # -> bool
cuda.stride()       # -> size[int]
cuda.stride(0)      # -> int
cuda.T              # -> cuda float 2
cuda.mT             # -> cuda float 2
cuda.data           # -> cuda float 2
cuda.grad           # -> cuda float 2
cuda.grad_fn        # -> ?
cuda.no_such_thing  # -> ?
cuda.data_ptr()     # -> int
cuda.element_size() # -> int
cuda.get_device()   # -> int
cuda.sum            # -> torch.Tensor.sum
torch.linalg.svd(cuda).S    # -> cuda float
torch.linalg.svd(cuda).shape[0]     # -> int
cuda.max(dim=1).device  # -> device cuda
"""

RESHAPED = """
def rows(x: Tensor):
    at = (x < 0).nonzero()      # -> caller int 2
    at.squeeze_(1)              # -> caller int
    at                          # -> caller int
    at.unsqueeze_(0)            # -> caller int
    y = torch.ones(3)           # -> cpu float 1
    y.unsqueeze_(0)             # -> cpu float 2
    y                           # -> cpu float 2
    x.t_()
    y.unsqueeze(0)              # -> cpu float 3
    y                           # -> cpu float 2
"""

METHODS = """
cuda.item()         # -> float
ints.sum().item()   # -> int
mask.any().item()   # -> bool
cuda.tolist()       # -> list[list[float]]
cuda[0].tolist()    # -> list[float]
cuda.sum().tolist() # -> float
ints.tolist()       # -> list[int]
cuda.cpu().numpy()  # -> array float 2
mask.cpu().numpy()  # -> array bool 2
cuda.detach().cpu().numpy() # -> array float 2
cuda.sum()          # -> cuda float 0
ints.sum()          # -> cuda int 0
cuda.sum(dim=1)     # -> cuda float 1
cuda.sum(1)         # -> cuda float 1
cuda.sum(-1, keepdim=True)  # -> cuda float 2
cuda.sum((0, 1))    # -> cuda float 0
cuda.sum(dim=[0, 1])    # -> cuda float 0
cuda.mean()         # -> cuda float 0
cuda.mean(dim=0)    # -> cuda float 1
cuda.max()          # -> cuda float 0
cuda.max(dim=1)     # -> (cuda float 1, cuda int 1)
cuda.max(dim=1).values  # -> cuda float 1
cuda.max(1)[1]      # -> cuda int 1
cuda.max(cuda)      # -> cuda float 2
cuda.min(0, keepdim=True).indices   # -> cuda int 2
cuda.sort().values  # -> cuda float 2
cuda.sort(descending=True)[1]       # -> cuda int 2
cuda.topk(3)        # -> (cuda float 2, cuda int 2)
cuda.topk(3).indices    # -> cuda int 2
cuda.median(dim=0).values   # -> cuda float 1
cuda.argmax()       # -> cuda int 0
cuda.argmax(dim=1)  # -> cuda int 1
cuda.argsort()      # -> cuda int 2
cuda.all()          # -> cuda bool 0
cuda.any(dim=1)     # -> cuda bool 1
cuda.norm()         # -> cuda float 0
cuda.norm(dim=1)    # -> cuda float 1
cuda.std()          # -> cuda float 0
cuda.nonzero()      # -> cuda int 2
cuda.nonzero(as_tuple=True) # -> tuple[cuda int 1]
cuda.nonzero(as_tuple=True)[0]      # -> cuda int 1
cuda.masked_select(mask)    # -> cuda float 1
cuda.unique()       # -> cuda float 1
ints.unique(return_counts=True)     # -> (cuda int, cuda int)
ints.bincount()     # -> cuda int 1
cuda.float()        # -> cuda float 2
cuda.long()         # -> cuda int 2
cuda.half()         # -> cuda float 2
cuda.bool()         # -> cuda bool 2
cuda.int()          # -> cuda int 2
cuda.detach()       # -> cuda float 2
cuda.clone()        # -> cuda float 2
cuda._indices()     # -> cuda
cuda._values()      # -> cuda
cuda.contiguous()   # -> cuda float 2
cuda.requires_grad_()   # -> cuda float 2
cuda.view(-1)       # -> cuda float 1
cuda.view(2, 3, 1)  # -> cuda float 3
cuda.view(host.shape)   # -> cuda float 2
cuda.view(cuda.size(0), -1) # -> cuda float 2
cuda.view(torch.int32)  # -> cuda int 2
cuda.reshape(6)     # -> cuda float 1
cuda.flatten()      # -> cuda float 1
cuda.unsqueeze(0)   # -> cuda float 3
cuda.squeeze()      # -> cuda float
cuda.transpose(0, 1)    # -> cuda float 2
cuda.permute(1, 0)  # -> cuda float 2
cuda.t()            # -> cuda float 2
cuda.expand(4, 2, 3)    # -> cuda float 3
cuda.expand_as(cuda[None])  # -> cuda float
cuda.repeat(2, 1)   # -> cuda float
cuda.split(2)       # -> tuple[cuda float 2]
cuda.chunk(2)[0]    # -> cuda float 2
cuda.unbind()       # -> tuple[cuda float 1]
cuda.gather(1, cuda.argmax(1, keepdim=True))    # -> cuda float 2
cuda.masked_fill(mask, 0.0) # -> cuda float 2
cuda.clamp(min=0)   # -> cuda float 2
cuda.clamp_(0)      # -> cuda float 2
cuda.cumsum(0)      # -> cuda float 2
cuda.softmax(dim=1) # -> cuda float 2
cuda.relu()         # -> cuda float 2
cuda.matmul(cuda.T) # -> cuda float
cuda.copy_(host)    # -> cuda float 2
host.copy_(cuda)    # -> cpu float 2
cuda.fill_(0)       # -> cuda float 2
cuda.zero_()        # -> cuda float 2
cuda.new_zeros(4)   # -> cuda float 1
ints.new_ones(4, 2) # -> cuda int 2
cuda.new_tensor([1, 2]) # -> cuda
cuda.new_full((2,), 1)  # -> cuda float 1
cuda.new_full(unknown(), 1)  # -> cuda float
cuda.new()              # -> cuda 1
cuda.new(unknown(), 2)  # -> cuda 2
cuda.new(unknown())     # -> cuda
cuda.view(unknown(), -1)  # -> cuda float 2
cuda.backward()     # -> None
cuda.type()         # -> str
cuda.type(torch.long)   # -> cuda int 2
cuda.type(torch.LongTensor) # -> cpu int 2
cuda.type(torch.cuda.FloatTensor)   # -> cuda float 2
cuda.type("torch.cuda.FloatTensor") # -> cuda float 2
host.type(torch.cuda.FloatTensor if n > 1 else torch.FloatTensor)   # -> cuda float 2
host.type("torch.FloatTensor" if n > 1 else "torch.cuda.FloatTensor")   # -> cuda float 2
(torch.cuda.LongTensor if n > 1 else torch.LongTensor)([1])     # -> cuda int
(torch.cuda.LongTensor if n > 1 else torch.FloatTensor)([1])    # -> tensor
host.type_as(cuda)  # -> cuda float 2
host.pin_memory()   # -> cpu float 2 pinned
host.pin_memory().to("cuda")    # -> cuda float 2
host.share_memory_()    # -> cpu float 2
cuda.register_hook(print)   # -> ?
unknown().unsqueeze(0)  # -> tensor
unknown().masked_fill(mask, 0)  # -> cuda
unknown().sum()     # -> ?
torch.Tensor.sum(cuda)  # -> cuda float 0
"""

MOVES = """
host.to("cuda")     # -> cuda float 2
host.to("cuda:1")   # -> cuda float 2
host.to(0)          # -> cuda float 2
host.to(device="cuda")  # -> cuda float 2
host.to(torch.device("cuda"))   # -> cuda float 2
host.to(torch.device("cuda", 0))    # -> cuda float 2
host.to(cuda.device)    # -> cuda float 2
host.to(cuda)       # -> cuda float 2
ints.to(host)       # -> cpu float 1
host.to(torch.float16)  # -> cpu float 2
cuda.to(torch.int64)    # -> cuda int 2
cuda.to(torch.bool) # -> cuda bool 2
cuda.to(dtype=torch.long)   # -> cuda int 2
host.to("cuda", torch.long) # -> cuda int 2
host.to("cuda", non_blocking=True)  # -> cuda float 2
host.to(device="cuda", dtype=torch.bool)    # -> cuda bool 2
host.to("cuda", copy=True)  # -> cuda float 2
host.to("meta")     # -> meta float 2
host.to("mps")      # -> meta float 2
cuda.to("cpu")      # -> cpu float 2
cuda.to(unknown())  # -> cuda float 2
host.to(unknown())  # -> tensor float 2
host.to(device=unknown())   # -> tensor float 2
host.to(F.of_another.library)   # -> tensor float 2
cuda.to(device=unknown())   # -> tensor float 2
cuda.to(memory_format=torch.channels_last)  # -> cuda float 2
host.cuda()         # -> cuda float 2
host.cuda(non_blocking=True)    # -> cuda float 2
cuda.cpu()          # -> cpu float 2
cuda.cpu().cuda()   # -> cuda float 2
host.cuda().float().mean().item()   # -> float

def f(x: Tensor, device):
    device              # -> device caller
    x.to(device)        # -> caller
    host.to(device)     # -> caller float 2
    host.to(x.device)   # -> caller float 2
    host.to(x)          # -> caller 2
    x.cpu()             # -> cpu
    x.cuda()            # -> cuda

def f(device="cuda"):
    host.to(device)     # -> cuda float 2

def f(x: Tensor, device: torch.device):
    y = torch.zeros(3, device=device)
    y                   # -> caller float 1

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
device                  # -> device cuda
host.to(device)         # -> cuda float 2

device = "cuda" if torch.cuda.is_available() else "cpu"
host.to(device)         # -> cuda float 2

device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
host.to(device)         # -> cuda float 2

if torch.cuda.is_available():
    device = torch.device("cuda")
else:
    device = torch.device("cpu")
host.to(device)         # -> cuda float 2

from settings import DEVICE, DEVICE_TYPE, DTYPE, config
where = choose()
host.to(where)          # -> tensor float 2
torch.zeros(2, device=where)        # -> caller float 1
device = get_device()
host.to(device)         # -> caller@device float 2
torch.zeros(2, device=device)       # -> caller@device float 1
host.to(config.device)  # -> caller float 2
host.to(DEVICE)         # -> caller float 2
host.to(DEVICE_TYPE)    # -> caller float 2
host.to(DTYPE)          # -> cpu float 2
host.to(options["device"])          # -> caller float 2

device = torch.device(unknown())
device                  # -> device caller@device
host.to(device)         # -> caller@device float 2
torch.zeros(2, device=device)       # -> caller@device float 1
host.to(device) + 1     # -> caller@device float 2
device = torch.device(another())
host.to(device)         # -> caller@device float 2

device = torch.device("cuda")
torch.device(device)    # -> device cuda
torch.device(0)         # -> device cuda
torch.device(f"cuda:{n}")   # -> device cuda
torch.device("cuda:{}".format(n))   # -> device cuda
torch.device("cuda:%d" % unknown()) # -> device cuda
torch.device("{}:0".format(n))      # -> device caller
torch.device("cuda", n) # -> device cuda
torch.device(type="cpu")    # -> device cpu
torch.cuda.current_device() # -> device cuda
host.to(f"cuda:{n}")    # -> cuda float 2

with torch.device("cuda"):
    torch.zeros(3)      # -> cuda float 1
"""

ELSEWHERE = """
from library import blur, where_to
def f(x: Tensor, model, box):
    torch.log(blur(x))              # -> caller float
    torch.log(blur(x).scores[0])    # -> caller float
    torch.log(model(x) + 1)         # -> caller float
    torch.log(-box.blurred(x))      # -> caller float
    torch.log(blur(3, x.device))    # -> caller float
    torch.log(blur(3))              # -> tensor float
    torch.log(blur(x.cpu()))        # -> tensor float
    torch.log(blur(x, "cpu"))       # -> tensor float
    torch.log(blur(x, host))        # -> tensor float
    torch.log(box.cuda())           # -> caller float
    torch.log(box.to("cuda:0"))     # -> caller float
    torch.log(box.to("cpu"))        # -> cpu float
    torch.tensor(blur(x))           # -> cpu
    for row in blur(x):
        torch.log(row)              # -> caller float
    either = blur(x) if box else blur(x.cpu())
    torch.log(either)               # -> tensor float
    blur(x)                         # -> ?
"""

FACTORIES = """
torch.zeros(3)              # -> cpu float 1
torch.zeros(3, 4)           # -> cpu float 2
torch.zeros((3, 4))         # -> cpu float 2
torch.zeros(size=(3, 4))    # -> cpu float 2
torch.zeros(host.shape)     # -> cpu float 2
torch.zeros(*host.shape)    # -> cpu float 2
torch.zeros(3, *sizes())    # -> cpu float
torch.zeros(*sizes(), device="cuda")    # -> cuda float
torch.tensor(*values())     # -> cpu
torch.zeros(*sizes(), **options)    # -> tensor float
torch.zeros([])             # -> cpu float 0
torch.zeros(3, dtype=torch.long)    # -> cpu int 1
torch.zeros(3, dtype=torch.bool)    # -> cpu bool 1
torch.zeros(3, dtype=mask.dtype)    # -> cpu bool 1
torch.zeros(3, dtype=ints.dtype)    # -> cpu int 1
torch.zeros(3, device="cuda")       # -> cuda float 1
torch.zeros(3, device=0)    # -> cuda float 1
torch.zeros(3, device=cuda.device)  # -> cuda float 1
torch.zeros(3, device=None) # -> cpu float 1
torch.zeros(3, **options)   # -> tensor float
torch.ones(3).cuda()        # -> cuda float 1
torch.empty(2, 3, pin_memory=True)  # -> cpu float 2 pinned
torch.full((2, 3), 1)       # -> cpu int 2
torch.full((2, 3), 1.5, device="cuda")  # -> cuda float 2
torch.full((2,), True)      # -> cpu bool 1
torch.full(unknown(), 1)    # -> cpu
torch.zeros(unknown(), 3)   # -> cpu float 2
torch.zeros(unknown())      # -> cpu float
torch.arange(3)             # -> cpu int 1
torch.arange(3.0)           # -> cpu float 1
torch.arange(0, 1, 0.1)     # -> cpu float 1
torch.arange(3, device="cuda")      # -> cuda int 1
torch.arange(n, dtype=torch.float)  # -> cpu float 1
torch.linspace(0, 1, 3)     # -> cpu float 1
torch.eye(3)                # -> cpu float 2
torch.randperm(9)           # -> cpu int 1
torch.randint(0, 9, (2, 3)) # -> cpu int 2
torch.randint(9, (2,), device="cuda")   # -> cuda int 1
torch.randn(2, 3, generator=None)   # -> cpu float 2
torch.tensor(1)             # -> cpu int 0
torch.tensor(1.5)           # -> cpu float 0
torch.tensor([1, 2])        # -> cpu int 1
torch.tensor([[1.0], [2.0]])    # -> cpu float 2
torch.tensor([1, 2.0])      # -> cpu float 1
torch.tensor([True])        # -> cpu bool 1
torch.tensor([1], device="cuda")    # -> cuda int 1
torch.tensor([1], dtype=torch.float)    # -> cpu float 1
torch.tensor(unknown())     # -> cpu
torch.tensor(host.shape)    # -> cpu int 1
torch.tensor([len(a) for a in unknown()])   # -> cpu int 1
torch.as_tensor([1.0])      # -> cpu float 1
torch.as_tensor(cuda)       # -> cuda float 2
torch.as_tensor(host, device="cuda")    # -> cuda float 2
torch.from_numpy(np.ones(3))    # -> cpu float 1
torch.zeros_like(cuda)      # -> cuda float 2
torch.zeros_like(cuda, dtype=torch.long)    # -> cuda int 2
torch.ones_like(cuda, device="cpu") # -> cpu float 2
torch.rand_like(cuda)       # -> cuda float 2
torch.full_like(ints, 2)    # -> cuda int 1
torch.empty_like(unknown()) # -> tensor
torch.Tensor([1, 2])        # -> cpu float
torch.FloatTensor(3)        # -> cpu float
torch.LongTensor([1])       # -> cpu int
torch.cuda.FloatTensor(3)   # -> cuda float
torch.tril_indices(3, 3)    # -> cpu int 2
torch.meshgrid(ints, ints)  # -> tuple[cuda int]
torch.hann_window(8)        # -> cpu float 1
torch.sparse_coo_tensor(host.long(), host, device="cuda")   # -> cuda
torch.sparse_coo_tensor(host.long(), host)  # -> cpu
torch.sparse_coo_tensor(ints, cuda, device=None)    # -> cuda
torch.sparse.FloatTensor(ints, cuda)    # -> cuda
torch.sparse.FloatTensor(host.long(), host, host.shape)     # -> cpu
torch.sparse_csr_tensor(ints, ints, cuda, device="cpu")     # -> cpu
torch.fft.fftfreq(8)        # -> cpu float 1
torch.Size([1, 2])          # -> size[int]
torch.Generator(device="cuda")      # -> Generator(device='cuda')
torch.load("a.pt")          # -> ?
torch.distributions.Normal(cuda, 1).sample()    # -> cuda float
torch.distributions.Normal(0.0, 1.0).sample()   # -> cpu float
torch.distributions.Normal(0.0, cuda).log_prob(host)    # -> cuda float
torch.distributions.Normal(0.0, 1.0).log_prob(cuda)     # -> cuda float
torch.distributions.Normal(cuda, 1).mean        # -> cuda float
torch.distributions.Normal(cuda, 1).scale       # -> cuda float
torch.distributions.Normal(cuda, 1).batch_shape # -> size[int]
torch.distributions.normal.Normal(cuda, 1).expand((2,)).entropy()   # -> cuda float
torch.distributions.Categorical(logits=cuda).sample()   # -> cuda int
torch.distributions.Categorical(logits=cuda).probs      # -> cuda float
torch.distributions.Categorical(logits=cuda).logits     # -> cuda float 2
torch.distributions.Independent(torch.distributions.Normal(cuda, 1), 1).rsample()   # -> cuda float
torch.distributions.Independent(torch.distributions.Normal(cuda, 1), 1).base_dist.rsample()     # -> cuda float
torch.distributions.kl_divergence(torch.distributions.Normal(cuda, 1), torch.distributions.Normal(cuda, 1)) # -> cuda float
torch.distributions.Normal(*cuda).sample()      # -> tensor
"""

FUNCTIONS = """
torch.cat([cuda, cuda])     # -> cuda float 2
torch.cat([t for t in (cuda, cuda)], 1) # -> cuda float 2
torch.stack([cuda, cuda])   # -> cuda float 3
torch.stack([t.sum() for t in cuda])    # -> cuda float 1
torch.add(cuda, 1)          # -> cuda float 2
torch.matmul(cuda, cuda.T)  # -> cuda float
torch.bmm(cuda[None], cuda[None])   # -> cuda float 3
torch.einsum("ij,jk->ik", cuda, cuda)   # -> cuda float
torch.where(mask, cuda, 0.0)    # -> cuda float 2
torch.where(mask)           # -> tuple[cuda int 1]
torch.where(mask)[0]        # -> cuda int 1
torch.nonzero(mask)         # -> cuda int 2
torch.nonzero(mask, as_tuple=True)  # -> tuple[cuda int 1]
torch.max(cuda)             # -> cuda float 0
torch.max(cuda, 1)          # -> (cuda float 1, cuda int 1)
torch.max(cuda, dim=1)[0]   # -> cuda float 1
torch.max(cuda, cuda)       # -> cuda float 2
torch.maximum(cuda, ints)   # -> cuda float 2
torch.argmax(cuda, dim=-1)  # -> cuda int 1
torch.topk(cuda, 2).values  # -> cuda float 2
torch.sum(cuda, dim=1)      # -> cuda float 1
torch.mean(cuda)            # -> cuda float 0
torch.any(mask)             # -> cuda bool 0
torch.all(mask, dim=1)      # -> cuda bool 1
torch.equal(cuda, cuda)     # -> bool
torch.allclose(cuda, cuda)  # -> bool
torch.is_tensor(cuda)       # -> bool
torch.numel(cuda)           # -> int
torch.unique(ints)          # -> cuda int 1
torch.unique(ints, return_inverse=True)     # -> (cuda int, cuda int)
torch.sort(cuda)[0]         # -> cuda float 2
torch.split(cuda, 2)        # -> tuple[cuda float 2]
torch.chunk(cuda, 2, dim=1)[0]  # -> cuda float 2
torch.flatten(cuda, 1)      # -> cuda float
torch.squeeze(cuda)         # -> cuda float
torch.clamp(cuda, 0)        # -> cuda float 2
torch.linalg.norm(cuda)     # -> cuda float 0
torch.linalg.svd(cuda)[1]   # -> cuda float
torch.linalg.inv(cuda)      # -> cuda float 2
torch.fft.rfft(cuda)        # -> cuda float 2
torch.bincount(ints)        # -> cuda int 1
torch.bernoulli(cuda)       # -> cuda float 2
torch.multinomial(cuda, 1)  # -> cuda int
torch.normal(0.0, 1.0, (2,))    # -> cpu float 1
torch.normal(cuda, 1.0)     # -> cuda float 2
torch.randn(2).to(cuda)     # -> cuda float 1
torch.cumsum(ints, 0)       # -> cuda int 1
torch.searchsorted(cuda[0], cuda)   # -> cuda int
torch.finfo(torch.float16).max  # -> ?
torch.no_grad()             # -> ?
torch.autograd.grad(cuda.sum(), cuda)   # -> tuple[cuda]
torch.nn.utils.clip_grad_norm_([cuda], 1.0)     # -> cuda float 0
torch.utils.checkpoint.checkpoint(torch.relu, cuda)     # -> cuda float 2
F.relu(cuda)                # -> cuda float 2
F.softmax(cuda, dim=1)      # -> cuda float 2
F.cross_entropy(cuda, ints) # -> cuda float 0
F.cross_entropy(cuda, ints, reduction="none")   # -> cuda float
F.cross_entropy(cuda, ints, reduction="sum")    # -> cuda float 0
F.mse_loss(cuda, cuda)      # -> cuda float 0
F.one_hot(ints)             # -> cuda int 2
F.interpolate(cuda[None, None], scale_factor=2) # -> cuda float 4
F.pad(cuda, (1, 1))         # -> cuda float 2
F.conv2d(cuda[None, None], cuda[None, None])    # -> cuda float 4
F.linear(cuda, cuda)        # -> cuda float 2
F.normalize(cuda)           # -> cuda float 2
F.embedding(ints, cuda)     # -> cuda float 2
F.dropout(cuda, 0.1)        # -> cuda float 2
F.max_pool2d(cuda[None], 2) # -> cuda float 3
F.scaled_dot_product_attention(cuda, cuda, cuda)    # -> cuda float 2
F.grid_sample(cuda[None, None], cuda[None, None])   # -> cuda float 4
"""


@table(RESHAPED)
def test_methods_that_change_dimensions(case: Case) -> None:
    check(case)


@table(ATTRIBUTES)
def test_attributes(case: Case) -> None:
    check(case)


@table(METHODS)
def test_methods(case: Case) -> None:
    check(case)


@table(MOVES)
def test_moves(case: Case) -> None:
    check(case)


@table(ELSEWHERE)
def test_unknown_code(case: Case) -> None:
    check(case)


@table(FACTORIES)
def test_factories(case: Case) -> None:
    check(case)


@table(FUNCTIONS)
def test_functions(case: Case) -> None:
    check(case)
