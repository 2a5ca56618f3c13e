"""Random cases, answered by a released Kafka's own PartitionChangeBuilder: how partition-change-4.3.1.json is made.

``python -m tests.unit.controller.oracle.generate KAFKA_LIBS [--seed N] [--count N] [--output FILE]`` with a
directory of that release's jars and a JDK.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any

BROKERS = range(1, 7)
OUTPUT = Path(__file__).parents[3] / "vectors" / "partition-change-4.3.1.json"
Case = dict[str, Any]


def case(seeded: random.Random) -> Case:
    """One partition in any state the controller could hold, and something asked of it."""
    elr_enabled = seeded.random() < 0.8
    partition, min_isr = _partition(seeded, elr_enabled)
    asked: Case = {
        "partition": partition,
        "acceptableLeaders": [] if seeded.random() < 0.3 else sorted(_some(seeded, BROKERS)),
        "minIsr": min_isr,
        "elrEnabled": elr_enabled,
        "election": seeded.choice(["PREFERRED", "ONLINE", "UNCLEAN"]),
        "useLastKnownLeaderInBalancedRecovery": seeded.random() < 0.75,
    }
    ask = seeded.choice([_broker_leaves, _new_isr, _reassign, _cancel, lambda *_: {}])
    return asked | ask(seeded, partition, elr_enabled)


def _partition(seeded: random.Random, elr_enabled: bool) -> tuple[Case, int]:
    replicas = seeded.sample(BROKERS, seeded.randint(1, 4))
    min_isr = seeded.randint(1, len(replicas))
    adding: list[int] = []
    removing: list[int] = []
    if seeded.random() < 0.35:
        others = [broker for broker in BROKERS if broker not in replicas]
        adding = seeded.sample(others, seeded.randint(0, 2))
        removing = sorted(seeded.sample(replicas, seeded.randint(0, len(replicas) - 1)))
        replicas = replicas + adding if seeded.random() < 0.5 else adding + replicas
    isr = _some(seeded, replicas) or ([] if elr_enabled else replicas[:1])
    rest = [replica for replica in replicas if replica not in isr]
    elr = sorted(_some(seeded, rest)) if elr_enabled and len(isr) < min_isr else []
    last_known = seeded.choice(
        [[], [], [seeded.choice(replicas)], sorted(replica for replica in rest if replica not in elr)]
    )
    partition = {
        "replicas": replicas,
        "isr": isr,
        "elr": elr,
        "lastKnownElr": last_known,
        "leader": seeded.choice(isr) if isr and seeded.random() < 0.7 else -1,
        "leaderRecoveryState": "RECOVERING" if seeded.random() < 0.15 else "RECOVERED",
        "removing": removing,
        "adding": sorted(adding),
        "leaderEpoch": 5,
        "partitionEpoch": 9,
    }
    return partition, min_isr


def _broker_leaves(seeded: random.Random, partition: Case, _: bool) -> Case:
    gone = seeded.choice(partition["replicas"])
    asked: Case = {"targetIsr": [broker for broker in partition["isr"] if broker != gone]}
    return asked | ({"uncleanShutdownReplicas": [gone]} if seeded.random() < 0.4 else {})


def _new_isr(seeded: random.Random, partition: Case, elr_enabled: bool) -> Case:
    isr = _some(seeded, partition["replicas"])
    asked: Case = {"targetIsr": isr} if isr or elr_enabled else {}
    return asked | ({"targetLeaderRecoveryState": "RECOVERED"} if seeded.random() < 0.3 else {})


def _reassign(seeded: random.Random, partition: Case, _: bool) -> Case:
    target = seeded.sample(BROKERS, seeded.randint(1, 4))
    removing = sorted(set(partition["replicas"]) - set(target))
    adding = sorted(set(target) - set(partition["replicas"]))
    asked: Case = {"targetReplicas": target + removing}
    asked |= {"targetRemoving": removing} if removing else {}
    return asked | ({"targetAdding": adding} if adding else {})


def _cancel(_: random.Random, partition: Case, __: bool) -> Case:
    old = [replica for replica in partition["replicas"] if replica not in partition["adding"]]
    isr = [broker for broker in partition["isr"] if broker in old] or old[:1]
    return {"targetReplicas": old, "targetIsr": isr, "targetRemoving": [], "targetAdding": []}


def _some(seeded: random.Random, brokers: range | list[int]) -> list[int]:
    return seeded.sample(brokers, seeded.randint(0, len(brokers)))


def ask_kafka(cases: list[Case], libs: Path) -> list[Case | None]:
    """The record that Kafka writes for each case, None where it writes none."""
    oracle = Path(__file__).with_name("PartitionChangeOracle.java")
    with tempfile.TemporaryDirectory() as directory:
        asked, answered = Path(directory, "cases.json"), Path(directory, "answers.json")
        asked.write_text(json.dumps(cases))
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        command = ["java", "-cp", f"{libs}/*", quiet, str(oracle), str(asked), str(answered)]
        subprocess.run(command, check=True)
        answers: list[Case | None] = json.loads(answered.read_text())
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libs", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    seeded = random.Random(options.seed)
    cases = [case(seeded) for _ in range(options.count)]
    rows = [
        {"id": f"{options.seed}-{number}", **asked, "record": record}
        for number, (asked, record) in enumerate(zip(cases, ask_kafka(cases, options.libs), strict=True))
    ]
    options.output.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
