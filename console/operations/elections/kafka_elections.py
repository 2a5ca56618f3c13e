"""Kafka's own preferred and unclean elections (ElectLeaders types 0 and 1)."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from backends.base.answers import Election, Outcome
from backends.base.errors import ElectionInDoubt
from backends.base.protocol import Backend
from console.errors import Status
from console.operations.access import Access
from console.operations.change import Change, ChangeRun, Conclusion, Operator, Question, settle_orders
from console.operations.elections.election_batches import SUCCESS, described
from console.operations.elections.election_notes import KafkaElectionRecorder, note_kafka_elections
from console.operations.elections.partition_selection import Selected, Selection, select
from recovery.model import PartitionState


@dataclass(frozen=True, slots=True)
class KafkaElectionResults:
    """The results of elections, refused ones included. ``sent``: something was sent. For an election of all
    partitions Kafka's answer has only the partitions that needed one.
    """

    elections: tuple[Election, ...]
    sent: bool = True

    @property
    def counts(self) -> Mapping[Outcome, int]:
        return Counter(election.outcome for election in self.elections)

    @property
    def failures(self) -> tuple[Election, ...]:
        return tuple(election for election in self.elections if election.outcome not in SUCCESS)


class Electable(NamedTuple):
    """The partitions to elect. ``asked``: the operator was asked; ``refused`` are partitions that changed
    before the answer.
    """

    selected: Selected
    refused: tuple[Election, ...] = ()
    asked: bool = False


@dataclass(frozen=True, slots=True)
class KafkaElection(Change[Backend, Electable, KafkaElectionResults]):
    """A ``preferred`` or an unclean election of the partitions selected, or of ``every`` one of the cluster."""

    selection: Selection
    preferred: bool
    every: bool
    reason: str = ""

    async def settle(self, access: Access[Backend], run: ChangeRun[Electable]) -> None:
        await settle_orders(access, run)

    async def prepare(self, cluster: Backend, cluster_id: str, operator: Operator[Electable]) -> Electable:
        return Electable(await select(cluster, self.selection))

    def unsent(self, prepared: Electable) -> KafkaElectionResults | None:
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
            f" partitions{unseen}, however short its log; ktriage plan chooses by the logs. To go on, type the"
            " number of partitions:"
        )
        return Question.number(text, number)

    async def compare_again(
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
        return Electable(selected, tuple(moved.values()), asked=True)

    async def carry_out(
        self, cluster: Backend, prepared: Electable, run: ChangeRun[Electable]
    ) -> KafkaElectionResults:
        states = prepared.selected.states
        partitions = None if self.every and not prepared.asked else [state.tp for state in states]
        with run.stop.in_flight():
            recorder = KafkaElectionRecorder(
                run.journal, states, preferred=self.preferred, every=partitions is None
            )
            try:
                elections = await cluster.elect(self.preferred, partitions, recorder)
            except ElectionInDoubt as error:
                what = "waits for it, and says who leads then"
                raise ElectionInDoubt(f"{error}. {run.resume_command} {what}") from error
            note_kafka_elections(run.journal, elections, {state.tp: state.leader for state in states})
        return KafkaElectionResults((*prepared.refused, *elections))

    def conclusion(self, result: KafkaElectionResults) -> Conclusion:
        stale = not result.sent and any(e.outcome is Outcome.STALE for e in result.elections)
        status = Status.STALE if stale else Status.PARTLY if result.failures else Status.DONE
        counts = {str(outcome): n for outcome, n in result.counts.items()}
        in_doubt = any(election.in_doubt for election in result.elections)
        return Conclusion(status, counts, unfinished=in_doubt, next=("resume" if in_doubt else "status",))


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
