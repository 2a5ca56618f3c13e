"""``plan``, ``recover`` and ``elect``: chooses leaders, then writes or elects them, or lets Kafka elect."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from backends.base.answers import Election, Outcome
from backends.base.protocol import Backend
from console.change.change import ChangeReport
from console.cli.base.run import Run
from console.cli.base.terminal_operator import execute_change
from console.cli.base.unfinished_reminder import remind
from console.errors import InputError, Status
from console.jobs.elect.apply_report import applied_lines
from console.jobs.elect.election_batches import RowFailure
from console.jobs.elect.kafka_elections import Electable, KafkaElection, KafkaElectionResults
from console.jobs.elect.leader_choice import Choices
from console.jobs.elect.plan_json import (
    elected_json,
    failures_json,
    plan_head,
    summary_json,
)
from console.jobs.elect.plan_table import (
    RESULT,
    election_fields,
    not_elected_fields,
    outcome_counts,
    plan_lines,
    planned_json,
)
from console.jobs.elect.preserved_logs import preserved_json
from console.jobs.elect.recover_partitions import (
    ChoiceOptions,
    RecoverPartitions,
    Recovery,
    survey_and_choose,
)
from console.jobs.rescue.rescue_report import rescue_lines, rescued_fields
from console.new_files import write_new
from console.output.json_document import document
from console.paths import unused
from console.plan_files import save_plan
from console.reading.cluster_reading import ClusterReading
from console.reading.consumer_reading import consumer_json, consumer_lines
from console.reading.partition_report import survey_json
from console.reading.survey_json import cluster_json, steps_json, tp_json
from console.reading.survey_report import (
    asked_json,
    count_lines,
    hidden_json,
    hidden_lines,
    replica_lines,
    survey_counts,
)
from console.reading.unread_disks_json import unread_brokers_json
from console.signals import StopRequest
from recovery.model import TopicPartition
from recovery.plan.importance import NO_TIERS, Importance
from recovery.plan.plan_review import candidate_harm, summarise
from recovery.plan.write import to_json
from recovery.strategy import Strategy
from recovery.wording.advice_text import steps_lines
from recovery.wording.cluster_advice import without_old_logs
from recovery.wording.cluster_health_text import stale_reason
from recovery.wording.quantity_text import more, printable, some_of
from recovery.wording.unread_disk_text import unread_broker_lines
from widgets.fields import Field, data_field, json_of, partition_fields, text_field, text_rows

# ``kafka-unclean-recovery`` and ``kafka-elect-leaders`` as text and as JSON.


def election_lines(results: KafkaElectionResults, limit: int) -> Iterator[str]:
    """What was read first, counts, then failed elections, then the rest."""
    if results.consumer is not None:
        yield from consumer_lines(results.consumer, limit)
    if results.rescued is not None:
        yield from rescue_lines(results.rescued, limit)
        yield ""
    yield outcome_counts(results.counts)
    failed = set(results.failures)
    ordered = sorted(results.elections, key=lambda election: election not in failed)
    if ordered:
        yield ""
        yield from text_rows(_kafka_election_fields(results), ordered, limit=limit)
    yield from unread_broker_lines(results.expected.values(), results.unread)


def _kafka_election_fields(results: KafkaElectionResults) -> tuple[Field[Election], ...]:
    """An election that Kafka made; what it loses where logs were read before it."""

    def lost(election: Election) -> dict[str, object] | None:
        row = results.expected.get(election.tp)
        return None if row is None else {"atLeast": row.loss.at_least, "atMost": row.loss.at_most}

    def harm(election: Election) -> str:
        row = results.expected.get(election.tp)
        return "" if row is None else candidate_harm(row.chosen)

    return (
        data_field("loss", lost),
        *partition_fields(lambda e: e.tp),
        *election_fields(lambda e: e),
        data_field("inDoubt", lambda e: e.in_doubt),
        text_field("OFFSETS LOST", harm),
        Field("detail", "DETAIL", lambda e: e.detail, lambda e: printable(e.detail), below=True),
    )


def election_document(kind: str, results: KafkaElectionResults) -> Iterator[str]:
    """``ktriage.elect/3`` of a preferred or an unclean election."""
    return document(
        "elect",
        {
            "electionType": kind,
            "counts": {outcome.value: count for outcome, count in results.counts.items()},
            "elections": list(map(json_of(_kafka_election_fields(results)), results.elections)),
            "failures": [{**tp_json(e.tp), "reason": e.detail} for e in results.failures],
            "rescue": None if results.rescued is None else rescued_fields(results.rescued),
            "unreadDisks": unread_brokers_json(results.unread),
            "consumer": consumer_json(results.consumer),
        },
    )


def chosen_lines(choices: Choices, show: bool, rows: int, importance: Importance = NO_TIERS) -> Iterator[str]:
    """The surveyed partitions and the choices; ``show``: every replica of the ``rows`` worst partitions, or
    of all (0).
    """
    reading = choices.reading
    yield from count_lines(reading)
    if show:
        yield from replica_lines(reading, rows, importance)
    if choices.rows:
        yield ""
        if not reading.stale:  # without a quorum nobody can be elected
            yield from steps_lines(choices.steps)
        yield from plan_lines(choices.plan, rows, native=choices.native)


def recovery_document(command: str, recovery: Recovery, file: Path | None, show: bool) -> Iterator[str]:
    """``ktriage.recover/3``, and ``ktriage.elect/3`` of a longest-log election."""
    choices, applied, elected = recovery.choices, recovery.applied, recovery.elected
    reading, plan = choices.reading, choices.plan
    fields: dict[str, object] = {
        "cluster": cluster_json(reading.cluster),
        "plan": plan_head(plan),
        "planFile": str(file) if file is not None else None,
        "counts": {**survey_counts(reading), **summary_json(summarise(plan))},
        **hidden_json(reading),
        **asked_json(reading),
        "steps": steps_json(choices.steps),
        "partitions": [planned_json(row) for row in plan.rows],
        "notElected": list(map(json_of(not_elected_fields()), plan.not_elected)),
    }
    if show:
        fields["replicas"] = list(map(survey_json(reading), reading.surveys))
    if applied is not None and applied.rescued is not None:
        fields["rescue"] = rescued_fields(applied.rescued)
    if applied is not None and elected is not None:
        fields["elected"] = elected_json(elected)
        fields["elections"] = list(map(json_of(RESULT), elected.results))
        fields["unreadDisks"] = unread_brokers_json(applied.unread)
        fields["consumer"] = consumer_json(applied.consumer)
    if applied is not None and applied.preserved is not None:
        fields["keptLogs"] = preserved_json(applied.preserved)
    fields["failures"] = failures_json(recovery.failures)
    return document(command, fields)


UNCLEAN_LOSS = (
    "which records these elections cut off is not known: an unclean election takes the first live replica, however"
    " short its log, and no log was read before it"
)


def run_elections(run: Run, change: KafkaElection, *, ask: bool, rows: int) -> int:
    """Runs the elections; returns the exit status. Raises StalePlan if every partition changed before
    anything was sent.
    """
    kind = "preferred" if change.preferred else "unclean"
    report = ChangeReport[Electable, KafkaElectionResults](
        None, partial(election_lines, limit=rows), _election_problems, partial(election_document, kind)
    )
    elections = execute_change(run, change, report, run.change, ask=ask, instead="--yes")
    if not change.preferred and not elections.logs_read and elections.counts[Outcome.ELECTED]:
        run.screen.say(UNCLEAN_LOSS)
    for election in elections.unexpected:
        run.screen.say(
            f"{election.tp}: Kafka elected {election.leader}, which was not expected: what that cuts off was not"
            " read"
        )
    return run.conclude(change.conclusion(elections))


def _election_problems(results: KafkaElectionResults) -> Iterator[str]:
    return (f"not elected: {election.tp}: {election.detail}" for election in results.failures)


class Report(NamedTuple):
    """How the result is printed: the command's name, with every replica or not, and for how many partitions."""

    command: str
    show: bool = False
    rows: int = 20


