"""Small changes that break one rule each: the fast tests must notice every one (``mutants.yaml``).

Each change is applied to a copy of the tree, never to the tree itself, and its tests run there. A change that no
test notices is a test to write, or a line to delete. One whose old text is not in its file any more is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import yaml

from benchmarks.soak import SoakOptions
from tests.repetitions import SOAK

ROOT = Path(__file__).parents[2]
CHANGES = Path(__file__).with_suffix(".yaml")
SECONDS = 120
"""The time limit of one change's tests; tests that hang longer have noticed it."""
_NOTICED = 1
"""pytest's exit status for tests that failed; others are no verdict."""


class Mutant(NamedTuple):
    """One change: ``old`` occurs once in ``file`` and becomes ``new``; ``why`` says what would go wrong."""

    file: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]


class MutantOutcome(StrEnum):
    """The result of the tests."""

    NOTICED = "noticed"
    SURVIVED = "SURVIVED"
    ERROR = "ERROR"


class MutantResult(NamedTuple):
    """``by`` is the first test that failed, or what was wrong."""

    mutant: Mutant
    verdict: MutantOutcome
    by: str
    seconds: float


class BadChange(ValueError):
    """A change that cannot be made: its text is not in the file once."""


def mutants(text: str) -> tuple[Mutant, ...]:
    """The changes of a data file: rooms with their tests, and the changes of each file.

    Raises BadChange for one that is incomplete, or that changes nothing.
    """
    found = []
    for room in yaml.safe_load(text):
        for file, changes in room["files"].items():
            for change in changes:
                found.append(_mutant(file, change, room["tests"]))
    return tuple(found)


def _mutant(file: str, change: Mapping[str, Any], tests: Sequence[str]) -> Mutant:
    missing = [name for name in ("old", "new", "why") if not isinstance(change.get(name), str)]
    if missing or change["old"] == change["new"] or not change["why"]:
        raise BadChange(f"{file}: a change without {', '.join(missing) or 'an effect'}: {change}")
    return Mutant(file, change["old"], change["new"], change["why"], tuple(change.get("tests", tests)))


def changed(source: str, mutant: Mutant) -> str:
    """The file's text with the change. Raises BadChange if the old text does not occur exactly once."""
    times = source.count(mutant.old)
    if times != 1:
        raise BadChange(f"{mutant.file}: the old text stands there {times} times: {mutant.old!r}")
    return source.replace(mutant.old, mutant.new)


def run(options: SoakOptions) -> int:
    """Tries every change, or a part (``--first``, ``--rounds``); 1 if one survived, or could not be tried."""
    known = mutants(CHANGES.read_text())
    part = options.seeds(len(known))
    selected = known[part.start : part.stop]
    jobs = options.jobs or len(os.sched_getaffinity(0))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ktriage-mutants-") as directory:
        copies: Queue[Path] = Queue()
        for number in range(jobs):
            copies.put(_copy(Path(directory) / str(number)))
        failures = _failures_unchanged(copies, selected)
        with ThreadPoolExecutor(jobs) as pool:
            tried = pool.map(lambda mutant: _tried(mutant, copies, failures), selected)
            results = [_print_result(result) for result in tried]
    bad = [result for result in results if result.verdict is not MutantOutcome.NOTICED]
    took = time.monotonic() - began
    print(f"mutants: {len(results)} changes in {took:.0f} s, {jobs} at a time: {len(bad)} not noticed")
    return 1 if bad else 0


def _print_result(result: MutantResult) -> MutantResult:
    mutant = result.mutant
    print(f"{result.verdict}  {result.seconds:5.1f} s  {mutant.file}: {mutant.why}", flush=True)
    print(f"    {result.by}", flush=True)
    return result


def _copy(to: Path) -> Path:
    """The files of the working tree that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


def _failures_unchanged(copies: Queue[Path], mutants: Sequence[Mutant]) -> tuple[str, ...]:
    """pytest's lines for the tests that fail without any change, which are no verdict on one."""
    tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    copy = copies.get()
    try:
        ended = _pytest(copy, tests, 10 * SECONDS, all_failures=True)
    finally:
        copies.put(copy)
    if ended is not None and ended.returncode in (0, _NOTICED):
        return tuple(_failures(ended.stdout))
    return tuple(f"ERROR {test}: {_first_failure(ended)}" for test in tests)


def failing_test(mutant: Mutant, failures: Iterable[str]) -> str | None:
    """The first of pytest's failure lines that is of the mutant's own tests."""
    for line in failures:
        path = line.split()[1].partition("::")[0].rstrip(":")
        if any(path == test or path.startswith(f"{test}/") for test in mutant.tests):
            return line
    return None


def _tried(mutant: Mutant, copies: Queue[Path], failures: Sequence[str]) -> MutantResult:
    began = time.monotonic()
    broken = failing_test(mutant, failures)
    if broken is not None:
        return MutantResult(mutant, MutantOutcome.ERROR, f"fails without any change: {broken}", 0.0)
    copy = copies.get()
    path = copy / mutant.file
    try:
        source = path.read_text()
        path.write_text(changed(source, mutant))
        try:
            ended = _pytest(copy, mutant.tests, SECONDS)
        finally:
            path.write_text(source)
        verdict, by = _verdict(ended), _first_failure(ended)
    except (BadChange, OSError) as error:
        verdict, by = MutantOutcome.ERROR, str(error)
    finally:
        copies.put(copy)
    return MutantResult(mutant, verdict, by, time.monotonic() - began)


def _pytest(
    copy: Path, tests: Sequence[str], seconds: float, *, all_failures: bool = False
) -> subprocess.CompletedProcess[str] | None:
    """None: they were still running after ``seconds``. They end at the first failure, unless all are asked for.

    Without bytecode files: one is taken for the source's own where the time and the size are the same.
    """
    options = [
        *(() if all_failures else ("-x",)),
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "--hypothesis-seed=0",
    ]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", SOAK: "1"}
    try:
        return subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None


def _verdict(ended: subprocess.CompletedProcess[str] | None) -> MutantOutcome:
    if ended is None or ended.returncode == _NOTICED:
        return MutantOutcome.NOTICED
    return MutantOutcome.SURVIVED if ended.returncode == 0 else MutantOutcome.ERROR


def _first_failure(ended: subprocess.CompletedProcess[str] | None) -> str:
    if ended is None:
        return f"still running after {SECONDS} s"
    return next(_failures(ended.stdout), ended.stdout.strip().rsplit("\n", 1)[-1])


def _failures(output: str) -> Iterator[str]:
    return (line for line in output.splitlines() if line.startswith(("FAILED", "ERROR")))
