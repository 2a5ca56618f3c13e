"""What a run records: before anything goes out, on disk, once, readable later, by nobody else."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from backends.base.answers import Election, Outcome
from console.journal.errors import JournalError, JournalLocked
from console.journal.journal import Journal, cluster_directory, running
from console.journal.run_records import (
    EntriesSettled,
    EntryBegun,
    EntryEnded,
    read_run,
    read_runs,
    read_unsettled_runs,
    unread_lines,
)
from recovery.model import TopicPartition
from tests.unit.journal.killed_process import listened
from tests.unit.journal.runs import CLUSTER, Clock, journal, row, run


def test_a_run_is_told_from_its_first_to_its_last_line(tmp_path: Path) -> None:
    with journal(tmp_path) as written:
        entry = written.before("reorder", {"rows": (row(0), row(1)), "attempt": 2})
        written.after(entry, {"applied": [row(0).tp], "refused": {row(1).tp: "INVALID_REPLICA_ASSIGNMENT"}})
        written.settle("gone", entries=["old/3"], rows=[TopicPartition("x", 9)])
        written.close(0)
    (told,) = read_runs(CLUSTER, tmp_path)
    assert (told.run_id, told.ended, told.status) == ("run-1", True, 0)
    assert told.header["command"] == ["ktriage", "apply", "plan.json"]
    assert {told.header[key] for key in ("user", "host", "reason")} == {"ann", "ops1", "INC-7"}
    before, after, settled = told.events
    assert before == EntryBegun(
        "run-1/1", "2026-01-31T12:00:03.000Z", "reorder", (row(0), row(1)), {"attempt": 2}
    )
    assert isinstance(after, EntryEnded)
    assert after.applied == {("orders", 0)}
    assert after.refused == {("orders", 1): "INVALID_REPLICA_ASSIGNMENT"}
    assert isinstance(settled, EntriesSettled)
    assert settled.entries == {"old/3"}
    assert settled.rows == {TopicPartition("x", 9)}


def test_an_intention_is_in_the_file_when_before_returns(tmp_path: Path) -> None:
    written = journal(tmp_path)
    entry = written.before("elect", {"rows": (row(),)})
    assert [event.entry for event in read_run(written.path).events if isinstance(event, EntryBegun)] == [
        entry
    ]
    written.close()


def test_an_intention_is_on_disk_before_its_call_returns_and_an_end_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power loss cannot be had in a test: the order of the calls stands for it."""
    written = journal(tmp_path)
    calls: list[str] = []
    for name in ("write", "fsync"):
        monkeypatch.setattr(os, name, listened(calls, name, getattr(os, name)))
    entry = written.before("elect", {})
    assert calls == ["write", "fsync"]
    written.after(entry, {})
    assert calls == ["write", "fsync", "write"]
    written.before("revert", {})
    assert calls == ["write", "fsync", "write", "write", "fsync"]
    monkeypatch.undo()
    written.close()


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    with journal(tmp_path / "state" / "ktriage") as written:
        assert stat.S_IMODE(written.path.stat().st_mode) == 0o600
        for directory in (written.path.parent, *written.path.parents[1:3]):
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_each_run_has_a_file_of_its_own_in_the_order_of_the_runs(tmp_path: Path) -> None:
    for number in range(12):
        journal(tmp_path, f"run-{12 - number}").close(number)
    assert [told.run_id for told in read_runs(CLUSTER, tmp_path)] == [f"run-{12 - n}" for n in range(12)]


def test_a_second_run_for_the_same_cluster_is_told_who_holds_it(tmp_path: Path) -> None:
    with journal(tmp_path):
        with pytest.raises(JournalLocked) as caught:
            journal(tmp_path, "run-2")
        message = str(caught.value)
        assert "pid 4711 of ann on ops1 since 2026-01-31T12:00:01.000Z: ktriage apply plan.json" in message
        assert "nothing was sent" in message
        Journal.open("another cluster", run(), Clock(), tmp_path).close()
    journal(tmp_path, "run-3").close()
    assert [told.run_id for told in read_runs(CLUSTER, tmp_path)] == ["run-1", "run-3"]


def test_who_is_at_a_cluster_is_told_to_a_reader_and_a_killed_run_is_not(tmp_path: Path) -> None:
    assert running(CLUSTER, tmp_path) is None
    with journal(tmp_path) as written:
        found = running(CLUSTER, tmp_path)
        assert found is not None
        assert (found.run_id, found.pid, found.command) == ("run-1", 4711, "ktriage apply plan.json")
        left = (written.path.parent / "lock").read_text()
    assert running(CLUSTER, tmp_path) is None
    (written.path.parent / "lock").write_text(left)
    assert running(CLUSTER, tmp_path) is None, "a killed run stays written down, and holds nothing"
    journal(tmp_path, "run-2").close()


