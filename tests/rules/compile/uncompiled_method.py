"""Methods of compiled modules: those that run eagerly, and others."""

import torch
from torch import nn
from transformers import AutoModelForCausalLM


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inward, self.outward = nn.Linear(512, 64), nn.Linear(64, 512)

    def encode(self, x):
        return self.inward(x).relu()

    def whole(self, x):
        return self(x)

    def width(self):
        return self.inward.out_features

    @torch.compile
    def decode(self, x):
        return self.outward(x)

    def probe(self, x):
        return self.inward(x)

    def forward(self, x):
        return self.outward(self.encode(x))


def vectors(loader):
    coder = torch.compile(Coder().cuda())
    return [coder.encode(x.cuda()) for x in loader]  # error: TPF716


def under_the_same_name(loader, compiled: bool):
    coder = Coder().cuda()
    if compiled:
        coder = torch.compile(coder)
    for x in loader:
        yield coder.whole(x.cuda())  # error: TPF716


def text(ids: torch.Tensor):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    model = torch.compile(model)
    return model.generate(ids.cuda(), max_new_tokens=64)  # error: TPF716


class Server:
    def __init__(self):
        self.coder = torch.compile(Coder().cuda())

    def answer(self, x: torch.Tensor):
        return self.coder.encode(x)  # error: TPF716


class Offered:
    def __init__(self):
        self.coder = Coder().cuda()

    def compile(self) -> None:
        self.coder = torch.compile(self.coder)

    def answer(self, x: torch.Tensor):
        return self.coder.encode(x)  # audit: TPF716


COMPILED = torch.compile(Coder().cuda())


def of_the_file(x: torch.Tensor):
    return COMPILED.encode(x)  # error: TPF716


# Look-alikes


def called(loader):
    coder = torch.compile(Coder().cuda())
    coder.eval()
    state = coder.state_dict()
    return [coder(x.cuda()) + coder.forward(x.cuda()) for x in loader], state, coder.width()


def not_compiled(loader):
    coder = Coder().cuda()
    other = torch.compile(coder)
    return [coder.encode(x.cuda()) + other(x.cuda()) for x in loader]


def decorated(loader):
    coder = torch.compile(Coder().cuda())
    return [coder.decode(x.cuda()) for x in loader]


def compiled_itself(loader):
    coder = torch.compile(Coder().cuda())
    coder.probe = torch.compile(coder.probe)
    return [coder.probe(x.cuda()) for x in loader]


def compiled_in_place(ids: torch.Tensor):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    model.compile()
    return model.generate(ids.cuda(), max_new_tokens=64)


def a_function(x: torch.Tensor):
    scale = torch.compile(torch.relu)
    return scale(x)


def load():
    coder = Coder().cuda()
    coder.eval()
    return torch.compile(coder)


def from_a_function(loader):
    coder = load()
    return [coder.encode(x.cuda()) for x in loader]  # error: TPF716


def called_from_a_function(loader):
    coder = load()
    return [coder(x.cuda()) for x in loader]
