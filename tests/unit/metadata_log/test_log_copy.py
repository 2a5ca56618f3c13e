"""A cluster's metadata log is copied byte for byte, through kills, gaps and changes of the controller."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.base.errors import BackendError, LogDiverged, NoLeader, NotAllowed, Unreachable
from backends.base.metadata_log_reader import LogBytes, LogSnapshot
from backends.metadata_log.batch_writer import data_batch, leader_change_batch
from backends.metadata_log.directory import DIRECTORY, DirectoryReading, read_directory
from console.errors import InputError, NotDone
from console.jobs.timeline.metadata_log_copy import MetadataLogCopier
from console.jobs.timeline.metadata_log_files import MetadataLogFiles
from recovery.metadata_log.record_codec import encode
from tests.shipped_metadata_logs import ISR_GROWS, change, topics
from tests.unit.pipeline.test_shipped_logs import Reader, offsets

CLUSTER, OTHER = "4L6g3nShT-eMCtK--X86sw", "MkU3OEVBNTcwNTJENDM2Qk"
EPOCH = 3
BATCHES = 12
VALUES = [encode(change(ISR_GROWS))] * 3


def snapshot(end: int) -> LogSnapshot:
    values = [encode(record) for record in topics()]
    data = data_batch(0, EPOCH, 1000, values) + leader_change_batch(len(values), EPOCH, 1000, 1, (1,))
    return LogSnapshot(end, EPOCH, data)


class Controller:
    """An active controller. Its log begins at ``start``, and ``high_watermark`` says what of it is committed;
    what is in ``faults`` is raised once, in that order. An answer begins ``early`` offsets before the question.
    """

    def __init__(self) -> None:
        self.start = 0
        self.first = self.early = 0
        self.faults: list[BackendError] = []
        self.asked: list[tuple[int, int]] = []
        self.batches = [(0, leader_change_batch(0, EPOCH, 1000, 1, (1,)))]
        self.batches += [(at, data_batch(at, EPOCH, 1000 + at, VALUES)) for at in range(1, 3 * BATCHES, 3)]
        self.end = self.high_watermark = 1 + 3 * BATCHES

    def data(self, start: int, end: int | None = None) -> bytes:
        return b"".join(data for at, data in self.batches if at >= start and (end is None or at < end))

    async def read(self, offset: int, epoch: int, *, wait: float = 0.0) -> LogBytes | LogSnapshot:  # noqa: ARG002
        self.asked.append((offset, epoch))
        if self.faults:
            raise self.faults.pop(0)
        if offset < self.start:
            return snapshot(self.start)
        if offset > self.end:
            raise LogDiverged(offset)
        return LogBytes(self.data(max(offset - self.early, self.first)), self.high_watermark)


def copy(controller: Controller, path: Path, cluster_id: str = CLUSTER, **limits: int) -> list[str]:
    """One run; returns what it said."""
    said: list[str] = []
    files = MetadataLogFiles(path, cluster_id, **limits)
    try:
        asyncio.run(MetadataLogCopier(controller, files, said.append, asyncio.sleep).to_end(lambda *_: None))
    finally:
        files.close()
    return said


def files_of(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((path / DIRECTORY).iterdir())}


def read(path: Path) -> list[int]:
    """The offsets behind the snapshot, as ``timeline --metadata-dir`` reads them."""
    reading = DirectoryReading(path / DIRECTORY)
    found = [record.offset for record in read_directory(reading) if record.batch >= 0]
    assert reading.problem is None
    return found


def watched(path: Path) -> list[int]:
    """The same as ``pipeline watch`` reads them, but for the rows of the snapshot."""
    reader = Reader(path / DIRECTORY)
    rows = reader.read()
    assert reader.problem == ""
    return offsets([row for row in rows if row["batch"] >= 0])


def test_the_copy_has_the_bytes_of_the_log_and_both_readers_read_it(tmp_path: Path) -> None:
    controller = Controller()
    copy(controller, tmp_path / "copy")
    assert files_of(tmp_path / "copy") == {"00000000000000000000.log": controller.data(0)}
    assert read(tmp_path / "copy") == watched(tmp_path / "copy") == list(range(1, controller.end))


def test_a_copy_is_not_continued_from_a_log_that_only_has_the_same_offsets_and_epochs(tmp_path: Path) -> None:
    """Another cluster with the same id: its last batch has the same place, and another checksum."""
    controller, other = Controller(), Controller()
    controller.high_watermark = 10
    copy(controller, tmp_path)
    before = files_of(tmp_path)
    other.batches = [
        (at, data_batch(at, EPOCH, 5000 + at, VALUES) if at else data) for at, data in other.batches
    ]
    with pytest.raises(NotDone, match="another one than the copy, by its epochs, offsets or checksums"):
        copy(other, tmp_path)
    assert files_of(tmp_path) == before


def test_where_the_last_batch_is_gone_from_the_cluster_that_is_said(tmp_path: Path) -> None:
    controller = Controller()
    controller.high_watermark = 10
    copy(controller, tmp_path)
    controller.start, controller.high_watermark = 10, controller.end
    assert any("compared by offset and epoch only" in line for line in copy(controller, tmp_path))


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "copy"
    copy(Controller(), path)
    modes = {file: file.stat().st_mode & 0o777 for file in (path, *path.rglob("*"))}
    assert {modes[file] for file in modes if file.is_dir()} == {0o700}
    assert {modes[file] for file in modes if file.is_file()} == {0o600}


def test_what_is_not_committed_is_not_copied_before_it_is(tmp_path: Path) -> None:
    controller = Controller()
    controller.high_watermark = 10
    copy(controller, tmp_path)
    assert read(tmp_path) == list(range(1, 10))
    controller.high_watermark = 12
    copy(controller, tmp_path)
    assert read(tmp_path) == list(range(1, 10)), "half a batch is committed: it is copied when it is whole"
    controller.high_watermark = controller.end
    copy(controller, tmp_path)
    assert files_of(tmp_path) == {"00000000000000000000.log": controller.data(0)}


def test_of_an_answer_that_begins_before_the_end_of_the_copy_only_the_rest_is_written(tmp_path: Path) -> None:
    controller = Controller()
    controller.high_watermark = 10
    copy(controller, tmp_path)
    controller.high_watermark, controller.early = controller.end, 6
    copy(controller, tmp_path)
    assert files_of(tmp_path) == {"00000000000000000000.log": controller.data(0)}


@pytest.mark.parametrize("cut", [1, 17, 60, 61, 62, 100, 200])
def test_a_copy_that_was_killed_within_a_batch_is_continued(tmp_path: Path, cut: int) -> None:
    controller = Controller()
    copy(controller, tmp_path)
    segment = tmp_path / DIRECTORY / "00000000000000000000.log"
    os.truncate(segment, segment.stat().st_size - cut)
    copy(controller, tmp_path)
    assert segment.read_bytes() == controller.data(0)
    assert controller.asked[-2][1] == EPOCH, "the controller compares the epoch before"


def test_a_copy_that_was_killed_before_its_first_whole_batch_is_begun_again(tmp_path: Path) -> None:
    controller = Controller()
    copy(controller, tmp_path)
    segment = tmp_path / DIRECTORY / "00000000000000000000.log"
    os.truncate(segment, 30)
    copy(controller, tmp_path)
    assert files_of(tmp_path) == {"00000000000000000000.log": controller.data(0)}


def test_a_last_batch_of_which_the_middle_was_lost_is_copied_again(tmp_path: Path) -> None:
    """As a power failure leaves it."""
    controller = Controller()
    copy(controller, tmp_path)
    segment = tmp_path / DIRECTORY / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[-40:-10] = bytes(30)
    segment.write_bytes(data)
    copy(controller, tmp_path)
    assert segment.read_bytes() == controller.data(0)


def test_damage_before_the_end_is_refused_and_nothing_is_cut_off(tmp_path: Path) -> None:
    controller = Controller()
    copy(controller, tmp_path)
    segment = tmp_path / DIRECTORY / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    with pytest.raises(InputError, match=r"checksum is wrong; give a new directory"):
        copy(controller, tmp_path)
    assert segment.read_bytes() == data


def test_segments_end_before_they_become_too_large(tmp_path: Path) -> None:
    controller = Controller()
    for committed in range(4, controller.end + 1, 3):
        controller.high_watermark = committed
        copy(controller, tmp_path, segment_bytes=500)
    found = files_of(tmp_path)
    assert len(found) > 2
    assert b"".join(found.values()) == controller.data(0)
    assert read(tmp_path) == watched(tmp_path) == list(range(1, controller.end))


def test_a_log_that_begins_later_is_copied_with_its_snapshot(tmp_path: Path) -> None:
    controller = Controller()
    controller.start = 19
    said = copy(controller, tmp_path)
    name = "00000000000000000019-0000000003.checkpoint"
    assert files_of(tmp_path) == {name: snapshot(19).data, "00000000000000000019.log": controller.data(19)}
    assert said == [f"the cluster's log begins after offset 18: the copy begins with the snapshot {name}"]
    assert controller.asked == [(0, 0), (19, EPOCH), (controller.end, EPOCH)]
    assert read(tmp_path) == watched(tmp_path) == list(range(19, controller.end))
    assert copy(controller, tmp_path) == []


def test_a_copy_that_has_only_its_snapshot_goes_on_behind_it(tmp_path: Path) -> None:
    """The log's start wants the snapshot's own epoch."""
    controller = Controller()
    controller.start = controller.high_watermark = 19
    copy(controller, tmp_path)
    controller.asked.clear()
    controller.high_watermark = controller.end
    assert copy(controller, tmp_path) == []
    assert controller.asked[0] == (19, EPOCH)
    assert read(tmp_path) == watched(tmp_path) == list(range(19, controller.end))


def test_records_that_the_cluster_removed_before_they_were_copied_are_no_silent_gap(tmp_path: Path) -> None:
    """watch reports the gap; what was copied before it is kept in a directory of its own."""
    controller = Controller()
    controller.high_watermark = 10
    copy(controller, tmp_path)
    reader = Reader(tmp_path / DIRECTORY)
    assert offsets(reader.read())[-1] == 9
    controller.start, controller.high_watermark = 19, controller.end
    (said,) = copy(controller, tmp_path)
    assert said.startswith("the cluster no longer has offsets 10 to 18: the copy goes on with the snapshot ")
    older = tmp_path / "before-00000000000000000019"
    assert said.endswith(f"what it had before is in {older}")
    assert read(older) == list(range(1, 10))
    assert f"cluster.id={CLUSTER}" in (older / "meta.properties").read_text()
    assert read(tmp_path) == watched(tmp_path) == list(range(19, controller.end))
    assert offsets(reader.read())[-1] == controller.end - 1
    assert reader.offset["c"].generation == 2
    assert reader.problem == ""


def test_a_run_that_was_killed_while_it_moved_what_came_before_the_gap_is_continued(tmp_path: Path) -> None:
    controller = Controller()
    for controller.high_watermark in (1, 4, 7, 10):
        copy(controller, tmp_path, segment_bytes=100)
    first, *others = files_of(tmp_path)
    assert others
    older = tmp_path / f"before-{19:020}"
    (older / DIRECTORY).mkdir(parents=True)
    (tmp_path / DIRECTORY / first).rename(older / DIRECTORY / first)
    name = f"{19:020}-{EPOCH:010}.checkpoint"
    (tmp_path / DIRECTORY / name).write_bytes(snapshot(19).data)
    (tmp_path / DIRECTORY / f"{25:020}-{EPOCH:010}.checkpoint.part").write_bytes(b"half")
    controller.start, controller.high_watermark = 19, controller.end
    copy(controller, tmp_path)
    assert set(files_of(tmp_path)) == {name, f"{19:020}.log"}
    assert read(older) == list(range(1, 10))


def test_a_snapshot_that_is_not_whole_is_not_written(tmp_path: Path) -> None:
    files = MetadataLogFiles(tmp_path, CLUSTER)
    found = snapshot(19)
    for data, why in ((found.data[:-5], "cut short"), (found.data[:-90], ""), (b"", "its end is missing")):
        with pytest.raises(NotDone, match=f"the snapshot at offset 19 cannot be read: .*{why}"):
            files.begin_with(found._replace(data=data))
    files.close()
    assert files_of(tmp_path) == {}


def test_a_controller_that_has_a_snapshot_sends_no_first_record_and_the_copy_is_complete(
    tmp_path: Path,
) -> None:
    """Record 0 is the first leader's own: the log from 1 on has every change of the cluster."""
    controller = Controller()
    controller.first = 1
    assert copy(controller, tmp_path) == []
    assert files_of(tmp_path) == {"00000000000000000001.log": controller.data(1)}
    assert read(tmp_path) == watched(tmp_path) == list(range(1, controller.end))
    reading = DirectoryReading(tmp_path / DIRECTORY)
    assert list(read_directory(reading))
    assert (reading.start_offset, reading.end_offset) == (0, controller.end)


