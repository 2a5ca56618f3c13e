"""Which rows a table shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

# A repeat of a repeat can take longer than anybody waits, and nothing stops a match that runs.
_NESTED = re.compile(r"[*+}]\)[*+{?]|[*+}][*+]{2}")


class RowFilter(NamedTuple):
    """Text that a row must hold, or must not (``inverse``); upper and lower case are one."""

    pattern: str
    regex: bool = False
    inverse: bool = False

    def problem(self) -> str | None:
        """Why this cannot be looked for, in one line; None where it can."""
        if not self.regex:
            return None
        if _NESTED.search(self.pattern):
            return "a repeat of a repeat may never end: write it without"
        try:
            re.compile(self.pattern)
        except re.error as error:
            return f"no regex: {error}"
        return None

    def finder(self) -> re.Pattern[str]:
        """What is looked for. A row's text has a line for each field: ``^`` and ``$`` are a field's ends.

        Raises re.error where :meth:`problem` names one.
        """
        return re.compile(
            self.pattern if self.regex else re.escape(self.pattern), re.IGNORECASE | re.MULTILINE
        )

    def keeps(self) -> Callable[[str], bool]:
        """Whether a row with this text is shown. Raises re.error where :meth:`problem` names one."""
        found = self.finder().search
        if self.inverse:
            return lambda text: found(text) is None
        return lambda text: found(text) is not None

    def __str__(self) -> str:
        sign = "not " if self.inverse else ""
        return f"{sign}/{self.pattern}/" if self.regex else f"{sign}{self.pattern!r}"


def spans(text: str, finder: re.Pattern[str]) -> list[tuple[int, int]]:
    """Where ``finder`` matches, left to right, without empty matches."""
    return [found.span() for found in finder.finditer(text) if found.end() > found.start()]


def parse_filter(text: str) -> RowFilter | None:
    """What a person typed: ``!`` first shows what does not hold it, ``/`` first makes it a regular expression.

    Neither sign occurs in the name of a topic. None for nothing typed.
    """
    inverse = text.startswith("!")
    rest = text[1:] if inverse else text
    regex = rest.startswith("/")
    pattern = rest[1:].removesuffix("/") if regex else rest
    return RowFilter(pattern, regex, inverse) if pattern else None
