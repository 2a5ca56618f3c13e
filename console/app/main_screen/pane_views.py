"""The panes that a key opens, and from the session's view to what each of them shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from backends.base.answers import LogDir
from console.app.main_screen.brokers_view import brokers_view
from console.app.main_screen.offline_view import UNKNOWN
from console.app.main_screen.quorum_view import quorum_view
from console.app.main_screen.title_view import doubt
from console.app.plan.progress import Batches
from console.app.plan.view import plan_view
from console.app.session.session import Session
from console.app.session.view import View
from console.operations.registry import BROKERS, DIRS, ELIGIBLE, PLAN, QUORUM, REPLICAS, TIMELINE
from recovery.controller.rules import ControllerRules, shipped
from recovery.model import Lineage, ReplicaLog, Survey, TopicPartition, Unknown, Why
from widgets.base_pane import Pane
from widgets.brokers import BrokersPane
from widgets.eligible import DiskWord, EligiblePane, EligibleRow, EligibleView, unknown_now
from widgets.log_dirs import LogDirDetail, LogDirRow, LogDirsPane, LogDirsView
from widgets.plan import PlanPane
from widgets.quorum import QuorumPane, QuorumPaneView
from widgets.replicas import ReplicasPane, ReplicasView
from widgets.timeline import TimelinePane, TimelineView

LARGEST = 5
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
            pane.update(_replicas(session, sources.cursor))
        case EligiblePane():
            eligible = _eligible(session, view)
            nobody = unknown_now(eligible.doubt) if eligible.doubt else _NOBODY
            pane.table.empty = nobody if eligible.known else UNKNOWN
            pane.update(eligible)
        case QuorumPane():
            pane.update(_quorum(view))
        case LogDirsPane():
            pane.update(_log_dirs(view, sources.log_dir))
        case PlanPane():
            pane.update(plan_view(session, sources.batches, sources.how_to_plan))
        case TimelinePane():
            pane.update(sources.timeline)
        case BrokersPane():
            pane.update(brokers_view(session))


def _replicas(session: Session, partition: TopicPartition | None) -> ReplicasView | Unknown | None:
    view = session.view
    survey = None if partition is None else view.surveys.get(partition)
    if partition is None or survey is None:
        elsewhere = {} if view.partitions is None else view.partitions.unreachable_leaders
        return None if partition is None else elsewhere.get(partition, _NOT_YET)
    asked = view.surveyed.get(partition)
    age = 0.0 if asked is None or view.at is None else max(0.0, view.at - asked)
    ages = {replica.broker: age for replica in survey.replicas}
    judged = view.verdicts.get(partition)
    verdicts = None if judged is None else judged.verdicts
    return ReplicasView(survey, session.choosing.ranking, view.brokers, view.calls, ages, verdicts)


def _eligible(session: Session, view: View) -> EligibleView:
    rules, made_of = rules_of(view), session.rows.made_of
    surveys = sorted(view.surveys.values(), key=lambda s: (not s.state.offline, s.tp))
    known = view.partitions is not None and (bool(surveys) or not view.troubled)
    advised = ((survey, made_of.get(survey.tp)) for survey in surveys)
    rows = tuple(
        EligibleRow(survey, rules, _disks(survey, view), None if made is None else made[1].advice)
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


def _disks(survey: Survey, view: View) -> Mapping[int, DiskWord]:
    """What is known of the disk that each replica's broker would come back with."""
    return {replica.broker: _disk(survey, replica.broker, view) for replica in survey.replicas}


def _disk(survey: Survey, broker: int, view: View) -> DiskWord:
    log = survey.log(broker)
    if isinstance(log, ReplicaLog):
        others = any(
            other.log_end_offset > 0 for r in survey.replicas if (other := survey.log(r.broker)) is not None
        )
        never = isinstance(log.lineage, Lineage) and not log.lineage.spans
        return DiskWord.EMPTY if log.log_end_offset == 0 and never and others else DiskWord.HOLDS_LOG
    dirs = (view.log_dirs or {}).get(broker, ())
    if not isinstance(dirs, Unknown) and any(one.error for one in dirs):
        return DiskWord.FAILED_DIR
    return DiskWord.NOT_KNOWN


def _quorum(view: View) -> QuorumPaneView | Unknown | None:
    if view.quorum is None or isinstance(view.quorum, Unknown):
        return view.quorum
    return quorum_view(view.quorum, view.brokers.keys())


def _log_dirs(view: View, detail: LogDirDetail | None) -> LogDirsView:
    found = view.log_dirs or {}
    rows = [_dir_row(one) for dirs in found.values() if not isinstance(dirs, Unknown) for one in dirs]
    refused = {broker: dirs for broker, dirs in found.items() if isinstance(dirs, Unknown)}
    return LogDirsView(tuple(rows), refused, detail, view.log_dirs is not None)


def _dir_row(one: LogDir) -> LogDirRow:
    replicas = [replica for replica in one.replicas if not replica.future]
    largest = sorted(replicas, key=lambda r: -r.size)[:LARGEST]
    return LogDirRow(
        one.broker,
        one.path,
        one.error,
        one.total_bytes,
        one.usable_bytes,
        sum(max(0, replica.size) for replica in replicas),
        len(replicas),
        tuple((r.tp, r.size) for r in largest),
        len(one.replicas) - len(replicas),
    )
