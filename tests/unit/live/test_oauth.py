"""Tokens from a token endpoint: a small HTTP server stands for it."""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_curve_key
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from backends.live.client.jwt_bearer import AssertionFile, JwtBearer, SignedAssertion
from backends.live.client.oauth import ClientCredentials, TokenCommand, TokenError
from backends.live.client.secret import Secret

SECRET = "hunter2"


class Endpoint(HTTPServer):
    """Answers with ``status`` and ``body``, or with the bytes of ``raw``; keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.body = b""
        self.raw = b""
        self.asked: list[tuple[str | None, dict[str, list[str]]]] = []
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
        if self.server.raw:
            self.wfile.write(self.server.raw)
            return
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body)

    def do_GET(self) -> None:
        """What a followed redirect would send."""
        self.server.asked.append((self.headers["Authorization"], {}))
        self.send_error(400)

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
    assert authorization is not None
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


@pytest.mark.parametrize(
    "raw",
    [
        b"\0\1\x1b[2J\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 500_000,
    ],
    ids=lambda raw: ascii(raw)[2:40],
)
async def test_an_endpoint_that_speaks_no_http_or_no_json_gives_no_token(
    endpoint: Endpoint, raw: bytes
) -> None:
    endpoint.raw = raw
    with pytest.raises(TokenError, match=f"^{endpoint.url}") as caught:
        await ClientCredentials(endpoint.url, "me", Secret(SECRET), None)()
    assert str(caught.value).isprintable()


async def test_the_words_of_an_endpoint_that_repeats_what_it_was_sent_are_not_told(
    endpoint: Endpoint,
) -> None:
    endpoint.raw = f"HTTP/1.1 401 who is me:{SECRET}?\x1b[2J\r\n\r\n".encode()
    with pytest.raises(TokenError) as caught:
        await ClientCredentials(endpoint.url, "me", Secret(SECRET), None)()
    assert str(caught.value) == f"{endpoint.url} answered 401 Unauthorized"


async def test_a_clients_secret_is_not_sent_on_to_where_an_endpoint_points(endpoint: Endpoint) -> None:
    endpoint.raw = f"HTTP/1.1 302 Found\r\nLocation: {endpoint.url}/elsewhere\r\n\r\n".encode()
    with pytest.raises(TokenError, match=r"answered 302 Found$"):
        await ClientCredentials(endpoint.url, "me", Secret(SECRET), None)()
    assert len(endpoint.asked) == 1


async def test_an_endpoint_that_is_not_there_is_named() -> None:
    with pytest.raises(TokenError, match=r"^http://127\.0\.0\.1:1/token: Connection refused$"):
        await ClientCredentials("http://127.0.0.1:1/token", "me", Secret(SECRET), None)()


def printing(text: str, tmp_path: Path) -> TokenCommand:
    """A command that prints the text, and counts how often it ran."""
    code = "import sys; open(sys.argv[1], 'a').write('x'); print(sys.argv[2])"
    return TokenCommand(
        (sys.executable, "-c", code, str(tmp_path / "ran"), text), time_of_day=lambda: 1_000.0
    )


def jwt(claims: object) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.signature"


@pytest.mark.parametrize(
    ("printed", "token", "runs"),
    [
        ("abc", "abc", 2),  # nothing tells how long it is good
        (jwt({"exp": 2_000}), jwt({"exp": 2_000}), 1),
        (jwt({"exp": 1_020}), jwt({"exp": 1_020}), 2),  # too late to be used again
        ('{"access_token": "abc", "expires_in": 900}', "abc", 1),
        ('{"accessToken": "abc", "expiresOn": "tomorrow"}', "abc", 2),
    ],
)
async def test_the_token_that_a_command_prints_is_kept_while_it_is_good(
    printed: str, token: str, runs: int, tmp_path: Path
) -> None:
    source = printing(printed, tmp_path)
    assert [(await source()).reveal(), (await source()).reveal()] == [token, token]
    assert (tmp_path / "ran").read_text() == "x" * runs


@pytest.mark.parametrize(
    "printed", ["", "two words", "{", '{"token": 3}', '{"expires_in": "x", "token": "a"}']
)
async def test_a_command_that_prints_no_token_is_named(printed: str, tmp_path: Path) -> None:
    with pytest.raises(TokenError, match="printed no token"):
        await printing(printed, tmp_path)()


async def test_a_command_that_fails_or_is_not_there_is_named_without_what_it_says() -> None:
    fails = (sys.executable, "-c", "import sys; sys.exit('a-secret')")
    with pytest.raises(TokenError, match="ended with status 1: run it by hand") as told:
        await TokenCommand(fails)()
    assert "a-secret" not in str(told.value)
    with pytest.raises(TokenError, match="no-such-program cannot be started: No such file"):
        await TokenCommand(("no-such-program",))()


def pem(key: RSAPrivateKey | EllipticCurvePrivateKey, passphrase: bytes | None = None) -> bytes:
    encryption = NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def parts(assertion: str) -> tuple[dict[str, object], dict[str, object], bytes, bytes]:
    """Header, payload, signature, and what was signed."""
    head, body, signature = assertion.split(".")
    decoded = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in (head, body, signature)]
    return json.loads(decoded[0]), json.loads(decoded[1]), decoded[2], f"{head}.{body}".encode()


async def test_the_jwt_bearer_grant_signs_an_assertion_for_each_token(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    key = generate_private_key(65537, 2048)
    (tmp_path / "key.pem").write_bytes(pem(key, b"passphrase"))
    (tmp_path / "template.json").write_text('{"header": {"kid": "7"}, "payload": {"sub": "of the template"}}')
    assertion = SignedAssertion(
        tmp_path / "key.pem",
        Secret("passphrase"),
        claims={"iss": "me", "sub": "of the settings", "aud": "idp"},
        template=tmp_path / "template.json",
        with_id=True,
        clock=lambda: 1_000.5,
    )
    assert (await JwtBearer(endpoint.url, assertion, "kafka")()).reveal() == "token-1"
    authorization, form = endpoint.asked[0]
    assert authorization is None, "the assertion alone says who asks"
    assert (form["grant_type"], form["scope"]) == (["urn:ietf:params:oauth:grant-type:jwt-bearer"], ["kafka"])
    header, payload, signature, signed = parts(form["assertion"][0])
    assert header == {"alg": "RS256", "typ": "JWT", "kid": "7"}
    assert payload.pop("jti")
    # Kafka's client lets its template decide over its settings.
    assert payload == {
        "iss": "me",
        "sub": "of the template",
        "aud": "idp",
        "iat": 1000,
        "exp": 1300,
        "nbf": 940,
    }
    key.public_key().verify(signature, signed, PKCS1v15(), SHA256())


def test_an_es256_signature_is_two_numbers_of_32_bytes(tmp_path: Path) -> None:
    key = generate_curve_key(SECP256R1())
    (tmp_path / "key.pem").write_bytes(pem(key))
    header, _, signature, signed = parts(
        SignedAssertion(tmp_path / "key.pem", None, algorithm="ES256")().reveal()
    )
    assert header["alg"] == "ES256" and len(signature) == 64
    numbers = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    key.public_key().verify(encode_dss_signature(*numbers), signed, ECDSA(SHA256()))


async def test_an_assertion_that_another_program_makes_is_read_each_time(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    path = tmp_path / "assertion"
    path.write_text("a.b.c\n")
    endpoint.give("token-1", 0)
    source = JwtBearer(endpoint.url, AssertionFile(path), None)
    await source()
    path.write_text("d.e.f\n")
    await source()
    assert [form["assertion"] for _, form in endpoint.asked] == [["a.b.c"], ["d.e.f"]]


@pytest.mark.parametrize(
    ("content", "passphrase", "algorithm", "said"),
    [
        (b"no key", None, "RS256", "is no PEM of a private key, or its passphrase is not right"),
        ("rsa", None, "RS256", "is no PEM of a private key, or its passphrase is not right"),
        ("rsa", Secret("wrong"), "RS256", "is no PEM of a private key, or its passphrase is not right"),
        ("rsa", Secret(SECRET), "ES256", "is no key for ES256"),
        (b"\xff", None, "RS256", "cannot be read (UnicodeDecodeError)"),
    ],
)
def test_a_key_that_cannot_sign_is_named_without_its_passphrase(
    tmp_path: Path, content: bytes | str, passphrase: Secret | None, algorithm: str, said: str
) -> None:
    key = tmp_path / "key.pem"
    if isinstance(content, str):
        content = pem(generate_private_key(65537, 2048), SECRET.encode())
    key.write_bytes(content)
    with pytest.raises(TokenError) as caught:
        SignedAssertion(key, passphrase, algorithm=algorithm)()
    assert str(caught.value).startswith(str(key)) and said in str(caught.value)
    assert SECRET not in str(caught.value)
