"""The JWT bearer grant (RFC 7523, KIP-1139): an assertion, signed with a private key, is given for a token."""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from backends.live.client.oauth import Clock, EndpointToken, TokenError, jwt_part
from backends.live.client.secret import Secret
from recovery.wording.missing_extra import missing_extra

EXPIRES_AFTER, VALID_BEFORE = 300, 60
"""Seconds from now on that an assertion is good, and seconds before now from when on (Kafka's defaults)."""
ALGORITHMS = ("RS256", "ES256")
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_COORDINATE = 32
"""Bytes of each of the two numbers of an ES256 signature (RFC 7518, 3.4)."""


class JwtBearer(EndpointToken):
    """``assertion`` gives a new assertion, and raises TokenError. A TokenSource."""

    def __init__(
        self, url: str, assertion: Callable[[], Secret], scope: str | None, clock: Clock = time.monotonic
    ) -> None:
        super().__init__(url, scope, clock)
        self._assertion = assertion

    def _form(self) -> dict[str, str]:
        return {"grant_type": _GRANT, "assertion": self._assertion().reveal()}


@dataclass(frozen=True, slots=True)
class AssertionFile:
    """An assertion that another program keeps fresh (``sasl.oauthbearer.assertion.file``)."""

    path: Path

    def __call__(self) -> Secret:
        return Secret(_text_of(self.path).strip())


@dataclass(frozen=True, slots=True)
class SignedAssertion:
    """Assertions signed with the key in the file ``key``, which is read anew each time. ``template`` is a JSON file
    with a ``header`` and a ``payload``; ``claims`` are those of the settings. The times of Kafka's client are last,
    as there (``AssertionUtils.layeredAssertionJwtTemplate``).
    """

    key: Path
    passphrase: Secret | None
    algorithm: str = ALGORITHMS[0]
    claims: Mapping[str, str] = field(default_factory=dict)
    template: Path | None = None
    expires_after: int = EXPIRES_AFTER
    valid_before: int = VALID_BEFORE
    with_id: bool = False
    clock: Clock = time.time

    def __call__(self) -> Secret:
        """Raises TokenError."""
        header, payload = self._template()
        now = int(self.clock())
        times = {"iat": now, "exp": now + self.expires_after, "nbf": now - self.valid_before}
        made = {"jti": str(uuid.uuid4())} if self.with_id else {}
        head = jwt_part({**header, "alg": self.algorithm, "typ": "JWT"})
        body = jwt_part({**self.claims, **payload, **times, **made})
        signature = self._signed(f"{head}.{body}".encode("ascii"))
        return Secret(f"{head}.{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode('ascii')}")

    def _template(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        if self.template is None:
            return {}, {}
        try:
            fields = json.loads(_text_of(self.template))
            return dict(fields.get("header") or {}), dict(fields.get("payload") or {})
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, TokenError):
                raise
            raise TokenError(f"{self.template} is no JSON object with header and payload") from None

    def _signed(self, text: bytes) -> bytes:
        if find_spec("cryptography") is None:
            raise TokenError(missing_extra("to sign a JWT needs", "cryptography", "jwt"))
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        pem = _text_of(self.key).encode("ascii")
        password = None if self.passphrase is None else self.passphrase.reveal().encode()
        try:
            key = load_pem_private_key(pem, password)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            why = "is no PEM of a private key, or its passphrase is not right"
            raise TokenError(f"{self.key} {why}") from None
        if self.algorithm == "RS256" and isinstance(key, RSAPrivateKey):
            return key.sign(text, PKCS1v15(), SHA256())
        if self.algorithm == "ES256" and isinstance(key, EllipticCurvePrivateKey) and key.key_size == 256:
            r, s = decode_dss_signature(key.sign(text, ECDSA(SHA256())))
            return r.to_bytes(_COORDINATE, "big") + s.to_bytes(_COORDINATE, "big")
        raise TokenError(f"{self.key} is no key for {self.algorithm}")


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise TokenError(f"{path} cannot be read ({type(error).__name__})") from None
