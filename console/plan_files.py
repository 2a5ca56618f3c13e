"""Plan files: reading them and the recovery tool's input files (docs/files.md), naming a new one, saving it beside
the journal, and the plan of a controller replacement.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import TypeVar

from backends.garbage_collection import without_collection
from console.errors import InputError
from console.journal.change_kinds import REPLACE
from console.journal.journal import cluster_directory, make_directories
from console.journal.state_access import SHARED, records_access
from console.new_files import write_new
from console.paths import cluster_name, records_dir
from console.rescue_files.manifest import INDEX
from recovery.model import TopicPartition
from recovery.plan.read import from_json
from recovery.plan.values import BarePlan, Plan, PlanError
from recovery.plan.write import to_json

T = TypeVar("T")

LIMIT_BYTES = 1 << 30
"""No larger file is read: 200,000 partitions take 0.2 GiB."""
CHUNK_BYTES = 1 << 20
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def read(path: Path) -> Plan | BarePlan:
    """The plan in a file; a BarePlan where it has leaders and nothing else. Raises InputError."""
    return _parsed(path, _text(path), from_json)


def read_regular(path: Path, given_up: Callable[[], bool]) -> Plan | BarePlan:
    """As :func:`read`, of a regular file only: a mistyped name must not open a device, or a pipe that nobody
    writes to. Ends soon once ``given_up``. Raises InputError.
    """
    return _parsed(path, _text(path, _open_regular, given_up), from_json)


def read_targets(path: Path, *, leaders_refused: bool = False) -> tuple[TopicPartition, ...]:
    """The partitions that an input file of the recovery tool names. Raises InputError.

    ``leaders_refused``: a file that names designated leaders is refused.
    """
    from recovery.plan.target_partitions import targets  # noqa: PLC0415  # PyYAML is loaded for such a file only

    return _parsed(path, _text(path), lambda text: targets(text, leaders_refused=leaders_refused))


def _parsed(path: Path, text: str, parse: Callable[[str], T]) -> T:
    try:
        with without_collection():
            return parse(text)
    except PlanError as error:
        raise InputError(f"{path}: {error}") from None


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _open_regular(path: Path) -> int:
    """Raises InputError and OSError."""
    kind = path.stat().st_mode  # before it is opened, which alone can do something to a device
    if stat.S_ISREG(kind):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISREG(kind):
            return descriptor
        os.close(descriptor)
    what = next((name for holds, name in _KINDS if holds(kind)), "something else")
    raise InputError(f"{path}: {what}, not a plan file")


def _text(
    path: Path, open_it: Callable[[Path], int] = _open, given_up: Callable[[], bool] = lambda: False
) -> str:
    try:
        return _bytes(path, open_it(path), given_up).decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _bytes(path: Path, descriptor: int, given_up: Callable[[], bool]) -> bytearray:
    """All that is in it. Raises InputError where that is more than any plan, or it was given up; and OSError."""
    data = bytearray()
    with open(descriptor, "rb", buffering=0) as file:
        size = os.fstat(descriptor).st_size
        while size <= LIMIT_BYTES and (chunk := file.read(CHUNK_BYTES)):
            if (nul := chunk.find(0)) >= 0:  # a binary file: refused before it fills the memory
                raise InputError(f"{path}: not text (byte {len(data) + nul} is NUL)")
            data += chunk
            size = max(size, len(data))
            if given_up():
                raise InputError(f"{path}: reading was given up")
    if size > LIMIT_BYTES:
        raise InputError(f"{path}: larger than {LIMIT_BYTES >> 20:,} MiB, which no plan is")
    return data


def default_name(plan: Plan) -> str:
    """A name for the plan's file: cluster, time of making, and the start of its id."""
    header = plan.header
    made = header.made_at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    parts = ("ktriage-plan", _plain(header.cluster_id), made, _plain(header.plan_id)[:8])
    return f"{'-'.join(part for part in parts if part)}.json"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:40]


OTHER_PLACE = "--state-dir or XDG_STATE_HOME names another place for the journal and the plans"


def save_plan(plan: Plan) -> Path:
    """Writes a plan of elections; returns where. Raises InputError."""
    path: Path = plans_directory(plan.header.cluster_id) / default_name(plan)
    write_new(path, to_json(plan))
    share_plan(path)
    return path


def share_plan(path: Path) -> None:
    """Lets everybody who may use the state directory read a plan that is kept there: they may have to resume it."""
    access = records_access()
    if access == SHARED:
        path.chmod(access.file_mode)


def plans_directory(cluster_id: str) -> Path:
    """Where the plans of a cluster are kept; made where it is not there. Raises InputError."""
    return _made(cluster_directory(cluster_id) / "plans")


def rescue_directory(plan: Plan) -> Path:
    """Where the console rescues what a plan's elections cut off: the same for the same plan, so that a later run
    continues it.

    Raises InputError.
    """
    header = plan.header
    made = header.made_at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    return _made(_rescues(header.cluster_id)) / f"{made}-{cluster_name(header.plan_id)[:8]}"


def newest_rescue(cluster_id: str) -> Path | None:
    """The rescue of that cluster that was begun last, None if the state directory has none."""
    found = [path.parent for path in _rescues(cluster_id).glob(f"*/{INDEX}")]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def _rescues(cluster_id: str) -> Path:
    return cluster_directory(cluster_id) / "rescues"


def _made(directory: Path) -> Path:
    try:
        make_directories(directory, records_access())
    except OSError as error:
        raise InputError(
            f"{directory}: cannot be made: {error.strerror}; nothing was sent. {OTHER_PLACE}"
        ) from None
    return directory


_START = 300


def is_replacement_file(file: Path) -> bool:
    """Whether a file is a replacement's plan; False for a file that cannot be read."""
    from recovery.membership.replacement_file import is_replacement  # noqa: PLC0415  # few need it

    with contextlib.suppress(OSError, UnicodeDecodeError), file.open(encoding="utf-8") as text:
        return is_replacement(text.read(_START))
    return False


def any_replacement() -> bool:
    """Whether any journal in the state directory tells of a replacement, done or not."""
    needle = f'"{REPLACE}"'.encode()
    with contextlib.suppress(OSError):
        return any(needle in path.read_bytes() for path in records_dir().glob("*/*.jsonl"))
    return False
