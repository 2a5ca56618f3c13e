"""Random incidents of the simulator: every verdict on acknowledged records is compared with what was acknowledged.

With ``--record FILE`` the counts of each finished part are appended to the file, one JSON line for each, and a run
that was stopped continues with the parts that the file does not have.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.soak import SoakOptions
from testbed.histories.history_pool import histories_of
from testbed.histories.random_incidents import INCIDENT_SECONDS
from testbed.histories.verdict_soundness import VerdictCounts

ROUNDS = 20_000
PART = 100
"""Seeds in one part of a record."""
ROOT = Path(__file__).parents[2]
JUDGED = ("recovery", "backends", "testbed")
"""The packages whose code decides the outcome, as far as an incident imports it."""


@dataclass
class SoakPart:
    """The outcome of the seeds ``first`` to ``end`` (exclusive). ``failed`` has a text for each that broke an
    invariant, with the command that replays it. ``code`` identifies the code that ran.
    """

    first: int
    end: int
    code: str
    seconds: float = 0.0
    verdicts: VerdictCounts = field(default_factory=VerdictCounts)
    failed: list[str] = field(default_factory=list)

    def line(self) -> str:
        return json.dumps({**vars(self), "verdicts": vars(self.verdicts)})


def run(options: SoakOptions) -> int:
    """Runs the seeds, by default on all cores; prints each that failed with the command that replays it.

    Returns 0 if none failed.
    """
    seeds = options.seeds(ROUNDS)
    jobs = options.jobs or len(os.sched_getaffinity(0))
    limit = float("inf") if options.seconds is None else time.monotonic() + options.seconds
    code = code_digest(ROOT)
    done = {} if options.record is None else recorded(options.record, code)
    finished = []
    for part in parts(seeds):
        known = done.get((part.start, part.stop))
        found = known or _run_part(part, jobs, limit, code)
        finished.append(found)
        if found.end < part.stop:
            break  # stopped by the time limit
        if options.record is not None and known is None:
            with options.record.open("a") as file:
                file.write(found.line() + "\n")
    _sum_up(seeds, finished)
    return 1 if any(part.failed for part in finished) else 0


def parts(seeds: range) -> Iterator[range]:
    """``seeds`` in parts of :data:`PART`, cut at its multiples, so that another run has the same parts."""
    first = seeds.start
    while first < seeds.stop:
        end = min((first // PART + 1) * PART, seeds.stop)
        yield range(first, end)
        first = end


def recorded(path: Path, code: str) -> dict[tuple[int, int], SoakPart]:
    """The parts that this code has finished, by their seeds. A last line that was cut off counts as not there."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            fields = json.loads(line)
        except ValueError:
            continue
        if fields["code"] == code:
            found[fields["first"], fields["end"]] = _part(fields)
    return found


def _part(fields: dict[str, Any]) -> SoakPart:
    verdicts = fields["verdicts"]
    counters = {name: Counter(verdicts[name]) for name in ("excused", "transactions")}
    counts = VerdictCounts(**{**verdicts, **counters})
    return SoakPart(**{**fields, "verdicts": counts})


def code_digest(root: Path) -> str:
    """Of the sources that decide the outcome: other code, another run. Those that no incident imports, such as the
    protocol's handlers, do not count.
    """
    digest = hashlib.sha256()
    for path in sorted(imported_sources(root)):
        digest.update(str(path).encode())
        digest.update((root / path).read_bytes())
    return digest.hexdigest()[:16]


def imported_sources(root: Path) -> list[Path]:
    """The files of :data:`JUDGED`, below ``root``, that a process has imported once it ran an incident."""
    code = (
        "import sys; from testbed.histories.random_incidents import INCIDENT_SECONDS, random_incident;"
        "random_incident(0, INCIDENT_SECONDS);"
        "print(*(getattr(module, '__file__', None) or '' for module in list(sys.modules.values())), sep='|')"
    )
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    files = (Path(file) for file in printed.strip().split("|"))
    below = (file.relative_to(root) for file in files if file.is_relative_to(root))
    return [path for path in below if path.parts[0] in JUDGED]


def _run_part(seeds: range, jobs: int, limit: float, code: str) -> SoakPart:
    """It ends before the last of ``seeds`` where the time limit stopped it."""
    began = time.monotonic()
    part = SoakPart(seeds.start, seeds.start, code)
    results = histories_of(
        seeds, jobs, lambda: time.monotonic() >= limit, seconds=INCIDENT_SECONDS, incidents=True
    )
    for result in results:
        part.end += 1
        part.verdicts.add(result.verdicts)
        if result.failed:
            part.failed.append(f"{result.error or result.broken[0]}\n  replay: {result.replay}")
            print(f"verdicts: {part.failed[-1]}", flush=True)
    part.seconds = round(time.monotonic() - began, 1)
    return part


def _sum_up(seeds: range, finished: list[SoakPart]) -> None:
    counts = VerdictCounts()
    for part in finished:
        counts.add(part.verdicts)
    done = sum(part.end - part.first for part in finished)
    print(
        f"verdicts: {done:,} of {len(seeds):,} incidents from seed {seeds.start:,} on, {counts.judged:,} verdicts,"
        f" {sum(part.seconds for part in finished):,.0f} s:"
        f" {sum(len(part.failed) for part in finished):,} incidents broke an invariant"
    )
    print(
        f"  best choices {counts.choices:,}: decided without the metadata log {counts.decided:,},"
        f" with it {counts.decided_by_log:,} ({counts.unconditional:,} of them without any condition),"
        f" with it and the disks of silent brokers {counts.decided_by_disks:,}"
    )
    outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in counts.transactions.most_common())
    print(
        f"  transactions: {outcomes}; {counts.within_transaction:,} best choices with one open in the partition"
    )
    for condition, number in counts.excused.most_common():
        print(f"  {number:,} wrong verdicts named the condition that did not hold: {condition}")
