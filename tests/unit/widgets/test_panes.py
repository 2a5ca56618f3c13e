"""Each pane says in words what it shows, at 80 columns and without colour."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from backends.base.answers import LogDir, LogDirReplica
from console.jobs.disks.log_dirs_pane import LogDirDetail, LogDirsPane, PartitionOutcome, row_key
from console.jobs.quorum.quorum_pane import QuorumPane
from console.reading.log_dirs_report import dir_rows
from console.reading.partition_report import PartitionsView
from console.reading.partition_row import bare_row, partition_row
from console.reading.partitions_pane import PartitionsPane
from console.reading.replica_report import replica_rows
from console.reading.replicas_pane import ReplicasPane
from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import LaterLeader
from recovery.advice import Advice, AdviceKind
from recovery.controller.rules import ControllerRules
from recovery.disks.values import DiskOutcome
from recovery.model import ReplicaLog, Standing, Survey, TopicPartition, Unknown, Why
from recovery.ranking import Ranking
from recovery.strategy import Strategy
from tests.unit.widgets import examples
from tests.unit.widgets.harness import Harness, text_of
from widgets import theme
from widgets.eligible_pane import DiskWord, EligiblePane, EligibleRow, EligibleView

NOW = 1_772_334_000.0
PAYMENTS, ORDERS = TopicPartition("payments", 0), TopicPartition("orders", 7)
SIZE = (80, 24)


def rows(strategy: Strategy = Strategy.BALANCED) -> PartitionsView:
    made = [
        partition_row(
            one, Ranking.LAST_RECORD, strategy, NOW - 61, partition_verdicts(PartitionFacts(one, True))
        )
        for one in examples.SURVEYS
    ]
    return PartitionsView(
        examples.READING,
        tuple(sorted(made, key=lambda row: (not row.state.offline, row.state.tp))),
        NOW,
        "offline and under min ISR",
    )


def line_of(pilot: Pilot[None], word: str) -> str:
    return next(line for line in text_of(pilot.app).splitlines() if word in line)


def _row(pilot: Pilot[None], word: str) -> str:
    (row,) = (line for line in text_of(pilot.app).splitlines() if "OFFLINE" in line and word in line)
    return row


async def test_offline_partitions_say_whom_to_elect_and_what_that_loses() -> None:
    pane = PartitionsPane()
    async with Harness(pane, theme_name=theme.PLAIN).run_test(size=SIZE) as pilot:
        pane.update(rows(Strategy.AGGRESSIVE))
        await pilot.pause()
        assert "6 offline, 1 more under min ISR" in text_of(pilot.app)
        told = line_of(pilot, "payments-0")
        assert "OFFLINE" in told and "elect 2" in told and "500 or more, old" in told
        assert "under min ISR" in line_of(pilot, "carts-2")
        assert "refused" in line_of(pilot, "secrets-0")


async def test_what_to_do_first_stands_before_what_each_choice_loses() -> None:
    pane = PartitionsPane()
    async with Harness(pane).run_test(size=SIZE) as pilot:
        pane.update(rows())
        await pilot.pause()
        first, then = (" ".join(text_of(pilot.app).split()).index(word) for word in ("Do first", "Then ("))
        assert first < then
        assert "with its old disk" in text_of(pilot.app)
        (waiting,) = (
            one for one in text_of(pilot.app).splitlines() if "OFFLINE" in one and "orders-7" in one
        )
        assert "wait for 3" in waiting and "if 1: unknown" in waiting, "what electing at once would lose"
        pane.table.move_to(PAYMENTS)
        await pilot.pause()
        said = " ".join(text_of(pilot.app).split())
        assert "Or elect 2: not fully checked." in said


async def test_what_is_in_the_plan_is_marked_by_a_word() -> None:
    pane = PartitionsPane()
    async with Harness(pane, theme_name=theme.PLAIN).run_test(size=SIZE) as pilot:
        pane.update(rows())
        pane.update(replace(rows(), picked=frozenset({PAYMENTS})))
        await pilot.pause()
        assert "in plan" in line_of(pilot, "payments-0")
        assert "in plan" not in line_of(pilot, "orders-7")


async def test_nobody_is_asked_to_choose_what_is_chosen_already() -> None:
    pane = PartitionsPane()
    shown = rows(Strategy.AGGRESSIVE)
    choosing = frozenset(row.state.tp for row in shown.rows if row.advice is not None)
    async with Harness(pane, theme_name=theme.PLAIN).run_test(size=(120, 60)) as pilot:
        pane.update(shown)
        await pilot.pause()
        said = text_of(pilot.app)
        assert "[c]" in said and "Apply the plan" not in said
        pane.update(replace(shown, picked=choosing))
        await pilot.pause()
        said = text_of(pilot.app)
        assert "Do first: Apply the plan" in said and "[6]" in said and "[c]" not in said
        assert "! orders-7: better" in said
        assert "in the plan: 6 shows what that loses" in said
        pane.update(replace(shown, picked=frozenset({ORDERS})))
        await pilot.pause()
        said = " ".join(text_of(pilot.app).split())
        assert "Start broker 3 if its host kept power; else apply the plan: 1 partition." in said
        assert "If its host lost power" not in said
        assert "elect 1" in _row(pilot, "orders-7")
        waiting = rows()
        pane.update(replace(waiting, picked=frozenset({ORDERS})))
        await pilot.pause()
        assert "apply" in _row(pilot, "orders-7") and "wait for 3" not in _row(pilot, "orders-7")
        pane.update(replace(shown, picked=choosing, elected=choosing))
        await pilot.pause()
        said = text_of(pilot.app)
        assert "Apply the plan" not in said and "[c]" not in said
        assert f"{len(choosing)} elected" in said and "in the plan" not in said
        assert "elected" in line_of(pilot, "payments-0"), "until the next picture shows its leader"


async def test_how_long_it_lasts_is_exported_in_seconds() -> None:
    pane = PartitionsPane()
    async with Harness(pane).run_test(size=SIZE) as pilot:
        pane.update(rows())
        await pilot.pause()
        exported = json.loads("".join(pane.export("json")))
        assert {row["for"] for row in exported} == {61}


async def test_what_was_offline_when_it_was_first_looked_at_may_have_been_for_longer() -> None:
    pane = PartitionsPane()
    async with Harness(pane).run_test(size=SIZE) as pilot:
        pane.update(replace(rows(), first=NOW - 61))
        await pilot.pause()
        assert "≥1 min" in line_of(pilot, "payments-0")
        pane.update(replace(rows(), first=NOW - 90))
        await pilot.pause()
        assert " 1 min" in line_of(pilot, "payments-0")


async def test_partitions_whose_logs_were_not_asked_suggest_nothing() -> None:
    pane = PartitionsPane()
    led = examples.state("quiet", 1, leader=1, isr=(1, 2, 3), offline=())
    async with Harness(pane).run_test(size=(200, 24)) as pilot:
        pane.update(PartitionsView(examples.READING, (bare_row(led, min_isr=2),), NOW, "all partitions"))
        await pilot.pause()
        told = line_of(pilot, "quiet-1")
        assert "online" in told and "not asked" in told and "elect" not in told
        assert "quiet-1: led by 1, leader epoch 4" in text_of(pilot.app)
        pane.update(
            PartitionsView(
                examples.READING, (bare_row(led._replace(leader=-1, isr=())),), NOW, "all partitions"
            )
        )
        await pilot.pause()
        assert "OFFLINE, its logs were not asked" in text_of(pilot.app)


async def test_partitions_are_grouped_by_the_broker_that_is_missing() -> None:
    pane = PartitionsPane()
    async with Harness(pane).run_test(size=(120, 60)) as pilot:
        pane.update(rows())
        pane.table.group_by("broker")
        await pilot.pause()
        assert "▾ broker 3  7 partitions" in text_of(pilot.app)


async def test_replicas_show_the_controllers_view_beside_ours() -> None:
    pane = ReplicasPane()
    async with Harness(pane, theme_name=theme.PLAIN).run_test(size=SIZE) as pilot:
        pane.update(replica_rows(examples.READING, examples.fenced_but_better()))
        await pilot.pause()
        screen = text_of(pilot.app)
        assert "OFFLINE, no leader, leader epoch 4" in " ".join(screen.split())
        assert "fenced" in screen and "answered" in screen
        assert "WHAT EACH CHOICE CUTS OFF" in screen
        exported = json.loads("".join(pane.export("json")))
        assert [row["broker"] for row in exported] == [1, 2, 3]
        pane.update(Unknown(Why.NOT_ALLOWED, "needs DESCRIBE on topic audit"))
        await pilot.pause()
        assert "not allowed: needs DESCRIBE on topic audit" in text_of(pilot.app)


async def test_a_broker_that_still_acts_as_leader_is_named_before_anything_else() -> None:
    pane = ReplicasPane()
    told = examples.fenced_but_better()
    (first, *others) = told.replicas
    assert isinstance(first.log, ReplicaLog)
    old = first._replace(standing=Standing.FENCED, log=first.log._replace(leader_epoch=3, leads=True))
    async with Harness(pane, theme_name=theme.PLAIN).run_test(size=SIZE) as pilot:
        pane.update(replica_rows(examples.READING, told._replace(replicas=(old, *others))))
        await pilot.pause()
        screen = " ".join(text_of(pilot.app).split())
        writes = f"broker {old.broker} still acts as leader in epoch 3 and takes writes"
        assert f"{writes}, which an election cuts off" in screen
        assert "old leader" in screen and "acts as leader" in line_of(pilot, "old leader")


async def test_replicas_show_what_each_choice_loses_of_the_acknowledged_records() -> None:
    pane = ReplicasPane()
    told = examples.stale_long_tail()
    verdicts = partition_verdicts(PartitionFacts(told, compacted=False))
    reading = replace(examples.READING, verdicts={told.tp: verdicts})
    async with Harness(pane, theme_name=theme.PLAIN).run_test(size=(80, 24)) as pilot:
        pane.update(replica_rows(reading, told))
        await pilot.pause()
        exported = json.loads("".join(pane.export("json")))
        assert [row["acknowledged"] for row in exported] == ["300+ committed", "none, in doubt", ""]
        assert "LOSES ACKED" in line_of(pilot, "LAST EPOCH")
        screen = " ".join(text_of(pilot.app).split())
        assert "loses no record that was acknowledged with acks=all, if min ISR was" in screen


def eligible(survey: Survey, disk: DiskWord, *, elr: bool = True) -> EligibleRow:
    return EligibleRow(survey, ControllerRules(elr=elr), {3: disk})


async def test_the_controller_is_explained_in_plain_words() -> None:
    pane = EligiblePane()
    async with Harness(pane).run_test(size=(100, 40)) as pilot:
        pane.update(EligibleView((eligible(examples.last_replica_standing(), DiskWord.NOT_KNOWN),)))
        await pilot.pause()
        screen = " ".join(text_of(pilot.app).split())
        assert "Broker 3 back: a leader for 1 of 1 (disk not known)" in screen
        assert "The controller now: elects 3 as soon as it is unfenced" in screen
        for strategy in ("None", "Balanced", "Aggressive"):
            assert strategy in screen
        assert screen.index(
            "After a clean shutdown the return of broker 3 elects a leader without an unclean election"
        ) < screen.index("What it would do")


async def test_a_broker_that_could_come_back_empty_is_warned_of() -> None:
    pane = EligiblePane()
    async with Harness(pane).run_test(size=(100, 40)) as pilot:
        pane.update(EligibleView((eligible(examples.last_replica_standing(), DiskWord.FAILED_DIR),)))
        await pilot.pause()
        screen = " ".join(text_of(pilot.app).split())
        assert "Broker 3's disk FAILED under 1 of 1: its return does not help" in screen
        assert "back: a leader" not in screen
        assert "its log dir has FAILED" in screen
        assert "Coming back with an EMPTY disk, it is elected anyway" in screen


async def test_where_the_elr_notices_an_empty_disk_that_is_said_too() -> None:
    survey = examples.survey(
        examples.state("t", isr=(), elr=(2, 3), last_known=(2,)), {1: examples.log((5, 0, 9))}
    )
    pane = EligiblePane()
    async with Harness(pane).run_test(size=(100, 40)) as pilot:
        pane.update(EligibleView((eligible(survey, DiskWord.NOT_KNOWN),)))
        await pilot.pause()
        screen = " ".join(text_of(pilot.app).split())
        assert "brokers 2 and 3, each: does not answer" in screen
        assert "it is noticed by the controller and not elected" in screen


async def test_who_is_expected_to_lead_stands_before_who_perhaps_leads() -> None:
    """As in a plan: 2 was shut down, and 3, which was killed, led after it."""
    survey = examples.survey(
        examples.state("t", isr=(), elr=(2, 3), last_known=(3,)), {1: examples.log((5, 0, 9))}
    )
    advice = Advice(AdviceKind.BRING_BACK, (2,), was_shut_down=True, led_after=(LaterLeader(3, False),))
    pane = EligiblePane()
    async with Harness(pane).run_test(size=(100, 40)) as pilot:
        pane.update(EligibleView((eligible(survey, DiskWord.NOT_KNOWN)._replace(advice=advice),)))
        await pilot.pause()
        expected, other = (line_of(pilot, f"Broker {broker} back") for broker in (2, 3))
        assert "a leader for 1 of 1, but start 3 first" in expected
        assert "perhaps a leader for 1 of 1, after a clean shutdown" in other
        screen = text_of(pilot.app)
        assert screen.index(expected.strip()) < screen.index(other.strip())
        assert "2, perhaps 3" in screen
        assert "fenced, disk not known: perhaps leads when it returns" in screen


async def test_on_a_topic_that_elects_by_itself_an_empty_disk_is_elected_in_spite_of_the_elr() -> None:
    survey = examples.survey(
        examples.state("t", isr=(), elr=(2, 3), last_known=(2,)), {1: examples.log((5, 0, 9))}
    )
    advice = Advice(AdviceKind.BRING_BACK, (2, 3), check_disk=(2, 3))
    row = eligible(survey, DiskWord.NOT_KNOWN)._replace(advice=advice)
    pane = EligiblePane()
    async with Harness(pane).run_test(size=(100, 40)) as pilot:
        pane.update(EligibleView((row,)))
        await pilot.pause()
        screen = " ".join(text_of(pilot.app).split())
        assert "The topic elects uncleanly by itself: Kafka elects it whatever its log lost" in screen
        assert "Coming back with an EMPTY disk, it is elected anyway" in screen
        assert "not elected" not in screen


GIB = 2**30
LISTED = (
    LogDir(1, "/data/1", None, 100 * GIB, 8 * GIB, (LogDirReplica(PAYMENTS, 40 * GIB, 0, False),)),
    LogDir(1, "/data/2", "KAFKA_STORAGE_ERROR", -1, -1, ()),
)
DIRS = dir_rows(replace(examples.READING, log_dirs={1: LISTED}))


async def test_log_dirs_show_state_in_words_and_ask_for_the_prediction_once() -> None:
    pane = LogDirsPane()
    asked: list[LogDirsPane.DetailRequested] = []

    class Asking(Harness):
        def on_log_dirs_pane_detail_requested(self, message: LogDirsPane.DetailRequested) -> None:
            asked.append(message)

    async with Asking(pane, theme_name=theme.PLAIN).run_test(size=SIZE) as pilot:
        pane.update(
            dir_rows(
                replace(examples.READING, log_dirs={1: LISTED, 3: Unknown(Why.NOT_ANSWERED, "broker 3")})
            )
        )
        await pilot.pause()
        assert "nearly full" in line_of(pilot, "/data/1") and "92%" in line_of(pilot, "/data/1")
        assert "FAILED" in line_of(pilot, "/data/2") and "size unknown" in line_of(pilot, "/data/2")
        assert [(m.broker, m.path, m.failed) for m in asked] == [(1, "/data/2", True)], (
            "the failed one is first"
        )
        assert pane.table.move_to((3, ""))
        await pilot.pause()
        screen = text_of(pilot.app)
        assert "those of 1 broker unknown" in screen
        assert "the log dirs of broker 3 are unknown: not answered: broker 3" in screen
        assert [row_key(row) for row in pane.table.shown_rows] == [(1, "/data/2"), (3, ""), (1, "/data/1")]
        assert len(asked) == 1, "of dirs that nobody listed nothing can be worked out"
        pane.table.move_to((1, "/data/1"))
        await pilot.pause()
        assert not asked[-1].failed
        outcomes = (
            PartitionOutcome(ORDERS, DiskOutcome.NEW_LEADER, 1, 2),
            PartitionOutcome(PAYMENTS, DiskOutcome.LAST_COPY, 1, -1),
        )
        pane.update(DIRS, LogDirDetail(1, "/data/1", False, outcomes))
        await pilot.pause()
        screen = text_of(pilot.app)
        assert "WHAT IF broker 1 /data/1 failed?" in screen
        assert screen.index("LAST COPY LOST  leader 1") < screen.index("leader 1 → 2")
        assert len(asked) == 2


@pytest.mark.parametrize("size", [(80, 24), (200, 50), (20, 5)])
async def test_every_pane_draws_before_anything_is_known(size: tuple[int, int]) -> None:
    for pane in (PartitionsPane(), ReplicasPane(), EligiblePane(), QuorumPane(), LogDirsPane()):
        async with Harness(pane).run_test(size=size) as pilot:
            await pilot.press("down", "up", "enter", "space", "end")
            assert text_of(pilot.app)


async def test_at_80_columns_nothing_of_the_row_under_the_cursor_is_out_of_reach() -> None:
    pane = ReplicasPane()
    async with Harness(pane, theme_name=theme.PLAIN).run_test(size=(80, 60)) as pilot:
        survey = examples.stale_long_tail()
        pane.update(replica_rows(examples.READING, survey, 3.0))
        pane.table.move_to(2)
        await pilot.pause()
        screen = text_of(pilot.app)
        assert "+8" in line_of(pilot, "BROKER  IN"), "the heading says that there is more"
        assert "+8 columns of broker 2:" in screen, "and what that number counts"
        for word in (
            "zone-b",
            "ListOffsets+Fetch (emulated)",
            "/var/lib/kafka/disk1",
            "1.4 MiB",
            "log start 0",
        ):
            assert word in screen
        await pilot.resize_terminal(220, 60)
        await pilot.pause()
        await pilot.pause()
        assert "log start 0" not in text_of(pilot.app), "where there is room it stands in its column"
        assert "LOG START" in text_of(pilot.app)


async def test_the_details_of_another_row_begin_at_their_top() -> None:
    pane = EligiblePane()
    rows_of = tuple(eligible(one, DiskWord.NOT_KNOWN) for one in examples.SURVEYS)
    async with Harness(pane).run_test(size=(60, 20)) as pilot:
        pane.update(EligibleView(rows_of))
        pane.table.move_to(ORDERS)
        await pilot.pause()
        await pilot.click("#eligible-details")
        await pilot.press("end")
        await pilot.pause()
        assert "MAY LEAD  orders-7" not in text_of(pilot.app)
        pane.table.focus()
        await pilot.press("up")
        await pilot.pause()
        assert "MAY LEAD  payments-0" in text_of(pilot.app)