def test_a_reader_that_asks_at_that_instant_keeps_no_run_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal(tmp_path).close()
    reader = (cluster_directory(CLUSTER, tmp_path) / "lock").open()
    fcntl.flock(reader, fcntl.LOCK_SH)
    # The reader lets go while the run waits for its next attempt.
    monkeypatch.setattr("time.sleep", lambda _seconds: reader.close())
    journal(tmp_path, "run-2").close()


def test_a_holder_that_has_not_said_who_it_is_is_still_respected(tmp_path: Path) -> None:
    with journal(tmp_path) as written:
        (written.path.parent / "lock").write_text("")
        with pytest.raises(JournalLocked, match="its name is not in the lock file yet"):
            journal(tmp_path, "run-2")


def test_closing_twice_is_harmless_and_nothing_is_recorded_afterwards(tmp_path: Path) -> None:
    written = journal(tmp_path)
    written.close(0)
    written.close(1)
    with pytest.raises(JournalError, match="it is closed"):
        written.before("elect", {})
    assert read_run(written.path).status == 0


def test_a_run_that_fails_lets_the_next_one_in(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), journal(tmp_path):
        raise ZeroDivisionError
    journal(tmp_path, "run-2").close()


@contextmanager
def disk_full(path: Path, room: int = 0) -> Iterator[None]:
    """No file may grow more than ``room`` bytes beyond that one: writes fail as they do on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1, 50])
def test_on_a_full_disk_nothing_may_be_sent_and_the_file_stays_whole(tmp_path: Path, room: int) -> None:
    written = journal(tmp_path)
    entry = written.before("elect", {})
    with (
        disk_full(written.path, room),
        pytest.raises(JournalError, match="cannot be written: File too large"),
    ):
        written.before("revert", {"rows": (row(),)})
    assert [type(event) for event in read_run(written.path).events] == [EntryBegun]
    again = written.before("revert", {"rows": (row(),)})
    assert again != entry
    written.close(0)
    assert [type(event) for event in read_run(written.path).events] == [EntryBegun, EntryBegun]


@pytest.mark.parametrize("room", [0, 50])
def test_an_end_that_finds_the_disk_full_is_written_as_soon_as_there_is_room(
    tmp_path: Path, room: int
) -> None:
    written = journal(tmp_path)
    entry = written.before("elect", {})
    with disk_full(written.path, room):
        written.after(entry, {"applied": [row().tp]})
        written.settle("gone", entries=["old/1"])
        assert [type(event) for event in read_run(written.path).events] == [EntryBegun]
    written.before("revert", {"rows": (row(),)})
    assert [type(event) for event in read_run(written.path).events] == [
        EntryBegun,
        EntryEnded,
        EntriesSettled,
        EntryBegun,
    ]
    written.close()


def test_an_end_that_never_finds_room_is_told_at_the_close_and_the_lock_is_let_go(tmp_path: Path) -> None:
    written = journal(tmp_path)
    entry = written.before("elect", {})
    with disk_full(written.path):
        written.after(entry, {})
        with pytest.raises(JournalError, match="cannot be written"):
            written.close(0)
    assert not read_run(written.path).ended
    journal(tmp_path, "run-2").close()


def test_after_a_disk_error_nothing_more_is_taken_for_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing disk cannot be provoked; fsync stands for it. The kernel reports such an error only once."""
    written = journal(tmp_path)

    def fails(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(JournalError, match="the disk failed"):
        written.before("elect", {})
    monkeypatch.undo()
    with pytest.raises(JournalError, match="the disk failed"):
        written.before("elect", {})
    with pytest.raises(JournalError):
        written.close()


def test_a_state_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot be made: Not a directory"):
        journal(tmp_path / "file" / "ktriage")


@pytest.mark.parametrize("cluster", ["../../etc", "..", ".", "a/b", "a b", "ä", "%2E"])
def test_no_cluster_id_leads_out_of_the_state_directory(tmp_path: Path, cluster: str) -> None:
    root = tmp_path / "ktriage"
    with Journal.open(cluster, run(), Clock(), root) as written:
        assert written.path.parent.parent == root
        assert [told.header["clusterId"] for told in read_runs(cluster, root)] == [cluster]


def test_two_cluster_ids_never_share_a_directory(tmp_path: Path) -> None:
    names = ["..", "%2E%2E", "a/b", "a%2Fb", "a.b", "a%2Eb"]
    assert len({cluster_directory(name, tmp_path) for name in names}) == len(names)
    with pytest.raises(JournalError, match="no id"):
        cluster_directory("", tmp_path)


def test_results_of_the_backend_are_kept_as_they_are(tmp_path: Path) -> None:
    election = Election(row().tp, Outcome.OTHER_LEADER, 3, 6, "led by 3")
    with journal(tmp_path) as written:
        entry = written.before("remove voter", {"voter": 3, "directory": "dir-1", "none": None})
        written.after(entry, {"elections": (election,), "unknown": {row().tp: "timed out"}})
    before, after = read_runs(CLUSTER, tmp_path)[0].events
    assert isinstance(before, EntryBegun)
    assert before.detail == {"voter": 3, "directory": "dir-1", "none": None}
    assert isinstance(after, EntryEnded)
    assert after.unknown == {("orders", 0): "timed out"}
    assert after.result["elections"][0]["outcome"] == "another leader"


# Reading what may have been broken.


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def finished(tmp_path: Path) -> Path:
    with journal(tmp_path) as written:
        written.after(written.before("elect", {"rows": (row(),)}), {"applied": [row().tp]})
    return written.path


@pytest.mark.parametrize(
    "tail", [b"", b"{", b'{"v":1,"kind":"be', b"\x00" * 512, b"garbage\n", b"\x00\x00\n"]
)
def test_a_torn_last_line_is_what_a_power_loss_leaves_and_is_passed_over(tmp_path: Path, tail: bytes) -> None:
    path = finished(tmp_path)
    whole = read_run(path).events
    path.write_bytes(path.read_bytes() + tail)
    assert read_run(path).events == whole


def test_a_last_line_that_lacks_its_end_never_counted_as_written(tmp_path: Path) -> None:
    path = finished(tmp_path)
    path.write_bytes(b"".join(lines(path)[:2]).removesuffix(b"\n"))
    assert read_run(path).events == ()


@pytest.mark.parametrize("broken", [b"garbage\n", b'{"v":1}\n', b"[]\n", b"3\n", b'{"x":1}\n', b'"s"\n'])
def test_a_broken_line_is_named_and_the_rest_is_read(tmp_path: Path, broken: bytes) -> None:
    path = finished(tmp_path)
    whole = read_run(path)
    kept = lines(path)
    path.write_bytes(b"".join([kept[0], broken, *kept[2:]]))
    told = read_run(path)
    assert told.events == whole.events[1:]
    assert told.unread[0].startswith("line 2: broken, it ") and told.unsure
    (named, advice) = unread_lines(told)
    assert named.startswith(str(path)) and "move the file away" in advice
    with pytest.raises(JournalError, match="move the file away"):
        read_unsettled_runs(CLUSTER, tmp_path)


def test_a_broken_line_behind_the_end_of_a_run_hides_nothing_that_was_sent(tmp_path: Path) -> None:
    path = finished(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"x":1}\n')
    (told,) = read_unsettled_runs(CLUSTER, tmp_path)
    assert (told.unread, told.unsure) == (("line 5: broken, it has no 'v'",), False)
    assert list(unread_lines(told)) == [f"{path}: line 5: broken, it has no 'v'"]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"order":[2,1,3]', '"order":[2,1]'),
        ('"order":[2,1,3]', '"order":[]'),
        ('"replicas":[1,2,3],"order":[2,1,3]', '"replicas":[],"order":[]'),
        ('"topicId":"topic-id",', ""),
        ('"replicas":[1,2,3],"order"', '"replicas":7,"order"'),
    ],
)
def test_a_row_that_cannot_be_restored_from_is_an_error_with_its_line(
    tmp_path: Path, was: str, now: str
) -> None:
    path = finished(tmp_path)
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, now))
    told = read_run(path)
    assert told.unsure and told.unread[0].startswith("line 2: a row")


