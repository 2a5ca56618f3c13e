"""``python -m benchmarks.soak [NAME…] [--first SEED] [--rounds N] [--jobs J]``: the long random runs."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from pathlib import Path

from benchmarks.soak import Asked


def _whole(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def main() -> int:
    """Runs those that are named, or all; 1 where any of them found something."""
    names = sorted(found.name for found in pkgutil.iter_modules([str(Path(__file__).parent)]))
    known = [name for name in names if not name.startswith("_")]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument(
        "--first", type=_whole, metavar="SEED", help="begin with this seed: a long run goes in pieces"
    )
    parser.add_argument(
        "--rounds", type=_whole, metavar="N", help="how many seeds, instead of the run's own number"
    )
    parser.add_argument(
        "--jobs", type=_whole, metavar="J", help="processes at the most, where a run uses several"
    )
    parser.add_argument(
        "--seconds", type=_whole, metavar="S", help="end the run of the simulator's seeds after so long"
    )
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in known]
    if unknown:
        parser.error(f"no such run: {', '.join(unknown)}; there are {', '.join(known)}")
    wanted = Asked(asked.rounds, asked.first, asked.jobs, asked.seconds)
    worst = 0
    for name in asked.names or known:
        worst = max(worst, importlib.import_module(f"benchmarks.soak.{name}").run(wanted))
    return worst


if __name__ == "__main__":
    sys.exit(main())
