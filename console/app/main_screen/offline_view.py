"""The first pane: what is offline and under min ISR, or every partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from console.app.main_screen.bars import doubt, never_reached, not_known
from console.app.session.session import Session
from console.app.session.view import View
from console.change.registry import BROKERS, DIRS, QUORUM
from console.reading.partition_report import PartitionsView, fields_of
from console.reading.partition_row import bare_row
from console.reading.partitions_pane import PartitionsPane
from recovery.cluster_health import QuorumState, short_of_replicas
from recovery.membership.quorum_health import QuorumHealth
from recovery.model import Survey, Unknown
from recovery.wording.cluster_health_text import brokers_badge, not_listed_text, quorum_badge, stale_advice
from recovery.wording.quantity_text import counted, more, printable
from widgets.fields import Field, Row, on_screen, table_lines
from widgets.text import BLANK, Line, Piece, Tone, line

_NONE = "no partition is offline or under min ISR"


def update_offline(pane: PartitionsPane, session: Session) -> None:
    """Hands the pane what it shows now."""
    shown = _partitions(session)
    # An empty list must not read as good news where it is not known to be.
    unknown = f"what is offline now is not known: {shown.doubt}" if shown.doubt else _NONE
    pane.table.empty = unknown if shown.reading is not None else not_known(session)
    pane.update(shown)


def _stale_advice(view: View) -> str:
    """What old states mean; and what to do, where the advice below does not say that."""
    reading = view.reading
    if reading is None:
        return ""
    return stale_advice(reading.health, "" if reading.cluster_advice.stops else f"pane {QUORUM}")


def _partitions(session: Session) -> PartitionsView:
    view = session.view
    return PartitionsView(
        view.reading,
        session.rows.partitions,
        view.at if view.at is not None else session.clock(),
        "All partitions" if session.others else "Offline and under min ISR",
        session.draft.partitions,
        session.draft.elected,
        session.rows.counts,
        complete=view.at is not None,
        first=view.first or 0.0,
        doubt=doubt(session),
        doubt_advice=_stale_advice(view),
        ranking=session.choosing.ranking,
        may_lead=partial(_draw_who_may_lead, session),
        left=session.left_to_do.parts,
        overview=partial(_way_in, session) if never_reached(session) else partial(_overview, session),
    )


def _overview(session: Session, width: int, rows: int) -> Iterator[Line]:
    """The rest of the cluster in a line for each pane that has more of it, and at most ``rows`` rows of each."""
    from console.app.main_screen.pane_views import brokers_shown  # noqa: PLC0415  # not for the first frame
    from console.jobs.quorum.quorum_report import BRIEF, host_fields  # noqa: PLC0415
    from console.reading.broker_report import BROKER  # noqa: PLC0415
    from console.reading.log_dirs_report import LOG_DIR, dir_rows, fullest_first  # noqa: PLC0415

    view = session.view
    reading, health = view.reading, view.health
    if reading is None or health is None:
        return
    found = brokers_badge(health) or "all up"
    brokers = brokers_shown(session) or ()
    yield _part(BROKERS, f"{counted(len(reading.cluster.brokers), 'broker')}: {found}", bad=found != "all up")
    yield from _rows(on_screen(BROKER), brokers, width, rows)
    quorum = reading.members_health
    if isinstance(quorum, QuorumHealth) and health.quorum.state is not QuorumState.OLD_VOTERS:
        leader = f"led by {quorum.quorum.leader.id}, {quorum.strength}"
        alarms = () if view.after_rebuild is None else view.after_rebuild.alarms
        wrong = f"; {counted(len(alarms), 'finding')}" if alarms else ""
        yield _part(
            QUORUM, f"quorum: {leader}{wrong}", bad=bool(quorum.dead_voters or alarms or health.votes_wanted)
        )
        yield from _rows(BRIEF, quorum.silent_first, width, rows)
    elif badge := quorum_badge(health.quorum):
        yield _part(QUORUM, f"quorum: {badge}", bad=True)
        if (lost := reading.lost) is not None:
            yield from _rows(on_screen(host_fields(lost)), lost.down_first, width, rows)
    dirs = sum(len(one) for one in reading.log_dirs.values() if not isinstance(one, Unknown))
    failed = (
        f"{counted(dirs, 'log dir')}: {health.failed_dirs:,} failed{not_listed_text(reading.dirs_not_listed)}"
    )
    yield _part(DIRS, failed, bad=bool(health.failed_dirs))
    yield from _rows(on_screen(LOG_DIR), fullest_first(dir_rows(reading)), width, rows)
    states = reading.partitions.states
    topics = len({state.topic for state in states})
    text = f"{counted(len(states), 'partition')} of {counted(topics, 'topic')}"
    short = f", {health.under_replicated:,} under-replicated" if health.under_replicated else ""
    yield _part("O", f"{text}{short}", bad=bool(short))
    lacking = tuple(short_of_replicas(states))
    fields = (field for field in fields_of(reading) if field.id in _WHO_HAS_IT)
    yield from _rows(
        fields, [bare_row(state) for state in lacking[: max(rows, 0)]], width, rows, len(lacking)
    )


_WHO_HAS_IT = ("name", "leader", "isr", "elr", "replicas")
"""The columns of a partition that lacks a replica."""


def _rows(
    fields: Iterable[Field[Row]], rows: Sequence[Row], width: int, most: int, of: int | None = None
) -> Iterator[Line]:
    """The first of ``of`` rows of a noun (None: all of them), and how many more there are; a blank line behind."""
    if most < 1 or not rows:
        return
    yield from table_lines(fields, rows[:most], width, _INDENT)
    left = (len(rows) if of is None else of) - most
    yield from (line(Piece(f"{_INDENT}{text}", Tone.DIM)) for text in more(left, ""))
    yield BLANK


_INDENT = "   "


def _way_in(session: Session, _width: int, _rows: int) -> Iterator[Line]:
    """What to do where nobody was reached: most often the address or the way to it is wrong, not the cluster."""
    target = session.target
    yield line(
        Piece(f"Nobody answers at {printable(target.title)}. It is asked again by itself.", Tone.STRONG)
    )
    if problem := session.poller.state.problem:
        yield line(Piece(printable(f"Why: {problem}."), Tone.WARN))
    yield line(Piece("Is that the host and port of a broker's client listener?"))
    yield line(Piece("Does the broker run, and may this host connect to that port?"))
    yield line(Piece("A secured cluster needs a profile, or --command-config client.properties."))
    yield line(Piece(" C ", Tone.KEY), Piece("opens another address or profile"))


def _part(key: str, text: str, *, bad: bool) -> Line:
    return line(Piece(f" {key} ", Tone.KEY), Piece(printable(text), Tone.WARN if bad else Tone.PLAIN))


def _draw_who_may_lead(session: Session, survey: Survey, width: int) -> list[Line]:
    from console.app.main_screen.pane_views import draw_who_may_lead  # noqa: PLC0415  # not for the first frame

    return draw_who_may_lead(session, survey, width)
