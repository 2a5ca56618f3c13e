"""A replica's place in Kafka's sets, in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from recovery.model import PartitionState, Standing, Survey, Unknown
from recovery.old_leaders import OldLeader
from recovery.wording.quantity_text import both, ids

_IN_SYNC = ("ISR",)

STANDING_WORDS = {
    Standing.FENCED: "fenced",
    Standing.OFFLINE_REPLICA: "offline for the controller",
    Standing.UNREGISTERED: "not registered",
    Standing.NOT_ASKED: "not asked",
    Standing.ELECTABLE: "electable",
}
"""A replica's standing after "broker 1 is", in the reasons of decisions."""
MADE_AGAIN = "the topic was deleted and created again"


def moving_unknown(why: Unknown) -> str:
    return f"whether a reassignment is in progress is not known ({why})"


def replica_sets(state: PartitionState, broker: int) -> tuple[str, ...]:
    """The sets that the replica is in: ISR, ELR, LastKnownELR."""
    if broker in state.isr and not state.elr and not state.last_known_elr:
        return _IN_SYNC  # nearly all
    sets = (("ISR", state.isr), ("ELR", state.elr or ()), ("LastKnownELR", state.last_known_elr or ()))
    return tuple(name for name, members in sets if broker in members)


OLD_LEADER = "old leader"
"""Of a replica whose broker does not know that it was replaced, in a column of the sets that it is in."""
ACTS_AS_LEADER = "acts as leader"
"""The same, as the answer of that broker."""


def acting_text(old: Sequence[OldLeader]) -> str:
    """They do not know that they were replaced: such as ``broker 1 still acts as leader in epoch 4``."""
    by_epoch: dict[int, list[int]] = {}
    for broker, epoch in old:
        by_epoch.setdefault(epoch, []).append(broker)
    return both(
        tuple(
            f"broker {both(brokers)} still {'acts' if len(brokers) == 1 else 'act'} as leader in epoch {epoch}"
            for epoch, brokers in by_epoch.items()
        )
    )


def still_writes_text(old: Sequence[OldLeader], *, offline: bool) -> str:
    """What becomes of what they take: of a partition that is ``offline``, or has a new leader."""
    one = len(old) == 1
    takes = f"{acting_text(old)} and {'takes' if one else 'take'} writes"
    if offline:
        return f"{takes}, which an election cuts off"
    return f"{takes} that are lost when {'it hears of its' if one else 'they hear of their'} successor"


def min_isr_text(survey: Survey) -> str:
    """Such as ``2``, why it is not known, or ``1 or 2`` where brokers answered differently."""
    values = sorted(set(survey.min_isr_by_broker.values()))
    return " or ".join(map(str, values)) if len(values) > 1 else str(survey.min_isr)


def min_isr_on_brokers(survey: Survey) -> str:
    """As :func:`min_isr_text`, or ``1 on brokers 1 and 3, 2 on broker 2`` where brokers answered differently."""
    by_broker = survey.min_isr_by_broker
    values = sorted(set(by_broker.values()))
    if len(values) < 2:
        return str(survey.min_isr)
    parts = []
    for value in values:
        brokers = tuple(broker for broker, other in by_broker.items() if other == value)
        parts.append(f"{value} on {'broker' if len(brokers) == 1 else 'brokers'} {both(brokers)}")
    return ", ".join(parts)


def elr_text(members: tuple[int, ...] | None) -> str:
    """The members of the ELR or LastKnownELR; None: the ELR is off in this cluster."""
    return "off" if members is None else ids(members)


def disk_text(read_ms: int) -> str:
    """The source of a log that was read from its broker's disk, because the broker did not answer."""
    try:
        moment = f"{datetime.fromtimestamp(read_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        moment = f"time {read_ms}"
    return f"its disk, read {moment}"
