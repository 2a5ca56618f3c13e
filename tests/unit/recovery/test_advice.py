"""What to do first, case by case (advice_cases.yaml)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import AutomaticElection, AutomaticElectionKind, Verdict, VerdictKind
from recovery.advice import Advice, AdviceKind, FirstStep, advice, first_steps, start_together, stop_and_read
from recovery.disk_evidence import DiskReading, DiskStartEffect, RegistrationFacts, with_disks
from recovery.model import ReplicaLog, Standing, TopicPartition, Unknown
from recovery.ranking import Ranking
from recovery.strategy import Strategy, decide
from recovery.wording.advice_text import advice_text, advised_steps, steps_lines
from tests.unit.recovery.short_sentences import too_much
from tests.unit.recovery.surveys import SILENT, log, survey

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "advice_cases.yaml").read_text(encoding="utf-8")
)["cases"]


def replica_log(case: Mapping[str, Any], broker: int) -> ReplicaLog | Unknown:
    spans = case["logs"][broker]
    if spans == "silent":
        return SILENT
    found = log(*(tuple(span) for span in spans))._replace(
        high_watermark=case.get("marks", {}).get(broker, 0)
    )
    epoch = case.get("leads", {}).get(broker)
    return found if epoch is None else found._replace(leader_epoch=epoch, leads=True)


def advised(case: Mapping[str, Any]) -> Advice | None:
    standings = {broker: Standing(name) for broker, name in case.get("standings", {}).items()}
    asked = survey(
        {broker: replica_log(case, broker) for broker in case["logs"]},
        leader=case.get("leader", -1),
        isr=tuple(case.get("isr", ())),
        elr=None if case.get("elr", ()) is None else tuple(case.get("elr", ())),
        standings=standings,
        reassigning=case.get("reassigning", False),
    )._replace(min_isr=case.get("min isr", 2))
    facts = PartitionFacts(
        asked,
        elr_enabled=case.get("elr enabled", False),
        unclean_elections=case.get("unclean elections", False),
        failed_disks=frozenset(case.get("failed disks", ())),
        compacted=False,
    )
    return advice(decide(asked, Ranking.LAST_RECORD, Strategy.BALANCED, partition_verdicts(facts)))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_every_incident_gets_the_advice_that_its_evidence_supports(case: Mapping[str, Any]) -> None:
    found = advised(case)
    if "advice" not in case:
        assert found is None
        return
    assert found is not None
    assert (found.kind.value, found.brokers) == (case["advice"], tuple(case.get("brokers", ())))
    assert [one.broker for one in found.keep_down] == case.get("keep down", [])
    assert list(found.check_disk) == case.get("check disk", list(found.check_disk))
    said = " ".join(advice_text(found).sentences)
    assert "{" not in said
    for sentence in case.get("says", ()):
        assert sentence in said
    for sentence in case.get("never says", ()):
        assert sentence not in said


@pytest.mark.parametrize("partitions", [1, 2, 20_000])
def test_a_step_is_one_short_sentence_and_so_is_each_warning(partitions: int) -> None:
    """An action has at most 90 characters, a warning 120, and no parenthesis holds the point."""
    found = [advice for case in CASES if (advice := advised(case)) is not None]
    many = tuple(range(101, 120))
    found += [advice._replace(brokers=many, read_before=advice.read_before and many) for advice in found]
    found += [Advice(kind, brokers) for kind in AdviceKind for brokers in ((1,), (1001, 1002, 1003), many)]
    assert {advice.kind for advice in found} == set(AdviceKind)
    for advice in found:
        action, instead, warnings, _ = advice_text(advice, partitions)
        assert not too_much(action, 90)
        for sentence in filter(None, (action, instead, *warnings)):
            assert not too_much(sentence, 120)
            assert sentence[0].isupper() and sentence.endswith("."), sentence


def test_of_the_members_only_the_one_that_was_shut_down_is_to_be_brought_back() -> None:
    asked = survey({1: log((0, 0, 940)), 2: SILENT, 3: SILENT}, elr=(2, 3))
    found = partition_verdicts(PartitionFacts(asked, elr_enabled=True, unclean_elections=False))
    shut = tuple(one._replace(shut_down=one.broker == 3) for one in found.automatic_elections)
    decision = decide(asked, Ranking.LAST_RECORD, Strategy.BALANCED, found._replace(automatic_elections=shut))
    assert decision.waits_for == (3,)
    told = advice(decision)
    assert told is not None
    assert (told.kind, told.brokers) == (AdviceKind.BRING_BACK, (3,))
    assert "It was shut down when last seen: Kafka elects it without an unclean election" in " ".join(
        advice_text(told).sentences
    )


def test_a_step_that_says_what_another_one_said_is_no_empty_line() -> None:
    tp = TopicPartition("t", 0)
    back = Advice(AdviceKind.BRING_BACK, (3,))
    twice = [FirstStep(back, 4, tp), FirstStep(back, 4, tp)]
    assert sum(not line.startswith("  ") for line in steps_lines(twice)) == 1


@pytest.mark.parametrize("to_repair", [True, False])
def test_a_disk_that_its_broker_does_not_serve_whole_is_repaired_before_the_broker_is_brought_back(
    *, to_repair: bool
) -> None:
    asked = survey({1: log((0, 0, 940)), 2: log((0, 0, 1000))}, isr=(2,), elr=None)
    read = tuple(
        one._replace(standing=Standing.FENCED, disk_read_ms=0, disk_to_repair=to_repair)
        if one.broker == 2
        else one
        for one in asked.replicas
    )
    asked = asked._replace(replicas=read)
    found = partition_verdicts(PartitionFacts(asked, elr_enabled=False, unclean_elections=False))
    told = advice(decide(asked, Ranking.LAST_RECORD, Strategy.BALANCED, found))
    assert told is not None and 2 in told.starts
    merged = first_steps([(asked.tp, told)])[0]
    said = "Repair the disk of broker 2 before the start (ktriage disk scan says how)."
    assert (said in " ".join(advice_text(merged.advice).sentences)) is to_repair


@pytest.mark.parametrize(
    ("to_repair", "said"),
    [
        (
            True,
            "Repair the disk of broker 2 before the start (ktriage disk scan says how).",
        ),
        (
            False,
            "Copy the disk of broker 2 before the start (ktriage disk scan says how).",
        ),
        (None, "start it first: then nothing at all is lost."),
    ],
    ids=["it ends", "it deletes", "it serves all of it"],
)
def test_what_a_broker_does_with_its_disk_counts_where_that_disk_is_no_evidence_for_the_partition(
    *, to_repair: bool | None, said: str
) -> None:
    """The disk has another partition's log; broker 2 is to be started first, if its host kept power."""
    asked = survey({1: log((0, 0, 940)), 2: SILENT}, isr=(2,), elr=None, standings={2: Standing.FENCED})
    effect = DiskStartEffect("the broker ends", "/d/t-1", "it has 0 bytes", "write it", bool(to_repair))
    effects = () if to_repair is None else (effect,)
    reading = DiskReading("b2.json", 2, "cluster", "host", 0, None, {}, at_start=effects)
    ((asked,), _) = with_disks([asked], [reading], {})
    found = partition_verdicts(PartitionFacts(asked, elr_enabled=False, unclean_elections=False))
    proved = {1: Verdict(VerdictKind.NONE)}
    back = tuple(one._replace(keeps_acked=True, keeps_all=True) for one in found.automatic_elections)
    judged = found._replace(candidates=proved, automatic_elections=back)
    advised_now = advice(decide(asked, Ranking.LAST_RECORD, Strategy.BALANCED, judged))
    assert advised_now is not None and advised_now.kind is AdviceKind.ELECT
    assert said in " ".join(advice_text(advised_now).sentences)
    ran_since = {2: RegistrationFacts((9, 1), {})}
    ((later,), _) = with_disks(
        [survey({1: log((0, 0, 940)), 2: SILENT}, isr=(2,), standings={2: Standing.FENCED})],
        [reading],
        ran_since,
    )
    assert not any(one.disk_to_repair or one.disk_to_copy for one in later.replicas), "it ran since"


