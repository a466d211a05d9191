import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical, Independent, Normal
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence
from torch_geometric.nn import ChebConv, GATConv, GCNConv, SAGEConv, global_max_pool, global_mean_pool as pool
from torch_geometric.utils import add_self_loops, remove_self_loops, to_dense_adj, to_dense_batch
from torchdiffeq import odeint, odeint_adjoint
from torchmetrics import Accuracy, MeanMetric, MeanSquaredError, RunningMean, SumMetric
from torchmetrics.classification import MulticlassAccuracy
from torchvision.utils import make_grid


class Statistics(nn.Module):
    def forward(self, x: torch.Tensor, indices: torch.Tensor, mask: torch.Tensor):
        covariance = torch.cov(x)  # error: TPF136
        correlation = x.corrcoef()  # error: TPF136
        pairs = torch.combinations(x)  # error: TPF136
        places = torch.unravel_index(indices, (16, 16))  # error: TPF136
        wave = torch.istft(x, 64)  # audit: TPF136
        mean = torch.masked.mean(x, mask=mask)  # error: TPF136
        noise = torch.normal(0.0, x)  # error: TPF136
        window = torch.signal.windows.hann(16, device=x.device)  # error: TPF136
        sparse = x.to_sparse(), torch.sparse_coo_tensor(indices, x)  # error: TPF136, TPF136
        filled = x.index_fill(0, indices, x.mean())  # error: TPF136
        return covariance, correlation, pairs, places, wave, mean, noise, window, sparse, filled


class Losses(nn.Module):
    def __init__(self):
        super().__init__()
        self.alignment = nn.CTCLoss(blank=0)
        self.likelihood = nn.GaussianNLLLoss()
        self.norm = nn.BatchNorm1d(8, momentum=None)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 1)

    def forward(self, x: torch.Tensor, targets: torch.Tensor, lengths: torch.Tensor, mask: torch.Tensor):
        aligned = self.alignment(x, targets, lengths, lengths)  # error: TPF136
        functional = F.ctc_loss(x, targets, lengths, lengths)  # error: TPF136
        likely = self.likelihood(x, targets, x.exp())  # error: TPF136
        encoded = self.encoder(self.norm(x), mask=mask)  # error: TPF136
        return aligned, functional, likely, encoded


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 8)

    def forward(self, x: torch.Tensor, lengths: list[int]):
        packed = pack_padded_sequence(x, lengths, enforce_sorted=False)  # error: TPF136
        output, state = self.rnn(packed)
        padded, _ = pad_packed_sequence(output)  # error: TPF136
        several = pack_sequence([x, padded], enforce_sorted=False)  # error: TPF136
        return padded, several.data, state


class Graphs(nn.Module):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor, graphs: int):
        cleaned, _ = remove_self_loops(edge_index)  # error: TPF136
        looped, _ = add_self_loops(edge_index)  # error: TPF136
        dense, mask = to_dense_batch(x, batch)  # error: TPF136
        return global_max_pool(x, batch), pool(x, batch, size=None), dense, looped, cleaned  # error: TPF136, TPF136


class GraphsOfKnownSizes(nn.Module):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor, graphs: int):
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        dense, mask = to_dense_batch(x, batch, max_num_nodes=64, batch_size=graphs)
        return global_max_pool(x, batch, graphs), pool(x, batch, size=graphs), pool(x, None), dense, edge_index


def graphs_of_the_data_set():
    x, batch = torch.ones(8, 8), torch.zeros(8, dtype=torch.long)
    return pool(x, batch), remove_self_loops(batch.view(2, 4))


def train(model, loader):
    optimizer = torch.optim.Adafactor(model.parameters())
    for batch in loader:
        model(batch).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # error: TPF136
        optimizer.step()  # error: TPF136


class Policy(nn.Module):
    def forward(self, mean: torch.Tensor, std: torch.Tensor):
        normal = Normal(mean, std, validate_args=False)
        joined = Independent(normal, 1)
        return normal.sample(), joined.sample()  # error: TPF136, TPF136


class Bounded(Normal):
    def sample(self):
        return super().sample().clamp(-1.0, 1.0)  # audit: TPF136

    def entropy(self):
        return super().entropy().sum(-1)


class Summed(Normal):
    def entropy(self):
        return super().entropy().sum(-1)


class Discrete(Categorical):
    def sample(self):
        return super().sample().unsqueeze(-1)


class Acting(nn.Module):
    def __init__(self, is_discrete):
        super().__init__()
        self.is_discrete = is_discrete

    def made(self, mean: torch.Tensor):
        if self.is_discrete:
            return Discrete(logits=mean, validate_args=False)
        return Summed(mean, mean.exp(), validate_args=False)

    def forward(self, mean: torch.Tensor):
        summed = Summed(mean, mean.exp(), validate_args=False)
        return summed.sample(), self.made(mean).sample()  # error: TPF136, TPF136


# Look-alikes.


class WithoutWaiting(nn.Module):
    def forward(self, x: torch.Tensor, indices: torch.Tensor, mask: torch.Tensor):
        drawn = torch.multinomial(x, 4), torch.normal(x, 1.0), torch.normal(0.0, 1.0, x.shape, device=x.device)
        chosen = x.masked_scatter(mask, x), x.clamp(min=x.mean()), torch.quantile(x, x.mean()), x.index_fill(0, indices, 1.0)
        solved = torch.linalg.qr(x), torch.linalg.det(x), torch.linalg.slogdet(x)
        sized = torch.sparse_coo_tensor(indices, x, (9, 9)), torch.masked.mean(x), torch.masked.sum(x, mask=None)
        return drawn, chosen, solved, sized, F.embedding_bag(indices, x), torch.searchsorted(x, x)


