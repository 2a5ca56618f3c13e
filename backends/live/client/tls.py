"""TLS: key stores and trust stores (PEM and PKCS12), and what a connection presents and accepts."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import ssl
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from backends.live.client.secret import Secret
from recovery.wording.missing_extra import missing_extra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

_JKS, _JCEKS = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"


class StoreError(ValueError):
    """A store that cannot be used: one line, no secret in it."""


class KeyPair(NamedTuple):
    """A private key, its certificate and the chain, all as PEM; ``password`` decrypts the key, None: in clear."""

    pem: Secret
    password: Secret | None


def read_store(path: Path) -> bytes:
    """The store's bytes. Raises StoreError where it cannot be read, or is a JKS store."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None
    for magic, kind in ((_JKS, "JKS"), (_JCEKS, "JCEKS")):
        if data.startswith(magic):
            raise StoreError(
                f"{path} is a {kind} store. Convert it, and name the new one: {keytool(path, kind)}"
            )
    return data


def keytool(path: Path, kind: str = "JKS") -> str:
    """The command that makes a PKCS12 store of it; keytool asks for the passwords."""
    source, target = shlex.quote(str(path)), shlex.quote(str(path.with_suffix(".p12")))
    return (
        f"keytool -importkeystore -srckeystore {source} -srcstoretype {kind}"
        f" -destkeystore {target} -deststoretype PKCS12"
    )


_PEM_BLOCK = re.compile(r"-+BEGIN\s+([^-]*?)\s*-+\s+([a-zA-Z0-9/+=\s]*?)\s*-+END\s+\1\s*-+")
_PEM_LINE = 64


def pem_in_lines(text: str) -> str:
    """Each block in lines of its own: to Kafka (DefaultSslEngineFactory.PemParser) any blanks may stand in place of
    the line ends, and the continued lines of a properties file are one line.
    """

    def in_lines(block: re.Match[str]) -> str:
        name, base64 = " ".join(block[1].split()), "".join(block[2].split())
        lines = (base64[at : at + _PEM_LINE] for at in range(0, len(base64), _PEM_LINE))
        return "\n".join((f"-----BEGIN {name}-----", *lines, f"-----END {name}-----\n"))

    return _PEM_BLOCK.sub(in_lines, text)


def valid_until(pem: str) -> datetime | None:
    """When the first certificate expires (RFC 5280, 4.1.2.5); None where that cannot be read."""
    block = re.search(r"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", pem, re.DOTALL)
    if block is None:
        return None
    try:
        fields = _der_fields(_der_fields(_der_fields(b64decode(block[1]))[0][1])[0][1])
        validity = next(content for tag, content in fields[3:] if tag == _SEQUENCE and _is_validity(content))
        tag, text = _der_fields(validity)[1]
        century = "" if tag == _GENERALIZED_TIME else "20" if text[:2] < b"50" else "19"
        return datetime.strptime(f"{century}{text.decode('ascii')}", "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except (ValueError, IndexError, StopIteration):
        return None


_SEQUENCE, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0x17, 0x18


def _is_validity(content: bytes) -> bool:
    return content[:1] in (bytes([_UTC_TIME]), bytes([_GENERALIZED_TIME]))


def _der_fields(data: bytes) -> list[tuple[int, bytes]]:
    """Tag and content of each value of a DER sequence. Raises IndexError where it ends early."""
    found, at = [], 0
    while at < len(data):
        tag, size, at = data[at], data[at + 1], at + 2
        if size & 0x80:
            count = size & 0x7F
            size, at = int.from_bytes(data[at : at + count]), at + count
        if at + size > len(data):
            raise IndexError("cut short")
        found.append((tag, data[at : at + size]))
        at += size
    return found


def is_pem(data: bytes) -> bool:
    """True for PEM, whatever the configured type says."""
    return b"-----BEGIN " in data


def trusted_certificates(data: bytes, password: Secret | None) -> str:
    """The certificates of a trust store as PEM. Raises StoreError."""
    if is_pem(data):
        return pem_in_lines(data.decode("ascii", "ignore"))
    _require_cryptography()
    from cryptography.hazmat.primitives.serialization import Encoding

    _, certificate, others = _open_pkcs12(data, password)
    found = [c for c in (certificate, *others) if c is not None]
    if not found:
        raise StoreError("it holds no certificate")
    return "".join(c.public_bytes(Encoding.PEM).decode("ascii") for c in found)


def key_pair(data: bytes, password: Secret | None, key_password: Secret | None) -> KeyPair:
    """The key and certificates of a key store. Raises StoreError."""
    if is_pem(data):
        return KeyPair(Secret(pem_in_lines(data.decode("ascii", "ignore"))), key_password)
    _require_cryptography()
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
    )

    if key_password is not None and key_password != password:
        raise StoreError(
            "a PKCS12 store's key has the store's own password: ssl.key.password differs from it"
        )
    key, certificate, chain = _open_pkcs12(data, password)
    if key is None or certificate is None:
        raise StoreError("it holds no private key with its certificate")
    once = secrets.token_hex(32)
    encrypted = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(once.encode("ascii"))
    )
    pem = encrypted + b"".join(c.public_bytes(Encoding.PEM) for c in (certificate, *chain))
    return KeyPair(Secret(pem.decode("ascii")), Secret(once))


def _require_cryptography() -> None:
    """Raises StoreError."""
    if find_spec("cryptography") is None:
        raise StoreError(
            f"{missing_extra('a PKCS12 store needs', 'cryptography', 'pkcs12')} (a PEM file needs nothing)"
        )


def _open_pkcs12(
    data: bytes, password: Secret | None
) -> tuple[PrivateKeyTypes | None, Certificate | None, list[Certificate]]:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

    try:
        return load_key_and_certificates(data, password.reveal().encode() if password else None)
    except ValueError:
        wrong = "the wrong password" if password else "a password that is not given"
        raise StoreError(f"neither PEM nor PKCS12, or it has {wrong}") from None
    except Exception as error:
        raise StoreError(f"the PKCS12 store cannot be used ({type(error).__name__})") from None


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
