"""Where tensors are: which operands decide it, which names and classes say it."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

SIZES = """
n = ints.sum()
torch.arange(4).reshape(n, -1)      # -> cpu int 2
host.view(n, 2)         # -> cpu float 2
host.unsqueeze(n)       # -> cpu float 3
host.repeat(n, 1)       # -> cpu float
host.expand(n, -1)      # -> cpu float 2
host.expand_as(cuda)    # -> cpu float
host.sum(dim=n)         # -> cpu float
host.roll(shifts=n)     # -> cpu float 2
host.split(n)           # -> tuple[cpu float 2]
torch.topk(host, n)     # -> (cpu float 2, cpu int 2)
torch.linalg.norm(host, dim=n)      # -> cpu float
F.one_hot(torch.arange(3), n)       # -> cpu int 2
F.pad(host, (0, n))     # -> cpu float 2
F.interpolate(host, size=(n, n))    # -> cpu float 2
torch.zeros(n, 3)       # -> cpu float 2
cuda.reshape(host.sum().long(), -1) # -> cuda float 2
cuda.topk(torch.tensor(2))          # -> (cuda float 2, cuda int 2)

host.gather(0, ints)    # -> cuda float 2
host.masked_fill(mask, 0)           # -> cuda float 2
host.clamp(ints.sum())  # -> cuda float 2
host.clamp(max=ints.sum())          # -> cuda float 2
torch.add(host.sum(), cuda)         # -> cuda float 2
torch.add(host, cuda, out=cuda)     # -> cuda float 2
torch.einsum("ij,jk", host, cuda)   # -> cuda float
host.index_select(0, index=ints)    # -> cuda float 2
host.repeat_interleave(ints)        # -> cuda float 1
torch.stack([cuda, cuda])           # -> cuda float 3

def meets(x: Tensor, rows: Tensor):
    torch.tensor([1.0, 2.0]).gather(0, rows)        # -> cpu float
    F.linear(x, torch.ones(3, 4))   # -> cpu float
    torch.maximum(torch.zeros(3), x)    # -> cpu float
    torch.maximum(torch.tensor(0.0), x) # -> caller float
    F.ctc_loss(x, x, torch.tensor([3]), torch.tensor([4]))  # -> caller float 0
    x.index_put((torch.tensor([0, 1]),), x)     # -> caller
"""


@table(SIZES)
def test_operands_decide_where_the_result_is_and_sizes_do_not(case: Case) -> None:
    check(case)


LOADERS = """
def annotated(a_loader: Iterable, b_loader: typing.Iterator, c_loader: "typing.Sequence", d_loader: Any, e_loader: object):
    for x in a_loader:
        x               # -> batch[cpu]
    for x in b_loader:
        x               # -> batch[cpu]
    for x in c_loader:
        x               # -> batch[cpu]
    for x in d_loader:
        x               # -> batch[cpu]
    for x in e_loader:
        x               # -> batch[cpu]

def said(a_loader: Iterable[Tensor], b_loader: Iterable[Tuple[Tensor, Tensor]], c_loader: Optional[Iterable] = None,
         d_loader: Iterable[dict] = (), items: Iterable = (), pairs: Iterable[Tensor] = ()):
    for x in a_loader:
        x               # -> cpu
    for x, y in b_loader:
        y               # -> cpu
    for x in c_loader:
        x               # -> batch[cpu]
    for x in d_loader:
        x               # -> batch[cpu]
    for x in items:
        x               # -> ?
    for x in pairs:
        x               # -> caller

import helpers
from helpers import other
def held(data, config):
    for x in data.train_loader:
        x               # -> batch[cpu]
    for x in data["val_loader"]:
        x               # -> batch[cpu]
    for x in helpers.get_train_loader(config):
        x               # -> batch[cpu]
    for x in data.val_dataloader():
        x               # -> batch[cpu]
    for x in data.get_train_loader(config):
        x               # -> batch[cpu]
    for x in helpers.image_loader(config):
        x               # -> ?
    for x in data.image_loader(config):
        x               # -> ?
    loaders = other(config)
    for x in loaders["train"]:
        x               # -> batch[cpu]
    for x in [data.train_loader, 3][0]:
        x               # -> batch[cpu]

