"""A GPU that is not there: the program runs on the CPU, and its tensors say that they are on a GPU.

Nothing moves. Each storage carries a mark of where it would be (`marks`), which the properties and
methods of tensors answer from (`tensors`, `storages`, `factories`), a dispatch mode takes along from
operator to operator (`dispatch`), and which tells the operators that would keep the host waiting
(`waits`). `cuda`, `streams`, `types`, `recurrent` and `elsewhere` stand in for the rest of torch that
asks for a GPU. It finds where the host would wait and what would be copied, not for how long.
"""

from __future__ import annotations

from collections.abc import Callable

_is_on = False


def is_on() -> bool:
    """True if a GPU is simulated in this process."""
    return _is_on


def start(note: Callable[[str, str], None]) -> None:
    """Simulate one GPU in this process from here on, until it ends. Needs torch.

    `note` is called for each part of the program that runs differently from a GPU, with the difference.
    """
    global _is_on
    if _is_on:
        return
    _is_on = True
    from perflint.tracer.simulation import cuda, dispatch, elsewhere, factories, recurrent, storages, tensors, types
    from perflint.tracer.simulation.marks import replace_everywhere

    replaced = factories.replacements() | cuda.replacements() | types.replacements() | elsewhere.replacements()
    elsewhere.tell_scripts(replaced)
    replace_everywhere(replaced)
    tensors.install()
    storages.install()
    recurrent.install()
    cuda.install()
    elsewhere.install(note)
    dispatch.enter_in_threads()
