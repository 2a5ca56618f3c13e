"""Kafka's own preferred and unclean elections (ElectLeaders types 0 and 1)."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from backends.base.answers import Election, Outcome
from backends.base.errors import ElectionInDoubt
from backends.base.protocol import Backend
from console.change.access import Access
from console.change.change import Change, ChangeRun, Conclusion, Operator, Question, settle_orders
from console.change.election_notes import KafkaElectionRecorder, note_kafka_elections
from console.errors import Status
from console.jobs.elect.election_batches import SUCCESS
from console.jobs.rescue.kafka_rescue import ExpectedElections, expected_elections
from console.jobs.rescue.rescue_first import note_declined, rescue_first, rescue_notes
from console.jobs.rescue.rescue_outlook import DEFAULT_RESCUE, RescueChoice
from console.jobs.rescue.rescue_read import Rescued
from console.journal.unread_disks import unread_detail
from console.reading.consumer_reading import ConsumerReading, contradicted, read_back_as_consumer
from console.reading.partition_selection import Selected, Selection, described, select
from recovery.consumer_sight import Expected
from recovery.model import PartitionState, TopicPartition
from recovery.plan.values import PlanRow
from recovery.unread_brokers import UnreadBrokers


@dataclass(frozen=True, slots=True)
class KafkaElectionResults:
    """The results of elections, refused ones included. ``sent``: something was sent. For an election of all
    partitions Kafka's answer has only the partitions that needed one. ``rescued`` is what was read before, None
    where nothing was; ``logs_read``: unless that was declined. ``unexpected`` elected another leader than expected.
    ``expected`` are the rows that say what the others lose, ``unread`` the brokers that are down and whose disks
    nobody has read; both of the partitions that were elected. ``consumer``: what consumers are given of these.
    """

    elections: tuple[Election, ...]
    sent: bool = True
    rescued: Rescued | None = None
    logs_read: bool = False
    unexpected: tuple[Election, ...] = ()
    expected: Mapping[TopicPartition, PlanRow] = field(default_factory=dict)
    unread: UnreadBrokers = field(default_factory=dict)
    consumer: ConsumerReading | None = None

    @property
    def counts(self) -> Mapping[Outcome, int]:
        return Counter(election.outcome for election in self.elections)

    @property
    def failures(self) -> tuple[Election, ...]:
        return tuple(election for election in self.elections if election.outcome not in SUCCESS)


class Electable(NamedTuple):
    """The partitions to elect. ``asked``: the operator was asked; ``refused`` are partitions that do not exist,
    or changed before the answer. ``expected`` are the elections of which is read first what they cut off; ``notes``
    belong to the question, one line each.
    """

    selected: Selected
    refused: tuple[Election, ...] = ()
    asked: bool = False
    expected: ExpectedElections | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KafkaElection(Change[Backend, Electable, KafkaElectionResults]):
    """A ``preferred`` or an unclean election of the partitions selected, or of ``every`` one of the cluster.
    ``rescue`` None: what an unclean election cuts off is not read first.
    """

    selection: Selection
    preferred: bool
    every: bool
    reason: str = ""
    rescue: RescueChoice | None = DEFAULT_RESCUE

    async def settle(self, access: Access[Backend], run: ChangeRun[Electable]) -> None:
        await settle_orders(access, run)

    async def prepare(self, cluster: Backend, cluster_id: str, operator: Operator[Electable]) -> Electable:
        selected = await select(cluster, self.selection)
        refused = tuple(
            Election(tp, Outcome.NOT_ATTEMPTED, -1, -1, why) for tp, why in selected.missing.items()
        )
        if self.preferred or self.rescue is None:
            return Electable(selected, refused)
        progress = operator.progress
        expected = await expected_elections(cluster, cluster_id, selected.states, progress)
        notes = await rescue_notes(cluster, expected.prepared, self.rescue, progress)
        if not operator.asks:
            operator.says(*notes)
        return Electable(selected, refused, expected=expected, notes=notes)

    def nothing_to_send(self, prepared: Electable) -> KafkaElectionResults | None:
        nothing = prepared.asked and not prepared.selected.states
        return KafkaElectionResults(prepared.refused, sent=False) if nothing else None

    def question(self, prepared: Electable) -> Question | None:
        """For an unclean election: asks with the number of partitions, because the first live replica of each
        is elected.
        """
        if self.preferred:
            return None
        selected = prepared.selected
        unseen = " that may be seen" if selected.visible_only or selected.hidden else ""
        number = len(selected.states)
        text = (
            f"An unclean election takes the first live replica of each of the {number:,} offline"
            f" partitions{unseen}, however short its log; ktriage plan chooses by the logs."
        )
        return Question.number(text, "the number of partitions", number, prepared.notes)

    async def recheck(
        self, cluster: Backend, prepared: Electable, answer: str, operator: Operator[Electable]
    ) -> Electable:
        """Only the partition's state decides which replica is elected: after any change it may not be the
        replica that the question named.
        """
        states = prepared.selected.states
        found = await described(cluster, [state.tp for state in states]) if states else None
        now = {} if found is None else {state.tp: state for state in found.states}
        moved = {state.tp: refused for state in states if (refused := _moved(state, now.get(state.tp)))}
        selected = prepared.selected.without(moved)
        changed = (*prepared.refused, *moved.values())
        return prepared._replace(selected=selected, refused=changed, asked=True)

    async def execute(
        self, cluster: Backend, prepared: Electable, run: ChangeRun[Electable]
    ) -> KafkaElectionResults:
        rescued, left_out, unread = await self._rescue_first(cluster, prepared, run)
        states = prepared.selected.without({one.tp for one in left_out}).states
        if left_out and not states:
            return KafkaElectionResults((*prepared.refused, *left_out), False, rescued, True)
        whole = self.every and not prepared.asked and not left_out
        partitions = None if whole else [state.tp for state in states]
        with run.stop.in_flight():
            recorder = KafkaElectionRecorder(
                run.journal, states, preferred=self.preferred, every=partitions is None
            )
            try:
                elections = await cluster.elect(self.preferred, partitions, recorder)
            except ElectionInDoubt as error:
                what = "waits for it, and says who leads then"
                raise ElectionInDoubt(f"{error}. {run.resume_command} {what}") from error
            leaders = {state.tp: state.leader for state in states}
            note_kafka_elections(run.journal, elections, leaders, unread_detail(states, unread))
        expected = prepared.expected
        unexpected = () if expected is None else tuple(expected.unexpected(elections))
        elected = {one.tp for one in elections if one.outcome is Outcome.ELECTED}
        as_expected = elected - {one.tp for one in unexpected}
        rows = () if expected is None else expected.prepared.plan.rows
        return KafkaElectionResults(
            (*prepared.refused, *left_out, *elections),
            rescued=rescued,
            logs_read=expected is not None,
            unexpected=unexpected,
            expected={row.tp: row for row in rows if row.tp in as_expected},
            unread={tp: brokers for tp, brokers in unread.items() if tp in elected},
            consumer=await read_back_as_consumer(
                cluster, {} if run.stop else dict.fromkeys(sorted(elected), Expected())
            ),
        )

    async def _rescue_first(
        self, cluster: Backend, prepared: Electable, run: ChangeRun[Electable]
    ) -> tuple[Rescued | None, tuple[Election, ...], UnreadBrokers]:
        """What was read, the partitions that are not elected because something was not, and the disks that nobody
        read.
        """
        states = prepared.selected.states
        if self.preferred:
            return None, (), {}
        if prepared.expected is None:
            note_declined(run.journal, "", sum(state.offline for state in states))
            down = {state.tp: state.offline_replicas for state in states if state.offline}
            return None, (), down
        expected = prepared.expected.only({state.tp for state in states})
        rescued, checked = await rescue_first(cluster, expected.prepared, self.rescue, run)
        problems = {one.tp: f"{one.decision}: {one.detail}" for one in checked.refused}
        if self.rescue is not None and not self.rescue.elect_anyway:
            problems |= {
                tp: f"what it cuts off cannot be read first: {why}" for tp, why in expected.unread.items()
            }
        wanted = {state.tp for state in states}
        left_out = [
            Election(tp, Outcome.NOT_ATTEMPTED, -1, -1, why) for tp, why in problems.items() if tp in wanted
        ]
        return rescued, tuple(left_out), checked.unread

    def conclusion(self, result: KafkaElectionResults) -> Conclusion:
        moved = not result.sent and any(e.outcome is Outcome.STALE for e in result.elections)
        stale = "every partition changed while the question was open; nothing was sent" if moved else ""
        partly = result.failures or contradicted(result.consumer)
        status = Status.STALE if stale else Status.PARTLY if partly else Status.DONE
        counts = {str(outcome): n for outcome, n in result.counts.items()}
        in_doubt = any(election.in_doubt for election in result.elections)
        rescued = result.rescued is not None and result.rescued.offsets > 0
        shown = (
            ("rescue", "show", str(result.rescued.directory)) if result.rescued and rescued else ("status",)
        )
        return Conclusion(status, counts, in_doubt, ("resume",) if in_doubt else shown, stale)


def _moved(before: PartitionState, now: PartitionState | None) -> Election | None:
    """Why the election of this partition is not sent; None: the partition has not changed since the question."""
    if now == before:
        return None
    if now is None:
        return Election(
            before.tp, Outcome.STALE, -1, -1, "it does not exist any more, or this user may not see it"
        )
    if not now.offline:
        detail = "it got a leader while the question was open; nothing was sent"
        return Election(before.tp, Outcome.ALREADY_ONLINE, now.leader, now.leader_epoch, detail)
    what = [
        f"{name} was {_shown(then)} and is {_shown(value)}"
        for name, then, value in zip(PartitionState._fields, before, now, strict=True)
        if then != value
    ]
    detail = f"it changed while the question was open: {'; '.join(what)}"
    return Election(before.tp, Outcome.STALE, -1, now.leader_epoch, detail)


def _shown(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)
