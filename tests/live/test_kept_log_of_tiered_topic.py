"""The log of a silent broker is kept, read and written back where the topic has remote storage.

The history of ``test_kept_logs``: 3 alone has the last records and is down; 1 is elected without them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from testbed.kafka.config import INTERNAL_LISTENER
from testbed.kafka.jars import TIERED_STORAGE, cache_directory, fetch_tiered_storage
from tests.live import incident_steps
from tests.live.rescued_records import values
from tests.live.test_kept_logs import AGREED, console_of, disk, stray_bytes

pytestmark = pytest.mark.long

REMOTE = "../remote"
ENABLED = {"remote.log.storage.system.enable": "true"}
CLUSTER = ClusterSpec(
    controller_config=ENABLED,
    broker_config={
        **ENABLED,
        "remote.log.storage.manager.class.name": (
            "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
        ),
        "remote.log.storage.manager.class.path": f"{cache_directory(TIERED_STORAGE)}/*",
        "rsm.config.dir": REMOTE,
        "remote.log.metadata.manager.listener.name": INTERNAL_LISTENER,
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "3",
        "remote.log.manager.task.interval.ms": "300",
        "log.initial.task.delay.ms": "100",
        "log.retention.check.interval.ms": "300",
    },
)
TOPIC = "tiered"
COMMON, ALONE = 500, 300


@pytest.fixture(scope="module", autouse=True)
def storage_jars() -> None:
    fetch_tiered_storage()


def local_start(cluster: KafkaCluster, broker: int) -> int:
    """The base offset of the first segment on the broker's disk."""
    [home] = cluster.node(broker).log_dirs
    return min(int(path.stem) for path in home.glob(f"{TOPIC}-0/*.log"))


@pytest.fixture(scope="module")
def offline(cluster: KafkaCluster) -> Counter[str]:
    """3 wrote ``ALONE`` records alone; on its disk the oldest of all records are missing, they were uploaded."""
    config = {
        "min.insync.replicas": "1",
        "remote.storage.enable": "true",
        "segment.ms": "200",
        "local.retention.ms": "1",
        "retention.ms": "-1",
    }
    cluster.client.create_topic(TOPIC, [[3, 1, 2]], config)
    common: Counter[str] = Counter()
    for number in range(5):
        common.update(incident_steps.produce(cluster, TOPIC, COMMON // 5, f"common-{number}"))
    wait_until(
        lambda: local_start(cluster, 3) > 0, "3 to have its first records only in the remote storage", 90.0
    )
    incident_steps.pause(cluster, 1, 2)
    incident_steps.wait_all(cluster, [TOPIC], lambda state: state.isr == (3,), "with 3 alone in the ISR")
    incident_steps.produce(cluster, TOPIC, ALONE, "alone")
    incident_steps.kill(cluster, 3)
    incident_steps.start(cluster, 1, 2)
    incident_steps.wait_offline(cluster, [TOPIC])
    return common


def test_a_kept_log_of_a_tiered_topic_is_read_and_written_back(
    cluster: KafkaCluster, offline: Counter[str], tmp_path: Path
) -> None:
    [home] = cluster.node(3).log_dirs
    size = sum(log.stat().st_size for log in home.glob(f"{TOPIC}-0/*.log"))
    assert local_start(cluster, 3) <= COMMON, "nothing that 3 took alone was uploaded"
    console = console_of(cluster, tmp_path)
    console.plan_aggressively(TOPIC)
    status, applied = console.json("apply", "plan.json", "--keep-log-of", "3", *AGREED)
    assert status == 0, applied["failures"]
    incident_steps.start(cluster, 3)
    wait_until(lambda: stray_bytes(cluster, TOPIC) == size, "the stray, whole")
    status, read = console.json("rescue", "read", "--to", "saved", "--topic", TOPIC, *disk(cluster))
    (branch,) = read["branches"]
    assert (status, branch["startOffset"], branch["endOffset"]) == (0, COMMON, COMMON + ALONE), read
    ended = console("restore", "saved", "--to-source", *AGREED)
    assert ended.status == 0, ended
    alone = Counter(f"alone-{number}" for number in range(ALONE))
    assert values(cluster, TOPIC) == offline + alone
    assert stray_bytes(cluster, TOPIC) == size
