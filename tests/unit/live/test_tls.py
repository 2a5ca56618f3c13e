"""Whom a connection trusts, as Java's trust stores have it: tried against a TLS server on loopback."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from backends.live.client.addresses import Address
from backends.live.client.settings import ClientSettings
from backends.live.client.tls import Tls
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem

NOW = datetime.datetime.now(datetime.UTC)


class Issued:
    """A key with its certificate, signed by ``issuer`` or by itself."""

    def __init__(self, name: str, issuer: Issued | None = None, *, authority: bool = True) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer = issuer or self
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(self.name)
            .issuer_name(signer.name)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - datetime.timedelta(days=1))
            .not_valid_after(NOW + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(authority, None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(signer.key, hashes.SHA256())
        )

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


async def greet(server: Issued, trusted: str, directory: Path) -> BrokerError:
    """What a connection comes to with a peer that speaks TLS and hangs up at the first request."""
    (directory / "server.pem").write_text(server.key_pem + server.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.pem")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        address = Address("localhost", listening.sockets[0].getsockname()[1])
        with pytest.raises(BrokerError) as caught:
            await BrokerConnection.open(address, ClientSettings((), connect_timeout=20.0, tls=Tls(trusted)))
        return caught.value
    finally:
        listening.close()


async def test_the_root_an_issuer_between_or_the_server_itself_may_be_trusted(tmp_path: Path) -> None:
    root = Issued("root")
    between = Issued("between", root)
    server = Issued("server", between, authority=False)
    for trusted in (between.pem, server.pem, root.pem + between.pem):
        error = await greet(server, trusted, tmp_path)
        assert error.trouble is ConnectionProblem.CLOSED, "TLS stood: the peer hung up on the request"


async def test_nobody_else_is_trusted(tmp_path: Path) -> None:
    error = await greet(Issued("server", Issued("root")), Issued("another root").pem, tmp_path)
    assert error.trouble is ConnectionProblem.TLS
    assert "the certificate is not accepted" in error.detail
