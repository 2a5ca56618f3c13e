"""What leaders lack that were elected by themselves, or by somebody else, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from recovery.cut_off_logs import CutOffLogs
from recovery.wording.quantity_text import both, counted


def cut_off_lines(every: Sequence[CutOffLogs], up: Collection[int], shown: int) -> Iterator[str]:
    """The largest losses first, ``shown`` of them, and how many others there are. ``up``: the brokers that run."""
    worst = sorted(every, key=lambda one: (-one.offsets, one.tp))
    yield from (cut_off_text(one, up) for one in worst[:shown])
    if worst[shown:]:
        lost = counted(sum(one.offsets for one in worst[shown:]), "offset")
        yield f"{counted(len(worst[shown:]), 'more partition')} lost offsets: {lost}"


def cut_off_text(one: CutOffLogs, up: Collection[int]) -> str:
    """``payments-0: broker 2 was elected, not by this console; 560 offsets of broker 0 are cut off``. A broker that
    is down cuts its log off when it starts.
    """
    down = [broker for broker in one.holders if broker not in up]
    offsets = f"{counted(one.offsets, 'offset')} of {'broker' if len(one.holders) == 1 else 'brokers'}"
    elected = f"{one.tp}: broker {one.leader} was elected, not by this console"
    if len(down) < len(one.holders):
        return f"{elected}; {offsets} {both(one.holders)} are cut off"
    disks = "its disk" if len(down) == 1 else "their disks"
    return f"{elected}; it lacks {offsets} {both(down)}: read {disks} before a start"