def asked(train_loader):
    it = iter(train_loader)
    for i in range(10):
        try:
            x, y = next(it)
        except StopIteration:
            it = iter(train_loader)
            x, y = next(it)
        x               # -> cpu
    it.next()           # -> batch[cpu]
    it.__next__()       # -> batch[cpu]
    train_loader.__iter__().__next__()  # -> batch[cpu]

def trains(data, items: Iterable, more: List[Tensor]):
    for x in data:
        x               # -> batch[cpu pinned]
    for x in items:
        x               # -> batch[cpu pinned]
    for x in more:
        x               # -> caller
def evaluates(loader):
    for x in loader:
        x               # -> batch[cpu pinned]
def main(dataset):
    loader = torch.utils.data.DataLoader(dataset, pin_memory=True)
    trains(loader, loader, loader)
    evaluates(loader)

def runs(model, batches, pairs, dicts, others, unmoved, device):
    for x in batches:
        x               # -> batch[cpu]
        x = x.to(device)
        model(x)
    for i, (x, y) in enumerate(pairs):
        y               # -> cpu
        x, y = x.to(device), y.cuda()
        model(x, y)
    for batch in dicts:
        batch           # -> batch[cpu]
        batch = {k: v.to(device) for k, v in batch.items()}
        model(**batch)
    for x in others:
        x               # -> ?
        y = y.to(device)
        model(y)
    for x in unmoved:
        x               # -> ?
        model(x)
"""


@table(LOADERS)
def test_loaders_by_their_names_and_by_what_loops_do(case: Case) -> None:
    check(case)


INDICES = """
def reads(t: Tensor, at: Tensor, other: Tensor, step: Tensor, batch):
    table = torch.linspace(0, 1, 10)
    table[t].sum()      # -> cpu float 0
    t                   # -> cpu
    table[at, 0]        # -> cpu float
    at                  # -> cpu
    cuda[other]         # -> cuda float
    other               # -> caller
    table[step.max()]   # -> cpu float
    step                # -> caller
    table[batch.index]  # -> cpu float
    table[ints]         # -> cpu float 1

def stores(t: Tensor, mask: Tensor, given: Tensor, n: Tensor):
    counts = torch.zeros(10)
    counts[t] = 1
    t                   # -> cpu
    counts[mask] += 1
    mask                # -> cpu
    given[n] = 1
    n                   # -> caller
    for i in range(3):
        n               # -> caller
        counts[n.item()] = 1
"""


@table(INDICES)
def test_an_index_into_a_tensor_on_the_cpu_is_there(case: Case) -> None:
    check(case)


AUTOGRAD = """
class Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, index, size):
        table = torch.arange(10)
        ctx.save_for_backward(x, index, table, cuda)
        ctx.sizes = torch.tensor([1, 2])
        ctx.first = x[0]
        ctx.size = size
        return x
    @staticmethod
    def backward(ctx, grad):
        x, index, table, weights = ctx.saved_tensors
        x               # -> caller
        index           # -> caller
        table           # -> cpu int 1
        weights         # -> cuda float 2
        ctx.saved_tensors[2]    # -> cpu int 1
        ctx.sizes       # -> cpu int 1
        ctx.first       # -> caller
        ctx.size        # -> ?
        ctx.needs_input_grad[0] # -> bool
        grad            # -> caller
        ctx.nothing     # -> torch.autograd.function.FunctionCtx.nothing
        return grad, None, None
class Child(Pool):
    @staticmethod
    def backward(ctx, grad):
        table = ctx.saved_tensors[2]    # -> cpu int 1

