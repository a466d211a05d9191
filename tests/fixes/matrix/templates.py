"""The code that safe fixes are tried on: for each rule, statements with holes and what may stand in them.

`<hole>` in a body stands for one of its alternatives. Names from `PARAMETERS` become parameters of the function that
is made of a body. A rule may leave any combination as it is, but not all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PARAMETERS: dict[str, tuple[str, str]] = {
    "x": ("torch.Tensor", "tensor"),
    "y": ("torch.Tensor", "tensor"),
    "row": ("torch.Tensor", "vector"),
    "matrix": ("torch.Tensor", "matrix"),
    "cube": ("torch.Tensor", "cube"),
    "d": ("torch.device", "device"),
    "gpu": ("int", "gpu"),
    "unit": ("", "anything"),
    "i": ("int", "index"),
    "k": ("int", "int"),
    "n": ("int", "size"),
    "v": ("float", "float"),
    "flag": ("bool", "bool"),
    "places": ("", "places"),
}
"""The annotations of the parameters, and the kinds of their operands (`operands`)."""


@dataclass(frozen=True, slots=True)
class Template:
    """Code of one shape that a rule may fix."""

    code: str
    form: str
    body: str
    holes: Mapping[str, Sequence[str]]
    header: str = ""
    weight: int = 1
    """How many random texts there are in comparison with other templates."""

    @property
    def name(self) -> str:
        """The rule's code and the form."""
        return f"{self.code}-{self.form}"

    def filled(self, row: Mapping[str, str]) -> str:
        """The body with an alternative in each hole."""
        text = self.body
        for hole, alternative in row.items():
            text = text.replace(f"<{hole}>", alternative)
        return text


def parameters(text: str) -> list[tuple[str, str]]:
    """The parameters that a text uses, with their annotations."""
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return [(name, annotation) for name, (annotation, _) in PARAMETERS.items() if name in used]


_MOVES = (
    ".to(d)",
    ".to(device=d)",
    '.to("cuda")',
    ".cuda()",
    ".cuda(None)",
    ".cuda(0)",
    ".cuda(gpu)",
    ".cuda(unit)",
    ".cuda(device=unit)",
    ".to(x)",
    ".type_as(x)",
    ".to(x.device)",
    ".to(d, torch.float16)",
    ".to(d, torch.bool)",
    ".to(d, torch.uint16)",
    ".to(d, torch.complex64)",
    ".to(dtype=x.dtype, device=d)",
    ".to(places.device)",
    ".to(places.next_device())",
)

_CREATE_THEN_MOVE = Template(
    "TPF204",
    "made",
    "return <made><step><move>",
    {
        "made": (
            "torch.zeros(2, 3)",
            "torch.zeros(2, 3, dtype=torch.float16)",
            "torch.zeros(places.width(), 3)",
            "torch.ones((2, 3), dtype=torch.bool)",
            "torch.full((2, 3), 0.1)",
            "torch.full((2, 3), -300.7)",
            "torch.full((2, 3), 7)",
            "torch.full((2, 3), v)",
            "torch.full((2, 3), -1e9, dtype=torch.float16)",
            "torch.full((2, 3), -1e9, dtype=torch.float32)",
            "torch.full((2, 3), v, dtype=torch.float64)",
            "torch.full((2, 3), 1j)",
            "torch.full((2, 3), 0.1, dtype=x.dtype)",
            "torch.eye(3)",
            "torch.eye(2, 3, dtype=torch.bfloat16)",
            "torch.arange(6).view(2, 3)",
            "torch.arange(6, dtype=torch.uint8).view(2, 3)",
            "torch.arange(6, dtype=torch.float16).view(2, 3)",
            "torch.arange(6, dtype=torch.float32).view(2, 3)",
            "torch.arange(0.0, 0.6, 0.1).view(2, 3)",
            "torch.arange(n).view(-1, 3)",
            "torch.tril_indices(2, 2)",
            "torch.zeros(2, 3, requires_grad=True)",
            "torch.empty(0, 3)",
        ),
        "step": (
            "",
            ".unsqueeze(0)",
            ".t()",
            ".flatten()",
            ".float()",
            ".half()",
            ".byte()",
            ".bool()",
            ".repeat(2, 1)",
            ".unsqueeze(0).expand(4, -1, -1)",
            ".unsqueeze(-1).expand(-1, -1, 2).float()",
            ".unsqueeze(0).expand(4, -1, -1).flatten()",
            ".unsqueeze(0).expand(4, -1, -1).transpose(0, 1)",
            ".view(places.width(), -1)",
        ),
        "move": _MOVES,
    },
    weight=4,
)

