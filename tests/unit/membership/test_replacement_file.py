"""A replacement's file: what is wanted comes back as it was, and steps that were edited are refused."""

from __future__ import annotations

import json

import pytest

from recovery.membership.replacement import (
    ReplacementError,
    ReplacementHeader,
    ReplacementKind,
    ReplacementRequest,
    StepKind,
)
from recovery.membership.replacement_file import digest, from_json, is_replacement, make, to_json
from recovery.membership.replacement_state import QuorumPicture, situation
from tests.unit.membership.quorums import key, quorum, voters

HEADER = ReplacementHeader("id", "2026-01-01T00:00:00+00:00", "ada@host", "1")


def wanted(**changed: object) -> ReplacementRequest:
    values: dict[str, object] = {
        "kind": ReplacementKind.DISK,
        "cluster_id": "c",
        "voters": voters(1, 2, 3).voters,
        "leaving": (key(3),),
        "joining": (3,),
        "leader": 3,
    }
    return ReplacementRequest(**{**values, **changed})  # type: ignore[arg-type]  # fields by name


def test_a_plan_comes_back_as_it_was_written() -> None:
    plan = make(HEADER, wanted())
    text = to_json(plan)
    assert from_json(text) == plan
    assert is_replacement(text)
    assert digest(from_json(text)) == digest(plan)


def test_steps_that_were_edited_are_refused() -> None:
    members = json.loads(to_json(make(HEADER, wanted())))
    members["steps"][3]["voter"] = [2, "dir2"]
    with pytest.raises(ReplacementError, match="make a new plan"):
        from_json(json.dumps(members))


def test_a_plan_whose_sentences_another_version_wrote_is_read_and_keeps_its_digest() -> None:
    plan = make(HEADER, wanted())
    members = json.loads(to_json(plan))
    members["warning"], members["notes"] = "older words", ["older words"]
    for step in members["steps"]:
        step |= {"title": "older words", "sends": "", "waitsFor": "", "canGoWrong": [], "onHost": ["rm -rf"]}
    read = from_json(json.dumps(members))
    assert read == plan, "what is done and shown is this version's, never the file's sentences"
    assert digest(read) == digest(plan)


def test_another_request_has_another_digest() -> None:
    assert digest(make(HEADER, wanted())) != digest(make(HEADER, wanted(leader=1)))


@pytest.mark.parametrize("steps", [None, {}, ["x"], [[1]]])
def test_steps_of_another_shape_are_refused(steps: object) -> None:
    members = json.loads(to_json(make(HEADER, wanted())))
    with pytest.raises(ReplacementError, match="make a new plan"):
        from_json(json.dumps({**members, "steps": steps}))


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "ktriage.replacement/2"}', '{"format": 1}'])
def test_what_is_no_plan_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ReplacementError):
        from_json(text)


def test_a_plan_of_the_right_format_with_broken_values_is_refused() -> None:
    members = json.loads(to_json(make(HEADER, wanted())))
    for name, value in (("leaving", [[3]]), ("joining", ["3"]), ("kind", "x"), ("voters", {})):
        broken = {**members, "wanted": {**members["wanted"], name: value}}
        with pytest.raises(ReplacementError):
            from_json(json.dumps(broken))


def test_the_same_id_is_removed_first_unless_the_cluster_allows_the_documents_order() -> None:
    kinds = [step.kind for step in make(HEADER, wanted()).steps]
    assert kinds.index(StepKind.REMOVE) < kinds.index(StepKind.ADD)
    kinds = [step.kind for step in make(HEADER, wanted(add_first=True)).steps]
    assert kinds.index(StepKind.ADD) < kinds.index(StepKind.REMOVE)


def test_in_between_it_says_what_the_set_stands() -> None:
    plan = make(HEADER, wanted())
    removed = next(step for step in plan.steps if step.kind is StepKind.REMOVE)
    assert removed.stands == "voters 1, 2: tolerates 0 failures"
    assert any("between remove and add the set has 2 voters" in note for note in plan.notes)
    assert any("3 leads now" in note for note in plan.notes)


def test_hosts_commands_stand_word_for_word_and_joiners_never_make_a_quorum_of_their_own() -> None:
    plan = make(HEADER, wanted(kind=ReplacementKind.HOST, joining=(4,)))
    start = next(step for step in plan.steps if step.kind is StepKind.START)
    assert (
        "kafka-storage.sh format --cluster-id c --config controller.properties --ignore-formatted"
        " --no-initial-controllers"
    ) in start.commands
    servers = next(step for step in plan.steps if step.kind is StepKind.SERVERS)
    assert "controller.quorum.bootstrap.servers=host1:9093,host2:9093,HOST-OF-4:PORT" in servers.commands


def test_who_joins_by_itself_is_stopped_before_it_is_removed_unless_only_two_are_left() -> None:
    plan = make(
        HEADER, wanted(kind=ReplacementKind.SHRINK, joining=(), leaving=(key(2), key(3)), auto_join=True)
    )
    kinds = [(step.kind, step.node) for step in plan.steps if step.node > 0]
    assert kinds == [
        (StepKind.STOP, 2),
        (StepKind.REMOVE, 2),
        (StepKind.STAY_OUT, 3),
        (StepKind.REMOVE, 3),
        (StepKind.STOP, 3),
    ]


def test_what_no_look_shows_has_to_be_said_and_what_may_still_be_told_is_waited_for() -> None:
    """A node that is restarted is silent for a while; one that does not let itself be asked is so for ever."""
    plan = make(
        HEADER, wanted(kind=ReplacementKind.SHRINK, joining=(), leaving=(key(2), key(3)), auto_join=True)
    )
    servers = next(step for step in plan.steps if step.kind is StepKind.SERVERS)
    stay_out = next(step for step in plan.steps if step.kind is StepKind.STAY_OUT)
    asked: dict[str, tuple[str, ...] | None] = {"controller 1": ("host1:9093",), "broker 9": None}
    for step, name in ((servers, "broker 9"), (stay_out, "controller 3")):
        assert not situation(plan, step, QuorumPicture(quorum(1, 2, 3), asked)).unseen
        assert situation(plan, step, QuorumPicture(quorum(1, 2, 3), asked, mute=frozenset((name,)))).unseen
