"""``python -m benchmarks.soak [NAME…] [--first SEED] [--rounds N] [--jobs J] …``: the long random runs."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from pathlib import Path

from benchmarks.soak import SoakOptions


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def main() -> int:
    """Runs the named ones, or all; 1 if any of them found a defect."""
    names = sorted(found.name for found in pkgutil.iter_modules([str(Path(__file__).parent)]))
    known = [name for name in names if not name.startswith("_")]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument(
        "--first", type=_natural, metavar="SEED", help="first seed, to do a long run in parts"
    )
    parser.add_argument(
        "--rounds", type=_natural, metavar="N", help="number of seeds, instead of the run's own number"
    )
    parser.add_argument(
        "--jobs", type=_natural, metavar="J", help="maximum number of processes, for runs that use several"
    )
    parser.add_argument(
        "--seconds",
        type=_natural,
        metavar="S",
        help="stop the simulator and verdicts runs after so many seconds",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="keep the outcome of each part of the verdicts run, and go on with the parts that are missing",
    )
    parser.add_argument("--only", metavar="KIND", help="one kind of histories of the ground_truth run")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in known]
    if unknown:
        parser.error(f"no such run: {', '.join(unknown)}; there are {', '.join(known)}")
    options = SoakOptions(asked.rounds, asked.first, asked.jobs, asked.seconds, asked.record, asked.only)
    worst = 0
    for name in asked.names or known:
        worst = max(worst, importlib.import_module(f"benchmarks.soak.{name}").run(options))
    return worst


if __name__ == "__main__":
    sys.exit(main())
