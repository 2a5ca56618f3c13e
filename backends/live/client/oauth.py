"""Sources of OAUTHBEARER tokens: unsecured ones, a file, a command, the client-credentials grant (RFC 6749)."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from backends.live.client.daemon_thread import in_daemon_thread
from backends.live.client.sasl import TokenSource
from backends.live.client.secret import Secret
from backends.live.errors import one_line

if TYPE_CHECKING:
    from urllib.request import BaseHandler

LIFETIME = 3600
"""Seconds that an unsecured token lasts unless the options say otherwise (Kafka's default)."""
_SPARE = 30
_HTTP_TIMEOUT = 10.0
_MAX_ANSWER = 1 << 20

Clock = Callable[[], float]


class TokenError(ValueError):
    """There is no token: one line, without a secret."""


def unsecured(
    claims: Mapping[str, object], lifetime: float = LIFETIME, clock: Clock = time.time
) -> TokenSource:
    """Tokens without a signature, for test clusters (OAuthBearerUnsecuredLoginCallbackHandler)."""

    async def token() -> Secret:
        now = clock()
        body = {"iat": now, "exp": now + lifetime, **claims}
        return Secret(f"{jwt_part({'alg': 'none'})}.{jwt_part(body)}.")

    return token


def from_file(path: Path) -> TokenSource:
    """The token in a file, read at each use, as another process renews it."""

    def read() -> Secret:
        try:
            return Secret(path.read_text(encoding="ascii").strip())
        except (OSError, UnicodeDecodeError) as error:
            raise TokenError(f"{path} cannot be read ({type(error).__name__})") from None

    async def token() -> Secret:
        return await in_daemon_thread(read, "token file")

    return token


class RenewedToken:
    """A token that is kept until shortly before it expires. A TokenSource."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._token: tuple[Secret, float] | None = None
        self._turn = asyncio.Lock()

    async def __call__(self) -> Secret:
        """The token. Raises TokenError."""
        async with self._turn:
            if self._token is None or self._clock() >= self._token[1]:
                token, lifetime = await in_daemon_thread(self._fetch, "token")
                self._token = token, self._clock() + max(lifetime - _SPARE, 0)
            return self._token[0]

    def _fetch(self) -> tuple[Secret, float]:
        """A new token, and for how many seconds it is good. Raises TokenError."""
        raise NotImplementedError


class TokenCommand(RenewedToken):
    """Tokens that a command prints: alone, or in a JSON object as ``access_token`` (also ``accessToken`` or
    ``token``) with ``expires_in``. Without that, a JWT's own ``exp`` counts; else the command runs for each
    connection.

    The command is started without a shell. What it says on stderr is not shown: it may be a secret.
    """

    def __init__(
        self, words: Sequence[str], clock: Clock = time.monotonic, time_of_day: Clock = time.time
    ) -> None:
        super().__init__(clock)
        self._words = tuple(words)
        self._time_of_day = time_of_day

    def _fetch(self) -> tuple[Secret, float]:
        name = one_line(self._words[0])
        try:
            ended = subprocess.run(
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TokenError(f"{name} did not end within {COMMAND_SECONDS:g} s") from None
        except OSError as error:
            raise TokenError(f"{name} cannot be started: {error.strerror}") from None
        if ended.returncode:
            raise TokenError(f"{name} ended with status {ended.returncode}: run it by hand to see why")
        found = _printed(ended.stdout)
        if found is None:
            raise TokenError(f"{name} printed no token")
        token, lifetime = found
        return token, lifetime if lifetime is not None else _lifetime_of(token, self._time_of_day())


COMMAND_SECONDS = 10.0
_TOKEN_KEYS = ("access_token", "accessToken", "token")
_TOKEN_TEXT = re.compile(r"[\x21-\x7e]+")


def _printed(output: bytes) -> tuple[Secret, float | None] | None:
    """The token, and its lifetime if that is told; None: there is none."""
    text = output[:_MAX_ANSWER].decode("ascii", "replace").strip()
    lifetime: float | None = None
    if text.startswith("{"):
        try:
            fields: Any = json.loads(text)
            text = next((fields[key] for key in _TOKEN_KEYS if isinstance(fields.get(key), str)), "")
            lifetime = float(fields["expires_in"]) if "expires_in" in fields else None
        except (ValueError, TypeError, RecursionError):
            return None
    return (Secret(text), lifetime) if _TOKEN_TEXT.fullmatch(text) else None


def _lifetime_of(token: Secret, now: float) -> float:
    """Of a JWT, by its own claim; 0 for anything else."""
    try:
        _, claims, _ = token.reveal().split(".")
        return float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]) - now
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0.0


class EndpointToken(RenewedToken):
    """Tokens from a token endpoint, by the grant of a subclass."""

    def __init__(self, url: str, scope: str | None, clock: Clock = time.monotonic) -> None:
        super().__init__(clock)
        self._url = url
        self._scope = scope

    def _form(self) -> dict[str, str]:
        """The grant's own fields. Raises TokenError."""
        raise NotImplementedError

    def _headers(self) -> dict[str, str]:
        return {"Accept": "application/json"}

    def _fetch(self) -> tuple[Secret, float]:
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, build_opener

        form = self._form() | ({"scope": self._scope} if self._scope else {})
        request = Request(  # noqa: S310 - only http and https are let through by token_source
            self._url,
            data=urlencode(form, quote_via=quote).encode("ascii"),
            headers=self._headers(),
        )
        where = _without_secrets(self._url)
        try:
            with build_opener(_no_redirect()).open(request, timeout=_HTTP_TIMEOUT) as answer:
                reported: Any = json.loads(answer.read(_MAX_ANSWER))
            return Secret(str(reported["access_token"])), float(reported.get("expires_in", 300))
        except HTTPError as error:
            raise TokenError(f"{where} answered {_status(error.code)}") from None
        except URLError as error:
            raise TokenError(
                f"{where}: {one_line(getattr(error.reason, 'strerror', None) or error.reason)}"
            ) from None
        except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError) as error:
            raise TokenError(f"{where}: no token in its answer ({type(error).__name__})") from None


class ClientCredentials(EndpointToken):
    """The client-credentials grant (RFC 6749)."""

    def __init__(
        self,
        url: str,
        client_id: str,
        client_secret: Secret,
        scope: str | None,
        clock: Clock = time.monotonic,
    ) -> None:
        super().__init__(url, scope, clock)
        self._client_id = client_id
        self._client_secret = client_secret

    def _form(self) -> dict[str, str]:
        return {"grant_type": "client_credentials"}

    def _headers(self) -> dict[str, str]:
        return {**super()._headers(), "Authorization": _basic(self._client_id, self._client_secret)}


def file_of(url: str) -> Path | None:
    """The path of a ``file:`` URL; None for any other. Raises TokenError where it is no usable URL at all."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TokenError("expected an http, https or file URL")
    return None


def _no_redirect() -> BaseHandler:
    """urllib would send the client's secret on to whatever address the endpoint names."""
    from urllib.request import HTTPRedirectHandler

    class NoRedirect(HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            """The redirect is the answer."""

    return NoRedirect()


def _status(code: int) -> str:
    """The standard's words for it: the endpoint's own may repeat what it was sent."""
    from http import HTTPStatus

    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return str(code)


def _basic(user: str, password: Secret) -> str:
    # A function of its own, so that no frame in a traceback holds the password.
    return f"Basic {base64.b64encode(f'{user}:{password.reveal()}'.encode()).decode('ascii')}"


def jwt_part(value: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode("ascii")


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
