"""Gives the partitions of a broker that is gone for good new replicas, and undoes it."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from backends.base.replica_moves import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Configured,
    ConfiguredKind,
    ReplicaMover,
    Throttles,
)
from console.change.access import Access
from console.change.change import Change, ChangeRun, Conclusion, Operator, Question
from console.change.unfinished_orders import unfinished_here
from console.errors import InputError, NotDone, Status
from console.jobs.heal.empty_partitions import begin_empty
from console.jobs.heal.heal_survey import (
    HealProposal,
    HealSelection,
    log_sizes,
    read_and_plan,
)
from console.jobs.heal.move_batches import (
    EndedMove,
    MoveBatches,
    MoveEnd,
    copies,
    not_moved,
    read_moves,
)
from console.journal.change_kinds import HEAL, OpenChange
from console.journal.recorded_keeps import recorded_keeps
from console.journal.run_records import read_runs
from console.journal.unfinished_entries import unfinished
from console.journal.unread_disks import DISK_WAIVED, DiskPartition, waived_detail
from recovery.heal_plan import NotHealed, ReplicaMove, in_batches
from recovery.model import TopicPartition, Unknown
from recovery.wording.quantity_text import both, brokers_are, counted, either, human_bytes, some_of

# The throttle of moved replicas: its configurations, set before anything is copied, and removed afterwards.


@dataclass(frozen=True, slots=True)
class ReplicationThrottle:
    """``rate`` in bytes a second, for each broker as a source and as a target; ``values`` are what is set."""

    rate: int
    values: Mapping[Configured, Mapping[str, str]]

    def as_fields(self) -> dict[str, object]:
        """As the journal has it."""
        rows = [[one.kind.value, one.name, dict(values)] for one, values in self.values.items()]
        return {"rate": self.rate, "values": rows}

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> ReplicationThrottle:
        """Reads :meth:`as_fields`."""
        values = {Configured(ConfiguredKind(kind), name): found for kind, name, found in fields["values"]}
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
        Configured(ConfiguredKind.BROKER, str(broker)): {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
        for broker in sorted(brokers)
    }
    for topic in sorted(sources):
        values[Configured(ConfiguredKind.TOPIC, topic)] = {
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
    problems = await mover.alter_configs(throttle.values)
    failed = {one: why for one, why in problems.items() if why is not None}
    return next((f"the throttle could not be set on {one}: {why}" for one, why in failed.items()), "")


async def remove_throttle(
    cluster: Backend, mover: ReplicaMover, throttle: ReplicationThrottle
) -> Mapping[Configured, str]:
    """Removes what is still as we set it; returns what may still be set, and why. Never raises BackendError
    for a single broker or topic.
    """
    found = await cluster.throttle_reader().throttles(list(throttle.values))
    left = {one: str(values) for one, values in found.items() if isinstance(values, Unknown)}
    ours = {one: _ours(throttle.values[one], values) for one, values in found.items() if one not in left}
    problems = await mover.alter_configs({one: changes for one, changes in ours.items() if changes})
    left.update({one: why for one, why in problems.items() if why is not None})
    return left


def _ours(written: Mapping[str, str], now: Throttles | Unknown) -> dict[str, str | None]:
    if isinstance(now, Unknown):
        return {}
    return {name: None for name, value in written.items() if now.get(name) == value}


@dataclass(frozen=True, slots=True)
class HealLimits:
    """``rate``: bytes a second of each broker, None: no throttle. ``batch``: partitions at the same time."""

    rate: int | None
    batch: int


@dataclass(frozen=True, slots=True)
class PreparedHeal:
    """What would be moved. ``cancelled`` are moves in progress that are cancelled first: those of an undo, and
    those of anybody that wait for a broker that is gone. ``left`` are the partitions that are left as they are.
    ``reading`` is None where a heal is undone, or replicas are assigned ``again``. ``empty``: the partitions of
    ``moves`` have no replica left, and begin empty.
    """

    cluster_id: str
    gone: frozenset[int]
    moves: tuple[ReplicaMove, ...]
    left: tuple[NotHealed, ...]
    throttle: ReplicationThrottle | None
    reading: HealProposal | None = None
    cancelled: tuple[ReplicaMove, ...] = ()
    simulated: bool = False
    again: bool = False
    empty: bool = False

    @property
    def targets(self) -> tuple[tuple[TopicPartition, tuple[int, ...]], ...]:
        """Each partition with the replicas that it would have."""
        cancelled = ((move.tp, move.before) for move in self.cancelled)
        return (*((move.tp, move.after) for move in self.moves), *cancelled)


@dataclass(frozen=True, slots=True)
class HealedReplicas:
    """The result: an end for each move; ``throttled`` are the brokers and topics that may still have our throttle,
    with the reason.
    """

    prepared: PreparedHeal
    ended: tuple[EndedMove, ...] = ()
    sent: bool = False
    throttled: Mapping[str, str] | None = None

    @property
    def open(self) -> bool:
        """Whether ``ktriage resume`` has something left: copies in progress, or a throttle."""
        return bool(self.throttled) or any(one.end is MoveEnd.COPYING for one in self.ended)


@dataclass(frozen=True, slots=True)
class HealReplicas(Change[Backend, PreparedHeal, HealedReplicas]):
    """Moves the replicas of brokers that are gone. ``undo``: takes back what the newest run of this command did.
    ``again``: assigns those again that were taken away so that their logs are kept; ``unread``: also where the log
    was not read. ``empty``: partitions without any replica left get new ones, and begin empty; nothing else is
    moved.

    ``title`` names the cluster in the question. ``compared``: as a person agreed to it; nothing is sent if other
    replicas would be made now.
    """

    selection: HealSelection
    title: str
    reason: str
    limits: HealLimits
    undo: bool = False
    again: bool = False
    unread: bool = False
    empty: bool = False
    dry_run: bool = False
    compared: PreparedHeal | None = None

    async def settle(self, access: Access[Backend], run: ChangeRun[PreparedHeal]) -> None:
        """Raises NotDone while an earlier run's copies or throttles are open; an undo ends those itself."""
        found = await unfinished_here(access.reading, run.cluster_id)
        run.operator.finds(found)
        if found.of(HEAL) and not self.undo:
            raise NotDone(
                f"an earlier run is unfinished and nothing was sent; finish it first: {run.resume_command}"
            )

    async def prepare(
        self, cluster: Backend, cluster_id: str, operator: Operator[PreparedHeal]
    ) -> PreparedHeal:
        if self.undo:
            back = await _taken_back(cluster, cluster_id, self.limits)
            if self.compared is not None and self.compared.targets != back.targets:
                raise NotDone("other replicas would go back now than those that were shown; nothing was sent")
            return back
        if self.again:
            return await _assigned_again(cluster, cluster_id, self.limits, unread=self.unread)
        reading = await read_and_plan(cluster, self.selection)
        plan = reading.plan
        if self.empty:
            names = {move.tp for move in plan.empty}
            left = tuple(one for one in plan.not_healed if one.tp not in names)
            gone = frozenset(plan.gone)
            return PreparedHeal(
                cluster_id, gone, plan.empty, left, None, reading, simulated=cluster.simulated, empty=True
            )
        now = (*((m.tp, m.after) for m in plan.moves), *((m.tp, m.before) for m in plan.cancelled))
        if self.compared is not None and self.compared.targets != now:
            raise NotDone("the new replicas would be others now than those that were shown; nothing was sent")
        throttle = await _throttle(cluster, plan.moves, self.limits)
        return PreparedHeal(
            cluster_id,
            frozenset(plan.gone),
            plan.moves,
            plan.not_healed,
            throttle,
            reading,
            plan.cancelled,
            simulated=cluster.simulated,
        )

    def nothing_to_send(self, prepared: PreparedHeal) -> HealedReplicas | None:
        nothing = not prepared.moves and not prepared.cancelled
        return HealedReplicas(prepared) if self.dry_run or nothing else None

    def question(self, prepared: PreparedHeal) -> Question:
        number = len(prepared.moves) + len(prepared.cancelled)
        size = human_bytes(sum(move.size * len(move.added) for move in prepared.moves if move.size > 0))
        partitions = counted(number, "partition")
        if self.undo:
            what = f"{partitions} will be moved back"
        elif self.empty:
            what = f"EVERY RECORD of {partitions} will be given up: each begins empty,"
        elif self.again:
            what = f"{partitions} will have the replicas again whose logs were kept ({size} to copy)"
        else:
            what = f"{counted(len(prepared.moves), 'partition')} will get new replicas ({size} to copy)"
            if prepared.cancelled:
                ends = counted(len(prepared.cancelled), "reassignment")
                what += f", and {ends} in progress will be cancelled,"
        text = f"{what} on cluster {prepared.cluster_id} ({self.title})."
        warnings = () if self.undo or self.again else _warnings(prepared)
        return Question.number(text, "the number of partitions", number, warnings)

    async def recheck(
        self,
        cluster: Backend,
        prepared: PreparedHeal,
        answer: str,
        operator: Operator[PreparedHeal],
    ) -> PreparedHeal:
        """Each partition is judged right before its batch is sent."""
        return prepared

    async def execute(
        self, cluster: Backend, prepared: PreparedHeal, run: ChangeRun[PreparedHeal]
    ) -> HealedReplicas:
        mover = cluster.replica_mover()
        work = MoveBatches(cluster, mover, run, frozenset() if self.undo else prepared.gone)
        with run.stop.in_flight():
            earlier = unfinished(run.cluster_id).of(HEAL) if self.undo else ()
            self._waives(prepared, run)
            entry = run.journal.before(
                HEAL, {**_fields(prepared, undo=self.undo), "again": self.again, "empty": self.empty}
            )
            ended: list[EndedMove] = []
            if prepared.cancelled:
                cancel = work.cancel if self.undo else work.cancel_waiting
                ended += await cancel(prepared.cancelled)
            for one in earlier:
                await _close_earlier(cluster, one, run, ended)
            if prepared.throttle is not None and (why := await set_throttle(mover, prepared.throttle)):
                if not await throttle_left(cluster, prepared.throttle):
                    run.journal.after(entry, {"ended": _ended_fields(ended)})
                raise NotDone(f"{why}; no replica was moved")
            if self.empty:
                ended += await begin_empty(work, prepared.moves)
            else:
                ended += await work.execute(in_batches(prepared.moves, self.limits.batch))
            copying = any(one.end is MoveEnd.COPYING for one in ended)
            throttled = {} if copying else await throttle_left(cluster, prepared.throttle)
            result = HealedReplicas(prepared, tuple(ended), True, throttled)
            if not result.open:
                run.journal.after(entry, {"ended": _ended_fields(ended)})
            return result

    def _waives(self, prepared: PreparedHeal, run: ChangeRun[PreparedHeal]) -> None:
        """The disks that will not be read before their replicas are assigned again."""
        if not (self.again and self.unread):
            return
        waived: dict[int, list[DiskPartition]] = {}
        for disk in unfinished(run.cluster_id).unread_disks:
            if any(move.tp == disk.tp and disk.broker in move.added for move in prepared.moves):
                waived.setdefault(disk.broker, []).append(DiskPartition(disk.tp, disk.topic_id))
        for broker, partitions in waived.items():
            run.journal.after(run.journal.before(DISK_WAIVED, waived_detail(broker, partitions)), {})

    def conclusion(self, result: HealedReplicas) -> Conclusion:
        counts = Counter(str(one.end) for one in result.ended)
        wanted = MoveEnd.CANCELLED if result.prepared.cancelled else MoveEnd.MOVED
        failed = [one for one in not_moved(result.ended) if one.end is not wanted]
        reading = result.prepared.reading
        known = reading is None or not reading.unheard_of
        # What a cancelled reassignment leaves on the brokers that are gone is moved by another run.
        gone = result.prepared.gone
        more = reading is not None and any(gone.intersection(m.before) for m in result.prepared.cancelled)
        whole = known and not failed and not result.prepared.left and not result.open and not more
        status = Status.DONE if whole else Status.PARTLY
        return Conclusion(status, counts, result.open, ("resume",) if result.open else ())


