"""A broker, described once for pane 8 and ``status``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from console.reading.cluster_reading import ClusterReading
from recovery.advice import FirstStep
from recovery.broker_load import BrokerLoad
from recovery.cluster_health import no_answer
from recovery.model import Unknown
from recovery.wording.quantity_text import lasting, lasting_at_least, printable
from widgets.fields import Field
from widgets.text import Tone


class BrokerHealth(StrEnum):
    """How a broker fares, the worst first."""

    FENCED = "FENCED"
    SILENT = "no answer"
    DISK_FAILED = "disk FAILED"
    OUT_OF_SYNC = "out of sync"
    UP = "up"


class BrokerRow(NamedTuple):
    """``fenced`` None: the cluster does not tell. ``problem``: why it did not answer; None: it did, or was not
    asked. ``asked``: it was asked at all. ``failed_dirs``: so many log dirs have failed, None: not known.
    ``fenced_s``: seconds since it was fenced, at least so long where not ``exact``. ``answered_s``: seconds since
    it answered this console last, None: it never did.
    """

    id: int
    address: str
    rack: str | None
    fenced: bool | None
    problem: Unknown | None
    asked: bool
    failed_dirs: int | None
    load: BrokerLoad
    fenced_s: float | None = None
    exact: bool = False
    answered_s: float | None = None
    not_first: bool | None = False
    """It is not to be started before the first step is done; None: that is still being read."""

    @property
    def waiting(self) -> int:
        """So many offline partitions may get a leader when it returns; of a broker that is there, none."""
        return self.load.waiting if self.fenced or self.problem is not None else 0

    @property
    def state(self) -> BrokerHealth:
        if self.fenced:
            return BrokerHealth.FENCED
        if self.problem is not None:
            return BrokerHealth.SILENT
        if self.failed_dirs:
            return BrokerHealth.DISK_FAILED
        return BrokerHealth.UP if self.load.in_isr == self.load.replicas else BrokerHealth.OUT_OF_SYNC


def broker_rows(
    reading: ClusterReading, loads: Mapping[int, BrokerLoad], steps: Sequence[FirstStep] | None
) -> tuple[BrokerRow, ...]:
    """The brokers that are listed, and those that have replicas and are not; worst first. ``steps``: all that is to
    be done first; None: the first look is not over.
    """
    listed = {broker.id: broker for broker in reading.cluster.brokers}
    contacts = {contact.broker: contact for contact in reading.contacts}
    failed = Counter(one.broker for one in reading.failed_dirs())
    later = {broker for step in steps or () for broker in step.advice.holds_back}
    rows = []
    for broker in {**listed, **loads}:
        known, contact, dirs = listed.get(broker), contacts.get(broker), reading.log_dirs.get(broker)
        address = "" if contact is None else contact.address
        unknown = not failed[broker] and (dirs is None or isinstance(dirs, Unknown))
        rows.append(
            BrokerRow(
                broker,
                address if known is None else f"{known.host}:{known.port}",
                None if known is None else known.rack,
                None if known is None else known.fenced,
                no_answer(broker, reading.problems, reading.log_dirs),
                contact is not None or dirs is not None,
                None if unknown else failed[broker],
                loads.get(broker, BrokerLoad()),
                not_first=None if steps is None else broker in later,
            )
        )
    return tuple(sorted(rows, key=lambda row: (_RANK[row.state], row.id)))


TONES = {
    BrokerHealth.FENCED: Tone.BAD,
    BrokerHealth.SILENT: Tone.BAD,
    BrokerHealth.DISK_FAILED: Tone.BAD,
    BrokerHealth.OUT_OF_SYNC: Tone.WARN,
    BrokerHealth.UP: Tone.GOOD,
}
_RANK = {state: number for number, state in enumerate(BrokerHealth)}


def fenced_for(row: BrokerRow) -> str:
    return "" if row.fenced_s is None else lasting_at_least(row.fenced_s, exact=row.exact)


def in_isr(row: BrokerRow) -> str:
    return f"{row.load.in_isr:,} of {row.load.replicas:,}"


def _answered(row: BrokerRow) -> str:
    if row.answered_s is None:
        return "not asked" if not row.asked else "never"
    return "now" if row.problem is None else f"{lasting(row.answered_s)} ago"


def _answered_tone(row: BrokerRow) -> Tone:
    return Tone.WARN if row.problem is not None else Tone.PLAIN if row.asked else Tone.DIM


def _from_here(row: BrokerRow) -> str:
    if row.problem is None:
        return "answers" if row.asked else "not asked"
    return printable(str(row.problem))


_NOT_FIRST = {None: ", still reading", False: "", True: ", but not first"}

BROKER: tuple[Field[BrokerRow], ...] = (
    Field("id", "BROKER", lambda r: r.id, lambda r: str(r.id), Tone.STRONG, right=True),
    Field(
        "state",
        "STATE",
        lambda r: r.state.value,
        tone=lambda r: TONES[r.state],
        sort=lambda r: _RANK[r.state],
    ),
    Field(
        "fencedSeconds",
        "FENCED FOR",
        lambda r: r.fenced_s,
        fenced_for,
        priority=3,
        right=True,
        printed=False,
    ),
    Field(
        "answeredSeconds",
        "ANSWERED",
        lambda r: r.answered_s,
        _answered,
        _answered_tone,
        priority=2,
        printed=False,
    ),
    Field(
        "inIsr",
        "IN THE ISR",
        lambda r: r.load.in_isr,
        in_isr,
        lambda r: Tone.PLAIN if r.load.in_isr == r.load.replicas else Tone.WARN,
        sort=lambda r: r.load.replicas - r.load.in_isr,
        right=True,
    ),
    Field(
        "waiting",
        "WAIT FOR IT",
        lambda r: r.waiting,
        lambda r: f"{r.waiting:,}{_NOT_FIRST[r.not_first]}" if r.waiting else "",
        Tone.BAD,
        right=True,
    ),
    Field("led", "LEADS", lambda r: r.load.led, priority=4, right=True, printed=False),
    Field("rack", "RACK", lambda r: r.rack, lambda r: printable(r.rack or ""), priority=5),
    Field(
        "failedDirs",
        "LOG DIRS",
        lambda r: r.failed_dirs,
        lambda r: "?" if r.failed_dirs is None else f"{r.failed_dirs:,} failed",
        lambda r: Tone.BAD if r.failed_dirs else Tone.PLAIN,
        priority=6,
    ),
    Field(
        "address",
        "HOST",
        lambda r: r.address,
        lambda r: printable(r.address),
        width=16,
        priority=1,
        flex=True,
        below=True,
    ),
    Field("problem", "FROM HERE", _from_here, below=True, screen=False),
)
