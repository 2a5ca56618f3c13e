"""A quorum that looks at every change of its voters before it lets it through."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from backends.base.membership import ChangeAnswer, Membership
from backends.base.protocol import Recorder
from backends.simulator.loop import SECOND
from backends.simulator.world import World
from console.jobs.quorum.replacement_steps import StopReason
from recovery.membership.preflight import LivenessLimits, before_removing
from recovery.membership.replacement import ReplacementKind
from recovery.membership.voters import ReplicaKey, Voter

GRACE = SECOND
"""A voter that died so short ago still counts as up: its last fetch is fresh."""


@dataclass
class Rehearsed:
    """One seed's replacement. ``faults`` is what happened in between, ``wrong`` what must not have happened."""

    seed: int
    kind: ReplacementKind
    faults: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    runs: int = 0
    reason: StopReason | None = None


class Audited:
    """A quorum that looks at every change before it lets it through: would the new set commit?"""

    def __init__(self, membership: Membership, world: World, rehearsed: Rehearsed) -> None:
        self._membership = membership
        self._world = world
        self._rehearsed = rehearsed
        self._last_up: dict[ReplicaKey, int] = {}
        self.note_who_is_up()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._membership, name)

    async def pause(self, seconds: float) -> None:
        self.note_who_is_up()
        await self._membership.pause(seconds)
        self.note_who_is_up()

    async def add_voter(self, voter: Voter, recorder: Recorder, **rest: Any) -> ChangeAnswer:
        quorum = await self._membership.describe()
        self._audit(f"add {voter.key}", (*quorum.voters.keys, voter.key))
        probe = await self._membership.probe(voter.endpoints[0].host, voter.endpoints[0].port, voter.key.id)
        if getattr(probe, "node_id", None) != voter.key.id:
            self._rehearsed.wrong.append(f"{voter.key} was added, and {probe} answers at its endpoint")
        return await self._membership.add_voter(voter, recorder, **rest)

    async def remove_voter(self, key: ReplicaKey, recorder: Recorder, **rest: Any) -> ChangeAnswer:
        quorum = await self._membership.describe()
        self._audit(f"remove {key}", tuple(k for k in quorum.voters.keys if k != key))
        refused = before_removing(quorum, key, LivenessLimits(fetch_age_ms=3000)).refused
        if refused:
            self._rehearsed.wrong.append(f"remove {key} was sent though {refused}")
        return await self._membership.remove_voter(key, recorder, **rest)

    def note_who_is_up(self) -> None:
        for node in self._world.controllers:
            self._last_up[self._world.quorum.disks[node].key] = self._world.loop.now

    def _audit(self, what: str, after: tuple[ReplicaKey, ...]) -> None:
        self._rehearsed.sent.append(what)
        self.note_who_is_up()
        now = self._world.loop.now
        up = [key for key in after if now - self._last_up.get(key, -GRACE * 2) <= GRACE]
        if len(up) < len(after) // 2 + 1:
            self._rehearsed.wrong.append(f"{what}: only {up} of {after} were up")
