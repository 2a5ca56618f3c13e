"""The cluster that the command line or a profile names."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from console.errors import InputError
from console.paths import SYSTEM_PROFILES
from recovery.plan.importance import NO_TIERS, Importance, TopicTier

if TYPE_CHECKING:
    from backends.live.client.addresses import Address
    from console.port_forwards import KubernetesCluster
    from console.settings import KubeProfile, NamedProfile


FROM_DISKS = "it is read from disks: nothing runs that could be changed"
IN_BUNDLE = "it is a bundle, the cluster as it was: nothing runs there that could be changed"


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster to be asked.

    ``kind`` is "live", "controllers" (no broker is asked), "simulated", "disks" (nothing is asked:
    ``metadata_dir`` holds the cluster's metadata log) or "bundle" (nothing is asked: the file ``bundle`` holds what
    the cluster answered).
    ``addresses`` maps a broker's id to the address to use where its advertised address is not. ``controllers`` are
    addresses of controllers as ``bootstrap`` has those of brokers, ``controllers_config`` is the client.properties
    file for their listener (None: the brokers'), and ``controller_addresses`` is for them what ``addresses`` is for
    brokers. ``read_only`` says why nothing may be changed, None where it may.
    ``seed`` and ``state`` (a file, None: the usual place) are a simulation's.
    ``importance`` says which topics come first.
    ``state_dir``: where journal, lock and saved plans are, None where it was not named.
    ``only_reads``: nothing is changed, so a simulation that another command has open may be read.
    ``kube``: kubectl finds the brokers, whose addresses are in ``bootstrap`` and ``addresses`` once they are asked.
    ``arguments`` are the options that name this cluster, for the next command that is printed.
    """

    kind: str
    bootstrap: str = ""
    command_config: Path | None = None
    scenario: str = ""
    seed: int = 1
    state: Path | None = None
    metadata_dir: Path | None = None
    bundle: Path | None = None
    addresses: Mapping[int, Address] = field(default_factory=dict)
    controllers: str = ""
    controllers_config: Path | None = None
    controller_addresses: Mapping[int, Address] = field(default_factory=dict)
    read_only: str | None = None
    colour: str | None = None
    importance: Importance = NO_TIERS
    state_dir: Path | None = None
    only_reads: bool = False
    kube: KubernetesCluster | None = None
    arguments: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The cluster in a few words, as it was named."""
        return " ".join(self.arguments[1:2])

    @property
    def marked_title(self) -> str:
        """The same, after whether it is real."""
        return f"{self.mark} {self.title}"

    @property
    def mark(self) -> str:
        """LIVE for a real cluster that is asked, else what stands for the cluster."""
        return {"simulated": "SIMULATOR", "disks": "DISKS", "bundle": "BUNDLE"}.get(self.kind, "LIVE")

    def command(self, *words: str) -> str:
        """A line to be copied into a shell: ``ktriage WORDS… --bootstrap-server …``."""
        return shlex.join(("ktriage", *words, *self.arguments))

    def commands_in(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines; a command at the end of one names this cluster, so that it can be copied into a shell."""
        for line in lines:
            yield f"{line} {shlex.join(self.arguments)}" if _ENDS_WITH_COMMAND.search(line) else line


_ENDS_WITH_COMMAND = re.compile(
    r": ktriage (?!.* --(?:bootstrap-(?:server|controller)|cluster|simulate|bundle) )[^`|<>]+[^.`]$"
)


