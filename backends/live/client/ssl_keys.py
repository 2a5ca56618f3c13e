"""The ``ssl.*`` keys of a client.properties file."""

from __future__ import annotations

import ssl
from pathlib import Path

from backends.live.client.properties import Properties, PropertiesError, Property
from backends.live.client.secret import Secret
from backends.live.client.tls import (
    VERSIONS,
    KeyPair,
    StoreError,
    Tls,
    key_pair,
    pem_in_lines,
    read_store,
    trusted_certificates,
)

_NEWEST_FIRST = ("TLSv1.3", "TLSv1.2", "TLSv1.1", "TLSv1")


def read_tls(properties: Properties) -> Tls:
    """TLS settings; the stores are opened here, so that a wrong password is reported at once.

    Raises PropertiesError.
    """
    identification = properties.get("ssl.endpoint.identification.algorithm")
    lowest, highest = _versions(properties)
    tls = Tls(
        trusted=_trusted(properties),
        identity=_identity(properties),
        check_names=identification is None or bool(identification.text),
        lowest=lowest,
        highest=highest,
    )
    place = next((p.where for k, p in properties.items() if k.startswith("ssl.")), None)
    try:
        tls.context("localhost")
    except StoreError as error:
        raise PropertiesError(f"{place}: {error}") from None
    return tls


def _trusted(properties: Properties) -> str | None:
    inline, location = _one_of(properties, "ssl.truststore.certificates", "ssl.truststore.location")
    if inline is not None:
        return pem_in_lines(inline.text)
    if location is None:
        return None
    try:
        return trusted_certificates(
            read_store(Path(location.text)), _secret(properties, "ssl.truststore.password")
        )
    except StoreError as error:
        raise PropertiesError(f"{location.where}: ssl.truststore.location: {error}") from None


def _identity(properties: Properties) -> KeyPair | None:
    inline, location = _one_of(properties, "ssl.keystore.key", "ssl.keystore.location")
    key_password = _secret(properties, "ssl.key.password")
    if inline is not None:
        chain = properties.get("ssl.keystore.certificate.chain")
        if chain is None:
            raise PropertiesError(
                f"{inline.where}: ssl.keystore.key needs ssl.keystore.certificate.chain beside it"
            )
        return KeyPair(Secret(pem_in_lines(f"{inline.text}\n{chain.text}\n")), key_password)
    if location is None:
        return None
    try:
        password = _secret(properties, "ssl.keystore.password")
        return key_pair(read_store(Path(location.text)), password, key_password)
    except StoreError as error:
        raise PropertiesError(f"{location.where}: ssl.keystore.location: {error}") from None


def _one_of(properties: Properties, inline: str, location: str) -> tuple[Property | None, Property | None]:
    first, second = properties.get(inline), properties.get(location)
    if first is not None and second is not None:
        raise PropertiesError(f"{second.where}: {location} and {inline} exclude each other")
    return first, second


def _secret(properties: Properties, key: str) -> Secret | None:
    given = properties.get(key)
    return Secret(given.text) if given is not None and given.text else None


def _versions(properties: Properties) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    enabled = properties.get("ssl.enabled.protocols")
    names = ["TLSv1.2", "TLSv1.3"]
    if enabled is not None and enabled.text:
        names = [name.strip() for name in enabled.text.split(",")]
        _known(enabled, "ssl.enabled.protocols", names)
    newest = properties.get("ssl.protocol")
    if newest is not None and newest.text not in ("", "TLS"):
        _known(newest, "ssl.protocol", [newest.text])
        allowed = _NEWEST_FIRST[_NEWEST_FIRST.index(newest.text) :]
        names = [name for name in names if name in allowed]
        if not names:
            raise PropertiesError(f"{newest.where}: ssl.protocol leaves none of ssl.enabled.protocols")
    versions = [VERSIONS[name] for name in names]
    return min(versions), max(versions)


def _known(given: Property, key: str, names: list[str]) -> None:
    for name in names:
        if name not in VERSIONS:
            raise PropertiesError(f"{given.where}: {key}: allowed are {', '.join(VERSIONS)}")
