"""``ktriage replicas``."""

from __future__ import annotations

from pathlib import Path

from backends.base.answers import PICTURE_WAIT, Depth
from backends.base.protocol import Backend
from console.cli.base import declared
from console.cli.base.declaration import option
from console.cli.base.options import connected
from console.cli.base.partition_options import selection, words
from console.cli.base.run import Run
from console.cli.base.unfinished_reminder import remind
from console.errors import Status
from console.paths import unused
from console.provenance import now


def replicas(
    run: Run,
    *,
    topic: list[str] | None = declared.TOPICS,
    partition: list[int] | None = declared.PARTITIONS,
    path_to_json_file: Path | None = declared.PATH_TO_JSON_FILE,
    all_offline_partitions: bool = declared.ALL_OFFLINE,
    under_min_isr: bool = option(
        "--under-min-isr", "All partitions whose ISR is smaller than min.insync.replicas."
    ),
    depth: Depth = option(
        "--depth",
        "Which epochs of each log are read. last: only the epoch of the last record. divergence:"
        " back to the offset where the replicas agree. full: back to the start of the log.",
        Depth.DIVERGENCE,
    ),
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
    evidence: list[Path] | None = declared.EVIDENCE_FILES,
    metadata_dir: Path | None = declared.METADATA_DIR,
    rows: int | None = declared.ROWS_IF_MANY,
    explain: bool = option(
        "--explain",
        "The proof of what each election loses, step by step: the offsets, epochs, times and changes of"
        " the ISR that it rests on, and what it believes of Kafka, with the class of Kafka's source.",
    ),
) -> int:
    """Shows the log of every replica as its own broker describes it, even if the partition has no leader:
    last epoch, log end, log start, last checkpointed high watermark, epochs, log dir and size. Also shows
    whether the replica is in ISR, ELR or LastKnownELR, whether the controller could elect it, and which
    request gave these values, or why a value is missing. For a partition without a leader, also shows what
    electing each replica loses of the records that producers with acks=all were told are written. Nothing is
    changed. If no partitions are selected,
    all that this user may see are shown, the worst first.

    \b
    Examples:
      ktriage replicas --bootstrap-server kafka-1:9092 --all-offline-partitions
      ktriage replicas --cluster production --topic orders --partition 3 --explain
      ktriage replicas --cluster production --topic orders --partition 3 --depth full
      ktriage replicas --cluster production --all-offline-partitions --evidence broker-3.json
      ktriage replicas --cluster production --output json | jq -c '.partitions[] | select(.leader == -1)'
    """
    from console.cli.base.partition_options import read_evidence  # noqa: PLC0415  # not for --help
    from console.command_words import evidence_words  # noqa: PLC0415
    from console.reading.cluster_reading import ClusterReading  # noqa: PLC0415
    from console.reading.copied_log import read_metadata_dir  # noqa: PLC0415
    from console.reading.disk_evidence import with_evidence  # noqa: PLC0415
    from console.reading.read_cluster import Depths, read_selected, with_verdicts  # noqa: PLC0415
    from console.reading.survey_report import picture_document, picture_lines  # noqa: PLC0415
    from recovery.wording.quantity_text import printable  # noqa: PLC0415

    chosen = selection(
        topic, partition, path_to_json_file, offline=all_offline_partitions, under_min_isr=under_min_isr
    )

    disks = read_evidence(evidence)
    copy = read_metadata_dir(metadata_dir)

    async def job(backend: Backend, _stop: object) -> ClusterReading:
        cluster = await backend.open()
        asked = Depths(recovery_duration_ms / 1000, depth, picture_wait=PICTURE_WAIT)
        reading = await read_selected(backend, cluster, chosen, asked, run.screen.progress, health=True)
        reading = await with_evidence(backend, reading, disks)
        return await with_verdicts(backend, reading, copy, now=now().timestamp())

    reading = run.read(job)
    limit = (0 if chosen.named else 20) if rows is None else rows
    lines = picture_lines(reading, limit, run.target.importance, explain=explain)
    run.screen.out(picture_document(reading, explain=explain) if run.json else lines)
    resumes = remind(run, reading.cluster.cluster_id, reading)
    if reading.cluster.from_disks:
        run.next("status", *evidence_words(evidence))
    elif not resumes and any(survey.state.offline for survey in reading.surveys):
        sources = evidence_words(evidence, None if copy is None else copy.path)
        run.next("plan", *words(topic, partition, path_to_json_file), *sources, unused())
    for tp, why in reading.selected.missing.items():
        run.screen.say(f"not shown: {tp}: {printable(why)}")
    unseen = bool(reading.selected.missing) or reading.may_hide_partitions
    partly = unseen or reading.stale or (under_min_isr and reading.unsure)
    return Status.PARTLY if partly else Status.DONE


command = connected(replicas, from_disks=True)
