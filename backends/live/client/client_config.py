"""From a client.properties file to settings: the keys that Kafka's tools take."""

from __future__ import annotations

import re
import shlex
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from backends.live.client.addresses import Address, parse_addresses
from backends.live.client.jwt_bearer import (
    ALGORITHMS,
    EXPIRES_AFTER,
    VALID_BEFORE,
    AssertionFile,
    JwtBearer,
    SignedAssertion,
)
from backends.live.client.kerberos import SERVICE, KerberosLogin
from backends.live.client.oauth import (
    LIFETIME,
    ClientCredentials,
    TokenCommand,
    TokenError,
    file_of,
    from_file,
    unsecured,
)
from backends.live.client.properties import (
    Properties,
    PropertiesError,
    Property,
    read_properties,
    resolve_variables,
)
from backends.live.client.sasl import MECHANISMS, Sasl, TokenSource
from backends.live.client.secret import Secret
from backends.live.client.settings import CONNECT_TIMEOUT, REQUEST_TIMEOUT, ClientSettings
from backends.live.client.tls import (
    VERSIONS,
    KeyPair,
    StoreError,
    Tls,
    key_pair,
    pem_in_lines,
    read_store,
    trusted_certificates,
    valid_until,
)
from recovery.wording.missing_extra import missing_extra

# The ``sasl.*`` keys of a client.properties file, ``sasl.jaas.config`` among them: one login module with
# its options (Kafka's JaasConfig, java.io.StreamTokenizer).

