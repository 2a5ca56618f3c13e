"""What is said first of a cluster: the worst known truth, and nothing well that was not seen to be."""

from __future__ import annotations

import pytest

from recovery.cluster_health import (
    ClusterHealth,
    QuorumFinding,
    QuorumState,
    cut_off,
    elects_uncleanly,
    quorum_finding,
    self_electing,
    troubled_brokers,
)
from recovery.membership.quorum import QuorumReplica, described
from recovery.membership.quorum_without_leader import NOT_KNOWN, QuorumWithoutLeader, VoterHost
from recovery.membership.voters import ReplicaKey, Voter, VoterSet
from recovery.model import Broker, Unknown, Why
from recovery.wording.cluster_health_text import brokers_badge, health_line, health_lines, quorum_badge
from tests.unit.recovery.surveys import SILENT, log, survey

LED = QuorumFinding(QuorumState.LED)
NO_LEADER = QuorumFinding(QuorumState.NO_LEADER)
REFUSED = Unknown(Why.NOT_ALLOWED, "needs DESCRIBE")
WELL = ClusterHealth(LED, offline=0, under_min_isr=0)
WORST = ClusterHealth(
    QuorumFinding(QuorumState.NO_LEADER, (100, 101)),
    brokers_down=(1, 2, 3),
    failed_dirs=1,
    offline=1_999,
    under_min_isr=20,
    self_electing=("logs",),
    unreachable_leaders=2,
    unseen=True,
)


def test_a_cluster_without_fault_is_well_and_says_so() -> None:
    assert WELL.well
    assert health_line(WELL) == "no partition offline"


@pytest.mark.parametrize(
    ("health", "line"),
    [
        (WELL._replace(quorum=NO_LEADER), "quorum NO LEADER"),
        (WELL._replace(quorum=QuorumFinding(QuorumState.CANNOT_COMMIT)), "quorum CANNOT COMMIT"),
        (WELL._replace(quorum=QuorumFinding(QuorumState.UNREACHABLE)), "quorum UNREACHABLE"),
        (
            WELL._replace(quorum=QuorumFinding(QuorumState.LED_BY_NON_VOTER), brokers_fenced=(1,)),
            "quorum LED BY A NON-VOTER · broker 1 fenced · no partition seen offline",
        ),
        (WELL._replace(quorum=QuorumFinding(QuorumState.OLD_VOTERS)), "quorum LED BY OLD VOTERS"),
        (
            WELL._replace(quorum=QuorumFinding(QuorumState.UNKNOWN)),
            "quorum unknown · no partition seen offline",
        ),
        (WELL._replace(brokers_down=(3,), offline=4), "broker 3 down · 4 offline"),
        (
            WELL._replace(quorum=QuorumFinding(QuorumState.LED, (100, 101))),
            "voters 100, 101 down · no partition offline",
        ),
        (
            WELL._replace(failed_dirs=1, under_min_isr=2),
            "1 disk failed · 2 under min ISR · no partition offline",
        ),
        (WELL._replace(brokers_down=(1, 2, 3, 4, 5)), "5 brokers down · no partition offline"),
        (
            WELL._replace(offline=2, self_electing=("a", "b")),
            "2 offline · 2 topics elect uncleanly by themselves",
        ),
        (
            WELL._replace(unreachable_leaders=2),
            "2 with a leader not on this listener · no partition seen offline",
        ),
        (WELL._replace(unseen=True), "no partition seen offline"),
    ],
)
def test_the_worst_stands_first_and_is_not_well(health: ClusterHealth, line: str) -> None:
    assert not health.well
    assert health_line(health) == line


def test_partitions_that_were_not_all_read_are_not_called_well() -> None:
    assert health_line(WELL._replace(offline=None)) == ""


@pytest.mark.parametrize("caveat", ["picture 45 s old", "cluster LOST, last picture of 12:34:56 UTC"])
def test_an_old_picture_says_how_old_and_calls_nothing_well(caveat: str) -> None:
    assert health_line(WELL, caveat) == caveat
    assert health_line(WELL._replace(offline=4), caveat) == f"{caveat} · 4 offline"


