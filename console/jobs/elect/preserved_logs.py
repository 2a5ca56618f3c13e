"""``--keep-log-of``: the logs of silent brokers are kept from being cut off by the elections of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from backends.base.protocol import Backend, Recorder
from console.change.change import ChangeRun, Conclusion, Question
from console.change.finish_earlier import FinishedChanges, Resumption
from console.errors import InputError, Status
from console.jobs.elect.election_batches import SUCCESS, Elected, RowFailure
from console.jobs.heal.heal_replicas import move_fields
from console.jobs.heal.keep_logs import LogKeeper, PreservationEnd, PreservedLog
from console.journal.change_kinds import KEEP_LOG, OpenChange, keep_moves
from console.journal.unfinished_entries import Unfinished, still_in_doubt
from console.reading.plan_comparison import PreparedPlan
from recovery.controller.rules import MIN_ISR
from recovery.log_preservation import COST, KeepPlan, keep_plan, taken_out
from recovery.model import TopicPartition, Unknown, Why
from recovery.plan.judgement import Judgement, Reason, RowDecision
from recovery.plan.values import Plan
from recovery.unread_brokers import UnreadBrokers
from recovery.wording.quantity_text import both, counted, some_of

SILENT = "silent"
"""Instead of broker ids: every broker that is down and whose log nobody read."""


def brokers_to_keep(text: str) -> frozenset[int]:
    """``3``, ``2,3``, or ``silent``: an empty set. Raises InputError."""
    if text.strip().lower() == SILENT:
        return frozenset()
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 11 for word in words):
        raise InputError(f"--keep-log-of {text}: give broker ids, such as 2,3, or {SILENT}")
    return frozenset(map(int, words))


@dataclass(frozen=True, slots=True)
class PreservedLogs:
    """The end of each partition's."""

    logs: tuple[PreservedLog, ...]

    @property
    def open(self) -> bool:
        """Whether ``ktriage resume`` has something left."""
        return any(one.end is PreservationEnd.STILL_REPLICA for one in self.logs)

    @property
    def brokers(self) -> tuple[int, ...]:
        """Whose logs are kept."""
        mine = (one.brokers for one in self.logs if one.end is PreservationEnd.PRESERVED)
        return tuple(sorted({broker for brokers in mine for broker in brokers}))

    @property
    def failures(self) -> tuple[RowFailure, ...]:
        """Those that are not kept, or not yet. Their partitions have their leaders."""
        return tuple(
            RowFailure(one.move.tp, f"log of broker {both(one.brokers)}: {one.end}: {one.why}", leads=True)
            for one in self.logs
            if one.end is not PreservationEnd.PRESERVED
        )


async def plan_to_keep(cluster: Backend, plan: Plan, brokers: frozenset[int]) -> KeepPlan:
    """What keeps those logs. Raises InputError where no log of a named broker waits for its start, BackendError."""
    topics = sorted({row.tp.topic for row in plan.rows})
    configs = await cluster.topic_configs(topics) if topics else {}
    found = keep_plan(plan.rows, brokers, {topic: _min_isr(one) for topic, one in configs.items()})
    elsewhere = brokers.difference(*(row.replicas for row in plan.rows)) if plan.rows else frozenset()
    if elsewhere:
        raise InputError(
            f"--keep-log-of: broker {both(sorted(elsewhere))} has no replica of these partitions; nothing was sent"
        )
    return found


def _min_isr(configs: Mapping[str, str] | Unknown) -> int | Unknown:
    if isinstance(configs, Unknown):
        return configs
    value = configs.get(MIN_ISR, "")
    return int(value) if value.isdecimal() else Unknown(Why.NOT_ANSWERED, "its topic did not tell")


