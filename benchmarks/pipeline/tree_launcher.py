"""Runs one command and prints what its whole process tree used: ``python -I -S tree_launcher.py OUT ERR ARGV…``.

Every process below it becomes its child when its own parent ends, so that none is missed: Spark's Java outlives the
command that started it, and Spark's Python workers are started by Java. The process that starts the workers ignores
their end, and then the kernel adds their CPU time to nobody's. So the time of each process is read while it runs.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
import threading
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
EVERY_S = 0.25
WORKER = b"pyspark.daemon"


def _processes() -> dict[int, int]:
    """The parent of each process that there is."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = int((folder / "stat").read_bytes().rsplit(b")", 1)[1].split()[1])
        except OSError:
            continue
    return found


def _below(pid: int, parents: dict[int, int]) -> list[int]:
    children = [child for child, parent in parents.items() if parent == pid]
    return children + [other for child in children for other in _below(child, parents)]


def _kind_and_memory(pid: int) -> tuple[str, int] | None:
    """What the process is, and the bytes of memory that it has now."""
    folder = Path("/proc") / str(pid)
    try:
        words = (folder / "cmdline").read_bytes().split(b"\0")
        size = int((folder / "statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return None
    if words[0].rsplit(b"/", 1)[-1] == b"java":
        return "java", size
    return ("workers" if WORKER in words else "command"), size


def _cpu_time(pid: int) -> tuple[tuple[int, int], float] | None:
    """The process, by its number and its start, and the CPU time in seconds that it has used itself."""
    try:
        words = (Path("/proc") / str(pid) / "stat").read_bytes().rsplit(b")", 1)[1].split()
    except OSError:
        return None
    return (pid, int(words[19])), (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _sample(peaks: dict[str, int], cpu: dict[tuple[int, int], float], ended: threading.Event) -> None:
    """The largest sum of memory of each kind of process, and the CPU time of each process when it was last there.
    Pages that workers share are counted in each of them.
    """
    while not ended.wait(EVERY_S):
        now: dict[str, int] = {}
        below = _below(os.getpid(), _processes())
        cpu.update(used for used in map(_cpu_time, below) if used is not None)
        for found in map(_kind_and_memory, below):
            if found is not None:
                now[found[0]] = now.get(found[0], 0) + found[1]
        for kind, size in now.items():
            peaks[kind] = max(peaks.get(kind, 0), size)


def main(arguments: list[str]) -> None:
    out, err, *argv = arguments
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, out, write, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, err, write, 0o600),
    ]
    peaks: dict[str, int] = {}
    cpu: dict[tuple[int, int], float] = {}
    ended = threading.Event()
    sampler = threading.Thread(target=_sample, args=(peaks, cpu, ended))
    read_before = int(Path("/proc/self/io").read_text().split()[1])
    began = time.monotonic()
    child = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
    sampler.start()
    _, status = os.waitpid(child, 0)
    seconds = time.monotonic() - began
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    ended.set()
    sampler.join()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    # A process that is waited for adds what it read to its parent, so that by now all is here.
    read = int(Path("/proc/self/io").read_text().split()[1]) - read_before
    figures = {
        "seconds": seconds,
        # The kernel's sum lacks workers; that of the samples lacks the last moment of each process.
        "cpu": max(used.ru_utime + used.ru_stime, sum(cpu.values())),
        "read": read,
        "status": os.waitstatus_to_exitcode(status),
    }
    print(json.dumps(figures | {kind: peaks.get(kind, 0) for kind in ("command", "java", "workers")}))


if __name__ == "__main__":
    main(sys.argv[1:])
