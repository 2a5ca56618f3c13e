"""Quick checks for an unfinished controller replacement, without reading whole files."""

from __future__ import annotations

import contextlib
from pathlib import Path

from console.journal.unfinished_entries import REPLACE
from console.paths import records_dir

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
