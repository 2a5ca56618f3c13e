"""The bell and the title of a terminal, for somebody who waits and looks elsewhere."""

from __future__ import annotations

from recovery.wording.quantity_text import printable

TITLE_LENGTH = 80


def terminal_signal(message: str) -> str:
    """Rings the bell and sets the title."""
    return f"\a\x1b]2;{printable(message)[:TITLE_LENGTH]}\x1b\\"
