"""A broker's replicas asked share by share, until the last epoch of each is known.

What does not go the usual way (an error, a log that changes while it is asked) leaves its share and is told as odd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from backends.live.connecting.connection import BrokerConnection
from backends.live.surveying import logquery
from backends.live.surveying.logquery import LogEnd, Trouble
from backends.live.surveying.nativequery import LogEnds
from backends.live.surveying.shares import Ends, Share
from recovery.model import PartitionState, TopicPartition, Unknown, Why
from recovery.probe import Answer, OutOfRange, Probe, ProbeError, advance, start

LEFT_OUT = Trouble(Unknown(Why.FAILED, "the broker left the partition out"), passing=False)


class Odd(NamedTuple):
    """A replica that left its share: what it answered last, and what was known of it before (None: nothing).

    ``place`` is that of the replica in the survey.
    """

    state: PartitionState
    place: int
    known: tuple[LogEnd, Probe] | None
    answer: LogEnd | Answer | OutOfRange | Trouble


async def ask_ends(
    connection: BrokerConnection, ends: LogEnds, shares: Sequence[Share], timeout: float
) -> list[Odd]:
    """Ask for the log ends of ``shares``, each of another topic. Raises BrokerError."""
    odd = []
    told = await ends.ask_of(connection, shares, timeout)
    for share, answer in zip(shares, told, strict=True):
        odd += _usual_ends(share, answer) if isinstance(answer, Ends) else _ends(share, answer)
    return odd


def _usual_ends(share: Share, ends: Ends) -> list[Odd]:
    try:
        share.begin(ends)
    except ProbeError:
        rows = zip(ends.leader_epochs, ends.offsets, strict=True)
        return _ends(share, dict(zip(share.tps(), map(LogEnd._make, rows), strict=True)))
    return []


def _ends(share: Share, answers: Mapping[TopicPartition, LogEnd | Trouble]) -> list[Odd]:
    told = [answers.get(tp, LEFT_OUT) for tp in share.tps()]
    odd = [
        (position, Odd(state, place, None, answer))
        for position, (state, place, answer) in enumerate(zip(share.states, share.places, told, strict=True))
        if isinstance(answer, Trouble) or not _starts(state, answer)
    ]
    share.drop(position for position, _ in odd)
    gone = {position for position, _ in odd}
    usual = [answer for position, answer in enumerate(told) if position not in gone]
    kept = [answer for answer in usual if isinstance(answer, LogEnd)]
    share.begin(Ends([end.offset for end in kept], [end.leader_epoch for end in kept]))
    return [one for _, one in odd]


def _starts(state: PartitionState, end: LogEnd) -> bool:
    try:
        start(end.offset, max(end.leader_epoch, state.leader_epoch), state.offline)
    except ProbeError:
        return False
    return True


async def ask_epochs(connection: BrokerConnection, shares: Sequence[Share], timeout: float) -> list[Odd]:
    """Ask the next question about every log of ``shares`` that is not settled. Raises BrokerError."""
    odd = []
    asked = [share for share in shares if share.left]
    told = await logquery.probe_epochs_of(connection, asked, timeout)
    for share, answer in zip(asked, told, strict=True):
        if isinstance(answer, Mapping):
            tps = share.tps()
            odd += _answers(share, [answer.get(tps[position], LEFT_OUT) for position in share.left])
        else:
            odd += _usual_answers(share, answer)
    return odd


def _usual_answers(share: Share, answers: Sequence[Answer | OutOfRange]) -> list[Odd]:
    try:
        share.advance(answers)
    except ProbeError:
        return _answers(share, answers)
    return []


def _answers(share: Share, answers: Sequence[Answer | OutOfRange | Trouble]) -> list[Odd]:
    odd = {}
    usual = []
    for position, answer in zip(share.left, answers, strict=True):
        probe = share.probes[position]
        if isinstance(answer, Trouble) or not _advances(probe, answer):
            end = LogEnd(share.ends.leader_epochs[position], share.ends.offsets[position])
            odd[position] = Odd(share.states[position], share.places[position], (end, probe), answer)
        else:
            usual.append(answer)
    share.drop(odd)
    share.advance(usual)
    return list(odd.values())


def _advances(probe: Probe, answer: Answer | OutOfRange) -> bool:
    try:
        advance(probe, answer)
    except ProbeError:
        return False
    return True
