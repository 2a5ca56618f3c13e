"""ACLs and SCRAM users of a running cluster, changed as superuser."""

from __future__ import annotations

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it exports
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

_ANSWER_SECONDS = 15.0
_ITERATIONS = 4096
_CLUSTER_NAME = "kafka-cluster"

Resource = tuple[ResourceType, str, ResourcePatternType]


class AccessControl:
    """Changes through confluent-kafka's AdminClient; each raises KafkaException with the cluster's answer.

    When a call returns, the controller has the change; the brokers apply it milliseconds later. So wait for the
    effect that the test needs.
    """

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    def allow(
        self,
        user: str,
        *operations: str,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        prefixed: bool = False,
    ) -> None:
        """ALLOW the operations (DESCRIBE, READ, ALTER, DESCRIBE_CONFIGS, CLUSTER_ACTION, ...) to ``User:<user>``.

        On a topic, a group or a transactional id ("*" for all, a prefix with ``prefixed``), and on the cluster when
        none is given.
        """
        self._add(
            AclPermissionType.ALLOW, user, operations, _resource(topic, group, transactional_id, prefixed)
        )

    def deny(
        self,
        user: str,
        *operations: str,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        prefixed: bool = False,
    ) -> None:
        """DENY, which overrides any ALLOW."""
        self._add(
            AclPermissionType.DENY, user, operations, _resource(topic, group, transactional_id, prefixed)
        )

    def set_scram_password(self, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> None:
        """Make the SCRAM user, or change its password."""
        info = ScramCredentialInfo(ScramMechanism[mechanism.replace("-", "_")], _ITERATIONS)
        change = UserScramCredentialUpsertion(user, info, password.encode())
        changed = self._admin.alter_user_scram_credentials([change], request_timeout=_ANSWER_SECONDS)
        for future in changed.values():
            future.result(_ANSWER_SECONDS)

    def _add(
        self, permission: AclPermissionType, user: str, operations: tuple[str, ...], resource: Resource
    ) -> None:
        kind, name, pattern = resource
        bindings = [
            AclBinding(kind, name, pattern, f"User:{user}", "*", AclOperation[operation], permission)
            for operation in operations
        ]
        for future in self._admin.create_acls(bindings, request_timeout=_ANSWER_SECONDS).values():
            future.result(_ANSWER_SECONDS)


def _resource(topic: str | None, group: str | None, transactional_id: str | None, prefixed: bool) -> Resource:
    pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
    if topic is not None:
        return ResourceType.TOPIC, topic, pattern
    if group is not None:
        return ResourceType.GROUP, group, pattern
    if transactional_id is not None:
        return ResourceType.TRANSACTIONAL_ID, transactional_id, pattern
    # librdkafka calls the resource type CLUSTER (4) by its older name.
    return ResourceType.BROKER, _CLUSTER_NAME, ResourcePatternType.LITERAL
