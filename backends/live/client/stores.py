"""Key stores and trust stores: PEM and PKCS12; for a JKS store, the command that converts it."""

from __future__ import annotations

import secrets
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from backends.live.client.secret import Secret

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


def is_pem(data: bytes) -> bool:
    """True for PEM, whatever the configured type says."""
    return b"-----BEGIN " in data


def trusted_certificates(data: bytes, password: Secret | None) -> str:
    """The certificates of a trust store as PEM. Raises StoreError."""
    if is_pem(data):
        return data.decode("ascii", "ignore")
    from cryptography.hazmat.primitives.serialization import Encoding

    _, certificate, others = _open_pkcs12(data, password)
    found = [c for c in (certificate, *others) if c is not None]
    if not found:
        raise StoreError("it holds no certificate")
    return "".join(c.public_bytes(Encoding.PEM).decode("ascii") for c in found)


def key_pair(data: bytes, password: Secret | None, key_password: Secret | None) -> KeyPair:
    """The key and certificates of a key store. Raises StoreError."""
    if is_pem(data):
        return KeyPair(Secret(data.decode("ascii", "ignore")), key_password)
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