@pytest.mark.parametrize("width", range(36, 200))
def test_what_matters_most_is_left_at_every_width(width: int) -> None:
    line = health_line(WORST, width=width)
    assert len(line) <= width
    assert line.startswith("quorum NO LEADER")
    assert "1,999 offline" in line


def test_disks_and_brokers_are_named_before_counts_that_matter_less() -> None:
    line = health_line(WORST, width=79)
    assert line == "quorum NO LEADER · brokers 1, 2, 3 down · 1 disk failed · 1,999 offline · …"


NIGHT = ClusterHealth(
    QuorumFinding(QuorumState.LED, (100,), new_disks=(100,)),
    brokers_down=(3,),
    offline=0,
    disks_to_read=(3,),
    under_min_isr=2,
    under_replicated=12,
)


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (
            160,
            "controller 100 without a vote · broker 3 down · read the disk of 3 before it starts · 2 under min ISR"
            " · 12 more under-replicated · no partition offline",
        ),
        (
            115,
            "controller 100 no vote · broker 3 down · read disk of 3 first · 2 under min ISR · 12 more under-repl."
            " · 0 offline",
        ),
        (79, "controller 100 no vote · broker 3 down · read disk of 3 first · 0 offline · …"),
    ],
)
def test_words_are_shortened_before_a_count_is_left_out(width: int, line: str) -> None:
    assert health_line(NIGHT, width=width) == line


@pytest.mark.parametrize("width", range(36, 150))
def test_nothing_is_left_out_where_all_of_it_has_room_in_few_words(width: int) -> None:
    all_short = "controller 100 no vote · broker 3 down · 1 under min ISR · 3 more under-repl. · 0 offline"
    health = NIGHT._replace(disks_to_read=(), under_min_isr=1, under_replicated=3)
    line = health_line(health, width=width)
    assert len(line) <= width
    assert line.endswith("…") == (width < len(all_short))


def test_eighty_columns_have_every_count_after_an_election() -> None:
    elected = WELL._replace(brokers_down=(3,), disks_to_read=(3,), under_replicated=1)
    line = "broker 3 down · read the disk of 3 before it starts · 1 under-repl. · 0 offline"
    assert health_line(elected, width=79) == line
    failed = elected._replace(brokers_down=(), failed_dirs=1)
    assert "read the disk" not in health_line(failed), "its broker is up: no start is waited for"
    assert "1 disk failed · read disk of 3 first" in health_line(failed)


def test_silence_is_not_taken_for_a_quorum_that_nobody_leads() -> None:
    for why in (Why.NOT_ANSWERED, Why.FAILED):
        assert quorum_finding(Unknown(why, "")) == QuorumFinding(QuorumState.UNREACHABLE)


def test_a_refusal_says_nothing_about_the_quorum() -> None:
    for why in (Why.NOT_ALLOWED, Why.NOT_OFFERED):
        assert quorum_finding(Unknown(why, "")).state is QuorumState.UNKNOWN


def test_a_quorum_that_was_not_asked_yet_is_no_alarm() -> None:
    found = quorum_finding(None)
    assert found.state is QuorumState.NOT_ASKED
    assert quorum_badge(found) == ""
    early = WELL._replace(quorum=found)
    assert health_line(early) == "quorum not asked · no partition seen offline"
    assert not early.urgent and not early.well


def fetched(number: int, at: int) -> QuorumReplica:
    return QuorumReplica(ReplicaKey(number, f"d{number}"), 500, at, at)


def test_a_described_quorum_leads_where_a_majority_is_up_and_names_who_is_not() -> None:
    up, gone = fetched(101, 90_000), fetched(102, 1_000)
    voters = VoterSet(tuple(Voter(ReplicaKey(n, f"d{n}")) for n in (100, 101, 102)))
    told = described(
        "c", voters, (fetched(100, 90_000), up, gone), leader_id=100, leader_epoch=1, high_watermark=499
    )
    assert quorum_finding(told) == QuorumFinding(QuorumState.LED, (102,))
    assert quorum_badge(quorum_finding(told)) == "1 down"
    silent = described(
        "c", voters, (fetched(100, 90_000),), leader_id=100, leader_epoch=1, high_watermark=499
    )
    found = quorum_finding(silent)
    assert found == QuorumFinding(QuorumState.CANNOT_COMMIT, (101, 102)), "nobody has told of the others"
    assert quorum_badge(found) == "CANNOT COMMIT"


