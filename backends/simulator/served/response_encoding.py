"""Answers about thousands of partitions, encoded directly to bytes, because kio's writer makes a call per
field.

DescribeTopicPartitionsResponse v0, ListOffsetsResponse v6 to v11, FetchResponse v12 to v18,
GetReplicaLogInfoResponse v0. A test compares the bytes with kio's.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from struct import Struct

from backends.live.codec.primitives import NO_TAGS, compact_array, compact_string, unsigned_varint
from backends.simulator.broker.describe import TopicPartitionsDescribed

_NO_OPERATIONS = -(2**31)
_topic = attrgetter("topic")
_INT = Struct(">i").pack


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of an id in Kafka's form."""
    return base64.urlsafe_b64decode(text + "==")


@lru_cache(maxsize=65_536)
def _ids(numbers: tuple[int, ...]) -> bytes:
    return unsigned_varint(len(numbers) + 1) + b"".join(map(_INT, numbers))


@lru_cache(maxsize=65_536)
def _sets(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    elr: tuple[int, ...] | None,
    last: tuple[int, ...] | None,
    offline: tuple[int, ...],
) -> bytes:
    return b"".join((_ids(replicas), _ids(isr), _ids(elr or ()), _ids(last or ()), _ids(offline), NO_TAGS))


def pack_described(
    page: TopicPartitionsDescribed,
    refused: Iterable[tuple[str, int]],
    operations: Callable[[str], int],
    internal: Iterable[str],
) -> bytes:
    """DescribeTopicPartitionsResponse v0; ``refused`` are topics with their error codes."""
    head = Struct(">hiii").pack
    topics = [
        b"".join(
            (
                Struct(">h").pack(code),
                compact_string(name),
                bytes(16),
                b"\0",
                compact_array(()),
                _INT(_NO_OPERATIONS),
                NO_TAGS,
            )
        )
        for name, code in refused
    ]
    for name, group in groupby(page.states, _topic):
        states = list(group)
        rows = [
            head(0, s.partition, s.leader, s.leader_epoch)
            + _sets(s.replicas, s.isr, s.elr, s.last_known_elr, s.offline_replicas)
            for s in states
        ]
        topics.append(
            b"".join(
                (
                    b"\0\0",
                    compact_string(name),
                    uuid_bytes(states[0].topic_id),
                    b"\1" if name in internal else b"\0",
                    compact_array(rows),
                    _INT(operations(name)),
                    NO_TAGS,
                )
            )
        )
    cursor = b"\xff"
    if page.cursor is not None:
        cursor = b"".join((b"\1", compact_string(page.cursor.topic), _INT(page.cursor.partition), NO_TAGS))
    return b"".join((_INT(0), compact_array(topics), cursor, NO_TAGS))


def topic_array(rows: Sequence[tuple[bytes, Sequence[bytes]]]) -> bytes:
    """An array of topics: (the encoded name or id, the encoded partitions)."""
    return compact_array([b"".join((name, compact_array(partitions), NO_TAGS)) for name, partitions in rows])
