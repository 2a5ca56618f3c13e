"""How a target's nodes are connected to."""

from __future__ import annotations

from collections.abc import Callable

from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from console.errors import InputError
from console.target import Target


def settings(target: Target, say: Callable[[str], None]) -> ClientSettings:
    """By its client.properties file, where it names one. Raises InputError for a file that cannot be used."""
    bootstrap = parse_addresses(target.bootstrap)
    if target.command_config is None:
        return ClientSettings(bootstrap)
    # Stores, JAAS and OAuth are imported by those who bring a file.
    from backends.live.client.client_config import load_settings  # noqa: PLC0415
    from backends.live.client.properties import PropertiesError  # noqa: PLC0415

    try:
        found = load_settings(target.command_config, bootstrap)
    except PropertiesError as error:
        raise InputError(str(error)) from None
    for warning in found.warnings:
        say(warning)
    return found
