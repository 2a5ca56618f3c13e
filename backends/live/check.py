"""``ktriage check``, before an incident: what is reachable from here, what is offered, what we may do.

No request changes anything. Permissions come from the authorized operations in the brokers' answers. Without
DESCRIBE on the cluster those are missing; then an ElectLeaders of no partition and a DescribeConfigs show the rest.
Of groups and transactional ids, a name that nobody has is asked about too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from backends.base.answers import RIGHTS_UNKNOWN, Partitions
from backends.base.check_report import (
    CLUSTER_RESOURCE,
    CLUSTER_RIGHTS,
    GROUP_RIGHTS,
    GROUPS,
    TOPIC_RIGHTS,
    TOPICS,
    TRANSACTIONAL_ID_RIGHTS,
    TRANSACTIONAL_IDS,
    CheckReport,
    PermissionCheck,
    Reachability,
)
from backends.base.errors import BackendError, NotAllowed
from backends.live.calls.authorized_operations import Operations
from backends.live.calls.configs import describe_broker_configs
from backends.live.calls.consumer_groups import group_operations, list_groups
from backends.live.calls.describe_cluster import cluster_info, describe_cluster
from backends.live.calls.describe_partitions import topic_operations
from backends.live.calls.elect_leaders import elect_leaders
from backends.live.calls.transactions import may_describe_transactional_id
from backends.live.client.addresses import Address
from backends.live.codec.apis import Api
from backends.live.codec.offered_versions import capabilities, without_cluster_action
from backends.live.connections.connection import BrokerConnection, place
from backends.live.errors import as_unknown
from backends.live.nodes.broker_addresses import SEED
from backends.live.nodes.brokers import BrokerFleet
from backends.live.nodes.quorum_cache import up_to_date_brokers
from recovery.model import Unknown, Why


async def check(fleet: BrokerFleet, everything: Callable[[], Awaitable[Partitions]]) -> CheckReport:
    """Look at the cluster of an open fleet; ``everything`` lists all partitions that the caller may see. Raises
    BackendError only where no broker can be asked at all.
    """
    reported = await fleet.refresh()
    ids = sorted({b.id for b in fleet.brokers} | set(fleet.overrides))
    quorum = await fleet.quorum()
    reach = await asyncio.gather(*(_reach(fleet, broker, up_to_date_brokers(quorum)) for broker in ids))
    conn = (await fleet.any(_itself)).value
    reached = [r.broker for r in reach if r.problem is None]
    served = {broker: (await fleet.connection(broker)).api_keys for broker in reached}
    served = served or {SEED: conn.api_keys}
    offered = capabilities(served, conn.features)
    operations = await _topics(conn)
    hidden = await _hidden(everything, operations)
    cluster = await _cluster_rights(conn, _native(served))
    sees_all = next((right.granted is True for right in cluster if right.operation == "DESCRIBE"), False)
    groups, transactions = await asyncio.gather(
        _group_rights(fleet, reached, sees_all=sees_all), _transactional_id_rights(conn)
    )
    rights = [*cluster, *_topic_rights(operations, hidden), *groups, *transactions]
    natively = next((right.granted for right in rights if right.operation == "CLUSTER_ACTION"), True)
    if natively is not True:
        offered = without_cluster_action(offered, natively)
    return CheckReport(
        cluster_info(reported.value, reported.broker, conn.features),
        tuple(reach),
        offered,
        tuple(rights),
        hidden,
    )


async def _itself(conn: BrokerConnection) -> BrokerConnection:
    return conn


async def _reach(fleet: BrokerFleet, broker: int, caught_up: frozenset[int] | None) -> Reachability:
    problem: Unknown | None = None
    verified = False
    try:
        verified = (await fleet.connection(broker)).verified
    except BackendError as error:
        problem = as_unknown(error)
    address: Address | None = fleet.address(broker)
    listed = next((b for b in fleet.brokers if b.id == broker), None)
    return Reachability(
        broker,
        str(address) if address else place(None, None),
        broker in fleet.overrides,
        problem,
        verified,
        None if caught_up is None else broker in caught_up,
        listed.fenced if listed else None,
    )


def _native(served: Mapping[int, Mapping[int, tuple[int, int]]]) -> bool:
    return any(Api.GetReplicaLogInfo in versions for versions in served.values())


async def _topics(conn: BrokerConnection) -> Mapping[str, Operations | None] | Unknown:
    try:
        return await topic_operations(conn)
    except BackendError as error:
        return as_unknown(error)


async def _hidden(
    everything: Callable[[], Awaitable[Partitions]], operations: Mapping[str, Operations | None] | Unknown
) -> tuple[str, ...] | Unknown:
    """Topics that exist and are not in the list of topics; or why that is not known."""
    if isinstance(operations, Unknown):
        return operations
    try:
        found = await everything()
    except BackendError as error:
        return as_unknown(error)
    return found.hidden or found.not_compared or ()


async def _cluster_rights(conn: BrokerConnection, native: bool) -> list[PermissionCheck]:
    try:
        allowed = (await describe_cluster(conn, operations=True)).operations
    except BackendError as error:
        reported: bool | Unknown = as_unknown(error)
        return [
            PermissionCheck(name, CLUSTER_RESOURCE, use, reported) for name, use in CLUSTER_RIGHTS.items()
        ]
    rights = []
    for name, use in CLUSTER_RIGHTS.items():
        if name == "CLUSTER_ACTION" and not native:
            continue
        granted: bool | Unknown = allowed is not None and allowed.allows(name)
        if allowed is None or not allowed.allowed:  # without DESCRIBE the brokers tell nothing of the others
            granted = name != "DESCRIBE" and await _tried(conn, name)
        rights.append(PermissionCheck(name, CLUSTER_RESOURCE, use, granted))
    return rights


async def _tried(conn: BrokerConnection, operation: str) -> bool | Unknown:
    """Find out with a request that changes nothing."""
    try:
        if operation == "ALTER":
            await elect_leaders(conn, (), preferred=True)
            return True
        if operation == "DESCRIBE_CONFIGS" and conn.broker is not None:
            answer = await describe_broker_configs(conn, conn.broker, ("node.id",))
            return answer.why is not Why.NOT_ALLOWED if isinstance(answer, Unknown) else True
    except NotAllowed:
        return False
    except BackendError as error:
        return as_unknown(error)
    return RIGHTS_UNKNOWN


def _topic_rights(
    operations: Mapping[str, Operations | None] | Unknown, hidden: tuple[str, ...] | Unknown
) -> list[PermissionCheck]:
    if isinstance(operations, Unknown):
        return [PermissionCheck(name, TOPICS, use, operations) for name, use in TOPIC_RIGHTS.items()]
    unseen = () if isinstance(hidden, Unknown) else hidden
    rights = []
    for name, use in TOPIC_RIGHTS.items():
        lacking = tuple(t for t, allowed in operations.items() if allowed and not allowed.allows(name))
        missing = tuple(sorted({*lacking, *unseen}))
        granted: bool | Unknown = not missing
        if not missing and isinstance(hidden, Unknown):
            granted = hidden
        rights.append(PermissionCheck(name, TOPICS, use, granted, missing, len(operations) + len(unseen)))
    return rights


ANY_NAME = "ktriage-check"
"""A group and a transactional id that nobody has: what is allowed on them is allowed on every name, as far as no
rule for a name says otherwise.
"""


async def _group_rights(
    fleet: BrokerFleet, brokers: Sequence[int], *, sees_all: bool
) -> list[PermissionCheck]:
    """``sees_all``: every group is listed to the caller."""
    answers = await asyncio.gather(*(_operations_on_groups(fleet, broker) for broker in brokers))
    known = [answer for answer in answers if not isinstance(answer, Unknown)]
    groups = {name: allowed for answer in known for name, allowed in answer.items() if name != ANY_NAME}
    on_any = next((answer[ANY_NAME] for answer in known if ANY_NAME in answer), None)
    failed = next((answer for answer in answers if isinstance(answer, Unknown)), None)
    rights = []
    for name, use in GROUP_RIGHTS.items():
        missing = tuple(sorted(group for group, allowed in groups.items() if not allowed.allows(name)))
        granted: bool | Unknown = not missing
        if not missing and (on_any is None or not on_any.allows(name)):
            # Allowed on all that are listed: these are all groups only where every one is listed.
            granted = failed or NO_GROUPS if on_any is None else sees_all and bool(groups)
        rights.append(PermissionCheck(name, GROUPS, use, granted, missing, len(groups) if missing else 0))
    return rights


NO_GROUPS = Unknown(Why.NOT_ANSWERED, "no broker coordinates groups: there may be no __consumer_offsets yet")


async def _operations_on_groups(fleet: BrokerFleet, broker: int) -> Mapping[str, Operations] | Unknown:
    try:
        async with asyncio.timeout(GROUPS_SECONDS):
            conn = await fleet.connection(broker)
            names = [group.name for group in await list_groups(conn)]
            found = dict(await group_operations(conn, (ANY_NAME,)))
            for begin in range(0, len(names), GROUPS_A_REQUEST):
                found.update(await group_operations(conn, names[begin : begin + GROUPS_A_REQUEST]))
            return found
    except TimeoutError:
        return Unknown(
            Why.NOT_ANSWERED, f"broker {broker} did not tell its groups within {GROUPS_SECONDS:g} s"
        )
    except BackendError as error:
        return as_unknown(error)


GROUPS_SECONDS = 5.0
GROUPS_A_REQUEST = 500


async def _transactional_id_rights(conn: BrokerConnection) -> list[PermissionCheck]:
    try:
        granted: bool | Unknown = await may_describe_transactional_id(conn, ANY_NAME)
    except BackendError as error:
        granted = as_unknown(error)
    return [
        PermissionCheck(name, TRANSACTIONAL_IDS, use, granted)
        for name, use in TRANSACTIONAL_ID_RIGHTS.items()
    ]