def test_what_a_newer_version_adds_is_passed_over_and_a_newer_format_is_not(tmp_path: Path) -> None:
    path = finished(tmp_path)
    whole = read_run(path)
    kept = [json.loads(line) for line in lines(path)]
    newer = [{**line, "extra": {"deep": [1]}} for line in kept]
    newer.insert(2, {"v": 1, "kind": "weather", "at": "now"})
    path.write_text("".join(json.dumps(line) + "\n" for line in newer))
    assert read_run(path).events == whole.events
    path.write_text(json.dumps({**kept[0], "v": 2}) + "\n")
    told = read_run(path)
    assert told.unsure and told.unread[0].startswith(
        "line 1: journal format 2: this version of the tool reads 1; use the one that wrote it"
    )


def test_a_run_that_died_before_its_first_line_is_an_empty_one(tmp_path: Path) -> None:
    path = finished(tmp_path)
    path.write_bytes(b"")
    told = read_run(path)
    assert (told.run_id, told.events, told.ended) == ("", (), False)
    assert read_runs("a cluster never seen", tmp_path) == ()


def test_no_order_is_written_where_the_disk_has_no_room_for_its_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up in the middle cannot be had in a test without rights: its size is told by hand."""
    written = journal(tmp_path)
    real = os.statvfs(tmp_path)
    full = os.statvfs_result((real.f_bsize, 512, real.f_blocks, 1, 1, *tuple(real)[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _path: full)
    with pytest.raises(JournalError, match="512 bytes free"):
        written.before("reorder", {"rows": (row(), row(1))})
    written.before("elect", {"rows": (row(),)})
    monkeypatch.undo()
    written.close()
    assert not any(
        isinstance(event, EntryBegun) and event.action == "reorder" for event in read_run(written.path).events
    )
