"""Switches that slow a program down, asked for and not."""

import argparse
import os

import lightning as L
import torch
import torch.backends.cudnn as cudnn

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # error: TPF358
os.environ["HIP_LAUNCH_BLOCKING"] = "1"  # error: TPF358
os.environ["AMD_SERIALIZE_KERNEL"] = "3"  # error: TPF358
torch.backends.cudnn.enabled = False  # error: TPF358
cudnn.deterministic = True


def main() -> None:
    torch.use_deterministic_algorithms(True)  # error: TPF358
    os.environ.setdefault("CUDA_LAUNCH_BLOCKING", "1")  # error: TPF358


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True, warn_only=True)  # error: TPF358
    main()


def seed_everything(seed: int) -> None:
    torch.manual_seed(seed)
    cudnn.deterministic = True
    cudnn.enabled = False  # error: TPF358


def on_a_mac() -> None:
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "1"  # audit: TPF358
    os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")  # audit: TPF358


# Look-alikes


def set_seed(seed: int) -> None:
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    cudnn.benchmark = False


def for_a_while(out: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    torch.use_deterministic_algorithms(True)
    try:
        return out.scatter_add(0, index, out)
    finally:
        torch.use_deterministic_algorithms(False)


def asked_for(args: argparse.Namespace) -> None:
    if args.deterministic:
        torch.use_deterministic_algorithms(True)
        cudnn.deterministic = True
    cudnn.enabled = not args.no_cudnn
    torch.use_deterministic_algorithms(args.deterministic)


def early(debug: bool) -> None:
    if not debug:
        return
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"


def switched_off() -> None:
    torch.use_deterministic_algorithms(False)
    cudnn.deterministic = False
    cudnn.benchmark = True
    cudnn.enabled = True
    os.environ["CUDA_LAUNCH_BLOCKING"] = "0"
    os.environ["AMD_SERIALIZE_KERNEL"] = "0"
    os.environ["AMD_LOG_LEVEL"] = "3"
    os.environ["PYTORCH_ENABLE_MPS_FALLBACK"] = "0"


def around_a_layer(layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.backends.cudnn.flags(enabled=False):
        return layer(x)


class Settings:
    def __init__(self) -> None:
        self.deterministic = True
        self.enabled = False


def restored(state: bool) -> None:
    torch.use_deterministic_algorithms(state)


def all_at_once() -> None:
    os.environ.update({"CUDA_LAUNCH_BLOCKING": "1", "OMP_NUM_THREADS": "8"})  # error: TPF358


def by_keyword() -> None:
    os.environ.update(CUDA_LAUNCH_BLOCKING="1")  # error: TPF358


def merged() -> None:
    os.environ |= {"CUDA_LAUNCH_BLOCKING": "1"}  # error: TPF358


def all_off() -> None:
    os.environ.update({"CUDA_LAUNCH_BLOCKING": "0"})
    os.environ |= {"AMD_SERIALIZE_KERNEL": "0"}


def between_processes() -> None:
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"  # audit: TPF358
    os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"  # audit: TPF358
    os.environ["NCCL_BLOCKING_WAIT"] = "1"  # audit: TPF358


def between_processes_for_less() -> None:
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "INFO"
    os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "0"
    os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "1"


def in_float64(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer) -> None:
    torch.set_default_dtype(torch.float64)  # error: TPF358
    for x in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()


def in_another_format() -> None:
    torch.set_default_dtype(torch.bfloat16)


def of_lightning(deterministic: bool) -> None:
    L.Trainer(max_epochs=3, deterministic=True)  # error: TPF358
    L.Trainer(max_epochs=3, deterministic=deterministic)
    L.Trainer(max_epochs=3, deterministic="warn")
