"""What torch does not have."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.compiler import optimize  # error: TPF378


def prepare(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    model = torch.compiler.optimize(model)  # error: TPF378
    with torch.no_gradient():  # error: TPF378
        traced = torch.jit.get_trace(model)  # error: TPF378
        return traced(optimize(F.layer_norms(x, (8,))))  # error: TPF378


def scale(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def move(x: torch.Tensor) -> torch.Tensor:
    scale.to("cuda")  # error: TPF378
    return scale(torch.gels(x, x)[0])  # audit: TPF378


# Look-alikes


def existing(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), torch.autocast("cuda"), torch.inference_mode():
        model = torch.compile(model.to("cuda"))
        torch.cuda.synchronize()
        torch.onnx.export(model, (x,))
        return F.layer_norm(torch.linalg.inv(x), (8,))


def asked_for(x: torch.Tensor) -> torch.Tensor:
    if hasattr(torch, "solves"):
        return torch.solves(x)
    if torch.__version__ < "1.9":
        return torch.lstsqs(x)
    return x


def caught(x: torch.Tensor) -> torch.Tensor:
    try:
        return torch.qrs(x)
    except AttributeError:
        return x


def annotated(model: "torch.nn.module", x: torch.nn.module) -> torch.nn.module:
    torch.backends.cudnn.version()
    return model(x)


def of_others(torch_like, x: torch.Tensor) -> torch.Tensor:
    return torch_like.no_gradient(x)


def devices(x: torch.Tensor) -> torch.Tensor:
    return torch.npu.current_device() + torch.ops.mylib.norm(x) + torch._C._some_private_name(x)


class Scale(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def modules(x: torch.Tensor) -> torch.Tensor:
    layer = Scale()
    layer.to("cuda")
    return layer(x).to("cuda")


def built_with_a_library(store, x: torch.Tensor):
    if torch.backends.cudnn.benchmark or not torch.backends.cudnn.enabled:
        return torch.distributed.ProcessGroupNCCL(store, 0, 2)
    return torch.distributed.ProcessGroupMPI.create([0, 1])


def for_a_backend_that_is_gone(model: nn.Module):
    return torch.compile(model, backend="onnxrt")  # error: TPF378


def for_other_backends(model: nn.Module, backend: str):
    return torch.compile(model, backend="inductor"), torch.compile(model, backend=backend)
