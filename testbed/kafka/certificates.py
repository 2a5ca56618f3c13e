"""A certificate authority for one cluster, and the certificates it issues, as PEM and PKCS#12 files."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

STORE_PASSWORD = "changeit"  # noqa: S105 - a cluster for tests, on loopback
_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Identity:
    """Files of one certificate; ``keystore`` is PEM with key and chain, ``pkcs12`` opens with STORE_PASSWORD."""

    certificate: Path
    key: Path
    keystore: Path
    pkcs12: Path


class Authority:
    """Issues certificates that are valid from yesterday for 30 days; ``directory`` has one set for each name."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = _name("ktriage testbed authority")
        self._certificate = (
            _builder(subject, subject, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = directory / "authority.pem"
        self.certificate.write_bytes(_pem(self._certificate))
        self.truststore = directory / "authority.p12"
        """The authority as a PKCS#12 trust store that Java opens with STORE_PASSWORD."""
        # Java trusts an entry without a key only if it has Oracle's attribute; this function writes it.
        self.truststore.write_bytes(
            pkcs12.serialize_java_truststore(
                [pkcs12.PKCS12Certificate(self._certificate, b"authority")],
                serialization.BestAvailableEncryption(STORE_PASSWORD.encode()),
            )
        )

    def issue(self, common_name: str) -> Identity:
        """A certificate for a broker on loopback or a client of that name; the same one when asked again."""
        stem = self._directory / common_name
        made = Identity(
            stem.with_suffix(".crt"),
            stem.with_suffix(".key"),
            stem.with_suffix(".pem"),
            stem.with_suffix(".p12"),
        )
        if made.pkcs12.exists():
            return made
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(common_name, key)
        key_pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        made.key.touch(0o600)
        made.key.write_bytes(key_pem)
        made.certificate.write_bytes(_pem(certificate))
        made.keystore.touch(0o600)
        made.keystore.write_bytes(key_pem + _pem(certificate) + _pem(self._certificate))
        made.pkcs12.write_bytes(
            pkcs12.serialize_key_and_certificates(
                common_name.encode(),
                key,
                certificate,
                [self._certificate],
                serialization.BestAvailableEncryption(STORE_PASSWORD.encode()),
            )
        )
        return made

    def _sign(self, common_name: str, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
        hosts = [x509.IPAddress(ipaddress.IPv4Address("127.0.0.1")), x509.DNSName("localhost")]
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return (
            _builder(_name(common_name), self._certificate.subject, key.public_key())
            .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            .add_extension(x509.ExtendedKeyUsage(both), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + 30 * _DAY)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
