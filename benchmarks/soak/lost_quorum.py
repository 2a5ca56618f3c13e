"""On real Kafka: every way to lose a quorum that tests/live describes, rebuilt and compared with before; old voters
that return; a rebuild that is killed.
"""

from __future__ import annotations

import random
import shutil
import signal
import statistics
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from backends.metadata_log.directory import DIRECTORY
from benchmarks.soak import SoakOptions
from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.lost_quorum import INCIDENTS, YES, RebuiltQuorum, begun_rebuild
from tests.live.resident_java import ResidentJavas
from tests.live.returning_voters import ReturningVoters, all_returns, returning_cluster
from tests.live.started_cluster import started_cluster

KILLS = 20
"""Moments at which a rebuild is killed."""
RELEASES = ("4.3.1", "4.4.0")

Start = Callable[[ClusterSpec], Iterator[KafkaCluster]]


def run(options: SoakOptions) -> int:
    """0 if nothing went wrong. ``--only``: incidents, returns or kills; ``--rounds``: so many kills."""
    parts = {"incidents": _incidents, "returns": _returns, "kills": _kills}
    wrong = 0
    with ResidentJavas() as javas:
        for name, part in parts.items():
            if options.only in (None, name):
                wrong += part(options, javas)
    print(f"lost quorum: {wrong} went wrong")
    return 1 if wrong else 0


@contextmanager
def _cluster(spec: ClusterSpec, javas: ResidentJavas) -> Iterator[tuple[KafkaCluster, Path]]:
    with (
        tempfile.TemporaryDirectory(prefix="ktriage-soak-") as home,
        started_cluster(spec, print, javas.runner) as cluster,
    ):
        yield cluster, Path(home)


def _incidents(_options: SoakOptions, javas: ResidentJavas) -> int:
    wrong = 0
    for incident in INCIDENTS:
        began = time.monotonic()
        try:
            with _cluster(incident.spec, javas) as (cluster, home):
                found = RebuiltQuorum(incident, cluster, home).whole()
        except Exception:  # the next one is tried all the same
            wrong += 1
            traceback.print_exc()
            print(f"| {incident.name} | WENT WRONG |", flush=True)
            continue
        seconds = time.monotonic() - began
        print(
            f"| {incident.name} | {found.records:,} of {found.records:,} | {found.topics} |"
            f" {found.log_end} | {found.epoch} | {seconds:.0f} |",
            flush=True,
        )
    return wrong


def _returns(_options: SoakOptions, javas: ResidentJavas) -> int:
    wrong = 0
    for version in RELEASES:
        for in_place in (True, False):
            where = "in place" if in_place else "a new address"
            try:
                with _cluster(returning_cluster(version), javas) as (cluster, home):
                    for when, back, outcome in all_returns(ReturningVoters(cluster, home, in_place=in_place)):
                        follow, ended = (_ids(nodes) for nodes in (outcome.follow, outcome.ended))
                        print(
                            f"| {version} | {where} | {when} | {back} | {outcome.quorums} | {follow} | {ended} |",
                            flush=True,
                        )
            except Exception:  # as above
                wrong += 1
                traceback.print_exc()
                print(f"| {version} | {where} | WENT WRONG |", flush=True)
    return wrong


def _kills(options: SoakOptions, javas: ResidentJavas) -> int:
    """Each kill begins with the same directory; afterwards the command is given again, or undone."""
    incident = INCIDENTS[0]
    with _cluster(incident.spec, javas) as (cluster, home):
        quorum = RebuiltQuorum(incident, cluster, home)
        quorum.prepare()
        quorum.lose()
        quorum.make_plan()
        kills = KilledRebuilds(quorum, home)
        counts: Counter[str] = Counter()
        rounds, runs, first = len(options.seeds(KILLS)), 0, options.seeds(KILLS).start
        while sum(counts.values()) < rounds:
            # One that had ended by then is no kill: another moment is taken.
            if (outcome := kills.once(first + runs)) is not None:
                counts[outcome] += 1
            runs += 1
        kills.finish()
        found = quorum.check()
    summary = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    print(f"{rounds} kills in {runs} runs: {summary}; then {found.records} records", flush=True)
    return 0


class KilledRebuilds:
    """``quorum rebuild PLAN`` in a process of its own, killed after it has begun to make the back-up."""

    def __init__(self, quorum: RebuiltQuorum, home: Path) -> None:
        self._quorum = quorum
        self._home = home
        self._log, self._backup = quorum.target / DIRECTORY, Path(quorum.plan()["backup"])
        shutil.copytree(self._log, home / "old")
        self._old = _contents(self._log)
        self._seconds = statistics.median(self._whole_run() for _ in range(3))
        """From the first file that is made to the new log."""
        self._new = _contents(self._log)
        assert self._new != self._old

    def _whole_run(self) -> float:
        """The seconds from its first file to the new log."""
        self._afresh()
        file = self._log / self._quorum.plan()["segment"]
        old, process = file.stat().st_ino, begun_rebuild(self._quorum, self._home)
        since = time.monotonic()
        while file.stat().st_ino == old and process.poll() is None:
            time.sleep(0.0005)
        seconds = time.monotonic() - since
        assert process.wait() == 0
        return seconds

    def once(self, seed: int) -> str | None:
        """What stood there after the kill, and what was done then; None: the process had ended before.

        It leaves the new log.
        """
        rng = random.Random(seed)  # noqa: S311  # a test
        self._afresh()
        process = begun_rebuild(self._quorum, self._home)
        time.sleep(rng.uniform(0, self._seconds))
        process.send_signal(signal.SIGKILL)
        was_killed = process.wait() == -signal.SIGKILL
        left = _contents(self._log)
        assert left in (self._old, self._new), sorted(left)
        if seed % 2:
            undone = self._quorum.rebuild(str(self._quorum.plan_file), "--undo", *YES)
            assert undone.status == 0 or "nothing was applied" in undone.err, undone
            assert _contents(self._log) == self._old
        again = self._quorum.rebuild(str(self._quorum.plan_file), *YES)
        assert again.status == 0, again
        assert _contents(self._log) == self._new
        stood = "the new log" if left == self._new else "the old log"
        return f"with {stood}, {'undone and ' if seed % 2 else ''}done again" if was_killed else None

    def finish(self) -> None:
        """Kafka's own tool reads what the last one left; the controller starts with it."""
        self._quorum.check_dump()
        self._quorum.start()

    def _afresh(self) -> None:
        shutil.rmtree(self._log)
        shutil.copytree(self._home / "old", self._log)
        shutil.rmtree(self._backup, ignore_errors=True)


def _ids(nodes: tuple[int, ...]) -> str:
    return ", ".join(map(str, nodes)) or "none"


def _contents(log: Path) -> dict[str, bytes]:
    """Of what Kafka looks at."""
    return {path.name: path.read_bytes() for path in log.iterdir() if path.suffix in (".log", ".checkpoint")}
