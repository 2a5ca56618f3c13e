"""A state directory that operators share: named by an option, a profile or the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from console import paths
from console.change.own_changes import own_changes
from console.journal.journal import Journal
from console.journal.state_access import SHARED
from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import CLUSTER_ID, MemoryBackend, cluster_of
from tests.unit.cli.planned_orders import AGREED, ANY, planned, sent
from tests.unit.journal.runs import Clock, row, run

LOOK = ("ktriage", "journal", "--cluster-id", CLUSTER_ID, "--output", "json")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    paths.use_state_dir(None)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    made = tmp_path / "srv"
    made.mkdir()
    made.chmod(0o2770)
    return made


def runs(call: Caller, *arguments: str) -> list[str]:
    return [told["run"] for told in json.loads(call(*LOOK, *arguments).out)["runs"]]


def applied(call: Caller, *arguments: str) -> MemoryBackend:
    backend = cluster_of(1)
    plan = planned(call, backend)
    ended = call("ktriage", "apply", *arguments, plan, *AGREED)
    assert ended.status == 0, str(ended)
    return backend


def test_the_option_names_where_the_journal_is_and_the_next_command_has_it(
    call: Caller, shared: Path
) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    ended = call("ktriage", "apply", *ANY, "--state-dir", str(shared), plan, *AGREED, "--first", "1")
    assert ended.status == 0, str(ended)
    assert f"--state-dir {shared}" in ended.err
    assert len(runs(call, "--state-dir", str(shared))) == 1
    assert runs(call) == [], "another operator who shares nothing does not see it"


def test_the_profile_names_it_and_the_option_wins(call: Caller, shared: Path, tmp_path: Path) -> None:
    settings = call.home / "config" / "ktriage" / "clusters.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"clusters:\n  production:\n    bootstrap: kafka:9092\n    state-dir: {shared}\n")
    applied(call, "--cluster", "production")
    assert len(runs(call, "--state-dir", str(shared))) == 1
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    (call.home / "plan.json").unlink()
    applied(call, "--cluster", "production", "--state-dir", str(other))
    assert len(runs(call, "--state-dir", str(shared))) == 1
    assert len(runs(call, "--state-dir", str(other))) == 1


def test_the_environment_names_it_too(call: Caller, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAGE_STATE_DIR", str(shared))
    applied(call, *ANY)
    assert len(runs(call)) == 1
    assert any(shared.glob("*/*.jsonl"))


def test_what_another_operator_left_open_is_found_and_another_run_keeps_out(
    call: Caller, shared: Path
) -> None:
    backend = cluster_of(1)
    tp = row().tp
    backend.states[tp] = backend.states[tp]._replace(topic_id=row().topic_id)
    plan = planned(call, backend)
    theirs = Journal.open(CLUSTER_ID, run(), Clock(), shared, SHARED)
    theirs.before("reorder", {"rows": (row(),)})
    locked = call("ktriage", "apply", *ANY, "--state-dir", str(shared), plan, *AGREED)
    assert locked.status == 1
    assert "pid 4711 of ann on ops1" in locked.err
    theirs._lock.release()
    left = call("ktriage", "apply", *ANY, "--state-dir", str(shared), plan, *AGREED)
    assert left.status == 1
    assert "an earlier run is unfinished" in left.err
    assert f"ktriage resume --bootstrap-server kafka:9092 --state-dir {shared}" in left.err
    assert sent(backend) == 0
    backend.states[tp] = backend.states[tp]._replace(replicas=row().order)
    resumed = call("ktriage", "resume", *ANY, "--state-dir", str(shared))
    assert resumed.status == 0, resumed
    assert [reverted.tp for reverted in backend.reverted] == [tp]
    assert backend.states[tp].replicas == row().replicas


@pytest.mark.parametrize(
    ("mode", "said"), [(None, "install -d -m 2770"), (0o777, "everybody can write"), (0o770, "chmod 2770")]
)
def test_a_directory_that_cannot_be_shared_is_refused_in_one_line(
    call: Caller, tmp_path: Path, mode: int | None, said: str
) -> None:
    directory = tmp_path / "srv"
    if mode is not None:
        directory.mkdir()
        directory.chmod(mode)
    backend = cluster_of(1)
    plan = planned(call, backend)
    ended = call("ktriage", "apply", *ANY, "--state-dir", str(directory), plan, *AGREED)
    assert ended.status == 2
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1
    assert sent(backend) == 0


@pytest.mark.parametrize("command", ["apply", "resume", "journal"])
def test_a_file_instead_of_a_directory_is_refused_in_one_line(
    call: Caller, tmp_path: Path, command: str
) -> None:
    file = tmp_path / "srv"
    file.write_text("")
    plan = planned(call, cluster_of(1))
    words = {"apply": (*ANY, plan, *AGREED), "resume": ANY, "journal": ()}[command]
    ended = call("ktriage", command, *words, "--state-dir", str(file))
    assert ended.status == 2, ended
    assert f"{file}: not a directory" in ended.err
    assert len(ended.err.splitlines()) == 1


def test_for_a_directory_of_the_whole_host_the_advice_is_not_to_change_its_mode(
    call: Caller, tmp_path: Path
) -> None:
    directory = tmp_path / "tmp"
    directory.mkdir()
    directory.chmod(0o1777)
    plan = planned(call, cluster_of(1))
    ended = call("ktriage", "apply", *ANY, "--state-dir", str(directory), plan, *AGREED)
    assert ended.status == 2
    assert "everybody can write there (mode 1777)" in ended.err
    assert f"install -d -m 0700 {directory}/ktriage" in ended.err
    assert "chmod" not in ended.err


def test_a_directory_that_is_missing_stops_no_look_at_the_cluster_and_is_no_empty_journal(
    call: Caller, tmp_path: Path
) -> None:
    missing = ("--state-dir", str(tmp_path / "not-mounted"))
    backend = cluster_of(1)
    for name in ("replicas", "status"):
        looked = call.on(backend)("ktriage", name, *ANY, *missing)
        assert looked.status in (0, 1) and looked.out
        assert "whether an earlier run left something unfinished is not known" in looked.err
        assert "not-mounted" in looked.err
    for command in (("journal", "--cluster-id", CLUSTER_ID), ("journal",), ("resume", *ANY)):
        ended = call("ktriage", *command, *missing)
        assert ended.status == 2, str(ended)
        assert "not-mounted" in ended.err


def test_the_next_person_on_call_gets_the_hand_over_without_the_journal_and_no_report_claims_to_be_whole(
    call: Caller, tmp_path: Path
) -> None:
    missing = ("--simulate", "last-replica-standing", "--state-dir", str(tmp_path / "not-mounted"))
    page = call("ktriage", "handover", *missing)
    assert page.status == 0, page
    assert "The journal was not read" in page.out and "not-mounted" in page.out
    assert "Whether a run left something unfinished is not known" in page.out
    assert "Nothing was sent from this host" not in page.out
    report = call("ktriage", "report", *missing)
    assert report.status == 2 and report.out == "", report


@pytest.mark.usefixtures("call")
def test_the_metadata_log_is_shown_without_the_marks_of_a_journal_that_cannot_be_read(tmp_path: Path) -> None:
    assert own_changes(CLUSTER_ID)[1] == ()
    paths.use_state_dir(tmp_path / "not-mounted")
    _, (why,) = own_changes(CLUSTER_ID)
    assert "not marked" in why and "not-mounted" in why


def test_check_says_before_an_incident_that_nothing_could_be_recorded(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = ("ktriage", "check", "--simulate", "controller-auto-join")
    well = call(*healthy)
    assert "nothing can be changed from here" not in well.err
    missing = call(*healthy, "--state-dir", str(tmp_path / "not-mounted"))
    assert missing.status == 1 and missing.out, missing
    assert "nothing can be changed from here" in missing.err and "not-mounted" in missing.err
    # Tests may run as root, who may write everywhere.
    monkeypatch.setattr(os, "access", lambda *_: False)
    (tmp_path / "theirs").mkdir(mode=0o700)
    theirs = call(*healthy, "--state-dir", str(tmp_path / "theirs"))
    assert f"{tmp_path / 'theirs'}: this user cannot write there" in theirs.err, theirs
    assert theirs.status == 1


def test_the_console_opens_to_look_although_the_directory_is_missing(call: Caller, tmp_path: Path) -> None:
    """Here it has no terminal: it came as far as that."""
    ended = call("ktriage", *ANY, "--state-dir", str(tmp_path / "not-mounted"))
    assert "the console needs a terminal" in ended.err and "not-mounted" not in ended.err


def test_a_journal_of_a_newer_version_stops_no_look_at_the_cluster(call: Caller, shared: Path) -> None:
    where = ("--state-dir", str(shared))
    with Journal.open(CLUSTER_ID, run(), Clock(), shared, SHARED) as theirs:
        path = theirs.path
    path.write_text(path.read_text().replace('"v":1', '"v":2', 1))
    for name in ("replicas", "status"):
        looked = call.on(cluster_of(1))("ktriage", name, *ANY, *where)
        assert looked.out and looked.status in (0, 1)
        assert "whether an earlier run left something unfinished is not known" in looked.err
        assert "use the one that wrote it" in looked.err
        assert "next: ktriage" in looked.err, looked.err
    assert call.on(cluster_of(1))("ktriage", "resume", *ANY, *where).status == 1


def test_a_journal_that_cannot_be_read_is_no_empty_one(call: Caller, shared: Path) -> None:
    """A file stands in for a directory that this user may not read: root may read all."""
    (shared / CLUSTER_ID).write_text("")
    where = ("--state-dir", str(shared))
    looked = call.on(cluster_of(1))("ktriage", "status", *ANY, *where)
    assert "whether an earlier run left something unfinished is not known" in looked.err
    ended = call("ktriage", "journal", "--cluster-id", CLUSTER_ID, *where)
    assert ended.status == 1 and f"{shared / CLUSTER_ID}: cannot be read" in ended.err
