"""Programs that grow: each function writes one with `n` of something.

Linear time means that checking (or fixing) a program takes twice as long for twice as much text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Program = Callable[[int], str]


@dataclass(frozen=True)
class Family:
    """A program by size, the least size of interest, and whether to fix it, too."""

    program: Program
    size: int
    fixed: bool = False


FAMILIES: dict[str, Family] = {}

IMPORTS = "import torch\nfrom torch import nn\n"


def family(size: int, fixed: bool = False) -> Callable[[Program], Program]:
    """Enter a program, with its least size."""

    def enter(program: Program) -> Program:
        FAMILIES[program.__name__] = Family(program, size, fixed)
        return program

    return enter


def lines(pattern: str, count: int) -> str:
    """Copies of some lines, with their number for `~` and the next number for `$`."""
    return "".join(f"{pattern.replace('~', str(n)).replace('$', str(n + 1))}\n" for n in range(count))


def block(head: str, body: str) -> str:
    """A compound statement."""
    return head + "\n" + "".join(f"    {line}\n" for line in body.splitlines() or ["pass"])


# Fixes


@family(25, fixed=True)
def refused_fixes(n: int) -> str:
    return "import torch\n" + block(
        "def f(x: torch.Tensor):", lines("w~ = (torch.ones(3)  # type: ignore\n    .to(x.device))", n)
    )


@family(25, fixed=True)
def fixes_that_move_comments(n: int) -> str:
    return "import torch\n" + block(
        "def f(x: torch.Tensor):", lines("w~ = (torch.ones(3)  # a number\n    .to(x.device))", n)
    )


@family(25, fixed=True)
def applied_fixes(n: int) -> str:
    return "import torch\n" + block("def f(x: torch.Tensor):", lines("w~ = torch.ones(~).to(x.device)", n))


@family(25, fixed=True)
def fixes_in_one_line(n: int) -> str:
    moves = ", ".join(f"torch.ones({k}).to(x.device)" for k in range(n))
    return "import torch\n" + block("def f(x: torch.Tensor):", f"return [{moves}]")


@family(12, fixed=True)
def fixes_in_functions(n: int) -> str:
    return "import torch\n" + lines("def f~(x: torch.Tensor):\n    return torch.ones(~).to(x.device)", n)


@family(12, fixed=True)
def fixes_that_need_an_import(n: int) -> str:
    return "from torch.cuda.amp import autocast\n" + lines(
        "def f~(x, model):\n    with autocast():\n        return model(x)", n
    )


@family(12, fixed=True)
def autocasts(n: int) -> str:
    body = lines("with torch.cuda.amp.autocast():\n    x = model(x)", n)
    return "import torch\n" + block("def f(x, model):", body + "return x")


@family(25, fixed=True)
def grad_scalers(n: int) -> str:
    return "import torch\n" + lines("s~ = torch.cuda.amp.GradScaler()", n)


# Rules that look around


@family(12)
def models_and_optimizers(n: int) -> str:
    made = lines("m~ = nn.Linear(8, 8).cuda()\no~ = torch.optim.AdamW(m~.parameters())", n)
    steps = lines("loss = m~(x.cuda()).sum()\no~.zero_grad()\nloss.backward()\no~.step()", n)
    return IMPORTS + made + block("for x in loader:", steps)


@family(12)
def evaluations(n: int) -> str:
    step = "total += (model(x.cuda()) == y.cuda()).sum().item()"
    return IMPORTS + lines(
        f"def evaluate~(model, loader):\n    total = 0\n    for x, y in loader:\n        {step}\n    return total", n
    )


@family(25)
def clones(n: int) -> str:
    body = lines("y~ = x.clone()\nz~ = y~ + x", n)
    return IMPORTS + block("def f(x: torch.Tensor):", block("for i in range(9):", body))


@family(25)
def halves_under_autocast(n: int) -> str:
    body = block("with torch.autocast('cuda', dtype=torch.float16):", lines("y~ = model(x.half())", n))
    return IMPORTS + "model = nn.Conv2d(3, 8, 3).cuda()\n" + block("def f(x: torch.Tensor):", body)


@family(12)
def halves_in_autocasts(n: int) -> str:
    body = lines("x = x.cuda()\nwith torch.autocast('cuda', dtype=torch.float16):\n    y~ = model(x.half())", n)
    return IMPORTS + "model = nn.Conv2d(3, 8, 3).cuda()\n" + block("def f(x: torch.Tensor):", body)


@family(25)
def loaders_of_one_function(n: int) -> str:
    made = lines("l~ = torch.utils.data.DataLoader(data, **options)\nfor epoch in range(9):\n    train(l~)", n)
    used = lines("for x~ in l:\n    y = model(x~.cuda())", n)
    return IMPORTS + block("def train(l):", used) + block("def f(data, **options):", made)


@family(25)
def autocasts_with_images(n: int) -> str:
    step = "images = images.cuda()\n    with torch.autocast('cuda'):\n        y = net(images)"
    return IMPORTS + lines(f"def f~(net, images):\n    {step}\n    return y", n)


@family(25)
def loaders(n: int) -> str:
    made = "l~ = torch.utils.data.DataLoader(data, batch_size=8)"
    used = "for x in l~:\n    y = model(x.cuda())"
    return IMPORTS + block("def f(data, model):", lines(f"{made}\n{used}", n))


@family(25)
def loaders_used_elsewhere(n: int) -> str:
    step = "for x in l:\n        y = model(x.cuda())"
    return (
        IMPORTS
        + lines(f"def train~(l, model):\n    {step}", n)
        + lines("l~ = torch.utils.data.DataLoader(data~)\nfor epoch in range(9):\n    train~(l~, model)", n)
    )


@family(50)
def ignored_files_and_findings(n: int) -> str:
    return "import torch\n" + lines("s~ = torch.cuda.amp.GradScaler()  # perflint: ignore-file[TPF9~]", n)


@family(50)
def silenced_lines(n: int) -> str:
    return "import torch\n" + lines("s~ = torch.cuda.amp.GradScaler()  # noqa: TPF9", n)


# Statements


@family(100)
def loop_body(n: int) -> str:
    return "import torch\nx = torch.rand(8).cuda()\n" + block("for i in range(9):", lines("x = x.add(~)", n))


@family(50)
def tests_in_a_row(n: int) -> str:
    test = " and ".join(f"(x > {number}).any()" for number in range(n))
    return "import torch\n" + block("def f(x: torch.Tensor):", f"if {test}:\n    return x.sum().item()\nreturn x")


@family(60)
def items_in_a_loop(n: int) -> str:
    return "import torch\nx = torch.rand(8).cuda()\n" + block("for i in range(9):", lines("y~ = x.sum().item()", n))


@family(60)
def try_statements(n: int) -> str:
    return "import torch\n" + block("def f(x):", lines("try:\n    x = x.add(~)\nexcept ValueError:\n    x = None", n))


@family(60)
def growing_tensors(n: int) -> str:
    made = lines("a~ = torch.zeros(0).cuda()", n)
    body = lines("a~ = torch.cat([a~, x])", n)
    return "import torch\n" + block("def f(data):", made + block("for x in data:", body))


@family(60)
def parameters(n: int) -> str:
    names = ", ".join(f"a{k}: torch.Tensor" for k in range(n))
    return "import torch\n" + block(f"def f({names}):", lines("a~.item()", n))


@family(30)
def callers_of_one_function(n: int) -> str:
    return "import torch\ndef g(x):\n    return x.item()\n" + lines("def f~(x):\n    return g(torch.rand(~).cuda())", n)


@family(30)
def globals_(n: int) -> str:
    return "import torch\n" + lines("g~ = torch.rand(~).cuda()", n) + block("def f():", lines("g~.item()", n))


@family(60)
def lines_of_forward(n: int) -> str:
    body = block("def forward(self, x):", lines("x = x.relu() + x.mean().item()", n) + "return x")
    return IMPORTS + block("class A(nn.Module):", body)


@family(60)
def branches_of_forward(n: int) -> str:
    body = block("def forward(self, x):", lines("if x.sum() > ~:\n    x = x.relu()", n) + "return x")
    return IMPORTS + block("class A(nn.Module):", body)


@family(60)
def layers(n: int) -> str:
    init = block("def __init__(self):", "super().__init__()\n" + lines("self.l~ = nn.Linear(8, 8)", n))
    forward = block("def forward(self, x):", lines("x = self.l~(x)", n) + "return x")
    return IMPORTS + block("class A(nn.Module):", init + forward)


@family(60)
def while_loops(n: int) -> str:
    return "import torch\n" + block("def f(x: torch.Tensor):", lines("while x.sum() > ~:\n    x = x.cuda() - 1", n))


@family(60)
def with_statements(n: int) -> str:
    return "import torch\n" + block("def f(x, model):", lines("with torch.no_grad():\n    x = model(x.cuda())", n))


@family(30)
def loops(n: int) -> str:
    return "import torch\n" + block("def f(x: torch.Tensor):", lines("for i in x.cuda():\n    y = i.item()", n))


# Long expressions


@family(60)
def one_line_with_other_letters(n: int) -> str:
    return "import torch\nx = [" + ", ".join(["'é', torch.ones(3).cuda().item()"] * n) + "]\n"


@family(120)
def fields_of_an_f_string(n: int) -> str:
    return "import torch\nx = torch.ones(3).cuda()\ny = f'" + "{x} " * n + "'\n"


@family(120)
def many_in_one_line(n: int) -> str:
    return "import torch\nx = torch.ones(3).cuda()\n" + "; ".join(["y = x.item()"] * n) + "\n"


@family(60)
def sequential(n: int) -> str:
    return IMPORTS + f"m = nn.Sequential({', '.join(['nn.Linear(8, 8), nn.ReLU()'] * n)})\ny = m(torch.rand(3, 8))\n"


@family(60)
def sequential_with_norms(n: int) -> str:
    pair = "nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3), nn.ReLU()"
    return IMPORTS + f"m = nn.Sequential({', '.join([pair] * n)})\ny = m(torch.rand(3, 3, 8, 8))\n"


@family(60)
def rows_of_a_tensor(n: int) -> str:
    rows = ", ".join(f"[{k}, {k}.0]" for k in range(n))
    return f"import torch\nx = torch.tensor([{rows}]).cuda()\ny = x.item()\n"


# Definitions


@family(60)
def inheritance_chain(n: int) -> str:
    body = lines("class A$(A~):\n    def forward(self, x):\n        return super().forward(x).item()", n)
    return IMPORTS + "class A0(nn.Module):\n    def forward(self, x):\n        return x\n" + body


@family(30)
def subclasses(n: int) -> str:
    body = lines("class A~(B):\n    def forward(self, x):\n        return super().forward(x).item()", n)
    return IMPORTS + "class B(nn.Module):\n    def forward(self, x):\n        return x\n" + body


@family(60)
def decorators(n: int) -> str:
    made = lines("def d~(f):\n    def g(x):\n        return f(x) + ~\n    return g", n)
    return f"import torch\n{made}{lines('@d~', n)}def f(x):\n    return x\ny = f(torch.rand(3).cuda()).item()\n"


@family(60)
def same_decorators(n: int) -> str:
    made = "def d(f):\n    def g(x):\n        return f(x) + 1\n    return g\n"
    return f"import torch\n{made}{lines('@d', n)}def f(x):\n    return x\ny = f(torch.rand(3).cuda()).item()\n"


@family(30)
def decorated_functions(n: int) -> str:
    return IMPORTS + lines("@torch.no_grad()\ndef f~(model, x):\n    return model(x.cuda()).item()", n)


@family(30)
def compiled_functions(n: int) -> str:
    return IMPORTS + lines("@torch.compile\ndef f~(x: torch.Tensor):\n    return x.sum().item()", n)


@family(30)
def modules(n: int) -> str:
    init = "def __init__(self):\n        super().__init__()\n        self.l = nn.Linear(8, 8)"
    forward = "def forward(self, x):\n        return self.l(x).item()"
    return IMPORTS + lines(f"class A~(nn.Module):\n    {init}\n    {forward}\nm~ = A~().cuda()", n)


@family(30)
def call_chain(n: int) -> str:
    made = lines("def f~(x):\n    return f$(x + 1)", n)
    return f"import torch\n{made}def f{n}(x):\n    return x.item()\ny = f0(torch.rand(3).cuda())\n"


@family(30)
def methods(n: int) -> str:
    return IMPORTS + block(
        "class A(nn.Module):", lines("def m~(self, x):\n    self.a~ = x.cuda()\n    return self.m$(self.a~).item()", n)
    )


@family(40)
def closures(n: int) -> str:
    return "import torch\n" + block("def f(x):", lines("y~ = x.cuda()\ndef g~(z):\n    return y~.item() + z", n))


@family(30)
def training_steps(n: int) -> str:
    step = "loss = m(x.cuda()).sum()\n        opt.zero_grad()\n        loss.backward()\n        opt.step()"
    return IMPORTS + lines(
        f"def train~(m, loader, opt):\n    for x in loader:\n        {step}\n    return loss.item()", n
    )


@family(100)
def copies_of_a_program(n: int) -> str:
    loop = block("for x in loader:", "print(model(x.cuda()).sum().item())")
    return lines("import torch\n\n\n" + block("def train(loader, model: torch.nn.Module):", loop), n)
