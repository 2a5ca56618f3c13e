"""The scan as a program of its own: ``python3 scan.py DIR …`` writes the JSON document to stdout."""

from __future__ import annotations

import argparse
import socket
import sys
import time

from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_values import CHECKSUMS, ScanDepth, scan_lines


def main(arguments: list[str]) -> int:
    """Exit status 0: every dir was read; 1: some were not; 2: none was, or wrong usage; 130: stopped by Ctrl-C."""
    try:
        return _scan(arguments)
    except KeyboardInterrupt:
        return 130


def _scan(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="scan.py", description="Reads the log dirs of a Kafka broker, writes nothing to them."
    )
    parser.add_argument("dirs", nargs="+", metavar="DIR", help="a log dir, as in log.dirs")
    parser.add_argument(
        "--checksums",
        choices=CHECKSUMS,
        default="unflushed",
        help="which batches' checksums are checked; default: those that were not flushed for certain",
    )
    parser.add_argument(
        "--every-batch",
        action="store_true",
        help="read every batch; default: skip flushed ones for which the indexes of their segments vouch",
    )
    given = parser.parse_args(arguments)
    shown = [0.0]

    def progress(done: int, of: int) -> None:
        now = time.monotonic()
        if now - shown[0] >= 0.5 or done == of:
            shown[0] = now
            sys.stderr.write(f"\r{done} of {of} partitions" + ("\n" if done == of else ""))
            sys.stderr.flush()

    scan = scan_log_dirs(
        given.dirs,
        socket.gethostname(),
        int(time.time() * 1000),
        ScanDepth(given.checksums, given.every_batch),
        progress if sys.stderr.isatty() else None,
    )
    bad = [found for found in scan.dirs if found.problem is not None]
    if len(bad) < len(scan.dirs):
        for line in scan_lines(scan):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    for one in scan.at_start:
        sys.stderr.write(f"{one.effect.upper()}: {one.where}: {one.why}\n  repair: {one.repair}\n")
    for found in bad:
        sys.stderr.write(f"{found.path}: {found.problem}\n")
    return 2 if len(bad) == len(scan.dirs) else 1 if bad else 0
