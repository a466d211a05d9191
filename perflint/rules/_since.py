"""The first torch version that has an API, for the APIs in fixes that are newer than torch 1.8.

Release notes and pull requests of pytorch/pytorch are the sources. Where the release of a pull request is
not certain, the later one stands.
"""

from __future__ import annotations

Version = tuple[int, int]

INFERRED_FULL: Version = (1, 7)
"""`torch.full` takes its dtype from the number; 1.6 raises for integers and booleans (release notes of 1.6 and 1.7)."""
INFERENCE_MODE: Version = (1, 9)
"""`torch.inference_mode` (release notes of 1.9)."""
ASSERT_ASYNC: Version = (1, 9)
"""`torch._assert_async` (#53086, March 2021)."""
ASSERT_ASYNC_MESSAGE: Version = (2, 1)
"""The same with a message (the overload `_assert_async.msg` of May 2023: #100918)."""
PROMOTING_WHERE: Version = (1, 12)
"""`torch.where` with a Python number and a tensor of any dtype (#76691)."""
AMP_AUTOCAST: Version = (1, 12)
"""`torch.amp.autocast`; `torch.autocast` is from 1.10."""
AMP_GRAD_SCALER: Version = (2, 3)
"""`torch.amp.GradScaler` (release notes of 2.3)."""
AMP_CUSTOM: Version = (2, 4)
"""`torch.amp.custom_fwd` and `custom_bwd` (#126531)."""
SDPA_KERNEL: Version = (2, 3)
"""`torch.nn.attention.sdpa_kernel` with a list of backends (release notes of 2.3)."""
TOTAL_NORM: Version = (2, 6)
"""`torch.nn.utils.get_total_norm` (release notes of 2.6)."""
MODULE_COMPILE: Version = (2, 2)
"""`torch.nn.Module.compile`."""
MARK_STEP: Version = (2, 2)
"""`torch.compiler.cudagraph_mark_step_begin`; 2.1 has it in `torch._inductor` only, as far as is known."""
NO_REENTRY: Version = (1, 11)
"""`use_reentrant` of `torch.utils.checkpoint.checkpoint` (release notes of 1.11)."""
NO_REENTRY_SEQUENTIAL: Version = (2, 1)
"""The same of `checkpoint_sequential`."""
IS_CAUSAL: Version = (2, 1)
"""`is_causal` of transformer encoders and decoders."""
FUSED: dict[str, Version] = {
    "torch.optim.Adam": (2, 0),
    "torch.optim.AdamW": (2, 0),
    "torch.optim.SGD": (2, 3),
}
"""Optimizers with `fused=True` on CUDA devices: release notes of 2.0 (Adam) and 2.3 (SGD, #94791)."""
FUSED_LATER: dict[str, Version] = {"torch.optim.Adagrad": (2, 12)}
"""The same, for the optimizers that have had it for a short time (release notes of 2.12)."""
FUSED_BEFORE_MOVE: Version = (2, 4)
"""The same for parameters that are still on the CPU when the optimizer is made (release notes of 2.4)."""
FUSED_ON_APPLE: Version = (2, 5)
"""The same for parameters on GPUs of Apple (#127242 and #129350, which came after the branch of 2.4)."""
CAPTURABLE: dict[str, Version] = {
    "torch.optim.Adam": (1, 12),
    "torch.optim.AdamW": (1, 12),
    "torch.optim.NAdam": (2, 3),
    "torch.optim.RAdam": (2, 3),
    "torch.optim.ASGD": (2, 3),
    "torch.optim.Adadelta": (2, 3),
    "torch.optim.Adamax": (2, 3),
    "torch.optim.RMSprop": (2, 3),
    "torch.optim.Rprop": (2, 3),
}
"""Optimizers with `capturable=True`: release notes of 1.12 (Adam) and of 2.2 and 2.3 (the others)."""
UNCHECKED: dict[str, Version] = {
    "torch.linalg.inv_ex": (1, 9),
    "torch.linalg.cholesky_ex": (1, 9),
    "torch.linalg.lu_factor_ex": (1, 11),
    "torch.linalg.ldl_factor_ex": (1, 12),
    "torch.linalg.solve_ex": (1, 13),
}
"""Decompositions that do not check: the first releases whose documentation lists them."""
