"""Pane 6: the plan as it is reviewed, edited, compared, applied."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from console.app.session.draft import Draft
from console.jobs.elect.candidate_picker import CandidatePicker
from console.jobs.elect.candidate_report import choices
from console.jobs.elect.plan_pane import PlanPane
from console.jobs.elect.plan_table import PLANNED, PlannedRow
from console.jobs.elect.plan_text import BatchProgress
from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.model import TopicPartition
from recovery.plan.compare import compare
from recovery.plan.edit import with_leader
from recovery.plan.make import plan_row
from recovery.plan.values import PlanRow
from recovery.plan.verify import RowOutcome
from recovery.ranking import Ranking
from recovery.strategy import Strategy, decide
from tests.unit.widgets import examples
from tests.unit.widgets.harness import Harness, text_of
from widgets import theme
from widgets.fields import on_screen
from widgets.text import Tone

PAYMENTS, ORDERS = TopicPartition("payments", 0), TopicPartition("orders", 7)


def row(tp: TopicPartition) -> PlanRow:
    found = examples.plan().row(tp)
    assert found is not None
    return found


def line_of(pilot: Pilot[None], word: str) -> str:
    return next((line for line in text_of(pilot.app).splitlines() if word in line), "")


async def shown(
    draft: Draft,
    word: str,
    size: tuple[int, int] = (80, 40),
    batch: BatchProgress | None = None,
    how: str = "",
) -> str:
    pane = PlanPane()
    async with Harness(pane, theme_name=theme.PLAIN).run_test(size=size) as pilot:
        pane.update(draft, batch, how=how)
        await pilot.pause()
        return line_of(pilot, word) if word else text_of(pilot.app)


async def test_no_plan_says_how_to_make_one() -> None:
    assert "no plan yet: c in pane 1 chooses" in await shown(Draft(), "", how="c in pane 1 chooses")


async def test_the_number_that_will_be_typed_is_told() -> None:
    screen = " ".join((await shown(Draft(examples.plan()), "")).split())
    assert "5 partitions to elect" in screen
    assert "4 may lose something (offsets: " in screen
    assert "), 1 lose nothing for certain" in screen
    assert " 0 lose" not in screen
    assert "NOT SAVED" in screen


async def test_stale_rows_stand_out_by_a_word() -> None:
    plan = examples.plan()
    moved = examples.survey(examples.state("payments", 0, epoch=6), {1: examples.log((0, 0, 1500))})
    checks = {c.tp: c for c in compare(plan, [moved, *examples.SURVEYS[1:]], plan.header.cluster_id)}
    view = Draft(plan, checks=checks)
    assert "still true" in await shown(view, "   orders-7")
    assert "STALE" in await shown(view, "►  payments-0")
    assert "the leader epoch is 6, was 4: somebody led in between" in await shown(view, "payments-0: STALE")


async def test_a_leader_chosen_by_hand_is_marked() -> None:
    plan = with_leader(examples.plan(), PAYMENTS, 1)
    told = await shown(Draft(plan, edited=frozenset({PAYMENTS})), "►  payments-0")
    assert "1 by hand" in told and "300 or more, NEWER" in told


def test_a_loss_is_coloured_by_how_bad_it_is_in_whichever_column_it_stands() -> None:
    """The worse one in plain white beside the milder one in alarm reads as the better choice."""
    planned = PlannedRow(row(PAYMENTS))
    columns = {column.id: column for column in on_screen(PLANNED)}
    assert columns["loss"].cell(planned) == "500 or more, old"
    assert columns["successorLoss"].cell(planned) == "300 or more, NEWER"
    assert columns["loss"].tone_of(planned) is columns["successorLoss"].tone_of(planned) is Tone.BAD
    assert columns["successor"].cell(planned).startswith("broker ")
    native = planned._replace(native=True)
    then = [columns[name].cell(native) for name in ("successor", "successorLoss")]
    assert then == ["nobody, or broker 1", "nothing, or 300 or more, NEWER"], (
        "as the sentence above the table says"
    )
    waits = PlannedRow(examples.plan().not_elected[0])
    assert columns["successorLoss"].tone_of(waits) is Tone.DIM


async def test_partitions_that_nobody_is_elected_for_are_shown_with_the_reason() -> None:
    view = Draft(examples.plan())
    assert "not elected: refused" in await shown(view, "secrets-0")


async def test_progress_and_outcomes_are_told() -> None:
    batch = BatchProgress("electing batch 2 of 3", 1_200, 3_000)
    assert "1,200 of 3,000  electing batch 2 of 3" in await shown(Draft(examples.plan()), "", batch=batch)
    outcomes = {PAYMENTS: RowOutcome(True, "elected"), ORDERS: RowOutcome(False, "failed", "not controller")}
    screen = await shown(Draft(examples.plan(), outcomes=outcomes), "")
    assert "came to: 1 elected, 1 failed" in screen


async def test_a_long_path_does_not_push_the_progress_out_of_sight() -> None:
    batch = BatchProgress("electing", 1_200, 3_000)
    path = Path("/home/operator/" + "a-directory-with-a-long-name/" * 6 + "recovery.json")
    screen = await shown(Draft(examples.plan(), path), "", (80, 16), batch)
    assert "1,200 of 3,000  electing" in screen and "█" in screen
    assert "recovery.json" in screen
    assert "a-directory" not in screen


async def test_what_each_replica_is_to_the_plan_is_never_cut() -> None:
    app = Harness(PlanPane())
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(CandidatePicker(row(PAYMENTS), Ranking.LAST_RECORD, "in the plan"))
        await pilot.pause()
        screen = text_of(app)
        assert "in plan, rank 1" in screen and "successor" in screen


async def test_the_smallest_screen_still_says_who_ranks_best_and_who_cannot_be_elected() -> None:
    app = Harness(PlanPane())
    async with app.run_test(size=(40, 10)) as pilot:
        app.push_screen(CandidatePicker(row(PAYMENTS), Ranking.LAST_RECORD))
        await pilot.pause()
        screen = text_of(app)
        assert "rank 1" in screen and "CANNOT BE ELECTED" in screen
        assert "loses 500 or more" in screen


async def test_the_exact_requests_are_shown() -> None:
    pane = PlanPane()
    async with Harness(pane).run_test(size=(120, 50)) as pilot:
        pane.update(Draft(examples.plan()))
        pane.show_requests(True)
        await pilot.pause()
        screen = text_of(pilot.app)
        assert "REQUESTS THAT WILL BE SENT" in screen
        assert "ElectLeaders: elect the first live replica, 5 partitions" in screen
        assert '"electionType": "unclean"' in screen


def test_every_replica_is_offered_with_its_loss_or_with_why_it_cannot_be_elected() -> None:
    offered = {choice.broker: choice for choice in choices(row(PAYMENTS), Ranking.LAST_RECORD, "")}
    assert list(offered) == [2, 1, 3]
    assert offered[2].roles == ("rank 1",) and not offered[2].why_not
    assert "epoch 0, older than 2's (2)" in offered[1].why_not
    assert "300 NEWER" in offered[1].harm
    assert "did not answer" in offered[3].problem


async def test_nobody_is_called_chosen_before_an_operator_chose() -> None:
    """Who reads "chosen" at night leaves the dialog, and nothing is in the plan."""
    app = Harness(PlanPane())
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(CandidatePicker(row(PAYMENTS), Ranking.LAST_RECORD))
        await pilot.pause()
        assert "rank 1" in line_of(pilot, "1,300")
        assert "chosen" not in text_of(app)
    assert "in the plan, rank 1  epoch 2" in await shown(Draft(examples.plan()), "", size=(120, 40))
    by_hand = with_leader(examples.plan(), PAYMENTS, 1)
    screen = await shown(Draft(by_hand, edited=frozenset({PAYMENTS})), "", size=(120, 40))
    assert "1  chosen  epoch 0" in screen
    assert "2  rank 1" in screen


async def test_the_leader_dialog_shows_what_each_choice_loses_of_the_acknowledged_records() -> None:
    told = examples.stale_long_tail()
    verdicts = partition_verdicts(PartitionFacts(told, compacted=False))
    decision = decide(told, Ranking.LAST_RECORD, Strategy.AGGRESSIVE, verdicts)
    app = Harness(PlanPane())
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(CandidatePicker(plan_row(told, decision, Ranking.LAST_RECORD), Ranking.LAST_RECORD))
        await pilot.pause()
        screen = text_of(app)
        assert "LOSES ACKED" in screen
        assert "300, NEWER  300+ committed" in screen.replace(" or more, NEWER", ", NEWER")
        await pilot.press("down")
        await pilot.pause()
        assert "loses 300 or more offsets that a high watermark proves committed" in " ".join(
            text_of(app).replace("│", " ").split()
        )


def test_a_fenced_replica_says_so_and_that_it_is_better() -> None:
    audit = next(r for r in examples.plan().rows if r.tp.topic.startswith("audit"))
    fenced = next(choice for choice in choices(audit, Ranking.LAST_RECORD, "") if choice.broker == 3)
    assert fenced.problem.startswith("fenced")
    assert "is better, but it cannot be elected" in fenced.why_not


async def test_another_leader_is_chosen_and_one_that_cannot_lead_is_not() -> None:
    app = Harness(PlanPane())
    chosen: list[int | None] = []
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(CandidatePicker(row(PAYMENTS), Ranking.LAST_RECORD), chosen.append)
        await pilot.pause()
        await pilot.press("end", "enter")
        await pilot.pause()
        assert chosen == []
        assert "not chosen: 3 cannot be elected" in text_of(app)
        await pilot.press("up", "enter")
        await pilot.pause()
        assert chosen == [1]


async def test_enter_on_a_row_wants_to_edit_it() -> None:
    pane = PlanPane()
    wanted: list[TopicPartition] = []

    class Editing(Harness):
        def on_plan_pane_edit_requested(self, message: PlanPane.EditRequested) -> None:
            wanted.append(message.tp)

    async with Editing(pane).run_test(size=(80, 24)) as pilot:
        pane.update(Draft(examples.plan()))
        pane.focus_first()
        await pilot.press("down", "enter", "end", "enter")
        await pilot.pause()
        assert wanted == [ORDERS], "nobody is elected for the last row"
