"""``ktriage disk``: log dirs are scanned, or the script is printed."""

from __future__ import annotations

import shlex
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_script import scan_script
from backends.disk_scan.scan_values import DiskScan, ScanDepth, scan_lines
from console.errors import InputError, Status
from console.output.survey.disk_scan_report import advice_lines, scan_table
from console.paths import unused
from console.program import Program
from console.signals import Stopped
from recovery.wording.quantity_text import printable


def scan_disks(program: Program, dirs: Sequence[Path], depth: ScanDepth, rows: int, *, json: bool) -> int:
    """Scans and shows it; returns the exit status. Raises Stopped, and InputError where no dir could be read."""
    screen, stop = program.screen, program.supervisor.stop

    def progress(done: int, of: int) -> None:
        if stop.signum is not None:
            raise Stopped(stop.signum, in_flight=False)
        screen.progress("reading partitions", done, of)

    now_ms = int(time.time() * 1000)
    scan = scan_log_dirs([str(path) for path in dirs], socket.gethostname(), now_ms, depth, progress)
    bad = [found for found in scan.dirs if found.problem is not None]
    problems = [printable(f"{found.path}: {found.problem}") for found in bad]
    if len(bad) == len(scan.dirs):
        raise InputError("; ".join(problems))
    if json:
        screen.out(scan_lines(scan))
    else:
        screen.out(scan_table(scan, rows))
    screen.say(*problems)
    if not json:
        screen.say(*advice_lines(scan), *_next(scan, depth))
    return Status.PARTLY if bad else Status.DONE


def _next(scan: DiskScan, depth: ScanDepth) -> list[str]:
    nodes = sorted({found.node_id for found in scan.dirs if found.node_id >= 0})
    clusters = {found.cluster_id for found in scan.dirs if found.cluster_id}
    if (
        len(nodes) != 1
        or len(clusters) > 1
        or not any(found.logs and not found.never_started for found in scan.dirs)
    ):
        return []
    file = unused(f"broker-{nodes[0]}.json")
    paths = [found.path for found in scan.dirs if found.problem is None]
    options = [*(("--checksums", depth.checksums) if depth.checksums != "unflushed" else ())]
    options += ["--every-batch"] * depth.every_batch
    scanned = shlex.join(("ktriage", "disk", "scan", "--output", "json", *options, *paths))
    planned = shlex.join(("ktriage", "plan", "--evidence", file, "--bootstrap-server", "HOST:PORT"))
    return [f"next: {scanned} > {file}", f"next: {planned} {shlex.quote(unused())}"]


def print_script(program: Program) -> int:
    """The script on stdout."""
    program.screen.out(scan_script().splitlines())
    return Status.DONE
