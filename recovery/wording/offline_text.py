"""For how long partitions have been offline, in words."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from recovery.model import TopicPartition
from recovery.wording.quantity_text import age, printable

_MINUTE = 60
_ROUNDING = 0.001
"""Moments are kept in ms."""
_CLOCKS = "it began in the future by this host's clock: the clocks differ"


def offline_text(
    since: Mapping[TopicPartition, float],
    already: Mapping[TopicPartition, float],
    offline: int,
    now: float,
    when: str = "",
) -> str:
    """The longest outage of ``offline`` partitions, ``now`` in seconds since 1970; "" where none is known.

    ``since``: when each lost its leader. ``already``: of others, when the metadata log began and they had none.
    What lies after ``now`` is not counted: the clocks differ, and nothing is said to have lasted 0 s for that.
    ``when`` is said of ``now`` where that is not the present.
    """
    known = {tp: moment for tp, moment in {**since, **already}.items() if moment <= now + _ROUNDING}
    if not known:
        return f"offline for: not known ({_CLOCKS})" if since or already else ""
    first = min(known, key=lambda tp: (known[tp], tp))
    lasted, name = max(0.0, now - known[first]), printable(str(first))
    if first in already:
        return f"offline for at least {age(lasted)}{when} ({name}): the metadata log begins later"
    unknown = offline - sum(tp in known for tp in since)
    rest = f"; of {unknown:,} it is not known" if unknown else ""
    return f"offline for {age(_rounded_up(lasted))} at the most{when} ({name}){rest}"


def _rounded_up(seconds: float) -> int:
    """To the unit in which it is shown: a limit must not be below what it limits."""
    unit = 1 if seconds < _MINUTE else _MINUTE if seconds < 48 * 60 * _MINUTE else 24 * 60 * _MINUTE
    return ceil(seconds / unit) * unit
