"""Records of the metadata log that change no partition, topic, broker, configuration or feature, in words: ACLs
are decoded; of quotas, SCRAM users, tokens and producer ids only the kind of change is told, so that no
credential is read.
"""

from __future__ import annotations

from typing import NamedTuple

from recovery.metadata_log.field_reader import FieldReader, MalformedRecordError
from recovery.metadata_log.message_schema import INT8, STRING, UUID, MessageSchema, SchemaField
from recovery.metadata_log.record_codec import FRAME_VERSION
from recovery.metadata_log.records import RecordType

_ACL = MessageSchema(
    SchemaField("id", UUID),
    SchemaField("resource_type", INT8),
    SchemaField("resource", STRING),
    SchemaField("pattern", INT8),
    SchemaField("principal", STRING),
    SchemaField("host", STRING),
    SchemaField("operation", INT8),
    SchemaField("permission", INT8),
)
"""AccessControlEntryRecord, version 0."""
_RESOURCES = ("unknown", "any", "topic", "group", "cluster", "transactional id", "delegation token", "user")
_OPERATIONS = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *(
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
        "CREATE_TOKENS",
        "DESCRIBE_TOKENS",
        "TWO_PHASE_COMMIT",
    ),
)
_PERMISSIONS = ("unknown", "any", "denied", "allowed")
_PREFIXED = 4
_TOPIC = 2
_DENIED = 2
_PLAIN = {
    RecordType.DELEGATION_TOKEN: "a delegation token was created or renewed",
    RecordType.REMOVE_DELEGATION_TOKEN: "a delegation token was removed",
    RecordType.USER_SCRAM_CREDENTIAL: "the SCRAM credential of a user was set",
    RecordType.REMOVE_USER_SCRAM_CREDENTIAL: "the SCRAM credential of a user was removed",
    RecordType.CLIENT_QUOTA: "a client quota was changed",
    RecordType.PRODUCER_IDS: "a block of producer ids was given out (without it, they are given out twice)",
}


class AclEntry(NamedTuple):
    """What an ACL says; types, operation and permission by Kafka's numbers."""

    acl_id: str
    resource_type: int
    resource: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int

    def __str__(self) -> str:
        resource = f"{_name(_RESOURCES, self.resource_type)} {self.resource}"
        if self.pattern == _PREFIXED:
            resource += "*"
        return (
            f"ACL {self.acl_id}: {self.principal} from host {self.host} is"
            f" {_name(_PERMISSIONS, self.permission)} {_name(_OPERATIONS, self.operation)} on {resource}"
        )

    def is_about_topic(self, topic: str) -> bool:
        """Whether it names the topic, or a prefix of its name."""
        prefixed = self.pattern == _PREFIXED and topic.startswith(self.resource)
        return self.resource_type == _TOPIC and (self.resource == topic or prefixed)

    @property
    def options(self) -> tuple[str, ...]:
        """Those of ``kafka-acls.sh --add``, for an ACL of a topic."""
        verb = "deny" if self.permission == _DENIED else "allow"
        operation = "".join(word.capitalize() for word in _name(_OPERATIONS, self.operation).split("_"))
        pattern = ("--resource-pattern-type", "prefixed") if self.pattern == _PREFIXED else ()
        who = (f"--{verb}-principal", self.principal, f"--{verb}-host", self.host)
        return (*who, "--operation", operation, "--topic", self.resource, *pattern)


class AclChange(NamedTuple):
    """An ACL was made; ``entry`` None: it was removed."""

    acl_id: str
    entry: AclEntry | None


def acl_change(value: bytes) -> AclChange | None:
    """What the record says of an ACL; None for other records. Raises MalformedRecordError."""
    reader, kind, version = _begun(value)
    if kind == RecordType.ACCESS_CONTROL_ENTRY and version == 0:
        values = _ACL.read(reader, version)
        return AclChange(str(values["id"]), AclEntry(**{"acl_id": values.pop("id"), **values}))
    return AclChange(reader.uuid(), None) if kind == RecordType.REMOVE_ACCESS_CONTROL_ENTRY else None


def access_change_text(value: bytes) -> str | None:
    """What the record changed; None for one that :mod:`timeline` tells, or that changes nothing. Raises
    MalformedRecordError.
    """
    acl = acl_change(value)
    if acl is not None:
        return f"ACL {acl.acl_id} removed" if acl.entry is None else str(acl.entry)
    _, kind, version = _begun(value)
    if kind in _PLAIN:
        return _PLAIN[RecordType(kind)]
    if kind not in set(RecordType) or kind == RecordType.ACCESS_CONTROL_ENTRY:
        return f"a record of type {kind}, version {version}, which this version of ktriage does not know"
    return None


def _begun(value: bytes) -> tuple[FieldReader, int, int]:
    """The message of a record, its type and version."""
    reader = FieldReader(value)
    if reader.varint() != FRAME_VERSION:
        raise MalformedRecordError("no record of the metadata log")
    return reader, reader.varint(), reader.varint()


def _name(names: tuple[str, ...], number: object) -> str:
    return names[number] if isinstance(number, int) and 0 <= number < len(names) else f"number {number}"