async def _throttle(
    cluster: Backend, moves: Sequence[ReplicaMove], limits: HealLimits
) -> ReplicationThrottle | None:
    """The throttle to set. None: without ``--throttle``, if nothing is copied, or on a simulated cluster, which has
    none. A broker that is down copies nothing, and it cannot be read whether a throttle is set on it.

    Raises NotDone if somebody else has set one.
    """
    copied = [move for move in moves if move.added]
    if limits.rate is None or not copied or cluster.simulated:
        return None
    up = {broker.id for broker in (await cluster.cluster()).brokers if not broker.fenced}
    throttle = throttle_of(copied, up, limits.rate)
    await refuse_other_throttles(cluster, throttle)
    return throttle


async def throttle_left(cluster: Backend, throttle: ReplicationThrottle | None) -> dict[str, str]:
    """Removes the throttle; returns what may still have it, and why."""
    if throttle is None:
        return {}
    try:
        left = await remove_throttle(cluster, cluster.replica_mover(), throttle)
    except BackendError as error:
        return {str(one): str(error) for one in throttle.values}
    return {str(one): why for one, why in left.items()}


def _warnings(prepared: PreparedHeal) -> tuple[str, ...]:
    words = [f"{brokers_are(prepared.gone, 'taken to be gone for good')}, with all disks"]
    if prepared.empty:
        words += empty_notes(prepared)
    else:
        brokers = either(sorted(prepared.gone))
        words.append(f"Do this only if broker {brokers} cannot come back: starting it again copies less.")
        words.append(
            f"What is copied goes back only once {brokers_are(prepared.gone, 'up')} again (ktriage heal undo)."
        )
    if prepared.reading is not None and prepared.reading.cruise_control:
        words.append("Cruise Control seems to run here: make sure that it does not move the same replicas.")
    return tuple(words)


