"""Functions that run in processes or threads: the calls that these make."""

from __future__ import annotations

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.values import INT, Mapping, Name, Sequence, Value

_SPAWNS = frozenset(
    {"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes", "torch.multiprocessing.spawn.spawn"}
)
_RUNS_TARGET = frozenset(
    {"multiprocessing.Process", "torch.multiprocessing.Process", "multiprocessing.process.Process", "threading.Thread"}
)


def started(callee: Value, arguments: Arguments) -> tuple[Value, Arguments] | None:
    """The function that a call starts in a process or thread, with its arguments; None for other calls.

    `spawn(f, args=(model,))` calls `f(0, model)`, and so on for each process. `Process(target=f, args=(model,))` calls
    `f(model)`.
    """
    if not isinstance(callee, Name) or arguments.unpacked:
        return None
    if callee.name in _SPAWNS:
        function, given, named = arguments.get("fn", 0), arguments.get("args", 1), None
        before: tuple[Value, ...] = (INT,)
    elif callee.name in _RUNS_TARGET:
        function, given, named = (arguments.keyword(name) for name in ("target", "args", "kwargs"))
        before = ()
    else:
        return None
    positional = () if given is None else given.items if isinstance(given, Sequence) else None
    keywords = () if named is None else named.items if isinstance(named, Mapping) else None
    if function is None or positional is None or keywords is None:
        return None
    return function, Arguments((*before, *positional), tuple(keywords))
