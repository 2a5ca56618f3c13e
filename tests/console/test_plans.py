"""Plans at the keyboard: in bulk, edited, refused, saved and loaded, stale."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import AppBlur, AppFocus
from textual.widgets import Input

from console.app.base.question_dialogs import ChoiceQuestion
from console.jobs.elect.candidate_picker import CandidatePicker
from console.plan_files import read
from recovery.model import TopicPartition
from recovery.plan.judgement import RowDecision
from recovery.plan.values import Plan
from recovery.strategy import Strategy
from tests.console.faults import passes
from tests.console.robot import console, records

PAYMENTS = TopicPartition("payments", 0)


@pytest.mark.long
async def test_two_thousand_partitions_are_recovered_in_bulk(home: Path) -> None:
    async with console("offline-2000", size=(120, 40)) as robot:
        await robot.sees("2,000 offline")
        await robot.press("a")
        await robot.hears("marked: 2,000 rows")
        await robot.press("c")
        await robot.sees("aggressive", "elects 2,000", "elects 0")
        await robot.press("down", "down", "enter")
        await robot.until(lambda: len(robot.session.draft.partitions) == 2_000, "2,000 rows in the plan")
        await robot.opens("6")
        await robot.arms()
        confirmation = await robot.asks_to_apply()
        assert confirmation.request.expected is None or confirmation.request.expected.isdecimal()
        await robot.confirms(confirmation.request.expected or "", "drill")
        await robot.idle()
        await robot.hears("2,000 partitions have a leader")
        await robot.until(lambda: not robot.session.view.offline, "nothing offline")
        assert robot.session.draft.plan is not None
        assert robot.session.draft.plan.header.strategy is Strategy.AGGRESSIVE
    (lines,) = records(home)
    assert {line["kind"] for line in lines} == {"run", "before", "after", "end"}


async def test_how_many_rows_are_marked_is_said_of_a_list_of_any_length() -> None:
    """It said "marked: 0 rows" where so many are marked that they are marked in slices."""
    async with console("offline-2000", size=(120, 40)) as robot:
        await robot.sees("2,000 offline")
        await robot.press("O")
        await robot.sees("3,000 in all")
        await robot.until(lambda: robot.desk.table.counts.shown == 3_000, "every partition")
        await robot.press("a")
        await robot.hears("marked: 3,000 rows")
        await robot.until(lambda: robot.desk.table.counts.marked == 3_000, "every mark")


async def test_waiting_takes_the_partition_out_of_the_plan_and_says_so() -> None:
    async with console("stale-long-tail") as robot:
        await robot.chooses(2)
        await robot.sees("1 in the plan")
        await robot.press("c")
        await robot.asked(ChoiceQuestion)
        await robot.sees("take it out of the plan")
        await robot.press("escape")
        await robot.idle()
        assert PAYMENTS in robot.session.draft.partitions
        await robot.press("c")
        await robot.asked(ChoiceQuestion)
        await robot.press("enter")
        await robot.hears("payments-0 is left as it is, and was taken out of the plan: ")
        await robot.idle()
        await robot.settled()
        assert robot.session.draft.plan is None
        assert "in the plan" not in robot.screen
        assert "in plan" not in robot.screen


async def test_the_designated_leader_is_edited_and_a_fenced_one_is_refused_with_the_reason() -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.press("e")
        await robot.asked(CandidatePicker)
        await robot.picks_in_vain(2)
        await robot.picks(0)
        await robot.hears("0 is designated by hand")
        row = robot.session.draft.row(PAYMENTS)
        assert row is not None
        assert row.leader == 0
        assert row.order[0] == 0
        assert PAYMENTS in robot.session.draft.edited
        await robot.arms()
        confirmation = await robot.asks_to_apply()
        asked = " ".join((*confirmation.request.warnings, *confirmation.request.target))
        assert "320, NEWER than all it has" in asked or "320 or more, NEWER than all it has" in asked
        assert "NOT the best log: broker 1" in asked
        await robot.sees("NOT the best log: broker 1")


async def test_a_saved_plan_is_the_one_that_is_shown_and_is_never_overwritten(home: Path) -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.saves("mine.json")
        assert read(home / "mine.json") == robot.session.draft.plan
        assert "apply" in robot.desk.command_line()
        assert "mine.json" in robot.desk.command_line()
        await robot.press("w")
        await robot.sees("overwritten):")
        await robot.answers("mine.json")
        await robot.hears("never overwritten")


async def test_a_plan_that_became_stale_stands_out_and_is_not_applied(home: Path) -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.saves("mine.json")
        await passes(robot, 600)
        await robot.press("o")
        await robot.answers("mine.json")
        await robot.hears("beside the cluster of now")
        check = robot.session.draft.checks[PAYMENTS]
        assert check.decision is RowDecision.OTHER_LEADER, "2 came back without what it had not flushed"
        assert isinstance(check.lost, int) and check.lost > 1
        await robot.arms()
        await robot.press("X")
        await robot.hears("no row of the plan is left")
    assert records(home) == []


async def test_a_plan_of_another_cluster_is_refused(home: Path) -> None:
    async with console("stale-long-tail") as robot:
        await robot.plans(2)
        await robot.saves("other.json")
    assert isinstance(read(home / "other.json"), Plan)
    async with console("last-replica-standing") as robot:
        await robot.press("o")
        await robot.answers("other.json")
        await robot.hears("the plan is for cluster")
        assert robot.session.draft.plan is None


async def test_a_row_that_goes_online_while_the_confirmation_is_open_is_left_alone(home: Path) -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.arms()
        await robot.asks_to_apply()
        await passes(robot, 600)
        await robot.confirms("payments", "in vain")
        await robot.idle()
        await robot.hears("other leader: 2 leads, and not 1 as planned; at least")
    (lines,) = records(home)
    assert not [line for line in lines if line.get("action") in ("elect", "reorder")]


async def test_advice_to_wait_is_asked_first_and_waiting_is_what_enter_does() -> None:
    async with console("offline-2000") as robot:
        await robot.press("c")
        await robot.sees("Keep which log of orders-0-0?", "wait for broker 3")
        await robot.press("enter")
        await robot.until(lambda: robot.app.screen is robot.desk, "the desk")
        await robot.idle()
        assert robot.session.draft.plan is None


async def test_what_is_dropped_is_not_applied() -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.press("d")
        await robot.until(lambda: robot.session.draft.plan is None, "an empty plan")
        await robot.arms()
        await robot.press("X")
        await robot.hears("the plan is empty")


async def test_escape_cancels_the_confirmation_and_nothing_is_sent(home: Path) -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.arms()
        await robot.asks_to_apply()
        await robot.press("enter")
        await robot.hears("not confirmed")
        assert "ERROR" not in robot.screen
        await robot.asks_to_apply()
        await robot.press("X", "X", "escape")
        await robot.hears("not confirmed")
    assert records(home) == []


NO_PLANS = {
    "cut.json": ("{", "not JSON"),
    "list.json": ("[]", "list.json"),
    "half.json": ('{"partitions": [{"topic": "payments"}]}', "partition"),
    "other.json": ('{"partitions": [{"topic": "nobody", "partition": 0, "designatedLeader": 1}]}', "nobody"),
    "elsewhere.json": (
        '{"partitions": [{"topic": "payments", "partition": 0, "designatedLeader": 9}]}',
        "elsewhere.json: payments-0: broker 9 has no replica",
    ),
    "bytes.json": ("\x00\x01\xff", "bytes.json"),
    "missing.json": (None, "missing.json"),
}


async def test_a_file_that_is_no_plan_is_refused_in_one_line_and_the_plan_stays(home: Path) -> None:
    for name, (text, _) in NO_PLANS.items():
        if text is not None:
            (home / name).write_text(text, encoding="latin-1")
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        before = robot.session.draft.plan
        for name, (_, says) in NO_PLANS.items():
            robot.desk.say("")
            await robot.press("o")
            await robot.answers(name)
            await robot.hears(says)
            await robot.idle()
            assert robot.session.draft.plan is before


async def test_a_file_without_fences_is_asked_afresh_and_can_be_applied(home: Path) -> None:
    wanted = '{"partitions": [{"topic": "payments", "partition": 0, "designatedLeader": 1}]}'
    (home / "bare.json").write_text(wanted, encoding="utf-8")
    async with console("last-replica-standing") as robot:
        await robot.press("o")
        await robot.answers("bare.json")
        await robot.hears("beside the cluster of now")
        assert robot.desk.pane == "6"
        row = robot.session.draft.row(PAYMENTS)
        assert row is not None and row.leader == 1
        assert row.candidates
        await robot.arms()
        await robot.applies("payments", "drill")
        await robot.hears("leads payments-0. acks=all is refused")


async def test_a_directory_without_a_pipelines_result_is_refused_in_one_line(home: Path) -> None:
    (home / "results").mkdir()
    async with console("last-replica-standing") as robot:
        await robot.press("o")
        await robot.answers("results")
        await robot.hears("results")
        assert robot.session.draft.plan is None
        assert robot.desk.pane == "1"


async def test_one_leader_by_hand_leaves_what_the_other_rows_were_chosen_by() -> None:
    async with console("zone-power-loss", size=(120, 30)) as robot:
        await robot.press("a", "c")
        await robot.sees("elect by which strategy?")
        await robot.press("down", "down", "enter")
        await robot.until(lambda: len(robot.session.draft.partitions) > 1, "a plan")
        await robot.idle()
        await robot.press("u")
        key = next(iter(sorted(robot.session.draft.partitions)))
        row = robot.session.draft.row(key)
        assert row is not None
        await robot.puts_the_cursor_on(key)
        await robot.chooses(row.leader)
        assert robot.session.draft.edited == {key}
        assert robot.session.draft.plan is not None
        assert robot.session.draft.plan.header.strategy is Strategy.AGGRESSIVE


async def test_the_command_of_a_plan_that_is_not_saved_names_no_file_that_is_not_there(home: Path) -> None:
    async with console("stale-long-tail", size=(120, 30)) as robot:
        await robot.plans(2)
        await robot.sees("$ # save the plan first (w)")
        assert "apply" not in robot.desk.command_line()


@pytest.mark.long
async def test_what_is_typed_stays_while_the_row_comes_online_behind_the_question(home: Path) -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.arms()
        confirmation = await robot.asks_to_apply()
        confirmation.query_one("#reason").focus()
        await robot.types("host")
        await passes(robot, 600)
        robot.session.poller.ask()
        await robot.until(lambda: not robot.session.view.offline, "nothing offline")
        robot.app.post_message(AppBlur())
        robot.app.post_message(AppFocus())
        await robot.pilot.pause()
        await robot.types(" 2 is lost")
        assert confirmation.query_one("#reason", Input).value == "host 2 is lost"
        await robot.confirms("payments", "host 2 is lost")
        await robot.idle()
        await robot.hears("other leader: 2 leads, and not 1 as planned")
    (lines,) = records(home)
    assert lines[0]["reason"] == "host 2 is lost"


async def test_what_kafka_cut_off_by_its_own_election_is_said_first_where_no_row_is_left() -> None:
    async with console("last-replica-standing", guide=True) as robot:
        await robot.plans(1)
        await robot.opens("1")
        await passes(robot, 600)
        await robot.looks_again()
        await robot.hears(
            "payments-0: broker 2 was elected, not by this console; 580 offsets of brokers 0 and 1"
        )
        await robot.sees("! payments-0: broker 2 was elected", "1 partition LOST offsets", "[1 Offline!]")
        await robot.sees("V says what is lost.")
        await robot.press("V")
        await robot.hears("LOST of the planned log: 560 offsets or more (payments-0: broker 2 leads)")
        assert "0 of 1 led as planned, 1 fully replicated" in robot.said
        await robot.opens("1")
        await robot.press("d")
        await robot.hears("dismissed: what 1 partition lost")
        await robot.until(lambda: "not by this console" not in robot.screen, "no line of the loss")
        assert "LOST offsets" not in robot.screen


async def test_what_this_console_elected_is_not_told_as_a_loss_by_somebody_else() -> None:
    async with console("last-replica-standing") as robot:
        await robot.plans(1)
        await robot.arms()
        await robot.applies("payments", "drill")
        await robot.until(lambda: not robot.session.view.offline, "a leader in the picture")
        await robot.looks_again()
        assert robot.session.view.health is not None
        assert not robot.session.view.leaderless, "its leader was compared with what was read before"
        assert robot.session.view.health.lost_offsets == 0


async def test_that_a_broker_is_better_started_than_another_elected_stays_until_it_is_sent() -> None:
    async with console("last-replica-standing") as robot:
        await robot.sees("Start broker 2 if its host kept power; else elect 1.")
        await robot.plans(1)
        await robot.opens("1")
        await robot.sees("Start broker 2 if its host kept power; else apply the plan: 1")
        await robot.opens("6")
        await robot.arms()
        await robot.asks_to_apply()
        await robot.sees("Start broker 2 instead if its host kept power")


async def test_a_start_that_keeps_more_is_offered_until_the_plan_is_sent() -> None:
    async with console("hanging-transactions", size=(120, 40)) as robot:
        await robot.looked()
        await robot.press("a", "c")
        await robot.takes("aggressive")
        await robot.idle()
        await robot.opens("6")
        await robot.arms()
        await robot.asks_to_apply()
        # The others must be elected before broker 3 starts.
        await robot.sees("transfers-0: better not here (d in pane 6): start broker 3 afterwards if its host")
        await robot.sees("transfers-0: 2 loses an unknown number")
