"""The switch between read-only and armed, and what a screen that hides the title bar says of both."""

from __future__ import annotations

from console.app.session.session import Session
from console.change.access import NO_ALTER
from console.journal.state_access import why_unusable
from recovery.model import Unknown
from recovery.wording.quantity_text import printable
from widgets.text import Line, Piece, Tone, line


def switch_arming(session: Session) -> tuple[str, Tone]:
    """Arms the console, or makes it read-only again; what is to be said of it. Raises NotDone."""
    if session.safety.armed:
        session.safety = session.safety.disarm()
        return "read-only again", Tone.GOOD
    # Without a journal nothing can be sent, and the lock beside it would keep nobody out.
    if why := why_unusable():
        return f"not armed: {why}", Tone.BAD
    session.safety = session.safety.arm(session.clock())
    may_alter = None if session.view.cluster is None else session.view.cluster.may_alter
    if may_alter is False:
        return f"armed, to no avail: {NO_ALTER}", Tone.BAD
    where = "the simulator" if session.simulated else f"the LIVE cluster {session.view.cluster_id}"
    may = (
        f" if ALTER on the cluster is granted ({may_alter.detail})" if isinstance(may_alter, Unknown) else ""
    )
    return f"armed: {where} can be changed{may}. A disarms, ten idle minutes do too", Tone.WARN


def where_line(session: Session) -> Line:
    """Whether it is armed, and the cluster: for screens that stand above the title bar."""
    armed = session.safety.armed
    badge = Piece(" ARMED " if armed else " READ-ONLY ", Tone.BADGE_ARMED if armed else Tone.BADGE_SAFE)
    return line(
        badge,
        Piece(f" {printable(session.target.marked_title)}", Tone.STRONG),
        Piece(f", cluster {printable(session.view.cluster_id)}"),
    )
