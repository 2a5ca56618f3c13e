"""From the session's view to what each pane shows. Only the open pane is drawn; the others when they are opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from backends.base.answers import LogDir
from console.app.main_screen.quorum_view import quorum_view
from console.app.plan.view import how_to_plan, plan_view
from console.app.session.view import View
from console.operations.keys import DIRS, ELIGIBLE, OFFLINE, PLAN, QUORUM, REPLICAS
from recovery.controller.rules import ControllerRules, shipped
from recovery.model import Lineage, ReplicaLog, Survey, Unknown, Why
from widgets.eligible import DiskWord, EligiblePane, EligibleRow, EligibleView
from widgets.log_dirs import LogDirRow, LogDirsPane, LogDirsView
from widgets.partitions import PartitionsPane, PartitionsView
from widgets.plan import PlanPane
from widgets.quorum import QuorumPane
from widgets.replicas import ReplicasPane, ReplicasView

if TYPE_CHECKING:
    from console.app.main_screen.main_screen import MainScreen

LARGEST = 5
_NONE = "no partition is offline or under min ISR"
_NOBODY = "no partition waits for a leader"
_NOT_SEEN = "not known: nothing was seen of this cluster yet"
_NOT_YET = Unknown(Why.NOT_ANSWERED, "not asked yet")


def update(desk: MainScreen) -> None:
    """Hands the open pane what it shows now."""
    _DRAW[desk.pane](desk)


def _partitions(desk: MainScreen) -> None:
    session = desk.session
    title = "All partitions" if session.others else "Offline and under min ISR"
    now = session.view.at if session.view.at is not None else session.clock()
    pane = desk.query_one(PartitionsPane)
    # An empty list must not read as good news while nobody could be asked.
    known = session.view.partitions is not None
    pane.table.empty = _NONE if known else _NOT_SEEN
    first = session.view.first or 0.0
    picked = session.draft.partitions
    pane.update(PartitionsView(session.rows.partitions, now, title, picked, known=known, first=first))


def _replicas(desk: MainScreen) -> None:
    view, pane = desk.session.view, desk.query_one(ReplicasPane)
    if desk.cursor is None:
        pane.update(None)
        return
    survey = view.surveys.get(desk.cursor)
    if survey is None:
        pane.update(_NOT_YET)
        return
    asked = view.surveyed.get(desk.cursor)
    age = 0.0 if asked is None or view.at is None else max(0.0, view.at - asked)
    brokers = view.brokers
    ages = {replica.broker: age for replica in survey.replicas}
    pane.update(ReplicasView(survey, desk.session.choosing.ranking, brokers, view.calls, ages))


def _eligible(desk: MainScreen) -> None:
    view = desk.session.view
    rules = rules_of(view)
    surveys = sorted(view.surveys.values(), key=lambda s: (not s.state.offline, s.tp))
    known = view.partitions is not None and (bool(surveys) or not view.troubled)
    pane = desk.query_one(EligiblePane)
    pane.table.empty = _NOBODY if known else _NOT_SEEN
    rows = tuple(EligibleRow(survey, rules, _disks(survey, view)) for survey in surveys)
    pane.update(EligibleView(rows, known))


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


def _quorum(desk: MainScreen) -> None:
    view, pane = desk.session.view, desk.query_one(QuorumPane)
    if view.quorum is None or isinstance(view.quorum, Unknown):
        pane.update(view.quorum)
        return
    pane.update(quorum_view(view.quorum, view.brokers.keys()))


def _dirs(desk: MainScreen) -> None:
    view = desk.session.view
    found = view.log_dirs or {}
    rows = [_dir_row(one) for dirs in found.values() if not isinstance(dirs, Unknown) for one in dirs]
    rows.sort(
        key=lambda row: row.error is None
    )  # among a thousand dirs the failed one must not be looked for
    refused = {broker: dirs for broker, dirs in found.items() if isinstance(dirs, Unknown)}
    desk.query_one(LogDirsPane).update(
        LogDirsView(tuple(rows), refused, desk.dir_shown, view.log_dirs is not None)
    )


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


def _plan(desk: MainScreen) -> None:
    under_way = desk.planner.batches if desk.busy else None
    desk.query_one(PlanPane).update(plan_view(desk.session, under_way, how_to_plan(desk.standing())))


_DRAW: Mapping[str, Callable[[MainScreen], None]] = {
    OFFLINE: _partitions,
    REPLICAS: _replicas,
    ELIGIBLE: _eligible,
    QUORUM: _quorum,
    DIRS: _dirs,
    PLAN: _plan,
}
