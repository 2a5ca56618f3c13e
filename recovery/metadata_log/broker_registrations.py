"""Which records about brokers Kafka itself refuses, by the registrations before them."""

from __future__ import annotations

from recovery.metadata_log.log_changes import Change
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)


class BrokerRegistrations:
    """The epoch of each broker's registration, as far as the log shows it; None: it was unregistered."""

    def __init__(self) -> None:
        self._epochs: dict[int, int | None] = {}

    def take(self, change: Change) -> str:
        """Follow that change. Returns why Kafka refuses it (``ClusterControlManager.replay``), "" where it does
        not, or where the log does not show the registration.
        """
        if isinstance(change, RegisterBrokerRecord):
            self._epochs[change.broker] = change.broker_epoch
            return ""
        if not isinstance(change, BrokerRegistrationChangeRecord | UnregisterBrokerRecord):
            return ""
        broker, epoch = change.broker, self._epochs.get(change.broker, change.broker_epoch)
        if epoch is None:
            return f"broker {broker} is not registered"
        if epoch != change.broker_epoch:
            return (
                f"it names broker epoch {change.broker_epoch}, and broker {broker} is registered with {epoch}"
            )
        if isinstance(change, UnregisterBrokerRecord):
            self._epochs[broker] = None
        return ""