def empty_notes(prepared: PreparedHeal) -> tuple[str, ...]:
    """What is lost, before anything is sent."""
    if not prepared.moves:
        return ()
    names, gone = some_of([move.tp for move in prepared.moves]), either(sorted(prepared.gone))
    return (
        f"EVERY record of {names} is lost.",
        f"What a disk of broker {gone} still holds can be read, and written back later (ktriage rescue read).",
        "Offsets begin at 0 again: committed offsets of groups point behind the end. There is no undo.",
    )


def _fields(prepared: PreparedHeal, *, undo: bool) -> dict[str, object]:
    return {
        "undo": undo,
        "gone": sorted(prepared.gone),
        "throttle": None if prepared.throttle is None else prepared.throttle.as_fields(),
        "moves": [move_fields(move) for move in prepared.moves],
    }


def move_fields(move: ReplicaMove) -> dict[str, object]:
    """A move as the journal has it."""
    return {
        "topic": move.tp.topic,
        "partition": move.tp.partition,
        "topicId": move.topic_id,
        "before": list(move.before),
        "after": list(move.after),
        "bytes": move.size,
    }


def moves_of(detail: Mapping[str, Any]) -> tuple[ReplicaMove, ...]:
    """The moves of an entry of the journal."""
    return tuple(
        ReplicaMove(
            TopicPartition(row["topic"], row["partition"]),
            row["topicId"],
            tuple(row["before"]),
            tuple(row["after"]),
            row["bytes"],
        )
        for row in detail["moves"]
    )


