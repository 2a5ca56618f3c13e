"""The survey: every replica's own broker is asked how far its log goes, all brokers at once.

Each broker has one worker with one request in flight, and fails alone. A partition is settled when every one
of its replicas is. For the epochs of the last records, replicas are asked in batches of one topic
(``topic_batch``), and only a replica with an error becomes a row of its own (``survey_row``). Where more is wanted,
a partition whose logs differ becomes a row then: the next question to one log may depend on the answer of another
(``recovery.epoch_probe.deepen``), so the workers share the rows and wake one another. Equal logs, as most are, have
nothing more to tell, and stay in their batches.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any, Protocol, cast

from backends.base.answers import ClusterInfo, Contact, Depth, SurveyRequest
from backends.base.errors import BackendError
from backends.base.protocol import Progress
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem
from backends.live.survey import batch_queries, log_queries
from backends.live.survey.batch_queries import LEFT_OUT, NeedsRow
from backends.live.survey.log_ends import LogEnds
from backends.live.survey.log_queries import CALL, LogQueryError, ProbeAnswer, ReplicaLogEnd
from backends.live.survey.survey_progress import SurveyProgress, in_order
from backends.live.survey.survey_row import SurveyRow
from backends.live.survey.topic_batch import TopicBatch, per_request, topic_batches
from recovery import epoch_probe as probing
from recovery.epoch_probe import EpochProbe, EpochProbeError
from recovery.model import PartitionState, TopicPartition, Unknown, Why

REQUEST_TIMEOUT = 3.0
"""Seconds for one answer; a broker that accepts the connection and stays silent has not answered after that."""

PAUSES = (0.1, 0.2, 0.5, 1.0)
"""Seconds between attempts at a broker that should be up."""

NOT_PASSING = (ConnectionProblem.UNDECODABLE, ConnectionProblem.WRONG_NODE)
MORE_ATTEMPTS = 2
"""Attempts after such a failure: another one will hardly help."""

PICTURE_REFUSALS = 4
"""Refused connections in a row after which a picture is drawn without that broker: 0.8 s."""

CATCH_UP_PAUSES = (0.1, 0.2, 0.4, 0.8)
"""Seconds between looks at a broker that knows an older leader epoch than the partition has. A broker that only
lags, or that hung and continues, catches up with the metadata log meanwhile; one that is cut off from the
controllers does not.
"""

HAS_ROW = "has a row"
"""In the place of the log that a partition's replicas have told so far: it has a row, and all its logs go there."""

CHANGES = 3
"""How often a log may change during its questions before it is given up."""


class SurveyConnections(Protocol):
    """The connections that a survey uses."""

    async def connection(self, broker: int) -> BrokerConnection:
        """An open connection to that broker. Raises BrokerError."""
        ...

    def address(self, broker: int) -> str:
        """The address of that broker, for a person."""
        ...


