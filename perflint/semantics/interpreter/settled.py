"""Devices that are settings of a program.

If one branch moves a tensor to the GPU (`if args.cuda: x = x.cuda()`), the test stands for a setting, whatever it is.
So the tensor is on the device that is set, in both branches. A device that other code assigns (`Config.DEVICE = …`) is
a setting, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from perflint.semantics.interpreter.frame import Frame, Names
from perflint.semantics.lattice import union
from perflint.semantics.values import Const, Device, DeviceValue, Tensor, Unknown, Value

_ON_GPU = (Device.CUDA, Device.CALLER, Device.MODEL)


def by_branches(joined: Names, before: Names, first: Names, second: Names) -> None:
    """Put the tensors that one of two branches has moved to the GPU on the device that is set."""
    for name, value in joined.items():
        one, other = first.get(name), second.get(name)
        if one is not None and other is not None and one is not other:
            was = before.get(name)
            for moved, stays in ((one, other), (other, one)):
                if moved is not was:
                    value = joined[name] = by_setting(moved, stays, value)


def by_returns(returned: Sequence[Value], given: Sequence[Value]) -> Value:
    """The result of a function, which may move only where a setting says so: `return x.cuda() if … else x`.

    `given` are its arguments, which it has not moved itself.
    """
    joined = union(returned)
    for moved in returned if len(returned) > 1 else ():
        if not any(moved is each for each in given):
            for stays in returned:
                joined = by_setting(moved, stays, joined)
    return joined


def by_setting(moved: Value, stays: Value, joined: Value) -> Value:
    """The value of two branches, where the first may be on the GPU and the second not: on the device that is set."""
    if isinstance(moved, Unknown) and moved.moved and moved.near in _ON_GPU:
        is_left = isinstance(stays, Unknown) and not stays.moved
        return Unknown(Device.CALLER, moved=True) if is_left else joined
    if isinstance(moved, Tensor) and moved.device is Device.CUDA and isinstance(joined, Tensor):
        return joined.with_(device=Device.CALLER) if joined.device is Device.UNKNOWN else joined
    return joined


def by_code(frame: Frame, owner: str, name: str, value: Value) -> Value:
    """A variable of a class or module, for code that runs later: the device that is set if other code assigns it."""
    is_text = isinstance(value, Const) and isinstance(value.value, str) and value.value.startswith(("cpu", "cuda"))
    if not is_text and not isinstance(value, DeviceValue):
        return value
    assigns = re.compile(rf"\b{re.escape(owner)}\.{re.escape(name)}\s*=(?!=)")
    return DeviceValue(Device.CALLER) if frame.view.matching(assigns) else value