def hosts(states: str) -> tuple[VoterHost, ...]:
    """A letter a voter, from 100 on: Answers and does not lead, Stopped (its port refuses), ? no answer."""
    return tuple(
        VoterHost(
            ReplicaKey(n, f"d{n}"), f"c{n}:9093", one == "A", "", NOT_KNOWN, NOT_KNOWN, stopped=one == "S"
        )
        for n, one in enumerate(states, 100)
    )


@pytest.mark.parametrize(
    ("states", "certain", "state", "dead"),
    [
        ("ASS", True, QuorumState.NO_LEADER, (101, 102)),
        ("AAA", True, QuorumState.NO_LEADER, ()),  # an election is under way
        ("S?S", True, QuorumState.NO_LEADER, (100, 102)),  # one that may run is no majority
        ("A?S", True, QuorumState.UNREACHABLE, (102,)),  # 101 may lead with 100's vote
        ("A??", True, QuorumState.UNREACHABLE, ()),
        ("???", True, QuorumState.UNREACHABLE, ()),  # this side is cut off, or all are dead
        ("S?S", False, QuorumState.UNREACHABLE, (100, 102)),  # 101 may be the only voter
        ("ASS", False, QuorumState.NO_LEADER, (101, 102)),
        ("", False, QuorumState.UNREACHABLE, ()),
    ],
)
def test_nobody_leads_only_where_nobody_can(
    states: str, certain: bool, state: QuorumState, dead: tuple[int, ...]
) -> None:
    lost = QuorumWithoutLeader("c", hosts(states), certain, "")
    assert quorum_finding(lost) == QuorumFinding(state, dead)
    assert ("cut off" in lost.sentence) == (state is QuorumState.UNREACHABLE and bool(states))


def test_a_broker_that_gets_no_new_metadata_tells_no_all_clear() -> None:
    voters = VoterSet((Voter(ReplicaKey(100, "d100")),))
    seen = (fetched(100, 90_000), fetched(1, 89_000), fetched(2, 80_000))
    told = described("c", voters, seen, leader_id=100, leader_epoch=1, high_watermark=499)
    assert [cut_off(told, broker) for broker in (1, 2, 3, -1)] == [None, 2, 3, None]
    assert cut_off(REFUSED, 2) is None
    old = WELL._replace(cut_off=2)
    assert not old.well and old.urgent and not old.sees_all
    assert list(health_lines(old)) == [
        "old metadata, of broker 2",
        "Broker 2 is cut off from the controllers: leaders and ISRs are shown as it last knew them. Ask other"
        " brokers (--bootstrap-server).",
    ]


BROKERS = tuple(Broker(i, f"kafka-{i}", 9092, None, False) for i in (1, 2, 3))


def test_a_broker_is_down_that_is_fenced_and_does_not_answer_and_no_other() -> None:
    fenced = (*BROKERS[:2], BROKERS[2]._replace(fenced=True))
    assert troubled_brokers(fenced, {}, {}) == ((), (3,), ()), "it was not asked"
    assert troubled_brokers(fenced, {3: SILENT}, {}) == ((3,), (), ())
    assert troubled_brokers(BROKERS, {1: None, 2: SILENT}, {3: REFUSED}) == ((), (), (2,))
    assert troubled_brokers(BROKERS, {1: None}, {3: SILENT}) == ((), (), (3,))