class Told(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 1)
        self.rnn = nn.GRU(8, 8)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, lengths: list[int]):
        packed = pack_padded_sequence(x, lengths)
        output, _ = self.rnn(packed)
        causal = self.encoder(x, mask=mask, is_causal=True), self.encoder(x, mask, None, False), self.encoder(x)
        return pad_packed_sequence(output), causal, self.norm(x), torch.signal.windows.gaussian(16, device=x.device)


class Sampling(nn.Module):
    def forward(self, mean: torch.Tensor, logits: torch.Tensor):
        normal = Normal(mean, mean.exp(), validate_args=False)
        categorical = Categorical(logits=logits, validate_args=False)
        return normal.rsample(), categorical.sample(), Independent(categorical, 0).sample()


def on_host(x: np.ndarray):
    table = torch.ones(3, 3)
    return torch.cov(table), torch.combinations(torch.arange(3)), np.cov(x), torch.signal.windows.hann(16)


def steps(model, loader):
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in loader:
        model(batch).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def each_iteration_reads(model: nn.Module, x: torch.Tensor) -> None:
    optimizer = torch.optim.LBFGS(model.parameters())
    for _ in range(100):
        optimizer.step(lambda: model(x).square().sum())  # error: TPF136


class Flow(nn.Module):
    def forward(self, x: torch.Tensor, times: torch.Tensor, field):
        states = odeint(field, x, times)  # error: TPF136
        last = odeint_adjoint(field, y0=x + states[-1], t=times, method="rk4")[-1]  # error: TPF136
        on_host = odeint(field, x.cpu(), times.cpu())
        return last, on_host, odeint(field, self.start, times)


class Grids(nn.Module):
    def forward(self, x: torch.Tensor):
        scaled = make_grid(x, 4, normalize=True)  # error: TPF136
        each = make_grid([part for part in x], normalize=True, scale_each=True)  # error: TPF136
        known = make_grid(x, normalize=True, value_range=(0, 1))
        on_host = make_grid(x.cpu(), normalize=True)
        return scaled, each, known, on_host, make_grid(x), make_grid(x, normalize=False)


class Graphs(nn.Module):
    def __init__(self, width: int, cached: bool = False, loops: bool = True, kept=None):
        super().__init__()
        self.first = GCNConv(width, width)
        self.second = GCNConv(width, width, cached=cached, add_self_loops=loops)
        self.attention = GATConv(width, width)
        self.filters = ChebConv(width, width, 3)
        self.without = GCNConv(width, width, add_self_loops=False)
        self.plain = GCNConv(width, width, normalize=False)
        self.cached = GCNConv(width, width, cached=True)
        self.unknown = GCNConv(width, width, add_self_loops=kept.loops)
        self.mean = SAGEConv(width, width)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor):
        x = self.first(x, edge_index)  # error: TPF136
        x = self.second(x, edge_index)  # error: TPF136
        x = self.attention(x, edge_index)  # error: TPF136
        x = self.filters(x, edge_index)  # error: TPF136
        dense = to_dense_adj(edge_index)  # error: TPF136
        x = self.without(x, edge_index) + self.plain(x, edge_index) + self.cached(x, edge_index)
        return self.mean(self.unknown(x, edge_index), edge_index), dense


class Scored(nn.Module):
    def __init__(self, average):
        super().__init__()
        self.loss = MeanMetric()
        self.drawn = SumMetric(nan_strategy="ignore")
        self.recent = RunningMean(20)
        self.accuracy = MulticlassAccuracy(10)
        self.curve = Accuracy(task="binary").cuda()
        self.fast = MeanMetric("disable")
        self.plain = RunningMean(20, "disable")
        self.trusting = MulticlassAccuracy(10, validate_args=False)
        self.micro = MulticlassAccuracy(10, average="micro")
        self.several = Accuracy(task="multiclass", num_classes=10)
        self.unknown = MulticlassAccuracy(10, average=average)
        self.error = MeanSquaredError()

    def forward(self, x: torch.Tensor, y: torch.Tensor):
        self.loss.update(x.mean())  # error: TPF136
        self.drawn.update(x.sum())  # error: TPF136
        recent = self.recent(x.mean())  # error: TPF136
        self.accuracy.update(x, y)  # error: TPF136
        return recent, self.curve(x, y)  # error: TPF136

    def without_waiting(self, x: torch.Tensor, y: torch.Tensor, counted: int):
        self.fast.update(x.mean())
        self.plain.update(x.mean())
        self.trusting.update(x, y)
        self.micro.update(x, y)
        self.several.update(x, y)
        self.unknown.update(x, y)
        self.error.update(x, y)
        self.loss.update(counted)
        self.accuracy.update(x.cpu(), y.cpu())


def either_loss(model: nn.Module, batch: torch.Tensor, targets: torch.Tensor, lengths: torch.Tensor, kind: str):
    criterion = nn.CTCLoss() if kind == "ctc" else nn.CrossEntropyLoss()
    predicted = model(batch.cuda())
    if kind == "ctc":
        return criterion(predicted, targets, lengths, lengths)  # error: TPF136
    return criterion(predicted, targets)
