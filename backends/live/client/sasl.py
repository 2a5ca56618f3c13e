"""SASL mechanisms and credentials."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import ScramAuthenticator
from aiokafka.errors import SaslAuthenticationFailed

from backends.live.client.kerberos import KerberosLogin
from backends.live.client.secret import Secret
from backends.live.errors import one_line

TokenSource = Callable[[], Awaitable[Secret]]
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")

_MAX_ITERATIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class Sasl:
    """A mechanism with its credentials: name and password, a source of tokens for OAUTHBEARER, or
    who logs in by Kerberos for GSSAPI.
    """

    mechanism: str
    username: str = ""
    password: Secret | None = None
    token: TokenSource | None = None
    extensions: tuple[tuple[str, str], ...] = ()
    kerberos: KerberosLogin | None = None


class Bearer(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka ships no types
    """The client's side of OAUTHBEARER (RFC 7628); a broker sends a refusal as a challenge."""

    def __init__(self, token: Secret, extensions: tuple[tuple[str, str], ...]) -> None:
        self._token = token
        self._extensions = extensions
        self._sent = False

    async def token(self) -> str:
        """The bare token (aiokafka's hook)."""
        return self._token.reveal()

    async def step(self, challenge: bytes | None) -> tuple[bytes, bool] | None:
        """The next message to the broker, None when it is satisfied. Raises SaslAuthenticationFailed."""
        if not self._sent:
            self._sent = True
            extensions = "".join(f"\x01{key}={value}" for key, value in self._extensions)
            return f"n,,\x01auth=Bearer {self._token.reveal()}{extensions}\x01\x01".encode(), True
        if challenge:
            raise SaslAuthenticationFailed(_refusal(challenge))
        return None


def _refusal(challenge: bytes) -> str:
    try:
        challenge_fields: Any = json.loads(challenge)
        return one_line(f"the broker refuses the token: {challenge_fields['status']}")
    except (ValueError, KeyError, TypeError):
        return "the broker refuses the token"


class Scram(ScramAuthenticator):  # type: ignore[misc]  # aiokafka ships no types
    """SCRAM with a limit on the iterations that a server may ask for."""

    def create_salted_password(self, salt: bytes, iterations: int) -> None:
        """Derive the key (aiokafka's hook). Raises SaslAuthenticationFailed for an absurd count."""
        if not 0 < iterations <= _MAX_ITERATIONS:
            raise SaslAuthenticationFailed(f"the broker asks for {iterations} SCRAM iterations")
        super().create_salted_password(salt, iterations)
