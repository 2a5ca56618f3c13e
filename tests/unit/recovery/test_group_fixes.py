"""Which committed offsets are moved: never those of a group with members, and none on a guess."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from backends.base.consumer_groups import GroupListing
from backends.base.protocol import Backend
from console.change.change import Operator
from console.errors import NotDone
from console.jobs.consumers import fix_groups
from console.jobs.consumers.fix_groups import FixGroups, PreparedGroupFix, prepared_fix
from console.jobs.consumers.group_offsets import GroupOffset, GroupOffsets, GroupSelection, StayingLog
from console.jobs.consumers.groups_report import group_lines
from recovery.groups.group_values import CommittedOffset, ConsumerGroup, GroupKind
from recovery.groups.offset_judgement import LastReadPlace, OffsetJudgement, SurvivingLog
from recovery.model import EpochSpan, Lineage, TopicPartition

TP = TopicPartition("t", 0)
LOG = SurvivingLog(Lineage(2, (EpochSpan(0, 0, 1000), EpochSpan(2, 1000, 1300)), 0), 0, 1300)
CUT = OffsetJudgement(LastReadPlace.CUT_OFF, 1000)


def offsets(judgement: OffsetJudgement, state: str = "Empty", committed: int = 1450) -> GroupOffsets:
    group = ConsumerGroup("billing", 1, GroupKind.CLASSIC, "consumer", state)
    row = GroupOffset(group, TP, CommittedOffset(committed, 0), judgement, 1300)
    staying = StayingLog(LOG, (EpochSpan(0, 1000, 1500),), all_logs_known=True, elected=True)
    return GroupOffsets(GroupListing((group,)), (row,), {}, {TP: staying})


def test_a_group_with_members_is_left_until_it_is_stopped() -> None:
    assert len(prepared_fix("c", offsets(CUT), uncertain=False).fixes) == 1
    running = prepared_fix("c", offsets(CUT, "Stable"), uncertain=False)
    assert (len(running.fixes), len(running.after_stopping)) == (0, 1)


@pytest.mark.parametrize(
    "guess", [CUT._replace(exact=False), OffsetJudgement(LastReadPlace.EITHER, 1000)], ids=["where", "which"]
)
def test_a_guess_is_followed_only_where_it_is_asked_for(guess: OffsetJudgement) -> None:
    left = prepared_fix("c", offsets(guess), uncertain=False)
    assert left.fixes == () and "not certain (--uncertain takes 1,000)" in left.left[0].why
    assert len(prepared_fix("c", offsets(guess), uncertain=True).fixes) == 1


def test_a_group_that_read_on_while_the_question_stood_open_is_not_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def read(*_: object) -> GroupOffsets:
        return offsets(CUT, committed=1480)

    class Asked:
        progress = None

    monkeypatch.setattr(fix_groups, "read_group_offsets", read)
    change = FixGroups(GroupSelection(), "here", "a test", 1.0)
    before = prepared_fix("c", offsets(CUT), uncertain=False)
    operator = cast("Operator[PreparedGroupFix]", Asked())
    with pytest.raises(NotDone, match="changed while the question stood open"):
        asyncio.run(change.recheck(cast("Backend", None), before, "1", operator))


def test_a_group_whose_offset_is_pending_in_a_transaction_does_not_read_on_and_is_not_moved() -> None:
    """Whatever its last committed offset says: Kafka answers UNSTABLE_OFFSET_COMMIT until the transaction ends."""
    found = offsets(OffsetJudgement(LastReadPlace.COMMON), committed=10)
    (row,) = found.rows
    assert not row.concerned
    waits = row._replace(committed=row.committed._replace(pending=True))
    found = replace(found, rows=(waits,))
    assert waits.concerned
    prepared = prepared_fix("c", found, uncertain=True)
    assert prepared.fixes == () and "a transaction that is open" in prepared.left[0].why
    shown = "\n".join(group_lines(found, 0, every=True))
    assert "no member that starts reads on (UNSTABLE_OFFSET_COMMIT)" in shown and "  reads on" not in shown
