"""Takes secrets out of what is written: journals, crash files, messages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from recovery.secret_names import NAME_PATTERN, names_secret

REDACTED = "[redacted]"

_PEM = re.compile(r"-----BEGIN [^-]*-----.*?(-----END [^-]*-----|\Z)", re.DOTALL)
# From the key to the end of the line, not to the end of the word: a JAAS line holds several quoted values.
_ASSIGNED = re.compile(rf"""(?im)(\b[\w.\-]*(?:{NAME_PATTERN})[\w.\-]*['"]?\s*[=:]\s*).*$""")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
_URL_USER = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")


def redact(text: str) -> str:
    """The text without what looks like a credential: assignments, PEM blocks, bearer tokens, users in URLs."""
    text = _PEM.sub(REDACTED, text)
    text = _ASSIGNED.sub(lambda found: found.group(1) + REDACTED, text)
    text = _BEARER.sub(lambda found: f"{found.group(1)} {REDACTED}", text)
    return _URL_USER.sub(REDACTED, text)


def redact_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments without what may be a secret: in one argument, or behind an option's name."""
    shown = []
    previous = ""
    for argument in arguments:
        follows = previous.startswith("-") and "=" not in previous and names_secret(previous)
        shown.append(REDACTED if follows else redact(argument))
        previous = argument
    return shown
