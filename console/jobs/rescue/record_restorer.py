"""Writes rescued records back from the console: which rescue, where to, ask, send, report."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from console.app.base.confirmed_change import Sent, asked_on_screen
from console.app.base.copy_and_export import given_path
from console.app.base.key_desk import KeyDesk
from console.app.base.question_dialogs import AnswerOption, ChoiceQuestion, TextQuestion
from console.app.base.screen_calls import Handlers
from console.plan_files import newest_rescue
from recovery.wording.quantity_text import counted, more
from widgets.dialogs.confirmation import ConfirmRequest
from widgets.text import Tone

if TYPE_CHECKING:
    # Imported where records are written back: they are not needed for the first frame.
    from console.jobs.rescue.restore_records import PreparedRestore, RestoredRecords, RestoreRecords

SHOWN = 5
_SOURCE = "source"


class RecordRestorer:
    """What the key of a restore does."""

    def __init__(self, desk: KeyDesk) -> None:
        self._desk = desk

    def handlers(self) -> Handlers:
        return {"restore": lambda: self._desk.tasks.begin("writing records back", self._restore())}

    async def _restore(self) -> None:
        from console.jobs.rescue.restore_records import RestoreRecords  # noqa: PLC0415  # see above
        from console.rescue_files.restore_selection import RestoreSelection  # noqa: PLC0415  # see above

        self._desk.say("")
        directory = await self._directory()
        if directory is None:
            return
        topic = await self._target(directory)
        if topic is None:
            return
        session, cluster_id = self._desk.session, self._desk.session.view.cluster_id
        to_topic = None if topic == _SOURCE else topic
        change = RestoreRecords(directory, to_topic, RestoreSelection(), session.target.title, "")
        change.without_lock(cluster_id)
        progress = self._desk.progress.begin("reading the rescue")
        prepared = await session.run(lambda backend: change.read(backend, cluster_id, progress))
        if prepared.records <= 0:
            session.left_to_do = session.left_to_do.without_saved(prepared.contents.path)
            markers = sum(row.counts.control for row in prepared.rows)
            there = "No record is left to write back: every record of this rescue is there"
            if markers:  # an open transaction, which only its end lets consumers pass
                also = f"{counted(markers, 'transaction marker')} not written back: V shows what hangs"
                self._desk.say(f"{there}. {also}", Tone.WARN)
            else:
                self._desk.say(there, Tone.GOOD)
            return
        sent = await self._desk.change(
            _request(change, prepared, session.target.marked_title),
            lambda answer: replace(change, reason=answer.reason, compared=prepared, again=True),
            cluster_id,
            "writing records back",
            resume=session.target.command("restore", str(directory), *change.words),
        )
        if sent is not None:
            self._tell(sent)

    async def _directory(self) -> Path | None:
        rescue = self._desk.session.draft.rescue
        newest = newest_rescue(self._desk.session.view.cluster_id) if rescue is None else rescue.directory
        given = await self._desk.ask(
            TextQuestion("Write the records of which rescue back? Its directory:", str(newest or ""))
        )
        return None if given is None else given_path(given)

    async def _target(self, directory: Path) -> str | None:
        """The topic to write to, ``source`` for the records' own; None: nothing is written."""
        from console.rescue_files.rescued_branch import open_rescue  # noqa: PLC0415  # see above

        contents = await asyncio.to_thread(open_rescue, directory)
        topics = sorted({one.branch.tp.topic for one in contents.branches})
        answers = [AnswerOption(_SOURCE, "to the partitions they come from, behind what was written since")]
        if len(topics) == 1:
            name = f"{topics[0]}-rescued"
            answers.append(AnswerOption(name, f"to the topic {name}, which is created if it does not exist"))
        return await self._desk.ask(ChoiceQuestion("Where do the records go?", answers))

    def _tell(self, sent: Sent[RestoredRecords]) -> None:
        from console.jobs.rescue.restore_report import RESTORED  # noqa: PLC0415  # see above

        restored = sent.result
        session, rescue = self._desk.session, self._desk.session.draft.rescue
        if rescue is not None and rescue.directory == restored.prepared.contents.path:
            counted_back = None if restored.failures else restored.records
            session.plan_is(replace(session.draft, rescue=rescue._replace(restored=counted_back)))
        if not restored.failures:
            session.left_to_do = session.left_to_do.without_saved(restored.prepared.contents.path)
        session.poller.ask()
        self._desk.tell(sent, RESTORED, goes_on=". B continues")


def _request(change: RestoreRecords, prepared: PreparedRestore, title: str) -> ConfirmRequest:
    """As strict as an election's: the number of records is typed, and a reason is given."""
    from console.jobs.rescue.restore_report import restore_row_text  # noqa: PLC0415  # see above

    rows = [restore_row_text(row) for row in prepared.rows[:SHOWN]]
    rows += more(len(prepared.rows) - SHOWN, " branches")
    creates = () if prepared.creates is None else (prepared.to.created_text,)
    return asked_on_screen(
        change.question(prepared),
        f"Write {counted(prepared.records, 'record')} back?",
        (f"{title}, cluster {prepared.contents.index.header.cluster_id}", *rows, *creates),
        label="Write back",
        opened_by="B",
    )
