"""Runs one command and tells what it took: ``python -I -S child.py STDOUT STDERR ARGV…``.

A process of its own, and one that imports next to nothing: Linux counts what a process held before exec towards
the peak of the program it becomes, so a big parent would add itself to every measurement.
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
