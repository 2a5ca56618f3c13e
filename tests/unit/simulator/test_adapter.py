"""What an operator sees and does at a simulated cluster, command after command."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path

import pytest

from backends.base.answers import Outcome
from backends.base.errors import NotAllowed, Unreachable
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.files import BUILT_IN, parse, read
from backends.simulator.session.state_file import StateError
from console.simulator_backend import state_file
from recovery.model import Lineage, ReplicaLog, Standing, TopicPartition, Unknown, Why
from recovery.ranking import Ranking
from tests.unit.simulator.operators import Record, backend, chosen, elect, survey

FOO = TopicPartition("payments", 0)


def _with(name: str, old: str, new: str) -> SimulatorBackend:
    text = (BUILT_IN / f"{name}.yaml").read_text(encoding="utf-8")
    assert old in text
    return SimulatorBackend(parse(text.replace(old, new, 1), name, name), 1)


async def test_the_cluster_id_can_belong_to_no_live_cluster() -> None:
    cluster = backend("stale-long-tail")
    info = await cluster.open()
    assert info.cluster_id == "simulated.stale-long-tail.1"
    with pytest.raises(ValueError, match=r"."):
        assert len(base64.urlsafe_b64decode(info.cluster_id + "==")) == 16
    assert cluster.simulated


def test_a_scenario_file_is_the_same_from_wherever_it_is_named_and_no_other_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (BUILT_IN / "stale-long-tail.yaml").read_text(encoding="utf-8")
    for directory in ("a", "b", "a-b"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "mine.yaml").write_text(text)
    (tmp_path / "a" / "b-mine.yaml").write_text(text)
    monkeypatch.chdir(tmp_path / "a")
    named = ("mine.yaml", "./mine.yaml", "../a/mine.yaml", str(tmp_path / "a" / "mine.yaml"))
    others = ("../b/mine.yaml", "../a-b/mine.yaml", "b-mine.yaml", "stale-long-tail")
    ours = {SimulatorBackend(read(name)).cluster_id for name in named}
    theirs = {SimulatorBackend(read(name)).cluster_id for name in others}
    assert (len(ours), len(theirs), ours & theirs) == (1, 4, set())
    assert len({state_file(read(name), 1) for name in named}) == 1
    assert len({state_file(read(name), 1) for name in (named[0], *others)}) == 5


async def test_the_last_record_keeps_what_a_choice_by_length_destroys() -> None:
    losses = {}
    for ranking in Ranking:
        cluster = backend("stale-long-tail")
        await cluster.open()
        rows = chosen(await survey(cluster), ranking=ranking)
        (election,) = await elect(cluster, rows)
        assert election.outcome is Outcome.ELECTED
        await cluster.advance(10)
        losses[ranking] = sum(lost.records for lost in cluster.simulation.checker.lost)
        await cluster.close()
    assert losses == {Ranking.LAST_RECORD: 0, Ranking.SPECIFICATION: 300}


async def test_replica_logs_are_told_natively_with_their_epochs() -> None:
    cluster = backend("stale-long-tail")
    await cluster.open()
    surveyed = await survey(cluster)
    (one,) = surveyed.surveys
    log = one.log(2)
    assert log is not None
    assert (log.leader_epoch, log.log_end_offset) == (4, 1300)
    assert isinstance(log.lineage, Lineage)
    assert log.lineage.last_epoch == 2
    contact = surveyed.contact(2)
    assert contact is not None
    assert "GetReplicaLogInfo (native)" in contact.call
    assert (await cluster.capabilities()).replica_logs == "GetReplicaLogInfo (native), epochs by Fetch"
    dead = one.replica(3)
    assert dead is not None
    assert isinstance(dead.log, Unknown)
    assert dead.log.why is Why.NOT_ANSWERED


async def test_a_fenced_broker_answers_and_cannot_be_chosen_and_another_is_out_of_reach() -> None:
    cluster = backend("one-sided-cuts")
    await cluster.open()
    surveyed = await survey(cluster)
    (one,) = surveyed.surveys
    fenced, unheard = one.replica(2), one.replica(3)
    assert fenced is not None
    assert unheard is not None
    assert fenced.standing is Standing.FENCED
    assert isinstance(fenced.log, ReplicaLog)
    assert unheard.standing is Standing.ELECTABLE
    assert isinstance(unheard.log, Unknown)
    assert chosen(surveyed) == []


async def test_what_was_elected_lasts_from_command_to_command(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    first = backend("last-replica-standing", state)
    await first.open()
    rows = chosen(await survey(first))
    record = Record()
    (election,) = await elect(first, rows, record)
    await first.close()
    assert election.outcome is Outcome.ELECTED
    assert [action for action, _ in record.before_] == ["elect"]

    second = backend("last-replica-standing", state)
    await second.open()
    (state_now,) = (await second.partitions()).states
    assert state_now.leader == 1
    (again,) = await elect(second, rows)
    assert again.outcome is Outcome.ALREADY_ONLINE
    await second.close()


async def test_reading_changes_nothing_so_that_every_command_comes_to_the_same_history(
    tmp_path: Path,
) -> None:
    """Opening replays what was sent, without what was read in between, and compares the histories."""
    state = tmp_path / "state.json"
    for step in range(5):
        cluster = backend("zone-power-loss", state)
        await cluster.open()
        rows = chosen(await survey(cluster))
        await cluster.log_dirs()
        await cluster.quorum()
        if step == 2:
            assert {election.outcome for election in await elect(cluster, rows)} == {Outcome.ELECTED}
        await cluster.advance(7)
        await cluster.close()
    cluster = backend("zone-power-loss", state)
    await cluster.open()
    assert cluster.simulation.offline() == ()
    await cluster.close()


async def test_two_commands_at_once_do_not_share_a_simulation(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    first, second = backend("stale-long-tail", state), backend("stale-long-tail", state)
    await first.open()
    with pytest.raises(StateError, match="another command"):
        await second.open()
    await first.close()
    await first.close()
    await second.open()
    await second.close()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1}', '{"format": 99}', "\x00\xff"])
async def test_a_state_that_is_none_is_refused_in_one_line_and_kept(tmp_path: Path, content: str) -> None:
    state = tmp_path / "state.json"
    state.write_text(content, encoding="latin-1")
    cluster = backend("stale-long-tail", state)
    with pytest.raises(StateError) as raised:
        await cluster.open()
    assert "\n" not in str(raised.value)
    # A reset would refuse it too: it may be anybody's.
    assert "move it away" in str(raised.value)
    assert state.read_text(encoding="latin-1") == content
    assert os.listdir(tmp_path) == ["state.json"]  # noqa: PTH208  # a look that blocks nobody
    state.unlink()
    await cluster.open()
    await cluster.close()


async def test_a_state_of_another_seed_or_another_history_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    cluster = backend("stale-long-tail", state)
    await cluster.open()
    await cluster.close()
    with pytest.raises(StateError, match="state of stale-long-tail, seed 1, not of stale-long-tail, seed 2"):
        await backend("stale-long-tail", state, seed=2).open()
    kept = json.loads(state.read_text())
    state.write_text(json.dumps({**kept, "history": "0" * 64}))
    with pytest.raises(StateError, match="another history"):
        await backend("stale-long-tail", state).open()


@pytest.mark.long
async def test_two_thousand_elections_go_out_in_batches_of_a_thousand() -> None:
    cluster = backend("offline-2000")
    await cluster.open()
    record = Record()
    elections = await elect(cluster, chosen(await survey(cluster)), record)
    assert len(elections) == 2000
    assert {election.outcome for election in elections} == {Outcome.ELECTED}
    assert [len(list(detail["rows"])) for _, detail in record.before_] == [1000, 1000]  # type: ignore[call-overload]  # rows


async def test_the_partitions_come_in_pages_and_none_is_missing() -> None:
    cluster = backend("offline-2000")
    await cluster.open()
    found = await cluster.partitions()
    assert len({state.tp for state in found.states}) == 3000
    named = await cluster.partitions(["orders-3", "nobody"])
    assert len(named.states) == 100
    assert [tp.topic for tp in named.unknown] == ["nobody"]


async def test_without_cluster_action_logs_are_read_as_released_kafka_offers_them_and_nothing_is_elected() -> (
    None
):
    allowed = backend("stale-long-tail")
    await allowed.open()
    rows = chosen(await survey(allowed))
    denied = 'operator: {at: 90, denied: ["CLUSTER_ACTION cluster", "ALTER cluster"]}'
    cluster = _with("stale-long-tail", "operator: {at: 90}", denied)
    await cluster.open()
    surveyed = await survey(cluster)
    log = surveyed.surveys[0].replicas[0].log
    assert isinstance(log, ReplicaLog)
    assert not any("GetReplicaLogInfo" in contact.call for contact in surveyed.contacts)
    (election,) = await elect(cluster, rows)
    assert election.outcome is Outcome.FAILED
    assert "not allowed" in election.detail
    with pytest.raises(NotAllowed):
        await cluster.elect(False, [FOO], Record())


async def test_an_operator_whom_nobody_answers_is_told_so() -> None:
    cluster = _with(
        "stale-long-tail", "operator: {at: 90}", "operator: {at: 90, cannot_reach: [brokers, controllers]}"
    )
    with pytest.raises(Unreachable, match="no bootstrap server"):
        await cluster.open()
    await cluster.close()


async def test_a_command_that_is_stopped_while_the_simulation_opens_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state.json"
    cluster = backend("offline-2000", state=state)
    opening = asyncio.create_task(cluster.open())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not opening.done()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert os.listdir(tmp_path) == ["state.json.lock"]  # noqa: PTH208  # a look that blocks nobody
    other = backend("offline-2000", state=state)
    await other.open()
    await other.close()


async def test_a_simulation_that_is_closed_while_it_opens_is_not_held(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    cluster = backend("last-replica-standing", state=state)
    opening = asyncio.create_task(cluster.open())
    await asyncio.sleep(0)
    await cluster.close()
    with pytest.raises(Unreachable, match="closed while it was being opened"):
        await opening
    other = backend("last-replica-standing", state=state)
    await other.open()
    await other.close()
