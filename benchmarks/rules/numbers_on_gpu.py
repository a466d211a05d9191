"""Measures on a GPU which arguments of torch's functions wait if a tensor is passed for the number.

    python benchmarks/rules/numbers_on_gpu.py

Runs the calls of `tools/torch_api/numbers.py` on the GPU, each with a number and with a tensor in its place, and counts
the warnings of torch's sync debug mode. Prints the arguments for which a GPU and the table differ, and how many agree.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "tools")]

import torch  # noqa: E402
from torch_api import numbers  # noqa: E402


def waits(member: Any, call: numbers.Call) -> int | None:
    """How often a call waits; None if it raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            member(*call[0], **call[1])
        except numbers.REFUSALS:
            return None
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(each.message) for each in caught)


def measured(member: Any, form: numbers.Form, parameter: numbers.Parameter) -> bool | None:
    """True if a tensor for a number waits; None if no call works."""
    for number, tensor in numbers.calls(form, parameter):
        before = waits(member, number)
        after = None if before is None else waits(member, tensor)
        if before is not None and after is not None:
            return after > before
    return None


def main() -> None:
    torch.set_default_device("cuda")
    same = 0
    for namespace, name, member in numbers.functions():
        known = dict(numbers.arguments(namespace, name, member))
        for form in numbers.forms_of(namespace, name, member):
            for parameter in form:
                found = measured(member, form, parameter) if parameter.is_number else None
                said = any(known[fact] for fact in known if fact.partition("@")[0] == parameter.name)
                if found is not None and found is not said:
                    print(f"{namespace}.{name} {parameter.name}: {'waits' if found else 'does not wait'}")
                same += found is said
    print(f"{same} arguments as in the table")


if __name__ == "__main__":
    main()
