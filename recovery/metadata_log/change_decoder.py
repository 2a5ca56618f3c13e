"""Decodes the most frequent record of a busy metadata log, a PartitionChangeRecord with few fields, in one step."""

from __future__ import annotations

from functools import cache
from struct import Struct, error
from typing import Any

from recovery.controller.registration import PartitionChange
from recovery.metadata_log.record_schemas import UNCHANGED_LEADER

_BROKERS = {0: "isr", 2: "replicas", 3: "removing", 4: "adding", 6: "elr", 7: "last_known_elr"}
_LEADER = 1
_ELR_SINCE = 2
_ONE_BYTE = 128
"""A varint below it is one byte."""
_INT = Struct(">i")


def decode_small_change(data: bytes, at: int, version: int) -> PartitionChange | None:
    """The change in ``data`` from ``at`` on, where the tagged fields begin. None if :mod:`record_codec` has to read
    it: another field, a null, a long list, anything unexpected.
    """
    leader: int | None = None
    found: dict[str, Any] = {}
    last = -1
    try:
        count, at = data[at], at + 1
        for _ in range(count):
            tag, size = data[at], data[at + 1]
            at += 2
            if tag <= last or size >= _ONE_BYTE:
                return None
            if tag == _LEADER and size == _INT.size:
                (leader,) = _INT.unpack_from(data, at)
            else:
                brokers = data[at] - 1
                if brokers < 0 or size != 1 + brokers * _INT.size or (tag > 4 and version < _ELR_SINCE):
                    return None
                found[_BROKERS[tag]] = _ints(brokers).unpack_from(data, at + 1)
            at, last = at + size, tag
    except (IndexError, KeyError, error):
        return None
    if at != len(data) or leader == UNCHANGED_LEADER:
        return None
    return PartitionChange(leader=leader, **found)


@cache
def _ints(count: int) -> Struct:
    return Struct(f">{count}i")
