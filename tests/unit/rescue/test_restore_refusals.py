"""What is never written back, and nothing is sent."""

# ruff: noqa: ARG002  # the signatures are the protocol's

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from backends.base.answers import LogPosition, RawBatches
from backends.base.protocol import Stop
from backends.base.record_writer import AppendResult, BatchToAppend, ProducerIdentity, RecordWriter
from console.errors import InputError
from console.jobs.rescue import restore_run as restore_run_module
from console.jobs.rescue.restore_records import (
    PreparedRestore,
    RestoredRecords,
    RestoreRecords,
    count_written,
)
from console.jobs.rescue.restore_run import RestoredBranch, RestoreRun, key_of
from console.jobs.rescue.restore_target import topic_target
from console.rescue_files.manifest import (
    INDEX,
    MANIFEST,
    RescueIndex,
    branch_directory,
    index_json,
    manifest_json,
)
from console.rescue_files.restore_journal import RestoreJournal
from console.rescue_files.restore_selection import RestoreSelection
from recovery.model import PartitionState, TopicPartition, Unknown
from tests.unit.cli.memory_backend import MemoryBackend
from tests.unit.rescue.batches import batch
from tests.unit.rescue.test_restore import rescued

CLUSTER_ID = "c"
TP = TopicPartition("t", 0)
LED = PartitionState("t", 0, "id", 1, 4, (1, 2), (1, 2), (), (), ())


@dataclass
class Source(MemoryBackend):
    """The cluster of topic t; ``policy`` is its cleanup.policy."""

    policy: str = "delete"

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
        return {topic: {"cleanup.policy": self.policy} for topic in topics}


def saved(directory: Path, *, whole: bool = True) -> Path:
    """A rescue of ten records of topic t."""
    branch = rescued(directory / "first", batch(500, 10, 0))
    manifest = branch.manifest
    assert manifest is not None
    place = directory / "saved" / branch_directory(branch.branch)
    place.parent.mkdir(parents=True)
    (directory / "first").rename(place)
    changed = replace(manifest, whole=whole, problem=None if whole else "broker 2 did not answer")
    (place / MANIFEST).write_text(manifest_json(changed))
    index = RescueIndex(manifest.header, (branch.branch,), ())
    (directory / "saved" / INDEX).write_text(index_json(index))
    return directory / "saved"


def prepared(directory: Path, cluster: Source, *, incomplete: bool = False) -> PreparedRestore:
    change = RestoreRecords(directory, None, RestoreSelection(incomplete=incomplete), "here", "a test")
    change.without_lock(CLUSTER_ID)
    return asyncio.run(change.read(cluster, CLUSTER_ID, None))


def test_a_whole_rescue_of_the_same_topic_is_written_back(tmp_path: Path) -> None:
    assert prepared(saved(tmp_path), Source({TP: LED})).records == 10


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        (Source({TP: LED._replace(topic_id="another")}), "deleted and created again"),
        (Source({TP: LED}, policy="compact,delete"), "it is compacted: an old value"),
        (Source({TP: LED._replace(leader=-1)}), "no leader yet"),
        (Source({}), "there is no such partition"),
    ],
)
def test_a_source_that_is_another_or_could_lose_newer_values_is_refused(
    tmp_path: Path, cluster: Source, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        prepared(saved(tmp_path), cluster)


def test_a_branch_that_is_not_whole_is_refused_unless_it_is_wanted_as_it_is(tmp_path: Path) -> None:
    directory = saved(tmp_path, whole=False)
    with pytest.raises(InputError, match=r"not whole.*broker 2 did not answer"):
        prepared(directory, Source({TP: LED}))
    assert prepared(directory, Source({TP: LED}), incomplete=True).records == 10


def test_another_cluster_is_refused(tmp_path: Path) -> None:
    change = RestoreRecords(saved(tmp_path), None, RestoreSelection(), "here", "a test")
    with pytest.raises(InputError, match="rescued from cluster c, and this is d"):
        change.without_lock("d")


def test_a_partition_that_the_source_does_not_have_makes_no_topic(tmp_path: Path) -> None:
    """A topic of a billion partitions would follow from one number of a manifest."""
    branch = rescued(tmp_path, batch(500, 10, 0))
    far = replace(branch, branch=branch.branch._replace(tp=TopicPartition("t", 10**9)))
    with pytest.raises(InputError, match="has 1 partition, and the rescue holds partition 1000000000"):
        asyncio.run(topic_target(Source({TP: LED}), [far], "kept"))
    target = asyncio.run(topic_target(Source({TP: LED}), [branch], "kept"))
    assert target.created_text == "topic kept is created first, with 1 partition and 2 replicas of each"


def test_on_a_full_disk_the_record_keeps_whole_lines_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = RestoreJournal(tmp_path, CLUSTER_ID, "source")
    journal.begin(ProducerIdentity(4000, 0))
    journal.note("b", TP, 510, 10, 100)
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda fd, data: write(fd, data[:20]))
        with pytest.raises(InputError, match="No space left"):
            journal.note("b", TP, 520, 10, 110)
    journal.note("b", TP, 530, 20, 110)
    journal.close()
    again = RestoreJournal(tmp_path, CLUSTER_ID, "source")
    assert again.position("b") == (530, 30)


def test_after_a_kill_the_record_goes_on_behind_its_last_whole_line(tmp_path: Path) -> None:
    written = RestoreJournal(tmp_path, CLUSTER_ID, "source")
    written.begin(ProducerIdentity(7, 0))
    written.note("t-0", TP, 510, 10, 0)
    written.close()
    with written.path.open("ab") as file:
        file.write(b'{"branch": "t-0", "top')
    again = RestoreJournal(tmp_path, CLUSTER_ID, "source")
    again.resume()
    again.note("t-0", TP, 515, 5, 10)
    again.close()
    last = RestoreJournal(tmp_path, CLUSTER_ID, "source")
    assert last.sequence(TP) == 15, "the broker tells a repeated batch by its sequence"


