"""A rescue directory while it is filled: begun, or continued where an earlier run of the same plan stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from console.errors import InputError
from console.journal.journal_lines import moment
from console.new_files import SPARE_BYTES, locked, replace_own, write_new
from console.rescue_files.branch_summary import check_segments
from console.rescue_files.branch_writer import BranchWriter
from console.rescue_files.manifest import (
    INDEX,
    MANIFEST,
    BranchManifest,
    RescueHeader,
    RescueIndex,
    branch_directory,
    index_json,
    manifest_json,
    read_index,
    read_manifest,
)
from console.rescue_files.rescued_branch import RescuedBranch
from recovery.rescue_branches import RescueBranch, UnreadReplica
from recovery.wording.quantity_text import human_bytes

_PRIVATE = 0o600


class Room(NamedTuple):
    """Bytes that a rescue needs, as far as sizes are known, and that its disk has room for."""

    needed: int
    free: int

    @property
    def shortage(self) -> str:
        return (
            f"the rescue needs about {human_bytes(self.needed)}, and its disk has room for"
            f" {human_bytes(self.free)} ({human_bytes(SPARE_BYTES)} are always left free)"
        )


def room_for(path: Path, branches: Iterable[RescueBranch]) -> Room:
    """For what of the branches was not read as a whole yet. ``path`` need not be there. Raises InputError."""
    needed = sum(
        max(one.size, 0) for one in branches if not (path / branch_directory(one) / MANIFEST).exists()
    )
    there = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
    try:
        disk = os.statvfs(there)
    except OSError as error:
        raise InputError(f"{path}: cannot be used: {error.strerror}") from None
    return Room(needed, max(disk.f_bavail * disk.f_frsize - SPARE_BYTES, 0))


class RescueDirectory:
    """Holds the directory's lock until :meth:`close`. ``path`` is the directory.

    ``clock`` is the time that manifests have as ``readAt``.
    """

    def __init__(
        self,
        path: Path,
        header: RescueHeader,
        branches: Sequence[RescueBranch],
        unread: Sequence[UnreadReplica],
        clock: Callable[[], datetime],
    ) -> None:
        """Makes the directory, or goes on with one that is for the same plan of the same cluster.

        Raises InputError: it holds something else, another run is writing to it, its disk is too small.
        """
        self.path = path
        self._header = header
        self._clock = clock
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileExistsError:
            raise InputError(f"{path}: not a directory; a rescue is a directory of its own") from None
        except OSError as error:
            raise InputError(f"{path}: cannot be used: {error.strerror}") from None
        self._lock = locked(path)
        try:
            known = self._known()
            self._require_room(branches)
            self._write_index(known, branches, unread)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Releases the lock. May be called twice."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def read_before(self, branch: RescueBranch) -> BranchManifest | None:
        """The manifest of a branch that an earlier run has read as a whole.

        Reads its files, and raises InputError where one is no longer as it was written.
        """
        path = self._place(branch) / MANIFEST
        if not path.exists():
            return None
        manifest = read_manifest(path)
        if not manifest.whole or manifest.branch.spans != branch.spans:
            return None
        try:
            check_segments(RescuedBranch(path.parent, branch, manifest))
        except InputError as error:
            raise InputError(f"{error}; give a new directory, and it is read again") from None
        return manifest

    def writer(self, branch: RescueBranch) -> BranchWriter:
        """Raises BranchError."""
        return BranchWriter(self._place(branch), branch)

    def whole(self, writer: BranchWriter) -> BranchManifest:
        """Ends a branch that was read as a whole. Raises RescueDiskError, InputError."""
        return self._ended(writer, None)

    def ended_early(self, writer: BranchWriter, problem: str) -> BranchManifest:
        """Ends a branch that cannot be read as a whole; what was read stays. Raises RescueDiskError, InputError."""
        return self._ended(writer, problem)

    def _ended(self, writer: BranchWriter, problem: str | None) -> BranchManifest:
        segments = writer.finish()
        at = moment(self._clock())
        manifest = BranchManifest(self._header, writer.branch, problem is None, at, segments, problem)
        # One of an earlier run that did not get to the end may be there.
        replace_own(self._place(writer.branch) / MANIFEST, manifest_json(manifest), _PRIVATE)
        return manifest

    def _place(self, branch: RescueBranch) -> Path:
        return self.path / branch_directory(branch)

    def _known(self) -> RescueIndex | None:
        """What an earlier run of the same plan meant to read. Raises InputError where it is another's."""
        path = self.path / INDEX
        if not path.exists():
            if any(self.path.iterdir()):
                raise InputError(f"{self.path}: it is not empty and holds no rescue; give a new directory")
            return None
        known = read_index(path)
        header = self._header
        if (known.header.cluster_id, known.header.plan_id) != (header.cluster_id, header.plan_id):
            raise InputError(
                f"{self.path}: holds the rescue of plan {known.header.plan_id} on cluster"
                f" {known.header.cluster_id}, and nothing is written over it; give a new directory"
            )
        return known

    def _require_room(self, branches: Sequence[RescueBranch]) -> None:
        room = room_for(self.path, branches)
        if room.needed > room.free:
            raise InputError(f"{self.path}: {room.shortage}")

    def _write_index(
        self, known: RescueIndex | None, branches: Sequence[RescueBranch], unread: Sequence[UnreadReplica]
    ) -> None:
        path = self.path / INDEX
        if known is None:
            write_new(path, index_json(RescueIndex(self._header, tuple(branches), tuple(unread))), _PRIVATE)
            return
        places = {branch_directory(one): one for one in (*known.branches, *branches)}
        read_now = {one.tp for one in branches} | {one.tp for one in unread}
        unread = (*(one for one in known.unread if one.tp not in read_now), *unread)
        replace_own(
            path, index_json(RescueIndex(known.header, tuple(places.values()), tuple(unread))), _PRIVATE
        )
