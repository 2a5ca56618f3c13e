"""Runs one command and prints its time and memory: ``python -I -S timed_process.py STDOUT STDERR ARGV…``.

This is a process of its own that imports almost nothing. Linux counts the memory that a process had before exec
into the peak of the new program, so a large parent would add its own memory to every measurement.
"""

import os
import sys
import time


def _redirect(path: str, descriptor: int) -> tuple[int, int, str, int, int]:
    return os.POSIX_SPAWN_OPEN, descriptor, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600


def main(arguments: list[str]) -> None:
    out, err, *argv = arguments
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        _redirect(out, 1),
        _redirect(err, 2),
    ]
    began = time.monotonic()
    child = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
    _, status, used = os.wait4(child, 0)
    seconds = time.monotonic() - began
    print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss, os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(sys.argv[1:])
