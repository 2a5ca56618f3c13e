"""What a rescue before elections takes: bytes, time and room, told before anything is asked or sent."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from backends.base.protocol import Backend, Progress
from console.errors import InputError
from console.jobs.rescue.rescue_read import RescueRequest, planned_branches
from console.plan_files import rescue_directory
from console.rescue_files.rescue_directory import Room, room_for
from recovery.model import TopicPartition
from recovery.plan.values import Plan
from recovery.wording.quantity_text import age, both, counted, human_bytes

EXPECTED_RATE = 50 << 20
"""Bytes a second of one broker, for the expected time where no --rate is given."""


class RescueChoice(NamedTuple):
    """How what elections cut off is read first. ``directory`` None: in the state directory, by the plan's name.

    ``rate`` and ``elect_anyway`` as of :class:`RescueRequest`.
    """

    directory: Path | None = None
    rate: int | None = None
    elect_anyway: bool = False

    def request(self, plan: Plan) -> RescueRequest:
        """Raises InputError if the state directory cannot be used."""
        where = rescue_directory(plan) if self.directory is None else self.directory
        return RescueRequest(where, self.rate, self.elect_anyway)


DEFAULT_RESCUE = RescueChoice()


@dataclass(frozen=True, slots=True)
class RescueOutlook:
    """The rescue of ``partitions`` that was not begun yet. ``seconds`` is about how long it takes at ``rate`` bytes
    a second of each broker; sizes of ``unsized`` branches are not known, and not in it.
    """

    request: RescueRequest
    partitions: int
    offsets: int
    brokers: tuple[int, ...]
    unsized: int
    seconds: float
    rate: int
    room: Room

    @property
    def line(self) -> str:
        """For the question, and for who is not asked."""
        brokers = f"{'broker' if len(self.brokers) == 1 else 'brokers'} {both(self.brokers)}"
        what = f"{counted(self.offsets, 'offset')} of {counted(self.partitions, 'partition')} from {brokers}"
        return f"Read first: {what}, {self.cost}. Into {self.request.directory} (not with --no-rescue)."

    @property
    def cost(self) -> str:
        """Bytes, time and room."""
        size = human_bytes(self.room.needed)
        if self.unsized:
            size = f"{size} and {counted(self.unsized, 'log')} of unknown size"
        return f"{size}, about {age(max(self.seconds, 1.0))}, {human_bytes(self.room.free)} free"


async def rescue_outlook(
    cluster: Backend,
    plan: Plan,
    cut_off: Collection[TopicPartition],
    choice: RescueChoice,
    progress: Progress | None = None,
) -> RescueOutlook | None:
    """What the rescue takes; None where nothing is to be read: then nothing is asked of the cluster, and no
    directory is made. Raises BackendError, and InputError where it has no room.
    """
    part = replace(plan, rows=tuple(row for row in plan.rows if row.tp in cut_off))
    if not part.rows:
        return None
    request = choice.request(plan)
    branches = await planned_branches(cluster, part, progress)
    room = room_for(request.directory, branches)
    if room.needed > room.free:
        raise InputError(
            f"{request.directory}: {room.shortage}; nothing was sent. --rescue DIR names a directory on a larger"
            " disk; --no-rescue elects without reading first what is cut off then"
        )
    rate = request.rate or EXPECTED_RATE
    sizes: dict[int, int] = {}
    for branch in branches:
        sizes[branch.broker] = sizes.get(branch.broker, 0) + max(branch.size, 0)
    return RescueOutlook(
        request,
        len({branch.tp for branch in branches}),
        sum(branch.end - branch.start for branch in branches),
        tuple(sorted(sizes)),
        sum(branch.size < 0 for branch in branches),
        max(sizes.values(), default=0) / rate,
        rate,
        room,
    )
