"""Tokens from a token endpoint: a small HTTP server stands for it."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest

from backends.live.client.oauth import ClientCredentials, TokenError
from backends.live.client.secret import Secret

SECRET = "hunter2"


class Endpoint(HTTPServer):
    """Answers with ``status`` and ``body``; keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.body = b""
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.give("token-1", 3600)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/token"

    def give(self, token: str, lifetime: int) -> None:
        self.body = json.dumps({"access_token": token, "expires_in": lifetime}).encode()


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append((self.headers["Authorization"], parse_qs(form)))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


async def test_the_client_credentials_grant(endpoint: Endpoint) -> None:
    now = [0.0]
    source = ClientCredentials(endpoint.url, "me", Secret(SECRET), "kafka", clock=lambda: now[0])
    assert (await source()).reveal() == "token-1"
    authorization, form = endpoint.asked[0]
    assert base64.b64decode(authorization.removeprefix("Basic ")).decode() == f"me:{SECRET}"
    assert form == {"grant_type": ["client_credentials"], "scope": ["kafka"]}
    endpoint.give("token-2", 3600)
    now[0] = 3500.0
    assert (await source()).reveal() == "token-1", "it is still good"
    now[0] = 3590.0
    assert (await source()).reveal() == "token-2", "it would run out any moment"


@pytest.mark.parametrize(
    ("status", "body", "what"),
    [
        (401, b"{}", "answered 401 Unauthorized"),
        (200, b"<html>", "no token in its answer"),
        (200, b"[]", "no token in its answer"),
        (200, b'{"access_token": "t", "expires_in": "soon"}', "no token in its answer"),
    ],
)
async def test_an_endpoint_that_gives_no_token_is_named(
    endpoint: Endpoint, status: int, body: bytes, what: str
) -> None:
    endpoint.status, endpoint.body = status, body
    with pytest.raises(TokenError) as caught:
        await ClientCredentials(f"{endpoint.url}?key={SECRET}", "me", Secret(SECRET), None)()
    assert str(caught.value).startswith(f"{endpoint.url}")
    assert what in str(caught.value)
    assert SECRET not in str(caught.value)


async def test_an_endpoint_that_is_not_there_is_named() -> None:
    with pytest.raises(TokenError, match=r"^http://127\.0\.0\.1:1/token: Connection refused$"):
        await ClientCredentials("http://127.0.0.1:1/token", "me", Secret(SECRET), None)()
