"""The panes that a key opens, and from the session's view to what each of them shows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from backends.base.failed_disks import FailedDisks
from console.app.base.progress import Batches
from console.app.main_screen.bars import doubt, not_known
from console.app.main_screen.key_actions import ActionContext, Obstacle, disabled
from console.app.session.session import Session
from console.app.session.view import View
from console.change.registry import (
    AFTER,
    BROKERS,
    BY_NAME,
    DIRS,
    ELIGIBLE,
    OFFLINE,
    PLAN,
    QUORUM,
    REPLICAS,
    TIMELINE,
)
from console.jobs.consumers.after_pane import AfterPane, AfterView
from console.jobs.disks.log_dirs_pane import LogDirDetail, LogDirsPane
from console.jobs.elect.plan_pane import PlanPane
from console.jobs.elect.plan_text import BatchProgress
from console.jobs.quorum.quorum_pane import QuorumPane
from console.jobs.timeline.timeline_pane import TimelinePane, TimelineView
from console.reading.broker_report import BrokerRow, broker_rows
from console.reading.brokers_pane import BrokersPane
from console.reading.log_dirs_report import dir_rows
from console.reading.partitions_pane import partition_drawing
from console.reading.replica_report import ReplicaRow, replica_rows
from console.reading.replicas_pane import ReplicasPane
from recovery.advice import Advice
from recovery.controller.rules import ControllerRules, shipped
from recovery.membership.quorum_health import NO_BROKER_ASKED, QuorumHealth
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import Lineage, ReplicaLog, Survey, TopicPartition, Unknown, Why
from recovery.wording.after_rebuild_text import now_line
from widgets.base_pane import Pane
from widgets.eligible_pane import DiskWord, EligiblePane, EligibleRow, EligibleView, unknown_now, who_may_lead
from widgets.fields import natural
from widgets.text import Line


def how_to_plan(standing: ActionContext) -> str:
    """The keys that lead to a plan, as they are bound, if they work now."""
    choose, load = BY_NAME["choose"], BY_NAME["load"]
    found = disabled(load, standing)
    no_files = found is not None and found.obstacle is Obstacle.NO_FILES
    loads = "" if no_files else f"; {load.shown} loads one from a file"
    return f"{choose.shown} in pane {OFFLINE} chooses for the row under the cursor, or for all marked{loads}"


def brokers_shown(session: Session) -> tuple[BrokerRow, ...] | None:
    """The brokers that are registered, and those that have replicas and are not; None: not read yet."""
    view, reading = session.view, session.view.reading
    if reading is None:
        return None
    now = view.at if view.at is not None else session.clock()
    rows = session.rows
    steps = None if view.at is None else reading.all_steps(rows.counts.steps)
    return tuple(_timed(row, view, now) for row in broker_rows(reading, rows.loads, steps))


def _timed(row: BrokerRow, view: View, now: float) -> BrokerRow:
    fenced_at, answered_at = view.fenced_since.get(row.id), view.answered.get(row.id)
    return row._replace(
        fenced_s=None if fenced_at is None else max(0.0, now - fenced_at[0]),
        exact=fenced_at is not None and fenced_at[1],
        answered_s=None if answered_at is None else max(0.0, now - answered_at),
    )


def quorum_shown(view: View) -> QuorumHealth | QuorumWithoutLeader | Unknown | None:
    """As observers, the cluster's brokers can never be voters."""
    return None if view.reading is None else view.reading.lost or view.reading.members_health


_NOBODY = "no partition waits for a leader"
_NOT_YET = Unknown(Why.NOT_ANSWERED, "not asked yet")


class PaneSources(NamedTuple):
    """What the panes are made from: the session, the partition under the cursor, the progress of the task under
    way (None: there is none), the keys that lead to a plan, the log dir that was asked for, the timeline, and what
    elections did to clients, and the rows of pane 3 as they are kept.
    """

    session: Session
    cursor: TopicPartition | None
    batches: Batches | None
    how_to_plan: str
    log_dir: LogDirDetail | None
    timeline: TimelineView
    after: AfterView
    eligible: EligibleRows


def other_panes() -> tuple[Pane, ...]:
    """Every pane but the first, by the ids of the main screen."""
    return (
        ReplicasPane(id=f"pane-{REPLICAS}"),
        EligiblePane(id=f"pane-{ELIGIBLE}"),
        QuorumPane(id=f"pane-{QUORUM}"),
        LogDirsPane(id=f"pane-{DIRS}"),
        PlanPane(id=f"pane-{PLAN}"),
        TimelinePane(id=f"pane-{TIMELINE}"),
        BrokersPane(id=f"pane-{BROKERS}"),
        AfterPane(id=f"pane-{AFTER}"),
    )


def update_pane(pane: Pane, sources: PaneSources) -> None:
    """Hands a pane what it shows now."""
    session, view = sources.session, sources.session.view
    match pane:
        case ReplicasPane():
            pane.update(_replicas(view, sources.cursor), session.choosing.ranking)
        case EligiblePane():
            eligible = sources.eligible.of(session)
            nobody = unknown_now(eligible.doubt) if eligible.doubt else _NOBODY
            pane.table.empty = nobody if eligible.known else not_known(session)
            pane.update(eligible)
        case QuorumPane():
            after = view.after_rebuild
            pane.update(
                quorum_shown(view),
                after,
                "" if after is None else now_line(after, session.target.command),
                None if view.reading is None else view.reading.earlier,
                brokers=NO_BROKER_ASKED if view.reading is None else view.reading.known_brokers,
            )
        case LogDirsPane():
            reading = None if view.log_dirs is None else view.reading
            pane.update(None if reading is None else dir_rows(reading), sources.log_dir)
        case PlanPane():
            batches = sources.batches
            batch = (
                None
                if batches is None or not batches.of
                else BatchProgress(batches.what, batches.done, batches.of)
            )
            native = session.view.native_elections
            draw = partial(_logs_of, session)
            pane.update(session.draft, batch, native=native, how=sources.how_to_plan, draw=draw)
        case TimelinePane():
            pane.update(sources.timeline)
        case BrokersPane():
            pane.update(brokers_shown(session), doubt(session))
        case AfterPane():
            pane.update(sources.after)