def only_where_preserved(prepared: PreparedPlan, keep: KeepPlan) -> PreparedPlan:
    """Refuses the rows whose logs cannot be kept as was asked."""
    why = {one.tp: one.why for one in keep.not_preserved}

    def judged(check: Judgement) -> Judgement:
        if not check.holds or check.tp not in why:
            return check
        detail = f"{why[check.tp]}. Without --keep-log-of the partition is elected"
        return Judgement(check.tp, RowDecision.NOT_POSSIBLE, Reason.NOT_KEPT, detail)

    rows = tuple(row for row in prepared.holding.rows if row.tp not in why)
    checks = tuple(map(judged, prepared.checks))
    return replace(prepared, checks=checks, holding=replace(prepared.holding, rows=rows))


def without_preserved(prepared: PreparedPlan, keep: KeepPlan | None) -> PreparedPlan:
    """The same, without the unread logs that will be kept: no start cuts them off."""
    if keep is None:
        return prepared
    out = {move.tp: set(taken_out(move)) for move in keep.moves}
    left = {
        row.tp: tuple(broker for broker in prepared.unread[row.tp] if broker not in out.get(row.tp, ()))
        for row in prepared.holding.rows
        if row.tp in prepared.unread
    }
    return replace(prepared, unread={tp: brokers for tp, brokers in left.items() if brokers})


def keep_notes(keep: KeepPlan | None) -> tuple[str, ...]:
    """For the question: what will be done, and what it costs."""
    if keep is None or not keep.moves:
        return ()
    brokers = both(keep.brokers)
    return (
        f"broker {brokers} is taken out of {counted(len(keep.moves), 'partition')} right after the elections, so"
        f" that its log is kept when it starts; it must be down until then. It costs {COST}",
    )


def cut_off_at_start(
    elected: Elected, unread: UnreadBrokers, preserved: PreservedLogs | None
) -> UnreadBrokers:
    """The brokers whose unread logs are cut off when they start, of the partitions that were elected."""
    out = {
        (one.move.tp, broker)
        for one in (() if preserved is None else preserved.logs)
        if one.end is PreservationEnd.PRESERVED
        for broker in one.brokers
    }
    found = {
        tp: tuple(broker for broker in brokers if (tp, broker) not in out)
        for tp, brokers in elected.of_elected(unread).items()
    }
    return {tp: brokers for tp, brokers in found.items() if brokers}


_KEEP = " keep"
"""Behind the answer to the question of elections: the unread logs are to be kept too."""


def with_keep_offer(question: Question, offered: KeepPlan | None) -> Question:
    """The question, which can be answered so that the unread logs are kept, where that is possible."""
    if offered is None or not offered.moves:
        return question
    phrase, brokers = f"{question.answers[0]}{_KEEP}", both(offered.brokers)
    left = len(offered.not_preserved)
    where = f" (not for {counted(left, 'partition')}: {offered.not_preserved[0].why})" if left else ""
    line = (
        f"type {phrase!r} instead to keep the log of broker {brokers} from being cut off: right after the elections"
        f" it is taken out of {counted(len(offered.moves), 'partition')}{where}. It must be down until then, and it"
        f" costs {COST}"
    )
    return question._replace(answers=(*question.answers, phrase), warnings=(*question.warnings, line))


def keeps(answer: str) -> bool:
    """Whether the answer asks for that."""
    return answer.endswith(_KEEP)


def note_keeping(recorder: Recorder, keep: KeepPlan, plan: Plan) -> str:
    """Records, before the elections, which brokers are to be taken out after them; returns the entry's id."""
    epochs = {row.tp: row.leader_epoch for row in plan.rows}
    moves = [{**move_fields(move), "leaderEpoch": epochs[move.tp]} for move in keep.moves]
    return recorder.before(KEEP_LOG, {"planId": plan.header.plan_id, "moves": moves})


