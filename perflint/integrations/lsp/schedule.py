"""When documents are checked: after a pause in typing, the latest text only, and one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

LONG_PAUSE = 0.5
"""Seconds without a change after which the other open documents are checked, which the change may concern."""
REST = 1.0
"""Seconds without work after which memory is freed."""


class Schedule:
    """Runs checks of documents by the time when each is due."""

    def __init__(self, check: Callable[[str], Awaitable[None]], rest: Callable[[], Awaitable[None]]) -> None:
        self._check = check
        self._rest = rest
        self._due: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()

    def ask(self, uri: str, pause: float) -> None:
        """Check a document after a pause; an earlier wish for it is forgotten."""
        self._due[uri] = asyncio.get_running_loop().time() + pause
        self._wake.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def drop(self, uri: str) -> None:
        """Forget the wish to check a document."""
        self._due.pop(uri, None)

    def is_due(self, uri: str) -> bool:
        """True if a document waits for its check."""
        return uri in self._due

    def stop(self) -> None:
        """Check nothing any more."""
        self._due.clear()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        """Check what is due, until there is nothing left to do; then rest once."""
        has_rested = False
        while not has_rested or self._due:
            self._wake.clear()
            wait = REST
            if self._due:
                uri = min(self._due, key=self._due.__getitem__)
                wait = self._due[uri] - asyncio.get_running_loop().time()
                if wait <= 0:
                    del self._due[uri]
                    await self._check(uri)
                    has_rested = False
                    continue
            try:
                await asyncio.wait_for(self._wake.wait(), wait)
            except TimeoutError:
                if not self._due:
                    await self._rest()
                    has_rested = True
