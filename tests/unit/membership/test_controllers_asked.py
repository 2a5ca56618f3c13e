"""What the controllers' own answers say that the leader's does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from backends.base.errors import NoLeader
from backends.base.membership import ClusterNode, EveryAddress, Membership, NodeProbe, ProcessRole
from console.jobs.quorum.quorum_report import lost_lines, sentences, verdict_lines
from console.last_healthy import recall
from console.reading.quorum_state import QuorumReading, replaced_by_rebuild
from console.reading.quorum_state import lost as read_lost
from console.reading.remembered_voters import (
    MEMORY,
    quorum_problems,
    reading_of_everybody,
    remember_voters,
    remembered_quorum,
    with_rebuild,
)
from recovery.cluster_health import ClusterHealth, quorum_finding
from recovery.membership.after_rebuild import quorum_findings
from recovery.membership.controllers_asked import (
    AskedController,
    ControllersAsked,
    QuorumProblem,
    RememberedQuorum,
)
from recovery.membership.possible_only_voter import LEAD_NO_BROKER
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import KnownBrokers, health
from recovery.membership.quorum_without_leader import QuorumWithoutLeader, VoterHost
from recovery.membership.voters import ReplicaKey, VoterSet
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.model import Unknown, Why
from recovery.wording.cluster_advice import cluster_advice, old_voters_advice
from recovery.wording.cluster_health_text import health_line, health_lines
from recovery.wording.lost_quorum_text import guide_lines
from tests.unit.membership.quorums import CLUSTER, key, progress, quorum, voter, voters

REFUSED = Unknown(Why.NOT_ANSWERED, "connection refused")


def address(node: int) -> str:
    return f"host{node}:9093"


def answers(node: int, led: Quorum | None = None) -> AskedController:
    return AskedController(address(node), node, CLUSTER, 1, led)


def problems(of: Quorum, asked: ControllersAsked) -> list[tuple[QuorumProblem, str]]:
    return [(one.problem, one.text) for one in asked.findings(health(of, LivenessLimits(), {1, 2, 3}))]


def test_voters_that_answer_where_they_are_registered_are_no_problem() -> None:
    asked = ControllersAsked(tuple(map(answers, (1, 2, 3))), {"broker 9": (address(1), address(2))})
    assert problems(quorum(1, 2, 3), asked) == []
    assert asked.left_out == ()
    assert asked.counts == "3 controller addresses asked, all reached"


@pytest.mark.parametrize(
    "answer",
    [AskedController(address(3), problem=REFUSED), answers(3)._replace(node=8)],
    ids=["nothing answers", "another node answers"],
)
def test_a_voter_that_fetches_and_is_not_at_its_endpoint_is_no_spare(answer: AskedController) -> None:
    of, asked = quorum(1, 2, 3), ControllersAsked((answers(1), answers(2), answer))
    ((problem, text),) = problems(of, asked)
    assert problem is QuorumProblem.ENDPOINT_LEADS_NOWHERE
    assert text.startswith("voter 3 fetches, but at its registered endpoint host3:9093")
    said = asked.strength(health(of, LivenessLimits()))
    assert said.startswith("tolerates no more failures for certain: 3 of 3 voters fetch, 3 not reached")


def test_five_voters_of_which_one_is_not_reached_tolerate_one_failure_for_certain() -> None:
    silent = AskedController(address(5), problem=REFUSED)
    asked = ControllersAsked((*map(answers, (1, 2, 3, 4)), silent))
    found = health(quorum(1, 2, 3, 4, 5), LivenessLimits())
    assert asked.strength(found).startswith("tolerates 1 more failure for certain: 5 of 5")


@pytest.mark.parametrize("why", [Why.NOT_ALLOWED, Why.NOT_OFFERED])
def test_a_voter_that_refuses_to_answer_is_reached(why: Why) -> None:
    refusing = AskedController(address(3), problem=Unknown(why, "needs ALTER"))
    asked = ControllersAsked((answers(1), answers(2), refusing))
    assert problems(quorum(1, 2, 3), asked) == []
    assert "1 answered and told nothing (host3:9093: needs ALTER)" in asked.counts


def test_a_voter_whose_endpoint_was_not_asked_is_not_called_unreachable() -> None:
    assert problems(quorum(1, 2, 3), ControllersAsked((answers(1), answers(2)))) == []


def test_where_no_controller_is_reached_from_here_nothing_is_said_of_their_addresses() -> None:
    silent = tuple(AskedController(address(node), problem=REFUSED) for node in (1, 2, 3))
    asked = ControllersAsked(silent, {"broker 8": ("vip:9093",)})
    assert problems(quorum(1, 2, 3), asked) == []
    assert "3 not reached (host1:9093: connection refused;" in asked.counts


def test_a_voter_that_is_down_is_not_told_twice() -> None:
    dead = AskedController(address(3), problem=REFUSED)
    assert problems(quorum(1, 2, 3, down=(3,)), ControllersAsked((answers(1), answers(2), dead))) == []


def test_several_quorums_come_first_each_once_and_a_new_leader_of_this_one_is_none() -> None:
    other = replace(quorum(7), leader=key(7), leader_epoch=2)
    led = [
        answers(7, led=other),
        answers(8, led=other),
        answers(2, led=replace(quorum(1, 2, 3), leader=key(2))),
    ]
    dead = AskedController(address(3), problem=REFUSED)
    found = problems(quorum(1, 2, 3), ControllersAsked((*led, dead)))
    assert [problem for problem, _ in found] == [
        QuorumProblem.SEVERAL_QUORUMS,
        QuorumProblem.ENDPOINT_LEADS_NOWHERE,
    ]
    assert found[0][1].startswith("2 QUORUMS with the same cluster id: host7:9093 leads another quorum")


def test_of_a_rebuilt_quorum_and_its_old_voters_the_old_ones_are_stopped() -> None:
    old = replace(quorum(1, 2, 3), leader=key(2), leader_epoch=7)
    rebuilt = replace(quorum(9), leader=key(9), leader_epoch=1_007)
    for of, other in ((old, rebuilt), (rebuilt, old)):
        ((_, text), *_) = problems(of, ControllersAsked((answers(7, other),)))
        assert "Epoch 1007 is that of a rebuilt quorum" in text
        assert "stop controllers 1, 2 and 3, and move __cluster_metadata-0 out of their log dirs" in text
    ((_, text), *_) = problems(old, ControllersAsked((answers(7, replace(rebuilt, leader_epoch=9)),)))
    assert "rebuilt" not in text
    # One of the old voters is the new one, with the disk that it had.
    survivor = replace(quorum(1), leader=key(1), leader_epoch=1_007)
    ((problem, text), *_) = problems(old, ControllersAsked((answers(1, survivor),)))
    assert problem is QuorumProblem.SEVERAL_QUORUMS
    assert "stop controllers 2 and 3, and move __cluster_metadata-0 out of their log dirs" in text


def test_old_voters_that_lead_beside_the_rebuilt_quorum_are_stopped_before_anything_else() -> None:
    """The first line and the first thing to do, whatever else is wrong; and each of them is named once."""
    old = replace(quorum(1, 2, 3), leader=key(2), leader_epoch=7)
    rebuilt = replace(quorum(1), leader=key(1), leader_epoch=1_007)
    asked = ControllersAsked((answers(1, rebuilt), answers(2, old), answers(3)))
    assert asked.second_quorum(rebuilt) == ("2", "3") and asked.second_quorum(old) == ()
    found = health(rebuilt, LivenessLimits(), {1, 2, 3})
    finding = ClusterHealth(quorum_finding(rebuilt), brokers_down=(8,), second_quorum=("2", "3"))
    assert (
        health_line(finding).startswith("2 QUORUMS · broker 8 down") and finding.urgent and not finding.well
    )
    first = cluster_advice(finding, found, None, (), ()).first[0].text
    assert first.action == "Stop controllers 2 and 3: a rebuild replaced them, and they lead a second quorum."
    gone = tuple(voter for voter in old.voters.voters if voter.key.id != 1)
    told = [one.problem for one in quorum_findings(found, asked, RebuiltLog(4, 9, 1_006, gone))]
    assert told == [QuorumProblem.SEVERAL_QUORUMS]


def test_a_controller_with_a_new_disk_is_told_by_its_directory_or_by_its_silence() -> None:
    dead = quorum(1, 2, 3, down=(3,))
    beside = quorum(1, 2, 3, down=(3,), observers=(key(3, "new"),))
    asked = ControllersAsked(tuple(map(answers, (1, 2, 3))))
    ((_, text),) = problems(beside, asked)
    assert text.startswith("controller 3 runs with a new disk (new), which has no vote")
    ((problem, text),) = problems(dead, asked)
    assert problem is QuorumProblem.NEW_DISK
    assert "answers at host3:9093, does not fetch as voter 3-dir3" in text
    blank = AskedController(address(3), blank=True, problem=Unknown(Why.NOT_OFFERED, "no metadata"))
    ((_, text),) = problems(dead, ControllersAsked((answers(1), answers(2), blank)))
    assert "has loaded no metadata and does not fetch as voter 3-dir3" in text


@pytest.mark.parametrize(
    ("servers", "down", "said"),
    [
        (("host1:9093", "gone:9093"), (), "once 1 is down"),
        (("gone:9093",), (), "when the leader changes, or when they start"),
        (("host3:9093",), (3,), "when the leader changes, or when they start"),
        (("host1:9093", "host2:9093"), (), ""),
        (("vip:9093", "host2:9093"), (), ""),  # another name of voter 1
        ((), (), ""),
    ],
)
def test_a_broker_must_name_voters_that_are_left_when_others_fail(
    servers: tuple[str, ...], down: tuple[int, ...], said: str
) -> None:
    asked = ControllersAsked(
        (*map(answers, (1, 2, 3)), answers(1)._replace(address="vip:9093"))
        if not down
        else (answers(1), answers(2)),
        {"broker 8": servers, "broker 9": servers, "controller 1": servers},
    )
    found = problems(quorum(1, 2, 3, down=down), asked)
    if not said:
        assert found == []
        return
    ((problem, text),) = found
    assert problem is QuorumProblem.LEADER_NOT_NAMED
    assert text.startswith(f"brokers 8 and 9 will find no leader {said}: controller.quorum.bootstrap.servers")
    assert problems(replace(quorum(1, 2, 3, down=down), kraft_version=0), asked) == []


def test_the_only_voter_is_not_all_that_a_setting_has_to_name() -> None:
    """Whoever sets it so is blind again once others were added and that voter fails."""
    asked = ControllersAsked((answers(1),), {"broker 9": ("gone:9093",), "broker 8": ("gone:9093",)})
    ((_, text),) = problems(quorum(1), replace(asked, servers={"broker 9": ("gone:9093",)}))
    assert text.startswith("broker 9 will find no leader when the leader changes, or when it starts")
    assert (
        "Set it to host1:9093 and to the addresses of the voters that you add, there, and restart this node"
        in text
    )
    ((_, text),) = problems(quorum(1, 2, 3), ControllersAsked((answers(1),), asked.servers))
    assert "Set it to host1:9093,host2:9093,host3:9093 there, and restart these nodes one by one" in text


def lost(**changed: Any) -> QuorumWithoutLeader:
    hosts = (
        VoterHost(key(1), address(1), False, "connection refused", -1, -1, stopped=True),
        VoterHost(key(2), address(2), True, "", -1, 42, leads=True),
        VoterHost(key(3), address(3), True, "", -1, 42),
    )
    found = QuorumWithoutLeader(
        "c",
        hosts,
        True,
        "then",
        {"broker 9": (address(1), "gone:9093")},
        frozenset((address(2), address(3))),
        True,
    )
    return replace(found, **changed)


def test_a_leader_that_brokers_cannot_find_is_told_with_the_setting_to_change() -> None:
    first, never, look, if_rebuilt, then, *_ = lost().sentences
    assert first.startswith("controller 2 leads; broker 9 cannot find it, because")
    assert "(gone:9093, host1:9093)" in first
    assert never.startswith("Do not replace, format or wipe 1") and "quorum evidence LOG_DIR" in look
    assert if_rebuilt == (
        "Only if a broker's log holds a rebuild that the log of controller 2 does not hold (ktriage quorum evidence"
        " with both), stop controllers 2 and 3, then start 1 with its disk; if not, let the brokers find"
        " controller 2"
    )
    assert then.startswith("For that, set controller.quorum.bootstrap.servers to host2:9093,host3:9093 there")
    # Who knows the rebuild knows that 2 leads what was rebuilt.
    assert lost(replaced=(key(9),)).sentences[1].startswith("Set it to host2:9093,host3:9093 there")


def head_and_advice(found: QuorumWithoutLeader) -> tuple[str, str]:
    health = ClusterHealth(quorum_finding(found))
    advice = cluster_advice(health, Unknown(Why.NOT_ANSWERED, "no leader"), found, (), ())
    assert advice.stops
    return "\n".join(health_lines(health, advised=True)), " ".join(advice.first[0].text.sentences)


def test_a_leader_that_was_seen_is_not_called_out_of_reach_above_the_line_that_names_it() -> None:
    head, advice = head_and_advice(lost())
    assert head.startswith(
        "quorum NOT REACHED BY BROKERS · controller 1 down\nA controller leads, it says"
    ), head
    assert "nobody leads" not in head and "no controller" not in f"{head} {advice}".lower()
    assert advice.startswith(
        "See whether the quorum was rebuilt, before broker 9 finds controller 2, which leads."
    ), advice
    known = head_and_advice(lost(replaced=(key(9),)))[1]
    assert known.startswith("Let broker 9 find controller 2, which leads."), known
    assert "controller.quorum.bootstrap.servers has to be host2:9093,host3:9093 there" in advice
    cut_off = head_and_advice(lost(brokers={"broker 9": (address(3),)}))[1]
    assert cut_off.startswith(
        "Find out why the brokers that answer do not reach controller 2: it says that it leads."
    )
    assert head_and_advice(lost(commits=False))[0].startswith("quorum UNREACHABLE"), "no majority follows it"


def test_nobody_is_told_to_replace_a_voter_which_may_be_all_that_is_left_of_a_rebuilt_quorum() -> None:
    """Brokers that followed the rebuilt quorum never follow old voters: theirs is the lower epoch."""
    led = quorum(1, 2, 3, down=(3,), observers=(key(8), key(9)))

    def advised(*fetching: int) -> str:
        silent = [
            progress(one.key, silent_ms=60_000) if one.key.id in {8, 9} - set(fetching) else one
            for one in led.progress
        ]
        found = health(replace(led, progress=tuple(silent)), LivenessLimits(), {1, 2, 3})
        return " ".join(text for _, text in sentences(found, brokers=both))

    both = KnownBrokers(frozenset((8, 9)))

    def alone(*others: ReplicaKey) -> str:
        found = health(quorum(1, 2, 3, down=(3,), observers=others), LivenessLimits(), {1, 2, 3})
        return " ".join(text for _, text in sentences(found, brokers=KnownBrokers()))

    assert advised(8, 9).startswith("Start controller 3 with its old disk. Or replace it.")
    # The leader lists who has fetched from it: not those that answer, and have followed another one all the time.
    asked = ControllersAsked(brokers=KnownBrokers(frozenset((7, 8))))
    unlisted = " ".join(text for _, text in sentences(health(led, LivenessLimits(), {1, 2, 3}), asked))
    fenced = ClusterHealth(quorum_finding(led), brokers_fenced=(7,))
    advice = cluster_advice(
        fenced, health(led, LivenessLimits(), {1, 2, 3}), None, (), (), brokers=asked.brokers
    )
    # Before anything that is said of brokers: old voters must not elect anybody.
    whole, network = advice.first[0].text, advice.then[0].text
    assert network.action.startswith("Mend the network of broker 7")
    assert whole.instead == "" and any(one.startswith("Do not replace") for one in whole.warnings)
    for text in (advised(8), advised(), alone(), unlisted):
        assert text.startswith("Before controller 3 starts, see whether") and "Or replace it" not in text, (
            text
        )
        assert "Do not replace, format or wipe 3: a rebuild on another host, not seen from here" in text, text
        assert "ktriage quorum evidence LOG_DIR" in text, text


def test_brokers_that_do_not_reach_who_leads_may_follow_a_rebuilt_quorum() -> None:
    """They must not be led to old voters, nor the one that is down be emptied."""
    never = "Do not replace, format or wipe 1: a rebuild on another host, not seen from here"
    for found in (lost(), lost(brokers={"broker 9": (address(1), address(3))})):
        text = ". ".join(found.sentences)
        assert never in text and "ktriage quorum evidence LOG_DIR" in text, text
        advice = head_and_advice(found)[1]
        assert never in advice and LEAD_NO_BROKER in advice, advice
        # Also where only the head is told, as by check and the hand-over.
        head = "\n".join(health_lines(ClusterHealth(quorum_finding(found))))
        assert f"Find out why first (ktriage quorum status). {LEAD_NO_BROKER}" in head, head
        assert ("belongs at gone:9093: then that one is started" in text) == bool(found.blind_brokers), text
    assert never not in ". ".join(lost(replaced=(key(2), key(3))).sentences)


def test_where_a_broker_names_a_controller_that_answers_the_cause_is_another() -> None:
    named = lost(brokers={"broker 9": (address(1), address(3))})
    assert named.sentences[1].startswith("The brokers that answer are cut off from it")


def test_a_leader_that_committed_nothing_leads_nobody() -> None:
    first, then = lost(commits=False).sentences
    assert "has committed nothing" in first
    assert "at the address that is registered for it (host2:9093)" in then


def test_a_controller_of_another_quorum_is_not_told_to_join_this_one() -> None:
    """It has a log of its own."""
    other = replace(quorum(7), leader=key(7), leader_epoch=2)
    answering = tuple(answers(node) for node in (1, 2, 3))
    settings = {"controller 7": ("host7:9093",), "broker 8": ("host7:9093",)}
    found = problems(quorum(1, 2, 3), ControllersAsked((*answering, answers(7, led=other)), settings))
    assert [problem for problem, _ in found] == [
        QuorumProblem.SEVERAL_QUORUMS,
        QuorumProblem.LEADER_NOT_NAMED,
    ]
    assert found[1][1].startswith("broker 8 will find no leader")


def test_a_leader_whose_epoch_is_far_behind_the_one_that_was_seen_leads_old_voters() -> None:
    seen = RememberedQuorum(1_003, "2026-01-01T00:00:00+00:00", ("host9:9093",), (key(9),))
    ((problem, text),) = seen.older(quorum(1, 2, 3))
    assert problem is QuorumProblem.OLDER_EPOCH
    assert text.startswith(
        "epoch 7 IS OLDER than epoch 1,003, in which this cluster's quorum was led at 2026"
    )
    assert "Stop controllers 1, 2 and 3" in text and "--bootstrap-controller host9:9093" in text
    assert seen.older(quorum(1, leader_epoch=1_004)) == ()


def test_the_rebuilt_voter_is_told_to_be_started_where_nothing_answers_at_its_address() -> None:
    """A command that asks it cannot succeed."""
    seen = RememberedQuorum(1_003, "2026-01-01T00:00:00+00:00", ("host9:9093",), (key(9),))
    down = ControllersAsked((AskedController("host9:9093", problem=REFUSED),))
    ((_, text),) = seen.older(quorum(1, 2, 3), down)
    assert "Nothing answers at host9:9093: start controller 9-dir9, the rebuilt quorum" in text, text
    assert "ktriage" not in text
    ((_, text),) = seen.older(quorum(1, 2, 3), ControllersAsked((answers(9),)))
    assert "ktriage quorum status --bootstrap-controller host9:9093" in text


def test_who_knows_the_rebuilt_quorum_is_not_led_to_an_address_where_an_old_voter_answers() -> None:
    """1 was made the only voter with a new disk; its first disk runs again, at the same address."""
    seen = RememberedQuorum(3_003, "2026-01-01T00:00:00+00:00", (address(1),), (ReplicaKey(1, "new"),))
    ((_, text),) = seen.older(quorum(1, 2, 3), ControllersAsked((answers(1),)))
    assert "Then start controller 1-new, the rebuilt quorum, with this disk" in text, text
    assert f"who answers at {address(1)} now may be an old voter" in text and "ktriage" not in text, text


def test_a_quorum_that_no_broker_follows_is_said_first_and_is_a_problem() -> None:
    """Every voter is up: a forbidden disk was started beside old voters."""
    led, brokers = quorum(1, 2, 3), KnownBrokers(frozenset((8, 9)))
    reading = QuorumReading(
        CLUSTER, health(led, LivenessLimits(), {1, 2, 3}), (), ControllersAsked(brokers=brokers)
    )
    first = next(verdict_lines(reading))
    assert first.startswith(
        "NO BROKER FOLLOWS THIS QUORUM: brokers 8 and 9 do not fetch from controller 1"
    ), first
    assert "On the hosts of brokers 8 and 9 ktriage quorum evidence LOG_DIR" in first, first
    assert "Only if a broker's log holds a rebuild that the log of controller 1 does not hold" in first, first
    assert first.endswith("(ktriage quorum evidence with both), stop controllers 1, 2 and 3"), first
    assert [one.problem for one in reading.findings] == [QuorumProblem.NOT_FOLLOWED]
    follows = health(quorum(1, 2, 3, observers=(key(8),)), LivenessLimits(), {1, 2, 3})
    assert replace(reading, health=follows).findings == ()


def test_the_voter_that_was_rebuilt_is_never_told_to_be_stopped_or_wiped() -> None:
    """The ordinary rebuild goes on with an old voter: its disk is the only one that holds the quorum."""
    old = quorum(1, 2, 3, down=(1,))
    rebuilt = quorum(1, leader_epoch=1_007)
    seen = RememberedQuorum(1_007, "2026-01-01T00:00:00+00:00", ("host1:9093",), rebuilt.voters.keys)
    ((_, text),) = seen.older(old)
    assert "Stop controllers 2 and 3, and move __cluster_metadata-0 out of their log dirs" in text, text
    advice = old_voters_advice(health(old, LivenessLimits()), seen)
    assert advice is not None and advice.action.startswith("Stop controllers 2 and 3: a rebuild"), advice
    # On another disk the node goes on, and the old disk must not.
    seen = seen._replace(voters=(ReplicaKey(1, "another"),))
    ((_, text),) = seen.older(old)
    disk = old.voters.voters[0].key.directory_id
    assert f"Stop controllers 1 (with the disk {disk}), 2 and 3, and move __cluster" in text, text


class OldVotersLead:
    """1 is down, and 2 leads 3 in an epoch from before the rebuild; these ``nodes`` answer."""

    def __init__(self, nodes: tuple[int, ...]) -> None:
        settings = Unknown(Why.NOT_ALLOWED, "")
        probes: dict[int, NodeProbe | Unknown] = {
            node: NodeProbe(address(node), CLUSTER, node, 2, (0, 1), 42, settings) for node in nodes
        }
        self.nodes = tuple(
            ClusterNode(node, ProcessRole.CONTROLLER, address(node), answer)
            for node, answer in ({1: REFUSED} | probes).items()
        )

    async def open(self) -> str:
        return CLUSTER

    async def describe(self) -> Quorum:
        raise NoLeader("nobody leads")

    async def every_address(self, _further: object) -> EveryAddress:
        led = replace(quorum(1, 2, 3, down=(1,)), leader=key(2))
        return EveryAddress((), self.nodes, {address(2): led})


async def test_an_old_disk_of_a_node_that_votes_again_leads_another_quorum(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """2 and 3 were formatted again and have votes; with the disks of before the rebuild they lead each other, and
    no broker is led there.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    again = tuple(voter(node, f"new{node}") for node in (2, 3))
    keys = (key(1), *(one.key for one in again))
    grown = replace(
        quorum(1, leader_epoch=1_007),
        voters=VoterSet((voter(1), *again)),
        progress=tuple(progress(one) for one in keys),
    )
    remember_voters(grown, voters(2, 3).voters)
    old_voters_lead = cast(Membership, OldVotersLead((2, 3)))
    without = await read_lost(old_voters_lead, CLUSTER, recall(CLUSTER, MEMORY))
    assert without.old_running == (2, 3) and without.leading is None and not without.up
    first = cluster_advice(ClusterHealth(quorum_finding(without)), None, without, (), ()).first[0].text
    assert first.action.startswith(
        "Stop controllers 2 and 3, then start 2 of 1, 2 and 3 with the disks that they had last"
    ), first
    assert "Never start 2 (with the disk dir2) or 3 (with the disk dir3)" in " ".join(first.warnings), first
    shown = "\n".join(lost_lines(without))
    assert shown.count("OLD DISK") == 2 and "controller.quorum.bootstrap.servers" not in shown, shown


