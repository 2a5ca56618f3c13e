"""A run saved to a file, from which the next command continues without a replay. It is only a cache.

Whoever can write such a file can have code run by whoever reads it. So checkpoints lie in a directory that only
their user can write, never beside the state file, which may have come from somebody else.

The callbacks in the loop and on the network are nested functions, which pickle cannot write by name. They are
written as the position of their code in the source, with the contents of their cells. That works only with
exactly the same source, so a digest of the source is part of the header.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

from backends import simulator
from backends.garbage_collection import without_collection
from backends.simulator.simulation import Simulation
from recovery import model

Header = Mapping[str, Any]
_OTHERS_MAY_WRITE = 0o022
MOST_CHECKPOINTS = 8
"""The newest checkpoints; older ones are deleted."""
DEEP = 20_000
"""Recursion limit: the objects of a run form long chains."""


_BY_PLACE = frozenset((CellType, FunctionType))


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if type(value) not in _BY_PLACE:  # millions of objects of a large run
            return NotImplemented
        if isinstance(value, CellType):
            return _cell, (), value.cell_contents, None, None, _fill
        if isinstance(value, FunctionType) and "<" in value.__qualname__:
            code = value.__code__
            place = (value.__module__, code.co_qualname, code.co_firstlineno)
            return _function, (place, value.__defaults__, value.__kwdefaults__, value.__closure__ or ())
        return NotImplemented


def _cell() -> CellType:
    return CellType()


def _fill(cell: CellType, contents: Any) -> None:
    cell.cell_contents = contents


def _function(
    place: tuple[str, str, int],
    defaults: tuple[Any, ...] | None,
    keywords: dict[str, Any] | None,
    cells: tuple[CellType, ...],
) -> FunctionType:
    module, name, line = place
    names = import_module(module).__dict__
    made = FunctionType(_codes(module)[name, line], names, None, defaults, cells)
    made.__kwdefaults__ = keywords
    return made


@cache
def _codes(module: str) -> dict[tuple[str, int], CodeType]:
    """The code of every function of the module, nested ones included, by qualified name and line."""
    found: dict[tuple[str, int], CodeType] = {}
    waiting: list[Any] = [
        value
        for value in sys.modules[module].__dict__.values()
        if getattr(value, "__module__", None) == module
    ]
    while waiting:
        value = waiting.pop()
        if isinstance(value, type):
            waiting += [getattr(member, "__func__", member) for member in value.__dict__.values()]
            waiting += [member.fget for member in value.__dict__.values() if isinstance(member, property)]
        code = value if isinstance(value, CodeType) else getattr(value, "__code__", None)
        if isinstance(code, CodeType):
            found[code.co_qualname, code.co_firstlineno] = code
            waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return found


@cache
def _source() -> str:
    """A digest of all source files that a run depends on."""
    digest = hashlib.sha256(sys.version.encode())
    for root in (Path(simulator.__path__[0]), Path(model.__file__).parent):
        for path in sorted(root.rglob("*.py")):
            digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def place(state: Path) -> Path | None:
    """The checkpoint of the run whose state is in ``state``; None where this user has no directory for it."""
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        directory = (base if base.is_absolute() else Path.home() / ".local/state") / "ktriage" / "checkpoints"
        return directory / hashlib.sha256(os.fsencode(state.resolve())).hexdigest()
    except (OSError, RuntimeError):  # no home, or links in a circle
        return None


def write(path: Path, header: Header, simulation: Simulation) -> None:
    """Write the run completely, or leave no file."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _own(path.parent):
            return
        content = pickled(simulation)
        head = json.dumps({**header, "source": _source()}, sort_keys=True).encode() + b"\n"
        _replace(path, head + content)
    except (OSError, pickle.PicklingError, RecursionError, TypeError, AttributeError, ValueError):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def pickled(run: object) -> bytes:
    """A run, with whatever shares objects with it, for :func:`unpickled`. What is pickled goes on as before.

    Raises PicklingError, RecursionError, TypeError, AttributeError or ValueError if it cannot be pickled.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, DEEP))
    try:
        buffer = io.BytesIO()
        with without_collection():
            _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(run)
        return buffer.getvalue()
    finally:
        sys.setrecursionlimit(limit)


def unpickled(content: bytes) -> Any:
    """A copy of the run that this process has pickled. It goes on as the original does."""
    with without_collection():
        return pickle.loads(content)  # noqa: S301  # bytes that this process has made


def _replace(path: Path, content: bytes) -> None:
    """Replace the file completely or not at all, and leave no temporary file. Raises OSError."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".checkpoint-", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            Path(file.name).replace(path)
        except OSError:
            Path(file.name).unlink(missing_ok=True)
            raise


def delete_old(directory: Path) -> None:
    """Keep the newest checkpoints in ``directory``."""
    with suppress(OSError):
        newest = sorted(directory.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in newest[MOST_CHECKPOINTS:]:
            path.unlink(missing_ok=True)


def _own(directory: Path) -> bool:
    """Whether only this user can write there. Raises OSError."""
    status = directory.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_MAY_WRITE


def header(path: Path) -> Header | None:
    """The header of the checkpoint; None if there is none, if it is of other source, or if another user could have
    written it.
    """
    try:
        with path.open("rb") as file:
            if not _own(path.parent) or os.fstat(file.fileno()).st_uid != os.geteuid():
                return None  # unpickling it would run its owner's code
            found = json.loads(file.readline())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("source") == _source() else None


def load(path: Path) -> Simulation | None:
    """The run; None if the file is not a complete checkpoint."""
    try:
        with path.open("rb") as file, without_collection():
            file.readline()
            found = pickle.load(file)  # noqa: S301  # our own file: of this user, and of this very source
    except Exception:  # a damaged file can raise anything; the run is then replayed
        return None
    return found if isinstance(found, Simulation) else None
