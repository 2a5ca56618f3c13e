"""``python -m benchmarks.soak [NAME…] [--rounds N]``: the long random runs, each a module here with ``run``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from pathlib import Path


def main() -> int:
    """Runs those that are named, or all; 1 where any of them found something."""
    names = sorted(found.name for found in pkgutil.iter_modules([str(Path(__file__).parent)]))
    known = [name for name in names if not name.startswith("_")]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--rounds", type=int, default=None)
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in known]
    if unknown:
        parser.error(f"no such run: {', '.join(unknown)}; there are {', '.join(known)}")
    worst = 0
    for name in asked.names or known:
        worst = max(worst, importlib.import_module(f"benchmarks.soak.{name}").run(asked.rounds))
    return worst


if __name__ == "__main__":
    sys.exit(main())
