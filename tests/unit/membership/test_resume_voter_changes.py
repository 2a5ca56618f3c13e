"""``ktriage resume`` through controllers alone: what earlier runs sent to the quorum is looked for there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.command_process import Caller
from tests.unit.membership.controllers_only import BC, killed, reached
from tests.unit.membership.random_replacement import cluster


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


def test_nothing_is_unfinished(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    reached(monkeypatch, cluster((100, 101, 102)))
    ended = call("ktriage", "resume", *BC)
    assert (ended.status, ended.err) == (0, "")
    assert "no change of the voters is unfinished" in ended.out


def test_a_change_whose_end_is_not_known_is_looked_for_among_the_voters(
    call: Caller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    backend = cluster((100, 101, 102))
    cluster_id = reached(monkeypatch, backend)
    directory = backend.simulation.world.quorum.disks[102].key.directory_id
    killed(tmp_path, cluster_id, "remove-voter", {"voter": 102, "directoryId": directory})
    killed(tmp_path, cluster_id, "add-voter", {"voter": 102, "directoryId": directory})
    ended = call("ktriage", "resume", *BC)
    assert ended.status == 0, str(ended)
    assert f"remove-voter: 102-{directory} is a voter: the change was not made" in ended.err
    assert f"add-voter: 102-{directory} is a voter: the change was made" in ended.err
    assert "2 requests of earlier runs closed" in ended.out
    assert "no change of the voters is unfinished" in call("ktriage", "resume", *BC).out


def test_a_restore_is_named_without_a_command_that_no_controller_can_carry_out(
    call: Caller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster_id = reached(monkeypatch, cluster((100, 101, 102)))
    detail = {"directory": "/saved", "records": 5, "options": ["--to-source"]}
    killed(tmp_path, cluster_id, "restore-records", detail)
    for words in (("resume",), ("quorum", "status")):
        ended = call("ktriage", *words, *BC)
        assert "5 rescued records of /saved (--to-source)" in ended.out + ended.err, ended
        assert "next: ktriage restore" not in ended.err, ended
    assert "nothing is unfinished" not in call("ktriage", "resume", *BC).out


def test_what_only_brokers_can_tell_stays_open(
    call: Caller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster_id = reached(monkeypatch, cluster((100, 101, 102)))
    killed(tmp_path, cluster_id, "elect", {})
    ended = call("ktriage", "resume", *BC)
    assert ended.status == 1
    assert "give --bootstrap-server" in ended.err
    assert call("ktriage", "resume", *BC).status == 1
