"""The keys of pane 9: reads groups and transactions, puts them right, and takes the last fix of groups back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from backends.base.protocol import Backend, Progress
from console.app.base.confirmed_change import asked_on_screen
from console.app.base.key_desk import KeyDesk
from console.app.base.question_dialogs import AnswerOption, ChoiceQuestion
from console.app.base.screen_calls import Handlers
from console.change.registry import AFTER
from console.errors import NotDone
from console.jobs.consumers.after_pane import GROUP, AfterRow, AfterView, waiting_text
from console.jobs.consumers.election_aftermath import ElectionAftermath, read_within
from console.jobs.consumers.fix_groups import FixGroups, PreparedGroupFix
from console.jobs.consumers.fix_transactions import FixTransactions, NamedOutcome, PreparedMarkers
from console.jobs.consumers.group_offsets import GroupOffset, GroupSelection, read_group_offsets
from console.jobs.consumers.groups_report import FIX, FIXED_GROUPS
from console.jobs.consumers.hanging_transactions import JudgedTransaction, read_transactions
from console.jobs.consumers.transactions_report import MARKER, WRITTEN_MARKERS
from console.jobs.elect import draft_changes
from console.jobs.elect.applier import VERIFY_SECONDS, rescue_of_plan, verified_now
from recovery.wording.quantity_text import counted, printable
from widgets.fields import text_rows
from widgets.text import Tone

SHOWN = 5
"""Offsets or markers that a question names."""
_OUTCOMES = (
    AnswerOption("commit", "COMMIT: consumers read its records"),
    AnswerOption("abort", "ABORT: consumers skip its records"),
)


class AfterKeys:
    """``view`` is what pane 9 shows."""

    def __init__(self, desk: KeyDesk) -> None:
        self._desk = desk
        self._found: ElectionAftermath | None = None
        self._of_plan = False
        self._reading = False

    @property
    def view(self) -> AfterView:
        return AfterView(self._found, self._of_plan, self._reading)

    def handlers(self) -> Handlers:
        begin = self._desk.tasks.begin
        return {
            "aftermath": lambda: begin("reading groups and transactions", self._read(), asks=False),
            "fix": self._fix,
            "undo": lambda: begin("putting offsets back", self._fix_groups(GroupSelection(), undo=True)),
        }

    def pane_shown(self) -> None:
        """Reads at once what was not read yet."""
        desk = self._desk
        wanted = desk.navigation.pane == AFTER and self._found is None
        if wanted and not desk.tasks.busy and desk.session.view.cluster is not None:
            self.handlers()["aftermath"]()

    def forget(self) -> None:
        """Another cluster has other groups."""
        self._found = None

    def took(self, found: ElectionAftermath) -> None:
        """What was read of the plan's partitions when the plan was verified."""
        # Before an election nobody can read the transactions of its partitions: that is no news.
        self._is_found(found, found.need_you if found.somebody or not found.leaderless else "")
        self._of_plan = True

    def _is_found(self, found: ElectionAftermath, clients: str) -> None:
        """``clients``: whom pane 1 names until it is read again."""
        session = self._desk.session
        self._found = found
        session.left_to_do = replace(session.left_to_do, clients=clients)

    async def _read(self) -> None:
        session, plan = self._desk.session, self._desk.session.draft.plan
        progress = self._desk.progress.begin("reading groups and transactions")
        self._reading = True
        self._desk.redraw()
        try:
            if plan is not None:
                verified = await verified_now(session, plan, progress)
                self._desk.tasks.plan_is(draft_changes.verified(session.draft, verified))
                self.took(verified.aftermath)
            else:
                found = await session.run(lambda backend: _of_all(backend, progress))
                self._is_found(found, found.need_you if found.somebody else "")
                self._of_plan = False
        finally:
            self._reading = False
            self._desk.progress.end()

    def _fix(self) -> None:
        """The marked rows, else the one under the cursor; those of the first one's kind."""
        table = self._desk.table()
        chosen = [row for row in table.marked_rows or (table.cursor_row,) if isinstance(row, AfterRow)]
        rows = [row for row in chosen if row.kind == chosen[0].kind]
        if not rows:
            self._desk.say("put the cursor on a group or a transaction", Tone.WARN)
            return
        waits_for = next((row.waits_for for row in rows if row.waits_for), ())
        if waits_for and not any(row.needs_you for row in rows):
            self._desk.say(waiting_text(waits_for), Tone.WARN)
            return
        if all(row.needs_you is False for row in rows):
            self._desk.say("there is nothing to put right: it reads on, or ends, by itself", Tone.INFO)
            return
        topics = tuple(dict.fromkeys(row.tp.topic for row in rows))
        plan = self._desk.session.draft.plan if self._of_plan else None
        if rows[0].kind == GROUP:
            groups = tuple(dict.fromkeys(r.item.group.name for r in rows if isinstance(r.item, GroupOffset)))
            job = self._fix_groups(GroupSelection(plan, groups, topics))
            self._desk.tasks.begin("putting offsets right", job)
        else:
            items = [row.item for row in rows if isinstance(row.item, JudgedTransaction)]
            self._desk.tasks.begin("ending transactions", self._fix_transactions(topics, items))

    async def _fix_groups(self, selection: GroupSelection, *, undo: bool = False) -> None:
        session, cluster_id = self._desk.session, self._desk.session.view.cluster_id
        change = FixGroups(selection, session.target.title, "", VERIFY_SECONDS, undo=undo)
        prepared = await self._desk.prepared(change, cluster_id, "reading what groups committed")
        if not prepared.fixes:
            raise NotDone(_why_no_offset(prepared))
        number, what = len(prepared.fixes), "Put back" if undo else "Move"
        offsets = f"{counted(number, 'committed offset')} of {counted(prepared.groups, 'group')}"
        target = (
            *self._target(cluster_id, text_rows(FIX, prepared.fixes, limit=SHOWN, rest="")),
            *_left(prepared),
        )
        key = "U" if undo else "x"
        question = change.question(prepared)
        sent = await self._desk.change(
            asked_on_screen(question, f"{what} {offsets}?", target, label="Commit", opened_by=key),
            lambda answer: replace(change, reason=answer.reason, shown=prepared),
            cluster_id,
            "committing offsets",
        )
        if sent is not None:
            await self._read()
            self._desk.tell(sent, FIXED_GROUPS, undo="" if undo else "U takes it back")

    async def _fix_transactions(self, topics: tuple[str, ...], items: Sequence[JudgedTransaction]) -> None:
        session, cluster_id = self._desk.session, self._desk.session.view.cluster_id
        plan = session.draft.plan if self._of_plan else None
        rescue = None if plan is None else await session.run(lambda b: rescue_of_plan(b, plan))
        change = FixTransactions(plan, topics, session.target.title, "", rescue=rescue)
        reading = "reading open transactions"
        prepared = await self._desk.prepared(change, cluster_id, reading)
        producers = {item.transaction.producer_id for item in items}
        if not prepared.markers and len(producers) == 1:
            # Nothing tells how it ended: somebody who knows the producer may.
            (producer,) = producers
            question = f"How did the transaction of producer {producer} end? {_why_no_marker(prepared)}"
            outcome = await self._desk.ask(ChoiceQuestion(question, _OUTCOMES))
            if outcome is None:
                return
            change = replace(change, outcome=NamedOutcome(producer, outcome == "commit"))
            prepared = await self._desk.prepared(change, cluster_id, reading)
        if not prepared.markers:
            raise NotDone(_why_no_marker(prepared))
        number = len(prepared.markers)
        target = self._target(cluster_id, text_rows(MARKER, prepared.markers, limit=SHOWN, rest=""))
        title = f"Write {counted(number, 'marker')}?"
        sent = await self._desk.change(
            asked_on_screen(change.question(prepared), title, target, label="Write", opened_by="x"),
            lambda answer: replace(change, reason=answer.reason, shown=prepared),
            cluster_id,
            "writing markers",
        )
        if sent is not None:
            await self._read()
            self._desk.tell(sent, WRITTEN_MARKERS)

    def _target(self, cluster_id: str, rows: Iterable[str]) -> tuple[str, ...]:
        """What a question names: the cluster, and each row that is written."""
        return (f"{self._desk.session.target.marked_title}, cluster {cluster_id}", *map(printable, rows))


