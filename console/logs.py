"""What ``-v``, ``--debug`` and ``--log-file`` write: connections, requests and answers, never a secret.

The options stand anywhere on the command line of every program, and are taken out of it before it is read.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from console.errors import InputError
from console.redaction import redact
from recovery.wording.quantity_text import printable

LOGGER = "ktriage"
VERBOSE = ("-v", "--verbose")
DEBUG = "--debug"
LOG_FILE = "--log-file"
LOG_OPTIONS_HELP = """\
\b
With every command:
  -v, --verbose    also say on stderr which connections are made, and how they end
  --debug          and each request, with its version, its time and the size of its answer
  --log-file FILE  the same as --debug, behind what is in FILE, which only you can read
"""


class LogOptions:
    """Which were given. ``rest`` is the command line without them."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Raises InputError for a --log-file without a name."""
        self.rest: list[str] = []
        self.verbose = self.debug = False
        self.file: Path | None = None
        words = iter(arguments)
        for word in words:
            if word == "--":
                self.rest += [word, *words]
            elif word in VERBOSE:
                self.verbose = True
            elif word == DEBUG:
                self.debug = True
            elif word == LOG_FILE:
                self.file = _named(next(words, ""))
            elif word.startswith(f"{LOG_FILE}="):
                self.file = _named(word.partition("=")[2])
            else:
                self.rest.append(word)

    @property
    def to_stderr(self) -> bool:
        return self.verbose or self.debug

    @contextmanager
    def applied(self, say: Callable[[str], None]) -> Iterator[None]:
        """Inside, what is logged is said by ``say``, and written. Raises InputError where the file cannot be."""
        logger = logging.getLogger(LOGGER)
        with ExitStack() as until_the_end:
            handlers: list[logging.Handler] = []
            if self.to_stderr:
                handlers.append(_ScreenHandler(say))
                handlers[0].setLevel(logging.DEBUG if self.debug else logging.INFO)
            if self.file is not None:
                file = until_the_end.enter_context(_private(self.file))
                handlers.append(logging.StreamHandler(file))
            logger.setLevel(logging.DEBUG if self.debug or self.file is not None else logging.INFO)
            for handler in handlers:
                handler.setFormatter(_Lines())
                logger.addHandler(handler)
                until_the_end.callback(logger.removeHandler, handler)
            yield


class _ScreenHandler(logging.Handler):
    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(self.format(record))


def _private(path: Path) -> TextIO:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise InputError(f"{LOG_FILE} {path}: {error.strerror}") from None
    return os.fdopen(descriptor, "a", encoding="utf-8")


def _named(name: str) -> Path:
    if not name:
        raise InputError(f"{LOG_FILE} needs the name of a file")
    return Path(name)


class _Lines(logging.Formatter):
    """One line each, without what may be a secret, and without what drives a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%H:%M:%S", time.gmtime(record.created))
        return f"{at}.{int(record.msecs):03d}Z {printable(redact(record.getMessage()))}"
