"""Preferred and unclean ElectLeaders, and the leaders afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from backends.base.answers import Election, Outcome
from backends.base.errors import BackendError, ElectionInDoubt
from backends.base.protocol import Recorder
from backends.live.calls.partition_errors import PartitionRefusal
from backends.live.elections.election_api import ElectionApi
from backends.live.elections.journal_entries import answered, surely_not_done
from backends.live.elections.row_results import IN_DOUBT
from recovery.model import PartitionState, TopicPartition

READ_BACK_FOR = 10.0
"""Seconds in which a caught-up broker must show the leader; the controller needs some milliseconds."""


async def hold_elections(
    api: ElectionApi, preferred: bool, partitions: Sequence[TopicPartition] | None, recorder: Recorder
) -> tuple[Election, ...]:
    """Sends the elections, then reads the leaders back; one result for each partition in the controller's
    answer. Raises BackendError if the request was refused as a whole, ElectionInDoubt if it was not answered.
    """
    kind = "preferred" if preferred else "unclean"
    named = "all" if partitions is None else list(partitions)
    entry = recorder.before("elect", {"election": kind, "partitions": named})
    try:
        answers = await api.elect(partitions, preferred=preferred)
    except BackendError as error:
        not_done = surely_not_done(error)
        how = "refused" if not_done else "unknown"
        recorder.after(entry, {how: {tp: str(error) for tp in partitions or ()}, "error": str(error)})
        if not_done:
            raise
        raise ElectionInDoubt(f"{error}; {IN_DOUBT}") from error
    refused = {tp: refusal for tp, refusal in answers.items() if refusal is not None}
    awaited = [tp for tp in answers if tp not in refused or refused[tp].doubtful]
    recorder.after(entry, answered(answers))
    states = await _read_back(api, list(answers), awaited, preferred)
    return tuple(_election(tp, refused.get(tp), states.get(tp), preferred) for tp in answers)


async def _read_back(
    api: ElectionApi,
    partitions: Sequence[TopicPartition],
    awaited: Iterable[TopicPartition],
    preferred: bool,
) -> Mapping[TopicPartition, PartitionState]:
    """The states, read repeatedly until they show every election that took place; states that cannot be read
    are left out.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + READ_BACK_FOR
    states: dict[TopicPartition, PartitionState] = {}
    waiting = set(awaited)
    asked = list(partitions)
    pause = 0.02
    while True:
        try:
            found = await api.states(asked)
        except BackendError:
            found = {}
        states.update({tp: state for tp, state in found.items() if isinstance(state, PartitionState)})
        waiting = {tp for tp in waiting if not _shown(states.get(tp), preferred)}
        if not waiting or loop.time() >= deadline:
            return states
        asked = sorted(waiting)
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.5)


def _shown(state: PartitionState | None, preferred: bool) -> bool:
    if state is None or state.offline:
        return False
    return not preferred or state.leader == state.replicas[0]


def _election(
    tp: TopicPartition, refusal: PartitionRefusal | None, state: PartitionState | None, preferred: bool
) -> Election:
    leader, epoch = (state.leader, state.leader_epoch) if state else (-1, -1)
    if refusal is not None and refusal.doubtful:
        if _shown(state, preferred):
            return Election(
                tp,
                Outcome.ELECTED,
                leader,
                epoch,
                f"the election was not answered, but it leads now ({refusal})",
            )
        return Election(tp, Outcome.FAILED, leader, epoch, f"{refusal}; {IN_DOUBT}", in_doubt=True)
    if refusal is not None:
        outcome = Outcome.ALREADY_ONLINE if refusal.not_needed else Outcome.FAILED
        return Election(tp, outcome, leader, epoch, str(refusal))
    if _shown(state, preferred):
        return Election(tp, Outcome.ELECTED, leader, epoch, "")
    what = f"an election was held, but no broker shows its leader within {READ_BACK_FOR:g} s"
    return Election(tp, Outcome.FAILED, leader, epoch, what)
