"""Verdicts on rules about layers and operations, from runs in the simulation."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from perflint.findings import Ruling
from perflint.rules.worth import grid
from perflint.tracer.places import Locator
from perflint.tracer.recording import Recording
from perflint.tracer.witnesses.layers import Layers
from tests.tracer.witnesses.running import observed, traced, verdicts

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
TRAINED = """
class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3)
        self.norm = nn.BatchNorm2d(width)
        self.frozen = nn.Conv2d(width, width, 3)
        self.stored = nn.BatchNorm2d(width)
        self.stored.eval()

    def forward(self, x):
        return self.stored(self.frozen(self.norm(self.conv(x)).relu()))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.MultiheadAttention(64, 4, batch_first=True)
        self.two = nn.MultiheadAttention(64, 4, batch_first=True)
        self.two.register_forward_hook(lambda *_: None)
        self.wide = nn.Linear(64, 1001)
        self.back = nn.Linear(1001, 64)
        self.full = nn.Linear(64, 516)
        self.fitting = nn.Linear(516, 64)
        self.small = nn.Linear(46, 46)

    def forward(self, x, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor):
        x, _ = self.one(x, x, x)
        x, _ = self.two(x, x, x)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            x = self.back(self.wide(x)) + self.small(x[..., :46]).sum()
        x = self.fitting(self.full(x.float()))
        a = torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v
        return x.sum() + a.sum()


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 8)
        self.once = nn.GRUCell(8, 8)

    def forward(self, x: torch.Tensor, h: torch.Tensor):
        for t in range(x.shape[0]):
            h = self.cell(x[t], h)
        for row in x[:1]:
            h = self.once(row, h)
        return h.sum()


class Pick(nn.Module):
    def __init__(self, codes: int = 16, width: int = 8):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(codes, width))
        self.single = nn.Parameter(torch.randn(1, width))

    def forward(self, x: torch.Tensor, scores: torch.Tensor, host: torch.Tensor):
        few = scores.argsort(dim=-1, descending=True)[:, :2]
        values, order = torch.sort(scores, dim=-1)
        some = values[:, :6]
        near = torch.norm(x[:, None] - self.codes[None], dim=-1)
        alone = torch.norm(x[:, None] - self.single[None], dim=-1)
        p = torch.log(torch.softmax(near, dim=-1))
        with torch.no_grad():
            unlearned = torch.log(near.softmax(-1))
        on_host = torch.log(torch.softmax(host, dim=-1))
        query = x[0]
        vector = torch.softmax(query @ self.codes.T, dim=-1) @ self.codes
        return p.sum() + some.sum() + alone.sum() + vector.sum()


