"""Who may read and write a state directory: its owner alone, or a group of operators."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from console.errors import InputError
from console.paths import named_state_dir, records_dir


class StateAccess(NamedTuple):
    """The modes of files and directories in a state directory, whatever the umask.

    ``other_hosts``: runs on other hosts may use the directory too; an owner file keeps them out
    (:mod:`console.journal.cluster_lock`).
    """

    directory_mode: int
    file_mode: int
    other_hosts: bool


PRIVATE = StateAccess(0o700, 0o600, other_hosts=False)
OWN = StateAccess(0o700, 0o600, other_hosts=True)
"""A directory that was named, for one user, on any number of hosts."""
SHARED = StateAccess(0o2770, 0o660, other_hosts=True)
"""For a group: the set-group-ID bit gives new files that group."""


def access_of(root: Path) -> StateAccess:
    """Who may use the named state directory, by its mode. Raises InputError if it is not safe."""
    try:
        found = root.stat()
    except OSError as error:
        raise InputError(f"{root}: {error.strerror}; an administrator can create it: {_make(root)}") from None
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISDIR(found.st_mode):
        raise InputError(
            f"{root}: not a directory; --state-dir, and state-dir in the profile, name a directory"
        )
    if mode & stat.S_IWOTH:
        raise InputError(
            f"{root}: everybody can write there (mode {mode:04o}): {_instead(root, found, 'o-rwx')}"
        )
    if not mode & stat.S_IWGRP:
        return OWN
    if not mode & stat.S_ISGID:
        raise InputError(
            f"{root}: its group can write there, but members could not read each other's files:"
            f" {_instead(root, found, '2770')}"
        )
    return SHARED


def records_access() -> StateAccess:
    """Who may use the state directory of this process. Raises InputError if a named one is not safe."""
    named = named_state_dir()
    return PRIVATE if named is None else access_of(named)


def why_unusable() -> str:
    """Why this process could record no change; "" if nothing speaks against it. A full disk shows only later."""
    try:
        records_access()
    except InputError as error:
        return str(error)
    root = records_dir()
    there = next(path for path in (root, *root.parents) if path.exists())
    # Also false on a read-only file system, and there for root too.
    return "" if os.access(there, os.W_OK | os.X_OK) else f"{there}: this user cannot write there"


def _instead(root: Path, found: os.stat_result, mode: str) -> str:
    """What to do about an unsafe mode: a directory that others use too, such as /tmp, must keep its mode."""
    if found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX:
        return f"chmod {mode} {root}"
    return f"name a directory of your own, for example: install -d -m 0700 {root / 'ktriage'}"


def _make(root: Path) -> str:
    return f"install -d -m 2770 -g GROUP {root}"


def make_file(path: Path, flags: int, access: StateAccess) -> int:
    """Opens a file, or creates it; never through a symbolic link. Raises OSError."""
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, access.file_mode)
    try:
        if access.file_mode & ~stat.S_IMODE(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, access.file_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def make_directory(path: Path, access: StateAccess) -> None:
    """Creates one directory. Raises OSError, also FileExistsError."""
    path.mkdir(mode=0o700)
    if access.directory_mode != 0o700:
        path.chmod(access.directory_mode)
