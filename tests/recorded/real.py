"""``python -m tests.recorded.real [NAME…]``: plays incidents on a real Kafka and keeps its answers on tapes."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from testbed.kafka import ClusterSpec, KafkaCluster
from testbed.kafka.incidents import failed_disk, isr_dead, stale_long_tail
from testbed.kafka.wait import wait_until
from tests.command_server import Ended
from tests.recorded.commands import READING, Run
from tests.recorded.taped import Tape, run_taped

TAPES = Path(__file__).parent / "tapes"
_TOPIC = "orders"
TAPED = tuple(command for command in READING if command.name not in ("recover", "handover"))
"""Those ask brokers that are down again for minutes, also those of a tape."""


class RealIncident(NamedTuple):
    """A cluster and what happens to it."""

    spec: ClusterSpec
    play: Callable[[KafkaCluster], object]


def _isr_dead(cluster: KafkaCluster) -> None:
    cluster.client.create_topic(_TOPIC, [[1, 2, 3], [2, 3, 1]], {"min.insync.replicas": "2"})
    isr_dead(cluster, _TOPIC, (0, 1))


def _stale_long_tail(cluster: KafkaCluster) -> None:
    cluster.client.create_topic(_TOPIC, [[1, 2, 3]], {"min.insync.replicas": "2"})
    stale_long_tail(cluster, _TOPIC)


def _disk_and_voter(cluster: KafkaCluster) -> None:
    cluster.client.create_topic(_TOPIC, [[1], [2], [3], [1, 2], [2, 3], [3, 1]])
    for partition in range(6):
        cluster.client.produce(_TOPIC, partition, 100, acks="all", prefix="r")
    failed_disk(cluster, 2)
    lost = [p for p, state in cluster.metadata.partitions(_TOPIC).items() if state.replicas == (2,)]
    cluster.node(101).kill()
    wait_until(lambda: cluster.metadata.partition(_TOPIC, lost[0]).leader == -1, "an offline partition", 60.0)


INCIDENTS = {
    "real-stale-long-tail": RealIncident(ClusterSpec(), _stale_long_tail),
    "real-isr-dead": RealIncident(ClusterSpec(elr=False), _isr_dead),
    "real-disk-and-voter": RealIncident(ClusterSpec(controllers=3, log_dirs=2), _disk_and_voter),
}


def tape_of(name: str) -> Path:
    """The file of the incident's tape."""
    return TAPES / f"{name}.json.xz"


def taped(name: str, home: Path, *, bootstrap: str = "") -> Run:
    """Runs commands on the tape; with ``bootstrap``, on the cluster there, and keeps its answers."""
    file = tape_of(name)

    def run(words: tuple[str, ...], more: Mapping[str, str]) -> Ended:
        cluster = ("--bootstrap-server", bootstrap or Tape(file).bootstrap)
        return run_taped(file, (*words, *cluster), home, more, capture=bool(bootstrap))

    return run


def capture(name: str) -> None:
    """Plays the incident, and replaces its tape."""
    TAPES.mkdir(exist_ok=True)
    file = tape_of(name)
    file.unlink(missing_ok=True)
    incident = INCIDENTS[name]
    with KafkaCluster(incident.spec) as cluster, tempfile.TemporaryDirectory() as home:
        incident.play(cluster)
        tape = Tape(file)
        tape.bootstrap = cluster.bootstrap()
        tape.write()
        run = taped(name, Path(home), bootstrap=cluster.bootstrap())
        for command in TAPED:
            ended = run(command.words, {"KTRIAGE_WIDTH": "160"})
            print(f"{name}: {' '.join(command.words)}: status {ended.status}", flush=True)
            if ended.status not in (0, 1, 2):
                print(ended.out, ended.err)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or INCIDENTS:
        capture(chosen)
