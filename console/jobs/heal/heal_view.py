"""The course of ``ktriage heal``: show the plan, export it, carry it out, unregister the broker."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.cli.base.terminal_operator import execute_change
from console.errors import Status
from console.jobs.heal.heal_replicas import HealReplicas
from console.jobs.heal.heal_report import (
    HEALED,
    UNREGISTERED,
    heal_document,
    heal_lines,
    reassignment_json,
)
from console.jobs.heal.heal_survey import (
    HealProposal,
    HealSelection,
    heal_command,
    read_and_plan,
)
from console.jobs.heal.unregister_broker import UnregisterBroker
from console.new_files import refuse_existing, write_new
from console.signals import StopRequest
from recovery.heal_plan import in_batches
from recovery.wording.quantity_text import printable


def show_heal(
    run: Run, selection: HealSelection, path: Path | None, export: Path | None, *, batch: int, rows: int
) -> int:
    """Prints the plan, and writes it to ``export``; returns the exit status: 1 if a partition is not healed, if a
    reassignment has to be cancelled first, if nobody knows a broker, or if not every topic was seen.
    ``path`` is the plan file of the elections, if one was given.
    """

    async def job(backend: Backend, _stop: StopRequest) -> HealProposal:
        return await read_and_plan(backend, selection)

    reading = run.read(job)
    files = [] if export is None else _write(reading, export, batch)
    run.screen.out(heal_document(reading, list(map(str, files))) if run.json else heal_lines(reading, rows))
    run.screen.say(*_kafkas_commands(run, files))
    if (reading.plan.moves and not files) or reading.plan.cancelled:
        run.next(*heal_command("apply", reading.plan.gone, path))
    if reading.plan.empty:
        words = run.target.command(*heal_command("begin-empty", reading.plan.gone))
        run.screen.say(
            f"only if no disk of theirs ever comes back, and all these records may be lost: {words}"
        )
    if not reading.plan.moves and not reading.plan.not_healed and not reading.plan.cancelled:
        if not reading.sees_all:
            run.screen.say(
                "do not remove the registration yet: the broker may have replicas of topics that may not be seen"
                " (needs DESCRIBE on every topic, and CLUSTER_ACTION to read them in the metadata log)"
            )
        elif run.target.kind == "simulated":
            run.screen.say("on a real cluster its registration is removed next (ktriage heal unregister)")
        else:
            for broker in reading.registered:
                run.next(*heal_command("unregister", (broker,)))
    plan = reading.plan
    left = plan.not_healed or plan.cancelled or reading.unheard_of or not reading.sees_all
    return Status.PARTLY if left else Status.DONE


def _write(reading: HealProposal, file: Path, batch: int) -> list[Path]:
    """A file for each batch. Raises InputError, before anything is written where a file exists."""
    batches = in_batches(reading.plan.moves, batch)
    names = [file] if len(batches) == 1 else [_numbered(file, n) for n in range(1, len(batches) + 1)]
    refuse_existing(*names)
    for name, moves in zip(names, batches, strict=True):
        write_new(name, reassignment_json(moves))
    return names


def _numbered(file: Path, number: int) -> Path:
    return file.with_name(f"{file.stem}-{number}{file.suffix}")


def _kafkas_commands(run: Run, files: list[Path]) -> Iterator[str]:
    tool = (
        "kafka-reassign-partitions",
        "--bootstrap-server",
        run.target.bootstrap or "HOST:PORT",
        "--reassignment-json-file",
    )
    for file in files:
        yield f"with Kafka's tool: {shlex.join((*tool, str(file)))} --execute"
    if files:
        yield (
            "then the same with --verify until all are complete; --cancel stops it. Leave --throttle out: the tool"
            " waits for the dead broker to take the throttle, and fails. ktriage heal apply sets one."
        )


def apply_heal(run: Run, change: HealReplicas, path: Path | None, *, ask: bool, rows: int) -> int:
    """Moves the replicas, or takes it back, and prints what came of it; returns the exit status."""
    healed = execute_change(run, change, HEALED, run.change, ask=ask, dry_run=change.dry_run, rows=rows)
    if change.undo and not healed.sent and not healed.prepared.moves:
        run.screen.say("nothing of it can be taken back now")
    conclusion = change.conclusion(healed)
    if change.again:
        for tp, why in healed.prepared.left:
            run.screen.say(printable(f"not assigned again: {tp}: {why}"))
        if healed.sent and not healed.open:
            run.screen.say(
                "delete the -stray folders of these partitions from the broker's log dirs when what was read of"
                " them is written back: Kafka does not"
            )
    elif healed.sent and not change.undo and not healed.open:
        run.next(*heal_command("show", healed.prepared.gone, path))
    return run.conclude(conclusion)


def unregister_broker(run: Run, change: UnregisterBroker, *, ask: bool) -> int:
    """Removes the registration and prints what came of it; returns the exit status."""
    result = execute_change(run, change, UNREGISTERED, run.change, ask=ask, dry_run=change.dry_run)
    return change.conclusion(result).status
