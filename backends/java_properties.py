"""The file format of Java's properties (java.util.Properties.load): client.properties, meta.properties."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_CODE_UNITS = 4
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{4}")


class JavaPropertiesError(ValueError):
    """Text that is no properties file, and the number of the ``line``. The message shows nothing of the text."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def java_properties(text: str) -> Iterator[tuple[int, str, str]]:
    """(number of its line, key, value) of each entry, in the order of the file; of a key that comes twice the last
    counts. Raises JavaPropertiesError.
    """
    for number, line in _logical_lines(text):
        end, start = _split(line)
        yield number, _unescape(line[:end], number), _unescape(line[start:], number)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are neither blank nor comments, continuations joined, with the number of their first line."""
    first, parts = 0, list[str]()
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = natural.lstrip(_BLANK)
        if not parts:
            if not line or line[0] in "#!":
                continue
            first = number
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        line = line[:-1] if continued else line
        if line or parts:  # a lone backslash starts nothing: a comment may follow it
            parts.append(line)
        if parts and not continued:
            yield first, "".join(parts)
            parts = []
    if parts:
        yield first, "".join(parts)


def _split(line: str) -> tuple[int, int]:
    """Where the key ends and where the value starts."""
    end, escaped = len(line), False
    for at, char in enumerate(line):
        if not escaped and (char in "=:" or char in _BLANK):
            end = at
            break
        escaped = char == "\\" and not escaped
    start = end + len(line[end:]) - len(line[end:].lstrip(_BLANK))
    if start < len(line) and line[start] in "=:":
        start += 1
    return end, start + len(line[start:]) - len(line[start:].lstrip(_BLANK))


def _unescape(raw: str, line: int) -> str:
    if "\\" not in raw:
        return raw
    out: list[str] = []
    at = 0
    while at < len(raw):
        char = raw[at]
        at += 1
        if char != "\\":
            out.append(char)
            continue
        escape, at = raw[at : at + 1], at + 1
        if escape != "u":
            out.append(_ESCAPES.get(escape, escape))
            continue
        digits, at = raw[at : at + _CODE_UNITS], at + _CODE_UNITS
        if not _HEXADECIMAL.fullmatch(digits):
            raise JavaPropertiesError(line, "\\u is not followed by four hexadecimal digits")
        out.append(chr(int(digits, 16)))
    return _join_surrogates("".join(out))


def _join_surrogates(text: str) -> str:
    # Java's characters are UTF-16 code units: two escapes may be one character.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