def resolve(
    bootstrap_server: str | None,
    cluster: str | None,
    simulate: str | None,
    command_config: Path | None,
    broker: Sequence[str] = (),
    *,
    seed: int | None = None,
    state: Path | None = None,
    state_dir: Path | None = None,
    bootstrap_controller: str | None = None,
    controllers: bool = False,
    metadata_dir: Path | None = None,
    controller: Sequence[str] = (),
    bundle: Path | None = None,
) -> Target:
    """The target that these options name. Raises InputError: none, more than one, or a mistake in one.

    ``controllers``: the command takes --bootstrap-controller too. ``metadata_dir`` alone is a cluster of which
    nothing runs.
    """
    named = [
        option
        for option, value in (
            ("--bootstrap-server", bootstrap_server),
            ("--bootstrap-controller", bootstrap_controller),
            ("--cluster", cluster),
            ("--simulate", simulate),
            ("--bundle", bundle),
        )
        if value is not None
    ]
    if not named and metadata_dir is not None:
        return _with_state_dir(_on_disks(metadata_dir), state_dir)
    if len(named) != 1:
        problem = "no cluster is named" if not named else f"{' and '.join(named)} exclude each other"
        also = "--bootstrap-controller, " if controllers else ""
        raise InputError(f"{problem}: give one of --bootstrap-server, {also}--cluster and --simulate")
    if simulate is not None:
        if command_config is not None or broker or controller:
            raise InputError(
                "--command-config, --broker and --controller are for a real cluster, not for --simulate"
            )
        return _with_state_dir(_simulated(simulate, seed, state), state_dir)
    if bundle is not None:
        return _with_state_dir(_in_bundle(bundle, command_config, broker, controller), state_dir)
    if seed is not None or state is not None:
        raise InputError("--seed and --state are for --simulate, not for a real cluster")
    extra = _extra_arguments(command_config, broker, controller)
    instead = addresses(controller, "--controller")
    if cluster is not None:
        found = _from_profile(cluster, command_config, broker, extra)
        found = replace(found, controller_addresses={**found.controller_addresses, **instead})
        return _as_allowed(_with_state_dir(found, state_dir))
    if bootstrap_controller is not None:
        controllers_only = Target(
            "controllers",
            bootstrap=checked_bootstrap(bootstrap_controller, "--bootstrap-controller"),
            command_config=command_config,
            controller_addresses=instead,
            arguments=("--bootstrap-controller", bootstrap_controller, *extra),
        )
        return _as_allowed(_with_state_dir(controllers_only, state_dir))
    assert bootstrap_server is not None
    live = Target(
        "live",
        bootstrap=checked_bootstrap(bootstrap_server),
        command_config=command_config,
        addresses=addresses(broker),
        controller_addresses=instead,
        arguments=("--bootstrap-server", bootstrap_server, *extra),
    )
    return _as_allowed(_with_state_dir(live, state_dir))


def _as_allowed(target: Target) -> Target:
    """A real cluster, read-only where this host lets this user change none. Raises InputError for its file."""
    if target.read_only is not None or not SYSTEM_PROFILES.exists():
        return target
    from console.settings import why_only_read  # noqa: PLC0415  # as for a profile

    return replace(target, read_only=why_only_read())


def _with_state_dir(target: Target, named: Path | None) -> Target:
    """The target with the state directory that an option named, which wins over the profile's."""
    if named is None:
        return target
    return replace(target, state_dir=named, arguments=(*target.arguments, "--state-dir", str(named)))


def _on_disks(metadata_dir: Path) -> Target:
    return Target(
        "disks",
        metadata_dir=metadata_dir,
        read_only=FROM_DISKS,
        arguments=("--metadata-dir", str(metadata_dir)),
    )


def _in_bundle(
    bundle: Path, command_config: Path | None, broker: Sequence[str], controller: Sequence[str]
) -> Target:
    if command_config is not None or broker or controller:
        raise InputError(
            "--command-config, --broker and --controller are for a real cluster, not for --bundle"
        )
    return Target(
        "bundle",
        bundle=bundle,
        read_only=IN_BUNDLE,
        arguments=("--bundle", str(bundle)),
    )


def _simulated(scenario: str, seed: int | None, state: Path | None) -> Target:
    arguments = ["--simulate", scenario]
    arguments += [] if seed is None else ["--seed", str(seed)]
    arguments += [] if state is None else ["--state", str(state)]
    given = 1 if seed is None else seed
    return Target("simulated", scenario=scenario, seed=given, state=state, arguments=tuple(arguments))


