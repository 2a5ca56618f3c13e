"""The ``sasl.*`` keys of a client.properties file, ``sasl.jaas.config`` among them: one login module with its
options (Kafka's JaasConfig, java.io.StreamTokenizer).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from backends.live.client.oauth import LIFETIME, ClientCredentials, TokenError, file_of, from_file, unsecured
from backends.live.client.properties import Properties, PropertiesError, Property
from backends.live.client.sasl import MECHANISMS, Sasl, TokenSource
from backends.live.client.secret import Secret

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
_CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
_CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105 - the key's name
_STRING, _NUMBER, _LIST = (f"unsecuredLogin{kind}Claim_" for kind in ("String", "Number", "List"))
_EXTENSION = "unsecuredLoginExtension_"


_TOKEN_FILE = f"{_URL}=file:///PATH with a token that another program keeps fresh"
_OTHER_TOKEN = f"use {_URL}=https://… with clientId and clientSecret, or {_TOKEN_FILE}"
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
    "sasl.oauthbearer.jwt.retriever.class": (
        "ClientCredentialsJwtRetriever",
        "DefaultJwtRetriever",
        "FileJwtRetriever",
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
    if mechanism == "OAUTHBEARER":
        _refuse_other_classes(properties)
    given = properties.get("sasl.jaas.config")
    if given is None:
        if mechanism == "OAUTHBEARER" and _CLIENT_ID in properties:
            return Sasl(mechanism, token=_token(properties, LoginModule("", {}), None))
        raise PropertiesError(f"{_place(properties)}: security.protocol={protocol} needs sasl.jaas.config")
    try:
        module = parse_jaas(given.text)
    except JaasError as error:
        raise PropertiesError(f"{given.where}: sasl.jaas.config: {error}") from None
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
    if mechanism in MECHANISMS:
        return mechanism
    if mechanism != "GSSAPI":
        raise PropertiesError(
            f"{where}: sasl.mechanism is one of {', '.join(MECHANISMS)}; {mechanism[:60]!r} is not supported"
            f"{_instead(properties)}"
        )
    unset = "" if given else f"security.protocol={protocol} without sasl.mechanism means GSSAPI: "
    raise PropertiesError(
        f"{where}: {unset}GSSAPI needs the gssapi package and a Kerberos ticket, and is not supported here;"
        f" use {', '.join(MECHANISMS)}"
    )


def _instead(properties: Properties) -> str:
    handler = properties.get("sasl.client.callback.handler.class")
    if handler is None:
        return ""
    return (
        f", nor its class {handler.text[:200]!r}; where the brokers offer OAUTHBEARER too, use {_TOKEN_FILE}"
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
