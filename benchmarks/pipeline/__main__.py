"""The pipeline's speed: ``python -m benchmarks.pipeline [AREA …] [--millions 1 3 10] [--rounds N]``.

Each area has its own section in ``benchmarks/results/pipeline.md``; only the sections of the areas that run are
written again. Every side is a whole process tree, from start to end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import BenchmarkError
from benchmarks.pipeline.areas import AREAS, MILLION, SMALL_CLUSTERS, Asked
from benchmarks.pipeline.results_file import write_section

PARTITIONS = (1, 3, 10)
RECORDS = 10_000_000


def main() -> int:
    """Runs the areas; 1 if a target is missed, 2 if one could not be measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline")
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"{', '.join(AREAS)}; default: all")
    parser.add_argument(
        "--millions", type=int, nargs="+", default=list(PARTITIONS), help="of plan: partitions"
    )
    parser.add_argument("--rounds", type=int, default=3, help="at 1 million; one at more")
    parser.add_argument("--records", type=int, default=RECORDS, help="of watch: records of the metadata logs")
    parser.add_argument("--partitions", type=int, default=MILLION, help="of fixes")
    parser.add_argument("--clusters", type=int, default=SMALL_CLUSTERS, help="of small")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.areas if name not in AREAS]
    if unknown:
        parser.error(f"{', '.join(unknown)}: there is no such area; there are {', '.join(AREAS)}")
    status = 0
    for name in arguments.areas or AREAS:
        with tempfile.TemporaryDirectory(prefix="ktriage-bench-") as directory:
            asked = Asked(
                Path(directory),
                tuple(arguments.millions),
                arguments.rounds,
                arguments.records,
                arguments.partitions,
                arguments.clusters,
            )
            try:
                section = AREAS[name](asked)
            except BenchmarkError as error:
                sys.stderr.write(f"{name}: {error}\n")
                status = 2
                continue
        write_section(name, section)
        for line in section.missed:
            sys.stderr.write(f"missed: {line}\n")
            status = status or 1
    return status


if __name__ == "__main__":
    sys.exit(main())
