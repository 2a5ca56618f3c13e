"""If the chosen leader drops out: who is elected then, what that loses, and where a person is told."""

from __future__ import annotations

from console.jobs.elect.plan_table import plan_lines
from console.jobs.elect.review_report import markdown
from recovery.model import ReplicaLog, Standing, Survey, Unknown
from recovery.plan.edit import with_leader
from recovery.plan.plan_parts import max_loss
from recovery.plan.successors import at_risk, risk_lines, worse_successor
from recovery.plan.values import Plan, PlanRow
from tests.unit.plan.plans import RIGHT, equal_logs, named, plan_of
from tests.unit.plan.test_review import cells
from tests.unit.recovery.surveys import SILENT, log, survey

Logs = dict[int, ReplicaLog | Unknown]
LONG, SHORT = log((0, 0, 1000)), log((0, 0, 300))


def behind(topic: str = "behind", partition: int = 0) -> Survey:
    """The best log loses nothing; who would follow it has 700 records fewer."""
    return named(survey({1: LONG, 2: SHORT}), topic, partition)


def unregistered(chosen_second: bool = True) -> Survey:
    """Broker 3 is not registered, so the assignment cannot be rewritten; 1 stands first and is fenced."""
    logs: Logs = {1: SHORT, 2: LONG, 3: SILENT} if chosen_second else {2: LONG, 1: SHORT, 3: SILENT}
    return survey(logs, standings={1: Standing.FENCED, 3: Standing.UNREGISTERED})


def only_row(plan: Plan) -> PlanRow:
    (row,) = plan.rows
    return row


def test_a_successor_that_loses_more_is_found_and_one_that_loses_the_same_is_not() -> None:
    worse = worse_successor(only_row(plan_of(behind())))
    assert worse is not None
    assert (worse.broker, worse.loss.at_least, worse.loss.at_most) == (2, 700, 700)
    assert worse_successor(only_row(plan_of(equal_logs()))) is None


def test_a_successor_whose_log_nobody_knows_may_lose_more() -> None:
    silent = survey({1: RIGHT, 2: SILENT}, standings={2: Standing.ELECTABLE})
    worse = worse_successor(only_row(plan_of(silent)))
    assert worse is not None
    assert (worse.broker, worse.loss.at_most) == (2, None)


def test_a_successor_without_the_newest_records_is_worse_although_it_loses_fewer() -> None:
    # 2 holds 300 records of epoch 2; 1 holds 500 of the epoch before, which nobody else has.
    row = only_row(plan_of(survey({1: log((0, 0, 1500)), 2: RIGHT})))
    assert (row.leader, row.loss.at_least) == (2, 500)
    worse = worse_successor(row)
    assert worse is not None
    assert (worse.broker, worse.loss.at_least) == (1, 300)


def test_the_numbers_are_those_of_the_rows_that_may_lose_more() -> None:
    plan = plan_of(behind(), equal_logs(), behind("other", 3))
    found = at_risk(plan)
    assert [row.tp.topic for row in found.rows] == ["behind", "other"]
    assert (found.planned, found.then) == ((0, 0), (1400, 1400))
    assert at_risk(plan_of(equal_logs())).rows == ()
    assert list(risk_lines(plan_of(equal_logs()), 5)) == []
    lines = list(risk_lines(plan, 5))
    assert "2 of 3" in lines[0]
    assert "1,400" in lines[0]
    assert any("behind-0" in line and "700" in line and "broker 2" in line for line in lines[1:])
    assert len(list(risk_lines(plan, 1))) == 2


def test_the_limit_counts_what_the_successor_loses_unless_told_not_to() -> None:
    plan = plan_of(behind(), equal_logs())
    assert [row.tp.topic for row in max_loss(plan, 0).rows] == ["audit"]
    assert [row.tp.topic for row in max_loss(plan, 699).rows] == ["audit"]
    assert [row.tp.topic for row in max_loss(plan, 700).rows] == ["behind", "audit"]
    assert [row.tp.topic for row in max_loss(plan, 0, successors=False).rows] == ["behind", "audit"]


def test_where_no_order_can_be_written_whoever_stands_first_may_be_elected_instead() -> None:
    row = only_row(plan_of(unregistered()))
    assert row.leader == 2
    assert row.order_is_fixed
    assert row.successor is not None
    assert (row.successor.broker, row.successor.standing) == (1, Standing.FENCED)
    assert row.successor.loss.at_least == 700
    shown = cells(row)
    assert (shown["IF IT DROPS OUT"], shown["THEN LOST"][:11]) == ("broker 1 (fenced)", "700 or more")
    assert "broker 3 is not registered" in shown["NOTE"]
    (told,) = risk_lines(plan_of(unregistered()), 5)
    assert "broker 1" in told and "broker 3 is not registered" in told and "700" in told


def test_who_stands_behind_the_chosen_one_and_cannot_be_elected_is_no_successor() -> None:
    row = only_row(plan_of(unregistered(chosen_second=False)))
    assert (row.leader, row.successor) == (2, None)


def test_with_a_fixed_order_the_next_in_the_assignment_follows_and_not_the_next_by_rank() -> None:
    logs: Logs = {1: LONG, 2: SHORT, 3: log((0, 0, 900)), 4: SILENT}
    row = only_row(plan_of(survey(logs, standings={4: Standing.UNREGISTERED})))
    assert row.order[:3] == (1, 3, 2)
    assert row.successor is not None
    assert row.successor.broker == 2


def test_one_that_stands_first_and_can_be_elected_is_named_where_it_cannot_be_put_behind() -> None:
    logs: Logs = {1: SHORT, 2: LONG, 3: SILENT}
    plan = plan_of(survey(logs, standings={3: Standing.UNREGISTERED}))
    row = only_row(plan)
    assert row.leader == 2
    assert row.successor is not None
    assert (row.successor.broker, row.successor.standing) == (1, Standing.ELECTABLE)
    assert worse_successor(row) is not None


def test_the_page_for_the_channel_tells_the_numbers_and_the_name() -> None:
    page = markdown(plan_of(behind(), equal_logs()), "recovery.json", "ktriage apply recovery.json")
    assert "If a chosen leader fails too" in page
    assert "700" in page
    fixed = markdown(plan_of(unregistered()), "recovery.json", "ktriage apply recovery.json")
    assert "| broker 1 (fenced) | " in fixed.replace("\\", "")
    assert "nobody" not in fixed
    everybody = plan_of(*(behind("many", n) for n in range(40)))
    assert len(markdown(everybody, "recovery.json", "ktriage apply recovery.json").splitlines()) <= 40


def test_a_leader_designated_by_hand_over_a_better_one_has_a_successor_that_loses_less() -> None:
    plan = plan_of(behind())
    edited = with_leader(plan, plan.rows[0].tp, 2)
    assert worse_successor(edited.rows[0]) is None


def test_the_table_says_the_same_as_the_sentence_above_it() -> None:
    native, other = ("\n".join(plan_lines(plan_of(behind()), 0, native=kind)) for kind in (True, False))
    native = " ".join(native.split())
    assert (
        "If broker 1 fails too, behind-0 is offline again; without CLUSTER_ACTION, another may lead" in native
    )
    assert "nobody (stays offline); without CLUSTER_ACTION, broker 2" in native
    assert "nothing more; without CLUSTER_ACTION, 700" in native
    assert "broker 2         700" in other and "stays offline" not in other
    page = markdown(plan_of(behind()), "recovery.json", "ktriage apply recovery.json", native=True)
    assert "offline again; without CLUSTER_ACTION, another may lead and lose 700" in page.replace("\\", "")