class Target(Source):
    """It takes nothing, or holds what two producers wrote."""

    async def new_identity(self) -> ProducerIdentity:
        return ProducerIdentity(7, 0)

    async def append(
        self, broker: int, batches: Sequence[BatchToAppend]
    ) -> Mapping[TopicPartition, AppendResult]:
        return {one.tp: AppendResult(-1, "INVALID_RECORD") for one in batches}

    async def read_batches(
        self, broker: int, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        ours, theirs = batch(0, 10, 0, producer=7), batch(10, 5, 0, producer=8)
        return {TP: RawBatches(ours + theirs)}


def restore_run(cluster: Target, journal: RestoreJournal) -> RestoreRun:
    writer = cast("RecordWriter", cluster)
    return RestoreRun(
        cluster,
        writer,
        journal,
        selection=RestoreSelection(),
        rate=None,
        stop=cast("Stop", False),
        progress=None,
    )


def test_what_a_leader_refuses_is_not_told_as_written_back(tmp_path: Path) -> None:
    cluster = Target({TP: LED})
    rows = prepared(saved(tmp_path), cluster).rows
    journal = RestoreJournal(tmp_path, CLUSTER_ID, "source")
    work = restore_run(cluster, journal)
    (branch,) = asyncio.run(work.run(rows))
    journal.close()
    assert (branch.records, branch.problem) == (0, "INVALID_RECORD")


def test_too_few_replicas_in_sync_are_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Short(Target):
        async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
            return {topic: {"min.insync.replicas": "2"} for topic in topics}

        async def append(
            self, broker: int, batches: Sequence[BatchToAppend]
        ) -> Mapping[TopicPartition, AppendResult]:
            return {one.tp: AppendResult(-1, "NOT_ENOUGH_REPLICAS", retryable=True) for one in batches}

    monkeypatch.setattr(restore_run_module, "PAUSE", 0)
    cluster = Short({TP: LED._replace(isr=(1,), replicas=(1, 2, 3))})
    rows = prepared(saved(tmp_path), cluster).rows
    journal = RestoreJournal(tmp_path, CLUSTER_ID, "source")
    (branch,) = asyncio.run(restore_run(cluster, journal).run(rows))
    journal.close()
    assert branch.problem is not None
    assert "min.insync.replicas is 2, and 1 of 3 replicas is in sync" in branch.problem
    assert "brokers 2 and 3 not: bring back who is missing" in branch.problem


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"retention.ms": "60000"}, "10 records may soon be deleted again"),
        (
            {"message.timestamp.before.max.ms": "60000"},
            "10 records or more will be refused: older than message.timestamp.before.max.ms of",
        ),
        ({"max.message.bytes": "70"}, "10 records or more will be refused: larger than max.message.bytes"),
        ({"segment.bytes": "70"}, "10 records or more will be refused: larger than max.message.bytes"),
        ({"message.timestamp.type": "LogAppendTime"}, "brokers set the time of each record anew"),
        ({"retention.ms": "-1", "message.timestamp.before.max.ms": str((1 << 63) - 1)}, None),
    ],
)
def test_records_too_old_for_the_topic_are_counted_before(
    tmp_path: Path, config: dict[str, str], said: str | None
) -> None:
    class Aged(Source):
        async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
            return dict.fromkeys(topics, config)

    notes = "\n".join(prepared(saved(tmp_path), Aged({TP: LED})).notes)
    assert (said in notes) if said else ("records" not in notes.partition("\n")[2])


def test_records_of_other_producers_are_not_counted_as_written_back(tmp_path: Path) -> None:
    journal = RestoreJournal(tmp_path, CLUSTER_ID, "source")
    journal.begin(ProducerIdentity(7, 0))
    journal.note("t-0", TP, 510, 5, 0)
    journal.note("t-0", TP, 515, 5, 10)
    found = asyncio.run(count_written(Target({TP: LED}), journal))
    journal.close()
    assert found == {TP: 10}


def test_records_that_stand_twice_are_counted_and_told(tmp_path: Path) -> None:
    """The cluster had forgotten the producer of the run that was killed, and took its last batch again."""
    before = prepared(saved(tmp_path), Source({TP: LED}))
    written = RestoredBranch(before.rows[0].rescued, TP, 10, None)
    result = RestoredRecords(before, (written,), {TP: 15})
    ((tp, why),) = result.failures
    assert tp == TP and why.startswith("15 records found afterwards, 10 were written: 5 stand there twice")
    assert RestoredRecords(before, (written,), {TP: 10}).failures == ()


@pytest.mark.parametrize(("days", "told"), [(0, False), (2, True)])
def test_who_goes_on_after_more_than_a_day_is_told_what_may_stand_twice(
    tmp_path: Path, days: int, told: bool
) -> None:
    directory = saved(tmp_path)
    before = prepared(directory, Source({TP: LED}))
    journal = RestoreJournal(directory, CLUSTER_ID, "source")
    journal.begin(ProducerIdentity(7, 0))
    journal.note(key_of(before.rows[0].rescued), TP, 505, 5, 0)
    journal.close()
    at = journal.path.stat().st_mtime - days * 86_400
    os.utime(journal.path, (at, at))
    now = prepared(directory, Source({TP: LED}))
    assert now.records == 5
    assert any("may stand there twice" in note for note in now.notes) is told
