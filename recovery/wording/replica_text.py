"""A replica's place in Kafka's sets, in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from recovery.model import PartitionState, Standing
from recovery.old_leaders import OldLeader
from recovery.wording.quantity_text import both, ids

_IN_SYNC = ("ISR",)

STANDING_WORDS = {
    Standing.FENCED: "fenced",
    Standing.OFFLINE_REPLICA: "offline for the controller",
    Standing.UNREGISTERED: "not registered",
    Standing.ELECTABLE: "electable",
}
"""A replica's standing after "broker 1 is", in the reasons of decisions."""


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
