"""Saves the voters of a healthy quorum, for a later time when they cannot be read."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from backends.base.errors import BackendError, NoLeader
from backends.base.metadata_log import MetadataLogSource
from backends.base.simulated_clusters import is_simulated
from backends.base.time_limit import time_limit
from console.errors import NotDone
from console.last_healthy import clusters_known, forget, recall, remember
from console.provenance import made_by, now
from console.reading.quorum_state import (
    BETWEEN_READINGS,
    QuorumReading,
    ask_controllers,
    brokers_of_log,
    lost,
    lost_at_named,
    read_quorum_state,
    read_rebuild,
    replaced_by_rebuild,
    saved_voter,
    saved_voters,
)
from recovery.membership.after_rebuild import old_logs
from recovery.membership.controllers_asked import RememberedQuorum, rebuilt_away, rebuilt_between
from recovery.membership.lost_quorum import EPOCH_MARGIN
from recovery.membership.possible_only_voter import BrokersFollowing
from recovery.membership.preflight import LivenessLimits, strength
from recovery.membership.quorum_health import health
from recovery.membership.voters import ReplicaKey
from recovery.model import Unknown, Why
from recovery.wording.after_rebuild_text import growth_line
from recovery.wording.quantity_text import printable, time_text

if TYPE_CHECKING:
    from pathlib import Path

    from backends.base.membership import Membership
    from backends.base.protocol import Backend
    from recovery.membership.controllers_asked import ControllersAsked
    from recovery.membership.lost_quorum import QuorumCopy
    from recovery.membership.quorum import Quorum
    from recovery.membership.quorum_rebuild import RebuildPlan
    from recovery.membership.quorum_without_leader import QuorumWithoutLeader
    from recovery.membership.voters import Voter
    from recovery.metadata_log.rebuilt_log import RebuiltLog

MEMORY = "quorum"
"""The name under which the voters are saved."""
REBUILD = "rebuild"
"""The name under which the last rebuild is saved that was carried out on this host."""
LOST_SECONDS = 10.0
"""Seconds that the hosts of a quorum without a leader are asked for, at the most."""


class QuorumAnswer(NamedTuple):
    """The quorum as its leader describes it. Where no leader answered: why, and ``lost``, what its hosts tell.
    ``earlier``: the quorum as it was remembered.
    """

    quorum: Quorum | Unknown
    lost: QuorumWithoutLeader | None = None
    earlier: RememberedQuorum | None = None

    @property
    def answer(self) -> Quorum | QuorumWithoutLeader | Unknown:
        return self.lost or self.quorum


async def quorum_or_lost(
    backend: Backend, cluster_id: str, source: MetadataLogSource | None = None
) -> QuorumAnswer:
    """The quorum of an open backend; where no leader answers its controllers are asked one by one. ``source``: the
    metadata log, where the caller reads it too.
    """
    quorum = await backend.quorum()
    membership: Membership | None = getattr(backend, "membership", None)
    refused = isinstance(quorum, Unknown) and quorum.why in (Why.NOT_ALLOWED, Why.NOT_OFFERED, Why.NOT_ASKED)
    if membership is None or refused or not isinstance(quorum, Unknown):
        if isinstance(quorum, Unknown):
            return QuorumAnswer(quorum)
        earlier = remembered_quorum(cluster_id)
        known = earlier is not None and earlier.rebuilt_epoch is not None
        if membership is not None and (not known or health(quorum, LivenessLimits()).dead_voters):
            rebuilt = await _rebuild_in(source or MetadataLogSource(), backend, quorum)
            quorum = with_rebuild(quorum, rebuilt, earlier)
            earlier = with_replaced(quorum, rebuilt, earlier)
        return QuorumAnswer(quorum, earlier=earlier)
    with contextlib.suppress(BackendError, TimeoutError):
        async with time_limit(membership, LOST_SECONDS):
            await membership.open()
            return QuorumAnswer(quorum, await lost(membership, cluster_id, recall(cluster_id, MEMORY)))
    return QuorumAnswer(quorum)


async def _rebuild_in(
    source: MetadataLogSource, backend: Backend, quorum: Quorum
) -> RebuiltLog | Unknown | None:
    """As :func:`read_rebuild`, of a log that others read too."""
    if quorum.leader_epoch <= EPOCH_MARGIN:
        return None
    unread, history = await source.read(backend), source.history
    return history if isinstance(history, Unknown) else unread or history.rebuilt


async def reading_or_lost(membership: Membership) -> QuorumReading | QuorumWithoutLeader:
    """The quorum, or what can be read of it; the voters of a quorum that commits are saved.

    Raises Unreachable, NotAllowed, BackendError.
    """
    cluster_id = await membership.open()
    try:
        reading_now = await read_quorum_state(membership)
    except NoLeader:
        return await lost(membership, cluster_id, recall(cluster_id, MEMORY))
    earlier = remembered_quorum(cluster_id)
    if not reading_now.health.wedged:
        remember_voters(reading_now.quorum)
    return replace(reading_now, earlier=earlier)


def remembered_quorum(cluster_id: str) -> RememberedQuorum | None:
    """The quorum as it was remembered; None: it was not, or without its epoch."""
    saved = recall(cluster_id, MEMORY)
    if saved is None or "leaderEpoch" not in saved:
        return None
    addresses = tuple(f"{e[1]}:{e[2]}" for voter in saved["voters"] for e in voter["endpoints"][:1])
    keys = tuple(ReplicaKey(int(voter["id"]), str(voter["directoryId"])) for voter in saved["voters"])
    return RememberedQuorum(
        int(saved["leaderEpoch"]),
        str(saved["at"]),
        addresses,
        keys,
        tuple(voter.key for voter in replaced_by_rebuild(saved, swapped=False)),
        has_led="rebuiltAt" not in saved,
        rebuilt_epoch=saved.get("rebuiltEpoch"),
    )


def with_rebuild(
    quorum: Quorum, rebuilt: RebuiltLog | Unknown | None, earlier: RememberedQuorum | None
) -> Quorum:
    """The quorum with the rebuild that it goes on from: as its own metadata log tells it, else as it is remembered
    (``earlier``) of the same leader's disk. Epochs that elections alone do not reach are of another rebuild.
    """
    if rebuilt is not None and not isinstance(rebuilt, Unknown):
        return replace(quorum, rebuilt_epoch=rebuilt.epoch)
    if earlier is None or quorum.leader not in earlier.voters:
        return quorum
    apart = sorted((earlier.epoch, quorum.leader_epoch))
    return quorum if rebuilt_between(*apart) else replace(quorum, rebuilt_epoch=earlier.rebuilt_epoch)


def with_replaced(
    quorum: Quorum, rebuilt: RebuiltLog | Unknown | None, earlier: RememberedQuorum | None
) -> RememberedQuorum | None:
    """The quorum as it is remembered (``earlier``); where no rebuild is, as its own log tells it: whose metadata
    logs must not be used again concerns whoever starts a broker, also one who never saw the rebuild.
    """
    known = earlier is not None and earlier.rebuilt_epoch is not None
    if known or rebuilt is None or isinstance(rebuilt, Unknown):
        return earlier
    replaced = old_logs(rebuilt, health(quorum, LivenessLimits()))
    addresses = tuple(at.address for voter in quorum.voters.voters for at in voter.endpoints[:1])
    return RememberedQuorum(
        quorum.leader_epoch, "", addresses, quorum.voters.keys, replaced, rebuilt_epoch=rebuilt.epoch
    )


def rebuilt_at_address(addresses: Collection[str]) -> str:
    """The cluster that a rebuild gave its only voter at one of these ``addresses``, and that nobody has seen led
    since; "" where that is none, or more than one. A controller that does not answer tells no cluster id.
    """
    mine = []
    for cluster_id in clusters_known():
        if "rebuiltAt" not in (recall(cluster_id, MEMORY) or ()):
            continue
        rebuilt = remembered_quorum(cluster_id)
        if rebuilt is not None and not rebuilt.has_led and set(addresses).intersection(rebuilt.addresses):
            mine.append(cluster_id)
    return mine[0] if len(mine) == 1 else ""


async def lost_of_named(membership: Membership) -> QuorumWithoutLeader:
    """What the given addresses of controllers tell where none of them tells its cluster, and what is remembered of
    a rebuild at one of them.
    """
    named = await lost_at_named(membership)
    cluster_id = rebuilt_at_address([host.address for host in named.hosts])
    return await lost(membership, cluster_id, recall(cluster_id, MEMORY)) if cluster_id else named


def log_of_old_voters(cluster_id: str, epoch: int | None) -> str:
    """That a metadata log whose newest batch is of that quorum ``epoch`` is not the rebuilt quorum's; "" where that
    is not known.
    """
    earlier = remembered_quorum(cluster_id)
    if earlier is None or epoch is None or not rebuilt_between(epoch, earlier.epoch):
        return ""
    return (
        f"THIS LOG IS OF OLD VOTERS (quorum epoch {epoch:,}), which a rebuild replaced: the cluster's quorum was"
        f" led in epoch {earlier.epoch:,} at {earlier.at}. Whom to stop: ktriage quorum status"
    )


async def ask_every_controller(
    membership: Membership, cluster_id: str, rebuilt: RebuiltLog | Unknown | None = None
) -> ControllersAsked:
    """Every controller that is known, those that were remembered or ``rebuilt`` away too, at its own address.
    Raises BackendError.
    """
    return await ask_controllers(membership, recall(cluster_id, MEMORY), rebuilt)


async def reading_of_everybody(membership: Membership, reading: QuorumReading) -> QuorumReading:
    """With what every controller answers, and where the quorum was rebuilt. Where another quorum was rebuilt in
    the place of this one, that is remembered. Raises BackendError.
    """
    rebuilt = await read_rebuild(membership, reading.quorum)
    asked = await ask_every_controller(membership, reading.cluster_id, rebuilt)
    if not asked.brokers.asked and not BrokersFollowing(reading.health).following:
        asked = replace(asked, brokers=await brokers_of_log(membership))
    if BrokersFollowing(reading.health, asked.brokers).nobody_follows:
        # Who leads since a moment ago lists brokers only when they have fetched.
        await membership.pause(BETWEEN_READINGS)
        reading = replace(reading, health=(await read_quorum_state(membership)).health)
    if isinstance(reading.controllers, Unknown) and asked.brokers.asked:
        # No controller tells who the others are: a registered broker is none that waits for a vote.
        others = (
            {one.key.id for one in reading.quorum.progress} - asked.brokers.answering - asked.brokers.silent
        )
        found = health(reading.quorum, LivenessLimits(), others, wedged=reading.health.wedged)
        reading = replace(reading, health=found)
    quorum = with_rebuild(reading.quorum, rebuilt, remembered_quorum(reading.cluster_id))
    reading = replace(reading, health=replace(reading.health, quorum=quorum))
    for other in asked.others(reading.quorum):
        if other.led is not None and rebuilt_away(reading.quorum, other.led):
            remember_voters(other.led)
    if rebuilt is not None and not isinstance(rebuilt, Unknown):
        remember_voters(reading.quorum, rebuilt.gone)
    earlier = remembered_quorum(reading.cluster_id) or reading.earlier
    return replace(reading, asked=asked, rebuilt=rebuilt, earlier=earlier)


class QuorumProblems(NamedTuple):
    """What is wrong with a quorum that its leader does not tell, and ``second_quorum`` as in ClusterHealth."""

    texts: tuple[str, ...] = ()
    second_quorum: tuple[str, ...] = ()


async def quorum_problems(membership: Membership) -> QuorumProblems:
    """Such as brokers that would not find the next leader; nothing where nobody leads, unless old voters do, or
    where the question failed.
    """
    with contextlib.suppress(BackendError):
        try:
            reading = await reading_of_everybody(membership, await read_quorum_state(membership))
        except NoLeader:
            return QuorumProblems(await _old_voters_lead(membership))
        to_grow = growth_line(reading.rebuilt, reading.health)
        texts = (*(one.text for one in reading.findings), _not_replaced(reading), to_grow)
        second = () if reading.asked is None else reading.asked.second_quorum(reading.quorum)
        return QuorumProblems(tuple(printable(text) for text in texts if text), second)
    return QuorumProblems()


def _not_replaced(reading: QuorumReading) -> str:
    """Why no voter that is down may be replaced, where brokers were asked; "" where one may, or none is to run."""
    if reading.asked is None or not reading.asked.brokers.asked or reading.of_old_voters:
        return ""
    following = BrokersFollowing(reading.health, reading.asked.brokers)
    return following.refusal(following.possible_only_voters)


async def _old_voters_lead(membership: Membership) -> tuple[str, ...]:
    """That voters which a rebuild replaced lead, while the rebuilt quorum has no leader. Raises BackendError."""
    cluster_id = await membership.open()
    saved = recall(cluster_id, MEMORY)
    if saved is None or not saved.get("replaced"):
        return ()
    without = await lost(membership, cluster_id, saved)
    return (without.of_old_voters,) if without.old_running else ()


async def rebuilt_problems(backend: Backend, quorum: Quorum | Unknown | None) -> QuorumProblems:
    """The same of a quorum that was rebuilt, as its epoch shows; nothing of any other, whose controllers are not
    asked one by one.
    """
    membership: Membership | None = getattr(backend, "membership", None)
    if membership is None or quorum is None or isinstance(quorum, Unknown):
        return QuorumProblems()
    if quorum.leader_epoch <= EPOCH_MARGIN:
        return QuorumProblems()
    with contextlib.suppress(BackendError):
        await membership.open()
        return await quorum_problems(membership)
    return QuorumProblems()


def remember_rebuild(plan: RebuildPlan, file: Path, reason: str, at: str = "") -> None:
    """Saves the quorum as a rebuild made it, before it has led: who is started, and who never again. What was saved
    of the old voters stands in the record of the rebuild, for the way back. It was carried out ``at`` ("": now).
    """
    if is_simulated(plan.cluster_id):
        return  # its controllers are as the scenario has them, whatever is done with the disks
    at = at or now().isoformat(timespec="seconds")
    earlier, voter = recall(plan.cluster_id, REBUILD), plan.voter
    known = earlier is not None and earlier.get("planId") == plan.header.plan_id
    before = earlier["before"] if earlier is not None and known else recall(plan.cluster_id, MEMORY)
    record = {"planId": plan.header.plan_id, "at": at, "by": made_by(), "reason": reason, "before": before}
    remember(plan.cluster_id, REBUILD, {**record, "node": voter.key.id, "file": str(file.absolute())})
    quorum = {
        "at": at,
        "rebuiltAt": at,
        "planFile": str(file.absolute()),
        "leaderEpoch": plan.epoch,
        "rebuiltEpoch": plan.epoch,
        "replaced": [saved_voter(one) for one in plan.other_voters],
        "voters": [{**saved_voter(voter), "logEndOffset": plan.end}],
    }
    remember(plan.cluster_id, MEMORY, quorum)


def remember_copies(copies: Iterable[QuorumCopy]) -> None:
    """Saves the quorum as the newest copy of a log that was rebuilt tells it, where no newer one is known: whoever
    has not seen the rebuilt quorum learns of it from any broker's disk.
    """
    rebuilt = [copy for copy in copies if copy.rebuilt_epoch is not None and copy.voters.voters]
    if not rebuilt:
        return
    newest = max(rebuilt, key=lambda copy: copy.position)
    earlier = remembered_quorum(newest.cluster_id)
    if is_simulated(newest.cluster_id) or (earlier is not None and earlier.epoch >= newest.epochs_known):
        return
    at = datetime.fromtimestamp((newest.last_ms or 0) / 1000, UTC).isoformat(timespec="seconds")
    # Nobody has led while the newest batch is the rebuild's own.
    led = {} if newest.epoch > (newest.rebuilt_epoch or 0) else {"rebuiltAt": at, "planFile": ""}
    quorum = {
        **led,
        "at": at,
        "leaderEpoch": newest.epochs_known,
        "rebuiltEpoch": newest.rebuilt_epoch,
        "replaced": [saved_voter(one) for one in newest.replaced],
        "voters": [{**saved_voter(one), "logEndOffset": newest.end} for one in newest.voters.voters],
    }
    remember(newest.cluster_id, MEMORY, quorum)


def forget_rebuild(plan: RebuildPlan) -> None:
    """After the way back: the voters are those that were saved before."""
    record = recall(plan.cluster_id, REBUILD)
    if record is None or record.get("planId") != plan.header.plan_id:
        return
    forget(plan.cluster_id, REBUILD)
    before = record["before"]
    if before is None:
        forget(plan.cluster_id, MEMORY)
    else:
        remember(plan.cluster_id, MEMORY, before)


def applied_rebuild(cluster_id: str) -> str:
    """The rebuild that was carried out on this host last, in one line; "": none that is remembered."""
    record = recall(cluster_id, REBUILD)
    if record is None:
        return ""
    reason = f"; reason: {record['reason']}" if record["reason"] else ""
    at = time_text(round(datetime.fromisoformat(record["at"]).timestamp() * 1000))
    return printable(
        f"{at} {record['by']}: ktriage quorum rebuild {record['file']}, which made controller"
        f" {record['node']} the only voter{reason}"
    )


def remember_voters(quorum: Quorum, replaced: Iterable[Voter] | None = None) -> None:
    """Saves the voters of a quorum that commits, but never old ones in the place of those of a rebuilt quorum.
    ``replaced`` by a rebuild; None: as they were saved.
    """
    earlier = remembered_quorum(quorum.cluster_id)
    if earlier is not None and earlier.is_beyond(quorum):
        return
    if strength(quorum, quorum.voters, LivenessLimits()).commits:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        saved = recall(quorum.cluster_id, MEMORY)
        gone = replaced_by_rebuild(saved) if replaced is None else tuple(replaced)
        swapped = {voter.key for voter in replaced_by_rebuild(saved, swapped=True)}
        known = with_rebuild(quorum, None, earlier) if quorum.rebuilt_epoch is None else quorum
        rebuilt = {} if known.rebuilt_epoch is None else {"rebuiltEpoch": known.rebuilt_epoch}
        remember(quorum.cluster_id, MEMORY, {**saved_voters(quorum, at, gone, swapped), **rebuilt})


async def remember_new_voters(membership: Membership) -> None:
    """Saves the voters after a change. If the leader removed itself, another leader may have to be elected
    first.
    """
    with contextlib.suppress(BackendError):
        remember_voters(await membership.describe())


async def leaderless(membership: Membership, cluster_id: str, error: NoLeader) -> NotDone:
    """The message for a quorum without a leader: no change can be committed, and these voters must come back."""
    found = await lost(membership, cluster_id, recall(cluster_id, MEMORY))
    last_reading = f" (voters as last seen {found.recorded_at})" if found.certain else ""
    return NotDone(f"{found.sentence}{last_reading}; nothing was sent ({error})")
