"""Messages from the session: the cluster is lost, is back or is another one, or the console is not armed any
more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from console.app.base.screen_calls import Say
from console.app.session.draft import Draft
from recovery.unread_disks import UnreadDisk, UnreadDiskState
from recovery.wording.unread_disk_text import unread_disk_lines
from widgets.text import Tone


class SessionReports:
    """The listener of a session (:class:`console.app.session.session.Listener`). ``clear`` removes a message if it
    is shown. ``shown`` returns whether the screen is shown. ``disks`` are those that an election left unread, and
    ``ring`` rings the terminal's bell. ``clear_marks`` removes the marks of every table and
    returns how many there were. ``warnings`` returns the warnings from opening the cluster, once. ``report`` writes
    a crash file and returns the line that names it.
    """

    def __init__(
        self,
        say: Say,
        *,
        clear: Callable[[str], None],
        shown: Callable[[], bool],
        redraw: Callable[[], None],
        draw_bars: Callable[[], None],
        clear_marks: Callable[[], int],
        other_cluster: Callable[[], None],
        warnings: Callable[[], list[str]],
        report: Callable[[Exception], str],
        disks: Callable[[], Mapping[UnreadDisk, UnreadDiskState]],
        ring: Callable[[], None],
    ) -> None:
        self._say = say
        self._clear = clear
        self._shown = shown
        self._redraw = redraw
        self._draw_bars = draw_bars
        self._clear_marks = clear_marks
        self._other_cluster = other_cluster
        self._warnings = warnings
        self._report = report
        self._disks = disks
        self._ring = ring
        self._disks_before: Mapping[UnreadDisk, UnreadDiskState] = {}
        self._problem = ""
        self._lapsed = ""

    def view_changed(self) -> None:
        self._redraw()
        if self._shown() and (warnings := self._warnings()):
            self._say("; ".join(warnings), Tone.WARN)
        self._tell_of_disks()

    def _tell_of_disks(self) -> None:
        """Rings where a broker has come back whose disk was to be read before."""
        before, now = self._disks_before, self._disks()
        if before is now or not self._shown():
            return
        self._disks_before = now
        away, back = UnreadDiskState.AWAY, UnreadDiskState.CAME_BACK
        returned = [disk for disk, state in now.items() if state is back and before.get(disk) is away]
        if returned:
            self._ring()
            self._say("; ".join(unread_disk_lines(returned, now)), Tone.BAD)

    def state_changed(self, problem: str, lapsed: str) -> None:
        if not self._shown():
            return
        self._draw_bars()
        if self._problem and not problem:
            self._clear(self._problem)
        if problem and problem != self._problem:
            self._say(problem, Tone.BAD)
        elif lapsed and lapsed != self._lapsed:
            self._say(f"read-only again: {lapsed}. A arms it", Tone.WARN)
        self._problem, self._lapsed = problem, lapsed

    def cluster_changed(self, before: str, now: str, lapsed: str) -> None:
        if not self._shown():
            return
        self._clear_marks()
        self._other_cluster()
        self._lapsed = lapsed
        self._say(f"another cluster answers: {now}, it was {before}; marks and plan are gone", Tone.BAD)

    def reconnected(self, dropped: Draft) -> None:
        if not self._shown():
            return
        marked = self._clear_marks()
        self._redraw()
        if marked or dropped.plan is not None:
            reload_hint = "" if dropped.file is None else f"; o loads it again from {dropped.file}"
            self._say(f"the cluster was lost and is back: marks and plan are gone{reload_hint}", Tone.WARN)

    def failed(self, error: Exception) -> str:
        line = self._report(error)
        self._say(line, Tone.BAD)
        return line