_NUMBERS = (
    *("0.0", "-0.0", "-1.5", "0.1", "3", "-7", "True", "300", "70000", "1e9", "-1e9", "1e30", "1e300", "-1e4", "2j"),
    *("9223372036854775807", "9223372036854775808", "v", "k", "places.bump()", 'float("inf")'),
)
_CONSTRUCTORS = ("tensor", "as_tensor", "asarray")

_TESTS = (
    "torch.isnan(t).any()",
    "torch.isinf(t).any()",
    "torch.isfinite(t).all()",
    "t.any()",
    "torch.all(t)",
    "(t == 0).any()",
    "(t != 1.5).all()",
    "(t > 1).any()",
    "(t <= 3).all()",
    "t.min() < 0",
    "t.max() > 1",
    "(t > -1).all()",
    "(t < 300).any()",
    "(t > x).any()",
)

_TESTS_IN_A_ROW = Template(
    "TPF105",
    "row",
    "t = <tensor>\nfound = []\nif <first> <sign> <second>:\n    found.append(1)\n"
    "found.append(bool(<first>) <sign> bool(<second>))\nreturn found if not <first> or not <second> else t",
    {
        "tensor": ("x.cuda()", "x.cuda().flatten()", "matrix.cuda() * 2", 'torch.eye(3, device="cuda")', "row.cuda()"),
        "sign": ("or", "and"),
        "first": _TESTS,
        "second": _TESTS,
    },
)

_CHECKS_IN_A_ROW = Template(
    "TPF107",
    "row",
    "t = <tensor>\nif <first> <sign> <second>:\n    return 1\nreturn bool(<second>) <sign> bool(<first>)",
    {
        "tensor": ("x.cuda()", "row.cuda() / 0", 'torch.full((2,), v, device="cuda")', "x.cuda().sum()"),
        "sign": ("or", "and"),
        "first": ("torch.isnan(t).any()", "t.isinf().any()", "not torch.isfinite(t).all()", "t.isnan()"),
        "second": ("torch.isinf(t).any()", "t.isnan().all()", "not t.isfinite().any()", "t.isinf()"),
    },
)

_ANSWERS_IN_A_ROW = Template(
    "TPF101",
    "row",
    "t = <tensor>\nreturn [<first>.item() <sign> <second>.item()]",
    {
        "tensor": ("x.cuda()", "matrix.cuda() * 2", "row.cuda() > 0", "x.cuda().byte()"),
        "sign": ("or", "and"),
        "first": ("(t > 0).any()", "(t == 1).all()", "t.any()", "torch.isnan(t).any()"),
        "second": ("(t <= 3).all()", "(t != 1).any()", "torch.all(t)", "torch.isinf(t).any()"),
    },
)

_SCALAR_THERE = Template(
    "TPF116",
    "there",
    "return torch.<made>(<number><keywords>)",
    {
        "made": _CONSTRUCTORS,
        "number": _NUMBERS,
        "keywords": (
            ", device=d",
            ', device="cuda"',
            ", device=x.device",
            ", dtype=torch.float16, device=d",
            ", device=d, dtype=torch.int32",
            ", dtype=torch.uint8, device=d",
            ", dtype=torch.bool, device=d",
            ", dtype=torch.uint64, device=d",
            ", dtype=torch.complex32, device=d",
            ", dtype=torch.complex128, device=d",
            ", dtype=x.dtype, device=x.device",
            ", device=d, requires_grad=True",
            ", device=places.next_device()",
        ),
    },
)