async def keep_logs(
    cluster: Backend, keep: KeepPlan, entry: str, elected: Elected, run: ChangeRun[Any]
) -> PreservedLogs:
    """Takes the brokers out where the elections succeeded, and ends the ``entry`` unless something is left."""
    moves = {move.tp: move for move in keep.moves}
    ready, ended = [], []
    for result in elected.results:
        move = moves.get(result.row.tp)
        if move is None:
            continue
        election = result.election
        if not election.reverted or election.in_doubt:
            ended.append(
                PreservedLog(
                    move, PreservationEnd.STILL_REPLICA, "its election is not finished: ktriage resume"
                )
            )
        elif election.outcome in SUCCESS:
            ready.append(move)
        else:
            ended.append(
                PreservedLog(move, PreservationEnd.NOT_TAKEN_OUT, f"nobody was elected ({election.outcome})")
            )
    epochs = {result.row.tp: result.row.leader_epoch for result in elected.results}
    if ready:
        with run.stop.in_flight():
            ended += await LogKeeper(cluster, run, epochs).take_out(ready)
    preserved = PreservedLogs(tuple(sorted(ended, key=lambda one: one.move.tp)))
    if not preserved.open:
        run.journal.after(entry, {"kept": preserved_json(preserved)})
    return preserved


async def finish(
    cluster: Backend, found: Unfinished, run: ChangeRun[Unfinished], _asked: Resumption
) -> FinishedChanges:
    """Takes the brokers out that an earlier run was to take out, where the partition was elected; not while an
    order of that run stands, or an election of it may still come.
    """
    if still_in_doubt(run.cluster_id, found):
        return FinishedChanges(Conclusion(Status.PARTLY, unfinished=True, next=("resume",)))
    ended: list[PreservedLog] = []
    with run.stop.in_flight():
        for entry in found.of(KEEP_LOG):
            ended += await _finished(cluster, entry, run)
    preserved = PreservedLogs(tuple(ended))
    status = Status.PARTLY if preserved.failures else Status.DONE
    conclusion = Conclusion(status, unfinished=preserved.open, next=("resume",) if preserved.open else ())
    return FinishedChanges(conclusion, (*preserved_lines(preserved), *map(str, preserved.failures)))


async def _finished(cluster: Backend, entry: OpenChange, run: ChangeRun[Unfinished]) -> list[PreservedLog]:
    keeps = list(keep_moves(entry.detail))
    keeper = LogKeeper(cluster, run, {keep.move.tp: keep.leader_epoch for keep in keeps})
    ended = await keeper.take_out([keep.move for keep in keeps])
    preserved = PreservedLogs(tuple(ended))
    if not preserved.open:
        run.journal.after(entry.entry, {"kept": preserved_json(preserved)})
    return ended


def preserved_json(preserved: PreservedLogs) -> list[dict[str, object]]:
    """``keptLogs`` of ``ktriage.apply/2``; the journal has the same."""
    return [
        {
            "topic": one.move.tp.topic,
            "partition": one.move.tp.partition,
            "brokers": list(one.brokers),
            "replicas": list(one.move.after),
            "end": str(one.end),
            "why": one.why,
        }
        for one in preserved.logs
    ]


def preserved_lines(preserved: PreservedLogs) -> tuple[str, ...]:
    """What became of the logs, and what is to be done next."""
    found: list[str] = []
    by_broker: dict[int, list[TopicPartition]] = {}
    for one in preserved.logs:
        if one.end is PreservationEnd.PRESERVED:
            for broker in one.brokers:
                by_broker.setdefault(broker, []).append(one.move.tp)
    for broker, partitions in sorted(by_broker.items()):
        found.append(
            f"broker {broker} is no replica of {some_of(partitions)} any more: when it starts it keeps its log, in"
            " a folder that ends in -stray"
        )
    unchecked = next(
        (one.why for one in preserved.logs if one.end is PreservationEnd.PRESERVED and one.why), ""
    )
    if unchecked:
        found.append(unchecked)
    if by_broker:
        found.append(
            "start it, read the log (ktriage rescue read --to DIR --from-disk LOG_DIR), and then assign the replica"
            " again (ktriage heal assign-again)"
        )
    return tuple(found)
