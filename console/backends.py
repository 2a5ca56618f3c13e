"""From a target to its cluster, or to its quorum alone. A command pays for the imports of its own backend only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.base.protocol import Backend
from console.errors import InputError
from console.target import Target, addresses
from recovery.wording.quantity_text import some_of, time_text

if TYPE_CHECKING:
    from backends.base.membership import Membership
    from backends.live.adapter import LiveBackend
    from backends.live.client.addresses import Address
    from backends.live.client.settings import ClientSettings, ControllerAccess
    from backends.live.quorum_backend import QuorumOnly

Say = Callable[[str], None]
"""Tells the person a line: a key of client.properties that is not used, say."""


def backend(target: Target, say: Say) -> Backend:
    """The backend for that cluster, which contacts nothing yet. Raises InputError."""
    if target.kind == "simulated":
        from console.simulator_backend import backend as simulator  # noqa: PLC0415

        return simulator(target, say)
    if target.metadata_dir is not None:
        from backends.from_disks import DisksBackend  # noqa: PLC0415
        from console.reading.copied_log import read_cluster_on_disks  # noqa: PLC0415
        from console.reading.copied_log_report import copy_damage  # noqa: PLC0415

        copy = read_cluster_on_disks(target.metadata_dir)
        for damage in copy_damage(copy):
            say(f"{copy.path} {damage}")
        on_disks: Any = DisksBackend  # what it cannot do it refuses, whatever is called
        cluster: Backend = on_disks(copy)
        return cluster
    only_quorum: Any = quorum_only  # through controllers nothing else can be asked
    if target.bundle is not None:
        from console.bundle_files import open_bundle  # noqa: PLC0415
        from console.provenance import Recorded, use_recorded  # noqa: PLC0415

        manifest, recorded = open_bundle(target.bundle)
        if use_recorded(Recorded(manifest.digest, manifest.read_ms)):
            say(f"BUNDLE, as of {time_text(manifest.read_ms)}: nothing is asked now")
            lacking = [line.partition(": ")[0] for line in manifest.left_out]
            if lacking:
                say(f"not in the bundle (its manifest says why): {some_of(lacking)}")
        in_bundle: Any = recorded  # as above
        as_it_was: Backend = in_bundle
        return as_it_was
    found: Backend = (live if target.kind == "live" else only_quorum)(target, say)
    return found


def live(target: Target, say: Say) -> LiveBackend:
    """The adapter for a running cluster. Raises InputError for a client.properties file that cannot be used."""
    from backends.live.adapter import LiveBackend  # noqa: PLC0415
    from console.remembered_files import RememberedFiles  # noqa: PLC0415

    target = reached(target, say)
    of_brokers = settings(target, say)
    controllers = controller_access(target, of_brokers, say)
    return LiveBackend(of_brokers, target.addresses, say, RememberedFiles(), controllers)


def quorum_only(target: Target, say: Say) -> QuorumOnly:
    """Access to the quorum of a running cluster. Raises InputError for a file that cannot be used."""
    from backends.live.quorum_backend import QuorumOnly  # noqa: PLC0415

    target = reached(target, say)
    through_brokers = target.kind != "controllers"
    found = settings(target, say)
    controllers = controller_access(target, found, say)
    return QuorumOnly(found, target.addresses, through_brokers=through_brokers, controllers=controllers)


def reached(target: Target, say: Say) -> Target:
    """With the ports that kubectl forwards, for a cluster in Kubernetes; an address that was given otherwise wins.
    Raises InputError.
    """
    if target.kube is None:
        return target
    from console.port_forwards import forwarded  # noqa: PLC0415  # for such a profile only

    found = forwarded(target.kube, say)
    own = addresses(f"{broker}={address}" for broker, address in found.addresses.items())
    return replace(target, bootstrap=found.bootstrap, addresses={**own, **target.addresses})


def with_quorum(target: Target, say: Say) -> Backend | QuorumOnly:
    """Something that offers the target's quorum; contacts nothing yet. Raises InputError."""
    return backend(target, say) if target.kind in ("simulated", "bundle") else quorum_only(target, say)


def membership_of(cluster: object) -> Membership:
    """The quorum that an adapter offers. Raises InputError where it has none."""
    found: Membership | None = getattr(cluster, "membership", None)
    if found is None:
        raise InputError("this cluster has no quorum that could be asked")
    return found


def controller_access(target: Target, of_brokers: ClientSettings, say: Say) -> ControllerAccess | None:
    """How the target's controllers are reached; None: as its brokers are, at the addresses that the quorum tells.

    Raises InputError for a file that cannot be used.
    """
    from backends.live.client.addresses import parse_addresses  # noqa: PLC0415
    from backends.live.client.settings import ControllerAccess  # noqa: PLC0415

    given = parse_addresses(target.controllers) if target.controllers else of_brokers.controllers
    if not given and target.controllers_config is None and not target.controller_addresses:
        return None
    found = of_brokers
    if target.controllers_config is not None:
        found = _from_file(target.controllers_config, given, say)
        given = given or found.controllers
    return ControllerAccess(replace(found, bootstrap=given), target.controller_addresses)


def settings(target: Target, say: Say) -> ClientSettings:
    """From the target's client.properties file, if it names one. Raises InputError for a file that cannot be used.

    ``say`` gets a line for each key of the file that is not used.
    """
    from backends.live.client.addresses import parse_addresses  # noqa: PLC0415
    from backends.live.client.settings import ClientSettings  # noqa: PLC0415

    bootstrap = parse_addresses(target.bootstrap)
    if target.command_config is None:
        return ClientSettings(bootstrap)
    return _from_file(target.command_config, bootstrap, say)


def api_timeout_ms(path: Path) -> int | None:
    """default.api.timeout.ms of a client.properties file; None: it does not say. Raises InputError."""
    from backends.live.client.client_config import api_timeout  # noqa: PLC0415  # as below
    from backends.live.client.properties import PropertiesError  # noqa: PLC0415

    try:
        seconds = api_timeout(path)
    except PropertiesError as error:
        raise InputError(str(error)) from None
    return None if seconds is None else round(1000 * seconds)


def _from_file(path: Path, bootstrap: tuple[Address, ...], say: Say) -> ClientSettings:
    # Only a target with a file pays for the import of stores, JAAS and OAuth.
    from backends.live.client.client_config import load_settings  # noqa: PLC0415
    from backends.live.client.properties import PropertiesError  # noqa: PLC0415

    try:
        found = load_settings(path, bootstrap)
    except PropertiesError as error:
        raise InputError(str(error)) from None
    for warning in found.warnings:
        say(warning)
    return found