class LiveSurvey:
    """One survey. ``batches`` by broker; ``rows`` are the partitions with a replica that is asked on its own."""

    def __init__(
        self,
        connections: SurveyConnections,
        request: SurveyRequest,
        cluster: ClusterInfo,
        *,
        read_cluster_again: Callable[[], Awaitable[ClusterInfo]],
        note_log_dirs: Callable[[int, BrokerConnection], Awaitable[None]],
        progress: Progress | None = None,
        ends: LogEnds | None = None,
    ) -> None:
        self._ends = ends or LogEnds()
        self._calls: dict[int, str] = {}
        self.states = in_order(request.partitions)
        self.tally = SurveyProgress(self.states, leaders_only=request.leaders_only)
        self.leaders_only = request.leaders_only
        self.rows: dict[TopicPartition, SurveyRow] = {}
        self.contacts: dict[int, Contact] = {}
        self._connections = connections
        self._depth = request.depth
        self._duration = request.duration
        self._picture_wait = request.picture_wait
        self._cluster = cluster
        self._read_cluster_again = read_cluster_again
        self._note_log_dirs = note_log_dirs
        self._progress = progress
        self._all_done = asyncio.Event()
        self._waiting: dict[int, list[TopicBatch]] = topic_batches(
            self.states, leaders_only=request.leaders_only, likely_epochs=request.likely_epochs
        )
        self.batches: dict[int, tuple[TopicBatch, ...]] = {
            broker: tuple(several) for broker, several in self._waiting.items()
        }
        self._first_probes: list[EpochProbe | str | None] = [None] * len(self.states)
        self._equal: dict[str, list[tuple[int, TopicBatch]]] = {}
        brokers = sorted(self._waiting)
        self._unasked: dict[int, dict[TopicPartition, None]] = {broker: {} for broker in brokers}
        self._questions: dict[int, dict[TopicPartition, None]] = {broker: {} for broker in brokers}
        self._wake = {broker: asyncio.Event() for broker in brokers}
        self._log_dirs_left = set(brokers)
        self._behind: dict[int, dict[TopicPartition, TopicBatch | None]] = {broker: {} for broker in brokers}
        self._behind_left = set(brokers)
        self._catch_up_pauses = {
            broker: iter(() if broker in self._ends.behind else CATCH_UP_PAUSES) for broker in brokers
        }
        self._silent: set[int] = set()
        self._began = 0.0

    def _hand_over(self, broker: int, state: PartitionState, index: int) -> SurveyRow:
        """The row of that partition, which waits for that replica from now on."""
        row = self._row(state, index)
        row.open.add(broker)
        row.waiting += 1
        return row

    def _row(self, state: PartitionState, index: int) -> SurveyRow:
        row = self.rows.get(TopicPartition(state.topic, state.partition))
        if row is None:
            row = SurveyRow(state, index)
            self.rows[row.tp] = row
            self._first_probes[index] = HAS_ROW
        return row

    def _take_out(self, topic: str, indices: Iterable[int]) -> None:
        """Give rows to these partitions, with all that their brokers have told: it is no longer the same."""
        wanted = {index for index in indices if self._first_probes[index] not in (None, HAS_ROW)}
        if not wanted:
            return
        for broker, batch in self._equal.get(topic, ()):
            places = [place for place, index in enumerate(batch.indices) if index in wanted]
            offsets, epochs = batch.ends
            for place in places:
                row, number = self._row(batch.states[place], batch.indices[place]), batch.numbers[place]
                row.ends[broker] = ReplicaLogEnd(epochs[place], offsets[place])
                row.probes[broker] = batch.probes[place]
                if number in batch.leads:
                    row.leads[broker] = batch.leads[number]
            if places:
                batch.drop(places)

    async def run(self) -> None:
        """Returns when every replica is settled, and at the latest after the duration."""
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        if not self.tally.left:
            return
        workers = {broker: asyncio.create_task(self._work(broker)) for broker in self._unasked}
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._duration):
                    await self._finished(workers)
        finally:
            for task in workers.values():
                task.cancel()
            await asyncio.gather(*workers.values(), return_exceptions=True)
            self._give_up_the_rest()

    async def _finished(self, workers: dict[int, asyncio.Task[None]]) -> None:
        """Wait until all is settled; a worker that ends by a defect is raised, not waited for."""
        done = asyncio.create_task(self._all_done.wait())
        waiting: set[asyncio.Task[Any]] = {done, *workers.values()}
        try:
            while not self._all_done.is_set():
                ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    task.result()
        finally:
            done.cancel()

    def _give_up_the_rest(self) -> None:
        seconds = f"within {self._duration:g} s"
        for broker in self._unasked:
            if broker not in self.contacts:
                self._note(broker, Unknown(Why.NOT_ANSWERED, f"no answer {seconds}"))
        late = Unknown(Why.NOT_ANSWERED, f"not settled {seconds}")
        for broker, several in self._waiting.items():
            for batch in several:
                batch.unknown = self.contacts[broker].problem or late
        for row in self.rows.values():
            for broker in row.open:
                row.unknown.setdefault(broker, self.contacts[broker].problem or late)

    def _note(self, broker: int, problem: Unknown | None) -> None:
        before = self.contacts.get(broker)
        if before is not None and before.problem is None and problem is None:
            return
        elapsed = asyncio.get_running_loop().time() - self._began
        address = self._connections.address(broker)
        self.contacts[broker] = Contact(
            broker, address, problem, elapsed, "" if problem else self._calls.get(broker, CALL)
        )

    # A broker's worker.

    async def _work(self, broker: int) -> None:
        pauses: Iterator[float] = iter(PAUSES)
        pause = 0.0
        failures = 0
        failing_since: float | None = None
        refusals = 0
        while True:
            began = asyncio.get_running_loop().time()
            try:
                connection = await self._connections.connection(broker)
                await self._ask(broker, connection)
            except BrokerError as error:
                contact = self.contacts.get(broker)
                if failing_since is None or (contact is not None and contact.problem is None):
                    failing_since, refusals = began, 0
                refusals += error.trouble is ConnectionProblem.REFUSED
                self._note(broker, error.unknown)
                self._tell_progress(f"waiting for broker {broker} ({error.trouble}):")
                self._start_over(broker)
                await self._refresh_view()
                failures += error.trouble in NOT_PASSING
                if (
                    not self._should_be_up(broker)
                    or failures > MORE_ATTEMPTS
                    or self._picture_without(error, failing_since, refusals)
                ):
                    self._settle_all(broker, error.unknown)
                    return
            pause = next(pauses, pause)
            await asyncio.sleep(pause)

    def _picture_without(self, error: BrokerError, failing_since: float, refusals: int) -> bool:
        """A picture waits no longer for that broker."""
        if self._picture_wait is None:
            return False
        clear = error.trouble is ConnectionProblem.WRONG_NODE or refusals >= PICTURE_REFUSALS
        clear = clear or error.remembered  # its whole time to connect has been waited for already
        return clear or self._elapsed(failing_since) >= self._picture_wait

    @staticmethod
    def _elapsed(since: float) -> float:
        return asyncio.get_running_loop().time() - since

    def _settle_unasked(self, broker: int) -> None:
        """What this broker answered with a retryable error again and again stays unknown, for that reason."""
        for tp in list(self._unasked[broker]):
            self._settle(broker, self.rows[tp])

    async def _ask(self, broker: int, connection: BrokerConnection) -> None:
        pauses: Iterator[float] = iter(PAUSES)
        pause = 0.0
        began = asyncio.get_running_loop().time()
        while True:
            await self._ask_batches(broker, connection)
            await self._ask_ends(broker, connection)
            self._note(broker, None)
            while self._questions[broker]:
                await self._ask_epochs(broker, connection)
            if broker in self._log_dirs_left:
                await self._ask_log_dirs(broker, connection)
                continue
            if broker in self._behind_left and not self._unasked[broker]:
                await self._ask_behind(broker, connection)
                continue
            if self._unasked[broker]:
                if self._picture_wait is not None and self._elapsed(began) >= self._picture_wait:
                    self._settle_unasked(broker)
                    continue
                pause = next(pauses, pause)
                await asyncio.sleep(pause)
                await self._refresh_view()
                continue
            await self._wake[broker].wait()
            self._wake[broker].clear()

    async def _ask_log_dirs(self, broker: int, connection: BrokerConnection) -> None:
        """Ask this broker's other question (its log dirs), once, whatever the answer."""
        try:
            await self._note_log_dirs(broker, connection)
        finally:
            self._log_dirs_left.discard(broker)
            self._see_whether_all_is_done()

    async def _ask_behind(self, broker: int, connection: BrokerConnection) -> None:
        """Give a broker that knows an older leader epoch time to catch up; if it does not, ask whether it leads.

        A broker that catches up is asked for its log anew: it may have written until it did.
        """
        behind = self._behind[broker]
        if behind and (pause := next(self._catch_up_pauses[broker], None)) is not None:
            await asyncio.sleep(pause)
            epochs = await self._epochs_now(broker, connection)
            for tp, epoch in epochs.items():
                if epoch >= self._state_of(broker, tp).leader_epoch:
                    self._ask_anew(broker, tp)
            return
        if behind:
            self._ends.behind.add(broker)
            await self._ask_whether_it_leads(broker, connection)
        else:
            self._ends.behind.discard(broker)
        self._behind_left.discard(broker)
        self._see_whether_all_is_done()

    async def _epochs_now(self, broker: int, connection: BrokerConnection) -> dict[TopicPartition, int]:
        """The leader epochs that it knows now of the partitions of which it knew an older one."""
        known: dict[TopicPartition, int] = {}
        waiting = sorted(self._behind[broker])
        for first in range(0, len(waiting), log_queries.AT_MOST):
            topics = {
                tp: self._state_of(broker, tp).topic_id for tp in waiting[first : first + log_queries.AT_MOST]
            }
            answers = await self._ends.ask(connection, topics, REQUEST_TIMEOUT)
            known.update(
                (tp, end.leader_epoch) for tp, end in answers.items() if isinstance(end, ReplicaLogEnd)
            )
        return known

    async def _ask_whether_it_leads(self, broker: int, connection: BrokerConnection) -> None:
        behind = self._behind[broker]
        waiting = sorted(behind)
        for first in range(0, len(waiting), log_queries.AT_MOST):
            batch = waiting[first : first + log_queries.AT_MOST]
            for tp, leads in (await log_queries.leading(connection, batch, REQUEST_TIMEOUT)).items():
                of, row = behind[tp], self.rows.get(tp)
                if row is not None and broker in row.ends:
                    row.leads[broker] = leads
                elif of is not None:
                    of.leads[tp.partition] = leads

    def _state_of(self, broker: int, tp: TopicPartition) -> PartitionState:
        batch = self._behind[broker][tp]
        position = None if batch is None else batch.position(tp.partition)
        return self.rows[tp].state if batch is None or position is None else batch.states[position]

    def _ask_anew(self, broker: int, tp: TopicPartition) -> None:
        """Ask for that replica's log again, from the beginning, though it was settled."""
        batch = self._behind[broker].pop(tp)
        if batch is not None and (there := batch.position(tp.partition)) is not None:
            self._take_out(batch.topic, (batch.indices[there],))
        position = None if batch is None else batch.position(tp.partition)
        if batch is not None and position is not None:
            row = self._hand_over(broker, batch.states[position], batch.indices[position])
            batch.drop((position,))
        else:
            row = self.rows[tp]
            row.open.add(broker)
            row.waiting += 1
        self.tally.asked_again(row.index)
        row.ends.pop(broker, None)
        row.probes.pop(broker, None)
        row.unknown.pop(broker, None)
        row.asked.discard(broker)
        self._questions[broker].pop(tp, None)
        self._unasked[broker][tp] = None

    async def _ask_batches(self, broker: int, connection: BrokerConnection) -> None:
        """Batch by batch; one that is not finished when the connection fails is asked again as a whole."""
        waiting = self._waiting[broker] = [batch for batch in self._waiting[broker] if batch.numbers]
        for together in list(per_request(waiting, log_queries.AT_MOST)):
            odd = await batch_queries.ask_ends(connection, self._ends, together, REQUEST_TIMEOUT)
            self._took_odd(broker, odd)
            for batch in together:
                self._behind[broker].update(
                    (TopicPartition(batch.topic, number), batch) for number in batch.behind
                )
            self._calls[broker] = self._ends.call(connection)
            self._note(broker, None)
            while any(batch.left for batch in together):
                self._took_odd(broker, await batch_queries.ask_epochs(connection, together, REQUEST_TIMEOUT))
            del waiting[: len(together)]
            for batch in together:
                if self._depth is Depth.LAST:
                    self.tally.settled(batch.indices)
                else:
                    self._ask_further(broker, batch)
            self._tell_progress("asking replicas")
        self._see_whether_all_is_done()

    def _ask_further(self, broker: int, batch: TopicBatch) -> None:
        """Hands over the logs that differ from another broker's: what each is asked next depends on the others."""
        first_probes, full = self._first_probes, self._depth is Depth.FULL
        differ = []
        for place, (index, probe) in enumerate(zip(batch.indices, batch.probes, strict=True)):
            before = first_probes[index]
            if full and not probe.bottom:
                differ.append(place)
            elif before is None:
                first_probes[index] = probe
            elif before is not probe and before != probe:
                differ.append(place)
        self._hand_over_logs(broker, batch, differ)
        self._equal.setdefault(batch.topic, []).append((broker, batch))
        self.tally.settled(batch.indices)

    def _hand_over_logs(self, broker: int, batch: TopicBatch, places: Sequence[int]) -> None:
        """Gives each of these logs, whose last epochs are known, to its partition's row."""
        if not places:
            return
        self._take_out(batch.topic, [batch.indices[place] for place in places])
        offsets, epochs = batch.ends
        for place in places:
            row = self._hand_over(broker, batch.states[place], batch.indices[place])
            row.ends[broker] = ReplicaLogEnd(epochs[place], offsets[place])
            row.probes[broker] = batch.probes[place]
            self._settle(broker, row)
        batch.drop(places)

    def _took_odd(self, broker: int, odd: Iterable[NeedsRow]) -> None:
        several = list(odd)
        for topic in {one.state.topic: None for one in several}:
            self._take_out(topic, [one.at for one in several if one.state.topic == topic])
        for one in several:
            row = self._hand_over(broker, one.state, one.at)
            if one.known is None:
                self._took_end(broker, row, cast("ReplicaLogEnd | LogQueryError", one.answer))
            else:
                row.ends[broker], row.probes[broker] = one.known
                self._took_answer(broker, row, cast("ProbeAnswer", one.answer))

    async def _ask_ends(self, broker: int, connection: BrokerConnection) -> None:
        waiting = list(self._unasked[broker])
        for first in range(0, len(waiting), log_queries.AT_MOST):
            batch = waiting[first : first + log_queries.AT_MOST]
            topics = {tp: self.rows[tp].state.topic_id for tp in batch}
            answers = await self._ends.ask(connection, topics, REQUEST_TIMEOUT)
            self._calls[broker] = self._ends.call(connection)
            for tp in batch:
                self._took_end(broker, self.rows[tp], answers.get(tp, LEFT_OUT))

    def _took_end(self, broker: int, row: SurveyRow, answer: ReplicaLogEnd | LogQueryError) -> None:
        if isinstance(answer, LogQueryError):
            self._trouble(broker, row, answer)
            return
        self._unasked[broker].pop(row.tp, None)
        row.ends[broker] = answer
        state = row.state
        if answer.leader_epoch < state.leader_epoch:
            self._behind[broker].setdefault(row.tp, None)
        epoch = max(answer.leader_epoch, state.leader_epoch)
        try:
            probe = probing.start(answer.offset, epoch, state.offline)
        except EpochProbeError as error:
            row.unknown[broker] = Unknown(Why.FAILED, str(error))
            self._settle(broker, row)
            return
        self._took_probe(broker, row, probe)

    async def _ask_epochs(self, broker: int, connection: BrokerConnection) -> None:
        batch = sorted(islice(self._questions[broker], log_queries.AT_MOST))
        asked = {}
        for tp in batch:
            probe = self.rows[tp].probes[broker]
            asked[tp] = (probe.log_end_offset, probe.asks)
        answers = await log_queries.probe_epochs(connection, asked, REQUEST_TIMEOUT)
        questions, rows = self._questions[broker], self.rows
        for tp in batch:
            row = rows[tp]
            questions.pop(tp, None)
            row.asked.discard(broker)
            self._took_answer(broker, row, answers.get(tp, LEFT_OUT))

    def _took_answer(self, broker: int, row: SurveyRow, answer: ProbeAnswer) -> None:
        if isinstance(answer, LogQueryError):
            self._trouble(broker, row, answer)
            return
        try:
            probe = probing.advance(row.probes[broker], answer)
        except EpochProbeError as error:
            self._changed(broker, row, Unknown(Why.FAILED, str(error)))
            return
        self._took_probe(broker, row, probe)

    # What an answer does to its row.

    def _took_probe(self, broker: int, row: SurveyRow, probe: EpochProbe) -> None:
        row.probes[broker] = probe
        if probe.settled:
            self._settle(broker, row)
        else:
            self._question(broker, row)

    def _trouble(self, broker: int, row: SurveyRow, trouble: LogQueryError) -> None:
        """A retryable error of a broker that should be up is asked again; any other settles the replica."""
        offline_for_controller = broker in row.state.offline_replicas or not self._should_be_up(broker)
        if trouble.retryable and not offline_for_controller:
            row.open.add(broker)
            row.unknown[broker] = trouble.unknown
            self._unasked[broker][row.tp] = None
            return
        row.unknown[broker] = trouble.unknown
        self._settle(broker, row)

    def _changed(self, broker: int, row: SurveyRow, unknown: Unknown) -> None:
        """The log changed during its questions: start again, at most CHANGES times."""
        row.changes += 1
        row.probes.pop(broker, None)
        row.unknown[broker] = unknown
        if row.changes > CHANGES:
            self._settle(broker, row)
        else:
            row.open.add(broker)
            self._unasked[broker][row.tp] = None

    def _settle(self, broker: int, row: SurveyRow) -> None:
        self._unasked[broker].pop(row.tp, None)
        row.open.discard(broker)
        if self._depth is not Depth.LAST:
            self._deepen(row)
        if row.done and row.waiting:
            self.tally.settled(repeat(row.index, row.waiting))
            row.waiting = 0
            self._tell_progress("asking replicas")
            self._see_whether_all_is_done()

    def _tell_progress(self, what: str) -> None:
        if self._progress is not None:
            self._progress(what, self.tally.total - self.tally.left, self.tally.total)

    def _see_whether_all_is_done(self) -> None:
        if self.tally.left == 0 and not self._log_dirs_left and not self._behind_left:
            self._all_done.set()

    def _deepen(self, row: SurveyRow) -> None:
        for broker in probing.deepen(row.settled(), full=self._depth is Depth.FULL):
            if broker not in row.asked and broker not in self._silent:
                self._question(broker, row)

    def _question(self, broker: int, row: SurveyRow) -> None:
        row.asked.add(broker)
        self._questions[broker][row.tp] = None
        self._wake[broker].set()

    # When a broker fails.

    def _start_over(self, broker: int) -> None:
        """Ask again from the beginning: the broker may return with another log."""
        for tp in list(self._questions[broker]):
            row = self.rows[tp]
            row.asked.discard(broker)
            row.open.add(broker)
            self._unasked[broker][tp] = None
        self._questions[broker].clear()

    def _settle_all(self, broker: int, unknown: Unknown) -> None:
        """This broker is given up; its answers about settled logs still count."""
        self._silent.add(broker)
        self._log_dirs_left.discard(broker)
        self._behind_left.discard(broker)
        for batch in self._waiting[broker]:
            if self._depth is not Depth.LAST:
                settled = [place for place, probe in enumerate(batch.probes) if probe.settled]
                self._hand_over_logs(broker, batch, settled)
            batch.unknown = unknown
            self.tally.settled(batch.indices)
        self._waiting[broker].clear()
        for tp in list(self._unasked[broker]):
            row = self.rows[tp]
            row.unknown[broker] = unknown
            self._settle(broker, row)
        self._see_whether_all_is_done()

    def _should_be_up(self, broker: int) -> bool:
        listed = self._cluster.broker(broker)
        return listed is not None and not listed.fenced

    async def _refresh_view(self) -> None:
        """The controller may have fenced a silent broker meanwhile; then it is not waited for."""
        with contextlib.suppress(BackendError):
            self._cluster = await self._read_cluster_again()
