"""Steps of optimizers and the gradients that they find: how the parameters are updated, and where the state is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perflint.tracer.optimizer_steps import listen
from perflint.tracer.recording import Where
from perflint.tracer.witnesses.base import Call, Handler, Witness, size_of

_IN_PLACE = ("mul_", "add_", "sub_", "div_", "lerp_", "copy_", "addcmul_", "addcdiv_", "clamp_", "sign_", "neg_")


class Optimizers(Witness):
    """Watches the steps of optimizers, at the place of their construction."""

    def start(self) -> None:
        self._end = listen(self._guarded(self._stepped))

    def stop(self) -> None:
        self._end()

    def _stepped(self, optimizer: Any) -> None:
        where = self.made(optimizer)
        if where is None:
            return
        parameters = [each for group in optimizer.param_groups for each in group["params"] if each.grad is not None]
        if not parameters:
            return
        detail = f"{len(parameters)} parameters of {type(optimizer).__name__}"
        size = sum(map(size_of, parameters))
        self.observe(_form(optimizer, parameters), where, bytes=size, detail=detail)
        groups = optimizer.param_groups
        on_gpu = parameters[0].device.type == "cuda"
        if on_gpu and any(group.get("capturable") for group in groups):
            self.observe("optimizer.captured" if _is_capturing() else "optimizer.capturable", where, detail=detail)
        elif on_gpu and not any(group.get("fused") for group in groups):
            self._counters(optimizer, parameters, where, detail)

    def _counters(self, optimizer: Any, parameters: list[Any], where: Where, detail: str) -> None:
        counters = [state["step"] for each in parameters if "step" in (state := optimizer.state.get(each, {}))]
        devices = {each.device.type for each in counters if hasattr(each, "device")}
        if devices:
            self.observe(f"optimizer.counters-on-{'gpu' if 'cuda' in devices else 'cpu'}", where, detail=detail)


def _form(optimizer: Any, parameters: list[Any]) -> str:
    """The form that a step takes, by the same defaults as torch's optimizers."""
    if any(group.get("fused") for group in optimizer.param_groups):
        return "optimizer.fused"
    if parameters[0].device.type == "cpu":
        return "optimizer.on-cpu"
    chosen = [group.get("foreach") for group in optimizer.param_groups]
    has_form = "foreach" in optimizer.defaults
    # None is the default: torch takes the form for groups if all parameters are plain tensors on a GPU.
    is_plain = all(type(each).__name__ in ("Parameter", "Tensor") for each in parameters)
    by_default = is_plain and not any(group.get("differentiable") for group in optimizer.param_groups)
    grouped = has_form and all(each or (each is None and by_default) for each in chosen)
    return "optimizer.foreach" if grouped else "optimizer.one-by-one"


def _is_capturing() -> bool:
    import torch

    return bool(torch.cuda.is_current_stream_capturing())


class Updates(Witness):
    """Watches gradients that are cleared, and tensors that are changed in place one by one."""

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch

        yield torch.optim.Optimizer, "zero_grad", self._optimizer_cleared
        yield torch.nn.Module, "zero_grad", self._module_cleared
        yield torch.Tensor, "zero_", self._zeroed
        for name in _IN_PLACE:
            yield torch.Tensor, name, self._updated

    def _optimizer_cleared(self, call: Call) -> None:
        self._cleared(call, [each for group in call.args[0].param_groups for each in group["params"]])

    def _module_cleared(self, call: Call) -> None:
        self._cleared(call, list(call.args[0].parameters()))

    def _cleared(self, call: Call, parameters: list[Any]) -> None:
        kept = [each.grad for each in parameters if each.grad is not None]
        if kept:
            detail = f"{len(kept)} gradients"
            self.observe("gradients.zeroed", call.where, bytes=sum(map(size_of, kept)), detail=detail)
        else:
            self.observe("gradients.freed", call.where)

    def _zeroed(self, call: Call) -> None:
        self.observe("tensor.zeroed", call.where, bytes=size_of(call.args[0]))

    def _updated(self, call: Call) -> None:
        tensor = call.args[0]
        fact = "tensor.updated-gpu" if tensor.device.type == "cuda" else "tensor.updated-cpu"
        self.observe(fact, call.where, bytes=size_of(tensor))
