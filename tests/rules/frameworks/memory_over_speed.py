"""Pipelines of diffusers and what they do to save memory."""

import torch
from diffusers import DiffusionPipeline, StableDiffusionXLPipeline


def offloaded(name: str):
    pipe = DiffusionPipeline.from_pretrained(name, torch_dtype=torch.float16)
    pipe.enable_sequential_cpu_offload(gpu_id=0)  # error: TPF951
    return pipe


class Painter:
    def __init__(self, name: str):
        self.pipe = StableDiffusionXLPipeline.from_pretrained(name, torch_dtype=torch.float16).to("cuda")
        self.pipe.enable_attention_slicing("max")  # error: TPF951

    def paint(self, prompt: str):
        return self.pipe(prompt).images[0]


pipeline = DiffusionPipeline.from_pretrained("stable", torch_dtype=torch.float16).to("cuda")
pipeline.enable_attention_slicing()  # error: TPF951


# Look-alikes


def by_models(name: str):
    pipe = DiffusionPipeline.from_pretrained(name, torch_dtype=torch.float16)
    pipe.enable_model_cpu_offload()
    return pipe


def small_decoder(pipe: DiffusionPipeline):
    pipe.vae.enable_slicing()
    pipe.vae.enable_tiling()


def with_a_flag(pipe: DiffusionPipeline, is_small: bool):
    if is_small:
        pipe.enable_sequential_cpu_offload()


def switched_off(pipe: DiffusionPipeline):
    pipe.disable_attention_slicing()


def described(pipe: DiffusionPipeline):
    return {"slicing": pipe.enable_attention_slicing}
