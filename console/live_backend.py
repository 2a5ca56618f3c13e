"""From a target to the live adapter, and to the settings of its connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from console.errors import InputError
from console.remembered_files import RememberedFiles

if TYPE_CHECKING:
    from backends.live.adapter import LiveBackend
    from console.target import Target


def backend(target: Target, say: Callable[[str], None]) -> LiveBackend:
    """The adapter for a running cluster. Raises InputError for a client.properties file that cannot be used."""
    from backends.live.adapter import LiveBackend  # noqa: PLC0415  # the quorum's commands need the settings only

    return LiveBackend(settings(target, say), target.addresses, say, RememberedFiles())


def settings(target: Target, say: Callable[[str], None]) -> ClientSettings:
    """From the target's client.properties file, if it names one. Raises InputError for a file that cannot be used.

    ``say`` gets a line for each key of the file that is not used.
    """
    bootstrap = parse_addresses(target.bootstrap)
    if target.command_config is None:
        return ClientSettings(bootstrap)
    # Only a target with a file pays for the import of stores, JAAS and OAuth.
    from backends.live.client.client_config import load_settings  # noqa: PLC0415
    from backends.live.client.properties import PropertiesError  # noqa: PLC0415

    try:
        found = load_settings(target.command_config, bootstrap)
    except PropertiesError as error:
        raise InputError(str(error)) from None
    for warning in found.warnings:
        say(warning)
    return found
