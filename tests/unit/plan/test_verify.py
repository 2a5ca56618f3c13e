"""After the election: the right leader, readable and writable, and fully replicated are three things."""

from __future__ import annotations

import pytest

from recovery.model import EpochSpan, Lineage, ReplicaLog, Survey, Unknown, Why
from recovery.plan.planned_log import lost_of_planned_log
from recovery.plan.values import BarePlan, BareRow
from recovery.plan.verify import Leading, Order, RowState, depends_on_depth, verify
from tests.unit.plan.plans import RIGHT, plan_of, stale_long_tail
from tests.unit.recovery.surveys import NO_READ, SILENT, log

PLAN = plan_of(stale_long_tail())
ROW = PLAN.rows[0]
ALL = (1, 2, 3, 4)
ELECTED = log((0, 0, 1000), (2, 1000, 1300), (5, 1300, 1350), leader_epoch=5)


def after(
    leader: int = 2,
    isr: tuple[int, ...] = ALL,
    replicas: tuple[int, ...] = ALL,
    logs: dict[int, ReplicaLog | Unknown] | None = None,
    topic_id: str = "id",
) -> Survey:
    """The partition after the election; every replica has followed unless ``logs`` says otherwise."""
    told = stale_long_tail()
    kept = dict.fromkeys(ALL, ELECTED) | (logs or {})
    state = told.state._replace(leader=leader, leader_epoch=5, isr=isr, replicas=replicas, topic_id=topic_id)
    return told._replace(state=state, replicas=tuple(r._replace(log=kept[r.broker]) for r in told.replicas))


def look(now: Survey) -> RowState:
    (row,) = verify(PLAN, [now])
    return row


def test_everything_as_planned_is_good_and_complete_and_nothing_is_missing() -> None:
    row = look(after())
    assert row == RowState(ROW.tp, 2, Leading.RIGHT, True, True, Order.REVERTED, 0, (), min_isr=2)
    assert row.good
    assert row.complete


def test_right_after_the_election_the_leader_is_right_but_nobody_can_write() -> None:
    row = look(after(isr=(2,)))
    assert (row.leading, row.usable, row.replicated) == (Leading.RIGHT, False, False)
    assert row.missing == ("ISR 1 of min ISR 2", "not in ISR: 1, 3, 4")
    assert row.good
    assert not row.complete


def test_what_the_isr_lacks_follows_it_without_another_survey_and_the_rest_stays() -> None:
    lost: dict[int, ReplicaLog | Unknown] = {2: ELECTED._replace(log_end_offset=1200)}
    row = look(after(isr=(2,), logs=lost))
    (of_the_log,) = (text for text in row.missing if "ISR" not in text)
    grown = row.with_isr_of(after(isr=(2, 3)).state)
    assert (grown.missing, grown.usable, grown.replicated) == (("not in ISR: 1, 4", of_the_log), True, False)
    whole = grown.with_isr_of(after().state)
    assert (whole.missing, whole.replicated) == ((of_the_log,), True)
    assert row.with_isr_of(after(leader=3).state) is row, "of another leader only a survey tells"


def test_at_min_isr_it_is_usable_and_not_yet_replicated() -> None:
    row = look(after(isr=(2, 3)))
    assert (row.usable, row.replicated, row.complete) == (True, False, False)
    assert row.missing == ("not in ISR: 1, 4",)


def test_a_partition_still_offline_is_neither() -> None:
    row = look(after(leader=-1, isr=()))
    assert (row.leading, row.usable, row.gap, row.good) == (Leading.OFFLINE, False, 0, False)
    assert row.missing[0] == "no leader"


def test_another_leader_is_a_failure_that_is_named() -> None:
    row = look(after(leader=3))
    assert (row.leading, row.leader, row.good) == (Leading.OTHER, 3, False)
    assert row.missing[0] == "led by 3, not by 2"
    assert row.lost == 0, "3 has all that 2 had"


def test_the_preferred_replica_that_took_over_later_with_the_planned_log_is_as_planned() -> None:
    """Kafka gives the leadership back to the first replica, five minutes after it is in the ISR again."""
    now = after(leader=1)
    row = look(now._replace(state=now.state._replace(leader_epoch=6)))
    assert (row.leading, row.gap, row.good, row.complete, row.missing) == (Leading.MOVED, 0, True, True, ())
    without = after(leader=1, logs={1: log((0, 0, 1500), (5, 1500, 1510))})
    row = look(without._replace(state=without.state._replace(leader_epoch=6)))
    assert (row.leading, row.lost, row.good) == (Leading.OTHER, 300, False)


