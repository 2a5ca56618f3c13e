"""The panes that a key opens, and from the session's view to what each of them shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from backends.base.failed_disks import FailedDisks
from console.app.base.progress import Batches
from console.app.main_screen.bars import doubt
from console.app.main_screen.key_actions import ActionContext, Obstacle, disabled
from console.app.main_screen.offline_view import UNKNOWN
from console.app.session.session import Session
from console.app.session.view import View
from console.change.registry import (
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
from console.jobs.disks.log_dirs_pane import LogDirDetail, LogDirsPane
from console.jobs.elect.plan_pane import PlanPane
from console.jobs.elect.plan_text import BatchProgress
from console.jobs.quorum.quorum_pane import QuorumPane
from console.reading.broker_report import BrokerRow, broker_rows
from console.reading.brokers_pane import BrokersPane
from console.reading.log_dirs_report import dir_rows
from console.reading.replica_report import ReplicaRow, replica_rows
from console.reading.replicas_pane import ReplicasPane
from recovery.controller.rules import ControllerRules, shipped
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import QuorumHealth, health
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import Lineage, ReplicaLog, Survey, TopicPartition, Unknown, Why
from recovery.wording.after_rebuild_text import now_line, wipe_line
from widgets.base_pane import Pane
from widgets.eligible_pane import DiskWord, EligiblePane, EligibleRow, EligibleView, unknown_now
from widgets.timeline_pane import TimelinePane, TimelineView


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
    return tuple(_timed(row, view, now) for row in broker_rows(reading, session.rows.loads))


def _timed(row: BrokerRow, view: View, now: float) -> BrokerRow:
    fenced_at, answered_at = view.fenced_since.get(row.id), view.answered.get(row.id)
    return row._replace(
        fenced_s=None if fenced_at is None else max(0.0, now - fenced_at[0]),
        exact=fenced_at is not None and fenced_at[1],
        answered_s=None if answered_at is None else max(0.0, now - answered_at),
    )


def quorum_shown(view: View) -> QuorumHealth | QuorumWithoutLeader | Unknown | None:
    """As observers, the cluster's brokers can never be voters."""
    if not isinstance(view.quorum, Quorum):
        return view.quorum
    controllers = {replica.key.id for replica in view.quorum.progress} - set(view.brokers)
    return health(view.quorum, LivenessLimits(), controllers)


def after_rebuild_lines(session: Session) -> tuple[str, ...]:
    """What comes next after a rebuild of the quorum: one line, or none."""
    after = session.view.after_rebuild
    if after is None:
        return ()
    return (now_line(after, session.target.command) or wipe_line(after),)


_NOBODY = "no partition waits for a leader"
_NOT_YET = Unknown(Why.NOT_ANSWERED, "not asked yet")


class PaneSources(NamedTuple):
    """What the panes are made from: the session, the partition under the cursor, the progress of the task under
    way (None: there is none), the keys that lead to a plan, the log dir that was asked for, and the timeline.
    """

    session: Session
    cursor: TopicPartition | None
    batches: Batches | None
    how_to_plan: str
    log_dir: LogDirDetail | None
    timeline: TimelineView


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
    )


def update_pane(pane: Pane, sources: PaneSources) -> None:
    """Hands a pane what it shows now."""
    session, view = sources.session, sources.session.view
    match pane:
        case ReplicasPane():
            pane.update(_replicas(view, sources.cursor), session.choosing.ranking)
        case EligiblePane():
            eligible = _eligible(session, view)
            nobody = unknown_now(eligible.doubt) if eligible.doubt else _NOBODY
            pane.table.empty = nobody if eligible.known else UNKNOWN
            pane.update(eligible)
        case QuorumPane():
            pane.update(quorum_shown(view), after_rebuild_lines(session))
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
            pane.update(session.draft, batch, native=native, how=sources.how_to_plan)
        case TimelinePane():
            pane.update(sources.timeline)
        case BrokersPane():
            pane.update(brokers_shown(session), doubt(session))


def _replicas(view: View, partition: TopicPartition | None) -> tuple[ReplicaRow, ...] | Unknown | None:
    survey = None if partition is None else view.surveys.get(partition)
    if partition is None or survey is None:
        elsewhere = {} if view.partitions is None else view.partitions.unreachable_leaders
        return None if partition is None else elsewhere.get(partition, _NOT_YET)
    asked = view.surveyed.get(partition)
    age = 0.0 if asked is None or view.at is None else max(0.0, view.at - asked)
    return _NOT_YET if view.reading is None else replica_rows(view.reading, survey, age)


def _eligible(session: Session, view: View) -> EligibleView:
    rules, made_of = rules_of(view), session.rows.made_of
    surveys = sorted(view.surveys.values(), key=lambda s: (not s.state.offline, s.tp))
    known = view.partitions is not None and (bool(surveys) or not view.troubled)
    advised = ((survey, made_of.get(survey.tp)) for survey in surveys)
    disks = FailedDisks(view.log_dirs or {}, view.failed_before)
    rows = tuple(
        EligibleRow(
            survey,
            rules,
            _disks(survey, _failed(view, survey, disks)),
            None if made is None else made[1].advice,
        )
        for survey, made in advised
    )
    return EligibleView(rows, known, doubt(session))


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
    judged = view.verdicts.get(survey.tp)
    return disks.under(survey) if judged is None else judged.failed | disks.under(survey)


def _disks(survey: Survey, failed: frozenset[int]) -> Mapping[int, DiskWord]:
    """What is known of the disk that each replica's broker would come back with; ``failed``: whose failed."""
    return {replica.broker: _disk(survey, replica.broker, failed) for replica in survey.replicas}


def _disk(survey: Survey, broker: int, failed: frozenset[int]) -> DiskWord:
    log = survey.log(broker)
    if isinstance(log, ReplicaLog):
        others = any(
            other.log_end_offset > 0 for r in survey.replicas if (other := survey.log(r.broker)) is not None
        )
        never = isinstance(log.lineage, Lineage) and not log.lineage.spans
        return DiskWord.EMPTY if log.log_end_offset == 0 and never and others else DiskWord.HOLDS_LOG
    return DiskWord.FAILED_DIR if broker in failed else DiskWord.NOT_KNOWN
