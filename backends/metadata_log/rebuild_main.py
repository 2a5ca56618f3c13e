"""A rebuild as a program of its own: what the script of rebuild_script.py runs."""

from __future__ import annotations

import argparse
import getpass
import os
import platform
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import NamedTuple

from backends.metadata_log.directory import MetadataDirError
from backends.metadata_log.rebuild_steps import (
    UNDONE_BEFORE,
    WAY_BACK,
    RebuildOrder,
    answers,
    journal_line,
    undo_order,
    unresolved,
    write_order,
)
from backends.metadata_log.rebuilt_directory import RewriteError
from recovery.membership.quorum_rebuild import PlannedFile


class AskedAddress(NamedTuple):
    """Where a voter listened that must not answer any more; or where the new one will."""

    node: int
    host: str
    port: int


class ScriptedRebuild(NamedTuple):
    """``summary`` is the plan in words, ``dead`` the controllers that never start again with their logs,
    ``reviewed`` by whom the plan was.
    """

    order: RebuildOrder
    summary: Sequence[str]
    dead: Sequence[int]
    addresses: Sequence[AskedAddress]
    reviewed: str = ""


def run_rebuild(rebuild: ScriptedRebuild, arguments: Sequence[str]) -> int:
    """Exit status 0: done; 1: not done, for the reason on stderr; 130: stopped by Ctrl-C."""
    parser = argparse.ArgumentParser(
        description="Carries out one plan of ktriage quorum rebuild on this host."
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--reason", default="", help="why; it is written to the journal")
    parser.add_argument("--undo", action="store_true", help="put back what was there before")
    given = parser.parse_args(arguments)
    order = rebuild.order
    for line in rebuild.summary:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
    if given.yes and not given.reason:
        sys.stderr.write("--yes needs --reason TEXT; nothing was written\n")
        return 2
    try:
        confirmed = given.yes or _is_confirmed(rebuild, undo=given.undo)
        reason = confirmed and (given.reason or input("type the reason, for the journal: ").strip())
        if not reason:
            sys.stderr.write(
                f"not confirmed{', a reason is needed' if confirmed else ''}; nothing was written\n"
            )
            return 1
        return _undo(order, reason) if given.undo else _apply(rebuild, reason)
    except (RewriteError, MetadataDirError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except EOFError:
        sys.stderr.write(
            "\nnobody answered: without a terminal give --yes --reason TEXT; nothing was written\n"
        )
        return 2
    except KeyboardInterrupt:
        return 130


def _is_confirmed(rebuild: ScriptedRebuild, *, undo: bool) -> bool:
    wanted = [str(rebuild.order.node)] if undo or not rebuild.dead else [str(node) for node in rebuild.dead]
    if undo:
        question = "type the node id of the controller whose old log is put back: "
    else:
        question = (
            "type the node ids of the controllers that never start again with the metadata logs they had: "
        )
        if not rebuild.dead:
            question = "type the node id of the controller that becomes the only voter: "
    for again in (True, False):
        if sorted(input(question).replace(",", " ").split()) == sorted(wanted):
            return True
        sys.stderr.write(f"{' '.join(wanted)} was expected{'; nothing was written yet' if again else ''}\n")
    return False


def _apply(rebuild: ScriptedRebuild, reason: str) -> int:
    order = rebuild.order
    new = [one.host for one in rebuild.addresses if one.node == order.node]
    for line in filter(None, map(unresolved, dict.fromkeys(new))):
        sys.stderr.write(line + "\n")
    alive = [one for one in rebuild.addresses if answers(one.host, one.port)]
    for one in alive:
        sys.stderr.write(
            f"something listens at {one.host}:{one.port} (controller {one.node}): stop it first\n"
        )
    if alive:
        return 1
    written = write_order(order, lambda what, files: _record(order, what, reason, files, rebuild.reviewed))
    if written.already:
        sys.stdout.write(f"{order.target}: holds what this plan writes already; nothing was written\n")
        return 0
    before = {file.name: file.sha256 for file in written.before}
    for file in written.after:
        if before.get(file.name) != file.sha256:
            was = before.get(file.name, "not there")
            sys.stdout.write(f"{order.target}/{file.name}: sha256 {was} before, {file.sha256} after\n")
    sys.stdout.write(f"the back-up is {order.backup}; {WAY_BACK}: --undo\n")
    sys.stdout.write(
        "then, on each host with ktriage, with the plan that this script was made of: ktriage quorum rebuild PLAN"
        " --remember\n"
    )
    returned = [one for one in rebuild.addresses if answers(one.host, one.port)]
    for one in returned:
        sys.stderr.write(
            f"CONTROLLER {one.node} ANSWERS NOW at {one.host}:{one.port}, and was silent before: stop it, and move"
            f" __cluster_metadata-0 out of its log dir, before controller {order.node} is started\n"
        )
    return 1 if returned else 0


def _undo(order: RebuildOrder, reason: str) -> int:
    away = undo_order(order, lambda what, files: _record(order, what, reason, files))
    if away is None:
        sys.stdout.write(f"{order.target}: {UNDONE_BEFORE}\n")
        return 0
    sys.stdout.write(f"{order.target}: is as it was before; the rebuilt files: {away}\n")
    return 0


def _record(
    order: RebuildOrder, what: str, reason: str, files: Sequence[PlannedFile], reviewed: str = ""
) -> None:
    moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds")  # noqa: UP017  # Python 3.8 has no UTC
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a user without a name, as in a container
        user = f"user-{os.getuid()}"
    by = f"{user}@{platform.node()}"
    entry = {"at": moment, "by": by, "what": what, "reason": reason}
    journal_line(order, {**entry, **({"reviewed": reviewed} if reviewed else {})}, files)
