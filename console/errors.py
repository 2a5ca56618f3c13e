"""What the console itself refuses, and the exit status of every outcome. Each message is one line for a person,
with what to do. Signals add 128 to the status: 129, 130, 143.
"""

from __future__ import annotations

from enum import IntEnum

from backends.base.errors import NotAllowed, Refused, Unreachable


class ConsoleError(Exception):
    """Anything that the console could not do."""


class InputError(ConsoleError):
    """Wrong usage, or a file that cannot be read: nothing was sent (exit status 2)."""


class NotDone(ConsoleError):
    """What was asked for was not done, and nothing was sent: declined, or held back (exit status 1)."""


class StalePlan(ConsoleError):
    """No row of the plan holds any more, and nothing was applied (exit status 4)."""


class Status(IntEnum):
    """What the process ends with."""

    DONE = 0
    PARTLY = 1
    USAGE = 2
    NOT_ASKED = 3
    STALE = 4


def status_of(error: Exception) -> Status:
    """The status for an error that ended a command: 1 (some of it was not done) if nothing else is known."""
    if isinstance(error, (InputError, Refused)):
        return Status.USAGE
    if isinstance(error, (Unreachable, NotAllowed)):
        return Status.NOT_ASKED
    if isinstance(error, StalePlan):
        return Status.STALE
    return Status.PARTLY


def kind_of(error: Exception) -> str:
    """What kind of error it is, in the words of ``ktriage.error/1``."""
    if isinstance(error, NotAllowed):
        return "not allowed"
    if isinstance(error, Unreachable):
        return "unreachable"
    return {Status.USAGE: "usage", Status.STALE: "stale plan"}.get(status_of(error), "not done")


STATUS_HELP = """\
\b
Exit status:
  0    everything asked for was done
  1    some of it was not; each failure is on stderr and in the JSON
  2    wrong usage or unreadable input; nothing was sent
  3    nothing could be asked: unreachable, or not allowed
  4    the plan is stale; nothing was applied
  129, 130, 143  stopped by SIGHUP, SIGINT, SIGTERM
"""
