"""Parameters that get gradients: whether an optimizer reads them, and whether they were meant to be frozen."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import Any

from perflint.tracer.optimizer_steps import listen
from perflint.tracer.recording import Where
from perflint.tracer.witnesses._roots import roots
from perflint.tracer.witnesses.base import Witness, size_of

LOOKS = 8
"""Steps of optimizers at which the parameters are looked at: a microsecond for each."""
_MISSPELT = re.compile(r"requires?d?_?grad\w*")


class Gradients(Witness):
    """Looks at the parameters when optimizers step."""

    def start(self) -> None:
        self._undo = ExitStack()
        self._undo.callback(listen(self._guarded(self._stepped)))
        self._looks = 0
        self._with_gradient: dict[int, int] = {}
        """The sizes of the parameters that have got a gradient, by identity."""
        self._all: set[int] = set()
        self._read: set[int] = set()
        """The parameters of the optimizers."""
        self._named: dict[int, str] = {}
        """The misspelt attributes of parameters or of modules around them."""

    def stop(self) -> None:
        self._undo.close()
        here = self._recording.now(None)
        unread = {key: size for key, size in self._with_gradient.items() if key not in self._read}
        # Some libraries give copies of the parameters to the optimizer.
        if len(unread) < len(self._with_gradient):
            detail = f"{len(unread) or len(self._with_gradient)} of {len(self._all)} parameters"
            fact = "gradient.unused" if unread else "gradient.used"
            self.observe(fact, here, bytes=sum((unread or self._with_gradient).values()), detail=detail)
        self._observe_misspelt(here)

    def _observe_misspelt(self, here: Where) -> None:
        found: dict[str, list[str]] = {}
        for name in sorted(set(self._named.values())):
            keys = {key for key, each in self._named.items() if each == name}
            wrong = len(keys & self._with_gradient.keys())
            fact = "gradient.misspelt" if wrong else "gradient.misspelt-frozen"
            found.setdefault(fact, []).append(f"{name}: {wrong} of {len(keys)}")
        for fact, details in found.items():
            self.observe(fact, here, detail="; ".join(details))

    def _stepped(self, optimizer: Any) -> None:
        self._looks += 1
        if self._looks > LOOKS:
            return
        self._read.update(id(each) for group in optimizer.param_groups for each in group["params"])
        roots.read(self._read)
        for root in roots.all():
            for module in root.modules():
                name = _misspelt(vars(module), own=True)
                for parameter in module.parameters(recurse=bool(name)):
                    self._look(parameter, name)

    def _look(self, parameter: Any, name: str) -> None:
        self._all.add(id(parameter))
        if parameter.grad is not None:
            self._with_gradient[id(parameter)] = size_of(parameter)
        if name := name or _misspelt(vars(parameter), own=False):
            self._named[id(parameter)] = name


def _misspelt(attributes: dict[str, Any], own: bool) -> str:
    """The name of an attribute that says `False` and was meant to be `requires_grad`.

    A module has none of that name; `own` says that it counts.
    """
    for name, value in attributes.items():
        if value is False and _MISSPELT.fullmatch(name) and (own or name != "requires_grad"):
            return name
    return ""
