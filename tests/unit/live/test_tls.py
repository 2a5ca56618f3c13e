"""Key stores and trust stores, and whom a connection trusts, as in Java: against a TLS server on loopback."""

from __future__ import annotations

import asyncio
import datetime
import shlex
import shutil
import ssl
import subprocess
from contextlib import chdir
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from backends.live.client.addresses import Address
from backends.live.client.client_config import load_settings
from backends.live.client.secret import Secret
from backends.live.client.settings import ClientSettings
from backends.live.client.tls import (
    StoreError,
    Tls,
    key_pair,
    keytool,
    read_store,
    trusted_certificates,
    valid_until,
)
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem

PASSWORD = "store-password"


def run(*arguments: str) -> None:
    keytool_path = shutil.which("keytool")
    assert keytool_path, "Java's keytool is part of what the tests need"
    briefly = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
    subprocess.run([keytool_path, *briefly, *arguments], check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """key.jks, key.p12 and trust.p12 (a certificate without a key, as Java marks one as trusted)."""
    directory = tmp_path_factory.mktemp("a store's directory")
    for kind, name in (("JKS", "key.jks"), ("PKCS12", "key.p12")):
        run(
            *("-genkeypair", "-alias", "me", "-dname", "CN=me", "-keyalg", "EC", "-validity", "2"),
            *("-keystore", str(directory / name), "-storetype", kind),
            *("-storepass", PASSWORD, "-keypass", PASSWORD),
        )
    run(
        *("-exportcert", "-alias", "me", "-keystore", str(directory / "key.p12"), "-storepass", PASSWORD),
        *("-file", str(directory / "me.der")),
    )
    run(
        *("-importcert", "-noprompt", "-alias", "me", "-file", str(directory / "me.der")),
        *("-keystore", str(directory / "trust.p12"), "-storetype", "PKCS12", "-storepass", PASSWORD),
    )
    return directory


def test_a_jks_store_is_refused_with_the_line_that_converts_it(stores: Path) -> None:
    with pytest.raises(StoreError) as caught:
        read_store(stores / "key.jks")
    message = str(caught.value)
    assert keytool(stores / "key.jks") in message
    command = shlex.split(message[message.index("keytool") :])
    passwords = ("-srcstorepass", PASSWORD, "-deststorepass", "new-password")
    target = Path(command[command.index("-destkeystore") + 1])
    target.unlink()  # the PKCS12 store of the same name, made above
    run(*command[1:], *passwords)
    Tls(identity=key_pair(read_store(target), Secret("new-password"), None)).context("localhost")


def test_a_pkcs12_store_of_keytool_is_read(stores: Path) -> None:
    trusted = trusted_certificates(read_store(stores / "trust.p12"), Secret(PASSWORD))
    assert trusted.count("BEGIN CERTIFICATE") == 1
    context = Tls(trusted=trusted).context("localhost")
    assert context.cert_store_stats()["x509"] == 1


@pytest.mark.parametrize("password", [Secret("wrong"), None])
def test_a_wrong_password_is_told_without_showing_it(stores: Path, password: Secret | None) -> None:
    with pytest.raises(StoreError, match="password") as caught:
        trusted_certificates(read_store(stores / "trust.p12"), password)
    assert PASSWORD not in str(caught.value)


def test_a_trust_store_is_no_key_store(stores: Path) -> None:
    with pytest.raises(StoreError, match="no private key"):
        key_pair(read_store(stores / "trust.p12"), Secret(PASSWORD), None)


def test_another_password_for_the_key_alone_is_refused(stores: Path) -> None:
    with pytest.raises(StoreError, match=r"ssl\.key\.password differs"):
        key_pair(read_store(stores / "trust.p12"), Secret(PASSWORD), Secret("other"))


def test_what_is_no_store_at_all_is_told(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"hello")
    with pytest.raises(StoreError, match="neither PEM nor PKCS12"):
        trusted_certificates(read_store(tmp_path / "store"), Secret(PASSWORD))
    with pytest.raises(StoreError, match="cannot be read: Is a directory"):
        read_store(tmp_path)


def test_an_encrypted_pem_key_needs_its_password(stores: Path, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
    )

    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode()))
    certificates = trusted_certificates(read_store(stores / "trust.p12"), Secret(PASSWORD))
    data = pem + certificates.encode()
    with pytest.raises(StoreError, match=r"ssl\.key\.password is not set"):
        Tls(identity=key_pair(data, None, None)).context("localhost")
    with pytest.raises(StoreError, match=r"is ssl\.key\.password right"):
        Tls(identity=key_pair(data, None, Secret("wrong"))).context("localhost")


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


def test_blanks_count_as_line_ends_in_pem_as_in_a_properties_file_with_continued_lines(
    stores: Path,
) -> None:
    certificates = trusted_certificates(read_store(stores / "trust.p12"), Secret(PASSWORD))
    inline = " ".join(certificates.split("\n"))
    assert trusted_certificates(inline.encode(), None).split() == certificates.split()
    Tls(trusted=trusted_certificates(inline.encode(), None)).context("localhost")


def certificate_until(ends: datetime.datetime) -> str:
    """A key and its certificate, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "client")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ends - datetime.timedelta(days=400))
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate.public_bytes(
        Encoding.PEM
    )
    return pem.decode()


@pytest.mark.parametrize("year", [1999, 2026, 2049, 2050])
def test_a_certificate_tells_when_it_expires(year: int) -> None:
    ends = datetime.datetime(year, 3, 4, 5, 6, 7, tzinfo=datetime.UTC)
    assert valid_until(certificate_until(ends)) == ends
    assert valid_until("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----") is None
    assert valid_until("") is None


@pytest.mark.parametrize(
    ("days", "said"), [(-2, "expired on"), (3, "the client certificate expires on"), (30, "")]
)
def test_an_expired_client_certificate_is_told_with_its_date(days: int, said: str, tmp_path: Path) -> None:
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    (tmp_path / "client.pem").write_text(certificate_until(ends))
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=SSL\n# of the client\nssl.keystore.location=client.pem\n")
    with chdir(tmp_path):
        warnings = " ".join(load_settings(config).warnings)
    assert (f"{config}:3: the client certificate" in warnings) == bool(said)
    assert said in warnings and (not said or f"{ends:%Y-%m-%d %H:%M} UTC" in warnings)