_SCALAR_MOVED = Template(
    "TPF116",
    "moved",
    "return torch.<made>(<number><keywords>)<step><move>",
    {
        "made": _CONSTRUCTORS,
        "number": _NUMBERS,
        "keywords": ("", "", "", ", dtype=torch.float64", ", requires_grad=True"),
        "step": ("", "", "", ".view(1)"),
        "move": _MOVES,
    },
    weight=2,
)

_SCALAR_NEW = Template(
    "TPF116",
    "new",
    "return x.new_tensor(<number><keywords>)",
    {
        "number": _NUMBERS,
        "keywords": ("", "", ", dtype=torch.float16", ", dtype=torch.int32", ", requires_grad=True", ", device=d"),
    },
)

_LIST_THERE = Template(
    "TPF117",
    "there",
    "return <made>(<data><keywords>)<move>",
    {
        "made": ("torch.tensor", "torch.as_tensor", "x.new_tensor"),
        "data": (
            "[0.1]",
            "[[-3]]",
            "[0, 0]",
            "[0.0, -0.0]",
            "[1, True]",
            "[[1.5, 1.5], [1.5, 1.5]]",
            "[True] * 2",
            "[300] * n",
            "[300] * len(x)",
            "[1] * x.shape[0]",
            "[2.5] * 0",
            "[v]",
            "[k] * 3",
            "(7,)",
            "[1e9]",
            "[70000]",
            "[2j]",
            "[9223372036854775808]",
            "3 * [0]",
            "[places.n] * places.bump()",
        ),
        "keywords": (
            ", device=d",
            ', device="cuda"',
            ", device=x.device",
            ", dtype=torch.float16, device=d",
            ", device=d, dtype=torch.int32",
            ", dtype=torch.uint8, device=d",
            ", dtype=torch.bool, device=d",
            ", dtype=x.dtype, device=x.device",
            ", device=d, requires_grad=True",
            "",
        ),
        "move": ("", "", "", ".to(d)", ".cuda()", ".cuda(unit)", ".to(x)"),
    },
    weight=3,
)

_RANGE_INDEX = Template(
    "TPF118",
    "range",
    "t = <table>\n<use>\nreturn r, t",
    {
        "table": ("matrix", "x", "matrix.cuda() * 2", 'torch.eye(3, device="cuda")', "matrix.t()"),
        "use": (
            "r = t[torch.arange(<count>), matrix.argmax(-1)]",
            "r = t[torch.arange(0, <count>), matrix.argmax(-1)]",
            "r = t[torch.arange(<count>, dtype=torch.int32)]",
            "r = t[range(<count>)]",
            "r = t[list(range(<count>)), matrix.argmax(-1)]",
            "r = t[range(0, <count>)]",
            "r = t[0][torch.arange(<count>)]",
            "r = t[torch.arange(places.n), :]",
            "r = t[torch.arange(<count>), 0] = 2.0",
        ),
        "count": ("t.size(0)", "len(t)", "t.shape[0]", "n", "2", "k", "t.sum()"),
    },
)

_LIST_INDEX = Template(
    "TPF118",
    "list",
    "t = <table>\n<use>\n<after>\nreturn r, t",
    {
        "table": (
            "matrix",
            "x",
            "cube",
            "matrix.cuda()",
            "matrix * 2",
            'torch.arange(12.0, device="cuda").view(3, 4)',
            "matrix.t()",
            "row",
        ),
        "use": (
            "r = t[<index>] > 0",
            "r = t[<index>] * 2",
            "r = t[<index>]",
            "r = t[<index>].sum()",
            "r = t + t[<index>]",
            "r = t[<index>].view(-1)",
            "r = (t < t[<index>]).any()",
            "t[<index>] = <stored>; r = 0",
            "t[<index>] += 1; r = 0",
            "r = t[<index>]; r = r == 0",
        ),
        "index": ("[0]", "[-1]", "[0, 1]", ":, [1]", "..., [-1]", ":, [0, 2]", "[0], :", "0, [1]", "[1, 0]", "[True]"),
        "stored": ("1.0", "v", "t[:1]", "x", "places.n", "t.new_zeros(1)"),
        "after": ("", "", "t.add_(1)", "t = t * 2", "r = r * 1"),
    },
    weight=4,
)