_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""(?P<skip>[\x00-\x20]+|//[^\r\n]*|/\*.*?\*/)
      | (?P<word>[A-Za-z_$\xa0-\uffff][A-Za-z0-9._$\-\xa0-\uffff]*)
      | (?P<quoted>"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*')
      | (?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\x07", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\x0b"}


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A login module's simple name (``ScramLoginModule``) and its options."""

    name: str
    options: Mapping[str, Secret]

    def get(self, option: str) -> str | None:
        """The option's value; None where it is not there."""
        value = self.options.get(option)
        return None if value is None else value.reveal()


class JaasError(ValueError):
    """What is wrong with a sasl.jaas.config, without any of its text."""


def parse_jaas(text: str) -> LoginModule:
    """Parse ``MODULE required option="value" …;``. Raises JaasError."""
    tokens = list(_tokens(text))
    words = [token for kind, token in tokens[:2] if kind == "word"]
    if len(words) < 2 or words[1].lower() not in _FLAGS:
        raise JaasError("expected a login module and a control flag, as in: ScramLoginModule required …;")
    options: dict[str, Secret] = {}
    at = 2
    while at < len(tokens) and tokens[at] != ("mark", ";"):
        if len(tokens) < at + 3 or tokens[at][0] == "mark" or tokens[at + 1] != ("mark", "="):
            raise JaasError(f'expected option="value" after {len(options)} option(s)')
        if tokens[at + 2][0] == "mark":
            raise JaasError(f"option number {len(options) + 1} has no value")
        options[tokens[at][1]] = Secret(tokens[at + 2][1])
        at += 3
    if at == len(tokens):
        raise JaasError("it does not end with a semicolon")
    if at + 1 < len(tokens):
        raise JaasError("it has more than one login module")
    return LoginModule(words[0].rpartition(".")[2], options)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise JaasError(f"a character at position {at + 1} is out of place: values go into double quotes")
        at = found.end()
        kind = str(found.lastgroup)
        if kind == "quoted":
            yield "word", _ESCAPE.sub(_unescape, found[0][1:-1])
        elif kind != "skip":
            yield kind, found[0]


def _unescape(found: re.Match[str]) -> str:
    escape = found[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else _ESCAPED.get(escape, escape)


_URL = "sasl.oauthbearer.token.endpoint.url"
_COMMAND = "sasl.oauthbearer.token.command"
"""A key of ktriage, which Kafka's tools pass over: what AWS, Azure, GCP and others print a token with."""
_CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
_CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105 - the key's name
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_JWT_BEARER = "JwtBearerJwtRetriever"
_STRING, _NUMBER, _LIST = (f"unsecuredLogin{kind}Claim_" for kind in ("String", "Number", "List"))
_EXTENSION = "unsecuredLoginExtension_"


_TOKEN_FILE = f"{_URL}=file:///PATH with a token that another program keeps fresh"
_OTHER_TOKEN = (
    f"use {_URL}=https://… with clientId and clientSecret,"
    f" {_COMMAND}=COMMAND that prints a token, or {_TOKEN_FILE}"
)
_CLASSES = {
    "sasl.login.callback.handler.class": (
        "OAuthBearerLoginCallbackHandler",
        "OAuthBearerUnsecuredLoginCallbackHandler",
    ),
    "sasl.client.callback.handler.class": (
        "OAuthBearerSaslClientCallbackHandler",
        "SaslClientCallbackHandler",
    ),
    "sasl.login.class": ("DefaultLogin",),
    _RETRIEVER: (
        "ClientCredentialsJwtRetriever",
        "DefaultJwtRetriever",
        "FileJwtRetriever",
        "JwtBearerJwtRetriever",
    ),
}
"""Kafka's own classes whose work is done here too. Any other is a program of its own, which only Java can run."""
_LIBRDKAFKA = {
    "sasl.mechanisms": ("sasl.mechanism", ""),
    "sasl.username": ("sasl.jaas.config", ", option username"),
    "sasl.password": ("sasl.jaas.config", ", option password"),
    "sasl.oauthbearer.method": (_URL, ", and sasl.jaas.config"),
    "sasl.oauthbearer.client.id": (_URL, ", and clientId in sasl.jaas.config"),
}
"""Keys of librdkafka's clients, and Java's for the same."""


def read_sasl(properties: Properties, protocol: str) -> Sasl:
    """The mechanism and credentials. Raises PropertiesError."""
    _refuse_others_keys(properties)
    mechanism = _mechanism(properties, protocol)
    if mechanism == "OAUTHBEARER" and _COMMAND in properties:
        return Sasl(mechanism, token=_token_command(properties[_COMMAND]))
    if mechanism == "OAUTHBEARER":
        _refuse_other_classes(properties)
    given = properties.get("sasl.jaas.config")
    retriever = properties.get(_RETRIEVER)
    if mechanism == "OAUTHBEARER" and retriever is not None and retriever.text.endswith(_JWT_BEARER):
        module = LoginModule("", {}) if given is None else _module(given)
        return Sasl(
            mechanism, token=_jwt_bearer(properties, retriever), extensions=_extensions(properties, module)
        )
    if given is None:
        if mechanism == "OAUTHBEARER" and _CLIENT_ID in properties:
            return Sasl(mechanism, token=_token(properties, LoginModule("", {}), None))
        raise PropertiesError(f"{_place(properties)}: security.protocol={protocol} needs sasl.jaas.config")
    module = _module(given)
    if mechanism == "GSSAPI":
        return Sasl(mechanism, kerberos=_kerberos(properties, module, given))
    if mechanism == "OAUTHBEARER":
        return Sasl(
            mechanism, token=_token(properties, module, given), extensions=_extensions(properties, module)
        )
    username, password = module.get("username"), module.options.get("password")
    if not username or password is None:
        raise PropertiesError(
            f"{given.where}: sasl.jaas.config: {mechanism} needs the options username and password"
        )
    if (module.get("tokenauth") or "").lower() == "true":
        raise PropertiesError(
            f"{given.where}: sasl.jaas.config: delegation tokens (tokenauth) are not supported"
        )
    return Sasl(mechanism, username, password)


_KERBEROS = "Krb5LoginModule"


def _kerberos(properties: Properties, module: LoginModule, given: Property) -> KerberosLogin:
    """The options of Java's Krb5LoginModule that say who logs in."""
    if module.name != _KERBEROS:
        raise PropertiesError(
            f"{given.where}: sasl.jaas.config: GSSAPI needs com.sun.security.auth.module.{_KERBEROS}"
        )

    def path(option: str) -> Path | None:
        text = module.get(option)
        return Path(text.removeprefix("file:").removeprefix("FILE:")) if text else None

    service = module.get("serviceName") or _value(properties, "sasl.kerberos.service.name")
    principal, keytab = module.get("principal") or "", path("keyTab")
    by_keytab = (module.get("useKeyTab") or "").lower() == "true"
    if by_keytab and (keytab is None or not principal):
        raise PropertiesError(
            f"{given.where}: sasl.jaas.config: useKeyTab=true needs the options keyTab and principal"
        )
    return KerberosLogin(service or SERVICE, principal, keytab if by_keytab else None, path("ticketCache"))


def _module(given: Property) -> LoginModule:
    try:
        return parse_jaas(given.text)
    except JaasError as error:
        raise PropertiesError(f"{given.where}: sasl.jaas.config: {error}") from None


_ASSERTION = "sasl.oauthbearer.assertion."


def _jwt_bearer(properties: Properties, retriever: Property) -> TokenSource:
    """The grant of KIP-1139. An assertion is made once, so that a key that cannot be used is told at once."""
    endpoint = properties.get(_URL)
    if endpoint is None or not endpoint.text.startswith(("http://", "https://")):
        where = (endpoint or retriever).where
        raise PropertiesError(f"{where}: {_JWT_BEARER} needs {_URL}=https://…")
    try:
        file_of(endpoint.text)
    except TokenError as error:
        raise PropertiesError(f"{endpoint.where}: {_URL}: {error}") from None
    source = _assertion(properties, retriever)
    try:
        source()
    except TokenError as error:
        raise PropertiesError(f"{retriever.where}: {_JWT_BEARER}: {error}") from None
    return JwtBearer(endpoint.text, source, _value(properties, "sasl.oauthbearer.scope"))


def _assertion(properties: Properties, retriever: Property) -> AssertionFile | SignedAssertion:
    def path(name: str) -> Path | None:
        text = _value(properties, f"{_ASSERTION}{name}")
        return Path(text) if text else None

    ready = path("file")
    if ready is not None:
        return AssertionFile(ready)
    key = path("private.key.file")
    if key is None:
        raise PropertiesError(
            f"{retriever.where}: {_JWT_BEARER} needs {_ASSERTION}private.key.file, or {_ASSERTION}file with an"
            " assertion that another program keeps fresh"
        )
    algorithm = properties.get(f"{_ASSERTION}algorithm")
    if algorithm is not None and algorithm.text.upper() not in ALGORITHMS:
        raise PropertiesError(f"{algorithm.where}: {_ASSERTION}algorithm is one of {', '.join(ALGORITHMS)}")
    passphrase = _secret(properties, f"{_ASSERTION}private.key.passphrase")
    claims = {name: _value(properties, f"{_ASSERTION}claim.{name}") for name in ("aud", "iss", "sub")}
    return SignedAssertion(
        key,
        passphrase,
        algorithm="RS256" if algorithm is None else algorithm.text.upper(),
        claims={name: value for name, value in claims.items() if value},
        template=path("template.file"),
        expires_after=_whole_seconds(properties, f"{_ASSERTION}claim.exp.seconds", EXPIRES_AFTER),
        valid_before=_whole_seconds(properties, f"{_ASSERTION}claim.nbf.seconds", VALID_BEFORE),
        with_id=(_value(properties, f"{_ASSERTION}claim.jti.include") or "").lower() == "true",
    )


def _whole_seconds(properties: Properties, key: str, default: int) -> int:
    given = properties.get(key)
    if given is None:
        return default
    if not given.text.isdecimal():
        raise PropertiesError(f"{given.where}: {key} must be a number of seconds")
    return int(given.text)


def _token_command(given: Property) -> TokenSource:
    try:
        words = shlex.split(given.text)
    except ValueError as error:
        raise PropertiesError(f"{given.where}: {_COMMAND}: {error}") from None
    if not words:
        raise PropertiesError(f"{given.where}: {_COMMAND} is empty")
    return TokenCommand(words)


def _refuse_others_keys(properties: Properties) -> None:
    """Raises PropertiesError where the file has such a key and not Java's."""
    for key, (ours, more) in _LIBRDKAFKA.items():
        if key in properties and ours not in properties:
            raise PropertiesError(
                f"{properties[key].where}: {key} is a key of librdkafka's clients, and this file is read as those"
                f" of Java's: write {ours}{more}"
            )


def _refuse_other_classes(properties: Properties) -> None:
    """Raises PropertiesError with the class that would have got the token."""
    for key, classes in _CLASSES.items():
        given = properties.get(key)
        if given is not None and given.text.rpartition(".")[2] not in classes:
            raise PropertiesError(
                f"{given.where}: {key}={given.text[:200]!r} is not supported, since it is a class that only Java"
                f" can run: {_OTHER_TOKEN}, and remove {key}"
            )


def _mechanism(properties: Properties, protocol: str) -> str:
    given = properties.get("sasl.mechanism")
    mechanism = given.text if given else "GSSAPI"
    where = given.where if given else _place(properties)
    if mechanism not in MECHANISMS:
        raise PropertiesError(
            f"{where}: sasl.mechanism is one of {', '.join(MECHANISMS)}; {mechanism[:60]!r} is not supported"
            f"{_instead(properties)}"
        )
    if mechanism == "GSSAPI" and find_spec("gssapi") is None:
        unset = "" if given else f"security.protocol={protocol} without sasl.mechanism means GSSAPI: "
        needs = missing_extra("GSSAPI (Kerberos) needs", "gssapi", "kerberos")
        raise PropertiesError(f"{where}: {unset}{needs}")
    return mechanism


def _instead(properties: Properties) -> str:
    handler = properties.get("sasl.client.callback.handler.class")
    if handler is None:
        return ""
    return (
        f", nor its class {handler.text[:200]!r}; where the brokers offer OAUTHBEARER too, use"
        f" {_COMMAND}=COMMAND that prints a token, or {_TOKEN_FILE}"
    )


def _place(properties: Properties) -> str:
    return properties["security.protocol"].where


def _token(properties: Properties, module: LoginModule, jaas: Property | None) -> TokenSource:
    endpoint = properties.get(_URL)
    if endpoint is None:
        if jaas is None:
            raise PropertiesError(f"{properties[_CLIENT_ID].where}: {_CLIENT_ID} needs {_URL}")
        return _unsecured(module, jaas)
    try:
        path = file_of(endpoint.text)
    except TokenError as error:
        raise PropertiesError(f"{endpoint.where}: {_URL}: {error}") from None
    if path is not None:
        return from_file(path)
    client_id = module.get("clientId") or _value(properties, _CLIENT_ID)
    secret = module.get("clientSecret") or _value(properties, _CLIENT_SECRET)
    if not client_id or not secret:
        where = (jaas or endpoint).where
        raise PropertiesError(f"{where}: {_URL} needs clientId and clientSecret in sasl.jaas.config")
    scope = module.get("scope") or _value(properties, "sasl.oauthbearer.scope")
    return ClientCredentials(endpoint.text, client_id, Secret(secret), scope)


def _value(properties: Properties, key: str) -> str | None:
    given = properties.get(key)
    return given.text if given else None


def _unsecured(module: LoginModule, jaas: Property) -> TokenSource:
    claims: dict[str, object] = {}
    principal = module.get("unsecuredLoginPrincipalClaimName") or "sub"
    try:
        for option, secret in module.options.items():
            if option.startswith(_STRING):
                claims[option.removeprefix(_STRING)] = secret.reveal()
            elif option.startswith(_NUMBER):
                claims[option.removeprefix(_NUMBER)] = float(secret.reveal())
            elif option.startswith(_LIST):
                listed = secret.reveal()  # its first character separates the items
                claims[option.removeprefix(_LIST)] = listed[1:].split(listed[0]) if listed else []
        lifetime = float(module.get("unsecuredLoginLifetimeSeconds") or LIFETIME)
    except ValueError:
        numbers = f"the values of {_NUMBER}… and unsecuredLoginLifetimeSeconds must be numbers"
        raise PropertiesError(f"{jaas.where}: sasl.jaas.config: {numbers}") from None
    if principal not in claims:
        needs = f"{_URL}, or the option {_STRING}{principal} for an unsecured token"
        raise PropertiesError(f"{jaas.where}: sasl.jaas.config: OAUTHBEARER needs {needs}")
    return unsecured(claims, lifetime)


def _extensions(properties: Properties, module: LoginModule) -> tuple[tuple[str, str], ...]:
    prefix = "extension_" if _URL in properties else _EXTENSION
    return tuple(
        (option.removeprefix(prefix), value.reveal())
        for option, value in module.options.items()
        if option.startswith(prefix)
    )


# The ``ssl.*`` keys of a client.properties file.

_NEWEST_FIRST = ("TLSv1.3", "TLSv1.2", "TLSv1.1", "TLSv1")


def read_tls(properties: Properties) -> Tls:
    """TLS settings; the stores are opened here, so that a wrong password is reported at once.

    Raises PropertiesError.
    """
    identification = properties.get("ssl.endpoint.identification.algorithm")
    lowest, highest = _versions(properties)
    tls = Tls(
        trusted=_trusted(properties),
        identity=_identity(properties),
        check_names=identification is None or bool(identification.text),
        lowest=lowest,
        highest=highest,
    )
    place = next((p.where for k, p in properties.items() if k.startswith("ssl.")), None)
    try:
        tls.context("localhost")
    except StoreError as error:
        raise PropertiesError(f"{place}: {error}") from None
    return tls


def _trusted(properties: Properties) -> str | None:
    inline, location = _one_of(properties, "ssl.truststore.certificates", "ssl.truststore.location")
    if inline is not None:
        return pem_in_lines(inline.text)
    if location is None:
        return None
    try:
        return trusted_certificates(
            read_store(Path(location.text)), _secret(properties, "ssl.truststore.password")
        )
    except StoreError as error:
        raise PropertiesError(f"{location.where}: ssl.truststore.location: {error}") from None


def _identity(properties: Properties) -> KeyPair | None:
    inline, location = _one_of(properties, "ssl.keystore.key", "ssl.keystore.location")
    key_password = _secret(properties, "ssl.key.password")
    if inline is not None:
        chain = properties.get("ssl.keystore.certificate.chain")
        if chain is None:
            raise PropertiesError(
                f"{inline.where}: ssl.keystore.key needs ssl.keystore.certificate.chain beside it"
            )
        return KeyPair(Secret(pem_in_lines(f"{inline.text}\n{chain.text}\n")), key_password)
    if location is None:
        return None
    try:
        password = _secret(properties, "ssl.keystore.password")
        return key_pair(read_store(Path(location.text)), password, key_password)
    except StoreError as error:
        raise PropertiesError(f"{location.where}: ssl.keystore.location: {error}") from None


def _one_of(properties: Properties, inline: str, location: str) -> tuple[Property | None, Property | None]:
    first, second = properties.get(inline), properties.get(location)
    if first is not None and second is not None:
        raise PropertiesError(f"{second.where}: {location} and {inline} exclude each other")
    return first, second


def _secret(properties: Properties, key: str) -> Secret | None:
    given = properties.get(key)
    return Secret(given.text) if given is not None and given.text else None


def _versions(properties: Properties) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    enabled = properties.get("ssl.enabled.protocols")
    names = ["TLSv1.2", "TLSv1.3"]
    if enabled is not None and enabled.text:
        names = [name.strip() for name in enabled.text.split(",")]
        _known(enabled, "ssl.enabled.protocols", names)
    newest = properties.get("ssl.protocol")
    if newest is not None and newest.text not in ("", "TLS"):
        _known(newest, "ssl.protocol", [newest.text])
        allowed = _NEWEST_FIRST[_NEWEST_FIRST.index(newest.text) :]
        names = [name for name in names if name in allowed]
        if not names:
            raise PropertiesError(f"{newest.where}: ssl.protocol leaves none of ssl.enabled.protocols")
    versions = [VERSIONS[name] for name in names]
    return min(versions), max(versions)


def _known(given: Property, key: str, names: list[str]) -> None:
    for name in names:
        if name not in VERSIONS:
            raise PropertiesError(f"{given.where}: {key}: allowed are {', '.join(VERSIONS)}")


T = TypeVar("T")

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def load_settings(path: Path | None, bootstrap: Iterable[Address] = ()) -> ClientSettings:
    """Settings from the file at ``path`` (None: Kafka's defaults); ``bootstrap`` goes before the file's.

    Raises PropertiesError: one line with the file, the line and what to do, and none of its values that may be
    secret. A key that is not known becomes a line in ``warnings``.
    """
    given = tuple(bootstrap)
    if path is None:
        return ClientSettings(bootstrap=given)
    try:
        return settings_from(read_properties(path), given)
    except PropertiesError as error:
        # Without the traceback: its frames hold lines of the file.
        raise PropertiesError(str(error)) from None


def settings_from(properties: Properties, bootstrap: tuple[Address, ...] = ()) -> ClientSettings:
    """As :func:`load_settings`, from properties that were read already."""
    properties = resolve_variables(properties)
    protocol = _protocol(properties.get("security.protocol"))
    settings = ClientSettings(
        bootstrap=bootstrap or _read(properties, "bootstrap.servers", parse_addresses, ()),
        controllers=_read(properties, "bootstrap.controllers", parse_addresses, ()),
        client_id=_read(properties, "client.id", str, "ktriage") or "ktriage",
        connect_timeout=_read(properties, "socket.connection.setup.timeout.ms", _seconds, CONNECT_TIMEOUT),
        request_timeout=_read(properties, "request.timeout.ms", _seconds, REQUEST_TIMEOUT),
        tls=read_tls(properties) if protocol.endswith("SSL") else None,
        sasl=read_sasl(properties, protocol) if protocol.startswith("SASL") else None,
    )
    return replace(settings, warnings=(*_expiry(settings.tls, properties), *_unknown_keys(properties)))


def api_timeout(path: Path) -> float | None:
    """default.api.timeout.ms of the file, in seconds; None: it does not say. Raises PropertiesError."""
    return _read(read_properties(path), "default.api.timeout.ms", _seconds, None)


SOON_DAYS = 14


def _expiry(tls: Tls | None, properties: Properties) -> Iterator[str]:
    """That the client's certificate has expired, or soon will: a broker then only breaks off the handshake."""
    ends = None if tls is None or tls.identity is None else valid_until(tls.identity.pem.reveal())
    if ends is None:
        return
    place = next(p.where for k, p in properties.items() if k.startswith("ssl.keystore."))
    left = ends.timestamp() - time.time()
    when = f"{ends:%Y-%m-%d %H:%M} UTC"
    if left <= 0:
        yield f"{place}: the client certificate expired on {when}: brokers will refuse the connection"
    elif left < SOON_DAYS * 86_400:
        yield f"{place}: the client certificate expires on {when}"


def _protocol(given: Property | None) -> str:
    if given is None:
        return "PLAINTEXT"
    protocol = given.text.upper()
    if protocol not in _PROTOCOLS:
        raise PropertiesError(f"{given.where}: security.protocol is one of {', '.join(_PROTOCOLS)}")
    return protocol


def _read(properties: Properties, key: str, read: Callable[[str], T], default: T) -> T:
    given = properties.get(key)
    if given is None:
        return default
    try:
        return read(given.text)
    except ValueError as error:
        raise PropertiesError(f"{given.where}: {key}: {error}") from None


def _seconds(text: str) -> float:
    if not text.isdecimal() or int(text) == 0:
        raise ValueError("expected a number of milliseconds above 0")
    return int(text) / 1000


def _unknown_keys(properties: Properties) -> Iterable[str]:
    for key, entry in properties.items():
        if not is_known(key):
            yield f"{entry.where}: {key} is not used here"


_USED = frozenset(
    (
        "bootstrap.controllers",
        "bootstrap.servers",
        "client.id",
        # How long brokers are asked that do not answer: console/cli/base/options.py.
        "default.api.timeout.ms",
        "request.timeout.ms",
        "socket.connection.setup.timeout.ms",
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        "ssl.enabled.protocols",
        "ssl.protocol",
    )
)

# Settings of Kafka's own client, producer or consumer that have no effect here.
_OF_NO_MATTER = (
    "acks",
    "auto.",
    "client.dns.lookup",
    "client.rack",
    "compression.",
    "config.providers",
    "connections.max.idle.ms",
    "enable.",
    "group.",
    "key.",
    "metadata.",
    "metric",
    "receive.buffer.bytes",
    "reconnect.",
    "retries",
    "retry.",
    "sasl.kerberos.",
    "sasl.login.",
    "sasl.oauthbearer.",
    "security.providers",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "ssl.keymanager.algorithm",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "value.",
)


def is_known(key: str) -> bool:
    """False for an unknown key, and for a key that would change the connection and is not supported."""
    return key in _USED or key.startswith(_OF_NO_MATTER)
