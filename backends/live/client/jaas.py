"""``sasl.jaas.config``: one login module with its options (Kafka's JaasConfig, java.io.StreamTokenizer)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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
