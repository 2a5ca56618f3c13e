"""TLS: what a connection presents and what it accepts."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backends.live.client.secret import Secret
from backends.live.client.stores import KeyPair, StoreError

VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
"""Java's names of the protocol versions."""


class _NamedContext(ssl.SSLContext):
    """Checks ``server_name``: connections are made to IP addresses, and certificates hold names."""

    server_name: str

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        kwargs["server_hostname"] = self.server_name
        return super().wrap_bio(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS settings. ``trusted`` is PEM, None: what this machine trusts.

    ``check_names`` is False where ssl.endpoint.identification.algorithm is empty.
    """

    trusted: str | None = None
    identity: KeyPair | None = None
    check_names: bool = True
    lowest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    _contexts: dict[str, ssl.SSLContext] = field(default_factory=dict, repr=False, compare=False)

    def context(self, host: str) -> ssl.SSLContext:
        """The context for connections to ``host``. Raises StoreError where a store cannot be used."""
        if host not in self._contexts:
            self._contexts[host] = self._make(host)
        return self._contexts[host]

    def _make(self, host: str) -> ssl.SSLContext:
        context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
        context.server_name = host
        context.check_hostname = self.check_names
        context.minimum_version, context.maximum_version = self.lowest, self.highest
        if self.trusted is None:
            context.load_default_certs()
        else:
            _trust(context, self.trusted)
        if self.identity is not None:
            _present(context, self.identity)
        return context


def _trust(context: ssl.SSLContext, pem: str) -> None:
    # As in Java, everything in a trust store is trusted, an intermediate or a server certificate included.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=pem)
    except ssl.SSLError as error:
        raise StoreError(f"the trusted certificates cannot be read ({error.reason or 'no PEM'})") from None


def _present(context: ssl.SSLContext, identity: KeyPair) -> None:
    password = identity.password or Secret("")
    try:
        with _as_file(identity.pem) as path:
            # A password is always given: without one OpenSSL would ask at the terminal.
            context.load_cert_chain(path, password=password.reveal())
    except ssl.SSLError as error:
        raise StoreError(
            f"the key and certificate cannot be used ({error.reason or 'no PEM'}){_hint(identity)}"
        ) from None


def _hint(identity: KeyPair) -> str:
    if "ENCRYPTED" not in identity.pem.reveal():
        return ""
    return (
        ": is ssl.key.password right?"
        if identity.password
        else ": the key has a password, ssl.key.password is not set"
    )


@contextmanager
def _as_file(text: Secret) -> Iterator[str]:
    """A path where OpenSSL reads ``text``, as it cannot read a key from memory; on Linux not on a disk."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("identity", os.MFD_CLOEXEC)
        try:
            with open(number, "w", encoding="ascii", closefd=False) as file:
                file.write(text.reveal())
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "identity.pem")
        path.touch(mode=0o600)
        path.write_text(text.reveal(), encoding="ascii")
        yield str(path)
