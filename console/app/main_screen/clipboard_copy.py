"""A copied text as a file, for terminals that do not let a program write to their clipboard."""

from __future__ import annotations

import os
from pathlib import Path


def save_copy(text: str, path: Path) -> Path:
    """Writes ``text``; the next copy overwrites it, and only its owner can read it. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text + "\n")
    return path
