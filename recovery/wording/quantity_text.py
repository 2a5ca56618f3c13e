"""Numbers, ids, sizes, times and durations in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

_KIB = 1024


def printable(text: str) -> str:
    """One line without control characters: what a broker sends must not move the cursor."""
    return "".join(c if c.isprintable() else " " for c in text)


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 partition``, ``3,000 partitions``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def ids(brokers: Iterable[int]) -> str:
    """Broker ids as Kafka's tools print them: ``1,2,3``; "-" for nobody."""
    return ",".join(str(broker) for broker in brokers) or "-"


def either(choices: Sequence[object]) -> str:
    """``1``, ``1 or 2``, ``1, 2 or 3``."""
    return _joined(choices, "or")


def both(brokers: Sequence[object]) -> str:
    """``1``, ``1 and 2``, ``1, 2 and 3``."""
    return _joined(brokers, "and")


def brokers_are(brokers: Iterable[int], what: str) -> str:
    """``broker 1 is up``, ``brokers 1 and 2 are up``, by id; ``what`` may speak of ``it``."""
    ids = sorted(brokers)
    if len(ids) == 1:
        return f"broker {ids[0]} is {what}"
    return f"brokers {both(ids)} are {what.replace('it is', 'they are')}"


def brokers_text(brokers: Sequence[int]) -> str:
    """``broker 1``, ``brokers 1 and 2``."""
    return f"broker{'s' if len(brokers) > 1 else ''} {both(brokers)}"


def _joined(items: Sequence[object], word: str) -> str:
    names = [str(item) for item in items]
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def some_of(names: Sequence[object], shown: int = 5) -> str:
    """``a, b, c, d, e and 7 more``."""
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return ", ".join(str(name) for name in names[:shown]) + more


def and_more(count: int) -> str:
    """Behind the first of ``count`` things: `` (and 7 more)``; "" where it is the only one."""
    return f" (and {count - 1:,} more)" if count > 1 else ""


def more(left: int, rest: str = "", indent: str = "", *, noun: str = "") -> Iterator[str]:
    """The line that says how many rows, of that ``noun``, are left out, and where the ``rest`` is; nothing where
    none is.
    """
    if left > 0:
        yield f"{indent}… and {counted(left, f'more {noun}') if noun else f'{left:,} more'}{rest}"


def offset(value: int) -> str:
    """An offset with its thousands apart; "?" where it is not known."""
    return f"{value:,}" if value >= 0 else "?"


_SIMULATED_MS = 365 * 24 * 3600 * 1000
"""Before 1971: the time of a simulated cluster, which begins at 0."""


def simulated_time(ms: int) -> str:
    """``T+15.5 s`` for a time of a simulated cluster; "" for a real one."""
    return f"T+{ms / 1000:g} s" if 0 <= ms < _SIMULATED_MS else ""


def utc_text(ms: int) -> str:
    """In UTC, to the millisecond."""
    try:
        moment = datetime.fromtimestamp(ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"time {ms}"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ms % 1000:03d}"


def time_text(time_ms: int) -> str:
    """In UTC, to the millisecond; for a simulated cluster, in seconds since its start."""
    return simulated_time(time_ms) or utc_text(time_ms)


def human_bytes(size: int, unknown: str = "?") -> str:
    """Bytes in KiB, MiB …; ``unknown`` where the size is below zero."""
    if size < 0:
        return unknown
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if round(amount, 1) < _KIB:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= _KIB
    return f"{amount:,.1f} PiB"


def lasting(seconds: float) -> str:
    """A duration, coarse, so that a line that shows it seldom changes."""
    if seconds < 60:
        return "<1 min"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02}"
    return f"{hours // 24} days"


def lasting_at_least(seconds: float, *, exact: bool) -> str:
    """As :func:`lasting`, ``≥`` where it may have begun earlier; "?": of less than a minute that says nothing."""
    if exact:
        return lasting(seconds)
    return "?" if seconds < 60 else f"≥{lasting(seconds)}"


def exact_age(seconds: float) -> str:
    """A duration that has ended: to the second below an hour, to 10 ms below ten seconds."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    return f"{seconds:,.0f} s" if seconds < 3600 else lasting(seconds)


def age(seconds: float) -> str:
    """An age: in seconds below one minute."""
    return f"{int(seconds)} s" if seconds < 60 else lasting(seconds)