class New(torch.autograd.Function):
    def forward(x, index):
        return x
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output.cpu())
    @staticmethod
    def backward(ctx, grad: Tensor):
        (out,) = ctx.saved_tensors      # -> caller
        return grad

class Old(torch.autograd.Function):
    def __init__(self, n):
        self.n = n
    def forward(self, x):
        x               # -> cuda float 2
        return x.sum(), self.n
Old(3)(cuda)            # -> (cuda float 0, int)

class Other:
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx             # -> ?
"""


@table(AUTOGRAD)
def test_what_forward_saves_is_where_it_was(case: Case) -> None:
    check(case)


MOVED = """
class Boxes:
    def __init__(self, n, x: Tensor):
        self.table = torch.zeros(n, 2)
        self.rows = [torch.zeros(2)]
        self.x = x
        self.on_gpu = torch.zeros(3, device="cuda")
        self.kept = torch.zeros(3)
        self.table.sum()        # -> cpu float 0
    def to(self, device):
        self.kept = self.kept.cpu()
        other = type(self)(self.table.to(device))
        return other
    def total(self):
        self.table      # -> tensor float 2
        self.rows[0]    # -> tensor float 1
        self.x          # -> caller
        self.on_gpu     # -> cuda float 1
        self.kept       # -> cpu float 1

class Fields:
    def __init__(self):
        self.table = torch.zeros(3, 2)
    def cuda(self):
        for name, value in vars(self).items():
            setattr(self, name, value.cuda())
        return self
class Child(Fields):
    def total(self):
        self.table      # -> tensor float 2 | ?

class Stays:
    def __init__(self, model):
        self.table = torch.zeros(3, 2)
        self.model = model
    def to(self, device):
        self.model.to(device)
        return self
    def total(self):
        self.table      # -> cpu float 2

class Others:
    def __init__(self):
        self.table = torch.zeros(3, 2)
    def to_device(self, x):
        return self.table.copy_(x).cuda()
    def total(self):
        self.table      # -> cpu float 2

class Moves:
    def __init__(self):
        self.table = torch.zeros(3, 2)
    def to(self, device):
        self.table = self.table.to(device)
        return self
    def total(self):
        self.table      # -> caller float 2

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.zeros(3, 2)
    def to(self, device):
        return super().to(device)
    def total(self):
        self.table      # -> cpu float 2
"""


LEFT = """
@dataclasses.dataclass
class Batch:
    mels: Tensor
    lengths: Tensor
    def to(self, device):
        cpu_fields = {"lengths"}
        moved = {f.name: getattr(self, f.name).to(device) for f in dataclasses.fields(self) if f.name not in cpu_fields}
        return Batch(**moved)
def step(batch: Batch, device):
    batch = batch.to(device)
    batch.mels              # -> caller
    batch.lengths           # -> cpu
    batch.lengths // 2      # -> cpu

@dataclasses.dataclass
class Batch:
    mels: Tensor
    lengths: Tensor
    names: list
    def to(self, device):
        return Batch(self.mels.to(device), lengths=self.lengths, names=self.names)
def step(batch: Batch):
    batch.mels              # -> caller
    batch.lengths           # -> cpu

@dataclasses.dataclass
class Batch:
    mels: Tensor
    lengths: Tensor
    def to(self, device):
        gpu_fields = {"lengths"}
        return Batch(self.mels.to(device), self.lengths.to(device))
    def copy(self):
        return Batch(self.mels, self.lengths)
def step(batch: Batch):
    batch.mels              # -> caller
    batch.lengths           # -> caller

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("lengths", torch.zeros(3))
    def to(self, device):
        return Net(self.fc.to(device), lengths=self.lengths)
    def forward(self, x):
        self.lengths            # -> model float 1 buffer
