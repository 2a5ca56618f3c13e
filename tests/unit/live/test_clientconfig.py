"""A client.properties file of Kafka's tools becomes settings; what is wrong in it is told without its secrets."""

from __future__ import annotations

import base64
import json
import ssl
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from backends.live.client import client_config
from backends.live.client.addresses import Address
from backends.live.client.client_config import load_settings
from backends.live.client.jwt_bearer import JwtBearer
from backends.live.client.kerberos import KerberosLogin
from backends.live.client.properties import PropertiesError
from backends.live.client.sasl import Sasl
from backends.live.client.settings import ClientSettings

SECRET = "hunter2"
SCRAM = (
    f'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="{SECRET}";'
)
SASL_PLAIN = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
KERBEROS = "security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n"
TOKENS = (
    "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
    "sasl.oauthbearer.token.endpoint.url=https://idp.example/token\n"
)
JWT_BEARER = (
    "sasl.oauthbearer.jwt.retriever.class=org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
)


class Load:
    """Writes a client.properties file and loads it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self, text: str, bootstrap: tuple[Address, ...] = ()) -> ClientSettings:
        self._file.write_text(text)
        return load_settings(self._file, bootstrap)

    def sasl(self, text: str) -> Sasl:
        sasl = self(text).sasl
        assert sasl is not None
        return sasl


@pytest.fixture
def load(tmp_path: Path) -> Load:
    return Load(tmp_path / "client.properties")


def test_without_a_file_it_is_plaintext_with_short_time_outs() -> None:
    settings = load_settings(None, [Address("broker", 9092)])
    assert settings == ClientSettings((Address("broker", 9092),))
    assert (settings.security_protocol, settings.connect_timeout) == ("PLAINTEXT", 3.0)


def test_scram_over_tls(load: Load) -> None:
    settings = load(
        f"bootstrap.servers=a:1,[::1]:2\nsecurity.protocol=sasl_ssl\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={SCRAM}\n"
        "client.id = me\nrequest.timeout.ms=1500\nsocket.connection.setup.timeout.ms=250\n"
        "ssl.endpoint.identification.algorithm=\nssl.enabled.protocols=TLSv1.2\n"
    )
    assert settings.bootstrap == (Address("a", 1), Address("::1", 2))
    assert (settings.client_id, settings.request_timeout, settings.connect_timeout) == ("me", 1.5, 0.25)
    assert settings.security_protocol == "SASL_SSL"
    assert settings.sasl is not None
    assert (settings.sasl.mechanism, settings.sasl.username) == ("SCRAM-SHA-512", "alice")
    assert settings.sasl.password is not None
    assert settings.sasl.password.reveal() == SECRET
    assert settings.tls is not None
    assert not settings.tls.check_names
    assert (settings.tls.lowest, settings.tls.highest) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)
    assert SECRET not in repr(settings)
    assert settings.warnings == ()


def test_the_command_lines_servers_go_before_the_files(load: Load) -> None:
    assert load("bootstrap.servers=a:1", (Address("b", 2),)).bootstrap == (Address("b", 2),)


def test_keys_that_do_not_matter_are_silent_and_unknown_ones_are_told(load: Load) -> None:
    settings = load(
        "default.api.timeout.ms=1\nacks=all\nretries=3\nssl.cipher.suites=X\nssl.truststor.location=y\n"
    )
    assert [w.partition("client.properties")[2] for w in settings.warnings] == [
        ":4: ssl.cipher.suites is not used here",
        ":5: ssl.truststor.location is not used here",
    ]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("security.protocol=TLS", 1, "security.protocol is one of PLAINTEXT, SSL"),
        ("\nbootstrap.servers=a:b", 2, "bootstrap.servers: 'a:b' is not an address: expected host:port"),
        ("request.timeout.ms=soon", 1, "request.timeout.ms: expected a number of milliseconds above 0"),
        ("request.timeout.ms=0", 1, "request.timeout.ms: expected a number of milliseconds above 0"),
        (
            f"{KERBEROS}sasl.jaas.config=ScramLoginModule required;",
            3,
            "GSSAPI needs com.sun.security.auth.module.Krb5L",
        ),
        (
            f"{KERBEROS}sasl.jaas.config=Krb5LoginModule required useKeyTab=true;",
            3,
            "useKeyTab=true needs the options keyTab and principal",
        ),
        ("security.protocol=SASL_SSL\nsasl.mechanism=DIGEST-MD5", 2, "sasl.mechanism is one of PLAIN"),
        (
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN",
            1,
            "SASL_PLAINTEXT needs sasl.jaas.config",
        ),
        (
            f'{SASL_PLAIN}sasl.jaas.config=M required password="{SECRET}";',
            3,
            "PLAIN needs the options username and password",
        ),
        (
            f'{SASL_PLAIN}sasl.jaas.config=M required password="{SECRET}',
            3,
            "sasl.jaas.config: a character at position 21 is out of place",
        ),
        (
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.jaas.config={OAUTH};",
            3,
            "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url",
        ),
        (
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            f"sasl.oauthbearer.token.endpoint.url=https://x/\nsasl.jaas.config={OAUTH} clientId=a;",
            4,
            "needs clientId and clientSecret",
        ),
        (
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            f"sasl.oauthbearer.token.endpoint.url=ftp://x/\nsasl.jaas.config={OAUTH};",
            3,
            "expected an http, https or file URL",
        ),
        (
            f"security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.jaas.config={OAUTH};\n"
            "sasl.login.callback.handler.class=io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
            4,
            "JaasClientOauthLoginCallbackHandler' is not supported, since it is a class that only Java can run: use"
            " sasl.oauthbearer.token.endpoint.url=",
        ),
        (
            f"security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.jaas.config={OAUTH};\n{JWT_BEARER}",
            4,
            "JwtBearerJwtRetriever needs sasl.oauthbearer.token.endpoint.url=https://",
        ),
        (
            f"{TOKENS}{JWT_BEARER}",
            4,
            "needs sasl.oauthbearer.assertion.private.key.file, or sasl.oauthbearer.assertion.file",
        ),
        (
            f"{TOKENS}{JWT_BEARER}\nsasl.oauthbearer.assertion.private.key.file=/no/such.pem",
            4,
            "JwtBearerJwtRetriever: /no/such.pem cannot be read (FileNotFoundError)",
        ),
        (
            f"{TOKENS}{JWT_BEARER}\nsasl.oauthbearer.assertion.private.key.file=/no/such.pem\n"
            "sasl.oauthbearer.assertion.algorithm=HS256",
            6,
            "sasl.oauthbearer.assertion.algorithm is one of RS256, ES256",
        ),
        (
            f"{TOKENS}{JWT_BEARER}\nsasl.oauthbearer.assertion.private.key.file=/no/such.pem\n"
            "sasl.oauthbearer.assertion.claim.exp.seconds=soon",
            6,
            "sasl.oauthbearer.assertion.claim.exp.seconds must be a number of seconds",
        ),
        (
            f"security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.jaas.config={OAUTH};\n"
            "sasl.login.callback.handler.class=software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler\n"
            "sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
            4,
            "iam.IAMOAuthBearerLoginCallbackHandler' is not supported, since it is a class that only Java can run",
        ),
        (
            "security.protocol=SASL_SSL\nsasl.mechanism=AWS_MSK_IAM\n"
            "sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler",
            2,
            "'AWS_MSK_IAM' is not supported, nor its class 'software.amazon.msk.auth.iam.IAMClientCallbackHandler'",
        ),
        (
            f"security.protocol=SASL_SSL\nsasl.mechanisms=PLAIN\nsasl.username=u\nsasl.password={SECRET}",
            2,
            "sasl.mechanisms is a key of librdkafka's clients, and this file is read as those of Java's: write"
            " sasl.mechanism",
        ),
        (
            f"{SASL_PLAIN}sasl.username=u\nsasl.password={SECRET}",
            3,
            "sasl.username is a key of librdkafka's clients",
        ),
        ("security.protocol=SSL\nssl.truststore.location=/no/such.p12", 2, "/no/such.p12 cannot be read"),
        (
            "security.protocol=SSL\nssl.enabled.protocols=SSLv3",
            2,
            "allowed are TLSv1, TLSv1.1, TLSv1.2, TLSv1.3",
        ),
        ("security.protocol=SSL\nssl.enabled.protocols=TLSv1.3\nssl.protocol=TLSv1.2", 3, "leaves none"),
        (
            "security.protocol=SSL\nssl.truststore.certificates=x\nssl.truststore.location=y",
            3,
            "exclude each other",
        ),
        (
            "security.protocol=SSL\nssl.truststore.certificates=no pem",
            2,
            "the trusted certificates cannot be read",
        ),
        (f"security.protocol=SSL\nssl.keystore.key={SECRET}", 2, "needs ssl.keystore.certificate.chain"),
        (
            f"security.protocol=SSL\nssl.keystore.key={SECRET}\nssl.keystore.certificate.chain=x",
            2,
            "the key and certificate cannot be used",
        ),
    ],
)
def test_what_is_wrong_is_one_line_with_file_and_line(
    load: Load, monkeypatch: pytest.MonkeyPatch, text: str, line: int, what: str
) -> None:
    # The extra of Kerberos may be missing where this runs.
    monkeypatch.setattr(client_config, "find_spec", lambda _name: object())
    with pytest.raises(PropertiesError) as caught:
        load(text)
    message = str(caught.value)
    assert f"client.properties:{line}: " in message
    assert what in message
    assert "\n" not in message
    assert SECRET not in message
    assert SECRET not in shown_with_locals(caught.value)


def shown_with_locals(error: BaseException) -> str:
    """The traceback as a crash report with local variables has it, the test's own frames left out."""
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    told.stack = traceback.StackSummary.from_list(f for f in told.stack if "/backends/" in f.filename)
    assert told.stack
    return "".join(told.format())


