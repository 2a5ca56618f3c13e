"""The quorum's own records in the metadata log (KIP-595, KIP-630, KIP-853): who leads, who votes, by which
kraft.version. They are control records, which no controller replays.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple, TypeAlias

from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from recovery.metadata_log.field_reader import FieldReader, MalformedRecordError
from recovery.metadata_log.field_writer import FieldWriter
from recovery.metadata_log.message_schema import (
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    MessageSchema,
    SchemaField,
    array,
)

_KEY = Struct(">hh")
"""Version, type (org.apache.kafka.common.record.ControlRecordType)."""


class ControlType(IntEnum):
    """The types that a metadata log has, with Kafka's numbers."""

    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class LeaderChange(NamedTuple):
    """The leader of an epoch begins with it."""

    leader: int


class KraftVersion(NamedTuple):
    """The level of kraft.version from here on."""

    level: int


ControlRecord: TypeAlias = LeaderChange | KraftVersion | VoterSet

_MEMBERS = array(MessageSchema(SchemaField("id", INT32)).type)
_LEADER_CHANGE = MessageSchema(
    SchemaField("version", INT16, default=0),
    SchemaField("leader", INT32),
    SchemaField("voters", _MEMBERS),
    SchemaField("granting_voters", _MEMBERS, default=()),
)
_KRAFT_VERSION = MessageSchema(SchemaField("version", INT16, default=0), SchemaField("level", INT16))
_SNAPSHOT_HEADER = MessageSchema(
    SchemaField("version", INT16, default=0), SchemaField("last_time", INT64, default=0)
)
_SNAPSHOT_FOOTER = MessageSchema(SchemaField("version", INT16, default=0))
_ENDPOINT = MessageSchema(
    SchemaField("listener", STRING), SchemaField("host", STRING), SchemaField("port", UINT16)
)
_VERSIONS = MessageSchema(SchemaField("lowest", INT16), SchemaField("highest", INT16))
_VOTER = MessageSchema(
    SchemaField("id", INT32),
    SchemaField("directory_id", UUID),
    SchemaField("endpoints", array(_ENDPOINT.type)),
    SchemaField("kraft_versions", _VERSIONS.type),
)
_VOTERS = MessageSchema(SchemaField("version", INT16, default=0), SchemaField("voters", array(_VOTER.type)))
"""VotersRecord, LeaderChangeMessage, KRaftVersionRecord, SnapshotHeaderRecord and SnapshotFooterRecord of Kafka's
message definitions, version 0.
"""


def decode_control(key: bytes, value: bytes) -> ControlRecord | None:
    """A control record; None for a snapshot's header and footer, and for types that are not known. Raises
    MalformedRecordError.
    """
    if len(key) < _KEY.size:
        raise MalformedRecordError(f"a control record's key of {len(key)} bytes")
    _, kind = _KEY.unpack_from(key)
    reader = FieldReader(value)
    if kind == ControlType.LEADER_CHANGE:
        return LeaderChange(_LEADER_CHANGE.read(reader, 0)["leader"])
    if kind == ControlType.KRAFT_VERSION:
        return KraftVersion(_KRAFT_VERSION.read(reader, 0)["level"])
    if kind != ControlType.KRAFT_VOTERS:
        return None
    return VoterSet(
        tuple(
            Voter(
                ReplicaKey(found["id"], found["directory_id"]),
                tuple(VoterEndpoint(e["listener"], e["host"], e["port"]) for e in found["endpoints"]),
                (found["kraft_versions"]["lowest"], found["kraft_versions"]["highest"]),
            )
            for found in _VOTERS.read(reader, 0)["voters"]
        )
    )


def encode_leader_change(leader: int, voters: tuple[int, ...]) -> tuple[bytes, bytes]:
    """Key and value of the control record with which a leader begins."""
    members = [{"id": voter} for voter in voters]
    return _encoded(ControlType.LEADER_CHANGE, _LEADER_CHANGE, {"leader": leader, "voters": members})


def encode_voters(voters: VoterSet) -> tuple[bytes, bytes]:
    """Key and value of the control record that makes these the voters."""
    members = [
        {
            "id": voter.key.id,
            "directory_id": voter.key.directory_id,
            "endpoints": [endpoint._asdict() for endpoint in voter.endpoints],
            "kraft_versions": dict(zip(("lowest", "highest"), voter.kraft_versions, strict=True)),
        }
        for voter in voters.voters
    ]
    return _encoded(ControlType.KRAFT_VOTERS, _VOTERS, {"voters": members})


def encode_kraft_version(level: int) -> tuple[bytes, bytes]:
    """Key and value of the control record that raises kraft.version to ``level``."""
    return _encoded(ControlType.KRAFT_VERSION, _KRAFT_VERSION, {"level": level})


def encode_snapshot_ends(time_ms: int) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
    """Keys and values of a snapshot's header and footer; ``time_ms`` is that of its last record."""
    header = _encoded(ControlType.SNAPSHOT_HEADER, _SNAPSHOT_HEADER, {"last_time": time_ms})
    return header, _encoded(ControlType.SNAPSHOT_FOOTER, _SNAPSHOT_FOOTER, {})


def _encoded(kind: ControlType, schema: MessageSchema, values: dict[str, object]) -> tuple[bytes, bytes]:
    writer = FieldWriter()
    schema.write(writer, 0, values)
    return _KEY.pack(0, kind), writer.data()