def _from_profile(
    name: str, command_config: Path | None, broker: Sequence[str], extra: tuple[str, ...]
) -> Target:
    # Reading YAML and checking it costs a tenth of a second: only those who use a profile pay for it.
    from console.settings import named_profile  # noqa: PLC0415

    return _of_profile(named_profile(name), command_config=command_config, broker=broker, extra=extra)


def every_profile(path: Path) -> tuple[Target, ...]:
    """The clusters of a file of profiles. Raises InputError: it cannot be read, has a mistake, or has none."""
    from console.settings import NamedProfile, load  # noqa: PLC0415  # as above

    found = load(path).clusters
    if not found:
        raise InputError(f"{path}: no cluster is in it")
    return tuple(
        _of_profile(NamedProfile(name, one, path, path if one.read_only else None))
        for name, one in found.items()
    )


def _of_profile(
    named: NamedProfile,
    *,
    command_config: Path | None = None,
    broker: Sequence[str] = (),
    extra: tuple[str, ...] = (),
) -> Target:
    name, found, path, read_only_by = named
    overrides = addresses(f"{broker_id}={address}" for broker_id, address in found.brokers.items())
    of_controllers = found.controllers
    instead = addresses(
        (f"{node_id}={address}" for node_id, address in of_controllers.addresses.items()), "--controller"
    )
    return Target(
        "live",
        bootstrap=""
        if found.kube is not None
        else checked_bootstrap(found.bootstrap, f"{path}: clusters.{name}.bootstrap"),
        command_config=command_config or found.command_config,
        addresses={**overrides, **addresses(broker)},
        controllers=""
        if of_controllers.bootstrap is None
        else checked_bootstrap(of_controllers.bootstrap, f"{path}: clusters.{name}.controllers.bootstrap"),
        controllers_config=of_controllers.command_config,
        controller_addresses=instead,
        read_only=f"the profile {name!r} in {read_only_by} says read-only: true" if read_only_by else None,
        colour=found.colour,
        importance=Importance(tuple(TopicTier(*tier) for tier in found.tiers.items())),
        state_dir=found.state_dir,
        kube=None if found.kube is None else _in_kubernetes(found.kube),
        arguments=("--cluster", name, *extra),
    )


def _in_kubernetes(given: KubeProfile) -> KubernetesCluster:
    from console.port_forwards import KubernetesCluster  # noqa: PLC0415  # for such a profile only

    return KubernetesCluster(given.namespace, given.cluster, given.port, given.context, given.selector)


def _extra_arguments(
    command_config: Path | None, broker: Sequence[str], controller: Sequence[str]
) -> tuple[str, ...]:
    config = ("--command-config", str(command_config)) if command_config is not None else ()
    brokers = (word for given in broker for word in ("--broker", given))
    return (*config, *brokers, *(word for given in controller for word in ("--controller", given)))


def checked_bootstrap(text: str, where: str = "--bootstrap-server") -> str:
    """The HOST:PORT list as given. Raises InputError with ``where`` it was given."""
    from backends.live.client.addresses import parse_addresses  # noqa: PLC0415  # not for --help

    try:
        parse_addresses(text)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    return text


def addresses(given: Iterable[str], option: str = "--broker") -> Mapping[int, Address]:
    """``ID=HOST:PORT`` options as a mapping. Raises InputError."""
    node = option.removeprefix("--")
    found: dict[int, Address] = {}
    for text in given:
        from backends.live.client.addresses import parse_address  # noqa: PLC0415  # where one is given

        broker, sign, address = text.partition("=")
        if not sign or not broker.isdecimal():
            raise InputError(f"{option} {text!r}: give ID=HOST:PORT, such as 3=kafka-3.example:9092")
        if int(broker) in found:
            raise InputError(f"{option}: {node} {broker} is given twice")
        try:
            found[int(broker)] = parse_address(address)
        except ValueError as error:
            raise InputError(f"{option} {broker}: {error}") from None
    return found
