"""Loaders and their batches, numpy, einops, and the well-known packages around torch."""

from __future__ import annotations

from tests.semantics.notation import Case, check, table

LOADERS = """
from torch.utils.data import DataLoader
from tqdm import tqdm
from tqdm.auto import tqdm as bar
loader = DataLoader(data, batch_size=4)
loader                  # -> DataLoader(dataset=?, batch_size=4)
for batch in loader:
    batch               # -> batch[cpu]
    batch[0]            # -> cpu
    batch["x"]          # -> cpu
    batch.x             # -> cpu
    batch.cuda()        # -> batch[cuda]
    batch.to("cuda")["x"]   # -> cuda
    batch.sum()         # -> cpu 0
    x, y = batch        # -> cpu, cpu
    x.cuda()            # -> cuda
    x.to("cuda") + 1    # -> cuda
for x, y in loader:     # -> cpu, cpu
    x                   # -> cpu
import torch_geometric.data, torch_geometric.loader
for graphs in torch_geometric.data.DataLoader(data, batch_size=4):
    graphs.to("cuda")   # -> batch[cuda]
    graphs.num_graphs   # -> int
    graphs.num_atoms    # -> cpu
for graphs in torch_geometric.loader.LinkNeighborLoader(data, [10]):
    graphs.x            # -> cpu
for graphs in torch_geometric.loader.DataListLoader(data, batch_size=4):
    graphs[0].x         # -> ?
for (x, y), z in loader:    # -> cpu, cpu, cpu
    pass
for i, batch in enumerate(loader):
    i                   # -> int
    batch               # -> batch[cpu]
for i, (x, y) in enumerate(tqdm(loader), start=1):  # -> int, cpu, cpu
    pass
for x, y in tqdm(loader, desc="a"): # -> cpu, cpu
    pass
for batch in bar(loader):
    batch["a"]          # -> cpu
for (a, b), c in zip(loader, loader):   # -> cpu, cpu, batch[cpu]
    pass
progress = tqdm(loader)
for x, y in progress:   # -> cpu, cpu
    progress.set_postfix(loss=1)
it = iter(loader)
x, y = next(it)         # -> cpu, cpu
x, y = next(iter(loader))   # -> cpu, cpu
len(loader)             # -> int
loader.dataset          # -> torch.utils.data.DataLoader.dataset
[x for x, y in loader]  # -> list[cpu]
for batch in list(loader):
    batch               # -> batch[cpu]
for i, batch in zip(range(3), loader):  # -> int, batch[cpu]
    pass
batch = {k: v.to("cuda") for k, v in next(iter(loader)).items()}
batch["x"]              # -> cuda
batch = [t.cuda() for t in next(iter(loader))]
batch[0]                # -> cuda

loader = torch.utils.data.DataLoader(data, pin_memory=True)
for x, y in loader:     # -> cpu pinned, cpu pinned
    x.to("cuda", non_blocking=True) # -> cuda
    x[0]                # -> cpu

from torch.utils.data import sampler as samplers, BatchSampler, RandomSampler, Sampler
for positions in samplers.BatchSampler(samplers.SubsetRandomSampler(range(9)), batch_size=3, drop_last=True):
    positions           # -> list[int]
for position in RandomSampler(data):
    position            # -> int
class Pairs(BatchSampler):
    def __iter__(self):
        yield torch.arange(2)
for pair in Pairs(RandomSampler(data), 2, True):
    pair                # -> cpu int 1
class Own(Sampler):
    pass
for each in Own():
    each                # -> ?

loaders = {"train": torch.utils.data.DataLoader(a), "val": torch.utils.data.DataLoader(b)}
for x, y in loaders["train"]:   # -> cpu, cpu
    pass
for phase in ["train", "val"]:
    for x, y in loaders[phase]: # -> cpu, cpu
        pass

class Data(torch.utils.data.Dataset):
    def __init__(self, path):
        self.x = torch.load(path)
        self.table = torch.zeros(3)
    def __len__(self):
        return 3
    def __getitem__(self, i):
        i               # -> int
        self.table[i]   # -> cpu float 0
        return self.table[i], i
Data("a")[0]            # -> (cpu float 0, int)

def train(model: nn.Module, loader, device):
    for step, (x, y) in enumerate(loader):
        x               # -> cpu
        x = x.to(device)
        x               # -> caller
        out = model(x)
        out             # -> batch[model]
        loss = F.cross_entropy(out, y.to(device))
        loss            # -> model float 0
        loss.item()     # -> float
        out.logits      # -> model
        out["logits"]   # -> model
        out[0]          # -> model
        out.loss.backward() # -> None

def collate(batch):
    xs = [torch.as_tensor(x) for x, y in batch]
    xs[0]               # -> cpu
    return torch.stack(xs)
"""

NUMPY = """
np.zeros(3)             # -> array float 1
np.random.rand(3)       # -> array float 1
np.random.rand()        # -> float
np.random.randint(9)    # -> int
np.random.randint(0, 9, 3)  # -> array int 1
np.random.choice(names, size=2)     # -> array int 1
np.random.choice(names) # -> int
np.zeros(3).shape       # -> (int)
np.zeros(3).shape[0]    # -> int
np.zeros(3).ndim        # -> int
np.zeros(3)[0]          # -> array float 0
np.zeros(3) + 1         # -> array float 1
np.zeros(3).tolist()    # -> list[float]
np.zeros(3).item()      # -> float
np.zeros(3).astype(int) # -> array int 1
np.zeros(3).T           # -> array float 1
np.array([1, 2]) > 1    # -> array bool 1
np.pi                   # -> float
np.sum(host)            # -> float
np.sum(host, 1)         # -> array float 1
np.max(*rows)           # -> array
np.asarray(host)        # -> array float 2
np.allclose(host, host) # -> bool
torch.from_numpy(np.zeros(3)).cuda()    # -> cuda float 1
torch.tensor(np.zeros(3))   # -> cpu float 1
torch.as_tensor(np.zeros(3), device="cuda") # -> cuda float 1
cuda.cpu().numpy().mean()   # -> array float 0
for x in np.zeros(3):
    x                   # -> array float 0
np.float32(1)           # -> array float 0
"""

