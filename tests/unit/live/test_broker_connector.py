"""Who answers at a broker's address: a port-forward or --broker can lead to another broker, or another cluster."""

# ruff: noqa: ARG002  # the signatures are the connection's

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, cast

import pytest
from kio.schema.describe_cluster.v2.response import DescribeClusterBroker, DescribeClusterResponse
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i32, i32Timedelta

from backends.live.calls.describe_cluster import MOST_BROKERS, ClusterDescription
from backends.live.client.addresses import Address
from backends.live.client.settings import ClientSettings
from backends.live.codec.apis import USES, Api
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem, NobodyReached
from backends.live.nodes.broker_addresses import BrokerAddresses
from backends.live.nodes.brokers import BrokerConnector
from recovery.model import Broker

OURS, OTHER = "our-cluster", "other-cluster"
AT = Address("forwarded", 9092)
NOW = i32Timedelta.parse(timedelta(0))


def no_other(conn: BrokerConnection, _described: ClusterDescription) -> None:
    pytest.fail(f"another bootstrap server answered: {conn.where}")


class Node:
    """What answers at an address: broker ``node`` of ``cluster``. ``tells`` False: it has no permission to tell."""

    def __init__(self, cluster: str, node: int, *, tells: bool = True, strict: bool = True) -> None:
        self.cluster = cluster
        self.node = node
        self.tells = tells
        self.strict = strict
        self.listed = 1
        self.refuses = ErrorCode.none


class Connection:
    """A connection to such a node; :class:`BrokerConnection` as far as its checks use it."""

    def __init__(self, node: Node, broker: int | None) -> None:
        self._node = node
        self.broker = broker
        self.verified = False
        self.closed = False
        self.address = self.peer = AT
        self.where = f"broker {broker} at {AT}"

    def highest(self, api: Api) -> int | None:
        return max(USES[api].sent)

    async def send(
        self, request: Any, response_type: type, *, timeout: float | None = None, ahead: bool = False
    ) -> Any:
        if response_type is DescribeClusterResponse:
            return self._cluster()
        assert request.__api_key__ == Api.DescribeConfigs
        return self._configs(request.resources[0].resource_name)

    def _cluster(self) -> DescribeClusterResponse:
        broker = DescribeClusterBroker(
            broker_id=BrokerId(self._node.node), host="h", port=i32(1), rack=None, is_fenced=False
        )
        return DescribeClusterResponse(
            throttle_time=NOW,
            error_code=self._node.refuses,
            error_message=None,
            endpoint_type=i8(1),
            cluster_id=self._node.cluster,
            controller_id=BrokerId(1),
            brokers=(broker,) * self._node.listed,
            cluster_authorized_operations=i32(-2147483648),
        )

    def _configs(self, asked: str) -> DescribeConfigsResponse:
        """Kafka refuses to describe another broker (INVALID_REQUEST); something else may tell its own id."""
        other = asked != str(self._node.node)
        code = ErrorCode.none
        if not self._node.tells:
            code = ErrorCode.cluster_authorization_failed
        elif other and self._node.strict:
            code = ErrorCode.invalid_request
        own = DescribeConfigsResourceResult(
            name="node.id",
            value=str(self._node.node),
            read_only=True,
            is_sensitive=False,
            synonyms=(),
            documentation=None,
        )
        result = DescribeConfigsResult(
            error_code=code,
            error_message=None,
            resource_type=i8(4),
            resource_name=asked,
            configs=() if code is not ErrorCode.none else (own,),
        )
        return DescribeConfigsResponse(throttle_time=NOW, results=(result,))

    def close(self) -> None:
        self.closed = True


