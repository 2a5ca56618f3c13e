"""What became of disks that were given as evidence, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from recovery.disk_evidence import EvidenceUse
from recovery.wording.quantity_text import counted, printable
from recovery.wording.replica_text import disk_text


def evidence_lines(use: EvidenceUse | None) -> Iterator[str]:
    """How many logs count, and which do not and why."""
    if use is None:
        return
    for reading, count in zip(use.readings, use.used, strict=True):
        line = f"{counted(count, 'log')} of broker {reading.broker} {'counts' if count == 1 else 'count'}"
        yield printable(
            f"{line} as answered: {disk_text(reading.read_ms)} ({reading.source}, {reading.host})"
        )
    reasons = Counter((refusal.broker, refusal.reason) for refusal in use.refused)
    for (broker, reason), count in reasons.most_common():
        first = next(one.tp for one in use.refused if (one.broker, one.reason) == (broker, reason))
        more = f" and {count - 1:,} more" if count > 1 else ""
        yield printable(f"evidence refused: {first}{more} of broker {broker}: {reason}")
    if use.unchecked is not None:
        yield printable(f"not checked: whether a broker ran after its disk was read ({use.unchecked})")


def evidence_json(use: EvidenceUse | None) -> dict[str, object] | None:
    """The object "evidence" of docs/output.md."""
    if use is None:
        return None
    return {
        "disks": [
            {
                "broker": reading.broker,
                "file": reading.source,
                "host": reading.host,
                "readAtMs": reading.read_ms,
                "logsUsed": count,
            }
            for reading, count in zip(use.readings, use.used, strict=True)
        ],
        "refused": [
            {"topic": one.tp.topic, "partition": one.tp.partition, "broker": one.broker, "reason": one.reason}
            for one in use.refused
        ],
        "unchecked": use.unchecked,
    }
