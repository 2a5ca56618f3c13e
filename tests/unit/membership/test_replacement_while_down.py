"""A replacement that is planned while a controller is down: sets that could not commit are not offered."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from backends.base.membership import ClusterNode, Controller, NodeProbe, ProcessRole
from backends.live.metadata_log import LiveMetadataLog
from backends.simulator.adapter import SimulatorBackend
from console.app.base.confirmed_change import Confirmed
from console.errors import NotDone
from console.jobs.quorum.change_voters import ChangeVoters
from console.jobs.quorum.prepared_change import RequestedVoter, VoterChange
from console.jobs.quorum.quorum_change_report import review_lines
from console.jobs.quorum.quorum_pane import voter_changes
from console.jobs.quorum.replace_controller import ReplaceController, ResumeReplacement
from console.jobs.quorum.replacement_plan import (
    ReplacementChoice,
    plan_replacement,
    refuse_possible_only_voter,
)
from console.jobs.quorum.replacement_run import save_replacement
from console.jobs.quorum.replacement_steps import Watcher
from console.reading.read_cluster import read_cluster
from console.reading.remembered_voters import quorum_or_lost
from console.simulator_backend import scenario
from recovery.cluster_health import ClusterHealth, quorum_finding
from recovery.membership.possible_only_voter import BrokersFollowing
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import NO_BROKER_ASKED, KnownBrokers, health
from recovery.membership.replacement import ReplacementError, ReplacementKind, ReplacementPlan, StepKind
from recovery.membership.replacement_safety import after
from recovery.membership.replacement_state import QuorumPicture, situation
from recovery.membership.voters import ReplicaKey
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import DecodedRecord
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.metadata_log.records import RegisterBrokerRecord
from recovery.model import Unknown, Why
from recovery.wording.cluster_advice import cluster_advice
from tests.unit.membership.quorums import CLUSTER, key, quorum
from tests.unit.membership.random_replacement import HEADER, cluster


async def with_102_down() -> SimulatorBackend:
    backend = cluster((100, 101, 102), (103, 104))
    await backend.open()
    backend.simulation.world.kill_controller(102)
    await backend.advance(5)
    return backend


async def planned(choice: ReplacementChoice) -> ReplacementPlan:
    backend = await with_102_down()
    return await plan_replacement(backend.membership, choice, HEADER)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (
            ReplacementChoice(ReplacementKind.SHRINK, (101,)),
            "102 is down or behind: bring it back or replace it first",
        ),
        (ReplacementChoice(ReplacementKind.DISK, (101,)), "nothing could be committed"),
        (
            ReplacementChoice(ReplacementKind.PLANNED, (100,), (103,)),
            "each restart would stop the quorum: 3 of 4 voters up",
        ),
        (ReplacementChoice(ReplacementKind.PLANNED, (102,), (103,)), "--why host"),
        (ReplacementChoice(ReplacementKind.SHRINK, (102,)), "ktriage quorum remove"),
    ],
)
async def test_what_cannot_be_gone_through_today_is_not_planned(choice: ReplacementChoice, said: str) -> None:
    with pytest.raises(ReplacementError) as refused:
        await planned(choice)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "choice",
    [
        ReplacementChoice(ReplacementKind.DISK, (102,)),
        ReplacementChoice(ReplacementKind.HOST, (102,), (103,)),
        ReplacementChoice(ReplacementKind.GROW, (), (103, 104)),
    ],
)
async def test_what_mends_it_is_planned_with_the_figures_of_today(choice: ReplacementChoice) -> None:
    plan = await planned(choice)
    quorum_now = await (await with_102_down()).membership.describe()
    told = [line for line in review_lines(plan, plan.steps[0], quorum_now) if "then:" in line]
    wanted = {
        ReplacementKind.DISK: [
            ("voters 100, 101:", "2 of 2 voters up"),
            ("voters 100, 101, 102:", "3 of 3 voters up"),
        ],
        ReplacementKind.HOST: [
            ("voters 100, 101, 102, 103:", "3 of 4 voters up"),
            ("voters 100, 101, 103:", "3 of 3 voters up"),
        ],
        ReplacementKind.GROW: [
            ("voters 100, 101, 102, 103:", "3 of 4 voters up"),
            ("voters 100, 101, 102, 103, 104:", "4 of 5 voters up"),
        ],
    }
    for line, text in zip(told, wanted[choice.kind], strict=True):
        assert all(part in line for part in text)


def _never(_planned: object, _stop: object) -> AbstractContextManager[Watcher]:
    raise AssertionError("nothing is carried out")


DO_NOT = "Do not replace, format or wipe 102: a rebuild on another host, not seen from here, may have made it"


async def test_a_voter_that_is_down_is_not_replaced_while_a_broker_does_not_follow(tmp_path: Path) -> None:
    """Neither by a new plan nor by one that was made while the brokers followed."""
    backend = cluster((100, 101, 102), brokers=(1, 2))
    await backend.open()
    backend.simulation.world.kill_controller(102)
    await backend.advance(5)
    choice = ReplacementChoice(ReplacementKind.DISK, (102,))
    plan = await plan_replacement(backend.membership, choice, HEADER)
    backend.simulation.world.kill_broker(2)
    await backend.advance(15)
    made = ReplaceController(plan, tmp_path / "plan.json", _never, "disk")
    asked = Confirmed(None, lambda *_: None, lambda *_: None)
    with pytest.raises(NotDone) as refused:
        await plan_replacement(backend.membership, choice, HEADER)
    with pytest.raises(NotDone) as later:
        await made.prepare(backend.membership, plan.wanted.cluster_id, asked)
    for one in (refused, later):
        assert DO_NOT in str(one.value) and "ktriage quorum evidence LOG_DIR" in str(one.value)
        assert "broker 2 is not seen to follow controller 10" in str(one.value)
        assert str(one.value).endswith(
            "where somebody has looked that nobody has rebuilt the quorum, give --not-rebuilt; nothing was sent"
        )
    looked = ReplacementChoice(ReplacementKind.DISK, (102,), not_rebuilt=True)
    assert await plan_replacement(backend.membership, looked, HEADER)
    assert await dataclasses.replace(made, not_rebuilt=True).prepare(
        backend.membership, plan.wanted.cluster_id, asked
    )
    backend.simulation.world.start_broker(2)
    await backend.advance(15)
    assert await plan_replacement(backend.membership, choice, HEADER)


FOLLOWS = quorum(100, 101, 102, down=(102,), observers=(key(3),), leader=key(101))
NOBODY = quorum(100, 101, 102, down=(102,), leader=key(101))
ALONE = KnownBrokers(frozenset((3,)))
REBUILT = KnownBrokers(frozenset((1, 2, 3)))
STOPPED = KnownBrokers(frozenset((3,)), frozenset((1, 2)))
REGISTERED = KnownBrokers(silent=frozenset((1, 2, 3)), asked=False)
DOWN = KnownBrokers(silent=frozenset((1, 2)))
REBUILT_FOLLOWS = dataclasses.replace(FOLLOWS, leader_epoch=1_007, rebuilt_epoch=1_003)
REBUILT_NOBODY = dataclasses.replace(NOBODY, leader_epoch=1_007, rebuilt_epoch=1_003)


@dataclasses.dataclass
class Looked:
    """``way``: part of the refusal to replace 102. ``cleared``: --not-rebuilt clears it. ``starts``: the advice
    begins with starting it.
    """

    led: Quorum
    brokers: KnownBrokers
    way: str = ""
    cleared: bool = True
    starts: bool = True
    leaving: int = 102


@pytest.mark.parametrize(
    "case",
    [
        Looked(FOLLOWS, ALONE),
        Looked(FOLLOWS, REBUILT, "brokers 1 and 2 are not seen to follow controller 101", False, False),
        Looked(FOLLOWS, REBUILT, leaving=100, cleared=False, starts=False),
        Looked(FOLLOWS, STOPPED, "brokers 1 and 2 are not seen to follow controller 101"),
        Looked(
            FOLLOWS, NO_BROKER_ASKED, "no broker was asked: whether they follow these voters is not known"
        ),
        Looked(NOBODY, REBUILT, "no broker follows controller 101", False, False),
        Looked(NOBODY, NO_BROKER_ASKED, "Ask the brokers: the same with --bootstrap-server", True, False),
        Looked(NOBODY, REGISTERED, "let one of brokers 1, 2 and 3 follow controller 101 first", False, False),
        Looked(NOBODY, DOWN, "let one of brokers 1 and 2 follow controller 101 first", False, False),
        Looked(REBUILT_FOLLOWS, REBUILT),
        Looked(REBUILT_FOLLOWS, NO_BROKER_ASKED),
        Looked(REBUILT_NOBODY, REBUILT, "was rebuilt after epoch 1,003. If it was not", False, False),
        Looked(FOLLOWS, KnownBrokers(frozenset((3,)), frozenset((102,)))),
        Looked(NOBODY, KnownBrokers(frozenset((100, 101)), frozenset((102,)))),
    ],
    ids=[
        "every broker follows",
        "brokers answer and follow another quorum",
        "the voter that leaves is up",
        "they were stopped, as was advised, and the leader lists them no more",
        "asked at a controller",
        "no broker follows",
        "no broker follows, asked at a controller",
        "no broker follows of those in the log, asked at a controller",
        "no broker follows, all are down",
        "the rebuilt quorum itself: brokers 1 and 2 do not know the addresses of the voters that lead",
        "the rebuilt quorum itself, asked at a controller",
        "the rebuilt quorum itself, and no broker follows: it may have been rebuilt once more",
        "the broker of the same process died with it",
        "combined nodes",
    ],
)
def test_one_broker_that_follows_old_voters_does_not_speak_for_the_others(case: Looked) -> None:
    """Broker 3 follows 101; 1 and 2 hold the log of a quorum that was rebuilt with 102."""
    found = health(case.led, LivenessLimits(), {100, 101, 102})
    following = BrokersFollowing(found, case.brokers)
    refused = following.refusal((case.leaving,))
    assert case.way in refused and bool(refused) == bool(case.way), refused
    assert not refused or DO_NOT in refused
    # Who says that nothing was rebuilt is contradicted by brokers that answer and follow others.
    assert following.refusal((case.leaving,), not_rebuilt=True) == ("" if case.cleared else refused)
    assert ("--not-rebuilt" in refused) == (case.cleared and bool(refused)), refused
    (change,) = (one for one in voter_changes(found, None, case.brokers) if one.name == "remove voter 102")
    doubted = 102 in following.possible_only_voters
    assert doubted == ("it may be the only voter" in change.why) == (not change.possible), change
    finding = ClusterHealth(quorum_finding(found.quorum))
    advice = cluster_advice(finding, found, None, (), (), brokers=case.brokers)
    (text,) = (one.text for one in (*advice.first, *advice.then))
    assert ("Or replace it" in text.instead) == (not doubted)
    assert text.action.startswith("Start controller 102") == case.starts, text
    told = " ".join(text.sentences)
    if not case.starts:
        # Beside old voters even its old disk loses its log, and they are stopped before.
        assert "Only if a broker's log holds a rebuild that the log of controller 101 does not hold" in told
        assert ", stop controllers 100 and 101; if not, start controller 102 with its old disk" in told
    # A broker that follows these voters has their log, whatever became of the others.
    assert (
        "hosts of brokers 1 and 2 ktriage quorum evidence LOG_DIR" in told
        or case.brokers
        not in (
            STOPPED,
            REBUILT,
        )
        or case.led is not FOLLOWS
    ), told


async def test_a_voter_that_may_be_the_only_one_is_not_removed_and_an_earlier_run_goes_not_on(
    tmp_path: Path,
) -> None:
    """The way round a replacement that is refused."""
    backend = cluster((100, 101, 102), brokers=(1, 2))
    cluster_id = await backend.membership.open()
    backend.simulation.world.kill_controller(102)
    await backend.advance(5)
    plan = await plan_replacement(backend.membership, ReplacementChoice(ReplacementKind.DISK, (102,)), HEADER)
    file = save_replacement(plan, tmp_path / "plan.json")
    backend.simulation.world.kill_broker(2)
    await backend.advance(15)
    asked: Any = Confirmed(None, lambda *_: None, lambda *_: None)
    removal = ChangeVoters(VoterChange.REMOVE, RequestedVoter(102), "gone", "here")
    resumed = ResumeReplacement(file, _never)
    for change in (removal, resumed):
        with pytest.raises(NotDone) as refused:
            await change.prepare(backend.membership, cluster_id, asked)
        assert DO_NOT in str(refused.value) and "broker 2 is not seen to follow" in str(refused.value)
        assert await dataclasses.replace(change, not_rebuilt=True).prepare(
            backend.membership, cluster_id, asked
        )


class QuorumWithLog:
    """A leader that describes ``led``; its metadata log holds ``rebuilt`` and registers brokers 1, 2 and 3, which
    answer where ``asks_brokers``.
    """

    simulated = True

    def __init__(self, led: Quorum, rebuilt: RebuiltLog | None = None, *, asks_brokers: bool = True) -> None:
        self.led, self.history, self.asks_brokers = led, MetadataHistory(), asks_brokers
        self.history.rebuilt = rebuilt
        for broker in (1, 2, 3):
            registered = RegisterBrokerRecord(broker, broker, "i", (), None, False, False, ())
            self.history.extend_decoded([DecodedRecord(broker, 0, broker, registered)])
        self.membership = self

    async def open(self) -> str:
        return self.led.cluster_id

    async def describe(self) -> Quorum:
        return self.led

    quorum = describe

    async def controllers(self) -> tuple[Controller, ...]:
        return tuple(Controller(node, "", 9093) for node in (100, 101, 102))

    async def nodes(self) -> tuple[ClusterNode, ...]:
        probe = NodeProbe("", CLUSTER, 1, -1, (0, 1), 42, Unknown(Why.NOT_ALLOWED, ""))
        return tuple(ClusterNode(node, ProcessRole.BROKER, "", probe) for node in (1, 2, 3))

    async def metadata_log(self) -> QuorumWithLog:
        return self

    async def read(self, progress: object = None) -> None:
        """All of it is there."""

    async def pause(self, _seconds: float) -> None:
        """No time passes."""


REBUILD = RebuiltLog(369, 372, 1_003, ())


async def test_a_voter_of_the_rebuilt_quorum_is_replaced_by_whoever_has_not_seen_the_rebuild(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Grown to three since; brokers 1 and 2 name only 102, which is down, and do not follow 101 therefore."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    led = dataclasses.replace(FOLLOWS, leader_epoch=1_007)
    rebuilt: Any = QuorumWithLog(led, REBUILD)
    await refuse_possible_only_voter(rebuilt, (102,))
    answer = await quorum_or_lost(rebuilt, led.cluster_id)
    assert isinstance(answer.quorum, Quorum) and answer.quorum.rebuilt_epoch == 1_003
    # Its log does not hold the rebuild: it may be the old voters' quorum.
    for other in (QuorumWithLog(led), QuorumWithLog(FOLLOWS, REBUILD)):
        unknown: Any = other
        with pytest.raises(NotDone, match="brokers 1 and 2 are not seen to follow controller 101"):
            await refuse_possible_only_voter(unknown, (102,), not_rebuilt=True)


async def test_a_reading_of_the_cluster_reads_the_log_that_tells_of_a_rebuild_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A controller and brokers are down: whether it was rebuilt, and since when partitions are offline."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("console.reading.remembered_voters.EPOCH_MARGIN", 0)
    opened: list[LiveMetadataLog] = []
    begin = LiveMetadataLog.__init__

    def counted(log: LiveMetadataLog, *arguments: Any) -> None:
        opened.append(log)
        begin(log, *arguments)

    monkeypatch.setattr(LiveMetadataLog, "__init__", counted)
    backend = SimulatorBackend(scenario("zone-power-loss"))
    await backend.open()
    backend.simulation.world.kill_controller(102)
    await backend.advance(5)
    reading = await read_cluster(backend, 10.0, 0.0)
    assert reading.health.quorum.dead_voters == (102,) and reading.offline_times.since
    assert len(opened) == 1


async def test_nothing_is_sent_to_voters_that_no_registered_broker_follows_whoever_has_looked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Old voters that came back, asked by --bootstrap-controller: their log tells which brokers there are."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    asked: Any = QuorumWithLog(NOBODY, asks_brokers=False)
    with pytest.raises(NotDone) as refused:
        await refuse_possible_only_voter(asked, (102,), not_rebuilt=True)
    assert "let one of brokers 1, 2 and 3 follow controller 101 first" in str(refused.value), refused
    asked.led = FOLLOWS
    await refuse_possible_only_voter(asked, (102,), not_rebuilt=True)


async def test_controllers_are_not_restarted_while_a_restart_would_stop_the_quorum() -> None:
    backend = cluster((1, 2, 3), (4,))
    await backend.open()
    plan = await plan_replacement(
        backend.membership, ReplacementChoice(ReplacementKind.PLANNED, (1,), (4,)), HEADER
    )
    step = next(step for step in plan.steps if step.kind is StepKind.SERVERS)
    servers = {"controller 2": ("elsewhere:1",), "broker 1": ("elsewhere:1",)}
    assert not situation(plan, step, QuorumPicture(quorum(1, 2, 3), servers)).blockers
    (held,) = situation(plan, step, QuorumPicture(quorum(1, 2, 3, down=(3,)), servers)).blockers
    assert "restarting a controller would stop the quorum" in held
    only_brokers = {"broker 1": ("elsewhere:1",)}
    assert not situation(plan, step, QuorumPicture(quorum(1, 2, 3, down=(3,)), only_brokers)).blockers


async def test_an_old_disk_beside_the_new_one_counts_as_the_one_that_is_down() -> None:
    backend = cluster((1, 2, 3), add_first=True)
    await backend.open()
    plan = await plan_replacement(backend.membership, ReplacementChoice(ReplacementKind.DISK, (3,)), HEADER)
    added = next(step for step in plan.steps if step.kind is StepKind.ADD)
    found = after(plan, added, quorum(1, 2, 3, down=(3,)), LivenessLimits())
    assert str(found) == "tolerates no more failures: 3 of 4 voters up, majority 3"
    assert found.down == (ReplicaKey(3, "dir3"),)


async def test_no_static_voter_is_taken_away_while_another_is_down() -> None:
    backend = cluster((100, 101, 102), kraft_version=0)
    await backend.open()
    backend.simulation.world.kill_controller(102)
    await backend.advance(5)
    with pytest.raises(ReplacementError, match=r"takes a voter away while another is down or behind: 102"):
        await plan_replacement(backend.membership, ReplacementChoice(ReplacementKind.DISK, (101,)), HEADER)
    assert await plan_replacement(backend.membership, ReplacementChoice(ReplacementKind.DISK, (102,)), HEADER)
