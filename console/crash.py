"""Crash files: what happened, for the developers, without any secret.

A traceback never reaches the user, and locals are never written: they hold credentials.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import traceback
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from console.version import version

_HIDDEN = "[redacted]"
_PEM = re.compile(r"-----BEGIN [^-]*-----.*?(-----END [^-]*-----|\Z)", re.DOTALL)
# From the key to the end of the line, not to the end of the word: a JAAS line holds several quoted values.
_ASSIGNED = re.compile(
    r"(?im)(\b[\w.\-]*(?:password|passwd|secret|token|jaas|credential|private.?key|assertion)[\w.\-]*"
    r"['\"]?\s*[=:]\s*).*$"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
_URL_USER = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")


def redact(text: str) -> str:
    """The text without what looks like a credential: assignments, PEM blocks, bearer tokens, users in URLs."""
    text = _PEM.sub(_HIDDEN, text)
    text = _ASSIGNED.sub(lambda found: found.group(1) + _HIDDEN, text)
    text = _BEARER.sub(lambda found: f"{found.group(1)} {_HIDDEN}", text)
    return _URL_USER.sub(_HIDDEN, text)


def write_crash(error: BaseException, argv: Sequence[str], directory: Path, now: datetime) -> Path:
    """A new file in ``directory``, readable by its owner only. Raises OSError when it cannot be written."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / f"crash-{now:%Y%m%dT%H%M%S%fZ}-{os.getpid()}.txt"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(describe(error, argv, now))
    return path


def describe(error: BaseException, argv: Sequence[str], now: datetime) -> str:
    """The crash file's text."""
    stack = "".join(traceback.TracebackException.from_exception(error, capture_locals=False).format())
    lines = [
        f"ktriage {version()} crashed at {now.isoformat()}",
        f"Python {platform.python_version()} on {sys.platform}",
        f"command: {' '.join(argv)}",
        "",
        stack,
    ]
    return redact("\n".join(lines))