def test_what_a_leader_that_took_over_later_lost_of_its_own_old_log_is_no_loss() -> None:
    """All logs are the same again and have records of a newer epoch, so the older ones were not read."""
    young = log((6, 1300, 1400), leader_epoch=6)._replace(
        lineage=Lineage(6, (EpochSpan(6, 1300, 1400),), floor=1300)
    )
    now = after(leader=1, logs=dict.fromkeys(ALL, young))
    now = now._replace(state=now.state._replace(leader_epoch=6))
    row = look(now)
    assert (row.leading, row.lost_offsets) == (Leading.OTHER, False)
    assert isinstance(row.lost, Unknown) and isinstance(row.gap, Unknown) and depends_on_depth(row, now)
    whole = log((0, 0, 1000), (2, 1000, 1300), (6, 1300, 1400), leader_epoch=6)
    deeper = now._replace(replicas=tuple(one._replace(log=whole) for one in now.replicas))
    assert look(deeper).leading is Leading.MOVED and not depends_on_depth(look(deeper), deeper)
    silent = stale_long_tail()._replace(state=stale_long_tail().state._replace(elr=(4,)))
    by_elr = deeper._replace(state=deeper.state._replace(leader=4))
    (row,) = verify(plan_of(silent), [by_elr])
    assert (row.leading, row.complete, row.missing) == (Leading.MOVED, True, ()), "it did not answer before"


def test_another_leader_is_told_with_what_it_lost_of_the_planned_log() -> None:
    """Replica 1 holds nothing of epoch 2: 300 offsets that were planned to stay are gone."""
    row = look(after(leader=1, logs={1: log((0, 0, 1500), (5, 1500, 1510))}))
    assert (row.leading, row.lost, row.good) == (Leading.OTHER, 300, False)
    assert "at least 300 offsets of the planned log are cut off" in row.missing


def test_what_a_leader_lacks_that_does_not_tell_its_log_is_known_only_of_the_first_one() -> None:
    """Its log is as it was when the plan was made only where nobody led in between."""
    first = after(leader=1, logs={1: SILENT})
    assert lost_of_planned_log(ROW, first) == 300
    later = first._replace(state=first.state._replace(leader_epoch=ROW.leader_epoch + 2))
    assert isinstance(lost_of_planned_log(ROW, later), Unknown)


def test_a_member_of_the_elr_that_came_back_is_as_good_as_the_planned_leader() -> None:
    elr = stale_long_tail()._replace(state=stale_long_tail().state._replace(elr=(4,)))
    (row,) = verify(plan_of(elr), [after(leader=4)])
    assert (row.leading, row.good, row.lost) == (Leading.CLEAN, True, None)


@pytest.mark.parametrize("now", [log(), log((5, 0, 40))], ids=["empty", "written since"])
def test_a_member_of_the_isr_that_came_back_with_an_empty_disk_is_no_success(now: ReplicaLog) -> None:
    """Kafka elects it, whatever it holds, and every other replica truncates to it."""
    elr = stale_long_tail()._replace(state=stale_long_tail().state._replace(elr=(4,)))
    (row,) = verify(plan_of(elr), [after(leader=4, logs={4: now})])
    assert (row.leading, row.good, row.complete, row.lost) == (Leading.OTHER, False, False, 1300)
    assert row.missing == (
        "led by 4, not by 2",
        "at least 1,300 offsets of the planned log are cut off",
        "the leader has no record from before the plan, as after a replaced disk",
    )


@pytest.mark.parametrize(
    "now",
    [
        log((0, 0, 1000), (2, 1000, 1300), (5, 1300, 1400)),
        log((5, 1300, 1400), start=1300),  # retention has taken the rest since
        log((5, 1200, 1400), start=1200)._replace(lineage=Unknown(Why.NOT_ANSWERED, "")),
    ],
)
def test_a_member_of_the_elr_that_is_not_known_to_lack_anything_is_as_good(now: ReplicaLog) -> None:
    elr = stale_long_tail()._replace(state=stale_long_tail().state._replace(elr=(4,)))
    (row,) = verify(plan_of(elr), [after(leader=4, logs={4: now})])
    assert (row.leading, row.good, row.lost) == (Leading.CLEAN, True, None)


def test_a_member_of_the_elr_that_came_back_short_is_another_leader_with_what_it_lacks() -> None:
    """Its host lost what was not flushed; the planned log, which answered, had it."""
    elr = stale_long_tail()._replace(state=stale_long_tail().state._replace(elr=(4,)))
    short = log((0, 0, 1000), (2, 1000, 1050), (5, 1050, 1400))
    (row,) = verify(plan_of(elr), [after(leader=4, logs={4: short})])
    assert (row.leading, row.good, row.complete, row.lost) == (Leading.OTHER, False, False, 250)
    assert row.missing[:2] == ("led by 4, not by 2", "at least 250 offsets of the planned log are cut off")