def _logs_of(session: Session, tp: TopicPartition, width: int) -> list[Line]:
    """What pane 1 draws of a partition, where its logs were read; pane 6 itself says what each choice loses."""
    view = session.view
    survey = view.surveys.get(tp)
    if survey is None:
        return []
    may_lead = partial(draw_who_may_lead, session)
    return partition_drawing(survey, session.choosing.ranking, width, may_lead)


def _replicas(view: View, partition: TopicPartition | None) -> tuple[ReplicaRow, ...] | Unknown | None:
    survey = None if partition is None else view.surveys.get(partition)
    if partition is None or survey is None:
        elsewhere = {} if view.partitions is None else view.partitions.unreachable_leaders
        return None if partition is None else elsewhere.get(partition, _NOT_YET)
    asked = view.surveyed.get(partition)
    age = 0.0 if asked is None or view.at is None else max(0.0, view.at - asked)
    return _NOT_YET if view.reading is None else replica_rows(view.reading, survey, age)


class EligibleRows:
    """The rows of pane 3. Thousands take their time: they are kept while all that they are made of is the same, and
    a row is while its own survey and advice are.
    """

    def __init__(self) -> None:
        self._of: tuple[object, ...] = ()
        self._made: dict[TopicPartition, tuple[tuple[object, ...], EligibleRow]] = {}
        self._rows: tuple[EligibleRow, ...] = ()

    def of(self, session: Session) -> EligibleView:
        """What the pane shows now."""
        view = session.view
        of = (view.reading, session.rows.made_of)
        if len(of) != len(self._of) or any(now is not then for now, then in zip(of, self._of, strict=True)):
            self._of, self._rows = of, self._build(session)
        known = view.partitions is not None and (bool(self._rows) or not view.troubled)
        ranking = session.choosing.ranking
        return EligibleView(self._rows, known, doubt(session), complete=view.at is not None, ranking=ranking)

    def _build(self, session: Session) -> tuple[EligibleRow, ...]:
        view, before = session.view, self._made
        rules, disks = rules_of(view), FailedDisks(view.log_dirs or {}, view.failed_before)
        topics = {topic: natural(topic) for topic in {tp.topic for tp in view.surveys}}
        self._made = {}
        for tp, survey in view.surveys.items():
            advice, failed = _advice(session, tp), _failed(view, survey, disks)
            old = before.get(tp)
            same = (
                old is not None
                and old[0][0] is survey
                and old[0][1] is advice
                and old[0][2:] == (failed, rules)
            )
            row = old[1] if old is not None and same else _eligible_row(survey, rules, advice, failed)
            self._made[tp] = ((survey, advice, failed, rules), row)
        ordered = sorted(
            self._made.items(),
            key=lambda one: (not one[1][1].survey.state.offline, topics[one[0].topic], one[0]),
        )
        rows = tuple(row for _, (_, row) in ordered)
        return self._rows if rows == self._rows else rows


def draw_who_may_lead(session: Session, survey: Survey, width: int) -> list[Line]:
    """Who may lead one partition, as pane 3 draws it."""
    view = session.view
    failed = _failed(view, survey, FailedDisks(view.log_dirs or {}, view.failed_before))
    return who_may_lead(_eligible_row(survey, rules_of(view), _advice(session, survey.tp), failed), width)


def _advice(session: Session, tp: TopicPartition) -> Advice | None:
    made = session.rows.made_of.get(tp)
    return None if made is None else made[1].advice


def _eligible_row(
    survey: Survey, rules: ControllerRules, advice: Advice | None, failed: frozenset[int]
) -> EligibleRow:
    return EligibleRow(survey, rules, _disks(survey, failed), advice)


def rules_of(view: View) -> ControllerRules:
    """The controller's rules, as far as the release and the features tell."""
    cluster = view.cluster
    elr = cluster is not None and cluster.elr_enabled is True
    parts = (cluster.release if cluster is not None else "").split(".")
    if len(parts) >= 2 and parts[0].isdecimal() and parts[1].isdecimal():
        return shipped((int(parts[0]), int(parts[1])), elr=elr)
    return ControllerRules(elr=elr)


def _failed(view: View, survey: Survey, disks: FailedDisks) -> frozenset[int]:
    """As the verdict had it, which knows the metadata log too."""
    judged = view.judged.get(survey.tp)
    return disks.under(survey) if judged is None else judged.failed | disks.under(survey)


def _disks(survey: Survey, failed: frozenset[int]) -> Mapping[int, DiskWord]:
    """What is known of the disk that each replica's broker would come back with; ``failed``: whose failed."""
    return {replica.broker: _disk(survey, replica.broker, failed) for replica in survey.replicas}


def _disk(survey: Survey, broker: int, failed: frozenset[int]) -> DiskWord:
    log = survey.log(broker)
    if isinstance(log, ReplicaLog):
        if log.log_end_offset or not isinstance(log.lineage, Lineage) or log.lineage.spans:
            return DiskWord.HOLDS_LOG
        ends = (other.log_end_offset for r in survey.replicas if (other := survey.log(r.broker)) is not None)
        return DiskWord.EMPTY if any(end > 0 for end in ends) else DiskWord.HOLDS_LOG
    return DiskWord.FAILED_DIR if broker in failed else DiskWord.NOT_KNOWN
