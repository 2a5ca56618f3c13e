"""From a target to the live adapter."""

from __future__ import annotations

from collections.abc import Callable

from backends.live.adapter import LiveBackend
from backends.live.addresses import parse_addresses
from backends.live.settings import ClientSettings
from console.errors import InputError
from console.target import Target


def backend(target: Target, say: Callable[[str], None]) -> LiveBackend:
    """The adapter for a running cluster. Raises InputError for a client.properties file that cannot be used."""
    return LiveBackend(settings(target, say), target.addresses)


def settings(target: Target, say: Callable[[str], None]) -> ClientSettings:
    """How the target's nodes are connected to. Raises InputError as :func:`backend`."""
    bootstrap = parse_addresses(target.bootstrap)
    if target.command_config is None:
        return ClientSettings(bootstrap)
    # Stores, JAAS and OAuth are imported by those who bring a file.
    from backends.live.clientconfig import load_settings  # noqa: PLC0415
    from backends.live.properties import PropertiesError  # noqa: PLC0415

    try:
        found = load_settings(target.command_config, bootstrap)
    except PropertiesError as error:
        raise InputError(str(error)) from None
    for warning in found.warnings:
        say(warning)
    return found
