"""A replica's place in Kafka's sets, in words."""

from __future__ import annotations

from datetime import UTC, datetime

from recovery.model import PartitionState, Standing
from recovery.wording.quantity_text import ids

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
