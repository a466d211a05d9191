"""The places in the user's code at which events happen."""

from __future__ import annotations

import hashlib
import linecache
import os
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

from perflint.tracer.events import Place, SourceFile

TEXT_LIMIT = 200
STACK_LIMIT = 8
LINE_LIMIT = 20_000
"""Lines of a file whose digests a trace keeps."""
_PERFLINT = str(Path(__file__).parents[1]) + os.sep
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_MOVES = frozenset({"Module._apply", "Module.to", "Module.cuda"})
_COMPILERS = (f"torch{os.sep}_dynamo{os.sep}convert_frame.py", f"torch{os.sep}_inductor{os.sep}compile_fx.py")


class Owner(Enum):
    """The owner of a file."""

    USER = "user"
    LIBRARY = "library"
    SYSTEM = "system"
    """torch, what its compiler wrote, the standard library, perflint itself, and code without a file."""


@dataclass(frozen=True, slots=True)
class Found:
    """A place, and how it was reached."""

    place: Place
    origin: str
    """As in `Sync.origin`."""


class Locator:
    """Finds the innermost frame of the user's own files.

    Those are all but installed packages, the standard library and torch; with `own`, folders or
    files, they are those below these and no others. Where no frame is the user's, the innermost
    one of an installed package stands in, and without that the innermost of all.
    """

    def __init__(self, root: Path, own: Iterable[Path] = ()) -> None:
        self.root = root.resolve()
        self._own = tuple(str(path.resolve()) for path in own)
        self._owners: dict[str, Owner] = {}
        self._places: dict[tuple[CodeType, int], Place] = {}
        self._files: dict[str, str] = {}

    def owner(self, path: str) -> Owner:
        """The owner of a file, by the name that code objects have for it."""
        known = self._owners.get(path)
        if known is None:
            known = self._owners[path] = self._look(path)
        return known

    def _look(self, path: str) -> Owner:
        if path.startswith(("<", _PERFLINT)):
            return Owner.SYSTEM
        full = os.path.abspath(path)
        if full.startswith(_generated()):
            return Owner.SYSTEM
        if self._own:
            if any(full == own or full.startswith(own.rstrip(os.sep) + os.sep) for own in self._own):
                return Owner.USER
        elif not is_installed(full) and not full.startswith(_standard()):
            return Owner.USER
        return Owner.LIBRARY if is_installed(full) and not _is_torch(full) else Owner.SYSTEM

    def is_outside_torch(self, frame: FrameType) -> bool:
        """True if a frame is of the user's code or of an installed package other than torch."""
        return self.owner(frame.f_code.co_filename) is not Owner.SYSTEM

    def find(self, frame: FrameType | None) -> Found | None:
        """The place of a frame or of the nearest one around it; None without a frame that has a file."""
        origin = ""
        library: FrameType | None = None
        system: FrameType | None = None
        while frame is not None:
            code = frame.f_code
            owner = self.owner(code.co_filename)
            if owner is Owner.USER:
                return Found(self._of(frame), origin)
            if owner is Owner.LIBRARY:
                library = library or frame
            elif not code.co_filename.startswith(("<", _PERFLINT)):
                system = system or frame
                origin = origin or _origin(code)
            frame = frame.f_back
        stand_in = library or system
        return Found(self._of(stand_in), origin) if stand_in else None

    def _of(self, frame: FrameType) -> Place:
        return self.place(frame.f_code, frame.f_lasti, frame.f_lineno)

    def place(self, code: CodeType, instruction: int, line: int | None) -> Place:
        """The place of an instruction, by its offset in bytes."""
        key = (code, instruction)
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = self._place(code, instruction, line or code.co_firstlineno)
        return known

    def _place(self, code: CodeType, instruction: int, line: int) -> Place:
        start, end, column, end_column = next(islice(code.co_positions(), max(instruction, 0) // 2, None), (None,) * 4)
        if start is None or end is None or column is None or end_column is None:
            start, end, column, end_column = line, line, 0, 0
        return self._written(code.co_filename, (start, column, end, end_column), code.co_qualname)

    def line(self, path: str, line: int, function: str) -> Place:
        """A whole line."""
        return self._written(path, (line, 0, line, 0), function)

    def _written(self, path: str, span: tuple[int, int, int, int], function: str) -> Place:
        start, column, end, end_column = span
        lines = [linecache.getline(path, number) for number in range(start, min(end, start + 50) + 1)]
        self._files.setdefault(path, self.name(path))
        return Place(
            self.name(path),
            start,
            _characters(lines[0], column),
            end,
            _characters(lines[-1], end_column),
            function,
            lines[0].strip()[:TEXT_LIMIT],
        )

    def name(self, path: str) -> str:
        """A file below the root with slashes, else its whole path."""
        full = os.path.abspath(path)
        inside = full.startswith(str(self.root).rstrip(os.sep) + os.sep)
        return os.path.relpath(full, self.root).replace(os.sep, "/") if inside else full

    def stack(self, frame: FrameType | None) -> tuple[str, ...]:
        """The frames that are not torch's or the standard library's, innermost first."""
        mine = (frame for frame in _outwards(frame) if self.owner(frame.f_code.co_filename) is not Owner.SYSTEM)
        return tuple(
            f"{self.name(frame.f_code.co_filename)}:{frame.f_lineno} {frame.f_code.co_qualname}"
            for frame in islice(mine, STACK_LIMIT)
        )

    def inner(self, frame: FrameType | None) -> str:
        """`file:line` of the innermost frame that is not perflint's, an installed file from its package on."""
        for inside in _outwards(frame):
            path = inside.f_code.co_filename
            if not path.startswith(_PERFLINT):
                return f"{_short(os.path.abspath(path)) or self.name(path)}:{inside.f_lineno}"
        return ""

    def sources(self) -> tuple[SourceFile, ...]:
        """The files that places were found in, with digests of what they hold now."""
        found = []
        for path, name in sorted(self._files.items(), key=lambda item: item[1]):
            found.append(source_file(name, linecache.getlines(path)))
        return tuple(found)

    def note_file(self, path: str) -> None:
        """Have `sources` name a file too."""
        self._files.setdefault(path, self.name(path))


def source_file(name: str, lines: Sequence[str]) -> SourceFile:
    """The record of a file: digests that identify it and its lines."""
    # linecache ends the last line, and knows one kind of line end.
    texts = [line.rstrip("\r\n") for line in lines]
    whole = _digest("\n".join(texts), 8)
    if len(texts) > LINE_LIMIT:
        return SourceFile(name, whole)
    indents = tuple(len(text) - len(text.lstrip()) for text in texts)
    return SourceFile(name, whole, tuple(_digest(text.strip(), 4) for text in texts), indents)


def _digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _origin(code: CodeType) -> str:
    if code.co_qualname in _MOVES:
        return "module-move"
    return "compile" if code.co_filename.endswith(_COMPILERS) else ""


def _characters(line: str, column: int) -> int:
    """The column from 1 in characters of one from 0 in UTF-8 bytes."""
    if line.isascii():
        return column + 1
    return len(line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore")) + 1


def is_installed(path: str) -> bool:
    """True for a file of an installed package."""
    return any(packages in path for packages in _PACKAGES)


def _is_torch(path: str) -> bool:
    return any(f"{packages}torch{os.sep}" in path for packages in _PACKAGES)


def _short(path: str) -> str:
    """An installed file from its package on; empty for another."""
    for packages in _PACKAGES:
        _, found, rest = path.rpartition(packages)
        if found:
            return rest.replace(os.sep, "/")
    return ""


def _generated() -> str:
    """The beginning of the paths that torch.compile writes its code to."""
    return os.environ.get("TORCHINDUCTOR_CACHE_DIR") or os.path.join(tempfile.gettempdir(), "torchinductor_")


@cache
def _standard() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {os.path.abspath(paths[name]) for name in ("stdlib", "platstdlib")}
    # A frozen or zipped standard library names its files otherwise; os knows one that is a file.
    folders.add(os.path.dirname(os.path.abspath(os.__file__)))
    return tuple(folder + os.sep for folder in folders)
