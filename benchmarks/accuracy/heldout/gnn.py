"""Node and graph classification with message passing written by hand (no extension needed)."""
from __future__ import annotations

import argparse
from dataclasses import dataclass, fields, replace
from typing import Iterator, Optional

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Data:
    x: Tensor
    edge_index: Tensor
    y: Tensor
    batch: Optional[Tensor] = None
    train_mask: Optional[Tensor] = None
    val_mask: Optional[Tensor] = None
    test_mask: Optional[Tensor] = None

    @property
    def num_nodes(self) -> int:
        return self.x.size(0)

    @property
    def num_graphs(self) -> int:
        return 1 if self.batch is None else int(self.batch.max()) + 1

    def to(self, device) -> Data:
        moved = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **{k: v.to(device) for k, v in moved.items() if v is not None})


def scatter(src: Tensor, index: Tensor, dim_size: Optional[int] = None, reduce: str = "sum") -> Tensor:
    if dim_size is None:
        dim_size = int(index.max()) + 1 if index.numel() > 0 else 0
    out = src.new_zeros((dim_size,) + src.shape[1:])
    if reduce == "max":
        expanded = index.view(-1, *[1] * (src.dim() - 1)).expand_as(src)
        return out.scatter_reduce_(0, expanded, src, reduce="amax", include_self=False)
    out = out.index_add_(0, index, src)
    if reduce == "mean":
        count = src.new_zeros(dim_size).index_add_(0, index, src.new_ones(index.numel()))
        out = out / count.clamp_(min=1).view(-1, *[1] * (src.dim() - 1))
    return out


def softmax(src: Tensor, index: Tensor, num_nodes: int) -> Tensor:
    src_max = scatter(src.detach(), index, num_nodes, "max")
    out = (src - src_max.index_select(0, index)).exp()
    return out / (scatter(out, index, num_nodes).index_select(0, index) + 1e-16)


def remove_self_loops(edge_index: Tensor) -> Tensor:
    return edge_index[:, edge_index[0] != edge_index[1]]


def add_self_loops(edge_index: Tensor, num_nodes: int) -> Tensor:
    loops = torch.arange(num_nodes, device=edge_index.device)
    return torch.cat([edge_index, loops.repeat(2, 1)], dim=1)


