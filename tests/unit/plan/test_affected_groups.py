"""What a plan says of consumer groups and of Kafka's own topics, and what an edited leader makes of it."""

from __future__ import annotations

from dataclasses import replace

from console.change.loss_consent import loss_question, outline
from console.jobs.consumers.group_offsets import StayingLog, staying_log
from console.jobs.elect.review_report import markdown
from console.reading.plan_comparison import checked_just_now
from recovery.groups.offset_judgement import LastReadPlace, OffsetJudgement
from recovery.model import EpochSpan, TopicPartition
from recovery.plan.edit import with_leader
from recovery.plan.values import AffectedGroup, Plan
from recovery.wording.group_text import (
    affected_group_lines,
    affected_offset_lines,
    internal_loss_lines,
    judgement_text,
)
from tests.unit.plan.plans import plan_of, stale_long_tail
from tests.unit.recovery.surveys import log


def with_groups() -> Plan:
    plan = plan_of(stale_long_tail())
    (row,) = plan.rows
    billing = AffectedGroup(row.tp, "billing", 1450, -1, LastReadPlace.CUT_OFF, 1000, row.leader)
    return replace(plan, groups=(billing,), groups_unread=("broker 3 did not list its groups",))


def test_the_groups_are_named_and_what_is_not_known_is_said() -> None:
    plan = with_groups()
    named, unread = affected_group_lines(plan.affected, plan.groups_unread)
    assert "1 consumer group affected (billing)" in named and "on the branch that is cut off" in named
    assert unread == "there may be other consumer groups: broker 3 did not list its groups"
    text = markdown(plan, "plan.json", "ktriage apply plan.json")
    assert "billing" in text and len(text.splitlines()) <= 40


def test_the_question_and_the_ticket_name_the_groups_in_the_same_sentence() -> None:
    plan = with_groups()
    named = "1 group (billing) needs another offset after the election (ktriage groups fix)."
    unread = "Not all groups could be read: others may be affected (the plan says why)."
    assert {named, unread} <= set(outline(plan, native=None).risks)
    asked = "\n".join(loss_question(checked_just_now(plan), "kafka:9092").warnings)
    ticket = markdown(plan, "plan.json", "ktriage apply plan.json")
    assert all(text in asked and text in ticket for text in (named, unread))
    other = with_leader(plan, plan.rows[0].tp, 1)
    assert not [line for line in outline(other, native=None).risks if "billing" in line]


def test_where_each_offset_is_and_goes_back_to_is_told_as_far_as_there_is_room() -> None:
    plan = with_groups()
    place = "last read on the branch that is cut off: back to 1,000"
    first = f"billing on orders-0: committed 1,450 (no epoch), {place}"
    assert list(affected_offset_lines(plan.affected, 5)) == [first]
    lost = plan.affected[0]._replace(group="audit", go_back_to=None)
    many = replace(plan, groups=(*plan.affected, *(lost._replace(group=f"g{n}") for n in range(30))))
    *shown, rest = affected_offset_lines(many.affected, 5)
    assert len(shown) == 5 and rest == "… and 26 more committed offsets (ktriage groups show PLAN)"
    assert "where to go back to is not known" in shown[1]
    text = markdown(many, "plan.json", "ktriage apply plan.json")
    assert first in text and len(text.splitlines()) <= 40


def test_what_was_cut_off_stays_so_when_the_preferred_replica_leads_again() -> None:
    """Kafka moves the leadership to replica 1 within minutes, which has truncated and follows the elected log."""
    told = stale_long_tail()
    (row,) = plan_of(told).rows
    assert row.leader == 2
    led_by = [told._replace(state=told.state._replace(leader=leader, leader_epoch=6)) for leader in (2, 1)]
    now = log((0, 0, 1000), (2, 1000, 1300), (5, 1300, 1340))
    for survey in led_by:
        replicas = tuple(one._replace(log=now) for one in survey.replicas)
        staying = staying_log(survey._replace(replicas=replicas), row, row.leader)
        assert isinstance(staying, StayingLog) and staying.as_planned
        assert staying.cut_off == (EpochSpan(0, 1000, 1500),)


def test_a_committed_epoch_protects_java_clients_only() -> None:
    cut = OffsetJudgement(LastReadPlace.CUT_OFF, 1000, beyond_end=True, gone=450, never_read=300)
    blind, checked = judgement_text(cut), judgement_text(cut, 0)
    for text in (blind, checked):
        assert "would then skip 300 kept offsets without an error" in text
    assert "Java's client notices by the committed epoch" in checked and "Java" not in blind


def test_another_leader_affects_other_groups() -> None:
    plan = with_groups()
    (row,) = plan.rows
    other = next(c.broker for c in row.candidates if c.electable and c.broker != row.leader)
    assert plan.affected and not with_leader(plan, row.tp, other).affected


def test_a_loss_in_kafkas_own_topics_is_explained() -> None:
    (row,) = plan_of(stale_long_tail()).rows
    lines = {
        topic: list(internal_loss_lines([row._replace(tp=TopicPartition(topic, 3))]))
        for topic in ("__consumer_offsets", "__transaction_state", "orders")
    }
    assert "read records again" in lines["__consumer_offsets"][0]
    assert "may abort transactions" in lines["__transaction_state"][0]
    assert lines["orders"] == []
