"""What to do before brokers start whose disks may hold the only copies of acknowledged records."""

from __future__ import annotations

from collections.abc import Sequence

from recovery.wording.quantity_text import either

READ_DISK = "ktriage rescue read --to DIR --from-disk LOG_DIR"
"""The command, with its arguments named: the log dirs are paths of another host."""


def read_before_start(brokers: Sequence[int]) -> str:
    """``before broker 1 or 3 is started, read their disks (COMMAND)``: each truncates its log when it starts."""
    disks = "its disk" if len(brokers) == 1 else "their disks"
    return f"before broker {either(sorted(brokers))} is started, read {disks} ({READ_DISK})"


def cut_off_at_start(brokers: Sequence[int]) -> str:
    """What happens otherwise, as the end of a sentence about the records."""
    return f"cut off when {'it starts' if len(brokers) == 1 else 'they start'}"
