"""What a reviewer gets to see: counts, the worst, the very requests, and a page for the incident channel."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings

from console.jobs.elect.candidate_report import CANDIDATE, candidate_rows
from console.jobs.elect.plan_table import PLANNED, PlannedRow, plan_lines
from console.jobs.elect.review_report import markdown
from recovery.acknowledged.verdict import Condition, ConditionKind, Verdict, VerdictKind
from recovery.loss import Loss
from recovery.model import EpochSpan, Standing, TopicPartition
from recovery.plan.edit import with_leader
from recovery.plan.election_requests import PlannedRequest, requests
from recovery.plan.make import make_plan
from recovery.plan.plan_review import acknowledged_loss, offline_for, summarise, worst
from recovery.plan.read import from_json
from recovery.plan.topic_marks import Mark
from recovery.plan.values import NotElected, Plan, PlanRow
from recovery.plan.write import digest, to_json
from recovery.strategy import DecisionKind
from recovery.wording.loss_text import loss_text, lost_ranges
from recovery.wording.verdict_text import short_verdict
from tests.unit.plan.plans import (
    HEADER,
    LONG_TAIL,
    RIGHT,
    decided,
    equal_logs,
    named,
    nobody,
    plan_of,
    plans,
    stale_long_tail,
    story,
)
from tests.unit.recovery.surveys import SILENT, log, survey

LOST_TAIL = "500 or more, no upper limit known (divergent tail of epoch 0)"


def many(count: int) -> Plan:
    """``count`` rows that lose 1, 2, 3 … offsets."""
    told = [
        named(survey({1: log((0, 0, 100 + n)), 2: log((0, 0, 100), (1, 100, 101))}), "many", n)
        for n in range(1, count + 1)
    ]
    return plan_of(*told)


def test_the_number_to_be_typed_is_every_row_that_is_not_certain_to_lose_nothing() -> None:
    plan = plan_of(stale_long_tail(), equal_logs(), nobody(), *(equal_logs("audit", n) for n in (1, 2)))
    summary = summarise(plan)
    assert (summary.elect, summary.lossless, summary.may_lose, summary.unknown) == (4, 3, 1, 1)
    assert (summary.at_least, summary.at_most, summary.loss) == (
        500,
        None,
        "500 or more, no upper limit known",
    )
    assert (summary.topics, summary.disagree) == (2, 1)
    assert summary.not_elected == {DecisionKind.NO_CANDIDATE: 1}


def test_an_edit_that_passes_a_better_log_over_is_counted_and_one_to_an_equal_log_is_not() -> None:
    plan = plan_of(stale_long_tail(), equal_logs())
    assert summarise(plan).not_best == 0
    for row in plan.rows:
        for candidate in row.candidates:
            edited = (
                with_leader(plan, row.tp, candidate.broker)
                if candidate.standing.value == "electable"
                else plan
            )
            better = row.chosen.loss != candidate.loss and edited is not plan
            assert summarise(edited).not_best == better, (row.tp, candidate.broker)


def test_losses_add_up_where_all_bounds_are_known() -> None:
    summary = summarise(many(4))
    assert (summary.at_least, summary.at_most, summary.loss) == (10, 10, "10")


@settings(max_examples=40)
@given(plans())
def test_every_row_is_counted_once(plan: Plan) -> None:
    summary = summarise(plan)
    assert summary.lossless + summary.may_lose == summary.elect == len(plan.rows)
    assert summary.unknown <= summary.may_lose
    assert sum(summary.not_elected.values()) == len(plan.not_elected)
    assert (summary.at_most is None) == any(row.loss.at_most is None for row in plan.rows)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (Loss(0, 0, (), (), ()), "nothing"),
        (Loss(0, None, (), (), (4,)), "unknown"),
        (Loss(500, None, (), (), (4,)), "500 or more, no upper limit known"),
        (Loss(1_500, 1_500, (), (), ()), "1,500"),
        (Loss(0, 200, (), (), ()), "0 to 200"),
        (Loss(10, 200, (), (), ()), "10 to 200"),
    ],
)
def test_a_loss_is_a_range_and_unknown_is_never_nothing(loss: Loss, said: str) -> None:
    assert loss_text(loss) == said


def test_lost_offsets_are_named_with_their_epochs_and_times() -> None:
    loss = Loss(
        30, None, (EpochSpan(0, 1000, 1020),), (EpochSpan(-1, 0, 10),), (4,), 1_700_000_000_000, 1_700_000_001_000
    )  # fmt: skip
    assert lost_ranges(loss) == (
        "1000-1019 of epoch 0; head 0-9; unknown on 4; from 2023-11-14T22:13:20Z to 2023-11-14T22:13:21Z"
    )


def test_a_single_lost_record_is_one_offset_and_one_moment() -> None:
    single = Loss(
        2, 2, (EpochSpan(1, 150, 151),), (EpochSpan(0, 7, 8),), (), 1_700_000_000_000, 1_700_000_000_000
    )
    assert lost_ranges(single) == "150 of epoch 1; head 7 of epoch 0; at 2023-11-14T22:13:20Z"


def offline_line(plan: Plan) -> str:
    """As the page for the incident channel has it; the command line has the same."""
    text = offline_for(plan)
    page = markdown(plan, "plan.json", "n").replace("\\", "")
    assert f"- {text[0].upper()}{text[1:]}" in page.splitlines()
    assert text in plan_lines(plan, 0)
    return text


def test_for_how_long_partitions_were_offline_is_said_of_the_moment_of_the_plan() -> None:
    """It may be reviewed an hour later, when it says nothing of how long they are offline by then."""
    made = round(HEADER.made_at.timestamp() * 1000)
    first, second = equal_logs("a"), equal_logs("b")
    choices = [decided(first), decided(second)]
    whole = {first.tp: made - 22_000, second.tp: made - 5_000}
    said = "offline for 22 s at the most when the plan was made (a-0)"
    assert offline_line(make_plan(HEADER, choices, offline_since=whole)) == said
    partly = make_plan(HEADER, choices, offline_since={first.tp: made - 22_000})
    assert offline_line(partly) == f"{said}; of 1 it is not known"
    begun = make_plan(HEADER, choices, offline_since=whole, offline_already={second.tp: made - 600_000})
    assert offline_line(begun) == (
        "offline for at least 10 min when the plan was made (b-0): the metadata log begins later"
    )
    assert from_json(to_json(begun)) == begun
    ahead = make_plan(HEADER, choices, offline_since={first.tp: made + 30_000})
    assert "not known" in offline_line(ahead), "by the clock of a controller that is ahead"
    assert offline_for(make_plan(HEADER, choices)) == ""


def test_the_worst_come_first_what_is_certain_before_what_is_doubtful() -> None:
    rows = {
        "nothing": Loss(0, 0, (), (), ()),
        "maybe": Loss(0, 9_999, (), (), ()),
        "unknown": Loss(0, None, (), (), (4,)),
        "some": Loss(5, 5, (), (), ()),
        "most": Loss(500, 500, (), (), ()),
        "more": Loss(500, None, (), (), (4,)),
    }
    row = story().rows[0]
    plan = Plan(HEADER, tuple(_losing(row, topic, loss) for topic, loss in rows.items()))
    assert [row.tp.topic for row in worst(plan, 10)] == ["more", "most", "some", "unknown", "maybe"]
    assert [row.tp.topic for row in worst(plan, 2)] == ["more", "most"]


def cells(row: PlanRow) -> dict[str, str]:
    """What text shows of the row, by the headings."""
    return {field.title: field.cell(PlannedRow(row)) for field in PLANNED}


def test_review_says_of_each_candidate_what_it_loses_of_the_acknowledged_records() -> None:
    """As the dialog does in which a leader is chosen."""
    row = story().rows[0]
    proved = Verdict(VerdictKind.NONE)
    judged = tuple(c._replace(verdict=proved if c.broker == row.leader else None) for c in row.candidates)
    shown = [
        {field.title: field.cell(one) for field in CANDIDATE if field.printed}
        for one in candidate_rows([row._replace(candidates=judged)])
    ]
    told = {one["BROKER"]: one["LOSES ACKED"] for one in shown}
    assert told.pop(str(row.leader)) == short_verdict(proved)
    assert set(told.values()) == {""}, "nobody judged the others"
    assert shown[0]["ROLE"] == "chosen" and shown[-1]["ROLE"] == "did not answer"


def _losing(row: PlanRow, topic: str, loss: Loss) -> PlanRow:
    candidates = tuple(c._replace(loss=loss) if c.broker == row.leader else c for c in row.candidates)
    return row._replace(tp=TopicPartition(topic, 0), candidates=candidates)


def test_a_row_says_who_would_lead_if_the_chosen_one_dropped_out_and_what_that_loses() -> None:
    row = cells(plan_of(stale_long_tail()).rows[0])
    assert (row["LEADER"], row["LAST EPOCH"], row["LOG END"]) == ("2", "2", "1,300")
    assert (row["OFFSETS LOST"], row["WHICH"]) == (LOST_TAIL, "1000-1499 of epoch 0; unknown on 4")
    assert (row["IF IT DROPS OUT"], row["THEN LOST"]) == ("broker 3", LOST_TAIL)
    assert "the other ranking would choose 1, and lose 300 or more" in row["NOTE"]
    assert "(300 NEWER than anything it has)" in row["NOTE"]
    assert "no answer from 4" in row["NOTE"]


def test_nobody_would_lead_where_no_other_can_be_elected() -> None:
    told = survey({1: RIGHT, 2: LONG_TAIL}, standings={2: Standing.FENCED})
    row = cells(plan_of(told).rows[0])
    shown = (row["LEADER"], row["IF IT DROPS OUT"], row["THEN LOST"])
    assert shown == ("1", "nobody (stays offline)", "nothing more")


def test_a_broker_that_only_we_cannot_reach_would_lead_too_and_what_that_loses_is_unknown() -> None:
    told = survey({1: RIGHT, 2: SILENT, 3: SILENT}, standings={3: Standing.ELECTABLE})
    plan = plan_of(told)
    row = cells(plan.rows[0])
    shown = (row["LEADER"], row["IF IT DROPS OUT"], row["THEN LOST"])
    assert shown == ("1", "broker 3", "an unknown number")
    assert [r.name for r in requests(plan, native=False)] == ["ElectLeaders"]
    first = plan_of(survey({3: SILENT, 1: RIGHT}, standings={3: Standing.ELECTABLE}))
    assert [r.name for r in requests(first, native=False)] == [
        "AlterPartitionReassignments",
        "ElectLeaders",
        "AlterPartitionReassignments",
    ]


def test_an_edited_leader_shows_its_own_loss() -> None:
    edited = with_leader(story(), TopicPartition("orders", 0), 1)
    row = cells(edited.rows[0])
    newer = "300 or more, no upper limit known (300 NEWER than anything it has)"
    assert (row["LEADER"], row["OFFSETS LOST"]) == ("1", newer)
    assert (row["IF IT DROPS OUT"], row["THEN LOST"]) == ("broker 2", LOST_TAIL)


# The requests.


def test_on_todays_clusters_a_batch_is_reordered_elected_and_put_back() -> None:
    reorder, elect, revert = requests(story(), native=False)
    assert [r.name for r in (reorder, elect, revert)] == [
        "AlterPartitionReassignments",
        "ElectLeaders",
        "AlterPartitionReassignments",
    ]
    assert reorder.body["topics"] == [
        {"name": "orders", "partitions": [{"partitionIndex": 0, "replicas": [2, 3, 1, 4]}]}
    ]
    assert revert.body["topics"] == [
        {"name": "orders", "partitions": [{"partitionIndex": 0, "replicas": [1, 2, 3, 4]}]}
    ]
    assert reorder.body["allowReplicationFactorChange"] is False
    assert elect.body["electionType"] == "unclean"
    assert elect.body["topicPartitions"] == [
        {"topic": "audit", "partitions": [0]},
        {"topic": "orders", "partitions": [0]},
    ]


def test_a_chosen_one_that_is_first_already_needs_no_reordering() -> None:
    (elect,) = requests(plan_of(equal_logs()), native=False)
    assert elect.name == "ElectLeaders"


def test_the_chosen_one_is_put_before_a_fenced_replica_that_may_be_back_by_then() -> None:
    told = survey({1: LONG_TAIL, 2: RIGHT, 3: RIGHT}, standings={1: Standing.FENCED})
    plan = plan_of(told)
    assert plan.rows[0].order == (2, 3, 1)
    reorder, elect, revert = requests(plan, native=False)
    assert [r.name for r in (reorder, elect, revert)] == [
        "AlterPartitionReassignments",
        "ElectLeaders",
        "AlterPartitionReassignments",
    ]


def test_a_cluster_that_elects_designated_leaders_gets_one_request_a_batch() -> None:
    (elect,) = requests(story(), native=True)
    assert elect.body == {
        "electionType": "designated",
        "topicPartitions": [
            {"topic": "audit", "partitions": [0], "designatedLeaders": [1]},
            {"topic": "orders", "partitions": [0], "designatedLeaders": [2]},
        ],
    }


def test_the_requests_are_those_of_the_parts_in_which_a_plan_is_sent_and_none_is_left_out() -> None:
    plan = many(1_345)
    sent = list(requests(plan, native=False))
    assert [r.partitions for r in sent] == [500] * 6 + [345] * 3
    assert [r.name for r in sent] == [r.name for r in sent[:3]] * 3
    elected = Counter[tuple[str, int]]()
    for request in sent[1::3]:
        elected.update(_partitions(request))
    assert elected == Counter({(row.tp.topic, row.tp.partition): 1 for row in plan.rows})


def _partitions(request: PlannedRequest) -> list[tuple[str, int]]:
    topics = json.loads(json.dumps(request.body))["topicPartitions"]
    return [(topic["topic"], number) for topic in topics for number in topic["partitions"]]


def test_a_request_is_shown_with_its_body() -> None:
    (elect,) = requests(plan_of(equal_logs()), native=False)
    title, body = elect.text().split("\n")
    assert title == "ElectLeaders: elect the first live replica, 1 partition"
    assert json.loads(body) == elect.body


# The page for the incident channel.


def test_the_page_has_cluster_counts_loss_digest_and_the_next_command() -> None:
    plan = story()
    page = markdown(plan, "plan.json", "ktriage apply plan.json")
    for said in (
        "cluster-1",
        "2 partitions of 2 topics",
        "may lose something: 1",
        "Offsets cut off: 500 or more.",
        "Nobody is elected for 1: no candidate 1",
        digest(plan),
        "`ktriage apply plan.json`",
        f"| orders-0 | 2 | not judged | {LOST_TAIL} | 1000-1499 of epoch 0; unknown on 4",
    ):
        assert said in page
    assert "ffline for" not in page, "without the metadata log that is not known"


@pytest.mark.parametrize("count", [0, 1, 10, 11, 300])
def test_the_page_is_at_most_forty_lines_however_much_is_lost(count: int) -> None:
    plan = many(count) if count else plan_of(nobody())
    verdicts = enumerate(DecisionKind)
    everything = replace(
        plan,
        not_elected=tuple(NotElected(TopicPartition("n", n), v, (), "why", -1, 1) for n, v in verdicts),
        steps=tuple(f"Then: step {n}" for n in range(1, 9)),
    )
    page = markdown(everything, "plan.json", "ktriage apply plan.json")
    assert len(page.splitlines()) <= 40
    assert page.count("| many-") == min(count, 10)
    assert "1. Then: step 1" in page and "4. Then: step 4" in page
    assert "- Offline for" in page
    if count > 10:
        assert f"The worst 10 of {count} that may lose something:" in page
        assert page.index(f"| many-{count} |") < page.index(f"| many-{count - 1} |")


@settings(max_examples=40)
@given(plans())
def test_no_name_or_reason_breaks_the_page(plan: Plan) -> None:
    page = markdown(plan, "a`b\n.json", "ktriage apply 'x y'")
    lines = page.splitlines()
    assert len(lines) <= 40
    steps = (f"{number}. " for number in range(1, 5))
    starts = ("## ", "- ", "  - ", "|", *steps, "Plan `", "Next: `", "The worst ", "Those that ")
    assert all(not line or line.startswith(starts) for line in lines)
    assert "`a'b .json`" in page


def test_marks_stand_beside_the_row_that_loses() -> None:
    plan = make_plan(HEADER, [decided(stale_long_tail())], {"orders": (Mark.COMPACTED,)})
    assert "| compacted |" in markdown(plan, "p", "n")
    assert cells(plan.rows[0])["TOPIC"] == "compacted"


def judged_row(leader_verdict: Verdict | None, partition: int) -> PlanRow:
    """A row whose designated leader has that verdict."""
    row = plan_of(equal_logs(partition=partition)).rows[0]
    told = tuple(
        candidate._replace(verdict=leader_verdict) if candidate.broker == row.leader else candidate
        for candidate in row.candidates
    )
    return row._replace(candidates=told)


def test_a_plan_says_first_what_it_loses_of_the_acknowledged_records() -> None:
    doubt = (Condition(ConditionKind.RECORDS_KEPT, (1,), doubtful=True),)
    verdicts = (
        Verdict(VerdictKind.NONE, at_most=0),
        Verdict(VerdictKind.NONE, at_most=0, conditions=doubt),
        Verdict(VerdictKind.NONE, at_most=0, conditions=(Condition(ConditionKind.SAME_REPLICAS),)),
        Verdict(VerdictKind.SOME, 500),
        Verdict(VerdictKind.OPEN),
        None,
    )
    plan = Plan(HEADER, tuple(judged_row(verdict, number) for number, verdict in enumerate(verdicts)), ())
    said = (
        "500 or more committed: 1 partition; not known: 1 partition; none if the host of broker 1 kept power: 1"
        " partition; none as far as is known, not fully checked: 1 partition; none: 1 partition"
    )
    assert str(summarise(plan).acknowledged) == said
    assert (
        f"- **Lost**: Acknowledged records: {said}."
        in markdown(plan, "plan.json", "ktriage apply plan.json").splitlines()
    )
    assert not str(summarise(plan_of(equal_logs())).acknowledged), "nobody judged"
    # A host's power alone is not enough where something else was not checked, or also has signs against it.
    others = (
        Condition(ConditionKind.SAME_REPLICAS),
        Condition(ConditionKind.NO_COMPACTION_HOLES, doubtful=True),
    )
    for other, words in zip(
        others,
        (
            "none as far as is known, if the host of broker 1 kept power",
            "perhaps none, but there are signs against that",
        ),
        strict=True,
    ):
        verdict = Verdict(VerdictKind.NONE, at_most=0, conditions=(*doubt, other))
        assert str(acknowledged_loss((verdict,))) == words, "of one partition there is nothing to count"


def test_times_of_a_simulated_cluster_are_seconds_since_its_start_and_no_day_in_1970() -> None:
    simulated = Loss(5, 5, (EpochSpan(0, 10, 15),), (), (), 5_000, 7_500)
    assert lost_ranges(simulated).endswith("from T+5 s to T+7.5 s")
    real = simulated._replace(first_ms=1_700_000_000_000, last_ms=1_700_000_001_000)
    assert "2023-11-14T22:13:20Z" in lost_ranges(real)
