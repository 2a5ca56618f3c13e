"""Where a group's committed offset lies after an election, and where it has to go back to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.jobs.consumers.group_offsets import StayingLog, staying_log
from recovery.controller.registration import Registration
from recovery.groups.group_values import CommittedOffset, ConsumerGroup, GroupKind, GuessedUse, guessed_use
from recovery.groups.offset_judgement import LastReadPlace, OffsetJudgement, SurvivingLog, judge_offset
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.records import PartitionRecord
from recovery.model import NO_EPOCH, EpochSpan, Lineage, ReplicaLog, Unknown
from tests.unit.acknowledged.controller_log import ControllerLog
from tests.unit.recovery.logs import WholeLog, cluster_logs
from tests.unit.recovery.surveys import SILENT, log, survey

NONE = NO_EPOCH


def kept(*spans: tuple[int, int, int], start: int = 0) -> SurvivingLog:
    rows = tuple(EpochSpan(*span) for span in spans)
    return SurvivingLog(Lineage(rows[-1].epoch, rows, start), start, rows[-1].end)


STALE_TAIL = kept((0, 0, 1000), (2, 1000, 1300))
GROWN = kept((0, 0, 1000), (2, 1000, 1300), (4, 1300, 1600))
TAIL = (EpochSpan(0, 1000, 1500),)
TWICE = kept((0, 0, 1000), (2, 1000, 1300))
BRANCH_BELOW = (EpochSpan(1, 900, 1450),)

CASES: dict[str, tuple[SurvivingLog, tuple[EpochSpan, ...], tuple[int, int], LastReadPlace, int | None]] = {
    "read less than what both logs hold": (STALE_TAIL, TAIL, (900, 0), LastReadPlace.COMMON, None),
    "read exactly to where they part": (STALE_TAIL, TAIL, (1000, 0), LastReadPlace.COMMON, None),
    "read to where they part, with the epoch that begins there": (
        STALE_TAIL,
        TAIL,
        (1000, 2),
        LastReadPlace.COMMON,
        None,
    ),
    "read the tail that goes": (STALE_TAIL, TAIL, (1450, 0), LastReadPlace.CUT_OFF, 1000),
    "the same without an epoch, beyond the end": (
        STALE_TAIL,
        TAIL,
        (1450, NONE),
        LastReadPlace.CUT_OFF,
        1000,
    ),
    "the same once the log has grown past it": (GROWN, TAIL, (1450, 0), LastReadPlace.CUT_OFF, 1000),
    "without an epoch nobody knows it then": (GROWN, TAIL, (1450, NONE), LastReadPlace.EITHER, 1000),
    "read the branch that stays": (STALE_TAIL, TAIL, (1200, 2), LastReadPlace.KEPT, None),
    "the tail is truncated everywhere, the epoch still tells": (
        GROWN,
        (),
        (1450, 0),
        LastReadPlace.CUT_OFF,
        1000,
    ),
    "no other log is known, no epoch": (GROWN, (), (1450, NONE), LastReadPlace.COMMON, None),
    "beyond everything that is known": (STALE_TAIL, TAIL, (1600, NONE), LastReadPlace.BEYOND_END, None),
    "before the log start": (
        kept((2, 1000, 1300), start=1000),
        (),
        (900, NONE),
        LastReadPlace.BEFORE_START,
        None,
    ),
    "an epoch that only the other branch has": (TWICE, BRANCH_BELOW, (950, 1), LastReadPlace.CUT_OFF, 900),
    "a branch of two epochs": (
        TWICE,
        (EpochSpan(1, 900, 1200), EpochSpan(3, 1200, 1450)),
        (1450, 3),
        LastReadPlace.CUT_OFF,
        900,
    ),
    "the same branch is gone: the offset is still in the kept log": (
        TWICE,
        (),
        (1450, 1),
        LastReadPlace.CUT_OFF,
        1000,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_where_it_lies(name: str) -> None:
    log, cut_off, (offset, epoch), place, back = CASES[name]
    judged = judge_offset(CommittedOffset(offset, epoch), log, cut_off, all_logs_known=True)
    assert (judged.place, judged.go_back_to) == (place, back)
    assert judged.harmless is (place in (LastReadPlace.COMMON, LastReadPlace.KEPT))


def test_what_is_skipped_and_what_is_gone() -> None:
    judged = judge_offset(CommittedOffset(1450, 0), STALE_TAIL, TAIL, all_logs_known=True)
    assert judged == OffsetJudgement(LastReadPlace.CUT_OFF, 1000, True, True, 450, 300, 0)
    grown = judge_offset(CommittedOffset(1450, 0), GROWN, TAIL, all_logs_known=True)
    assert (grown.beyond_end, grown.never_read) == (False, 450), "now it skips 450 without an error"
    unsure = judge_offset(CommittedOffset(1450), GROWN, TAIL, all_logs_known=True)
    assert unsure.read_again == 450


def test_a_branch_that_nobody_knows_is_not_said_to_part_exactly() -> None:
    judged = judge_offset(CommittedOffset(1450, 1), TWICE, (), all_logs_known=True)
    assert not judged.exact, "the branch may have left the kept log before offset 1000"


def test_without_an_epoch_a_silent_replica_may_have_held_the_branch() -> None:
    known = judge_offset(CommittedOffset(1200), STALE_TAIL, (), all_logs_known=True)
    silent = judge_offset(CommittedOffset(1200), STALE_TAIL, (), all_logs_known=False)
    assert known.place is LastReadPlace.COMMON
    assert (silent.place, silent.go_back_to, silent.harmless) == (LastReadPlace.EITHER, None, False)


def test_of_two_branches_that_it_may_have_read_the_lower_start_is_taken() -> None:
    """Going back too far reads records twice; not far enough skips them."""
    kept_log = kept((0, 0, 900), (5, 900, 1500))
    branches = (EpochSpan(1, 1000, 1300), EpochSpan(3, 900, 1250))
    judged = judge_offset(CommittedOffset(1200), kept_log, branches, all_logs_known=True)
    assert (judged.place, judged.go_back_to) == (LastReadPlace.EITHER, 900)


def test_an_epoch_that_begins_at_the_offset_does_not_tell_where_the_record_before_it_lies() -> None:
    silent = judge_offset(CommittedOffset(1000, 2), STALE_TAIL, (), all_logs_known=False)
    assert (silent.place, silent.harmless) == (LastReadPlace.EITHER, False)


def test_an_epoch_below_what_is_known_of_the_kept_log_may_be_its_own() -> None:
    known_from_1000 = SurvivingLog(Lineage(2, (EpochSpan(2, 1000, 1300),), 1000), 0, 1300)
    judged = judge_offset(CommittedOffset(500, 0), known_from_1000, (), all_logs_known=True)
    assert (judged.place, judged.go_back_to) == (LastReadPlace.COMMON, None)


def test_a_place_before_which_the_other_branch_was_deleted_is_not_exact() -> None:
    for forgotten_below, exact in ((1000, False), (999, True)):
        judged = judge_offset(
            CommittedOffset(1450, 0), STALE_TAIL, TAIL, all_logs_known=True, forgotten_below=forgotten_below
        )
        assert (judged.go_back_to, judged.exact) == (1000, exact)


def test_records_that_another_branch_has_deleted_behind_the_parting_may_have_been_read() -> None:
    """Both hold epoch 0; the kept log has offset 1 in epoch 1, the other had it in epoch 0 and deleted it."""
    told: dict[int, ReplicaLog | Unknown] = {0: log((0, 0, 1), (1, 1, 2)), 1: log((0, 2, 3), start=2)}
    staying = staying_log(survey(told), None, 0)
    assert isinstance(staying, StayingLog)
    judged = judge_offset(
        CommittedOffset(2),
        staying.surviving,
        staying.cut_off,
        all_logs_known=staying.all_logs_known,
        forgotten_below=staying.forgotten_below,
    )
    assert (judged.place, judged.exact, judged.harmless) == (LastReadPlace.EITHER, False, False)


@given(cluster_logs(), st.data())
def test_no_record_of_the_kept_log_is_ever_skipped(
    drawn: tuple[tuple[WholeLog, ...], int], data: st.DataObject
) -> None:
    """Random logs of one partition: the group has read one of them, and goes back to where it is told."""
    logs = drawn[0]
    chosen, read = data.draw(st.permutations(range(len(logs))))[:2]
    told: dict[int, ReplicaLog | Unknown] = {
        broker: log(*((s.epoch, s.start, s.end) for s in one.spans()), start=one.start)
        for broker, one in enumerate(logs)
    }
    staying = staying_log(survey(told), None, chosen)
    assert isinstance(staying, StayingLog)
    history = logs[read]
    if history.end == 0:
        return
    offset = data.draw(st.integers(1, history.end))
    epoch = data.draw(st.sampled_from((history.epochs[offset - 1], NO_EPOCH)))
    judged = judge_offset(
        CommittedOffset(offset, epoch),
        staying.surviving,
        staying.cut_off,
        all_logs_known=staying.all_logs_known,
        forgotten_below=staying.forgotten_below,
    )
    if not judged.exact or (judged.go_back_to is None and not judged.harmless):
        return  # it says itself that records before it may be missing
    reads_on = offset if judged.go_back_to is None else judged.go_back_to
    seen = {(history.epochs[at], at) for at in range(offset)}
    assert {record for record in logs[chosen].records() if record[1] < reads_on} <= seen, judged


@pytest.mark.parametrize(
    ("name", "protocol", "assignor", "topics", "use"),
    [
        ("billing", "consumer", "range", ("orders",), None),
        ("billing", "consumer", "stream", (), GuessedUse.STREAMS),
        ("billing", "consumer", "", ("billing-store-changelog",), GuessedUse.STREAMS),
        ("workers", "connect", "", (), GuessedUse.CONNECT),
        ("connect-s3", "consumer", "range", (), GuessedUse.CONNECT),
    ],
)
def test_what_a_group_seems_to_belong_to(
    name: str, protocol: str, assignor: str, topics: tuple[str, ...], use: GuessedUse | None
) -> None:
    group = ConsumerGroup(name, 1, GroupKind.CLASSIC, protocol, "Stable")
    assert guessed_use(group, assignor, topics) is use


@pytest.mark.parametrize(
    ("state", "empty"), [("Empty", True), ("EMPTY", True), ("Dead", True), ("Stable", False), ("", False)]
)
def test_only_a_group_without_members_is_empty(state: str, empty: bool) -> None:
    assert ConsumerGroup("billing", 1, GroupKind.CLASSIC, "consumer", state).empty is empty


ONE_EPOCH = ((0, 0, 1500),)


def staying(leader_epoch: int, history: MetadataHistory | None = None) -> StayingLog:
    """Of a partition whose replica 3 is silent, and whose others hold one epoch."""
    told = survey({1: log(*ONE_EPOCH), 2: log((0, 0, 1000)), 3: SILENT})
    told = told._replace(state=told.state._replace(leader_epoch=leader_epoch))
    found = staying_log(told, None, 1, history)
    assert isinstance(found, StayingLog)
    return found


def judged(log_: StayingLog, offset: int, *, before: bool = False) -> OffsetJudgement:
    """Of an offset without an epoch."""
    return judge_offset(
        CommittedOffset(offset),
        log_.surviving,
        log_.cut_off,
        all_logs_known=log_.all_logs_known,
        was_cut_off=before,
        no_branch_below=log_.no_branch_below,
        planned_end=log_.planned_end,
    )


def led(*leaders: int) -> MetadataHistory:
    """A metadata log with these leaders of epochs 0, 1, …; the last one has died."""
    told = ControllerLog()
    for leader in leaders[1:]:
        told.isr(*sorted({1, 2, 3}), leader=leader)
    told.isr(leaders[-1], leader=-1)
    return told.folded()


def test_a_silent_replica_has_no_branch_where_nobody_else_ever_led() -> None:
    """Epoch 1 has no leader: the partition went offline. Nothing speaks for other records at these offsets."""
    assert judged(staying(leader_epoch=1), 900).place is LastReadPlace.COMMON
    unsure = judged(staying(leader_epoch=4), 900)
    assert (unsure.place, unsure.go_back_to) == (LastReadPlace.EITHER, None), (
        "1, 2 and 3 may have had leaders"
    )


def test_a_leader_before_the_first_record_may_have_written_others_at_the_same_offsets() -> None:
    """It wrote record 0 alone and died; the next leader began the log again, in a later epoch."""
    logs: dict[int, ReplicaLog | Unknown] = {1: log((2, 0, 900)), 2: SILENT}
    seen = survey(logs)
    found = staying_log(seen._replace(state=seen.state._replace(leader_epoch=3)), None, 1)
    assert isinstance(found, StayingLog)
    assert judged(found, 800).place is LastReadPlace.EITHER


def test_the_metadata_log_tells_whether_the_silent_replica_ever_led() -> None:
    assert judged(staying(3, led(1, 2, 1)), 900).place is LastReadPlace.COMMON, (
        "2 told its log: it wrote nothing"
    )
    unsure = judged(staying(3, led(1, 3, 1)), 900)
    assert unsure.place is LastReadPlace.EITHER, "3 led in epoch 1, and does not tell what it wrote"


def test_a_log_that_a_rebuild_of_the_quorum_goes_on_with_does_not_tell_who_led_before() -> None:
    """3 led in epoch 1 and took records alone, which the chosen copy lacks; the rebuild wrote epoch 1001."""
    told = ControllerLog()
    told.says(PartitionRecord("id", 0, Registration((1, 2, 3), (1,), -1, 1_001)))
    unsure = judged(staying(1_001, told.folded()), 900)
    assert (unsure.place, unsure.go_back_to) == (LastReadPlace.EITHER, None)


def test_behind_the_planned_end_the_place_to_go_back_to_is_that_end() -> None:
    planned = staying(leader_epoch=1)
    assert planned.planned_end == 1500
    assert judged(planned, 1600) == OffsetJudgement(
        LastReadPlace.BEYOND_END, 1500, exact=True, beyond_end=True, gone=100
    )
    assert not judged(staying(leader_epoch=4), 1600).exact, "a silent replica may have parted before it"


def test_once_the_log_has_grown_past_it_the_planned_end_is_still_the_place() -> None:
    grown = StayingLog(
        kept((0, 0, 1500), (2, 1500, 1900)), (), False, True, True, no_branch_below=1500, planned_end=1500
    )
    found = judged(grown, 1600, before=True)
    assert (found.place, found.go_back_to, found.exact) == (LastReadPlace.CUT_OFF, 1500, True)
    assert (found.never_read, found.gone) == (100, 100), "it would skip 1500 to 1600 of the kept log"
    assert judged(grown, 1400, before=True).harmless


@given(cluster_logs(), st.data())
def test_a_replica_that_never_told_its_log_is_called_harmless_only_where_it_is(
    drawn: tuple[tuple[WholeLog, ...], int], data: st.DataObject
) -> None:
    """The group has read a replica that is silent now; only the others and the leader epochs are known."""
    logs, leader_epoch = drawn
    chosen, read = data.draw(st.permutations(range(len(logs))))[:2]
    told: dict[int, ReplicaLog | Unknown] = {
        broker: SILENT
        if broker == read
        else log(*((s.epoch, s.start, s.end) for s in one.spans()), start=one.start)
        for broker, one in enumerate(logs)
    }
    seen = survey(told)
    found = staying_log(seen._replace(state=seen.state._replace(leader_epoch=leader_epoch)), None, chosen)
    history = logs[read]
    if not isinstance(found, StayingLog) or history.end == 0:
        return
    offset = data.draw(st.integers(1, history.end))
    verdict = judged(found, offset)
    if verdict.harmless and offset >= found.surviving.start:
        had = {(history.epochs[at], at) for at in range(offset)}
        assert {record for record in logs[chosen].records() if record[1] < offset} <= had, verdict
