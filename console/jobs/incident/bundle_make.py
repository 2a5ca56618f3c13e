"""Makes a bundle: asks the cluster everything once, copies its metadata log, and packs both with what is here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from backends.base.answers import PICTURE_WAIT, ClusterInfo, Depth, SurveyRequest
from backends.base.errors import BackendError
from backends.base.protocol import Backend, Progress
from backends.base.time_limit import time_limit
from backends.metadata_log.directory import DIRECTORY, MetadataDirError, log_files
from backends.metadata_log.without_secrets import Rename, without_secrets
from backends.recorded_answers import (
    SECRET,
    RecordedAnswers,
    RecordedGroups,
    RecordedOffsets,
    RecordingBackend,
)
from console.bundle_files import ANSWERS, METADATA_LOG, RECORDS, BundleManifest, encoded_answers, pack
from console.cli.base.partition_options import read_evidence
from console.cli.base.run import Run
from console.errors import InputError, NotDone, Status
from console.jobs.elect.recover_partitions import ChoiceOptions, survey_and_choose
from console.jobs.elect.recover_view import refuse_existing
from console.jobs.incident.bundle_names import OtherNames, Redaction, names_in
from console.jobs.timeline.metadata_log_copy import MetadataLogCopier
from console.jobs.timeline.metadata_log_files import PROPERTIES, MetadataLogFiles
from console.journal.journal import cluster_directory
from console.new_files import write_new
from console.output.json_document import document
from console.paths import cluster_name, memory_dir
from console.provenance import made_by, now, version
from console.reading.disk_evidence import refuse_other_clusters, with_evidence
from console.reading.partition_selection import Selection, Which
from console.reading.read_cluster import read_cluster
from console.signals import StopRequest
from recovery.disk_evidence import DiskReading
from recovery.metadata_log.records import MetadataRecord
from recovery.model import Unknown, Why
from recovery.strategy import Strategy
from recovery.wording.quantity_text import counted, human_bytes

GROUPS_SECONDS = 30.0
COPY_SECONDS = 300.0
"""For the metadata log: what was not copied by then, the same command goes on with."""
_RECORDS = ("*.jsonl", "*.json", "plans/*.json")


def make_bundle(run: Run, to: Path, evidence: tuple[Path, ...], duration: float, *, redact: bool) -> int:
    """Writes the file ``to``, with other names if that is wanted (``redact``); returns the exit status. Raises
    InputError, BackendError, NotDone, Stopped.
    """
    run.refuse_bundle("bundle")
    names_file = to.with_name(f"{to.name}.names")
    for file in (to, names_file) if redact else (to,):
        refuse_existing(file)
    disks = read_evidence(evidence)
    part = to.with_name(f"{to.name}.part")
    work, ready = part / "copy", part / "ready"

    async def job(cluster: Backend, _stop: StopRequest) -> tuple[RecordedAnswers, tuple[str, ...]]:
        info = await cluster.open()
        refuse_other_clusters(disks, info.cluster_id)
        _say_size(run, info, len((await cluster.partitions()).states), part)
        answers = await _asked(cluster, disks, duration, run.screen.progress)
        return answers, await _copied_log(run, cluster, info, work)

    answers, left_out = run.read(job)
    cluster_id = answers.cluster.cluster_id
    shutil.rmtree(ready, ignore_errors=True)
    ready.mkdir(parents=True, mode=0o700)
    left_out = (*left_out, *_unknown(answers))
    if redact:
        names = OtherNames.of(answers).with_more(*_named_in(work))
        redaction = Redaction(names)
        answers, rename = redaction.answers(answers), redaction.record
        left_out = (*map(redaction.text, left_out), "journal, plans and scans of disks: they hold names")
        write_new(names_file, names.to_json(cluster_id), mode=0o600)
    else:
        rename = _as_named
        _copy_records(cluster_id, evidence, ready)
    (ready / ANSWERS).write_bytes(encoded_answers(answers))
    _pack_log(work, ready / METADATA_LOG, rename)
    head = BundleManifest(cluster_id, answers.read_ms, "" if redact else made_by(), version(), (), left_out)
    manifest = pack(to, ready, head)
    shutil.rmtree(part)
    _show(run, to, manifest, answers, redact=redact)
    return Status.PARTLY if left_out else Status.DONE


def _as_named(record: MetadataRecord) -> MetadataRecord:
    return record


def _copy_records(cluster_id: str, evidence: tuple[Path, ...], ready: Path) -> None:
    """The scans of disks, and what this host has recorded of the cluster. Raises InputError."""
    for file in evidence:
        _copied(file, ready / "evidence" / file.name)
    for directory in {cluster_directory(cluster_id), memory_dir() / cluster_name(cluster_id)}:
        for file in (file for pattern in _RECORDS for file in directory.glob(pattern)):
            _copied(file, ready / RECORDS / file.relative_to(directory))


def _named_in(work: Path) -> tuple[list[str], list[str]]:
    """The topics and the hosts that the copied metadata log names, former ones too."""
    topics: list[str] = []
    hosts: list[str] = []

    def collect_names(record: MetadataRecord) -> MetadataRecord:
        in_topics, in_hosts = names_in(record)
        topics.extend(in_topics)
        hosts.extend(in_hosts)
        return record

    for file in _log_files(work):
        without_secrets(file.read_bytes(), SECRET, collect_names)
    return topics, hosts


def _say_size(run: Run, info: ClusterInfo, partitions: int, part: Path) -> None:
    """Before anything long begins: how much is read, and where it lies meanwhile."""
    copied = f"; it goes on with the copy of the metadata log in {part}" if part.exists() else ""
    about = human_bytes(max(partitions * 300, 1 << 14))
    run.screen.say(
        f"{counted(partitions, 'partition')} of {counted(len(info.brokers), 'broker')} are read: about {about}, and"
        f" the metadata log{copied}"
    )


async def _asked(
    cluster: Backend, disks: tuple[DiskReading, ...], duration: float, progress: Progress | None
) -> RecordedAnswers:
    """Everything that a command may ask that only reads; ``disks`` are the answers of their brokers. Raises
    BackendError.
    """
    recorded = RecordingBackend(cluster)
    at = now().timestamp()
    reading = await read_cluster(recorded, duration, at, progress)
    states = reading.partitions.states
    await recorded.topic_configs(tuple(dict.fromkeys(state.topic for state in states)))
    offline = tuple(state for state in states if state.offline)
    if offline:
        # Every strategy and ranking compares the same logs, and asks for the times of what it would cut off.
        options = ChoiceOptions(
            Selection(which=Which.OFFLINE), strategy=Strategy.AGGRESSIVE, seconds=duration
        )
        await survey_and_choose(recorded, options, progress, picture_wait=PICTURE_WAIT)
        await recorded.survey(
            SurveyRequest(offline, duration, Depth.FULL, picture_wait=PICTURE_WAIT), progress
        )
    answers = await recorded.answers(
        await recorded.cluster(), await recorded.partitions(), round(at * 1000), await _groups(recorded)
    )
    with_disks = await with_evidence(cluster, replace(reading, surveys=answers.surveys), disks)
    return replace(answers, surveys=tuple(with_disks.surveys))


async def _groups(cluster: Backend) -> RecordedGroups | Unknown:
    try:
        async with time_limit(cluster, GROUPS_SECONDS):
            asked = cluster.consumer_groups()
            listing = await asked.listed()
            committed = await asked.committed(listing.groups, None)
            members = await asked.members(listing.groups)
    except TimeoutError:
        return Unknown(Why.NOT_ANSWERED, f"they were not read within {GROUPS_SECONDS:g} s")
    except BackendError as error:
        return Unknown(Why.NOT_ANSWERED, str(error))
    return RecordedGroups(
        listing,
        tuple(
            RecordedOffsets(group, offsets if isinstance(offsets, Unknown) else tuple(offsets.items()))
            for group, offsets in committed.items()
        ),
        members,
    )


async def _copied_log(run: Run, cluster: Backend, info: ClusterInfo, work: Path) -> tuple[str, ...]:
    """Copies the metadata log into ``work``; returns why not, if so."""
    membership = getattr(cluster, "membership", None)
    if membership is None:
        return ("metadata log: this cluster has no quorum that could be asked",)
    try:
        await membership.open()
        files = MetadataLogFiles(work, info.cluster_id)
        try:
            copier = MetadataLogCopier(
                await membership.metadata_log_bytes(), files, run.screen.say, membership.pause
            )
            async with time_limit(cluster, COPY_SECONDS):
                show = run.screen.progress
                await copier.to_end(lambda done, of: show("copying the metadata log", done, of))
        finally:
            files.close()
    except TimeoutError:
        return (f"metadata log: not all of it was copied within {COPY_SECONDS:g} s",)
    except (BackendError, NotDone) as error:
        return (f"metadata log: {error}",)
    return ()


def _log_files(work: Path) -> list[Path]:
    """Of the copied metadata log; none where nothing was copied."""
    try:
        segments, snapshots = log_files(work / DIRECTORY)
    except MetadataDirError:
        return []
    return [file for _, file in (*segments, *snapshots)]


def _pack_log(work: Path, to: Path, rename: Rename) -> None:
    """The copy without secrets; nothing where nothing was copied."""
    files = _log_files(work)
    if not files:
        return
    (to / DIRECTORY).mkdir(parents=True)
    (to / PROPERTIES).write_bytes((work / PROPERTIES).read_bytes())
    for file in files:
        (to / DIRECTORY / file.name).write_bytes(without_secrets(file.read_bytes(), SECRET, rename))


def _unknown(answers: RecordedAnswers) -> Iterator[str]:
    """What could not be read of the cluster, in one line each."""
    for contact in answers.contacts:
        if contact.problem is not None:
            yield f"logs of broker {contact.broker}: {contact.problem}"
    for broker, dirs in answers.log_dirs.items():
        if isinstance(dirs, Unknown):
            yield f"log dirs of broker {broker}: {dirs}"
    for what, value in (
        ("quorum", answers.quorum),
        ("addresses of the nodes", answers.addresses),
        ("reassignments", answers.reassignments),
        ("offered requests", answers.capabilities),
        ("groups", answers.groups),
    ):
        if isinstance(value, Unknown):
            yield f"{what}: {value}"
    if isinstance(answers.groups, RecordedGroups):
        yield from (f"groups: {why}" for why in answers.groups.listing.not_listed)


def _copied(file: Path, to: Path) -> None:
    """A file of ktriage's own, which never holds a secret. Raises InputError."""
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        to.write_bytes(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None


def _show(run: Run, to: Path, manifest: BundleManifest, answers: RecordedAnswers, *, redact: bool) -> None:
    size = to.stat().st_size
    if run.json:
        run.screen.out(
            document(
                "bundle",
                {
                    "file": str(to),
                    "bytes": size,
                    "digest": manifest.digest,
                    "clusterId": manifest.cluster_id,
                    "readMs": manifest.read_ms,
                    "members": [member._asdict() for member in manifest.members],
                    "leftOut": list(manifest.left_out),
                },
            )
        )
        return
    logs = sum(not isinstance(replica.log, Unknown) for one in answers.surveys for replica in one.replicas)
    run.screen.out(
        [
            f"{to}: {human_bytes(size)}, {counted(len(manifest.members), 'file')}, digest {manifest.digest}",
            f"cluster {manifest.cluster_id}: {counted(len(answers.surveys), 'partition')},"
            f" {counted(logs, 'replica log')}",
            *(f"not in it: {line}" for line in manifest.left_out),
        ]
    )
    if redact:
        run.screen.say(
            f"what each name stands for is in {to}.names: keep it here, and translate a plan that comes back"
        )
    run.screen.say(f"next: ktriage status --bundle {to}")
