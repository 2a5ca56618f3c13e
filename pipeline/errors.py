"""Errors of the pipeline. Each message is one line that says what to do."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class PipelineError(Exception):
    """Input that cannot be used, or a URI that cannot be read or written."""


class NotInstalled(PipelineError):
    """A program or library that the pipeline needs is not installed."""


class FilesGone(PipelineError):
    """Files that a table's log names are not there."""


_OS_ERROR = re.compile(r"(?:os error |\[errno )(\d+)")
_KIND_OF_ERROR = re.compile(r"^(?:[A-Z]\w*(?: \w+)* error: )+")
"""How the libraries begin their messages: ``Generic DeltaTable error: Arrow error:``."""


def one_line(error: Exception) -> str:
    """What an error of Arrow or of Delta Lake's library says, in one line: the operating system's words if it is
    one of its errors.
    """
    text = str(error)
    found = _OS_ERROR.search(text)
    if found:
        return os.strerror(int(found[1]))
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    # An error of an object store has its cause on the lines below, behind arrows and colours.
    lines = [line.split("\x1b[0m")[-1].strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    first = _KIND_OF_ERROR.sub("", lines[0])
    return (first if len(lines) == 1 else f"{first}: {lines[-1]}").rstrip(".")


@contextmanager
def naming_input(place: Callable[[], str]) -> Iterator[None]:
    """Names what a task was working on when an error ended it that nobody expected. Raises PipelineError."""
    try:
        yield
    except PipelineError:
        raise
    except Exception as error:
        raise PipelineError(f"{place()}: {type(error).__name__}: {one_line(error)}") from error
