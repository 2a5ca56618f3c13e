"""Errors of the journal."""

from __future__ import annotations

from console.errors import NotDone


class JournalError(NotDone):
    """The journal cannot be written or read. A request that is not recorded must not be sent."""


class JournalLocked(JournalError):
    """Another run on this host may change the same cluster; the message names it."""