def journal_throttle(detail: Mapping[str, Any]) -> ReplicationThrottle | None:
    """The throttle of an entry of the journal; None if it set none."""
    found = detail["throttle"]
    return None if found is None else ReplicationThrottle.of_fields(found)


def _ended_fields(ended: Sequence[EndedMove]) -> list[dict[str, object]]:
    return [{"partition": str(one.move.tp), "end": str(one.end), "why": one.why} for one in ended]


async def _close_earlier(
    cluster: Backend, entry: OpenChange, run: ChangeRun[PreparedHeal], ended: Sequence[EndedMove]
) -> None:
    """Removes the throttle of a run that did not come to its end, once nothing of it is copied any more."""
    if any(one.end is MoveEnd.COPYING for one in ended):
        return
    if not await throttle_left(cluster, journal_throttle(entry.detail)):
        run.journal.settle("a later run took it back", entries=[entry.entry])


async def _taken_back(cluster: Backend, cluster_id: str, limits: HealLimits) -> PreparedHeal:
    """The newest heal the other way round: what is in progress is cancelled, what was moved goes back where the
    broker that was gone is up again.
    """
    detail = _newest_heal(cluster_id)
    moves = moves_of(detail)
    if not moves:
        return PreparedHeal(cluster_id, frozenset(), (), (), None)
    reading = await read_moves(cluster, moves)
    up = {broker.id for broker in (await cluster.cluster()).brokers if not broker.fenced}
    back: list[ReplicaMove] = []
    cancelled: list[ReplicaMove] = []
    left: list[NotHealed] = []
    for move in moves:
        state = reading.states.get(move.tp)
        down = [broker for broker in move.before if broker not in up]
        if copies(move, reading.moving.get(move.tp)):
            cancelled.append(move)
        elif state is None or state.topic_id != move.topic_id or move.tp in reading.moving:
            left.append(NotHealed(move.tp, "it was changed by somebody else"))
        elif state.replicas == move.before:
            continue
        elif state.replicas != move.after:
            left.append(NotHealed(move.tp, f"the assignment is {list(state.replicas)} now"))
        elif down:
            left.append(NotHealed(move.tp, brokers_are(down, "not up, so it cannot take its replica back")))
        else:
            back.append(move._replace(before=move.after, after=move.before))
    gone = frozenset(detail["gone"])
    throttle = await _throttle(cluster, back, limits)
    return PreparedHeal(
        cluster_id, gone, tuple(back), tuple(left), throttle, None, tuple(cancelled), cluster.simulated
    )