"""


@table(LEFT)
def test_fields_that_a_class_leaves_on_the_cpu(case: Case) -> None:
    check(case)


@table(MOVED)
def test_fields_of_a_class_that_is_made_anew_on_a_device(case: Case) -> None:
    check(case)


DEVICES = """
import helpers
from helpers import get_device_id, rank
def moves(x: Tensor, y, options):
    host.to(get_device_id())        # -> caller float 2
    host.to(helpers.dev())          # -> caller float 2
    host.to(options.get_device())   # -> caller float 2
    host.to(helpers.default_device)     # -> caller float 2
    host.to(rank())                 # -> tensor float 2
    host.to("cpu" if x.any() else x.device)     # -> tensor float 2
    host.to("cpu" if x.any() else x.get_device())   # -> tensor float 2
    host.to("cuda:0" if x.any() else "cuda:1")  # -> cuda float 2
    host.to(x.device if x.any() else None)      # -> caller float 2
    helpers.to_device(y)            # -> ?
    helpers.get_device_name()       # -> ?
    torch.zeros(3, device=helpers.dev())    # -> caller float 1
    x.to(helpers.dev())             # -> caller

def dev():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
def own():
    host.to(dev())                  # -> cuda float 2
"""


@table(DEVICES)
def test_functions_that_give_a_device_by_their_names(case: Case) -> None:
    check(case)


ON_CPU = '''
def names(cpu_x: Tensor, x_cpu: Tensor, use_cpu: Tensor, x: Tensor, xs_cpu: List[Tensor], maybe_cpu=None):
    cpu_x               # -> cpu
    x_cpu.sum()         # -> cpu 0
    use_cpu             # -> caller
    xs_cpu[0]           # -> cpu
    grad_cpu = x.grad   # -> cpu
    cuda_cpu = cuda     # -> cuda float 2
    on_cpu = cuda       # -> cuda float 2
    loss_cpu = helper(x)    # -> ?
    x                   # -> caller

class Batch:
    x_cpu: Tensor
    y: Tensor
def fields(batch: Batch):
    batch.x_cpu         # -> cpu
    batch.y             # -> caller

def compute_cpu_loss(x: Tensor, y: Tensor):
    x                   # -> cpu
    return x * y.float()        # -> cpu float
def callers(x: Tensor, y: Tensor):
    compute_cpu_loss(x, y)      # -> cpu float
    compute_cpu_loss(cuda, y)   # -> cuda float

def to_cpu(x: Tensor):
    x                   # -> caller

def cpu_offload(x: Tensor):
    x                   # -> caller

def documented(x: Tensor, y: Tensor, z: Tensor, w: Tensor):
    """Pack it.

    Args:
        x (Tensor): the boxes,
            on CPU
        y (Tensor): the scores, on the CPU or the GPU
        z: moved to the CPU
        w (Tensor): a CPU tensor
    """
    x                   # -> cpu
    y                   # -> caller
    z                   # -> caller
    w                   # -> cpu

def numpy_style(x: Tensor, y: Tensor):
    """Pack it.

    Parameters
    ----------
    x : Tensor
        Offsets on the host.
    y : Tensor
        Values. If on CPU, nothing is done.
    """
    x                   # -> cpu
    y                   # -> caller

def whole(x: Tensor):
    """Computes advantages on the CPU."""
    x                   # -> cpu

def other(x: Tensor):
    """Computes advantages faster than on the CPU."""
    x                   # -> caller

class Net(nn.Module):
    def forward(self, x: Tensor, mask_cpu: Tensor):
        x               # -> model
        mask_cpu        # -> cpu
'''


@table(ON_CPU)
def test_names_and_docstrings_that_say_where_tensors_are(case: Case) -> None:
    check(case)


DATASETS = """
from torch.utils.data import Dataset, DataLoader
class OnGpu(Dataset):
    def __init__(self, x):
        self.x = torch.zeros(100, 3).cuda()
        self.y = torch.zeros(100, device="cuda")
    def __getitem__(self, i):
        return self.x[i], self.y[i]