_NUMBER_STORE = Template(
    "TPF135",
    "element",
    "t = <table>\nt[<first>, <second>] = <number>\nreturn t",
    {
        "table": (
            "matrix",
            "x",
            "matrix * 2",
            "torch.zeros(3, 3, device=d)",
            'torch.eye(3, dtype=torch.float16, device="cuda")',
            'torch.zeros(3, 3, dtype=torch.int64, device="cuda")',
            'torch.zeros(3, 3, dtype=torch.bool, device="cuda")',
            'torch.zeros(1, 3, device="cuda").expand(3, 3)',
            'torch.zeros(3, 3, device="cuda").t()',
        ),
        "first": ("0", "-1", "i", "i + 1", "True", "flag", "places.n", "(i := 1)"),
        "second": ("1", "0", "i", "-2", "flag"),
        "number": (
            *("1.0", "-7", "True", "v", "k", "-v * 2", "300", "2**63", "9223372036854775808", "1j", "float(k)"),
            *("places.bump()", "(i := 2)", 'float("nan")'),
        ),
    },
)

_ROWS_STORE = Template(
    "TPF135",
    "cube",
    "t = <table>\nt[<first>, 0, <third>] = <number>\nreturn t",
    {
        "table": ("cube", "x", 'torch.zeros(2, 3, 2, device="cuda")', 'torch.ones((n, 1, 1), device="cuda")'),
        "first": ("0", "i"),
        "third": ("1", "-1"),
        "number": ("1.0", "v", "3", "places.bump()"),
    },
)

_NONZERO_FAMILY = Template(
    "TPF110",
    "store",
    "t = <table>\nm = <mask>\nt[<index>] = <number>\n<after>\nreturn t, m",
    {
        "table": ("x", "x * 2", "matrix.clone()", 'torch.arange(6.0, device="cuda")'),
        "mask": (
            "t > 0",
            "(t.abs() >= 1) & ~torch.isnan(t)",
            "t.isfinite()",
            "y > 0",
            "t[:1] > 0",
            "t.sum() > 0",
            "t.bool()",
            "t == t",
            "t <= k",
        ),
        "index": (
            "torch.where(m)",
            "torch.where(t > 0)",
            "m.nonzero(as_tuple=True)",
            "torch.nonzero(m, as_tuple=True)",
        ),
        "number": ("0", "-1.5", "True", "v", "k", "300"),
        "after": ("", "", "m.zero_()", "m = m.clone()", "t = t + 1"),
    },
)

_PER_ELEMENT_READ = Template(
    "TPF103",
    "list",
    "f = <flat>\nreturn [<read> for c in <iterated>]",
    {
        "flat": (
            "x.flatten()",
            "x.float().flatten()",
            "x.to(torch.bfloat16).reshape(-1)",
            "x.flatten() > 0",
            "torch.arange(n, device=d)",
            "x.long().flatten()",
            "x.reshape(-1).to(d)",
            "row",
        ),
        "read": ("c.item()", "float(c)", "int(c)", "bool(c)"),
        "iterated": ("f", "f", "f[:2]", "f.cuda()"),
    },
)

_REDUNDANT_ANY_GUARD = Template(
    "TPF106",
    "guard",
    "t = <table>\nm = <mask>\nif <test>:\n    <store>\n<after>\nreturn t",
    {
        "table": (
            "x",
            "x.long()",
            "x.clone().long()",
            "x.cuda().long()",
            "x > 0",
            "matrix.argmax(-1)",
            "torch.arange(n, device=d)",
            'torch.arange(6, device="cuda")',
            'torch.zeros(0, dtype=torch.long, device="cuda")',
            'torch.arange(6, dtype=torch.uint8, device="cuda").view(2, 3).t()',
            'torch.zeros(3, device="cuda")',
        ),
        "mask": ("t > 2", "t < 0", "t == -100", "y > 0", "t[:1] > 0"),
        "test": ("m.any()", "torch.any(m)", "m.any().item()", "m.sum() > 0"),
        "store": ("t[m] = 0", "t.masked_fill_(m, 0)", "t[m] = k", "t[m] = -1", "t = t.masked_fill(m, 1)"),
        "after": ("", "t = t + 1"),
    },
    weight=3,
)

