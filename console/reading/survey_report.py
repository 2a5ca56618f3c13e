"""Surveyed partitions as text: counts, the worst ones, their verdicts and evidence, and the brokers that did not
answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from console.output.json_document import document
from console.reading.cluster_reading import ClusterReading
from console.reading.copied_log_report import copied_log_json, copied_log_lines
from console.reading.partition_report import partition_lines, survey_json
from console.reading.partition_selection import Which
from console.reading.replica_report import ELECTED_REPLICA, REPLICA, replica_rows
from console.reading.survey_json import (
    cluster_json,
    contact_json,
    quorum_json,
    tp_json,
    unknown_json,
)
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.disk_evidence import DiskReading, EvidenceUse
from recovery.membership.quorum import Quorum
from recovery.model import Survey, TopicPartition, Unknown
from recovery.old_leaders import old_leaders
from recovery.plan.importance import NO_TIERS, Importance
from recovery.survey_columns import SurveyTotals, missing_in_sync
from recovery.wording.cluster_health_text import health_lines, hidden_topic_texts, leader_unknown_text
from recovery.wording.proof_text import explained_lines, partition_proofs, proofs_json
from recovery.wording.quantity_text import and_more, counted, more, printable
from recovery.wording.replica_text import disk_text, still_writes_text
from widgets.fields import ALL_SHOWN, text_rows


def evidence_lines(reading: ClusterReading) -> Iterator[str]:
    """How many logs count, and which do not and why."""
    use = reading.evidence
    if use is None:
        return
    for disk, count in zip(use.readings, use.used, strict=True):
        line = f"{counted(count, 'log')} of broker {disk.broker} {'counts' if count == 1 else 'count'}"
        yield printable(f"{line} as answered: {disk_text(disk.read_ms)} ({disk.source}, {disk.host})")
        yield from disk_start_lines(disk)
    reasons = Counter((refusal.broker, refusal.reason) for refusal in use.refused)
    for (broker, reason), count in reasons.most_common():
        first = next(one.tp for one in use.refused if (one.broker, one.reason) == (broker, reason))
        more = f" and {count - 1:,} more" if count > 1 else ""
        yield printable(f"evidence refused: {first}{more} of broker {broker}: {reason}")
    if use.unchecked is not None:
        yield printable(f"not checked: whether a broker ran after its disk was read ({use.unchecked})")


def disk_start_lines(reading: DiskReading) -> Iterator[str]:
    """What is to be repaired before the broker is started with these disks; nothing where it serves all of them."""
    for one in reading.at_start:
        yield printable(
            f"before broker {reading.broker} is started with it: {one.effect}: {one.where}: {one.why}"
        )
        yield printable(f"  repair: {one.repair}")


def evidence_json(use: EvidenceUse | None) -> dict[str, object] | None:
    """The object "evidence" of docs/output.md."""
    if use is None:
        return None
    return {
        "disks": [
            {
                "broker": reading.broker,
                "file": reading.source,
                "host": reading.host,
                "readAtMs": reading.read_ms,
                "logsUsed": count,
                "atStart": [
                    {"effect": one.effect, "where": one.where, "why": one.why, "repair": one.repair}
                    for one in reading.at_start
                ],
            }
            for reading, count in zip(use.readings, use.used, strict=True)
        ],
        "refused": [
            {"topic": one.tp.topic, "partition": one.tp.partition, "broker": one.broker, "reason": one.reason}
            for one in use.refused
        ],
        "unchecked": use.unchecked,
    }


def verdict_lines(reading: ClusterReading, surveys: Iterable[Survey]) -> Iterator[str]:
    """One line for each replica that answered, of partitions that were judged; nothing where none was.

    A replica that the controller would not elect is listed too, and marked: its broker may be unfenced later.
    """
    rows = [
        row
        for survey in surveys
        if survey.tp in reading.verdicts
        for row in replica_rows(reading, survey)
        if row.verdict is not None
    ]
    if rows:
        yield ""
        yield (
            "What electing each replica loses; acked: told to a producer with acks=all as written;"
            " committed: consumers could read it"
        )
        yield from text_rows(ELECTED_REPLICA, rows)


def picture_lines(
    picture: ClusterReading, limit: int, importance: Importance = NO_TIERS, *, explain: bool = False
) -> Iterator[str]:
    """The picture as text; ``limit`` partitions at most, worst first, or all in the order asked for (0).
    ``explain``: with the proof of each verdict.
    """
    yield from count_lines(picture)
    yield from replica_lines(picture, limit, importance, explain=explain)


def replica_lines(
    picture: ClusterReading, limit: int, importance: Importance = NO_TIERS, *, explain: bool = False
) -> Iterator[str]:
    """Every replica of ``limit`` partitions at most, worst first, or of all in the order asked for (0)."""
    surveys = worst(picture.surveys, limit, importance) if limit else picture.surveys
    if not surveys:
        return
    yield ""
    yield from partition_lines(picture, surveys)
    unknown = (survey.reassigning for survey in surveys if isinstance(survey.reassigning, Unknown))
    for why in dict.fromkeys(unknown):
        yield f"whether a reassignment is in progress is not known: {printable(str(why))}"
    yield ""
    yield from text_rows(REPLICA, [row for survey in surveys for row in replica_rows(picture, survey)])
    for survey in surveys:
        if writing := old_leaders(survey):
            yield f"{survey.tp}: {still_writes_text(writing, offline=survey.state.offline)}"
    yield from verdict_lines(picture, surveys)
    for survey in surveys if explain else ():
        yield ""
        yield from explained_lines(survey, picture.verdicts.get(survey.tp))
    left = len(picture.surveys) - len(surveys)
    yield from more(left, f" partitions{ALL_SHOWN}")


def count_lines(picture: ClusterReading) -> Iterator[str]:
    """What the cluster is and how many of what were found."""
    cluster = picture.cluster
    yield from health_lines(picture.health)
    fenced = sum(1 for broker in cluster.brokers if broker.fenced)
    brokers = counted(len(cluster.brokers), "broker") + (f", {fenced} fenced" if fenced else "")
    brokers += ", none asked" if cluster.from_disks else ""
    yield f"cluster {cluster.cluster_id}: {brokers}"
    if picture.quorum is not None:
        yield _quorum_line(picture.quorum)
    counts = picture.totals
    what = counted(counts.partitions, _NOUNS[picture.selection.which])
    if picture.selection.named:
        what += f" of {printable(picture.selection.text)}"
    limits = " that this caller may see" if picture.selected.visible_only or picture.selected.hidden else ""
    limits += AS_LAST_KNOWN if picture.stale else ""
    if picture.surveys:
        may_be = f", {picture.unsure:,} may be (min ISR unknown)" if picture.unsure else ""
        yield (
            f"{what}{limits}: {counts.offline:,} offline,"
            f" {counts.led_under_min_isr:,} more under min ISR{may_be};"
            f" {counted(counts.replicas, 'replica')}: {answered_text(picture)},"
            f" {without_answer(counts)}"
        )
    else:
        yield f"{what}{limits}"
    yield from hidden_lines(picture)
    yield from contact_lines(picture)
    yield from evidence_lines(picture)
    yield from copied_log_lines(picture.copied_log)


def answered_text(picture: ClusterReading) -> str:
    """How many replicas answered, and how many logs disks have told instead."""
    on_disk = picture.evidence.logs if picture.evidence is not None else 0
    from_disk = f", {on_disk:,} read from the disk" if on_disk else ""
    return f"{picture.totals.answered - on_disk:,} answered{from_disk}"


def without_answer(counts: SurveyTotals) -> str:
    """How many replicas did not answer; a broker that refuses is not silent."""
    silent = f"{counts.replicas - counts.answered - counts.refused:,} did not"
    return f"{counts.refused:,} may not be read (not allowed), {silent}" if counts.refused else silent


AS_LAST_KNOWN = " as the brokers last knew them"
"""Said of counts while the quorum is lost or out of reach: they are not what is offline now."""
_NOUNS = {
    Which.ALL: "partition",
    Which.OFFLINE: "offline partition",
    Which.UNDER_MIN_ISR: "under-min-ISR partition",
}


def contact_lines(picture: ClusterReading) -> Iterator[str]:
    """The brokers that did not answer, with the address that was tried and the reason."""
    for contact in picture.contacts:
        if contact.problem is not None:
            problem = printable(str(contact.problem))
            named = contact.address in problem
            yield problem if named else f"broker {contact.broker} at {contact.address}: {problem}"


def hidden_lines(picture: ClusterReading) -> Iterator[str]:
    """The topics that exist and may not be seen: they may hold offline partitions. And partitions that are led by a
    broker which the listener that was asked does not reach.
    """
    yield from hidden_topic_texts(picture.selected.hidden, picture.selected.not_compared)
    for why, count in Counter(picture.selected.unreachable_leaders.values()).items():
        first = next(tp for tp, reason in picture.selected.unreachable_leaders.items() if reason == why)
        yield f"{first}{and_more(count)}: {leader_unknown_text(why)}"


def survey_counts(picture: ClusterReading) -> dict[str, int | None]:
    """The counts of a picture, by their names in JSON. A min ISR that is not known counts as 1. ``hiddenTopics``
    None: it is not known whether there are any.
    """
    found = picture.totals
    return {
        "partitions": found.partitions,
        "offline": found.offline,
        "underMinIsr": found.under_min_isr,
        "replicas": found.replicas,
        "answered": found.answered,
        "hiddenTopics": len(picture.selected.hidden) if picture.selected.not_compared is None else None,
    }


def worst(surveys: Sequence[Survey], limit: int, importance: Importance = NO_TIERS) -> list[Survey]:
    """The partitions in the most trouble: offline, then under min ISR, the most important first of each."""

    def trouble(survey: Survey) -> tuple[bool, bool, tuple[int, int, TopicPartition]]:
        under = missing_in_sync(len(survey.state.isr), survey.min_isr) > 0
        return not survey.state.offline, not under, importance.order(survey)

    return sorted(surveys, key=trouble)[:limit]


def picture_document(picture: ClusterReading, *, explain: bool = False) -> Iterator[str]:
    """``ktriage.replicas/2``; ``explain``: with the proof of each verdict."""
    quorum, partition = picture.quorum, survey_json(picture)
    return document(
        "replicas",
        {
            "cluster": cluster_json(picture.cluster),
            "quorum": quorum_json(quorum) if quorum is not None else None,
            "counts": survey_counts(picture),
            "visibleOnly": picture.selected.visible_only,
            **hidden_json(picture),
            "missing": [
                {"topic": tp.topic, "partition": tp.partition, "reason": why}
                for tp, why in picture.selected.missing.items()
            ],
            **asked_json(picture),
            "partitions": [
                {
                    **partition(survey),
                    **(_proofs_json(survey, picture.verdicts.get(survey.tp)) if explain else {}),
                }
                for survey in picture.surveys
            ],
        },
    )


def _proofs_json(survey: Survey, judged: PartitionVerdicts | None) -> dict[str, object]:
    proofs = None if judged is None else partition_proofs(survey.tp, judged)
    return {"proofs": None if proofs is None else proofs_json(proofs)}


def hidden_json(picture: ClusterReading) -> dict[str, object]:
    """What may not be seen, and the partitions with a leader which the listener that was asked does not reach."""
    selected = picture.selected
    return {
        "hiddenTopics": list(selected.hidden),
        "notCompared": None if selected.not_compared is None else unknown_json(selected.not_compared),
        "leadersNotTold": [
            {**tp_json(tp), "detail": why.detail} for tp, why in selected.unreachable_leaders.items()
        ],
    }


def asked_json(picture: ClusterReading) -> dict[str, object]:
    """Who was asked, and what else was read."""
    return {
        "contacts": list(map(contact_json, picture.contacts)),
        "evidence": evidence_json(picture.evidence),
        "copiedLog": copied_log_json(picture.copied_log),
    }


def _quorum_line(quorum: Quorum | Unknown) -> str:
    if isinstance(quorum, Unknown):
        return f"quorum: {printable(str(quorum))}"
    voters = ", ".join(str(key.id) for key in quorum.voters.keys)
    return f"quorum: led by {quorum.leader.id} (epoch {quorum.leader_epoch}), voters {voters}"