PACKAGES = """
from einops import rearrange, repeat, reduce
rearrange(cuda, "a b -> b a")   # -> cuda float 2
reduce(cuda, "a b -> a", "mean")    # -> cuda float 1
repeat(ints, "a -> a b", b=2)   # -> cuda int 2
rearrange([cuda, cuda], "a b c -> a c b")   # -> cuda float 3

import timm, torchvision
timm.create_model("resnet18")   # -> Module
timm.create_model("resnet18")(cuda) # -> batch[cuda]
torchvision.models.resnet18()   # -> Module
torchvision.ops.nms(cuda, cuda, 0.5)    # -> cuda float
torchvision.io.read_image("a")  # -> cpu
torchvision.utils.make_grid(cuda)   # -> cuda float
torchvision.utils.make_grid([x, y]) # -> tensor
torchvision.transforms.functional.to_pil_image(cuda)    # -> array
from torchvision import transforms as T
from torchvision.transforms import v2
T.ToTensor()(image)     # -> cpu
T.PILToTensor()(image)  # -> cpu
T.ToPILImage()(cuda)    # -> array
T.Resize(3)(image)      # -> ?
T.Normalize(0, 1)(cuda) # -> cuda float 2
prepare = T.Compose([T.Resize(3), T.ToTensor(), T.Normalize(0, 1)])
prepare(image)          # -> cpu
prepare(image).unsqueeze(0).to("cuda")  # -> cuda
v2.Compose([v2.PILToTensor(), v2.ToDtype(torch.float32)])(image)    # -> cpu
T.Compose(transforms=[T.ToTensor()])(image) # -> cpu
T.Compose([T.Resize(3)])(cuda)  # -> cuda float 2
T.Compose([T.Resize(3)])(image) # -> ?
T.Compose([T.ToTensor(), mine])(image)  # -> ?
T.Compose([T.ToTensor(), T.Lambda(mine)])(image)    # -> ?
T.Compose(steps)(image) # -> ?
T.Compose([T.ToTensor(), T.Lambda(lambda x: x.cuda())])(image)  # -> ?
torch.hub.load("a", "b")        # -> Module

from transformers import AutoModel, AutoTokenizer, PreTrainedModel
model = AutoModel.from_pretrained("a")
model                   # -> Module
model.to("cuda")        # -> Module
model(**inputs).logits  # -> model
out = model(cuda)
out.last_hidden_state   # -> cuda
out[0]                  # -> cuda
class Mine(PreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.fc = nn.Linear(3, 3)
    def forward(self, x: Tensor):
        self.fc(x)      # -> model float
        self.device     # -> device model

import pytorch_lightning as pl
class Lit(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
    def training_step(self, batch, i):
        batch           # -> batch[model]
        x, y = batch
        x               # -> model
        loss = F.cross_entropy(self.fc(x), y)
        loss            # -> model float 0
        self.device     # -> device model
        return loss
    def training_dataloader(self):
        return torch.utils.data.DataLoader(data)

import lightning as L
class Lit(L.LightningModule):
    def forward(self, x: Tensor):
        x               # -> model
        self.training   # -> bool

import torchmetrics
class Accuracy(torchmetrics.Metric):
    def __init__(self):
        super().__init__()
        self.add_state("right", torch.tensor(0), dist_reduce_fx="sum")
    def update(self, x: Tensor):
        self.right      # -> model int 0 buffer
    def compute(self):
        return self.right

from accelerate import Accelerator
accelerator = Accelerator()
accelerator             # -> Accelerator()
model, loader = accelerator.prepare(nn.Linear(1, 2), torch.utils.data.DataLoader(data))
model                   # -> Linear(in_features=1, out_features=2)
for batch in loader:
    batch               # -> batch[model]
accelerator.prepare(nn.Linear(1, 2))    # -> Linear(in_features=1, out_features=2)

import cv2, pandas as pd, scipy.ndimage
from PIL import Image
cv2.imread("a")         # -> array
pd.read_csv("a")        # -> array
Image.open("a")         # -> array
scipy.ndimage.zoom(a, 2)    # -> array
torch.from_numpy(cv2.imread("a"))   # -> cpu

import logging, time, random, os
logging.getLogger("a")  # -> Logger
time.time() - 3         # -> float
random.random()         # -> float
random.randint(0, 3)    # -> int
os.path.exists("a")     # -> bool

import copy
copy.deepcopy(cuda)     # -> cuda float 2
copy.copy([host])       # -> [cpu float 2]
typing.cast(Tensor, unknown())  # -> ?

import torch.distributed as dist
dist.get_rank()         # -> int
dist.get_world_size()   # -> int
dist.is_initialized()   # -> bool

from safetensors.torch import load_file
load_file("a")          # -> dict[cpu]
"""


@table(LOADERS)
def test_loaders(case: Case) -> None:
    check(case)


@table(NUMPY)
def test_numpy(case: Case) -> None:
    check(case)


@table(PACKAGES)
def test_packages(case: Case) -> None:
    check(case)
