"""``python -m tests.recorded [--write] [NAME…]``: compares what is shown now with the records, or replaces them.

NAME is an incident, or the beginning of its name. Without one, all that are recorded are compared, or all there are
are recorded. Prints a unified difference and ends with 1 where there is one: each of its lines is a correction that
the commit names, or a mistake.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from tests.recorded.records import differences, incidents, recorded_incidents, write


def _differences(incident: str) -> list[str]:
    return list(differences(incident))


def compare(names: Sequence[str], jobs: int) -> int:
    """Prints the differences of these incidents; 1 where there is one."""
    status = 0
    with ProcessPoolExecutor(jobs) as pool:
        for name, lines in zip(names, pool.map(_differences, names), strict=True):
            print(f"{name}: {'as recorded' if not lines else 'DIFFERENT'}", flush=True)
            print("".join(f"{line}\n" for line in lines), end="", flush=True)
            status |= bool(lines)
    return status


def main() -> int:
    """0: nothing differs, or the records were written."""
    parser = argparse.ArgumentParser(prog="python -m tests.recorded", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(incidents()))
    parser.add_argument("--write", action="store_true", help="replace the records")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="J", help="processes")
    asked = parser.parse_args()
    there = incidents() if asked.write or asked.names else recorded_incidents()
    wanted = [name for name in there if name.startswith(tuple(asked.names or [""]))]
    if not wanted:
        parser.error(f"no incident is called that; there are {', '.join(incidents())}")
    if not asked.write:
        return compare(wanted, asked.jobs)
    with ProcessPoolExecutor(asked.jobs) as pool:
        for name, _ in zip(wanted, pool.map(write, wanted), strict=True):
            print(f"written: {name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
