"""What the next run finds: every order not put back, everything sent whose end is not known, and nothing else."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.journal.change_kinds import RESTORE_RECORDS
from console.journal.errors import JournalError
from console.journal.journal import Journal
from console.journal.run_records import SETTLED, EntryBegun, read_runs, read_unsettled_runs, remember_settled
from console.journal.unfinished_entries import Unfinished, unfinished
from recovery import requests_in_doubt
from recovery.assignment_order import WrittenOrder
from recovery.model import TopicPartition
from recovery.requests_in_doubt import SentRequest
from tests.unit.journal.killed_process import killed_at
from tests.unit.journal.runs import CLUSTER, journal, row

ROWS = (row(0), row(1))
TPS = [r.tp for r in ROWS]


def found(root: Path) -> Unfinished:
    return unfinished(CLUSTER, root)


def reorder(to: Journal, rows: tuple[WrittenOrder, ...] = ROWS) -> None:
    to.after(to.before("reorder", {"rows": rows}), {"applied": [r.tp for r in rows]})


def revert(to: Journal, rows: tuple[WrittenOrder, ...] = ROWS) -> None:
    to.after(to.before("revert", {"rows": rows}), {"applied": [r.tp for r in rows]})


def open_rows(root: Path) -> list[WrittenOrder]:
    return [order.written for order in found(root).orders]


def test_nothing_was_ever_done_here(tmp_path: Path) -> None:
    assert found(tmp_path).nothing


def test_a_run_that_put_everything_back_left_nothing_open(tmp_path: Path) -> None:
    with journal(tmp_path) as run:
        reorder(run)
        run.after(run.before("elect", {"rows": ROWS}), {"applied": TPS})
        revert(run)
    assert found(tmp_path).nothing


def test_an_order_is_open_from_the_moment_it_may_have_been_sent(tmp_path: Path) -> None:
    with journal(tmp_path) as run:
        entry = run.before("reorder", {"rows": ROWS})
        assert [(o.written, o.applied) for o in found(tmp_path).orders] == [(r, None) for r in ROWS]
        run.after(entry, {"applied": [TPS[0]], "unknown": {TPS[1]: "timed out"}})
        assert [(o.written, o.applied) for o in found(tmp_path).orders] == [
            (ROWS[0], True),
            (ROWS[1], None),
        ]


def test_a_row_that_was_certainly_not_written_is_not_open(tmp_path: Path) -> None:
    with journal(tmp_path) as run:
        entry = run.before("reorder", {"rows": ROWS})
        run.after(entry, {"applied": [TPS[0]], "refused": {TPS[1]: "NO_REASSIGNMENT"}})
    assert open_rows(tmp_path) == [ROWS[0]]


def test_a_row_that_the_end_does_not_name_is_open(tmp_path: Path) -> None:
    with journal(tmp_path) as run:
        run.after(run.before("reorder", {"rows": ROWS}), {})
    assert open_rows(tmp_path) == list(ROWS)


def test_a_restore_that_failed_or_whose_end_is_not_known_closes_nothing(tmp_path: Path) -> None:
    with journal(tmp_path) as run:
        reorder(run)
        entry = run.before("revert", {"rows": ROWS})
        assert open_rows(tmp_path) == list(ROWS)
        run.after(entry, {"applied": [TPS[0]], "refused": {TPS[1]: "left alone"}})
        assert open_rows(tmp_path) == [ROWS[1]]
        run.after(run.before("revert", {"rows": ROWS[1:]}), {"unknown": {TPS[1]: "timed out"}})
        assert open_rows(tmp_path) == [ROWS[1]]


def test_another_run_finishes_what_an_earlier_one_left(tmp_path: Path) -> None:
    with journal(tmp_path, "one") as run:
        reorder(run)
    with journal(tmp_path, "two") as run:
        revert(run, ROWS[:1])
    (left,) = found(tmp_path).orders
    assert (left.run_id, left.entry, left.written) == ("one", "one/1", ROWS[1])
    with journal(tmp_path, "three") as run:
        run.settle("the order stands as it was", rows=[TPS[1]])
    assert found(tmp_path).nothing


def test_a_restore_does_not_close_an_order_whose_write_has_no_end(tmp_path: Path) -> None:
    """Killed or cancelled before the answer: the write may come after the restore."""
    with journal(tmp_path) as run:
        entry = run.before("reorder", {"rows": ROWS})
        revert(run)
        assert open_rows(tmp_path) == list(ROWS)
        run.after(entry, {"applied": [TPS[0]]})
        revert(run)
    assert open_rows(tmp_path) == [ROWS[1]]


def test_an_election_with_no_end_is_open_until_somebody_has_looked(tmp_path: Path) -> None:
    with journal(tmp_path, "one") as run:
        entry = run.before("elect", {"rows": ROWS, "type": "unclean"})
        voters = run.before("remove voter", {"voter": 3})
    left = found(tmp_path)
    assert [(e.entry, e.action, e.detail) for e in left.entries] == [
        (entry, "elect", {"type": "unclean"}),
        (voters, "remove voter", {"voter": 3}),
    ]
    assert not left.orders
    with journal(tmp_path, "two") as run:
        run.settle("looked at", entries=[entry])
    assert [e.entry for e in found(tmp_path).entries] == [voters]


def test_a_run_that_took_our_order_for_the_original_does_not_undo_it(tmp_path: Path) -> None:
    """A plan made while our order [2, 1, 3] stood puts that back, not [1, 2, 3]: ours is still open."""
    later = WrittenOrder(TPS[0], "topic-id", (2, 1, 3), (3, 2, 1))
    with journal(tmp_path, "one") as run:
        reorder(run, ROWS[:1])
    with journal(tmp_path, "two") as run:
        reorder(run, (later,))
        assert open_rows(tmp_path) == [ROWS[0], later]
        revert(run, (later,))
    assert open_rows(tmp_path) == [ROWS[0]]


def test_rows_come_back_exactly_so_that_they_can_be_restored(tmp_path: Path) -> None:
    with journal(tmp_path) as run:
        run.before("reorder", {"rows": ROWS})
    (first, _) = found(tmp_path).orders
    (change,) = found(tmp_path).changes
    at = datetime.fromisoformat(change.at).timestamp()
    assert first == SentRequest("run-1/1", ROWS[0], write_at=at)


_brokers = st.lists(st.integers(0, 1 << 31), min_size=1, max_size=4, unique=True)


@st.composite
def written_orders(draw: st.DrawFn) -> WrittenOrder:
    replicas = draw(_brokers)
    topic = draw(st.sampled_from(["orders", "password=x", "a.secret.token", "__consumer_offsets"]))
    return WrittenOrder(
        TopicPartition(topic, draw(st.integers(0, 1 << 31))),
        draw(st.sampled_from(["AAAAAAAAAAAAAAAAAAAAAQ", "token=abc"])),
        tuple(replicas),
        tuple(draw(st.permutations(replicas))),
    )


@given(st.lists(written_orders(), min_size=1, max_size=3, unique_by=lambda d: d.tp))
def test_any_row_comes_back_exactly_also_one_that_looks_like_a_secret(
    tmp_path_factory: object, rows: list[WrittenOrder]
) -> None:
    root = tmp_path_factory.mktemp("state")  # type: ignore[attr-defined]  # pytest.TempPathFactory
    with journal(root) as run:
        run.before("reorder", {"rows": rows})
    assert open_rows(root) == rows


# SIGKILL at every step.


class Cluster:
    """What was sent, kept in a file: a reorder or a restore takes effect at once. No cluster is needed to
    see whether the journal knows of what was sent."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, action: str, rows: tuple[WrittenOrder, ...]) -> None:
        # Not through the calls that are counted: the cluster is not the process that dies.
        with self._path.open("a") as file:
            file.write(json.dumps([action, [r.tp.partition for r in rows]]) + "\n")

    def sent(self) -> list[tuple[str, list[int]]]:
        return (
            [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []
        )

    def reordered(self) -> set[int]:
        standing: set[int] = set()
        for action, partitions in self.sent():
            if action == "reorder":
                standing.update(partitions)
            elif action == "revert":
                standing.difference_update(partitions)
        return standing


def recover(root: Path, cluster: Cluster) -> None:
    """Two batches: reorder, elect, revert, each recorded before and after."""
    with journal(root) as run:
        for batch in ((row(0), row(1)), (row(2),)):
            for action in ("reorder", "elect", "revert"):
                entry = run.before(action, {"rows": batch})
                cluster.send(action, batch)
                run.after(entry, {"applied": [r.tp for r in batch]})
        run.close(0)


def test_killed_at_any_step_the_next_run_knows_everything_that_was_sent(tmp_path: Path) -> None:
    seen: set[int] = set()
    step, alive = 0, False
    while not alive:
        step += 1
        root, cluster = tmp_path / f"{step}", Cluster(tmp_path / f"{step}.sent")
        root.mkdir()
        alive = not killed_at(step, lambda root=root, cluster=cluster: recover(root, cluster))  # type: ignore[misc]
        recorded = [
            (event.action, [r.tp.partition for r in event.rows])
            for told in read_runs(CLUSTER, root)
            for event in told.events
            if isinstance(event, EntryBegun)
        ]
        sent = cluster.sent()
        assert [tuple(one) for one in sent] == recorded[: len(sent)]
        assert len(recorded) - len(sent) in (0, 1)
        left = found(root)
        open_partitions = {order.written.tp.partition for order in left.orders}
        assert cluster.reordered() <= open_partitions
        assert alive <= left.nothing
        seen.add(len(open_partitions))
        with journal(root, "resume") as run:
            orders = tuple(order.written for order in left.orders)
            revert(run, orders)
            run.settle("looked at", [entry.entry for entry in left.entries], [row.tp for row in orders])
        assert found(root).nothing
    assert seen == {0, 1, 2}
    assert step > 30


def test_a_run_that_was_killed_holds_nobody_up(tmp_path: Path) -> None:
    def takes_the_lock_and_dies() -> None:
        journal(tmp_path, "one")
        os.kill(os.getpid(), 9)

    assert killed_at(10_000, takes_the_lock_and_dies)
    journal(tmp_path, "two").close()
    assert [told.run_id for told in read_runs(CLUSTER, tmp_path)] == ["one", "two"]


def test_runs_that_are_known_to_have_left_nothing_are_not_read_again(tmp_path: Path) -> None:
    with journal(tmp_path, "first") as run:
        reorder(run)
        revert(run)
    with journal(tmp_path, "second") as run:
        assert found(tmp_path).nothing
        remember_settled(run.path)
        reorder(run)
    assert [run.run_id for run in read_unsettled_runs(CLUSTER, tmp_path)] == ["second"]
    assert open_rows(tmp_path) == list(ROWS)


def test_a_journal_that_was_cleared_away_is_read_from_its_new_beginning(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with journal(tmp_path, name) as run:
            remember_settled(run.path)
    for path in run.path.parent.glob("*.jsonl"):
        path.unlink()
    assert (run.path.parent / SETTLED).exists()
    with journal(tmp_path, "third") as run:
        reorder(run)
    assert open_rows(tmp_path) == list(ROWS)


def restoring(to: Journal, *options: str, directory: str = "/saved") -> str:
    return to.before("restore-records", {"directory": directory, "records": 500, "options": options})


def test_a_restore_is_open_until_the_same_one_has_written_everything(tmp_path: Path) -> None:
    with journal(tmp_path, "killed") as run:
        restoring(run, "--to-source")
    with journal(tmp_path, "another target") as run:
        run.after(restoring(run, "--to-topic", "kept"), {"records": 500})
    with journal(tmp_path, "another directory") as run:
        run.after(restoring(run, "--to-source", directory="/other"), {"records": 500})
    (left,) = found(tmp_path).of(RESTORE_RECORDS)
    assert (left.run_id, left.command, left.detail["records"]) == (
        "killed",
        ("restore", "/saved", "--to-source"),
        500,
    )
    with journal(tmp_path, "stopped") as run:
        run.after(
            restoring(run, "--to-source"), {"records": 20, "refused": {TPS[0]: "stopped before its turn"}}
        )
    (left,) = found(tmp_path).of(RESTORE_RECORDS)
    assert left.run_id == "stopped"
    with journal(tmp_path, "whole") as run:
        run.after(restoring(run, "--to-source"), {"records": 500})
    assert found(tmp_path).nothing


def test_what_a_topic_does_not_take_is_open_until_another_topic_has_it(tmp_path: Path) -> None:
    """The same command would be refused for ever."""
    other = ["--to-topic", "kept", "--topic", "orders"]
    with journal(tmp_path, "refused") as run:
        refused = {TPS[0]: "MESSAGE_TOO_LARGE", TPS[1]: "NOT_ENOUGH_REPLICAS: 1 of 2"}
        run.after(restoring(run, "--to-source"), {"records": 0, "refused": refused, "instead": [other]})
    elsewhere, later = found(tmp_path).of(RESTORE_RECORDS)
    assert elsewhere.command == ("restore", "/saved", *other) and not elsewhere.waits
    assert (
        later.command == ("restore", "/saved", "--to-source") and later.waits == "NOT_ENOUGH_REPLICAS: 1 of 2"
    )
    with journal(tmp_path, "elsewhere") as run:
        run.after(restoring(run, *other), {"records": 400})
    assert found(tmp_path).of(RESTORE_RECORDS) == (later,)


def test_a_restore_that_is_going_on_is_not_left_by_an_earlier_run(tmp_path: Path) -> None:
    with journal(tmp_path, "one") as run:
        restoring(run, "--to-source")
        assert found(tmp_path).of_other_runs("one").nothing
        run.settle("every record of the rescue is written", entries=["one/1"])
        assert found(tmp_path).nothing


def test_a_write_without_an_answer_is_in_doubt_from_when_it_failed_not_from_when_it_began(
    tmp_path: Path,
) -> None:
    with journal(tmp_path) as run:
        entry = run.before("reorder", {"rows": ROWS[:1]})
        (begun,) = found(tmp_path).orders
        run.after(entry, {"unknown": {TPS[0]: "timed out"}})
    (failed,) = found(tmp_path).orders
    assert begun.write_at is not None and failed.write_at is not None
    assert failed.write_at > begun.write_at


def test_a_restore_that_was_sent_while_the_write_could_still_come_does_not_close_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer came when the write was dead; the write may have come between the two."""
    monkeypatch.setattr(
        requests_in_doubt, "ELECTION_ALIVE_FOR", 1.5
    )  # each line is a second after the one before
    with journal(tmp_path) as run:
        run.after(run.before("reorder", {"rows": ROWS[:1]}), {"unknown": {TPS[0]: "timed out"}})
        revert(run, ROWS[:1])
    assert open_rows(tmp_path) == [ROWS[0]]


def test_a_broken_line_is_an_error_also_where_a_half_line_stands_behind_it(tmp_path: Path) -> None:
    """Only the last line of a file may be broken: a restore may have been written down in another."""
    with journal(tmp_path) as run:
        reorder(run)
    before_the_end = run.path.read_bytes().splitlines(keepends=True)[:-1]
    run.path.write_bytes(b"".join(before_the_end) + b"{broken}\n{half")
    with pytest.raises(JournalError, match="broken, it is not JSON"):
        found(tmp_path)


def test_runs_stay_in_their_order_where_an_older_file_was_moved_away(tmp_path: Path) -> None:
    paths = []
    for name in ("zebra", "yak", "xerus"):
        with journal(tmp_path, name) as run:
            paths.append(run.path)
    paths[0].unlink()
    with journal(tmp_path, "ant") as run:
        assert run.path.name > max(path.name for path in paths)