class Named(OnGpu):
    def __getitem__(self, i):
        return {"x": self.x[i]}
class Given(Dataset):
    def __init__(self, x: Tensor, device):
        self.x = x
        self.y = x.to(device)
    def __getitem__(self, i):
        return self.x[i], self.y[i]
class Mixed(OnGpu):
    def __getitem__(self, i):
        return self.x[i], torch.tensor(3)
class Moved(Dataset):
    def __init__(self, x, device):
        self.x = torch.tensor(x).to(device)
        self.y = torch.tensor(x, device=device)
    def __getitem__(self, i):
        return self.x[i], self.y[i]
class Half(Moved):
    def __getitem__(self, i):
        return self.x[i], torch.tensor(i)
class Scaled(Given):
    def __getitem__(self, i):
        return torch.as_tensor(self.x[i]) * 2, torch.stack([self.x[i], self.x[i]])
class Loaded(Dataset):
    def __init__(self, path, x):
        self.x = torch.load(path)
        self.y = torch.as_tensor(x)
    def __getitem__(self, i):
        return self.x[i].float(), torch.nn.functional.relu(self.y[i])
def main(x, collate, device):
    for batch in DataLoader(OnGpu(x), num_workers=2):
        batch           # -> batch[cuda]
    for batch in DataLoader(Named(x)):
        batch           # -> batch[cuda]
    for batch in DataLoader(Given(x, device)):
        batch           # -> batch[cpu]
    for batch in DataLoader(Mixed(x)):
        batch           # -> batch[tensor]
    for batch in DataLoader(Moved(x, device)):
        batch           # -> batch[caller]
    for batch in DataLoader(Half(x, device)):
        batch           # -> batch[tensor]
    for batch in DataLoader(Scaled(x, 0)):
        batch           # -> batch[cpu]
    for batch in DataLoader(Loaded("a", x)):
        batch           # -> batch[cpu]
    for batch in DataLoader(OnGpu(x), collate_fn=collate):
        batch           # -> batch[cpu]
"""


@table(DATASETS)
def test_batches_of_items_that_are_on_a_gpu(case: Case) -> None:
    check(case)


GIVEN = """
class Profiler:
    def __init__(self):
        self.times = []
    def results(self):
        def stats(times: typing.Sequence | torch.Tensor):
            data = torch.as_tensor(times)       # -> cpu
            return data.sum().item()
        return stats(torch.tensor([1.0])), stats(self.times)

class OnGpu:
    def results(self, x: Tensor):
        def stats(times: typing.Sequence | torch.Tensor):
            return torch.as_tensor(times)       # -> caller
        return stats(torch.tensor([1.0])), stats([x])

class Public:
    def stats(self, times: typing.Sequence | torch.Tensor):
        return torch.as_tensor(times)       # -> caller
    def results(self):
        return self.stats(torch.tensor([1.0]))
"""


@table(GIVEN)
def test_parameters_that_only_get_tensors_on_the_cpu(case: Case) -> None:
    check(case)


MOVED_UNKNOWN = """
def moved(target, other, place, names):
    target_cpu = target.to("cpu")
    torch.unique(target_cpu)                    # -> cpu 1
    torch.unique(target_cpu.eq(3))              # -> cpu 1
    torch.unique(other.to(torch.device("cpu"))) # -> cpu 1
    host = other.cpu()
    host_cpu = host
    torch.unique(host_cpu)                      # -> cpu 1

    # look-alikes
    kept_cpu = other.kept()
    torch.unique(kept_cpu)                      # -> tensor 1
    torch.unique(target.to(place))              # -> tensor 1
    torch.unique(target.to("cpu", other))       # -> tensor 1
    torch.unique(names.to_list("cpu"))          # -> tensor 1
"""


@table(MOVED_UNKNOWN)
def test_something_unknown_that_is_moved_to_the_cpu(case: Case) -> None:
    check(case)