async def test_without_the_rebuilt_voter_old_voters_that_lead_are_named_and_who_only_follows_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """1 is down; 2 and 3 lead with their old disks; 4 was formatted again after the rebuild, to be added."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    rebuilt = quorum(1, leader_epoch=1_007)
    remember_voters(rebuilt, voters(2, 3, 4).voters)
    old_voters_lead = cast(Membership, OldVotersLead((2, 3, 4)))
    without = await read_lost(old_voters_lead, CLUSTER, recall(CLUSTER, MEMORY))
    assert without.old_running == (2, 3)
    (problem,) = (await quorum_problems(old_voters_lead)).texts
    assert problem.startswith("controllers 2 and 3 lead a quorum of their own, which a rebuild replaced")
    assert "Stop controllers 2 and 3, and move __cluster_metadata-0 out of their log dirs" in problem
    told = list(guide_lines(without))
    assert any("Stop controllers 2 and 3, and move __cluster_metadata-0 out of" in text for text in told), (
        told
    )
    advice = cluster_advice(ClusterHealth(quorum_finding(without)), None, without, (), ()).first[0].text
    assert advice.action.startswith("Stop controllers 2 and 3, then start controller 1 with its disk"), advice
    assert (
        "  1. Stop controllers 2 and 3, then start controller 1 with its disk: a rebuild made it the only voter."
        in "\n".join(told)
    )
    assert advice.warnings[0].startswith("Stop controllers 2 and 3"), advice


def test_no_controller_of_a_quorum_that_was_rebuilt_away_is_to_be_started() -> None:
    """Of its old voters that run: one asks for them to be stopped, and nothing else asks for the third to start."""
    old = quorum(1, 2, 3, down=(3,), observers=(key(8),))
    plain = QuorumReading(CLUSTER, health(old, LivenessLimits(), {1, 2, 3}), ())
    start = "Start controller 3 with its old disk."
    assert any(text.startswith(start) for text in verdict_lines(plain))
    rebuilt = quorum(9, leader_epoch=1_007, leader=key(9))
    seen = RememberedQuorum(1_007, "2026-01-01T00:00:00+00:00", ("host9:9093",), (key(9),))
    for reading in (
        replace(plain, asked=ControllersAsked((answers(1), answers(9, led=rebuilt)))),
        replace(plain, earlier=seen),
    ):
        told = list(verdict_lines(reading))
        assert not any(start in text for text in told), told
        assert any("move __cluster_metadata-0 out of their log dirs" in text for text in told), told


def test_the_memory_of_a_rebuilt_quorum_is_kept_where_old_voters_lead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    rebuilt = quorum(9, leader_epoch=1_003, leader=key(9))
    remember_voters(rebuilt, voters(1, 2, 3).voters)
    remember_voters(quorum(1, 2, 3))
    saved = recall(CLUSTER, MEMORY)
    assert saved is not None and [voter["id"] for voter in saved["voters"]] == [9]
    remember_voters(replace(rebuilt, leader_epoch=1_004))
    saved = recall(CLUSTER, MEMORY)
    assert saved is not None and saved["leaderEpoch"] == 1_004
    seen = remembered_quorum(CLUSTER)
    assert seen is not None and seen.replaced == tuple(map(key, (1, 2, 3)))


def test_who_has_seen_the_rebuild_knows_the_quorum_that_goes_on_from_it_without_its_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where the log's beginning is gone, or may not be read."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    grown = quorum(1, 2, 3, down=(3,), leader_epoch=1_007)
    assert with_rebuild(grown, None, remembered_quorum(CLUSTER)).rebuilt_epoch is None
    remember_voters(replace(quorum(1, 2, 3, leader_epoch=1_004), rebuilt_epoch=1_003))
    remember_voters(quorum(1, 2, 3, leader_epoch=1_005))
    for asked in (grown, replace(grown, leader=key(2))):
        assert (
            with_rebuild(asked, Unknown(Why.NOT_ALLOWED, ""), remembered_quorum(CLUSTER)).rebuilt_epoch
            == 1_003
        )
    for other in (
        replace(grown, leader=ReplicaKey(1, "another")),
        replace(grown, leader_epoch=7),
        replace(grown, leader_epoch=2_010),
    ):
        assert with_rebuild(other, None, remembered_quorum(CLUSTER)).rebuilt_epoch is None, other


def test_who_was_seen_with_another_metadata_log_is_not_told_to_move_the_old_one_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A broker's log dir keeps the old directory id; it crashes once more, and nobody lists it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    led = quorum(1, leader_epoch=1_007, observers=(key(2, "new"),))
    remember_voters(led, voters(2, 3).voters)
    seen = remembered_quorum(CLUSTER)
    assert seen is not None and [one.id for one in seen.replaced] == [3]
    later = quorum(1, leader_epoch=1_008)
    remember_voters(later, voters(2, 3).voters)
    seen = remembered_quorum(CLUSTER)
    assert seen is not None and [one.id for one in seen.replaced] == [3]
    assert len(replaced_by_rebuild(recall(CLUSTER, MEMORY))) == 2, "its old address is asked all the same"
    # Its old disk starts again: it is to be stopped.
    remember_voters(quorum(1, leader_epoch=1_008, observers=(key(2),)), voters(2, 3).voters)
    seen = remembered_quorum(CLUSTER)
    assert seen is not None and [one.id for one in seen.replaced] == [2, 3]


async def test_a_quorum_that_was_rebuilt_in_the_place_of_this_one_is_remembered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever once saw both is told by every later command that asks the old voters alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    rebuilt = quorum(9, leader_epoch=1_007, leader=key(9))
    asked = ControllersAsked((answers(1), answers(9, led=rebuilt)))

    async def both_answer(*_: object) -> ControllersAsked:
        return asked

    monkeypatch.setattr("console.reading.remembered_voters.ask_every_controller", both_answer)
    old = QuorumReading(CLUSTER, health(quorum(1, 2, 3), LivenessLimits()), ())
    found = await reading_of_everybody(cast(Membership, None), old)
    seen = remembered_quorum(CLUSTER)
    assert seen is not None and seen.epoch == 1_007 and seen.addresses == ("host9:9093",)
    assert found.of_old_voters and seen.is_beyond(old.quorum)


async def test_a_broker_is_not_told_to_get_a_vote_where_no_controller_tells_who_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The controllers' listener wants TLS, and this user has none: who registered as a broker is a broker."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    asked = ControllersAsked((answers(1),), {}, KnownBrokers(frozenset((7, 8))))

    async def brokers_answer(*_: object) -> ControllersAsked:
        return asked

    monkeypatch.setattr("console.reading.remembered_voters.ask_every_controller", brokers_answer)
    of = quorum(1, observers=(key(7), key(8), key(9)))
    unknown = QuorumReading(CLUSTER, health(of, LivenessLimits()), REFUSED)
    assert "Give 7, 8 and 9 votes." in list(verdict_lines(unknown))
    found = await reading_of_everybody(cast(Membership, None), unknown)
    assert "Give 9 a vote." in list(verdict_lines(found))