def test_a_log_that_was_read_is_not_said_to_be_shorter_if_its_host_lost_power() -> None:
    """ktriage has seen that it is."""
    asked = survey({1: log((0, 0, 940), (1, 940, 1500)), 2: log((0, 0, 1000))}, isr=(2,), elr=None)
    read = tuple(
        one._replace(standing=Standing.FENCED, disk_read_ms=0) if one.broker == 2 else one
        for one in asked.replicas
    )
    asked = asked._replace(replicas=read)
    found = partition_verdicts(PartitionFacts(asked, elr_enabled=False, unclean_elections=False))
    lacking = Verdict(VerdictKind.SOME, at_least=500, at_most=500)
    back = tuple(one._replace(verdict=lacking) for one in found.automatic_elections)
    judged = found._replace(candidates={1: Verdict(VerdictKind.NONE), 2: lacking}, automatic_elections=back)
    advised_now = advice(decide(asked, Ranking.LAST_RECORD, Strategy.BALANCED, judged))
    assert advised_now is not None and [one.broker for one in advised_now.keep_down] == [2]
    said = " ".join(advice_text(advised_now).sentences)
    assert "as read its log lacks acknowledged records" in said and "lost power" not in said


def test_on_a_topic_that_elects_by_itself_the_members_that_were_not_shut_down_do_not_return_first() -> None:
    asked = survey({1: SILENT, 2: SILENT, 3: SILENT}, elr=(2, 3))
    found = partition_verdicts(PartitionFacts(asked, elr_enabled=True, unclean_elections=True))
    shut = tuple(one._replace(shut_down=one.broker == 3) for one in found.automatic_elections)
    told = advice(
        decide(asked, Ranking.LAST_RECORD, Strategy.BALANCED, found._replace(automatic_elections=shut))
    )
    assert told is not None
    assert (told.kind, told.brokers, told.check_disk) == (AdviceKind.BRING_BACK, (3,), (3,))
    assert [one.broker for one in told.keep_down] == [1, 2]
    assert "Do not start broker 1 or 2 first: Kafka elects whoever returns first" in " ".join(
        advice_text(told).sentences
    )