async def _assigned_again(
    cluster: Backend, cluster_id: str, limits: HealLimits, *, unread: bool
) -> PreparedHeal:
    """The replicas that were taken away to keep their logs, where the broker is up and the log was read."""
    keeps = recorded_keeps(cluster_id)
    if not keeps:
        raise InputError(
            "the journal of this host has no log of this cluster that was kept; nothing was sent"
        )
    reading = await read_moves(cluster, tuple(keeps.values()))
    up = {broker.id for broker in (await cluster.cluster()).brokers if not broker.fenced}
    open_disks = {(disk.tp, disk.broker) for disk in unfinished(cluster_id).unread_disks}
    sizes = log_sizes(await cluster.log_dirs())
    moves: list[ReplicaMove] = []
    left: list[NotHealed] = []
    for keep in keeps.values():
        state = reading.states.get(keep.tp)
        if state is None or state.topic_id != keep.topic_id or set(keep.before) <= set(state.replicas):
            continue
        back = [broker for broker in keep.before if broker not in keep.after]
        not_read = [broker for broker in back if (keep.tp, broker) in open_disks]
        down = [broker for broker in back if broker not in up]
        if keep.tp in reading.moving:
            left.append(NotHealed(keep.tp, "it is being reassigned: let that end first"))
        elif state.replicas != keep.after:
            left.append(NotHealed(keep.tp, f"the assignment is {list(state.replicas)} now"))
        elif not_read and not unread:
            why = (
                f"the log that broker {both(not_read)} kept was not read, and Kafka may delete it once the broker"
                " has its replica again: read it (ktriage rescue read --to DIR --from-disk LOG_DIR), or give"
                " --unread"
            )
            left.append(NotHealed(keep.tp, why))
        elif down:
            left.append(NotHealed(keep.tp, brokers_are(down, "not up, so it cannot take its replica back")))
        else:
            moves.append(keep._replace(before=keep.after, after=keep.before, size=sizes.get(keep.tp, 0)))
    throttle = await _throttle(cluster, moves, limits)
    return PreparedHeal(
        cluster_id, frozenset(), tuple(moves), tuple(left), throttle, simulated=cluster.simulated, again=True
    )


def _newest_heal(cluster_id: str) -> Mapping[str, Any]:
    """Raises InputError where there is none, JournalError."""
    for run in reversed(read_runs(cluster_id)):
        for begun, _ in run.entries(HEAL):
            # What began empty has nothing to go back to.
            if not (begun.detail["undo"] or begun.detail.get("again") or begun.detail.get("empty")):
                return begun.detail
    raise InputError("the journal of this host has no heal of this cluster; nothing was sent")