def choose_leaders(
    run: Run,
    options: ChoiceOptions,
    report: Report,
    *,
    file: Path | None = None,
    dry_run: bool = False,
    picture_wait: float | None = None,
) -> int:
    """Chooses leaders, and sends nothing. The plan is written to ``file``; with ``dry_run`` and no file it is
    saved in the state directory. Returns the exit status.
    """
    from console.jobs.consumers.planned_groups import with_groups  # noqa: PLC0415  # a recovery does without

    if file is not None:
        refuse_existing(file)

    async def job(backend: Backend, _stop: StopRequest) -> Choices:
        await backend.open()
        choices = await survey_and_choose(backend, options, run.screen.progress, picture_wait=picture_wait)
        return replace(choices, plan=await with_groups(backend, choices.plan, run.screen.progress))

    choices = run.read(job)
    if not run.json:
        run.screen.out(chosen_lines(choices, report.show, report.rows, options.importance))
    written = _write(choices, file, dry_run=dry_run)
    recovery = Recovery(choices)
    if run.json:
        run.screen.out(recovery_document(report.command, recovery, written, report.show))
    failures = recovery.failures if dry_run or file is not None else ()
    if not run.screen.interactive:
        run.screen.say(*_not_chosen(failures, report.rows))
    reading = choices.reading
    _say_hidden(run, reading)
    if file is not None and written is None:
        offline = any(survey.state.offline for survey in reading.surveys)
        none = (
            f"{stale_reason(reading.health)}, so it is not known which partitions are offline"
            if reading.stale
            else "nothing that may be seen is offline"
            if reading.may_hide_partitions
            else "nothing is offline"
        )
        why = "with this strategy no leader is elected yet" if offline else none
        run.screen.say(f"{file} was not written: {why}")
    run.screen.say(*_before_they_start(choices))
    shown_before = () if reading.stale else choices.recorded
    if not remind(run, reading.cluster.cluster_id, reading, shown_before):
        _next_after_choice(run, options, choices, wanted=file, written=written)
    return Status.PARTLY if failures or reading.may_hide_partitions or reading.stale else Status.DONE