def test_every_kind_of_advice_has_its_case() -> None:
    """But for that of partitions with a leader, or where nothing runs: it follows from no decision."""
    offline = set(AdviceKind) - {AdviceKind.READ_FIRST, AdviceKind.STOP_AND_READ, AdviceKind.START_TOGETHER}
    assert {case["advice"] for case in CASES if "advice" in case} == {kind.value for kind in offline}


def test_where_nothing_runs_all_members_start_but_those_that_lack_acknowledged_records() -> None:
    whole = survey({1: SILENT, 2: SILENT, 3: SILENT}, isr=(1,), elr=(2,))
    found = start_together(whole, None)
    assert found is not None
    assert (found.kind, found.brokers, found.keep_down) == (AdviceKind.START_TOGETHER, (1, 2), ())
    assert advice_text(found, 3).action == "Start brokers 1 and 2, all with their old disks: 3 get a leader."

    logs = {1: log((0, 0, 900)), 2: log((0, 0, 940))._replace(high_watermark=940)}
    standings = dict.fromkeys(logs, Standing.NOT_ASKED)
    short = survey({**logs}, isr=(1, 2), elr=None, standings=standings)._replace(min_isr=2)
    judged = partition_verdicts(
        PartitionFacts(short, elr_enabled=False, unclean_elections=False, compacted=False)
    )
    found = start_together(short, judged)
    assert found is not None
    assert (found.brokers, [one.broker for one in found.keep_down]) == ((2,), [1])


def test_elections_come_before_the_return_of_a_broker_that_would_take_them_away() -> None:
    named = {case["name"]: case for case in CASES}
    elect = advised(
        next(case for name, case in named.items() if name.startswith("every replica answered, and one"))
    )
    back = advised(next(case for name, case in named.items() if name.startswith("two ISR members are down")))
    assert elect is not None
    assert back is not None
    found = [(TopicPartition("t", 0), back), (TopicPartition("t", 1), back), (TopicPartition("u", 7), elect)]
    steps = first_steps(found)
    assert [(step.advice.kind, step.partitions, str(step.example)) for step in steps] == [
        (AdviceKind.ELECT, 1, "u-7"),
        (AdviceKind.BRING_BACK, 2, "t-0"),
    ]
    assert advice_text(steps[1].advice, 2).action == "Start broker 2 with its old disk: 2 get a leader."


def held_back(*brokers: int) -> tuple[AutomaticElection, ...]:
    return tuple(AutomaticElection(b, AutomaticElectionKind.ISR_MEMBER, False, False, None) for b in brokers)