def test_a_broker_that_only_we_or_only_the_controllers_do_not_reach_is_not_called_down() -> None:
    fenced = (*BROKERS[:2], BROKERS[2]._replace(fenced=True))
    late = Unknown(Why.NOT_ANSWERED, "no answer within 3 s")
    assert troubled_brokers(fenced, {1: None, 2: late, 3: None}, {}) == ((), (3,), (2,))
    told = WELL._replace(brokers_fenced=(3,), brokers_unreached=(2,))
    assert not told.well
    line = "broker 3 fenced · broker 2 not reached from here; the controller says that it is up"
    assert health_line(told) == f"{line} · no partition offline"
    assert health_line(told, width=79) == "broker 3 fenced · broker 2 not reached · no partition offline"
    nobody = health_line(told._replace(quorum=NO_LEADER))
    assert nobody == "quorum NO LEADER · broker 3 fenced · broker 2 not reached", (
        "there is no controller that says so"
    )


def test_a_fenced_broker_that_an_older_release_does_not_list_is_down() -> None:
    offline = survey({1: log((0, 0, 10)), 2: log((0, 0, 10)), 3: SILENT}, isr=(1, 2)).state
    listed = tuple(broker._replace(fenced=None) for broker in BROKERS[:2])
    assert troubled_brokers(listed, {}, {}, (offline,)).down == (3,)
    last_member = offline._replace(leader=-1, isr=(3,))
    assert troubled_brokers(listed, {}, {}, (last_member,)).down == (3,), "the ISR keeps its last member"


def test_a_topic_that_elects_uncleanly_is_named_only_where_it_was_read() -> None:
    offline = survey({1: SILENT}).state
    enabled = {"unclean.leader.election.enable": "true"}
    assert self_electing((offline,), {"t": enabled}) == ("t",)
    assert self_electing((offline,), {"t": {"unclean.leader.election.enable": "false"}}) == ()
    assert self_electing((offline,), {"t": REFUSED}) == ()
    assert elects_uncleanly(enabled) and not elects_uncleanly(None)


def test_a_controller_that_is_down_and_known_by_its_address_only_is_named_by_it() -> None:
    gone = VoterHost(ReplicaKey(-1, ""), "127.0.0.1:9093", False, "", NOT_KNOWN, NOT_KNOWN, stopped=True)
    lost = QuorumWithoutLeader("c", (gone,), False, "")
    found = quorum_finding(lost)
    # A controller that was added later is in no broker's settings, and may lead.
    assert found == QuorumFinding(QuorumState.UNREACHABLE, (), ("127.0.0.1:9093",))
    assert health_line(ClusterHealth(found)) == "quorum UNREACHABLE · controller 127.0.0.1:9093 down"
    assert "-1" not in lost.sentence
    assert "takes: 127.0.0.1:9093" in lost.sentence


def test_a_broker_that_refuses_to_tell_is_not_said_to_be_out_of_reach() -> None:
    brokers = [Broker(number, "h", 9092, None, fenced=False) for number in (1, 2, 3)]
    silent = Unknown(Why.NOT_ANSWERED, "timed out")
    found = troubled_brokers(brokers, {1: REFUSED, 2: silent, 3: None}, {1: REFUSED})
    assert (found.down, found.fenced, found.unreached) == ((), (), (2,))


@pytest.mark.parametrize(
    ("health", "badge"),
    [
        (WELL, ""),
        (WELL._replace(brokers_down=(2,)), "1 down"),
        (WELL._replace(brokers_fenced=(2, 3)), "2 fenced"),
        (WELL._replace(brokers_unreached=(2,)), "1 not reached"),
        (WELL._replace(brokers_down=(1,), brokers_fenced=(2,)), "2 not up"),
        (WELL._replace(brokers_down=(1,), brokers_fenced=(2,), brokers_unreached=(3,)), "3 in trouble"),
    ],
)
def test_the_tab_of_the_brokers_says_how_many_are_not_up(health: ClusterHealth, badge: str) -> None:
    assert brokers_badge(health) == badge


def test_a_leader_whose_log_is_empty_is_told_where_nothing_is_offline() -> None:
    """Its partition counts as online, and all that was acknowledged is elsewhere."""
    health = WELL._replace(brokers_down=(1,), under_replicated=1, empty_on_leader=1)
    assert "1 EMPTY on the leader" in health_line(health)
    assert "1 EMPTY" in health_line(health, width=40)
    assert health.urgent and not WELL._replace(empty_on_leader=1).well