_COPY_OF_FRESH_TENSOR = Template(
    "TPF211",
    "clone",
    "c = (<made>).clone()\n<after>\nreturn c",
    {
        "made": (
            "x + y",
            "x * 2",
            "1 - x",
            "x / 3",
            "x @ x.mT",
            "x.mT + x.mT",
            "torch.cat([x, x])",
            "torch.cat([x])",
            "torch.stack([x, x], -1)",
            "torch.where(x == 0, x, x)",
            "x.repeat(2, 1)",
            "x.repeat_interleave(2)",
            "torch.tile(x, (1,))",
            "torch.zeros_like(x)",
            "x.new_zeros(2)",
            "torch.arange(n, device=d)",
            "torch.tensor(x)",
            "x.index_select(0, torch.arange(x.shape[0], device=x.device))",
            "x + x.T",
            "x.clone()",
            "torch.hstack([x, x])",
        ),
        "after": ("", "c.mul_(2)", "c = c + x"),
    },
)

_REPEAT = Template(
    "TPF212",
    "repeat",
    "a = <source>\nr = <repeat>\n<use>\nreturn u",
    {
        "source": (
            "x",
            "row",
            "torch.ones(1, 3, device=d)",
            "torch.ones(3, device=d)",
            "torch.zeros(1, 1, 3, device=d, requires_grad=True)",
            'torch.arange(3, device="cuda")',
            'torch.arange(1, device="cuda")',
            'torch.tensor(2.0, device="cuda")',
        ),
        "repeat": (
            "a.repeat(4, 1)",
            "a.repeat(n, 1)",
            "a.repeat(4, 1, 1)",
            "a.unsqueeze(0).repeat(4, 1, 1)",
            "a[None].repeat(2, 1)",
            "a[None].repeat(2, 1, 1, 1)",
            "a.repeat(7, 5, 1)",
            "a.mean(-1, keepdim=True).repeat(1, 3)",
            "a.tile(4, 1)",
        ),
        "use": (
            "u = torch.cat([r, r])",
            "u = torch.stack([r, r * 2])",
            "u = (r == 0).any()",
            "u = r > 0",
            "u = r * 2",
            "u = r + y",
            "u = r + y.t()",
            "u = r.t() * 2",
            "u = (r * r).sum()",
            "u = torch.where(r > 0, r, 0)",
            "u = r.masked_fill(r == 0, -1.0)",
            "u = r.view(-1) + 1",
        ),
    },
    weight=3,
)

_ACCUMULATE = Template(
    "TPF210",
    "loop",
    """weight = torch.ones(3, device=<place>, requires_grad=True)
total = <start>
for step in range(3):
    loss = (weight * step).square().mean()
    loss.backward()
    total += <added>
return <given>, weight""",
    {
        "place": ('"cuda"', "d"),
        "start": ("0.0", "0", 'torch.zeros((), device="cuda")', "torch.zeros(3, device=weight.device)"),
        "added": ("loss", "loss * 2", "loss / (step + 1)"),
        "given": ("float(total)", "total.item()", "total", "total / 3"),
    },
)

_ACCUMULATE_INSIDE = Template(
    "TPF210",
    "nested",
    """weight = torch.ones(3, device="cuda", requires_grad=True)
total = 0.0
def train():
    <declared>
    for step in range(3):
        loss = (weight * step).square().mean()
        loss.backward(torch.ones((), device="cuda"))
        total += loss
    return float(total)
return train(), <given>, weight""",
    {"declared": ("nonlocal total", "total = 0.0", "total = torch.zeros((), device=d)"), "given": ("total", "0")},
)

