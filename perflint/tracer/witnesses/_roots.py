"""The modules that the program called outside of other modules, and the parameters that optimizers read."""

from __future__ import annotations

from typing import Any

from perflint.tracer.identity import ByIdentity

LIMIT = 64


class Roots:
    """Some modules, as long as they live, with the identities of their parameters that require gradients."""

    def __init__(self) -> None:
        self._modules: ByIdentity[frozenset[int]] = ByIdentity()
        self._read: set[int] = set()
        self._is_any_read = False

    def add(self, module: Any) -> frozenset[int]:
        """A module was called; gives its parameters."""
        known = self._modules.get(module)
        if known is None:
            known = frozenset(id(each) for each in module.parameters() if each.requires_grad)
            if len(self._modules) < LIMIT:
                self._modules[module] = known
        return known

    def read(self, parameters: set[int]) -> None:
        """An optimizer reads the gradients of some parameters."""
        self._read |= parameters
        self._is_any_read = self._is_any_read or any(each & parameters for each in self._modules.values())

    def is_read(self, parameters: frozenset[int]) -> bool | None:
        """True if an optimizer reads the gradients of any of some parameters.

        None if none is known to read any of those that were called: some libraries give it copies.
        """
        if parameters & self._read:
            return True
        return False if self._is_any_read else None

    def all(self) -> list[Any]:
        """The modules."""
        return list(self._modules)

    def clear(self) -> None:
        """Forget all."""
        self._modules.clear()
        self._read.clear()
        self._is_any_read = False


roots = Roots()
"""Those of this process: one trace runs at a time."""
