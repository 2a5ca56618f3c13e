"""Client settings for a secured cluster: for Java's tools and for librdkafka, for any user."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from testbed.kafka.certificates import STORE_PASSWORD, Authority
from testbed.kafka.config import CONTROLLER_LISTENER, INTERNAL_LISTENER, Addresses, ClusterSpec, as_text
from testbed.kafka.errors import TestbedError
from testbed.kafka.listeners import INTERNAL_PASSWORD, INTERNAL_USER, ClientListener, Mechanism, client_jaas

Store = Literal["PEM", "PKCS12"]


class ClientConfigs:
    """Client settings for any user at any listener of one cluster.

    ``listener`` is the name of a client listener, by default the first, or CONTROLLER (for Java's tools with
    ``--bootstrap-controller``); ``mechanism`` is by default the listener's first. For mutual TLS the user's
    certificate is issued on first use.
    """

    def __init__(
        self, spec: ClusterSpec, addresses: Addresses, directory: Path, authority: Authority | None
    ) -> None:
        self._spec = spec
        self._addresses = addresses
        self._directory = directory
        self._authority = authority

    @property
    def authority(self) -> Authority:
        """The cluster's certificate authority. Raises TestbedError when no listener uses TLS."""
        if self._authority is None:
            raise TestbedError("no listener of this cluster uses TLS")
        return self._authority

    def java_properties(
        self,
        user: str = "",
        *,
        listener: str | None = None,
        mechanism: Mechanism | None = None,
        password: str | None = None,
        store: Store = "PEM",
    ) -> dict[str, str]:
        """The properties of a Java client (``--command-config``); ``password`` is the user's by default."""
        where = self._listener(listener)
        properties: dict[str, str] = {"security.protocol": where.protocol}
        if where.mechanisms:
            chosen = mechanism or where.mechanisms[0]
            secret = self._spec.users.get(user, "") if password is None else password
            properties |= {"sasl.mechanism": chosen, "sasl.jaas.config": client_jaas(chosen, user, secret)}
        if where.encrypted:
            properties |= self._java_trust(store)
        if where.client_certificates:
            properties |= self._java_identity(user, store)
        return properties

    def client_properties(
        self,
        user: str = "",
        *,
        listener: str | None = None,
        mechanism: Mechanism | None = None,
        password: str | None = None,
        store: Store = "PEM",
    ) -> Path:
        """``java_properties`` as a file, readable by its owner only."""
        properties = self.java_properties(
            user, listener=listener, mechanism=mechanism, password=password, store=store
        )
        return self._write(f"client-{user or 'anonymous'}-{self._listener(listener).name}", properties)

    def internal_properties(self) -> Path | None:
        """The testbed's own superuser at the internal listener, for Java's tools; None when it needs no file."""
        if not self._spec.secured:
            return None
        properties = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": client_jaas("PLAIN", INTERNAL_USER, INTERNAL_PASSWORD),
        }
        return self._write("client-internal", properties)

    def internal_settings(self) -> dict[str, str]:
        """The same superuser for librdkafka, with the bootstrap servers."""
        settings = {"bootstrap.servers": self._addresses.of_brokers(INTERNAL_LISTENER)}
        if self._spec.secured:
            settings |= {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": INTERNAL_USER,
                "sasl.password": INTERNAL_PASSWORD,
            }
        return settings

    def _write(self, name: str, properties: dict[str, str]) -> Path:
        path = self._directory / f"{name}.properties"
        path.touch(0o600)
        path.write_text(as_text(properties))
        return path

    def _java_trust(self, store: Store) -> dict[str, str]:
        if store == "PEM":
            return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authority.certificate)}
        return {
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(self.authority.truststore),
            "ssl.truststore.password": STORE_PASSWORD,
        }

    def _java_identity(self, user: str, store: Store) -> dict[str, str]:
        identity = self.authority.issue(user)
        if store == "PEM":
            return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(identity.keystore)}
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(identity.pkcs12),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.key.password": STORE_PASSWORD,
        }

    def _listener(self, name: str | None) -> ClientListener:
        if name == CONTROLLER_LISTENER:
            return (
                ClientListener(name, "SASL_PLAINTEXT", ("PLAIN",))
                if self._spec.secured
                else ClientListener(name)
            )
        for listener in self._spec.listeners:
            if name is None or listener.name == name:
                return listener
        raise TestbedError(f"there is no listener {name}")
