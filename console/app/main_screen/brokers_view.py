"""The brokers' pane value: registration, answers, and what hangs on each broker."""

from __future__ import annotations

from console.app.main_screen.title_view import doubt
from console.app.session.session import Session
from console.app.session.view import View
from recovery.broker_load import BrokerLoad
from recovery.model import Unknown, Why
from widgets.brokers import BrokerRow, BrokersView


def brokers_view(session: Session) -> BrokersView:
    """The brokers that are registered, and those that have replicas and are not."""
    view, loads = session.view, session.rows.loads
    if view.cluster is None or view.partitions is None:
        return BrokersView((), known=False)
    now = view.at if view.at is not None else session.clock()
    brokers = {*view.brokers, *loads}
    rows = tuple(_row(broker, view, loads.get(broker, BrokerLoad()), now) for broker in brokers)
    return BrokersView(rows, doubt=doubt(session))


def _row(broker: int, view: View, load: BrokerLoad, now: float) -> BrokerRow:
    registered, contact = view.brokers.get(broker), view.contacts.get(broker)
    dirs = (view.log_dirs or {}).get(broker)
    problem = contact.problem if contact is not None else dirs if isinstance(dirs, Unknown) else None
    fenced_at = view.fenced_since.get(broker)
    answered_at = view.answered.get(broker)
    where = "" if registered is None else f"{registered.host}:{registered.port}"
    return BrokerRow(
        broker,
        where or (contact.address if contact is not None else ""),
        None if registered is None else registered.rack,
        None if registered is None else registered.fenced,
        load,
        fenced_s=None if fenced_at is None else max(0.0, now - fenced_at[0]),
        exact=fenced_at is not None and fenced_at[1],
        answered_s=None if answered_at is None else max(0.0, now - answered_at),
        problem=_problem_text(problem),
        asked=contact is not None or dirs is not None,
        failed_dirs=None
        if dirs is None or isinstance(dirs, Unknown)
        else sum(1 for one in dirs if one.error),
    )


def _problem_text(problem: Unknown | None) -> str:
    """Why it did not answer, without saying twice that it did not."""
    if problem is None:
        return ""
    return problem.detail if problem.why is Why.NOT_ANSWERED and problem.detail else str(problem)