def gcn_norm(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    edge_index = add_self_loops(remove_self_loops(edge_index), num_nodes)
    row, col = edge_index
    deg = scatter(torch.ones(col.numel(), device=col.device), col, num_nodes)
    deg_inv_sqrt = deg.pow(-0.5)
    deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
    return edge_index, deg_inv_sqrt[row] * deg_inv_sqrt[col]


class GCNConv(nn.Module):
    def __init__(self, c_in: int, c_out: int, cached: bool = False):
        super().__init__()
        self.lin = nn.Linear(c_in, c_out, bias=False)
        self.bias = nn.Parameter(torch.zeros(c_out))
        self.cached = cached
        self._cache: Optional[tuple[Tensor, Tensor]] = None

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self._cache is None:
            norm = gcn_norm(edge_index, x.size(0))
            if self.cached:
                self._cache = norm
        else:
            norm = self._cache
        (row, col), weight = norm
        h = self.lin(x)
        return scatter(h[row] * weight.unsqueeze(-1), col, x.size(0)) + self.bias


class GATConv(nn.Module):
    def __init__(self, c_in: int, c_out: int, heads: int = 4, p: float = 0.2):
        super().__init__()
        self.heads, self.c_out, self.p = heads, c_out, p
        self.lin = nn.Linear(c_in, heads * c_out, bias=False)
        self.att = nn.Parameter(torch.empty(2, heads, c_out))
        nn.init.xavier_uniform_(self.att)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        n = x.size(0)
        edge_index = add_self_loops(remove_self_loops(edge_index), n)
        row, col = edge_index[0], edge_index[1]
        h = self.lin(x).view(n, self.heads, self.c_out)
        alpha_src, alpha_dst = (h * self.att[0]).sum(-1), (h * self.att[1]).sum(-1)
        alpha = softmax(F.leaky_relu(alpha_src[row] + alpha_dst[col], 0.2), col, n)
        alpha = F.dropout(alpha, self.p, self.training)
        return scatter(h[row] * alpha.unsqueeze(-1), col, n).flatten(1)


class NodeNet(nn.Module):
    def __init__(self, c_in: int, hidden: int, c_out: int):
        super().__init__()
        self.conv1 = GCNConv(c_in, hidden, cached=True)
        self.conv2 = GCNConv(hidden, c_out, cached=True)

    def forward(self, data: Data) -> Tensor:
        x = F.dropout(data.x, 0.3, self.training)
        x = F.relu(self.conv1(x, data.edge_index))
        return F.log_softmax(self.conv2(x, data.edge_index), dim=1)


class GraphNet(nn.Module):
    def __init__(self, c_in: int, hidden: int, c_out: int):
        super().__init__()
        self.conv1 = GATConv(c_in, hidden // 4)
        self.conv2 = GATConv(hidden, hidden // 4)
        self.lin = nn.Linear(2 * hidden, c_out)

    def forward(self, data: Data) -> Tensor:
        x = F.elu(self.conv1(data.x, data.edge_index))
        x = F.elu(self.conv2(x, data.edge_index))
        size = data.num_graphs
        pooled = torch.cat([scatter(x, data.batch, size, "mean"), scatter(x, data.batch, size, "max")], dim=1)
        return self.lin(pooled)


def planted_partition(n: int = 400, classes: int = 4, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    prob = np.where(y[:, None] == y[None, :], 0.04, 0.004)
    adj = np.triu(rng.random((n, n)) < prob, 1)
    row, col = (adj | adj.T).nonzero()
    x = np.eye(classes)[y] + 1.5 * rng.standard_normal((n, classes))
    data = Data(
        torch.from_numpy(x).float(), torch.from_numpy(np.stack([row, col])).long(), torch.from_numpy(y).long()
    )
    perm = torch.randperm(n)
    for name, part in zip(("train_mask", "val_mask", "test_mask"), perm.split([n // 5, n // 5, n - 2 * (n // 5)])):
        mask = torch.zeros(n, dtype=torch.bool)
        mask[part] = True
        setattr(data, name, mask)
    return data


def small_graphs(num: int, seed: int) -> list[Data]:
    """A ring or a star, with some edges that belong to neither."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(num):
        n, label = int(rng.integers(6, 14)), int(rng.integers(2))
        ring = [(i, (i + 1) % n) for i in range(n)] if label else [(0, i) for i in range(1, n)]
        ring += [tuple(rng.integers(0, n, 2)) for _ in range(2)]
        e = torch.tensor(np.array(ring)).t().long()
        edge_index = torch.cat([e, e.flip(0)], dim=1)
        x = torch.stack([torch.ones(n), torch.bincount(edge_index[1], minlength=n).float()], dim=1)
        out.append(Data(x, edge_index, torch.tensor([label])))
    return out


def collate(graphs: list[Data]) -> Data:
    offset, xs, edges, ys, batch = 0, [], [], [], []
    for i, g in enumerate(graphs):
        xs.append(g.x)
        edges.append(g.edge_index + offset)
        ys.append(g.y)
        batch.append(torch.full((g.num_nodes,), i, dtype=torch.long))
        offset += g.num_nodes
    return Data(torch.cat(xs), torch.cat(edges, 1), torch.cat(ys), torch.cat(batch))


def loader(graphs: list[Data], batch_size: int, shuffle: bool = False) -> Iterator[Data]:
    order = torch.randperm(len(graphs)) if shuffle else torch.arange(len(graphs))
    for chunk in order.split(batch_size):
        yield collate([graphs[i] for i in chunk.tolist()])


@torch.no_grad()
def test_nodes(model: nn.Module, data: Data) -> list[float]:
    model.eval()
    pred = model(data).argmax(dim=-1)
    accs = []
    for mask in (data.train_mask, data.val_mask, data.test_mask):
        accs.append(int((pred[mask] == data.y[mask]).sum()) / int(mask.sum()))
    return accs


def run_nodes(device: torch.device, epochs: int) -> None:
    data = planted_partition().to(device)
    model = NodeNet(data.x.size(1), 32, int(data.y.max()) + 1).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best_val = test_acc = 0.0
    for epoch in range(1, epochs + 1):
        model.train()
        optimizer.zero_grad()
        out = model(data)
        loss = F.nll_loss(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        train_acc, val_acc, tmp_test_acc = test_nodes(model, data)
        if val_acc > best_val:
            best_val, test_acc = val_acc, tmp_test_acc
        if epoch % 20 == 0:
            print(f"Epoch: {epoch:03d}, Loss: {float(loss):.4f}, Train: {train_acc:.3f}, Test: {test_acc:.3f}")


def run_graphs(device: torch.device, epochs: int) -> None:
    train_set, test_set = small_graphs(256, 0), small_graphs(64, 1)
    model = GraphNet(2, 32, 2).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        model.train()
        total_loss = torch.zeros((), device=device)
        for data in loader(train_set, 32, shuffle=True):
            data = data.to(device)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data), data.y)
            loss.backward()
            optimizer.step()
            total_loss += loss.detach() * data.num_graphs
        model.eval()
        correct = 0
        for data in loader(test_set, 32):
            data = data.to(device)
            with torch.no_grad():
                correct += int((model(data).argmax(dim=1) == data.y).sum())
        print(f"graphs {epoch}: loss {total_loss.item() / len(train_set):.4f} acc {correct / len(test_set):.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--task", choices=["node", "graph", "both"], default="both")
    args = parser.parse_args()
    torch.manual_seed(12345)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if args.task in ("node", "both"):
        run_nodes(dev, args.epochs)
    if args.task in ("graph", "both"):
        run_graphs(dev, max(2, args.epochs // 12))
