"""``make demo-kafka``: two incidents on a real Kafka and their recovery: every in-sync replica of a partition dies,
and then a majority of the controllers lose their disks.

Everything is real: the brokers, the SIGKILLs, the commands (the same as in README) and the consumer that reads the
result. Without a terminal the demo prints its text and ends.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from recovery.model import NO_LEADER
from testbed.kafka import ClusterSpec, KafkaCluster, TestbedError
from testbed.kafka.incidents import OfflineIncident, stale_long_tail
from testbed.kafka.jars import cache_directory
from testbed.kafka.wait import wait_until

TOPIC = "orders"
WIDTH = 88


class DemoOutput:
    """Prints headings, paragraphs and steps; runs commands and shows their output."""

    def __init__(self, clock: Callable[[], float], terminal: bool) -> None:
        self._clock = clock
        self._began = clock()
        self._terminal = terminal

    def heading(self, text: str) -> None:
        bold, plain = ("\033[1m", "\033[0m") if self._terminal and "NO_COLOR" not in os.environ else ("", "")
        print(f"\n{bold}{text}{plain}\n{'─' * len(text)}", flush=True)

    def paragraph(self, text: str) -> None:
        print(textwrap.fill(" ".join(text.split()), WIDTH), flush=True)

    def step(self, text: str) -> None:
        print(f"  {self._clock() - self._began:5.1f} s  {text}", flush=True)

    @property
    def interactive(self) -> bool:
        """Whether a user can press a key."""
        return self._terminal and sys.stdin.isatty()

    def wait(self, what: str) -> None:
        """On a terminal, waits for Enter."""
        if self.interactive:
            input(f"\n[Enter] {what} ")

    def command(self, *words: str, state: Path) -> int:
        """Shows and runs ``ktriage WORDS…`` as a user would; returns its exit status."""
        print(f"\n$ {shlex.join(('ktriage', *words))}", flush=True)
        program = Path(sys.executable).with_name("ktriage")
        environment = {**os.environ, "XDG_STATE_HOME": str(state)}
        if not self._terminal:
            environment["KTRIAGE_WIDTH"] = str(WIDTH)
        ended = subprocess.run([program, *words], env=environment, check=False)
        print(f"(exit status {ended.returncode})", flush=True)
        return ended.returncode


def play(cluster: KafkaCluster, output: DemoOutput) -> int:
    """The incident, the replicas' logs, the recovery and the proof; returns the exit status."""
    connection = ("--bootstrap-server", cluster.bootstrap().split(",")[0])
    state = Path(cluster.directory) / "state"
    cluster.client.create_topic(TOPIC, [[1, 2, 3]], {"min.insync.replicas": "2"})
    output.heading("The incident: every in-sync replica dies, one after another")
    incident = stale_long_tail(cluster, TOPIC, 0, output.step)
    output.wait("see the logs of the replicas")

    output.heading("What each surviving replica holds")
    output.command("replicas", *connection, "--all-offline-partitions", state=state)
    output.paragraph(
        """Broker 1 has the longest log, 1,500 records. But its last 500 are of epoch 0, written by a leader
        that then died. Broker 2 has 1,300 records: its last 300 are of epoch 2, newer, and acknowledged with
        acks=all. A choice by length, or of the first replica in the assignment, elects broker 1 and destroys
        those 300 records. Electing broker 2 cuts off the 500, so they are read first and written back
        afterwards."""
    )
    output.heading("The recovery")
    status = recover(cluster, connection, output, state)
    if status != 0:
        return status
    output.heading("The proof: a consumer reads the partition from the beginning")
    cluster.node(incident.dead[0]).start()
    cluster.metadata.wait_isr(TOPIC, 0, [1, 2, 3])
    output.step(f"broker {incident.dead[0]} is back too; all three replicas are in sync again")
    return proof(cluster, incident, output)


def recover(cluster: KafkaCluster, connection: tuple[str, ...], output: DemoOutput, state: Path) -> int:
    """By hand in the console on a terminal; otherwise, or if the user did not recover it, by the commands."""
    if output.interactive:
        output.wait(
            "open the console on this cluster and recover the partition by hand; q leaves the console"
        )
        output.command(*connection, "--guide", state=state)
        if cluster.metadata.partitions(TOPIC)[0].leader != NO_LEADER:
            return 0
        output.paragraph("The partition is still offline. The commands recover it now.")
    plan, rescue = str(state / "recovery.json"), str(state / "rescue")
    state.mkdir(parents=True, exist_ok=True)
    agreed = ("--yes", "--reason", "the demo")
    for words in (
        ("plan", *connection, "--all-offline-partitions", "--strategy", "aggressive", plan),
        ("apply", *connection, plan, "--rescue", rescue, *agreed),
        ("restore", *connection, rescue, "--to-source", *agreed),
    ):
        status = output.command(*words, state=state)
        if status != 0:
            return status
    return 0


def proof(cluster: KafkaCluster, incident: OfflineIncident, output: DemoOutput) -> int:
    """Compares the readable with the acknowledged records; returns 1 if an acknowledged one is missing."""
    values = {record.value for record in cluster.client.consume(TOPIC, 0)}
    present = sum(1 for value in incident.acks_all if value in values)
    tail = sum(1 for value in incident.acks_one if value in values)
    common = sum(1 for value in incident.acks_all if value.startswith("common"))
    apart = len(incident.acks_all) - common + len(incident.acks_one)
    output.step(f"{present:,} of {len(incident.acks_all):,} records acknowledged with acks=all are there")
    output.step(f"{tail:,} of the {len(incident.acks_one):,} records that only a dead leader had are there")
    output.step(
        f"{present + tail - common:,} of {apart:,} records that only one of the two logs had are there"
    )
    if present != len(incident.acks_all):
        why = "unless broker 1 was elected by hand, this is a defect of ktriage"
        print(f"acknowledged records are missing: {why}", file=sys.stderr)
        return 1
    return 0


