"""The throttle of moved replicas: its configurations, set before anything is copied, and removed afterwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from backends.base.protocol import Backend
from backends.base.replica_moves import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ReplicaMover,
    Throttled,
    ThrottledKind,
    Throttles,
)
from console.errors import NotDone
from recovery.heal_plan import ReplicaMove
from recovery.model import Unknown


@dataclass(frozen=True, slots=True)
class ReplicationThrottle:
    """``rate`` in bytes a second, for each broker as a source and as a target; ``values`` are what is set."""

    rate: int
    values: Mapping[Throttled, Mapping[str, str]]

    def as_fields(self) -> dict[str, object]:
        """As the journal has it."""
        rows = [[one.kind.value, one.name, dict(values)] for one, values in self.values.items()]
        return {"rate": self.rate, "values": rows}

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> ReplicationThrottle:
        """Reads :meth:`as_fields`."""
        values = {Throttled(ThrottledKind(kind), name): found for kind, name, found in fields["values"]}
        return cls(fields["rate"], values)


def throttle_of(moves: Iterable[ReplicaMove], up: Collection[int], rate: int) -> ReplicationThrottle:
    """Like Kafka's own tool: every replica that is ``up`` may be a source, only the new ones are targets, so that
    replicas in sync are never slowed down.
    """
    sources: defaultdict[str, list[str]] = defaultdict(list)
    targets: defaultdict[str, list[str]] = defaultdict(list)
    brokers: set[int] = set()
    for move in moves:
        stays = [broker for broker in move.before if broker in up]
        brokers.update(stays, move.added)
        sources[move.tp.topic] += [f"{move.tp.partition}:{broker}" for broker in stays]
        targets[move.tp.topic] += [f"{move.tp.partition}:{broker}" for broker in move.added]
    values = {
        Throttled(ThrottledKind.BROKER, str(broker)): {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
        for broker in sorted(brokers)
    }
    for topic in sorted(sources):
        values[Throttled(ThrottledKind.TOPIC, topic)] = {
            LEADER_REPLICAS: ",".join(sources[topic]),
            FOLLOWER_REPLICAS: ",".join(targets[topic]),
        }
    return ReplicationThrottle(rate, values)


async def refuse_other_throttles(cluster: Backend, throttle: ReplicationThrottle) -> None:
    """Raises NotDone if a throttle is set already: it belongs to somebody else, and would be overwritten."""
    found = await cluster.throttle_reader().throttles(list(throttle.values))
    for one, values in found.items():
        if isinstance(values, Unknown):
            raise NotDone(f"whether a throttle is set on {one} is not known ({values}); nothing was sent")
        if values:
            name, value = next(iter(values.items()))
            raise NotDone(
                f"{one} has a throttle already ({name}={value[:60]}): another move of replicas may need it."
                " Remove it if nobody does, or give --throttle none; nothing was sent"
            )


async def set_throttle(mover: ReplicaMover, throttle: ReplicationThrottle) -> str:
    """Why it could not be set everywhere, in one line; "" if it was. What was set is still set then."""
    problems = await mover.set_throttles(throttle.values)
    failed = {one: why for one, why in problems.items() if why is not None}
    return next((f"the throttle could not be set on {one}: {why}" for one, why in failed.items()), "")


async def remove_throttle(
    cluster: Backend, mover: ReplicaMover, throttle: ReplicationThrottle
) -> Mapping[Throttled, str]:
    """Removes what is still as we set it; returns what may still be set, and why. Never raises BackendError
    for a single broker or topic.
    """
    found = await cluster.throttle_reader().throttles(list(throttle.values))
    left = {one: str(values) for one, values in found.items() if isinstance(values, Unknown)}
    ours = {one: _ours(throttle.values[one], values) for one, values in found.items() if one not in left}
    problems = await mover.set_throttles({one: changes for one, changes in ours.items() if changes})
    left.update({one: why for one, why in problems.items() if why is not None})
    return left


def _ours(written: Mapping[str, str], now: Throttles | Unknown) -> dict[str, str | None]:
    if isinstance(now, Unknown):
        return {}
    return {name: None for name, value in written.items() if now.get(name) == value}
