"""What the confirmation warns of: successors that lose more, and lost acknowledged records."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from textual.widgets import Input

from console.app.base.confirmed_change import freeze
from console.change.loss_consent import LOST, RISK, SAVED, loss_question, outline
from console.jobs.elect.applier import request, rescue_options
from console.jobs.elect.planner import chosen_text
from console.jobs.elect.review_report import markdown
from console.output.screen import Screen
from console.reading.plan_comparison import checked_just_now
from recovery.acknowledged.verdict import Condition, ConditionKind, Verdict, VerdictKind
from recovery.model import Standing, Unknown, Why
from recovery.plan.values import Plan
from recovery.unread_brokers import failed_disks, without_disks
from recovery.wording.unread_disk_text import unread_broker_lines
from tests.unit.plan.plans import equal_logs, plan_of, stale_long_tail
from tests.unit.recovery.surveys import log, survey
from tests.unit.widgets.harness import Harness, text_of
from widgets.dialogs.confirmation import Confirmation, ConfirmOption, ConfirmPart, ConfirmRequest
from widgets.text import Tone
from widgets.text_lines import Lines


def asked_of(plan: Plan, verdict: Verdict | None = None) -> ConfirmRequest:
    """The question of the plan; with ``verdict``, where that is what is known of each candidate."""
    if verdict is not None:
        rows = tuple(
            row._replace(candidates=tuple(one._replace(verdict=verdict) for one in row.candidates))
            for row in plan.rows
        )
        plan = replace(plan, rows=rows)
    return request(freeze(plan, "cluster-1", "kafka:9092", simulated=False), checked_just_now(plan))


def test_a_successor_that_would_lose_more_is_told_in_numbers() -> None:
    told = asked_of(plan_of(survey({1: log((0, 0, 1000)), 2: log((0, 0, 300))}), equal_logs())).warnings
    assert any("1 of 2" in line and "700 instead of nothing" in line for line in told)
    assert any("t-0" in line and "broker 2" in line and "lose 700" in line for line in told)


def test_nothing_is_said_where_no_successor_loses_more() -> None:
    assert asked_of(plan_of(equal_logs())).warnings == ()


@pytest.mark.parametrize("partitions", [1, 300])
def test_screen_terminal_and_page_say_the_same_of_loss_and_risk(partitions: int) -> None:
    """One description: who reads the page and who confirms have read the same sentences, none of them long."""
    plan = plan_of(*(stale_long_tail(partition=number) for number in range(partitions)))
    screen = request(freeze(plan, "cluster-1", "kafka:9092", simulated=False), checked_just_now(plan))
    prepared = replace(checked_just_now(plan), native=False)
    question = loss_question(prepared, "kafka:9092")
    page = markdown(plan, "plan.json", "ktriage apply plan.json", native=False).replace("\\", "")
    asked = [*question.warnings, screen.title]
    assert question.warnings[0] + "?" == screen.title and question.warnings[0] in page
    named = {f"orders-{number}:" for number in range(partitions)}
    for sentence in screen.warnings:
        assert len(sentence) <= 120, sentence
        assert any(line.endswith(sentence) for line in asked), f"the terminal does not say: {sentence}"
        by_row = partitions > 1 and (sentence.split(" ")[0] in named or sentence.startswith("…"))
        assert sentence in page or by_row, f"the page does not say: {sentence}"


def test_the_terminal_folds_the_question_between_words_and_says_what_is_saved_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KTRIAGE_WIDTH", "60")
    prepared = replace(
        checked_just_now(plan_of(stale_long_tail())), native=False, notes=("500 offsets are read first.",)
    )
    err = io.StringIO()
    Screen(lambda: 0.0, io.StringIO(), err).say(*loss_question(prepared, "kafka:9092").warnings)
    lines = err.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    labels = [line.split(":")[0] for line in lines if line.startswith("  ") and line[2] != " "]
    assert list(dict.fromkeys(one for one in labels if one.strip() in (LOST, RISK, SAVED))) == [
        "  Lost",
        "  Risk",
        "  Saved",
    ]


NONE_LOST = Verdict(VerdictKind.NONE)
IN_DOUBT = Verdict(VerdictKind.NONE, conditions=(Condition(ConditionKind.RECORDS_KEPT, (1,), doubtful=True),))
UNCHECKED = Verdict(VerdictKind.NONE, conditions=(Condition(ConditionKind.MIN_ISR_NEVER_LOWER),))
SOME_LOST = Verdict(VerdictKind.SOME, at_least=300)


@pytest.mark.parametrize(
    ("verdict", "warned", "line"),
    [
        (NONE_LOST, False, "No record acknowledged with acks=all: that is proved."),
        (UNCHECKED, True, "Acknowledged records: none as far as is known, not fully checked."),
        (IN_DOUBT, True, "Acknowledged records: none if the host of broker 1 kept power."),
        (SOME_LOST, True, "300 or more committed offsets."),
    ],
)
def test_that_no_acknowledged_record_is_lost_is_no_warning(verdict: Verdict, warned: bool, line: str) -> None:
    asked = asked_of(plan_of(equal_logs()), verdict)
    assert [
        line in part.lines for part in asked.parts if part.label == LOST and part.reassures is not warned
    ] == [True]
    assert (line in asked.warnings) is warned


@pytest.mark.parametrize(
    ("verdict", "what"), [(NONE_LOST, "records that were never acknowledged"), (IN_DOUBT, "records")]
)
def test_records_that_were_never_acknowledged_are_named_as_such(verdict: Verdict, what: str) -> None:
    asked = asked_of(plan_of(stale_long_tail(), stale_long_tail(partition=1)), verdict)
    assert any(f"2 of 2 may lose {what}. Offsets cut off" in line for line in asked.warnings)


@pytest.mark.parametrize(
    ("verdict", "what", "cut_off"),
    [
        (
            NONE_LOST,
            "the name of the topic that may lose unacknowledged records",
            "Unacknowledged offsets cut off: ",
        ),
        (IN_DOUBT, "the name of the topic that may lose something", "Offsets cut off: "),
    ],
)
def test_what_is_typed_agrees_with_what_is_proved(verdict: Verdict, what: str, cut_off: str) -> None:
    asked = asked_of(plan_of(stale_long_tail()), verdict)
    assert asked.expected_what == f"{what} (orders)"
    assert any(line.startswith(cut_off) for line in asked.warnings)


def test_the_status_line_counts_each_value_of_the_verdicts_after_a_choice() -> None:
    verdicts = (NONE_LOST, UNCHECKED, IN_DOUBT)
    plan = plan_of(*(equal_logs(partition=number) for number in range(3)))
    rows = tuple(
        row._replace(candidates=tuple(one._replace(verdict=verdict) for one in row.candidates))
        for row, verdict in zip(plan.rows, verdicts, strict=True)
    )
    text, tone = chosen_text(replace(plan, rows=rows))
    assert text == (
        "in the plan: 3 partitions; acknowledged records lost: none if the host of broker 1 kept power: 1"
        " partition; none as far as is known, not fully checked: 1 partition; none: 1 partition. 6 opens the plan"
    )
    assert tone is Tone.WARN
    proved = tuple(row._replace(candidates=rows[0].candidates) for row in rows)
    assert chosen_text(replace(plan, rows=proved))[1] is Tone.GOOD


RESCUE = (
    ConfirmOption("rescue first", "Read first: 500 offsets. Into …/rescues/20260101T000000Z-00000000"),
    ConfirmOption("no rescue", "NO rescue: what is cut off is gone for good."),
)


@pytest.mark.parametrize("partitions", [1, 13, 300])
@pytest.mark.parametrize("size", [(80, 14), (80, 24), (120, 40), (200, 50)])
async def test_every_warning_is_read_before_anything_can_be_confirmed(
    size: tuple[int, int], partitions: int
) -> None:
    """Title and buttons stay where they are, however long the warnings and low the terminal."""
    asked = asked_of(plan_of(*(stale_long_tail(partition=number) for number in range(partitions))), SOME_LOST)
    app = Harness(Lines())
    async with app.run_test(size=size) as pilot:
        app.push_screen(Confirmation(replace(asked, options=RESCUE)))
        await pilot.pause()
        confirmation = app.screen
        assert isinstance(confirmation, Confirmation)
        confirmation.query_one("#expected", Input).value = asked.expected or ""
        confirmation.query_one("#reason", Input).value = "drill"
        await pilot.pause()
        pages = [text_of(app)]
        assert "Lost   ! " in pages[0], "a warning comes first"
        while confirmation.missing:
            assert confirmation.query_one("#confirm").disabled
            assert "not yet: read the warnings to their end (PgDn)" in pages[-1]
            await pilot.press("pagedown")
            await pilot.pause()
            pages.append(text_of(app))
            assert len(pages) < 20, "no key shows more"
        assert not confirmation.query_one("#confirm").disabled
        read = words("\n".join(pages))
        assert not [warning for warning in asked.warnings if not words(warning) <= read]
        for page in pages:
            for word in (asked.title, "[ Apply ]", "[ Cancel ]", "Read first"):
                assert word in page, f"{word} is off the screen\n{page}"
        for _ in range(20):
            await pilot.press("pagedown")
        last = asked.target[-1].split(" ")[-1]
        assert last in text_of(app), f"what is sent and where cannot be reached by keys\n{text_of(app)}"


def words(text: str) -> set[str]:
    return set(text.replace("┃", " ").split()) - {"…"}


def test_the_losses_are_counted_and_the_three_partitions_that_may_lose_most_are_named() -> None:
    surveys = [equal_logs(partition=number) for number in range(10)]
    surveys += [stale_long_tail(partition=number) for number in range(4)]
    asked = asked_of(plan_of(*surveys))
    assert asked.title == "Elect the planned leaders of 14 partitions?"
    assert asked.target[0].startswith("LIVE kafka:9092, cluster cluster-1")
    assert asked.target[1].startswith(
        "sends AlterPartitionReassignments (put the chosen leader first), then ElectLeaders"
    )
    (lost,) = (part.lines for part in asked.parts if part.label == LOST)
    assert lost[0].startswith("4 of 14 may lose records. Offsets cut off: 2,000 or more")
    assert [line.split(":")[0] for line in lost[1:5]] == [
        "orders-0",
        "orders-1",
        "orders-2",
        "… and 1 more partition",
    ]


async def test_a_page_that_was_skipped_was_not_read() -> None:
    asked = ConfirmRequest(
        "Apply?", ("LIVE",), "Apply", "X", (ConfirmPart("Risk", tuple(f"warning {n}" for n in range(40))),)
    )
    app = Harness(Lines())
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(Confirmation(asked))
        await pilot.pause()
        confirmation = app.screen
        assert isinstance(confirmation, Confirmation)
        confirmation.query_one("#question").scroll_end(animate=False)
        await pilot.pause()
        assert "warning 39" in text_of(app)
        assert confirmation.query_one("#confirm").disabled
        await pilot.press("pageup", "pageup", "pageup", "pagedown", "pagedown", "pagedown")
        await pilot.pause()
        assert not confirmation.query_one("#confirm").disabled


@pytest.mark.parametrize(
    ("standing", "sentence", "kept"),
    [
        (
            Standing.OFFLINE_REPLICA,
            "The disk of broker 2 failed and may hold more of t-0: read it before",
            False,
        ),
        (
            Standing.FENCED,
            "Broker 2 is down and may hold more of t-0: after the election, read its disk before it starts.",
            True,
        ),
    ],
)
def test_a_failed_disk_of_a_broker_that_is_up_is_named_and_no_log_is_promised_to_be_kept(
    standing: Standing, sentence: str, kept: bool
) -> None:
    unreadable = Unknown(Why.FAILED, "KAFKA_STORAGE_ERROR")
    plan = plan_of(survey({1: log((0, 0, 300)), 2: unreadable}, standings={2: standing}))
    unread = {row.tp: (2,) for row in plan.rows}
    prepared = replace(checked_just_now(plan), unread=unread)
    for warnings in (outline(plan, native=None).risks, loss_question(prepared, "kafka:9092").warnings):
        risks = [line for line in warnings if "may hold more" in line]
        assert len(risks) == 1 and sentence in risks[0], warnings
    (told,) = unread_broker_lines(plan.rows, unread)
    assert told.startswith(
        "before broker 2 is started" if kept else "before the failed disk of broker 2 is replaced"
    )
    offered = rescue_options(None, without_disks(unread, failed_disks(plan.rows, unread)))
    assert any(one.keep for one in offered) is kept