def test_another_clusters_copy_is_refused(tmp_path: Path) -> None:
    controller = Controller()
    copy(controller, tmp_path)
    before = files_of(tmp_path)
    with pytest.raises(InputError, match=f"of cluster {CLUSTER}; this one is {OTHER}. Give a new directory"):
        copy(controller, tmp_path, OTHER)
    assert files_of(tmp_path) == before


def test_a_log_dir_of_a_node_is_never_written_to(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=100\n")
    with pytest.raises(InputError, match="it is the log dir of node 100, and nothing is written there"):
        copy(Controller(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["meta.properties"]


def test_a_directory_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no copy of a metadata log"):
        copy(Controller(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_second_copy_into_the_same_directory_is_refused(tmp_path: Path) -> None:
    first = MetadataLogFiles(tmp_path, CLUSTER)
    with pytest.raises(InputError, match="another run is writing to it"):
        copy(Controller(), tmp_path)
    first.close()
    copy(Controller(), tmp_path)


def test_a_log_that_was_rewritten_before_the_end_of_the_copy_is_refused(tmp_path: Path) -> None:
    controller = Controller()
    copy(controller, tmp_path)
    before = files_of(tmp_path)
    controller.end = 10
    with pytest.raises(NotDone, match="another one than the copy, by its epochs"):
        copy(controller, tmp_path)
    assert files_of(tmp_path) == before


def test_missing_offsets_in_an_answer_are_not_written(tmp_path: Path) -> None:
    controller = Controller()
    del controller.batches[3]
    with pytest.raises(NotDone, match="offsets 7 to 9 are missing"):
        copy(controller, tmp_path)


class UntilIdle:
    """Stops once the controller was asked so often."""

    def __init__(self, controller: Controller, often: int) -> None:
        self._controller = controller
        self._often = often

    def __bool__(self) -> bool:
        return len(self._controller.asked) >= self._often


def follow(controller: Controller, path: Path, *, often: int, meanwhile: Callable[[], None]) -> list[str]:
    """Copies, and follows until the controller was asked ``often``; ``meanwhile`` happens while it waits."""
    said: list[str] = []
    files = MetadataLogFiles(path, CLUSTER)

    async def pause(_seconds: float) -> None:
        meanwhile()

    copier = MetadataLogCopier(controller, files, said.append, pause)
    try:
        asyncio.run(copier.follow(UntilIdle(controller, often)))
    finally:
        files.close()
    return said


def test_following_goes_on_with_the_next_controller_and_says_so_once(tmp_path: Path) -> None:
    controller = Controller()
    controller.high_watermark = 10
    copy(controller, tmp_path)

    def commit() -> None:
        controller.high_watermark = controller.end

    controller.faults = [
        NoLeader("no controller leads"),
        Unreachable("no controller could be asked"),
        BackendError("the snapshot at offset 7 was deleted meanwhile"),
    ]
    said = follow(controller, tmp_path, often=8, meanwhile=commit)
    assert files_of(tmp_path) == {"00000000000000000000.log": controller.data(0)}
    assert said == [
        "the metadata log cannot be read: no controller leads; it is tried again",
        f"the metadata log can be read again; the copy goes to offset {controller.end:,}",
    ]


@pytest.mark.parametrize(
    ("fault", "ends"),
    [
        (NotAllowed("CLUSTER_ACTION", "the cluster", "call Fetch"), NotAllowed),
        (LogDiverged(10), NotDone),
    ],
)
def test_following_ends_where_trying_again_would_not_help(
    tmp_path: Path, fault: BackendError, ends: type[Exception]
) -> None:
    controller = Controller()
    controller.faults = [fault]
    with pytest.raises(ends):
        follow(controller, tmp_path, often=8, meanwhile=lambda: None)
