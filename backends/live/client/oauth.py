"""Sources of OAUTHBEARER tokens: unsecured ones, a file, or the client-credentials grant (RFC 6749)."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Mapping
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
        return Secret(f"{_part({'alg': 'none'})}.{_part(body)}.")

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


class ClientCredentials:
    """Tokens from a token endpoint; one is kept until shortly before it expires. A TokenSource."""

    def __init__(
        self,
        url: str,
        client_id: str,
        client_secret: Secret,
        scope: str | None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._url = url
        self._client_id = client_id
        self._client_secret = client_secret
        self._scope = scope
        self._clock = clock
        self._token: tuple[Secret, float] | None = None
        self._turn = asyncio.Lock()

    async def __call__(self) -> Secret:
        """The token. Raises TokenError."""
        async with self._turn:
            if self._token is None or self._clock() >= self._token[1]:
                token, lifetime = await in_daemon_thread(self._fetch, "token endpoint")
                self._token = token, self._clock() + max(lifetime - _SPARE, 0)
            return self._token[0]

    def _fetch(self) -> tuple[Secret, float]:
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, build_opener

        form = {"grant_type": "client_credentials"} | ({"scope": self._scope} if self._scope else {})
        request = Request(  # noqa: S310 - only http and https are let through by token_source
            self._url,
            data=urlencode(form, quote_via=quote).encode("ascii"),
            headers={
                "Authorization": _basic(self._client_id, self._client_secret),
                "Accept": "application/json",
            },
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


def _part(value: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode("ascii")


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