def test_an_order_not_put_back_is_told_from_one_that_somebody_else_made() -> None:
    ours = look(after(replicas=ROW.order))
    assert (ours.order, ours.good) == (Order.NOT_REVERTED, False)
    assert ours.missing == ("assignment order is [2, 3, 1, 4], not yet reverted to [1, 2, 3, 4]",)
    theirs = look(after(replicas=(3, 4, 1, 2)))
    assert (theirs.order, theirs.good) == (Order.CHANGED, False)
    assert "somebody made it [3, 4, 1, 2]" in theirs.missing[0]


@pytest.mark.parametrize(
    ("leader_log", "gap"),
    [
        # The new epoch begins where the planned log ended.
        (log((0, 0, 1000), (2, 1000, 1300), (5, 1300, 1300 + 1)), 0),
        # Nobody has written since.
        (RIGHT, 0),
        # A restart in between lost the page cache: the new epoch begins 120 offsets too low, and has grown past.
        (log((0, 0, 1000), (2, 1000, 1180), (5, 1180, 2000)), 120),
        (log((0, 0, 1000), (5, 1000, 1001)), 300),
        # The same, and nobody has written since.
        (log((0, 0, 1000), (2, 1000, 1290)), 10),
        (log(), 1300),
        # A second election after ours: the lowest of the new epochs counts.
        (log((0, 0, 1000), (2, 1000, 1299), (5, 1299, 1310), (7, 1310, 1400)), 1),
        # Only the epoch that was there when it was fenced has grown: nothing is gone.
        (log((0, 0, 1000), (2, 1000, 1400)), 0),
        # Retention has taken the beginning meanwhile.
        (log((5, 1300, 1400), start=1300), 0),
    ],
)
def test_a_new_epoch_below_the_fenced_log_end_is_a_failure_with_its_loss(
    leader_log: ReplicaLog, gap: int
) -> None:
    row = look(after(logs={2: leader_log}))
    assert row.gap == gap
    assert row.good == (gap == 0)
    assert any(f"lost {gap} offsets" in what for what in row.missing) == (gap > 0)


def test_the_fence_of_whoever_leads_counts() -> None:
    """Broker 1, with 1500 records of epoch 0, was elected in the chosen one's place and truncated nothing."""
    row = look(after(leader=1, logs={1: log((0, 0, 1500), (5, 1500, 1510))}))
    assert (row.leading, row.gap) == (Leading.OTHER, 0)
    row = look(after(leader=1, logs={1: ELECTED}))
    assert row.gap == 200


@pytest.mark.parametrize(
    "now",
    [
        after(logs={2: SILENT}),
        after(logs={2: ELECTED._replace(lineage=NO_READ)}),
        after(leader=4),
        after(logs={2: log((5, 1320, 1400), start=1320)}),
    ],
)
def test_what_cannot_be_seen_of_the_gap_is_unknown_and_never_zero(now: Survey) -> None:
    row = look(now)
    assert isinstance(row.gap, Unknown)
    assert not row.complete
    assert any("is not known" in what for what in row.missing)


def test_a_log_too_short_needs_no_lineage_to_be_a_failure() -> None:
    row = look(after(logs={2: ELECTED._replace(log_end_offset=1200, lineage=NO_READ)}))
    assert row.gap == 100


def test_min_isr_that_may_not_be_read_is_unknown_not_fine() -> None:
    row = look(after()._replace(min_isr=Unknown(Why.NOT_ALLOWED, "needs DESCRIBE_CONFIGS on topic orders")))
    assert isinstance(row.usable, Unknown)
    assert row.good
    assert not row.complete
    assert "DESCRIBE_CONFIGS" in row.missing[0]


def test_a_partition_that_is_gone_or_another_one_of_the_same_name_is_not_seen() -> None:
    (gone,) = verify(PLAN, [])
    again = look(after(topic_id="other"))
    for row in (gone, again):
        assert (row.leading, row.good, row.order) == (Leading.NOT_SEEN, False, Order.NOT_KNOWN)
    assert gone.missing != again.missing


def test_a_bare_files_leaders_are_checked_without_fences() -> None:
    (row,) = verify(BarePlan((BareRow(ROW.tp, 2),)), [after()])
    assert (row.leading, row.usable, row.replicated) == (Leading.RIGHT, True, True)
    assert row.good
    assert row.complete
    (other,) = verify(BarePlan((BareRow(ROW.tp, 1),)), [after()])
    assert (other.leading, other.good) == (Leading.OTHER, False)


def test_another_leader_without_a_record_of_the_planned_epoch_lost_all_behind_its_older_ones() -> None:
    """Even where the plan knew of no difference between the two logs: it was made before."""
    alike = ROW._replace(
        candidates=tuple(one._replace(loss=ROW.loss) for one in ROW.candidates),
    )
    older = log((0, 0, 1000), (5, 1000, 1010), leader_epoch=5)
    assert lost_of_planned_log(alike, after(leader=3, logs={3: older})) == 300
