"""A plan for new replicas: as text, as JSON, and as the files that kafka-reassign-partitions takes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from console.change.change import ChangeReport
from console.jobs.heal.heal_replicas import HealedReplicas, PreparedHeal, empty_notes
from console.jobs.heal.heal_survey import HealProposal
from console.jobs.heal.move_batches import not_moved
from console.jobs.heal.unregister_broker import PreparedUnregistration, UnregisteredBroker
from console.output.json_document import document
from console.reading.survey_json import tp_json
from recovery.heal_plan import HealPlan, NotHealed, ReplicaMove
from recovery.model import Unknown
from recovery.wording.quantity_text import both, brokers_are, counted, human_bytes, ids, printable, some_of
from widgets.fields import Field, Row, data_field, json_of, partition_fields, text_field, text_rows

MOVE: tuple[Field[ReplicaMove], ...] = (
    *partition_fields(lambda m: m.tp),
    Field("before", "BEFORE", lambda m: list(m.before), lambda m: ids(m.before)),
    Field("after", "AFTER", lambda m: list(m.after), lambda m: ids(m.after)),
    text_field("COPIES TO", lambda m: ids(m.added)),
    text_field("SIZE", lambda m: human_bytes(m.size), right=True),
)
_COPIES: tuple[Field[ReplicaMove], ...] = (
    data_field("added", lambda m: list(m.added)),
    data_field("bytes", lambda m: m.size),
    data_field("sharesRack", lambda m: m.shares_rack),
)
LEFT: tuple[Field[NotHealed], ...] = (
    *partition_fields(lambda n: n.tp),
    Field("reason", "WHY", lambda n: n.why, lambda n: printable(n.why), below=True),
)


def reassignment_json(moves: Sequence[ReplicaMove]) -> str:
    """A file of kafka-reassign-partitions, a partition a line."""
    partitions = ",\n".join(
        json.dumps({"topic": move.tp.topic, "partition": move.tp.partition, "replicas": list(move.after)})
        for move in moves
    )
    return f'{{"version": 1, "partitions": [\n{partitions}]}}\n'


def heal_lines(reading: HealProposal, limit: int) -> Iterator[str]:
    """Counts, then what is not healed, then the moves; ``limit`` rows of each at most (0: all)."""
    yield from heal_summary_lines(reading)
    plan = reading.plan
    yield from _titled("NOT HEALED", LEFT, plan.not_healed, limit)
    yield from _titled("REASSIGNMENTS THAT NEVER END, TO BE CANCELLED", MOVE, plan.cancelled, limit)
    yield from _titled("NEW REPLICAS", MOVE, plan.moves, limit)


def heal_summary_lines(reading: HealProposal) -> Iterator[str]:
    """Counts, and what an operator has to know before anything is moved."""
    plan = reading.plan
    if not plan.moves and not plan.not_healed and not plan.cancelled:
        yield f"no partition that may be seen has a replica on broker {both(plan.gone)}"
    else:
        yield (
            f"{brokers_are(plan.gone, 'gone')}: new replicas for {counted(len(plan.moves), 'partition')},"
            f" {len(plan.not_healed):,} left as they are; to be copied: {human_bytes(plan.bytes_copied)}"
        )
    if plan.cancelled:
        yield (
            f"{counted(len(plan.cancelled), 'reassignment')} in progress can never end, because new replicas are on"
            f" broker {both(plan.gone)}: heal apply cancels them, and the plan after it moves what is left"
        )
    if reading.unheard_of:
        yield f"no broker {both(reading.unheard_of)} is registered, or has a replica: check the number"
    shared = sum(move.shares_rack for move in plan.moves)
    if shared:
        count = counted(shared, "partition")
        yield f"in a rack that has a replica already, because no other has room: {count}"
    if reading.cruise_control:
        yield from cruise_control_lines(reading)
    yield from (printable(note) for note in reading.notes)


def cruise_control_lines(reading: HealProposal) -> Iterator[str]:
    """Where Cruise Control runs it may move the same replicas: what to give it instead."""
    brokers = ",".join(map(str, reading.plan.gone))
    yield (
        f"Cruise Control seems to run here (topic {printable(reading.cruise_control)}). It moves the replicas of"
        " a dead broker by load and capacity itself; let one of the two do it, not both:"
    )
    yield f"  POST /kafkacruisecontrol/remove_broker?brokerid={brokers}&dryrun=true"


def _titled(title: str, fields: Sequence[Field[Row]], rows: Sequence[Row], limit: int) -> Iterator[str]:
    if rows:
        yield ""
        yield title
        yield from text_rows(fields, rows, limit=limit)


def heal_document(reading: HealProposal, files: Sequence[str]) -> Iterator[str]:
    """``ktriage.heal/1``."""
    return document("heal", {**_plan_members(reading), "files": list(files), **_rows_json(reading.plan)})


def _plan_members(reading: HealProposal) -> dict[str, object]:
    return {
        "clusterId": reading.cluster_id,
        "gone": list(reading.plan.gone),
        "registered": list(reading.registered),
        "voters": None if isinstance(reading.voters, Unknown) else list(reading.voters),
        "bytesCopied": reading.plan.bytes_copied,
        "cruiseControl": reading.cruise_control or None,
        "notes": list(reading.notes),
    }


def _rows_json(plan: HealPlan) -> dict[str, object]:
    return {
        "moves": list(map(json_of((*MOVE, *_COPIES)), plan.moves)),
        "cancelled": list(map(_MOVE_JSON, plan.cancelled)),
        "empty": list(map(_MOVE_JSON, plan.empty)),
        "notHealed": list(map(json_of(LEFT), plan.not_healed)),
    }


_MOVE_JSON = json_of(MOVE)


def prepared_heal_lines(prepared: PreparedHeal, limit: int) -> Iterator[str]:
    """What would be moved, and with which throttle."""
    if prepared.empty:
        yield (
            f"{brokers_are(prepared.gone, 'gone')}: {counted(len(prepared.moves), 'partition')} without any replica"
            f" left would begin empty, {len(prepared.left):,} left as they are"
        )
        yield from map(printable, empty_notes(prepared))
        yield from _titled("LEFT AS THEY ARE", LEFT, prepared.left, limit)
        yield from _titled("BEGIN EMPTY", MOVE, prepared.moves, limit)
        return
    if prepared.reading is not None:
        yield from heal_lines(prepared.reading, limit)
    elif prepared.again:
        size = sum(move.size * len(move.added) for move in prepared.moves)
        yield (
            f"replicas to be assigned again, of {counted(len(prepared.moves), 'partition')}; to be copied:"
            f" {human_bytes(size)}; {len(prepared.left):,} left as they are"
        )
        yield from _titled("LEFT AS THEY ARE", LEFT, prepared.left, limit)
        yield from _titled("ASSIGNED AGAIN", MOVE, prepared.moves, limit)
    else:
        yield (
            f"partitions to be taken back: {len(prepared.cancelled):,} that are being copied,"
            f" {len(prepared.moves):,} that were moved; {len(prepared.left):,} left as they are"
        )
        yield from _titled("LEFT AS THEY ARE", LEFT, prepared.left, limit)
        yield from _titled("TAKEN BACK", MOVE, (*prepared.cancelled, *prepared.moves), limit)
    if prepared.moves:
        yield ""
        yield _throttle_line(prepared)


def _throttle_line(prepared: PreparedHeal) -> str:
    throttle = prepared.throttle
    if throttle is None and prepared.simulated:
        return "no throttle: a simulated cluster has none, and --throttle changes nothing here"
    if throttle is None:
        return "no throttle: the new replicas are copied as fast as the brokers can"
    return (
        f"throttle: {human_bytes(throttle.rate)} a second for each broker and direction, of the new replicas only."
        " It is removed at the end"
    )


def healed_lines(healed: HealedReplicas) -> Iterator[str]:
    """Counts by how the moves ended."""
    if not healed.sent:
        yield "nothing was sent"
        return
    counts = Counter(one.end for one in healed.ended)
    summary = ", ".join(f"{number:,} {end}" for end, number in counts.items()) or "none"
    yield f"{counted(len(healed.ended), 'partition')}: {summary}"
    if healed.throttled:
        yield f"the throttle may still be set on {some_of(sorted(healed.throttled))}"
    elif healed.open:
        yield "the throttle stays until the copies are done"
    elif healed.prepared.throttle is not None:
        yield "the throttle is removed"


def healed_document(healed: HealedReplicas) -> Iterator[str]:
    """``ktriage.heal-apply/1``."""
    prepared = healed.prepared
    throttle = prepared.throttle
    return document(
        "heal-apply",
        {
            "clusterId": prepared.cluster_id,
            "gone": sorted(prepared.gone),
            "sent": healed.sent,
            "throttle": None if throttle is None else throttle.rate,
            "stillThrottled": sorted(healed.throttled or ()),
            "moves": [
                {**_MOVE_JSON(one.move), "end": str(one.end), "reason": one.why or None}
                for one in healed.ended
            ],
            "notHealed": list(map(json_of(LEFT), prepared.left)),
        },
    )


def _heal_problems(healed: HealedReplicas) -> Iterator[str]:
    """A line for each move that did not end as it should, and for each throttle that may be left."""
    yield from (f"{one.end}: {one.move.tp}: {one.why}" for one in not_moved(healed.ended))
    for name, why in (healed.throttled or {}).items():
        yield f"may still have our throttle: {name}: {why}"


HEALED = ChangeReport(prepared_heal_lines, healed_lines, _heal_problems, healed_document)


def unregistered_lines(result: UnregisteredBroker) -> Iterator[str]:
    """One line."""
    broker = result.prepared.broker
    if result.problem is not None:
        yield f"broker {broker} may still be registered: {printable(result.problem)}"
    elif result.sent:
        yield f"broker {broker} is not registered any more"
    elif result.prepared.listed is False:
        yield f"broker {broker} is not registered; nothing was sent"
    else:
        yield f"broker {broker} has no replica and no vote: it can be unregistered; nothing was sent"
    yield from map(printable, result.prepared.notes)


def unregistered_document(result: UnregisteredBroker) -> Iterator[str]:
    """``ktriage.heal-unregister/1``."""
    prepared = result.prepared
    return document(
        "heal-unregister",
        {
            "clusterId": prepared.cluster_id,
            "broker": prepared.broker,
            "registered": prepared.listed,
            "sent": result.sent,
            "problem": result.problem,
            "unreadDisks": [tp_json(tp) for tp in prepared.unread],
            "withoutReplica": [tp_json(tp) for tp in prepared.without_replica],
        },
    )


UNREGISTERED: ChangeReport[PreparedUnregistration, UnregisteredBroker] = ChangeReport(
    None, unregistered_lines, lambda _: (), unregistered_document
)