async def test_an_unsecured_token_carries_the_claims(load: Load) -> None:
    sasl = load.sasl(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={OAUTH} unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_n="2" '
        'unsecuredLoginListClaim_scope=",a,b" unsecuredLoginExtension_x="y" unsecuredLoginLifetimeSeconds="60";'
    )
    assert sasl.token is not None
    token = (await sasl.token()).reveal()
    claims = decode(token.split(".")[1])
    assert decode(token.split(".")[0]) == {"alg": "none"}
    assert (claims["sub"], claims["n"], claims["scope"]) == ("alice", 2.0, ["a", "b"])
    assert claims["exp"] - claims["iat"] == 60
    assert sasl.extensions == (("x", "y"),)


def decode(part: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


async def test_a_token_file_is_read_again_each_time(load: Load, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    sasl = load.sasl(
        "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.oauthbearer.token.endpoint.url=file://{token}\nsasl.jaas.config={OAUTH};"
    )
    source = sasl.token
    assert source is not None
    assert (await source()).reveal() == "first"
    token.write_text("second")
    assert (await source()).reveal() == "second"
    token.unlink()
    with pytest.raises(ValueError, match="token cannot be read"):
        await source()


def test_variables_come_from_the_providers_that_are_named(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    (tmp_path / "names.properties").write_text("user=alice\n")
    provider = "org.apache.kafka.common.config.provider"
    text = (
        f"config.providers=e,f\nconfig.providers.e.class={provider}.EnvVarConfigProvider\n"
        f"config.providers.f.class={provider}.FileConfigProvider\n"
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config=M required username="${{f:{tmp_path}/names.properties:user}}" \\\n'
        ' password="${e:KAFKA_PASSWORD}";'
    )
    sasl = load.sasl(text)
    assert sasl.password is not None
    assert (sasl.username, sasl.password.reveal()) == ("alice", SECRET)
    with pytest.raises(PropertiesError, match=r":6: sasl.jaas.config: the e provider has no \$\{e:NOTHING\}"):
        load(text.replace("KAFKA_PASSWORD", "NOTHING"))
    with pytest.raises(PropertiesError, match=r":2: config.providers.e.class: known here are "):
        load(text.replace("EnvVar", "Vault"))
    assert load("client.id=${e:HOME}").client_id == "${e:HOME}"


async def test_a_command_gives_the_token_and_needs_nothing_else(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
        "sasl.login.callback.handler.class=software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.command={sys.executable} -c \"print('a token'.split()[1])\"\n"
    )
    sasl = load_settings(config).sasl
    assert sasl is not None and sasl.token is not None
    assert (await sasl.token()).reveal() == "token"


@pytest.mark.parametrize(("given", "said"), [("", "is empty"), ("'a", "No closing quotation")])
def test_a_command_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, given: str, said: str) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.command={given}\n"
    )
    with pytest.raises(PropertiesError, match=f":3: sasl.oauthbearer.token.command.*{said}"):
        load_settings(config)


def test_the_files_of_kip_1139s_clients_need_no_jaas_options(load: Load, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_bytes(
        generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    sasl = load.sasl(
        f"{TOKENS}sasl.jaas.config={OAUTH} ;\n{JWT_BEARER}\nsasl.oauthbearer.assertion.private.key.file={key}\n"
        "sasl.oauthbearer.assertion.algorithm=RS256\nsasl.oauthbearer.assertion.claim.iss=me\n"
    )
    assert isinstance(sasl.token, JwtBearer) and sasl.mechanism == "OAUTHBEARER"


@pytest.mark.parametrize(
    ("options", "login"),
    [
        ("useTicketCache=true", KerberosLogin("kafka")),
        (
            'useKeyTab=true keyTab="/etc/ada.keytab" principal="ada@EXAMPLE" serviceName="streams"',
            KerberosLogin("streams", "ada@EXAMPLE", Path("/etc/ada.keytab")),
        ),
        ('ticketCache="file:/run/tickets"', KerberosLogin("kafka", cache=Path("/run/tickets"))),
    ],
)
def test_kerberos_logins(
    load: Load, monkeypatch: pytest.MonkeyPatch, options: str, login: KerberosLogin
) -> None:
    monkeypatch.setattr(client_config, "find_spec", lambda _name: object())
    module = "com.sun.security.auth.module.Krb5LoginModule required"
    assert load.sasl(f"{KERBEROS}sasl.jaas.config={module} {options};").kerberos == login