block, attention, cells, pick = (part.cuda() for part in (Block(8), Attention(), Cells(), Pick()))
parameters = [p for part in (block, attention, cells, pick) for p in part.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
for step in range(3):
    image = torch.randn(2, 3, 8, 8, device="cuda")
    x = torch.randn(2, 5, 64, device="cuda")
    q = torch.randn(2, 4, 5, 8, device="cuda")
    loss = block(image).sum() + attention(x, q, q, q)
    loss = loss + cells(torch.randn(4, 2, 8, device="cuda"), torch.randn(2, 8, device="cuda"))
    host = torch.randn(4, 8, requires_grad=True)
    loss = loss + pick(torch.randn(4, 8, device="cuda"), torch.randn(4, 10, device="cuda"), host)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
FORMATS = """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(10001, 64)

    def forward(self, ids):
        return F.linear(self.tokens(ids), self.tokens.weight)


class Head(nn.Module):
    def __init__(self, vocabulary: int = 9001):
        super().__init__()
        self.odd = nn.Linear(64, 9003)
        self.full = nn.Linear(64, 9005)
        self.given = nn.Linear(64, vocabulary)

    def forward(self, x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            y = self.odd(x)
            z = self.given(x)
        return y.sum() + self.full(x).sum() + z.sum()


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Conv2d(3, 8, 3)
        self.two = nn.Conv2d(8, 8, 3)

    def forward(self, x):
        return self.two(self.one(x))


net, body, plain = Images().cuda(), Images().cuda(), Images().cuda()


def first(images):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return net(images.cuda()).sum()


def last(images):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return body(images).sum()


def off(images, enabled):
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=enabled):
        return plain(images).sum()


def eight():
    a = torch.ones(32, 64, dtype=torch.int8, device="cuda")
    torch._int_mm(a, a.t().contiguous())


class Quantised(nn.Module):
    def __init__(self, width: int = 1000):
        super().__init__()
        self.wide = nn.Linear(64, 1000)
        self.back = nn.Linear(1000, 64)
        self.fits = nn.Linear(width, 64)
        self.gives = nn.Linear(64, width)

    def forward(self, x):
        return self.fits(self.gives(self.back(self.wide(x))))


tied, head, quantised = Tied().cuda(), Head(9008).cuda(), Quantised(1024).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(2, 3, 64, device="cuda")
    image = torch.randn(2, 16, 16, 3, device="cuda").permute(0, 3, 1, 2)
    loss = first(torch.randn(2, 3, 16, 16)) + last(image) + off(image, False)
    loss = loss + head(x) + tied(torch.zeros(2, 3, dtype=torch.long, device="cuda")).sum() + quantised(x).sum()
    eight()
    loss.backward()
    optimizer.step()
"""
YES, FREE, NO = Ruling.CONFIRMED, Ruling.NO_COST, Ruling.REFUTED


def test_layers_and_operations_that_ran(tmp_path: Path) -> None:
    trace = traced(tmp_path, TRAINED)
    assert "attention.hooked" in observed(trace, "self.two(x, x, x)")
    assert observed(trace, "scores.argsort").items() >= {"sort.all": 3, "sort.few": 3}.items()
    codes = "TPF301,TPF302,TPF303,TPF304,TPF306,TPF309,TPF310,TPF351"
    assert verdicts(tmp_path, codes) == {
        "self.conv = nn.Conv2d(3, width, 3)": YES,
        "self.frozen = nn.Conv2d(width, width, 3)": NO,
        "x, _ = self.one(x, x, x)": YES,
        "x, _ = self.two(x, x, x)": NO,
        "self.wide = nn.Linear(64, 1001)": YES,
        "self.back = nn.Linear(1001, 64)": YES,
        "self.full = nn.Linear(64, 516)": NO,
        "self.small = nn.Linear(46, 46)": FREE,
        "self.fitting = nn.Linear(516, 64)": NO,
        "a = torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v": YES,
        "h = self.cell(x[t], h)": YES,
        "h = self.once(row, h)": NO,
        "few = scores.argsort(dim=-1, descending=True)[:, :2]": FREE,
        "values, order = torch.sort(scores, dim=-1)": NO,
        "near = torch.norm(x[:, None] - self.codes[None], dim=-1)": YES,
        "alone = torch.norm(x[:, None] - self.single[None], dim=-1)": NO,
        "p = torch.log(torch.softmax(near, dim=-1))": YES,
        "unlearned = torch.log(near.softmax(-1))": YES,
        "on_host = torch.log(torch.softmax(host, dim=-1))": NO,
        "vector = torch.softmax(query @ self.codes.T, dim=-1) @ self.codes": NO,
    }


def test_formats_and_layouts(tmp_path: Path) -> None:
    trace = traced(tmp_path, FORMATS)
    assert "convolution.channels-last" in observed(trace, "body(images)")
    assert verdicts(tmp_path, "TPF351,TPF352,TPF354,TPF374") == {
        "self.odd = nn.Linear(64, 9003)": YES,
        "self.full = nn.Linear(64, 9005)": NO,
        "def __init__(self, vocabulary: int = 9001):": NO,
        "self.tokens = nn.Embedding(10001, 64)": NO,
        "return net(images.cuda()).sum()": YES,
        "return body(images).sum()": NO,
        "return plain(images).sum()": NO,
        "self.back = nn.Linear(1000, 64)": YES,
        "self.fits = nn.Linear(width, 64)": NO,
    }


CPU = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.bare = nn.Conv2d(8, 8, 3)
        self.last = nn.BatchNorm2d(8)
        self.bare.bias = None
        self.first = nn.Linear(64, 1001)
        self.second = nn.Linear(1001, 64)

    def forward(self, x, image):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=torch.cuda.is_available()):
            y = self.second(self.first(x)).sum()
        return y + self.last(self.bare(self.norm(self.conv(image)))).sum()


model = Model()
for step in range(3):
    model(torch.randn(2, 64), torch.randn(2, 3, 8, 8)).backward()
"""


def test_a_run_without_a_gpu_shows_no_formats(tmp_path: Path) -> None:
    traced(tmp_path, CPU, simulate=False)
    assert verdicts(tmp_path, "TPF301,TPF351") == {
        "self.conv = nn.Conv2d(3, 8, 3)": YES,
        "self.bare = nn.Conv2d(8, 8, 3)": NO,
        "self.first = nn.Linear(64, 1001)": Ruling.UNDECIDED,
        "self.second = nn.Linear(1001, 64)": Ruling.UNDECIDED,
    }


def test_hooks_are_removed() -> None:
    from torch.nn.modules import module as modules

    before = len(modules._global_forward_hooks), len(modules._global_forward_pre_hooks)
    witness = Layers(Recording(Locator(Path.cwd())), lambda do: lambda *given: do(*given) and None, lambda _: None)
    witness.start()
    witness.restart()
    assert len(modules._global_forward_hooks) == before[0] + 2
    witness.end_step()
    witness.end_step()
    assert (len(modules._global_forward_hooks), len(modules._global_forward_pre_hooks)) == before
    witness.stop()


def test_ratios_are_interpolated_over_rows() -> None:
    measured = grid("linear-both-1-bfloat16")
    few, many = (measured.ratio(768, 768, rows) for rows in (measured.rows[0], measured.most_rows))
    assert few is not None and many is not None
    between = measured.ratio(768, 768, 2 * measured.rows[0])
    assert between == pytest.approx((few * many) ** 0.5)
    assert measured.ratio(768, 768, 1) == few and measured.ratio(768, 768) == many
