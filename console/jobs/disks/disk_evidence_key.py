"""Takes the log of a silent replica from a file of ``ktriage disk scan``, as ``--evidence`` does."""

from __future__ import annotations

import asyncio

from console.app.base.copy_and_export import given_path
from console.app.base.key_desk import KeyDesk
from console.app.base.question_dialogs import TextQuestion
from console.app.base.screen_calls import Handlers
from console.errors import NotDone
from console.reading.disk_evidence import read_registrations, refuse_other_clusters
from recovery.disk_evidence import DiskReading, EvidenceRefusal, with_disks
from recovery.ranking import Ranking
from recovery.wording.quantity_text import and_more, counted
from recovery.wording.replica_text import disk_text
from widgets.text import Tone

QUESTION = "Log of a silent replica, from its disk. File of ktriage disk scan --output json:"
SHOWN_SECONDS = 30.0
CHECK_SECONDS = 0.05


class DiskEvidenceKey:
    """What the key does. A file holds until the console is closed or the cluster is another one."""

    def __init__(self, desk: KeyDesk) -> None:
        self._desk = desk

    def handlers(self) -> Handlers:
        return {"evidence": lambda: self._desk.tasks.begin("reading a disk's evidence", self._take())}

    async def _take(self) -> None:
        from console.disk_evidence_files import read_disk_evidence  # noqa: PLC0415  # not before the first frame

        session = self._desk.session
        if session.choosing.ranking is Ranking.SPECIFICATION:
            raise NotDone(
                "a disk does not tell the partition's leader epoch: choose the ranking last-record (K)"
            )
        answer = await self._desk.ask(TextQuestion(QUESTION))
        if answer is None:
            return
        self._desk.tasks.asks_no_more()
        (reading,) = await asyncio.to_thread(read_disk_evidence, [given_path(answer)])
        refuse_other_clusters([reading], session.view.cluster_id)
        registrations, unchecked = await session.run(lambda backend: read_registrations(backend, (reading,)))
        if unchecked is not None:
            raise NotDone(
                f"whether broker {reading.broker} ran after its disk was read is not known ({unchecked});"
                " ktriage plan --evidence uses it anyway"
            )
        surveys, refused = with_disks(session.view.surveys.values(), (reading,), registrations)
        used = sum(
            replica.broker == reading.broker and replica.disk_read_ms is not None
            for survey in surveys
            for replica in survey.replicas
        )
        if not used:
            raise NotDone(_why_none(reading, refused))
        others = tuple(one for one in session.evidence if one.broker != reading.broker)
        session.evidence = (*others, reading)
        session.poller.ask()
        shown = await self._shown(reading)
        text = f"{counted(used, 'log')} of broker {reading.broker} from {disk_text(reading.read_ms)}"
        if refused:
            text += f"; {len(refused):,} refused: {refused[0].tp}: {refused[0].reason}"
        if not shown:
            text += (
                f"; it counts once the cluster was read again, which took longer than {SHOWN_SECONDS:.0f} s"
            )
        self._desk.say(text, Tone.WARN if refused or not shown else Tone.GOOD)

    async def _shown(self, reading: DiskReading) -> bool:
        """Waits for the picture in which the disk counts, so that no choice goes without it. False: none came."""
        session, began = self._desk.session, self._desk.session.clock()
        while not any(
            one.broker == reading.broker and one.disk_read_ms == reading.read_ms
            for survey in session.view.surveys.values()
            for one in survey.replicas
        ):
            if session.clock() - began > SHOWN_SECONDS:
                return False
            await asyncio.sleep(CHECK_SECONDS)  # the poller's pictures end it
        return True


def _why_none(reading: DiskReading, refused: tuple[EvidenceRefusal, ...]) -> str:
    if not refused:
        return f"{reading.source}: holds no log of a partition that is shown here"
    first, rest = refused[0], and_more(len(refused))
    return f"{reading.source}: refused: {first.tp} of broker {reading.broker}: {first.reason}{rest}"