Opened = Callable[[Mapping[Address, Node]], list[Connection]]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Puts nodes behind addresses; the connections that are opened to them."""

    def put(nodes: Mapping[Address, Node]) -> list[Connection]:
        connections: list[Connection] = []

        async def open_one(address: Address, settings: object, *, broker: int | None = None) -> Connection:
            connections.append(Connection(nodes[address], broker))
            return connections[-1]

        monkeypatch.setattr(BrokerConnection, "open", open_one)
        return connections

    return put


def connector(*, listed: bool = True) -> BrokerConnector:
    addresses = BrokerAddresses((AT,), None)
    brokers = (Broker(7, AT.host, AT.port, None, False),) if listed else ()
    addresses.learn(ClusterDescription(OURS, brokers, None))
    found = BrokerConnector(ClientSettings(bootstrap=(AT,)), addresses)
    found.cluster_id = OURS
    return found


async def refused(connections: list[Connection]) -> str:
    with pytest.raises(BrokerError) as caught:
        await connector().connect(7)
    assert caught.value.trouble is ConnectionProblem.WRONG_NODE
    assert [conn.closed for conn in connections] == [True]
    return str(caught.value)


async def test_the_broker_itself_is_accepted_and_verified(opened: Opened) -> None:
    opened({AT: Node(OURS, 7)})
    conn = cast("Connection", await connector().connect(7))
    assert conn.verified and not conn.closed


async def test_a_node_of_another_cluster_is_refused_and_its_connection_closed(opened: Opened) -> None:
    told = await refused(opened({AT: Node(OTHER, 7)}))
    assert "belongs to cluster other-cluster, not to our-cluster" in told


async def test_another_broker_is_refused_whether_it_refuses_or_tells_its_own_id(opened: Opened) -> None:
    assert "another broker than 7 answers there" in await refused(opened({AT: Node(OURS, 8)}))
    assert "broker 8 answers there" in await refused(opened({AT: Node(OURS, 8, strict=False)}))


async def test_a_broker_that_may_not_tell_is_accepted_and_not_verified(opened: Opened) -> None:
    opened({AT: Node(OURS, 7, tells=False)})
    conn = cast("Connection", await connector().connect(7))
    assert not conn.verified and not conn.closed


async def test_a_broker_that_is_not_listed_is_taken_only_where_it_says_who_it_is(opened: Opened) -> None:
    opened({AT: Node(OURS, 7)})
    assert cast("Connection", await connector(listed=False).connect(7)).verified
    connections = opened({AT: Node(OURS, 7, tells=False)})
    with pytest.raises(BrokerError) as caught:
        await connector(listed=False).connect(7)
    assert caught.value.trouble is ConnectionProblem.NO_ADDRESS and connections[0].closed


async def test_a_connection_whose_check_is_not_answered_is_closed(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = opened({AT: Node(OURS, 7)})

    async def silent(*_: object, **_options: object) -> None:
        raise BrokerError(ConnectionProblem.NO_ANSWER, "broker 7", "no answer within 20 s", sent=True)

    monkeypatch.setattr(Connection, "send", silent)
    with pytest.raises(BrokerError, match="no answer"):
        await connector().connect(7)
    assert [conn.closed for conn in connections] == [True]


async def test_a_node_that_lists_more_brokers_than_any_cluster_has_is_not_believed(opened: Opened) -> None:
    node = Node(OURS, 7)
    node.listed = MOST_BROKERS + 1
    connections = opened({AT: node})
    with pytest.raises(NobodyReached, match="lists 5,001 brokers: no Kafka cluster has more than 5,000"):
        await connector().bootstrap(set(), no_other)
    assert [conn.closed for conn in connections] == [True]
    node.listed = MOST_BROKERS
    _, described = await connector().bootstrap(set(), no_other)
    assert len(described.brokers) == MOST_BROKERS


async def test_a_controllers_address_is_told_with_the_option_that_takes_it(opened: Opened) -> None:
    node = Node(OURS, 100)
    node.refuses = ErrorCode.mismatched_endpoint_type
    opened({AT: node})
    with pytest.raises(NobodyReached, match=r"is a controller's listener: give a broker's address"):
        await connector().bootstrap(set(), no_other)
