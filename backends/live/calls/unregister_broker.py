"""Removing a broker's registration: UnregisterBroker (KIP-500)."""

from __future__ import annotations

from backends.live.connections.connection import BrokerConnection
from backends.live.errors import check, on_cluster


async def unregister_broker(conn: BrokerConnection, broker: int) -> None:
    """Removes the registration of a broker. Kafka does so even if it is alive: check that before. Raises
    BrokerError (``sent``: it may have been done), NotAllowed, NotOffered, BackendError.
    """
    from kio.schema.types import BrokerId
    from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
    from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse

    answer = await conn.send(UnregisterBrokerRequest(broker_id=BrokerId(broker)), UnregisterBrokerResponse)
    check(answer.error_code, "UnregisterBroker", on_cluster("ALTER"), answer.error_message)
