"""Generation by compiled models of transformers."""

import torch
from transformers import AutoModelForCausalLM


OPTIONS = {"mode": "reduce-overhead", "fullgraph": True}


def answer(ids: torch.Tensor):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    model.forward = torch.compile(model.forward, mode="reduce-overhead")
    return model.generate(ids.cuda(), max_new_tokens=128)  # error: TPF948


def in_place(ids: torch.Tensor):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    model.compile(mode="max-autotune")
    with torch.inference_mode():
        return model.generate(ids.cuda(), do_sample=True)  # error: TPF948


class Server:
    def __init__(self, name: str):
        self.model = AutoModelForCausalLM.from_pretrained(name).cuda()
        self.model.forward = torch.compile(self.model.forward, **OPTIONS)

    def answer(self, ids: torch.Tensor):
        return self.model.generate(ids)  # error: TPF948


# Look-alikes


def without_graphs(ids: torch.Tensor):
    plain = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    plain.forward = torch.compile(plain.forward)
    return plain.generate(ids.cuda(), max_new_tokens=128)


def eager(ids: torch.Tensor):
    net = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    return net.generate(ids.cuda(), max_new_tokens=128)


def another_one(ids: torch.Tensor):
    first = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    second = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    first.compile()
    return second.generate(ids.cuda()), first(ids.cuda())


def a_part(ids: torch.Tensor):
    head = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    head.lm_head.compile()
    return head.generate(ids.cuda())


def compiled_for_calls(ids: torch.Tensor):
    whole = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    compiled = torch.compile(whole)
    return whole.generate(ids.cuda()), compiled(ids.cuda())


class Sampler:
    def generate(self, count: int) -> list[int]:
        return list(range(count))


def of_another_class() -> list[int]:
    sampler = Sampler()
    sampler.compile()
    return sampler.generate(3)
