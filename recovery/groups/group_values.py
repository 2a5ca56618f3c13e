"""Consumer groups and their committed offsets, as coordinators describe them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from recovery.model import NO_EPOCH


class GroupKind(StrEnum):
    """Which protocol a group uses (ListGroups v5, KIP-848, KIP-932, KIP-1071)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    OTHER = "other"


EMPTY_STATES = frozenset({"empty", "dead"})
"""States without members, in lower case: classic groups and the newer protocols spell them differently."""


class ConsumerGroup(NamedTuple):
    """A group as its coordinator lists it. ``protocol_type`` is the classic protocol's: "consumer", "connect", or
    "" for offsets that a client without group membership committed.
    """

    name: str
    coordinator: int
    kind: GroupKind
    protocol_type: str
    state: str

    @property
    def empty(self) -> bool:
        """Whether it has no members; only then does Kafka let another client commit offsets for it."""
        return self.state.lower() in EMPTY_STATES


class GroupMember(NamedTuple):
    """A member: what its client calls itself, and the host that it is connected from."""

    client_id: str
    host: str


class GroupMembers(NamedTuple):
    """The members of a group, and the assignor that it uses ("" unknown)."""

    members: tuple[GroupMember, ...]
    assignor: str


class CommittedOffset(NamedTuple):
    """A committed offset: the offset that is read next. ``epoch`` is that of the last record read (KIP-320),
    NO_EPOCH where the client committed none. ``pending``: a transaction that is open has committed another offset
    in its place; until that ends, Kafka tells no member where to read on (UNSTABLE_OFFSET_COMMIT).
    """

    offset: int
    epoch: int = NO_EPOCH
    metadata: str = ""
    pending: bool = False


class GuessedUse(StrEnum):
    """What a group seems to belong to. Kafka does not tell: names and assignors do."""

    STREAMS = "Kafka Streams"
    CONNECT = "Kafka Connect"


def guessed_use(group: ConsumerGroup, assignor: str = "", topics: Sequence[str] = ()) -> GuessedUse | None:
    """Streams: its assignor, or internal topics of the group's name. Connect: its protocol, or "connect-NAME",
    which is what the group of a sink connector is called.
    """
    if group.kind is GroupKind.STREAMS or assignor == "stream":
        return GuessedUse.STREAMS
    if group.protocol_type == "connect" or group.name.startswith("connect-"):
        return GuessedUse.CONNECT
    own = f"{group.name}-"
    internal = (t for t in topics if t.startswith(own) and t.endswith(("-changelog", "-repartition")))
    return GuessedUse.STREAMS if any(internal) else None