_PINNED = Template(
    "TPF201",
    "loader",
    """data = torch.utils.data.TensorDataset(torch.arange(12.0).reshape(6, 2), torch.arange(6))
found = []
for images, targets in torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True):
    moved = images<move>
    <then>
    found.append((moved * 2, targets.to("cuda")))
return found""",
    {
        "move": ('.to("cuda")', ".to(d)", ".cuda()", ".cuda(unit)", ".cuda(0)", '.to("cuda", torch.float16)'),
        "then": ("", "images.zero_()", "moved = moved + 1", "images = images + 1", "places.bump()"),
    },
)

_LOADED = Template(
    "TPF608",
    "optimizer",
    """layer = torch.nn.Linear(3, 2).to("cuda")
optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
layer(torch.ones(4, 3, device="cuda")).square().sum().backward()
optimizer.step()
file = io.BytesIO()
torch.save({"model": layer.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, file)
file.seek(0)
checkpoint = torch.load(file, map_location=<place>)
<model>
optimizer.load_state_dict(checkpoint["optimizer"])
optimizer.step()
return list(layer.parameters()), <given>""",
    {
        "place": ('"cuda"', "d", "torch.device('cuda')"),
        "model": (
            "",
            'layer.load_state_dict(checkpoint["model"])',
            'layer.load_state_dict(checkpoint["model"], True)',
            'layer.load_state_dict(checkpoint["model"], True, True)',
        ),
        "given": ("0", 'checkpoint["epoch"]', 'checkpoint["model"]', '(lambda: checkpoint["model"])()'),
    },
    header="import io\n",
    weight=2,
)

_STATE = "torch.is_autocast_enabled(), torch.get_autocast_dtype('cuda'), torch.is_autocast_cache_enabled()"
_STATE_OF_HOST = "torch.is_autocast_enabled('cpu'), torch.get_autocast_dtype('cpu'), torch.is_autocast_cache_enabled()"

_AUTOCAST = Template(
    "TPF902",
    "autocast",
    "with <context>:\n    out = matrix @ matrix.mT\n    return out, <state>",
    {
        "context": (
            "torch.cuda.amp.autocast()",
            "torch.cuda.amp.autocast(True)",
            "torch.cuda.amp.autocast(flag)",
            "torch.cuda.amp.autocast(dtype=torch.bfloat16)",
            "torch.cuda.amp.autocast(dtype=torch.bfloat16, cache_enabled=False)",
            "torch.cuda.amp.autocast(True, torch.float16, True)",
            "torch.cuda.amp.autocast(dtype=torch.float16, cache_enabled=True)",
            "torch.cpu.amp.autocast()",
            "torch.cpu.amp.autocast(dtype=torch.bfloat16)",
            "torch.cpu.amp.autocast(True, torch.bfloat16, True)",
        ),
        "state": (_STATE, _STATE_OF_HOST),
    },
)

_NO_AUTOCAST = Template(
    "TPF902",
    "no autocast",
    "with <context>:\n    return matrix @ matrix.mT, torch.is_autocast_enabled(<place>)",
    {
        "context": (
            "torch.cuda.amp.autocast(enabled=False)",
            "torch.cuda.amp.autocast(False)",
            "torch.cuda.amp.autocast(False, torch.bfloat16)",
            "torch.cpu.amp.autocast(False)",
            "torch.cpu.amp.autocast(enabled=False, dtype=torch.bfloat16)",
        ),
        "place": ("'cuda'", "'cpu'"),
    },
)

_SCALER = Template(
    "TPF902",
    "scaler",
    "scaler = torch.<place>.amp.GradScaler(<arguments>)\nreturn scaler.state_dict(), scaler.is_enabled()",
    {
        "place": ("cuda", "cpu"),
        "arguments": ("", "1024.0", "enabled=False", "enabled=flag", "init_scale=4.0, growth_interval=7"),
    },
)

_SWITCHES = ", ".join(
    f"torch.backends.cuda.{name}_sdp_enabled()" for name in ("flash", "math", "mem_efficient", "cudnn")
)