async def _of_all(backend: Backend, progress: Progress) -> ElectionAftermath:
    """Groups and transactions of the whole cluster; each takes at most so many seconds."""
    return ElectionAftermath(
        await read_within(
            VERIFY_SECONDS, read_group_offsets(backend, GroupSelection(), VERIFY_SECONDS, progress)
        ),
        await read_within(VERIFY_SECONDS, read_transactions(backend, None, (), progress)),
    )


def _left(prepared: PreparedGroupFix) -> Iterator[str]:
    if prepared.after_stopping:
        names = ", ".join(sorted({fix.group.name for fix in prepared.after_stopping})[:SHOWN])
        yield f"not those of {printable(names)}: stop the members first"
    if prepared.left:
        first = prepared.left[0]
        yield printable(
            f"left as they are: {len(prepared.left):,}, such as {first.group}, {first.tp}: {first.why}"
        )


def _why_no_offset(prepared: PreparedGroupFix) -> str:
    """Why nothing is sent, and what helps."""
    if prepared.after_stopping:
        first = prepared.after_stopping[0]
        return f"group {first.group.name} has members: stop them first, Kafka refuses its offsets until then"
    if prepared.left:
        return f"group {prepared.left[0].group}, {prepared.left[0].tp}: {prepared.left[0].why}"
    return "all offsets are as they were before the fix" if prepared.undone else "no offset is to be moved"


def _why_no_marker(prepared: PreparedMarkers) -> str:
    return prepared.left[0].why if prepared.left else "no marker is missing"
