"""Where one of our commands spends its time; reported when a target is missed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.command_lines import ENTRY_POINTS
from benchmarks.measure import ROOT, BenchmarkError, run

_IMPORT = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")
_PLACE = re.compile(r"(?<= )/\S*/(?:site-packages|python[\d.]+)/")
_SHOWN = 15


def profile(command: str, arguments: Sequence[str], python: str, directory: Path) -> Iterator[str]:
    """The functions with the most own time, from cProfile, which makes Python code about twice as slow."""
    module, function = ENTRY_POINTS[command].split(":")
    code = (
        "import cProfile, pstats, sys, os\n"
        # The command ends the process at once with os._exit; the profile must still be printed.
        "def leave(status): raise SystemExit(status)\n"
        "os._exit = leave\n"
        f"sys.argv[0] = {command!r}\n"
        f"from {module} import {function} as work\n"
        "profile = cProfile.Profile()\n"
        "try:\n    profile.runcall(work)\nexcept SystemExit:\n    pass\n"
        f"pstats.Stats(profile, stream=sys.stderr).sort_stats('tottime').print_stats({_SHOWN})"
    )
    done = run((python, "-c", code, *arguments), directory)
    lines = done.stderr.splitlines()
    first = next((number for number, line in enumerate(lines) if "function calls" in line), None)
    if first is None:
        raise BenchmarkError(f"{command} was not profiled: {done.stderr[-500:]}")
    for line in lines[first:]:
        yield _PLACE.sub("", line).replace(f"{ROOT}/", "").rstrip()


def imports(command: str, arguments: Sequence[str], python: str, directory: Path) -> Iterator[str]:
    """Milliseconds of imports by top-level package, the most expensive first."""
    module, function = ENTRY_POINTS[command].split(":")
    code = f"import sys; sys.argv[0] = {command!r}; from {module} import {function} as work; work()"
    done = run((python, "-X", "importtime", "-c", code, *arguments), directory)
    spent: Counter[str] = Counter()
    for found in _IMPORT.finditer(done.stderr):
        spent[found[2].split(".")[0]] += int(found[1])
    yield f"imports: {spent.total() / 1000:.0f} ms in all"
    yield ", ".join(f"{name} {micros / 1000:.0f} ms" for name, micros in spent.most_common(8))
