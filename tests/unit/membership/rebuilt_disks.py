"""The directories that real Kafka 4.3.1 left, for the tests of ``quorum rebuild``: 100 survives, 101 and 102 are
gone for good.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.disk_scan.scan_script import scan_script
from backends.metadata_log.batch_writer import leader_change_batch
from backends.metadata_log.quorum_copy import read_quorum_copy
from console.jobs.quorum.lost_quorum_evidence import history_of
from console.jobs.quorum.quorum_rebuild import (
    RebuildRefused,
    RebuildRequest,
    apply_rebuild,
    make_rebuild,
)
from recovery.membership.quorum_rebuild import GivenVoter, RebuildPlan

LOGS = Path(__file__).parent / "lost_quorum"
SEGMENT = "00000000000000000000.log"
METADATA = "__cluster_metadata-0"
VOTER = GivenVoter(100, "", "127.0.0.1", 27644)
ORDERS = "orders"


def silent(_host: str, _port: int) -> bool:
    return False


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """The directories, to be changed."""
    shutil.copytree(LOGS, tmp_path / "disks")
    return tmp_path / "disks"


def request(disks: Path, **changed: Any) -> RebuildRequest:
    return replace(
        RebuildRequest(disks / "node-100", (VOTER,), (101, 102), data=(disks / "node-1", disks / "node-2")),
        **changed,
    )


def made(disks: Path, **changed: Any) -> RebuildPlan:
    return make_rebuild(request(disks, **changed), silent).plan


def reasons(disks: Path, answering: Callable[[str, int], bool] = silent, **changed: Any) -> str:
    with pytest.raises(RebuildRefused) as refused:
        make_rebuild(request(disks, **changed), answering)
    return "\n".join(refused.value.reasons)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def blank_controller(disks: Path, node: int = 100) -> Path:
    """As kafka-storage format --no-initial-controllers leaves it."""
    path = disks / "blank"
    path.mkdir()
    meta = (disks / "node-100" / "meta.properties").read_text().splitlines()
    changed = {"node.id": str(node), "directory.id": "BBBBBBBBBBBBBBBBBBBBBg"}
    lines = [
        f"{key}={changed.get(key, value)}" for key, _, value in (line.partition("=") for line in meta[2:])
    ]
    (path / "meta.properties").write_text("\n".join(lines) + "\n")
    return path


def rebuilt_and_led(disks: Path) -> RebuildPlan:
    """100 was rebuilt to be the only voter, and leads."""
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    with (disks / "node-100" / METADATA / SEGMENT).open("ab") as log:
        log.write(as_leader(plan))
    return plan


class HeldLock:
    """A process that holds the lock as Kafka does."""

    def __init__(self, path: Path) -> None:
        lock = "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True)"
        lock += "; input()"
        self._kafka = subprocess.Popen(
            [sys.executable, "-c", lock, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> None:
        assert self._kafka.stdout is not None
        self._kafka.stdout.readline()

    def __exit__(self, *_: object) -> None:
        self._kafka.kill()
        self._kafka.communicate()


def partition_folder(disks: Path, topic_id: str, epoch: int, broker: int = 1, partition: int = 0) -> None:
    folder = disks / f"node-{broker}" / f"{ORDERS}-{partition}"
    folder.mkdir(exist_ok=True)
    (folder / SEGMENT).touch()
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 0\n")


UNKNOWN = "AAAAAAAAAAAAAAAAAAAA7w"


def orders_id(disks: Path) -> str:
    (topic_id,) = history_of(read_quorum_copy(disks / "node-100")).topic_ids(ORDERS)
    return topic_id


NO_OP = bytes((1, 20, 0, 0))


def as_leader(plan: RebuildPlan) -> bytes:
    """What a leader begins its epoch with; the segment may end there."""
    return leader_change_batch(plan.end, plan.epoch + 1, 6, plan.key.id, (plan.key.id,))


def scan_file(directory: Path, *log_dirs: Path) -> Path:
    """The output of the script of ``disk script``."""
    argv = [sys.executable, "-I", "-S", "-", *map(str, log_dirs)]
    done = subprocess.run(argv, input=scan_script(), capture_output=True, text=True, timeout=60, check=True)
    path = directory / f"{log_dirs[0].name}.json"
    path.write_text(done.stdout)
    return path
