"""The watch over metadata logs: exact incidents, each once, while the logs grow and after the watch was killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import PipelineError
from pipeline.storage import StoragePath, storage_path
from pipeline.watch import fold_records
from pipeline.watch.watch_checkpoint import CHECKPOINT
from pipeline.watch.watch_progress import WatchProgress
from pipeline.watch.watch_query import WatchSettings, watch
from tests.pipeline.watched_logs import (
    SECONDS,
    expected_rows,
    kill,
    new_logs,
    watching,
    written_logs,
    written_rows,
)
from tests.shipped_metadata_logs import append_incidents

pytestmark = pytest.mark.long


def settings(root: Path, most_bytes: int = 1 << 20) -> WatchSettings:
    return WatchSettings(
        storage_path(str(root / "shipped")), storage_path(str(root / "out")), 0.1, most_bytes
    )


def test_incidents_of_growing_logs_are_written_once_over_restarts(spark: Any, tmp_path: Path) -> None:
    logs = new_logs(tmp_path)
    rng = random.Random(1)
    seen: list[WatchProgress] = []
    for step in range(3):
        for number, log in enumerate(logs.values()):
            append_incidents(log, 10 * step + number, 15)
            # The last batch may be there in part only.
            log.write(log.size - rng.choice((0, 7, 90)))
        watch(spark, settings(tmp_path, 2_000), seen.append, print, once=True)
    for log in logs.values():
        log.write()
    watch(spark, settings(tmp_path, 2_000), seen.append, print, once=True)
    assert written_rows(tmp_path) == expected_rows(logs)
    batches = [progress.batch_id for progress in seen]
    assert batches == sorted(set(batches)) and len(batches) > 4
    last = seen[-1]
    assert {name: at.offset for name, at in last.clusters.items()} == {
        n: log.offset for n, log in logs.items()
    }
    assert last.furthest_behind is None
    assert any(progress.furthest_behind for progress in seen)
    # It has looked once and found nothing new: it does not wait for its next look.
    seldom = settings(tmp_path, 2_000)._replace(every_s=3600.0)
    watch(spark, seldom, seen.append, print, once=True)
    assert seen[-1] is last


def test_a_micro_batch_whose_worker_is_killed_is_carried_out_again_and_written_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = written_logs(tmp_path, 20)
    victim = tmp_path / "victim"
    fold_part = fold_records._fold_part

    def folds_and_waits(states: Any, batch_id: int, part: Any) -> Any:
        """The first worker of the second micro-batch does not end. The state of its cluster is written."""
        found = fold_part(states, batch_id, part)
        if batch_id == 1:
            try:
                with victim.open("x") as file:
                    print(os.getpid(), file=file)
            except FileExistsError:
                return found
            signal.pause()
        return found

    def kill_it() -> None:
        until = time.monotonic() + SECONDS
        while not (victim.exists() and victim.read_text().endswith("\n")):
            if time.monotonic() > until:
                return
            time.sleep(0.01)
        os.kill(int(victim.read_text()), signal.SIGKILL)

    monkeypatch.setattr(fold_records, "_fold_part", folds_and_waits)
    seen: list[WatchProgress] = []
    said: list[str] = []
    paused: list[float] = []
    killer = threading.Thread(target=kill_it)
    killer.start()
    watch(spark, settings(tmp_path, 1_000), seen.append, said.append, once=True, pause=paused.append)
    killer.join()
    assert said == [
        "micro-batch 1 failed because a Python worker was killed or crashed; attempt 2 of 5 begins in 5 s"
    ]
    assert paused == [5.0]
    assert written_rows(tmp_path) == expected_rows(logs)
    batches = [progress.batch_id for progress in seen]
    assert batches == list(range(len(batches))) and len(batches) > 2


def test_without_its_checkpoint_a_watch_does_not_write_everything_again(spark: Any, tmp_path: Path) -> None:
    logs = new_logs(tmp_path)
    append_incidents(logs["alpha"], 1, 5)
    logs["alpha"].write()
    watch(spark, settings(tmp_path), lambda _: None, print, once=True)
    (tmp_path / "out" / CHECKPOINT).rename(tmp_path / "gone")
    with pytest.raises(PipelineError, match="is gone; name another directory"):
        watch(spark, settings(tmp_path), lambda _: None, print, once=True)


def test_a_log_that_is_not_read_is_named_in_each_run_and_the_others_go_on(spark: Any, tmp_path: Path) -> None:
    logs = new_logs(tmp_path)
    logs["alpha"].write()
    for _ in range(2):
        seen: list[WatchProgress] = []
        watch(spark, settings(tmp_path), seen.append, print, once=True)
        assert len(seen[-1].problems) == 1
        assert seen[-1].problems[0].startswith(f"beta: {tmp_path}/shipped/beta: holds no metadata log")
    assert seen[-1].clusters["alpha"].offset == logs["alpha"].offset
    logs["beta"].write()
    watch(spark, settings(tmp_path), seen.append, print, once=True)
    assert not seen[-1].problems and written_rows(tmp_path) == expected_rows(logs)


@pytest.mark.parametrize(
    ("made", "said"), [(False, "shipped: cannot be read: No such file"), (True, "has no directory in it")]
)
def test_a_wrong_path_is_no_quiet_fleet(spark: Any, tmp_path: Path, made: bool, said: str) -> None:
    if made:
        (tmp_path / "shipped").mkdir()
    with pytest.raises(PipelineError, match=said):
        watch(spark, settings(tmp_path), lambda _: None, print, once=True)
    assert not (tmp_path / "out").exists()


def test_a_cluster_has_its_id_if_it_is_known_and_stays_under_one_name(spark: Any, tmp_path: Path) -> None:
    logs = new_logs(tmp_path)
    properties = {name: tmp_path / "shipped" / name / "meta.properties" for name in logs}
    for step in range(2):
        for number, log in enumerate(logs.values()):
            append_incidents(log, 10 * step + number, 15)
            log.write()
        # That of beta comes when the tables have rows of it.
        for name in ("alpha", "beta")[: step + 1]:
            properties[name].write_text(f"version=1\ncluster.id=id-of-{name}\n")
        watch(spark, settings(tmp_path), lambda _: None, print, once=True)
    clusters = {"id-of-alpha": logs["alpha"], "beta": logs["beta"]}
    assert written_rows(tmp_path) == expected_rows(clusters, **{"id-of-alpha": "alpha"})
    properties["beta"].write_text("version=1\ncluster.id=id-of-alpha\n")
    with pytest.raises(
        PipelineError, match="alpha and beta are both of cluster id-of-alpha: ship one of them"
    ):
        watch(spark, settings(tmp_path), lambda _: None, print, once=True)


def test_a_store_for_which_spark_has_no_client_is_one_line(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = new_logs(tmp_path)
    logs["alpha"].write()
    # The tables need no client of Hadoop's: only the checkpoint, which Spark writes.
    monkeypatch.setattr(StoragePath, "hadoop", property(lambda _: "s3a://lake/checkpoint"))
    with pytest.raises(PipelineError) as told:
        watch(spark, settings(tmp_path), lambda _: None, print, once=True)
    assert str(told.value) == (
        "watch: Spark: it has no client for that store (org.apache.hadoop.fs.s3a.S3A), and needs"
        " Hadoop's: docs/pipeline.md, Where it runs"
    )


@pytest.mark.timeout(600)
def test_a_watch_that_is_killed_writes_everything_once(spark: Any, tmp_path: Path) -> None:
    logs = written_logs(tmp_path, 5_000)
    expected = expected_rows(logs)
    with watching(tmp_path) as process:
        # One of the two tables has the first micro-batch; the other may have it.
        wait_for(process, tmp_path / "out", "metadata_events/_delta_log/*1.json")
        kill(process)
    assert written_rows(tmp_path) != expected
    seen: list[WatchProgress] = []
    watch(spark, settings(tmp_path), seen.append, print, once=True)
    assert [at.unread for at in seen[-1].clusters.values()] == [0, 0]
    assert written_rows(tmp_path) == expected


def wait_for(process: subprocess.Popen[str], out: Path, pattern: str) -> None:
    until = time.monotonic() + SECONDS
    while not any(out.glob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)
