"""Streams and events of a GPU on which everything is done at once."""

from __future__ import annotations

import time
from contextlib import ExitStack, nullcontext
from typing import Any

from perflint.tracer.simulation.devices import gpu, number


class Event:
    """Stands in for `torch.cuda.Event`; its times are the host's."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._at = 0.0

    def record(self, stream: Any = None) -> None:
        """Pass now."""
        self._at = time.perf_counter()

    def query(self) -> bool:
        """True if it has passed."""
        return True

    def wait(self, stream: Any = None) -> None:
        """Make a stream wait, which there is no need for."""

    def synchronize(self) -> None:
        """Wait on the host; the tracer tells of it."""

    def elapsed_time(self, end: Event) -> float:
        """The milliseconds to another one."""
        return (end._at - self._at) * 1000


class Stream(nullcontext[Any]):
    """Stands in for `torch.cuda.Stream`."""

    cuda_stream = 0
    stream_id = 0
    device_index = number()

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        super().__init__(self)
        self.priority = priority

    @property
    def device(self) -> Any:
        """The one device."""
        return gpu()

    def record_event(self, event: Event | None = None) -> Event:
        """An event that has passed."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Wait on the device."""

    def wait_stream(self, stream: Stream) -> None:
        """Wait on the device."""

    def query(self) -> bool:
        """True if all work is done."""
        return True

    def synchronize(self) -> None:
        """Wait on the host; the tracer tells of it."""

    def is_capturing(self) -> bool:
        """True if a CUDA graph is being recorded."""
        return False


class CurrentStream:
    """Which stream the program has chosen."""

    def __init__(self) -> None:
        self._default = Stream()
        self._current = self._default

    def get(self, device: Any = None) -> Stream:
        """The one that is current."""
        return self._current

    def default(self, device: Any = None) -> Stream:
        """The one that is current at first."""
        return self._default

    def set(self, stream: Stream | None) -> None:
        """Make one current."""
        if stream is not None:
            self._current = stream


class StreamContext(ExitStack):
    """Makes a stream current for a while."""

    current = CurrentStream()

    def __init__(self, stream: Stream | None) -> None:
        super().__init__()
        self.stream = stream

    def __enter__(self) -> StreamContext:
        self.callback(self.current.set, self.current.get())
        self.current.set(self.stream)
        return self


class DeviceContext(nullcontext[None]):
    """Stands in for `torch.cuda.device` and `device_of`: there is only one."""

    def __init__(self, device: Any = None) -> None:
        super().__init__()
