"""Operations that have a faster form: softmax by hand, logarithms of probabilities, sorts, distances, products."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from perflint.tracer.modules import autocast_dtype
from perflint.tracer.recording import Where
from perflint.tracer.witnesses.base import Call, Handler, Witness, described, size_of

WIDE = 8192
"""The number of rows from which on a weight counts as one of a vocabulary."""
FOLLOWED = 256
"""Results of one kind that are followed to the calls that take them."""
_PROBABILITIES = ("SoftmaxBackward0", "SigmoidBackward0")


class Operations(Witness):
    """Watches functions of torch that have a faster form."""

    def start(self) -> None:
        self._sorted: dict[int, tuple[weakref.ref[Any], int, Where]] = {}
        self._probabilities: dict[int, weakref.ref[Any]] = {}

    def calls(self) -> Iterator[tuple[Any, str, Handler]]:
        import torch
        from torch.nn import functional

        watched: tuple[tuple[Any, str, Handler], ...] = (
            *((owner, "softmax", self._softmax) for owner in (torch, functional, torch.Tensor)),
            *((owner, "sigmoid", self._sigmoid) for owner in (torch, functional, torch.Tensor)),
            *((owner, "log", self._logarithm) for owner in (torch, torch.Tensor)),
            *((owner, name, self._sort) for owner in (torch, torch.Tensor) for name in ("sort", "argsort")),
            (torch.Tensor, "__getitem__", self._indexed),
            *((owner, name, self._reduced) for owner in (torch, torch.Tensor) for name in ("sum", "norm")),
            *((torch.linalg, name, self._reduced) for name in ("norm", "vector_norm")),
            (functional, "linear", self._linear),
            *((owner, name, self._product) for owner in (torch, torch.Tensor) for name in ("matmul", "mm")),
            (torch.Tensor, "__matmul__", self._product),
            (torch, "_int_mm", self._in_eight_bits),
            (torch, "_scaled_mm", self._in_eight_bits),
        )
        return ((owner, name, handler) for owner, name, handler in watched if hasattr(owner, name))

    def end_step(self) -> None:
        self._sorted.clear()
        self._probabilities.clear()

    def stop(self) -> None:
        self.end_step()

    def _softmax(self, call: Call) -> None:
        result, dimension = call.result, call.argument(1, "dim")
        is_last = dimension in (-1, result.dim() - 1)
        fact = "softmax.matrix" if result.dim() > 1 and is_last else "softmax.other"
        self.observe(fact, call.where, bytes=size_of(result), detail=described(result))
        self._sigmoid(call)

    def _sigmoid(self, call: Call) -> None:
        if len(self._probabilities) >= FOLLOWED:
            self._probabilities.clear()
        self._probabilities[id(call.result)] = weakref.ref(call.result)

    def _logarithm(self, call: Call) -> None:
        given: Any = call.argument(0, "input")
        known = self._probabilities.get(id(given))
        if known is not None and known() is given:
            self.observe("log.of-probabilities", call.where, bytes=size_of(given), detail=described(given))
            return
        made = getattr(given, "grad_fn", None)
        if made is None:
            return
        # A small number may have been added before.
        before = made.next_functions[0][0] if made.name() == "AddBackward0" and made.next_functions else None
        names = {each.name() for each in (made, before) if each is not None}
        fact = "log.of-probabilities" if names.intersection(_PROBABILITIES) else "log.of-others"
        self.observe(fact, call.where, bytes=size_of(given), detail=described(given))

    def _sort(self, call: Call) -> None:
        given, result = call.args[0] if call.args else call.named.get("input"), call.result
        self.observe("sort.all", call.where, bytes=size_of(given), detail=described(given))
        for tensor in result if isinstance(result, tuple) else (result,):
            self._follow(tensor, call.where)

    def _follow(self, tensor: Any, where: Where) -> None:
        if len(self._sorted) >= FOLLOWED:
            self._sorted.clear()
        self._sorted[id(tensor)] = (weakref.ref(tensor), tensor.numel(), where)

    def _indexed(self, call: Call) -> None:
        """An expression `x[i]`: of what a sort gave, or with the order that one gave."""
        if not self._sorted:
            return
        owner, index = call.args[0], call.args[1]
        known = self._sorted.get(id(owner))
        if known is not None and known[0]() is owner:
            kept, (_, total, where) = call.result.numel(), known
            fact = "sort.few" if 2 * kept < total else "sort.many"
            self.observe(fact, where, bytes=size_of(owner), detail=f"{kept} of {total} elements are kept")
            return
        for part in index if isinstance(index, tuple) else (index,):
            known = self._sorted.get(id(part))
            if known is not None and known[0]() is part:
                self._follow(call.result, known[2])

    def _reduced(self, call: Call) -> None:
        given: Any = call.args[0] if call.args else call.named.get("input")
        result = call.result
        if not hasattr(given, "dim") or not hasattr(result, "shape") or given.dim() < 2:
            return
        is_last = result.shape in (given.shape[:-1], (*given.shape[:-1], 1))
        pairs = given.dim() > 2 and is_last and all(size > 1 for size in given.shape[-3:])
        self.observe(
            "reduction.last" if pairs else "reduction.other",
            call.where,
            bytes=size_of(given),
            detail=described(given),
        )

    def _linear(self, call: Call) -> None:
        self._weighed(call, call.argument(1, "weight"), 0)

    def _product(self, call: Call) -> None:
        self._weighed(call, call.args[1] if len(call.args) > 1 else None, 1)

    def _weighed(self, call: Call, weight: Any, outer: int) -> None:
        """A product with a weight; `outer` is its dimension that stays in the result."""
        if weight is None or not hasattr(weight, "shape") or weight.dim() != 2:
            return
        size = weight.shape[outer]
        if size < WIDE or size % 8 == 0:
            return
        dtype = str(weight.dtype).removeprefix("torch.")
        dtype = autocast_dtype() or dtype if dtype == "float32" else dtype
        rows = call.result.numel() // size
        place = " on the CPU" if weight.device.type == "cpu" else ""
        detail = f"{rows} × {weight.shape[1 - outer]} to {size} in {dtype}{place}"
        self.observe("product.odd", call.where, bytes=size_of(call.result), detail=detail)

    def _in_eight_bits(self, call: Call) -> None:
        one, other = call.args[:2]
        fact = "product.int8" if str(one.dtype) == "torch.int8" else "product.fp8"
        detail = f"{one.shape[0]} × {one.shape[1]} to {other.shape[1]}"
        self.observe(fact, Where(None, call.where.step), detail=detail)
