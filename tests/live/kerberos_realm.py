"""A Kerberos KDC on loopback, MIT's: a realm of its own, a key for the brokers and one for each user."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.kafka import wait_until
from testbed.kafka.ports import PortReservation

REALM = "KTRIAGE.TEST"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_SBIN = "/usr/sbin:/usr/bin:/sbin:/bin"


def installed() -> bool:
    """Whether this machine has a KDC (Debian: krb5-kdc, krb5-admin-server, krb5-user)."""
    return all(shutil.which(program, path=_SBIN) for program in PROGRAMS)


@dataclass(frozen=True, slots=True)
class Realm:
    """``settings`` is its krb5.conf; ``environment`` is what programs need to use it."""

    directory: Path
    settings: Path
    environment: dict[str, str]

    def keytab(self, principal: str) -> Path:
        """A new key of that principal, in a file of its own."""
        path = self.directory / f"{principal.replace('/', '_')}.keytab"
        self.run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
        self.run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {path} {principal}")
        return path

    def tickets(self, principal: str, keytab: Path) -> Path:
        """What kinit gets, in a cache of its own."""
        cache = self.directory / f"{principal}.tickets"
        self.run("kinit", "-k", "-t", str(keytab), "-c", str(cache), principal)
        return cache

    def run(self, *words: str) -> None:
        """One of the realm's programs, to its end."""
        program = shutil.which(words[0], path=_SBIN)
        assert program is not None, f"{words[0]} is installed"
        ended = subprocess.run(
            (program, *words[1:]), check=False, env=self.environment, capture_output=True, text=True
        )
        assert ended.returncode == 0, f"{words}: {ended.stdout}{ended.stderr}"


@contextmanager
def served_realm(directory: Path) -> Iterator[Realm]:
    """The KDC runs until the end of the block."""
    reserved = PortReservation(1)
    (port,) = reserved.ports
    settings, profile = directory / "krb5.conf", directory / "kdc.conf"
    settings.write_text(
        f"""[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {REALM} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 127.0.0.1 = {REALM}
"""
    )
    profile.write_text(
        f"""[kdcdefaults]
 kdc_listen = ""
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {REALM} = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
  acl_file = {directory}/kadm5.acl
  max_life = 10h
 }}
"""
    )
    environment = {
        "PATH": _SBIN,
        "KRB5_CONFIG": str(settings),
        "KRB5_KDC_PROFILE": str(profile),
        "KRB5CCNAME": f"FILE:{directory}/nobody",
    }
    realm = Realm(directory, settings, environment)
    realm.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "only-for-this-test")
    program = shutil.which("krb5kdc", path=_SBIN)
    assert program is not None
    log = directory / "kdc.log"
    with log.open("wb") as output:
        kdc = subprocess.Popen((program, "-n", "-r", REALM), env=environment, stdout=output, stderr=output)
        try:
            wait_until(lambda: _answers(port) or kdc.poll() is not None, "the KDC")
            assert kdc.poll() is None, log.read_text()
            yield realm
        finally:
            kdc.terminate()
            kdc.wait()
            reserved.release()


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
