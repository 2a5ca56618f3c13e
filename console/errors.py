"""What the console itself refuses. Each message is one line for a person, with what to do."""

from __future__ import annotations


class ConsoleError(Exception):
    """Anything that the console could not do."""


class InputError(ConsoleError):
    """Wrong usage, or a file that cannot be read: nothing was sent (exit status 2)."""


class NotDone(ConsoleError):
    """What was asked for was not done, and nothing was sent: declined, or held back (exit status 1)."""


class StalePlan(ConsoleError):
    """No row of the plan holds any more, and nothing was applied (exit status 4)."""
