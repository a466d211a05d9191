"""Choices of the implementation of attention."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import AutoConfig, AutoModelForCausalLM


def build(name: str):
    return AutoModelForCausalLM.from_pretrained(name, attn_implementation="eager").cuda()  # error: TPF314


SLOW = "eager"


def by_name(name: str):
    model = AutoModelForCausalLM.from_pretrained(name)
    model.set_attn_implementation(SLOW)  # error: TPF314
    return model


def by_config(name: str):
    config = AutoConfig.from_pretrained(name)
    config._attn_implementation = "eager"  # error: TPF314
    return AutoModelForCausalLM.from_config(config)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel([SDPBackend.MATH]):  # error: TPF314
        return F.scaled_dot_product_attention(q, k, v)


def switch_off():
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)  # error: TPF314


def in_float32(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    y = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)  # audit: TPF314
    q, k = q.to(torch.float32), k.to(torch.float32)
    return y + F.scaled_dot_product_attention(q, k, value=v.float())  # audit: TPF314


# Look-alikes


def without_cudnn():
    torch.backends.cuda.enable_cudnn_sdp(False)


def in_the_type_of_the_cache(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    y = F.scaled_dot_product_attention(q.to(k.dtype), k, v)
    q, k, v = (each.to(torch.bfloat16) for each in (q, k, v))
    return y + F.scaled_dot_product_attention(q.half(), k.half(), v.half())


def switch_on():
    torch.backends.cuda.enable_flash_sdp(True)
    torch.backends.cuda.enable_math_sdp(False)


def fused(name: str):
    return AutoModelForCausalLM.from_pretrained(name, attn_implementation="sdpa")


def by_default(name: str):
    return AutoModelForCausalLM.from_pretrained(name)


def as_the_user_says(name: str, implementation: str):
    return AutoModelForCausalLM.from_pretrained(name, attn_implementation=implementation)


def behind_a_flag(name: str, debug: bool):
    if debug:
        return AutoModelForCausalLM.from_pretrained(name, attn_implementation="eager")
    return AutoModelForCausalLM.from_pretrained(name, attn_implementation="flash_attention_2")


def of_another_library(loader, name: str):
    return loader.build(name, attention="eager")


SETTINGS = {"attn_implementation": "eager", "device_map": "cuda"}


def from_a_dict(name: str):
    return AutoModelForCausalLM.from_pretrained(name, **SETTINGS)  # error: TPF314


def from_a_dict_of_the_caller(name: str, settings: dict[str, object]):
    return AutoModelForCausalLM.from_pretrained(name, **settings)


def other_weights(name: str):
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="sdpa").cuda()
    return model.generate


KERNELS = [SDPBackend.MATH]


def by_a_constant(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(KERNELS):  # error: TPF314
        return F.scaled_dot_product_attention(q, k, v)


class InFloat32(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        y = F.scaled_dot_product_attention(q.float(), k.float(), v.float()).to(q.dtype)  # error: TPF314
        z = F.scaled_dot_product_attention(q.float(), k.float(), v.float()).transpose(1, 2).bfloat16()  # error: TPF314
        return y + z + F.scaled_dot_product_attention(q.float(), k.float(), v.float()).type_as(v)  # error: TPF314

    def of_float32(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        y = F.scaled_dot_product_attention(q.float(), k.float(), v.float()).transpose(1, 2)  # audit: TPF314
        y = y + F.scaled_dot_product_attention(q.float(), k.float(), v.float()).to(q.device)  # audit: TPF314
        return y + F.scaled_dot_product_attention(q, k, v).to(q.dtype)
