"""Which of torch's operators keep the host waiting for a GPU, by what they are called with.

What is here was measured: `tools/probe_syncs.py` on a GPU, whose table
`semantics/torch_api/measured.toml` the tests hold this against. It is about operators as torch's
dispatcher sees them, below its Python functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perflint.tracer.simulation.marks import At, is_from_list, is_on_gpu, place_of, put

Arguments = tuple[Any, ...]
Named = dict[str, Any]
Rule = Callable[[str, Arguments, Named], bool]
"""True if a call waits: the operator's overload, its arguments. Some tensor of them is on the GPU."""


def waits(name: str, overload: str, arguments: Arguments, named: Named) -> bool:
    """True if the host would wait in an operator that some tensor on the GPU is given to."""
    rule = _RULES.get(name)
    return rule is not None and rule(overload, arguments, named)


def _always(overload: str, arguments: Arguments, named: Named) -> bool:
    return True


def _argument(arguments: Arguments, named: Named, number: int, name: str) -> Any:
    return arguments[number] if len(arguments) > number else named.get(name)


def _reads(number: int, name: str) -> Rule:
    """The rule that an argument waits if it is a tensor on the GPU, because the host needs its value."""

    def rule(overload: str, arguments: Arguments, named: Named) -> bool:
        import torch

        value = _argument(arguments, named, number, name)
        return isinstance(value, torch.Tensor) and is_on_gpu(value)

    return rule


def _equal(overload: str, arguments: Arguments, named: Named) -> bool:
    # A tensor equals itself without a look at it.
    return arguments[0] is not arguments[1]


def _histc(overload: str, arguments: Arguments, named: Named) -> bool:
    lowest, highest = _argument(arguments, named, 2, "min"), _argument(arguments, named, 3, "max")
    return (lowest or 0) == (highest or 0)


def _repeat(overload: str, arguments: Arguments, named: Named) -> bool:
    return overload.startswith("Tensor") and named.get("output_size") is None


def _copy(overload: str, arguments: Arguments, named: Named) -> bool:
    target, source = arguments[:2]
    if not source.numel() or _argument(arguments, named, 2, "non_blocking"):
        return False
    return {place_of(target), place_of(source)} == {At.HOST, At.GPU}


def _where(overload: str, arguments: Arguments, named: Named) -> bool:
    import torch

    return any(isinstance(value, torch.Tensor) and place_of(value) is At.HOST for value in arguments[1:3])


def _isin(overload: str, arguments: Arguments, named: Named) -> bool:
    if overload != "Tensor_Tensor":
        return False
    # Few are compared with all; many are sorted.
    elements, tests = arguments[:2]
    return bool(tests.numel() >= int(10.0 * elements.numel() ** 0.145))


def _index(overload: str, arguments: Arguments, named: Named) -> bool:
    return _indices_wait(arguments[0], arguments[1])


def _index_put(overload: str, arguments: Arguments, named: Named) -> bool:
    target, indices, value = arguments[:3]
    masks = [_is_mask(index) for index in indices if index is not None]
    one = place_of(value) is At.HOST and value.numel() == 1
    if all(masks) and one and not _argument(arguments, named, 3, "accumulate"):
        # torch fills instead, by masks that are where the target is.
        return is_on_gpu(target) and any(place_of(index) is At.HOST for index in indices if index is not None)
    return _indices_wait(target, indices) or (one and value.dim() == 0 and is_on_gpu(target))


def _indices_wait(target: Any, indices: Sequence[Any]) -> bool:
    """Masks on the GPU are counted, and other indices are copied to a target on the GPU, lists as they are read.

    A target on the CPU takes no positions on the GPU: a GPU raises an error there.
    """
    here = place_of(target)
    found = False
    for index in indices:
        if index is None:
            continue
        there = place_of(index)
        if there is At.HOST and is_from_list(index):
            put(index, here)
            if here is At.GPU:
                found = True
        elif _is_mask(index):
            found = found or there is At.GPU
        elif here is At.GPU and there is At.HOST:
            found = True
    return found


def _is_mask(index: Any) -> bool:
    import torch

    return index.dtype in (torch.bool, torch.uint8)


_RULES: dict[str, Rule] = dict.fromkeys(
    """
    _local_scalar_dense nonzero masked_select bincount _unique _unique2 unique_dim unique_consecutive
    unique_dim_consecutive _linalg_check_errors _linalg_eigh linalg_eig _linalg_svd linalg_lstsq _linalg_eigvals
    linalg_eigvals linalg_matrix_exp _ctc_loss _ctc_loss_backward _to_sparse _to_sparse_csr _to_sparse_csc
    _to_sparse_bsr _to_sparse_bsc is_nonzero
    allclose cholesky masked_scatter_backward linalg_pinv linspace logspace _nested_tensor_from_mask_left_aligned
    """.split(),
    _always,
) | {
    "copy_": _copy,
    "equal": _equal,
    "histc": _histc,
    "index": _index,
    "isin": _isin,
    "index_fill": _reads(3, "value"),
    "index_fill_": _reads(3, "value"),
    "index_put": _index_put,
    "index_put_": _index_put,
    "_index_put_impl_": _index_put,
    "_unsafe_index": _index,
    "_unsafe_index_put": _index_put,
    "masked_fill": _reads(2, "value"),
    "masked_fill_": _reads(2, "value"),
    "normal": _reads(1, "std"),
    "repeat_interleave": _repeat,
    "where": _where,
}
