"""What simulated nodes serve, of which single calls and versions can be hidden."""

from __future__ import annotations

from collections.abc import Iterable

from backends.live.codec.apis import ELECT_DESIGNATED, USES, Api, Versions
from backends.simulator.network import NetworkRole


class NoSuchCall(ValueError):
    """An API to be hidden is not served: one line for a person."""


def hidden(text: str) -> frozenset[tuple[int, int | None]]:
    """Parses ``--without``: API names, with ``:VERSION`` for that version and all above.

    Raises NoSuchCall, also for a version that is not served, and for ApiVersions, which every client needs
    first.
    """
    found: set[tuple[int, int | None]] = set()
    for name in filter(None, (part.strip() for part in text.split(","))):
        call, _, version = name.partition(":")
        if call not in Api.__members__ or (version and not version.isdecimal()):
            raise NoSuchCall(f"{name!r} is not a served API: choose one of {', '.join(Api.__members__)}")
        key = Api[call]
        use = USES[key]
        highest = max(served[1] for served in (use.brokers, use.controllers) if served is not None)
        if version and int(version) > highest:
            raise NoSuchCall(f"{name!r}: {call} is served up to version {highest}")
        if key is Api.ApiVersions and not (version and int(version)):
            raise NoSuchCall(f"{name!r}: it cannot be hidden, because every client needs it first")
        found.add((key, int(version) if version else None))
    return frozenset(found)


RELEASED: tuple[tuple[int, int | None], ...] = (
    (Api.ElectLeaders, ELECT_DESIGNATED),
    (Api.GetReplicaLogInfo, None),
)
"""What no release has (the recovery tool's specification); without it the nodes are as those of 4.4."""
SPECIFIED: tuple[tuple[int, int | None], ...] = ((Api.UnregisterController, None),)
"""What a cluster with the calls of that specification does not have: a release gave its number."""


def offered(
    role: NetworkRole, without: Iterable[tuple[int, int | None]] = (), *, released: bool = False
) -> Versions:
    """The APIs that a node of that role serves, without the hidden ones. ``released``: those of Kafka 4.4."""
    served: dict[int, tuple[int, int]] = {}
    for api, use in USES.items():
        versions = use.brokers if role is NetworkRole.BROKER else use.controllers
        if versions is not None:
            served[api] = versions
    for key, version in (*without, *(RELEASED if released else SPECIFIED)):
        if key not in served:
            continue
        lowest, highest = served[key]
        if version is None or version <= lowest:
            del served[key]
        else:
            served[key] = (lowest, min(highest, version - 1))
    return served