def said(*found: Advice) -> list[str]:
    """What is said of so many partitions."""
    steps = first_steps((TopicPartition("t", n), one) for n, one in enumerate(found))
    return [" ".join((step.head, *step.text.sentences[1:])) for step in advised_steps(steps, 9)]


def test_a_broker_that_one_step_holds_back_is_started_after_it() -> None:
    back = Advice(AdviceKind.BRING_BACK, (3,))
    compare = Advice(AdviceKind.CHOOSE, (), held_back(3))
    first, then = said(back, compare)
    assert "Do not start broker 3 first" in first
    assert then.startswith("Only then (t-0): Start broker 3 with")
    disk = Advice(AdviceKind.READ_FIRST, (3,))
    first, then = said(back, disk)
    assert "Read the disk of broker 3 before it starts" in first and then.startswith(
        "Only then (t-0): Start broker 3"
    )


def test_an_election_does_not_ask_for_the_start_of_a_broker_that_another_step_holds_back() -> None:
    elect = Advice(AdviceKind.ELECT, (1,), start_if_whole=held_back(3), keeps_all=True)
    (alone,) = said(elect)
    assert "If the host of broker 3 kept power, start it first" in alone
    for others in (
        (Advice(AdviceKind.CHOOSE, (), held_back(3)),),
        (elect._replace(start_if_whole=(), keep_down=held_back(3)),),
    ):
        text = " ".join(said(elect, *others))
        assert "start it first" not in text and "Read the disk of broker 3 before it is started" in text, text


def test_where_each_of_two_steps_would_have_to_be_the_first_the_disk_is_read_before() -> None:
    first, then = said(
        Advice(AdviceKind.BRING_BACK, (2,), held_back(3)), Advice(AdviceKind.BRING_BACK, (3,), held_back(2))
    )
    assert first.startswith(
        "Do first (t-0): Read the disk of broker 2 before the start: then 1 partition gets a"
    )
    assert then.startswith("Only then (t-1): Start broker 3 with")


def test_an_old_leader_of_an_online_partition_is_stopped_and_read_before_anybody_mends_its_network() -> None:
    lagging = log((0, 0, 900))._replace(leader_epoch=1, leads=True)
    asked = survey({1: lagging, 2: log((0, 0, 800))})
    online = asked._replace(state=asked.state._replace(leader=2, isr=(2,), leader_epoch=2))
    (found,) = stop_and_read([online, online._replace(state=online.state._replace(leader=-1))])
    mend = Advice(AdviceKind.STOP_OR_MEND, (1,))
    first, *reasons, then, _, _ = steps_lines(first_steps([(TopicPartition("u", 0), mend), found]))
    assert "Stop broker 1 and read its disk: what it takes is lost later." in first
    writes = "broker 1 still acts as leader in epoch 1 and takes writes that are lost when it hears of"
    assert writes in reasons[0] and "before its network is mended (ktriage rescue read" in reasons[1]
    assert then.startswith("Only then (u-0): Stop broker 1: it takes writes that an election cuts off")


def test_no_steps_ask_for_a_start_that_another_one_advises_against() -> None:
    """Whatever the partitions need: seeded, since the combinations are too many."""
    random = Random(7)
    kinds = (
        AdviceKind.READ_FIRST,
        AdviceKind.ELECT,
        AdviceKind.BRING_BACK,
        AdviceKind.ASK,
        AdviceKind.CHOOSE,
    )
    for _ in range(400):
        advices = []
        for _ in range(random.randint(2, 5)):
            kind, asked = random.choice(kinds), tuple(sorted(random.sample((1, 2, 3), random.randint(1, 2))))
            down = held_back(*(b for b in (1, 2, 3) if random.random() < 0.3 and b not in asked))
            whole = held_back(*asked) if kind is AdviceKind.ELECT else ()
            advices.append(Advice(kind, (9,) if whole else asked, down, start_if_whole=whole))
        steps = first_steps((TopicPartition("t", number), one) for number, one in enumerate(advices))
        for number, step in enumerate(steps):
            wanted = step.advice.starts.difference(step.advice.read_before)
            later = frozenset(b for one in steps[number:] for b in one.advice.holds_back)
            earlier = frozenset(b for one in steps[:number] for b in one.advice.holds_back)
            assert not wanted & later, steps
            assert step.only_then or not wanted & earlier, steps