_SDP_KERNEL = Template(
    "TPF903",
    "context",
    f"with torch.backends.cuda.sdp_kernel(<arguments>):\n    inside = {_SWITCHES}\nreturn inside, {_SWITCHES}",
    {
        "arguments": (
            "",
            "enable_flash=False",
            "enable_math=False, enable_cudnn=False",
            "False, True, False, False",
            "enable_mem_efficient=False, enable_flash=True",
            "enable_flash=flag",
        )
    },
)

_PIN_MEMORY_DEVICE = Template(
    "TPF904",
    "loader",
    """data = torch.utils.data.TensorDataset(torch.arange(10))
loader = torch.utils.data.DataLoader(data, <arguments>)
return [list(batch) for batch in loader]""",
    {
        "arguments": (
            'batch_size=4, pin_memory_device="cuda"',
            'batch_size=4, pin_memory=True, pin_memory_device="cuda"',
            'pin_memory_device="cuda:0", shuffle=True',
            'pin_memory=flag, pin_memory_device="cuda"',
            'pin_memory_device=""',
        )
    },
)

TEMPLATES = (
    _CREATE_THEN_MOVE,
    _TESTS_IN_A_ROW,
    _CHECKS_IN_A_ROW,
    _ANSWERS_IN_A_ROW,
    _SCALAR_THERE,
    _SCALAR_MOVED,
    _SCALAR_NEW,
    _LIST_THERE,
    _RANGE_INDEX,
    _LIST_INDEX,
    _NUMBER_STORE,
    _ROWS_STORE,
    _NONZERO_FAMILY,
    _PER_ELEMENT_READ,
    _REDUNDANT_ANY_GUARD,
    _COPY_OF_FRESH_TENSOR,
    _REPEAT,
    _ACCUMULATE,
    _ACCUMULATE_INSIDE,
    _PINNED,
    _LOADED,
    _AUTOCAST,
    _NO_AUTOCAST,
    _SCALER,
    _SDP_KERNEL,
    _PIN_MEMORY_DEVICE,
)

CHANGES = (
    ("return torch.zeros(3).cuda(unit)", "return torch.zeros(3, device=unit)"),
    (
        'return torch.arange(3).unsqueeze(0).expand(2, 3).to("cuda")',
        'return torch.arange(3, device="cuda").unsqueeze(0).expand(2, 3)',
    ),
    ("return torch.tril_indices(3, 3).to(x)", "return torch.tril_indices(3, 3, device=x.device, dtype=x.dtype)"),
    ("matrix[places.n, 0] = places.bump()\nreturn matrix", "matrix[places.n, 0].fill_(places.bump())\nreturn matrix"),
    ("matrix[flag, 0] = 1.0\nreturn matrix", "matrix[flag, 0].fill_(1.0)\nreturn matrix"),
    ("row[torch.where(row[:3] > 0)] = 0\nreturn row", "row[row[:3] > 0] = 0\nreturn row"),
    ("row[torch.where(row.sum() > 0)] = 0\nreturn row", "row[row.sum() > 0] = 0\nreturn row"),
    ("if (x < -9).any():\n    x[x < -9] = 0\nreturn x", "x[x < -9] = 0\nreturn x"),
    (
        "with torch.cuda.amp.autocast():\n    return matrix @ matrix.mT",
        'with torch.amp.autocast("cuda"):\n    return matrix @ matrix.mT',
    ),
    (
        "return torch.arange(3.0).repeat(4, 1) + torch.ones(3, 4).t()",
        "return torch.arange(3.0).expand(4, -1) + torch.ones(3, 4).t()",
    ),
    ("return x.clone()", "return x"),
    ("return x.exp().clone()", "return x.exp()"),
    ("return x.mT.contiguous()", "return x.mT"),
    ("return torch.zeros(3).cuda(), torch.rand(2)", "return torch.rand(2)[:0].new_zeros(3).cuda(), torch.rand(2)"),
)
"""Statements that do not mean the same: the comparison must tell each pair apart."""
