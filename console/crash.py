"""Crash files: what happened, for the developers, without any secret.

A traceback never reaches the user, and locals are never written: they hold credentials.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
import traceback
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from console.provenance import version
from console.redaction import redact, redact_arguments
from recovery.wording.quantity_text import printable


def write_crash(error: BaseException, argv: Sequence[str], directory: Path, now: datetime) -> Path:
    """A new file in ``directory``, readable by its owner only. Raises OSError when it cannot be written."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / f"crash-{now:%Y%m%dT%H%M%S%fZ}-{os.getpid()}.txt"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(describe(error, argv, now))
    return path


def describe(error: BaseException, argv: Sequence[str], now: datetime) -> str:
    """The crash file's text. It contains no control characters for a terminal."""
    stack = "".join(traceback.TracebackException.from_exception(error, capture_locals=False).format())
    lines = [
        f"ktriage {version()} crashed at {now.isoformat()}",
        f"Python {platform.python_version()} on {sys.platform}",
        f"command: {shlex.join(redact_arguments(argv))}",
        "",
        stack,
    ]
    return "\n".join(map(printable, redact("\n".join(lines)).split("\n")))
