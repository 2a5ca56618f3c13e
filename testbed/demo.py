"""``make demo-kafka``: the stale long tail on a real Kafka, recovered before the user's eyes.

Everything is real: the brokers, the SIGKILLs, the commands (they are the ones that the README shows) and the
consumer that reads back what is left. Without a terminal the story is played as text and ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from recovery.model import NO_LEADER
from testbed.kafka import ClusterSpec, KafkaCluster, TestbedError
from testbed.kafka.incidents import Incident, stale_long_tail

TOPIC = "orders"
WIDTH = 88


class Stage:
    """Where the story is told: headings, paragraphs, steps, and real commands with what they print."""

    def __init__(self, clock: Callable[[], float], terminal: bool) -> None:
        self._clock = clock
        self._began = clock()
        self._terminal = terminal

    def heading(self, text: str) -> None:
        bold, plain = ("\033[1m", "\033[0m") if self._terminal and "NO_COLOR" not in os.environ else ("", "")
        print(f"\n{bold}{text}{plain}\n{'─' * len(text)}", flush=True)

    def tell(self, text: str) -> None:
        print(textwrap.fill(" ".join(text.split()), WIDTH), flush=True)

    def step(self, text: str) -> None:
        print(f"  {self._clock() - self._began:5.1f} s  {text}", flush=True)

    @property
    def interactive(self) -> bool:
        """Whether somebody is there who can press a key."""
        return self._terminal and sys.stdin.isatty()

    def wait(self, what: str) -> None:
        """On a terminal the reader decides when it goes on."""
        if self.interactive:
            input(f"\n[Enter] {what} ")

    def command(self, *words: str, state: Path) -> int:
        """Runs ``ktriage WORDS…`` as a user would, and shows both; returns its exit status."""
        print(f"\n$ ktriage {' '.join(words)}", flush=True)
        program = Path(sys.executable).with_name("ktriage")
        environment = {**os.environ, "XDG_STATE_HOME": str(state)}
        if not self._terminal:
            environment["KTRIAGE_WIDTH"] = str(WIDTH)
        ended = subprocess.run([program, *words], env=environment, check=False)
        print(f"(exit status {ended.returncode})", flush=True)
        return ended.returncode


def story(cluster: KafkaCluster, stage: Stage) -> int:
    """The incident, the two rankings, the recovery and the proof; returns the exit status."""
    connection = ("--bootstrap-server", cluster.bootstrap().split(",")[0])
    state = Path(cluster.directory) / "state"
    cluster.traffic.create_topic(TOPIC, [[1, 2, 3]], {"min.insync.replicas": "2"})
    stage.heading("The incident: every in-sync replica dies, one after another")
    incident = stale_long_tail(cluster, TOPIC, 0, stage.step)
    stage.wait("look at the logs that are left")

    stage.heading("What each surviving replica holds")
    stage.command("replicas", *connection, "--all-offline-partitions", state=state)
    stage.tell(
        """Broker 1 has the longest log, 1,500 records: but its last 500 are of epoch 0, taken by a leader
        that died. Broker 2 has 1,300: its last 300 are of epoch 2, newer, and acknowledged with acks=all.
        A choice by length, or whoever comes first, takes broker 1 and destroys them."""
    )
    stage.heading("The recovery")
    status = recovered(cluster, connection, stage, state)
    if status != 0:
        return status
    stage.heading("The proof: a consumer reads the partition from its beginning")
    cluster.node(incident.dead[0]).start()
    cluster.observe.wait_isr(TOPIC, 0, [1, 2, 3])
    stage.step(f"broker {incident.dead[0]} is back too, and all three replicas are in sync again")
    return proof(cluster, incident, stage)


def recovered(cluster: KafkaCluster, connection: tuple[str, ...], stage: Stage, state: Path) -> int:
    """By hand in the console where there is a terminal; by the command where there is none, or nobody did it."""
    if stage.interactive:
        stage.wait("open the console on this cluster, and recover it by hand; q leaves it")
        stage.command(*connection, "--guide", state=state)
        if cluster.observe.partitions(TOPIC)[0].leader != NO_LEADER:
            return 0
        stage.tell("The partition is still offline: the command does it now.")
    return stage.command(
        "recover",
        *connection,
        "--all-offline-partitions",
        "--automated-recovery",
        "--recovery-duration-ms",
        "5000",
        state=state,
    )


def proof(cluster: KafkaCluster, incident: Incident, stage: Stage) -> int:
    """Compares what can be read with what had been acknowledged; 1 where anything acknowledged is missing."""
    values = {record.value for record in cluster.traffic.consume(TOPIC, 0)}
    kept = sum(1 for value in incident.promised if value in values)
    tail = sum(1 for value in incident.unpromised if value in values)
    stage.step(f"{kept:,} of {len(incident.promised):,} records acknowledged with acks=all are there")
    stage.step(
        f"{tail:,} of the {len(incident.unpromised):,} records that only a dead leader had, as was told before"
    )
    if kept != len(incident.promised):
        what = "unless broker 1 was elected by hand, this is a defect of ktriage"
        print(f"records that had been acknowledged are missing: {what}", file=sys.stderr)
        return 1
    stage.tell("")
    stage.tell(
        """Nothing that Kafka had promised to keep was lost. The same commands work on your cluster:
        .venv/bin/ktriage --help, and docs/ for the runbooks."""
    )
    return 0


def main() -> int:
    stage = Stage(time.monotonic, sys.stdout.isatty())
    stage.heading("ktriage: a recovery on a real Kafka (3 controllers, 3 brokers, on this machine)")
    stage.step("starting Kafka 4.3.1 (its jars are fetched the first time)")
    try:
        with KafkaCluster(ClusterSpec()) as cluster:
            stage.step(f"the cluster is up at {cluster.bootstrap()}")
            status = story(cluster, stage)
            stage.step("stopping the cluster and removing its files")
    except TestbedError as error:
        print(f"ktriage demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the cluster is gone", file=sys.stderr)
        return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
