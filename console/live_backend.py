"""From a target to the live adapter."""

from __future__ import annotations

from collections.abc import Callable

from backends.live.adapter import LiveBackend
from console.client_settings import settings
from console.target import Target


def backend(target: Target, say: Callable[[str], None]) -> LiveBackend:
    """The adapter for a running cluster. Raises InputError for a client.properties file that cannot be used."""
    return LiveBackend(settings(target, say), target.addresses, say)