SURVIVOR, LOST = 100, (101, 102)


def play_lost_quorum(cluster: KafkaCluster, output: DemoOutput) -> int:
    """A majority of the controllers is lost for good, and one that is left becomes the only voter; returns the exit
    status.
    """
    connection = ("--bootstrap-server", cluster.bootstrap().split(",")[0])
    state = Path(cluster.directory) / "state"
    output.wait("the second incident: most controllers lose their disks")
    output.heading("The second incident: two of three controllers lose their disks, for good")
    before = [record.value for record in cluster.client.consume(TOPIC, 0)]
    cluster.metadata.wait_caught_up()
    for node in LOST:
        cluster.node(node).kill()
        cluster.node(node).wipe_log_dir()
    output.step(f"controllers {LOST[0]} and {LOST[1]} are killed, their disks are destroyed")
    alone = cluster.client.produce(TOPIC, 0, 20, prefix="without-a-controller").acknowledged
    output.step(f"{len(alone)} records more are acknowledged: partitions with a leader need no controller")
    output.paragraph(
        """Nothing else works any more: no election, no topic, no configuration, and no controller can be added.
        Kafka has no way out of this. Every controller and every broker has a copy of the metadata, though."""
    )
    output.command("quorum", "status", *connection, state=state)
    status = rebuild(cluster, output, state)
    if status != 0:
        return status
    output.heading("The proof: the same records, and three voters again")
    cluster.node(SURVIVOR).start()
    cluster.metadata.wait_live(cluster.spec.broker_ids, 60)
    output.step(f"controller {SURVIVOR} leads, and every broker is registered with it")
    after = [record.value for record in cluster.client.consume(TOPIC, 0)]
    present = sum(1 for value in (*before, *alone) if value in set(after))
    output.step(f"{present:,} of {len(before) + len(alone):,} records are there")
    if present != len(before) + len(alone):
        print("records are missing: this is a defect of ktriage", file=sys.stderr)
        return 1
    if output.interactive:
        output.wait("open the console: 4, then M, shows which step comes next; q leaves the console")
        output.command(*connection, state=state)
    return grow(cluster, connection, output, state)


def rebuild(cluster: KafkaCluster, output: DemoOutput, state: Path) -> int:
    """Compares what is left, makes the plan, rehearses it and carries it out."""
    survivor, plan = cluster.node(SURVIVOR), str(state / "rebuild.json")
    disks = [str(broker.log_dirs[0]) for broker in cluster.brokers.values()]
    survivor.stop()
    output.step(f"controller {SURVIVOR} is stopped: its directory is written next")
    dead = [word for node in LOST for word in ("--dead", str(node))]
    data = [word for disk in disks for word in ("--data", disk)]
    voter = f"{SURVIVOR}@127.0.0.1:{survivor.port}"
    making = ("--from", str(survivor.log_dirs[0]), "--voter", voter, *dead, *data, "--plan-out", plan)
    kafka = str(cache_directory(cluster.spec.version))
    for title, words in (
        ("What is left", ("evidence", str(survivor.log_dirs[0]), *disks)),
        ("The plan: nothing is written yet", ("rebuild", *making)),
        ("The rehearsal, on a copy", ("rebuild", plan, "--rehearse", "--kafka-dir", kafka)),
        ("The rebuild", ("rebuild", plan, "--yes", "--reason", "the demo")),
    ):
        output.wait(f"go on: {title}")
        output.heading(title)
        status = output.command("quorum", *words, state=state)
        if status != 0:
            return status
    return 0


def grow(cluster: KafkaCluster, connection: tuple[str, ...], output: DemoOutput, state: Path) -> int:
    """Two new controllers in place of the lost ones."""
    for node in LOST:
        cluster.format_again(node)
        cluster.node(node).start()

        def fetches(node: int = node) -> bool:
            listed = cluster.tools("kafka-metadata-quorum", "describe", "--replication", check=False)
            return any(line.startswith(str(node)) for line in listed.stdout.splitlines())

        wait_until(fetches, f"controller {node} to fetch from the quorum", 60)
        output.step(f"controller {node}: formatted with --no-initial-controllers, started; it fetches")
        words = ("quorum", "add", str(node), *connection, "--yes", "--reason", "the demo")
        status = output.command(*words, state=state)
        if status != 0:
            return status
    return output.command("quorum", "status", *connection, state=state)


def main() -> int:
    output = DemoOutput(time.monotonic, sys.stdout.isatty())
    output.heading("ktriage: a recovery on a real Kafka (3 controllers, 3 brokers, on this machine)")
    output.step("starting Kafka 4.3.1 (the first run downloads its jars)")
    try:
        with KafkaCluster(ClusterSpec(controllers=3)) as cluster:
            output.step(f"the cluster is up at {cluster.bootstrap()}")
            status = play(cluster, output) or play_lost_quorum(cluster, output)
            if status == 0:
                output.paragraph(
                    """No record that Kafka acknowledged with acks=all was lost. The same commands work on your
                    cluster: .venv/bin/ktriage --help, and docs/ for the runbooks."""
                )
            output.step("stopping the cluster, removing its files")
    except TestbedError as error:
        print(f"ktriage demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the cluster is gone", file=sys.stderr)
        return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
