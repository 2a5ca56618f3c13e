"""Copying out of a terminal: by OSC 52, and to a named file for terminals that refuse it."""

from __future__ import annotations

import base64
import os
from pathlib import Path

MOST_BYTES = 70_000
"""Terminals cut longer texts off, or drop them."""


def osc52(text: str) -> str | None:
    """The sequence that puts ``text`` on the clipboard of the terminal, through tmux and screen too.

    None where it is too long.
    """
    encoded = base64.b64encode(text.encode()).decode()
    if len(encoded) > MOST_BYTES:
        return None
    sequence = f"\x1b]52;c;{encoded}\a"
    if os.environ.get("TERM", "").startswith("screen") and "TMUX" not in os.environ:
        # GNU screen hands on what is wrapped, in pieces that it can hold.
        pieces = [sequence[i : i + 200] for i in range(0, len(sequence), 200)]
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return sequence


def keep(text: str, path: Path) -> Path:
    """The same text in a file that is overwritten by the next copy, readable by its owner only. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text + "\n")
    return path
