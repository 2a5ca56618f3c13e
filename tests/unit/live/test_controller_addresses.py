"""Where the controllers are, as the metadata log needs to know it while nobody leads the quorum."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from backends.base.errors import Unreachable
from backends.base.membership import NodeProbe, NodeSettings
from backends.live import membership
from backends.live.client.addresses import Address
from backends.live.client.settings import ClientSettings
from backends.live.membership import LiveMembership
from backends.live.nodes.controllers import ControllerConnections
from recovery.model import Unknown, Why


class Brokers:
    """They answer, and hold what they forward to a controller: nobody leads."""

    cluster_id = "cluster"

    async def quorum(self, **_: object) -> Unknown:
        return Unknown(Why.NOT_ANSWERED, "DescribeQuorum: no answer within 4 s")

    async def any(self, ask: Callable[[object], Awaitable[Any]], **_: object) -> SimpleNamespace:
        return SimpleNamespace(value=await ask(None))


def reached(
    monkeypatch: pytest.MonkeyPatch, settings: NodeSettings | Unknown
) -> tuple[LiveMembership, ControllerConnections]:
    """A cluster without a leader, known by its brokers, which report these settings."""

    async def described(_conn: object) -> None:
        return None

    async def asked(_conn: object, _node: int | None, *, controller: bool) -> NodeProbe:
        assert not controller
        return NodeProbe("broker-1:9092", "cluster", 1, -1, None, 0, settings)

    monkeypatch.setattr(membership, "describe_cluster", described)
    monkeypatch.setattr(membership, "asked", asked)
    controllers = ControllerConnections(ClientSettings((Address("broker-1", 9092),)))
    return LiveMembership("brokers", Brokers(), controllers), controllers  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        NodeSettings(("controller-1:9093",), (), None, "/data"),
        NodeSettings((), ("101@controller-1:9093",), None, "/data"),
    ],
)
async def test_while_nobody_leads_the_brokers_settings_name_the_controllers(
    monkeypatch: pytest.MonkeyPatch, settings: NodeSettings
) -> None:
    cluster, controllers = reached(monkeypatch, settings)
    await cluster.metadata_log()
    assert controllers.known == (Address("controller-1", 9093),)


LISTED = (100, "controller-1.cluster.example", 9093)
TUNNEL = Address("127.0.0.1", 19093)


def test_a_controller_behind_a_tunnel_is_asked_there_by_the_name_that_its_certificate_has() -> None:
    controllers = ControllerConnections(ClientSettings(()), overrides={100: TUNNEL})
    assert [at.place for at in controllers.known] == [TUNNEL.place], (
        "an address that was given serves while nobody leads"
    )
    controllers.learn_of([LISTED, (101, "controller-2.cluster.example", 9093)])
    assert controllers.known == (
        TUNNEL._replace(certified="controller-1.cluster.example"),
        Address("controller-2.cluster.example", 9093),
    )
    controllers.learn([Address(*LISTED[1:])])
    assert len(controllers.known) == 2, "its own address is never asked, wherever it is told"


def test_a_name_that_was_given_with_the_address_goes_before_the_one_that_the_quorum_tells() -> None:
    given = TUNNEL._replace(certified="controllers.example")
    controllers = ControllerConnections(ClientSettings(()), overrides={100: given})
    controllers.learn_of([LISTED])
    assert controllers.known == (given,)


async def test_where_nobody_names_a_controller_it_is_said_what_was_asked_and_how_to_give_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, _ = reached(monkeypatch, Unknown(Why.NOT_ALLOWED, "needs DESCRIBE_CONFIGS on the cluster"))
    with pytest.raises(Unreachable) as refused:
        await cluster.metadata_log()
    text = str(refused.value)
    assert "no controller's address is known" in text and "DESCRIBE_CONFIGS" in text
    assert "--bootstrap-controller" in text and "--metadata-dir" in text
