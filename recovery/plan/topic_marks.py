"""Damage that an unclean election may do to a topic in addition to the counted offsets."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from recovery.model import Unknown

INTERNAL_TOPICS = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"}
)


class Mark(StrEnum):
    """Why an offset lost from this topic may be more, or other, than one record."""

    TIERED = "tiered"
    COMPACTED = "compacted"
    TRANSACTIONAL = "transactional"
    INTERNAL = "internal"
    UNKNOWN = "configuration unknown"

    @property
    def meaning(self) -> str:
        """One line for a person."""
        return _MEANING[self]


MAY_BE_COMPACTED = (Mark.COMPACTED, Mark.UNKNOWN)

_MEANING = {
    Mark.TIERED: "older offsets may still be in remote storage; what a truncated log uploaded is no longer read",
    Mark.COMPACTED: (
        "an offset lost can be the only record of its key, or none at all; logs that end alike are compared by"
        " what they still hold"
    ),
    Mark.TRANSACTIONAL: "open transactions can lose their markers: read_committed consumers may stop there",
    Mark.INTERNAL: "Kafka's own state: consumer positions or transactions go back to what the chosen log holds",
    Mark.UNKNOWN: "its configuration could not be read: it may be tiered or compacted",
}


def marks(topic: str, config: Mapping[str, str] | Unknown | None) -> tuple[Mark, ...]:
    """The marks of a topic, given its effective configuration (None: not asked for)."""
    found = [Mark.INTERNAL] if topic in INTERNAL_TOPICS else []
    if topic == "__transaction_state":
        found.append(Mark.TRANSACTIONAL)
    if config is None or isinstance(config, Unknown):
        return (*found, Mark.UNKNOWN)
    if config.get("remote.storage.enable", "false") == "true":
        found.append(Mark.TIERED)
    if "compact" in config.get("cleanup.policy", ""):
        found.append(Mark.COMPACTED)
    return tuple(found)