def _before_they_start(choices: Choices) -> Iterator[str]:
    """How brokers come back that the plan waits for, where a rebuild replaced them as voters: not as they are."""
    earlier = choices.reading.earlier
    replaced = set() if earlier is None else {key.id for key in earlier.replaced}
    waits_for = {broker for one in choices.plan.not_elected for broker in one.waits_for}
    if old := sorted(replaced & waits_for):
        yield " ".join(without_old_logs(old).sentences)


def _say_hidden(run: Run, reading: ClusterReading) -> None:
    """What was not seen. A person at a terminal has just read it in the report."""
    if run.json or not run.screen.interactive:
        run.screen.say(*hidden_lines(reading))


def _not_chosen(failures: Sequence[RowFailure], rows: int) -> Iterator[str]:
    """One line for each reason, however many partitions have it; at most ``rows``, 0: all."""
    by_reason: dict[str, list[TopicPartition]] = {}
    for tp, reason, _ in failures:
        by_reason.setdefault(reason, []).append(tp)
    shown = list(by_reason.items())[: rows or None]
    for reason, partitions in shown:
        yield f"no leader is chosen: {some_of(partitions)}: {reason}"
    yield from more(len(by_reason) - len(shown), " (--rows 0 shows all)", noun="reason")


def _write(choices: Choices, file: Path | None, *, dry_run: bool) -> Path | None:
    """Writes the plan if a file is named and the plan elects a leader."""
    if not choices.plan.rows:
        return None
    if file is not None:
        write_new(file, to_json(choices.plan))
        return file
    return save_plan(choices.plan) if dry_run else None


def _next_after_choice(
    run: Run,
    options: ChoiceOptions,
    choices: Choices,
    *,
    wanted: Path | None,
    written: Path | None,
) -> None:
    if written is not None:
        run.screen.say(f"the plan is in {written}")
        if run.target.bundle is not None:
            run.screen.say(
                "send it back with the digest that review prints; it is applied where the cluster is"
            )
        elif choices.compares:
            run.next("rescue", "read", str(written), "--to", unused("rescue"))
        run.next("review", str(written))
    elif choices.reading.cluster.from_disks:
        run.screen.say(
            "nothing runs: plan again when the brokers above were started, with the cluster's address"
        )
    elif choices.plan.rows:
        run.next(*options.plan_again(unused()))
    elif choices.compares:
        run.screen.say("make a plan of the one branch, and read the other before you apply it:")
        run.next(*options.plan_again(unused(wanted or "recovery.json"), strategy=Strategy.AGGRESSIVE))
    elif choices.next_choice is not None:
        run.screen.say(choices.next_choice.why)
        run.next(
            *options.plan_again(
                unused(wanted or "recovery.json"),
                strategy=choices.next_choice.strategy,
                accept_unchecked=choices.next_choice.accept_unchecked,
            )
        )


def recover(run: Run, change: RecoverPartitions, report: Report, *, ask: bool) -> int:
    """Chooses and elects; ``ask``: a person first types the number of partitions that may lose something.

    Returns the exit status. Raises StalePlan if every chosen row changed before anything was sent.
    """

    def lines(choices: Choices, rows: int) -> Iterator[str]:
        return chosen_lines(choices, report.show, rows, change.options.importance)

    def ended(recovery: Recovery) -> Iterator[str]:
        return iter(()) if recovery.applied is None else applied_lines(recovery.applied, report.rows)

    shown = ChangeReport[Choices, Recovery](
        None if run.json else lines,
        ended,
        lambda recovery: map(str, recovery.failures),
        lambda recovery: recovery_document(report.command, recovery, recovery.file, report.show),
        lambda choices: choices.notes,
    )
    recovery = execute_change(run, change, shown, run.change, ask=ask, rows=report.rows, instead="--yes")
    _say_hidden(run, recovery.choices.reading)
    if recovery.elected is None and recovery.choices.next_choice is not None:
        run.screen.say(recovery.choices.next_choice.why)
    return run.conclude(change.conclusion(recovery))


def refuse_existing(path: Path) -> None:
    """Raises InputError if ``path`` exists, because no file is overwritten, or if it cannot be created."""
    if path.is_symlink() or path.exists():
        raise InputError(
            f"{path} exists already and is not overwritten; choose another name; nothing was sent"
        )
    directory = path.absolute().parent
    if not directory.is_dir():
        raise InputError(f"{path}: directory {directory} does not exist; nothing was sent")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"{path}: no permission to write to {directory}; nothing was sent")
