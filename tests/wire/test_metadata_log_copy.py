"""``ktriage metadata-log copy`` beside a cluster that lives on: kills, another active controller, Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from backends.metadata_log.directory import DIRECTORY
from backends.simulator.network import NetworkRole
from backends.simulator.scenario.files import read
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from pipeline.watch.shipped_log import ShippedLog, cluster_directories
from tests.unit.cli.command_process import command_line, environment, invoke
from tests.wire.cluster_thread import WAIT, ClusterThread
from tests.wire.test_nodes import happen

SCENARIO = read(str(Path(__file__).parent / "scenarios" / "three-at-peace.yaml"))
SEGMENT = Path("shipped") / "production" / DIRECTORY / "00000000000000000000.log"


@pytest.fixture
def served() -> Iterator[ClusterThread]:
    with ClusterThread(SCENARIO, ServedClusterOptions(speed=0)) as found:
        yield found


def log_of(cluster: ServedCluster) -> bytes:
    """The cluster's log as it is now."""
    log = cluster.context.metadata_log
    log.catch_up()
    return log.read(0, 1 << 30)


def happens(served: ClusterThread, *events: str) -> bytes:
    """Makes them happen, and lets half a minute pass behind each; returns the log after them."""

    def carried_out(cluster: ServedCluster) -> bytes:
        for words in events:
            happen(cluster, words)
            cluster.clock.step(30)
        return log_of(cluster)

    return served.do(carried_out)


def words(served: ClusterThread) -> tuple[str, ...]:
    controllers = served.do(lambda cluster: cluster.context.servers(NetworkRole.CONTROLLER))
    return ("metadata-log", "copy", "--bootstrap-controller", controllers, "--to", "shipped/production")


@contextmanager
def following(home: Path, served: ClusterThread) -> Iterator[subprocess.Popen[str]]:
    """A process that follows, once it has copied what was there."""
    process = subprocess.Popen(
        command_line("ktriage", *words(served), "--follow", "--output", "json"),
        env=environment(home),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        assert json.loads(line)["nextOffset"] > 0
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(home: Path, data: bytes) -> None:
    deadline = time.monotonic() + WAIT
    while (home / SEGMENT).read_bytes() != data:
        assert time.monotonic() < deadline, "waited for the copy to be the log"
        time.sleep(0.02)


def test_a_copy_follows_to_the_next_controller_through_kills_and_ends_with_ctrl_c(
    served: ClusterThread, tmp_path: Path
) -> None:
    with following(tmp_path, served) as process:
        wait_for(tmp_path, happens(served, "kill broker-1", "kill-controller controller-100"))
        process.kill()
    whole = happens(served, "start broker-1", "start-controller controller-100")
    assert (tmp_path / SEGMENT).read_bytes() != whole
    with (tmp_path / SEGMENT).open("ab") as file:
        file.write(whole[file.tell() :][:70])
    with following(tmp_path, served) as process:
        wait_for(tmp_path, whole)
        wait_for(tmp_path, happens(served, "kill broker-2"))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT)
    assert process.returncode == 130
    assert json.loads(out)["nextOffset"] > 0
    assert "70 B at the end were no whole batch, and were cut off" in err
    assert "Traceback" not in err
    found = cluster_directories(tmp_path / "shipped")
    assert list(found) == ["production"]
    end = ShippedLog(found["production"]).latest(None, 1 << 30)
    assert (end.problem, end.unread) == (None, 0)
    assert end.offset == json.loads(out)["nextOffset"]


def test_who_may_not_read_the_log_is_told_the_permission(served: ClusterThread, tmp_path: Path) -> None:
    served.change(
        lambda world: setattr(world.context.denied, "permissions", frozenset(("CLUSTER_ACTION cluster",)))
    )
    ended = invoke(tmp_path, "ktriage", *words(served))
    assert (ended.status, ended.out) == (3, "")
    assert "needs CLUSTER_ACTION on" in ended.err


def test_a_cluster_that_cannot_be_reached_is_one_line(tmp_path: Path) -> None:
    to = ("--bootstrap-controller", "127.0.0.1:1", "--to", "copy")
    ended = invoke(tmp_path, "ktriage", "metadata-log", "copy", *to, "--follow")
    assert (ended.status, ended.out) == (3, "")
    assert len(ended.err.splitlines()) == 1
    assert not (tmp_path / "copy").exists()
