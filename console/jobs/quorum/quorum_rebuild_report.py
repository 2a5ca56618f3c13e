"""The plan of a rebuild, and what is done after it, in words and as ``ktriage.quorum-rebuild/7``
(docs/output.md).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from backends.metadata_log.rebuild_steps import WAY_BACK
from console.jobs.quorum.quorum_rebuild import AppliedRebuild
from console.output.json_document import document
from console.output.report_markdown import markdown_text
from recovery.membership.controllers_asked import NEW_METADATA_LOG, old_log_moved
from recovery.membership.quorum_rebuild import (
    RebuildPlan,
    RehearsalReport,
    address_notes,
    digest,
    rehearsal_members,
)
from recovery.membership.restored_topics import restored_topic_lines, restored_topic_members
from recovery.membership.rewritten_partitions import partition_members, waits_for_dead
from recovery.membership.stray_replicas import stray_lines, stray_members
from recovery.membership.voters import VoterSet
from recovery.wording.after_rebuild_text import AHEAD_RISK, METADATA_LOG, after_rebuild
from recovery.wording.quantity_text import (
    both,
    counted,
    either,
    human_bytes,
    ids,
    offset,
    printable,
    some_of,
)


def rebuild_lines(plan: RebuildPlan, file: Path) -> Iterator[str]:
    """The plan: what is written where, what it costs, what must not happen any more."""
    voter = plan.voter
    yield printable(
        f"cluster {plan.cluster_id}: controller {voter.key.id} becomes the only voter of the quorum"
    )
    yield printable(f"  directory: {plan.target}")
    if not plan.in_place:
        yield printable(f"  filled from: {plan.source}")
    yield printable(f"  listens at: {', '.join(map(str, voter.endpoints))}")
    yield from (printable(f"  CHECK: {note}") for note in address_notes(plan))
    yield f"  log: kept up to offset {offset(plan.log_end)} (quorum epoch {plan.last_epoch})"
    if plan.cut_bytes:
        yield (
            f"  torn end: {human_bytes(plan.cut_bytes)} at the end of {plan.segment} are no whole batch,"
            " and are"
            " left out"
        )
    sets = " → ".join(ids(key.id for key in voters.keys) for voters in (plan.old, *plan.steps))
    yield (
        f"  appended: the voters {sets}, from offset {offset(plan.log_end)} on, in quorum epoch"
        f" {offset(plan.epoch)}"
    )
    yield from _partition_lines(plan)
    yield from map(printable, restored_topic_lines(plan.restored_topics))
    yield printable(f"  back-up: {plan.backup}")
    if plan.losses:
        yield "LOST with it, and accepted:"
        yield from (printable(f"  {line}") for line in plan.losses)
    if plan.unchecked:
        yield "NOT CHECKED, and accepted:"
        yield from (printable(f"  {line}") for line in plan.unchecked)
    yield from map(printable, stray_lines(plan.strays))
    yield from ahead_lines(plan)
    yield from rehearsal_lines(plan, file)
    yield from dead_lines(plan)
    yield f"digest {digest(plan)}"


def _partition_lines(plan: RebuildPlan) -> Iterator[str]:
    """The partitions that are written anew, the first of them one by one."""
    written = plan.partitions
    if not written:
        return
    yield (
        f"  partitions: {len(written):,} are written behind the voters, with leader epochs above all that any"
        " scanned disk knows:"
    )
    for one in written[:_LISTED]:
        now = one.registration
        knew = "the copy does not know it" if one.is_new else f"the copy knows epoch {one.known_epoch}"
        disks = "no disk that was read has one" if one.disk_epoch < 0 else f"the disks {one.disk_epoch}"
        leader = f"leader {now.leader}" if now.has_leader else "no leader until one is elected"
        leader += ", which is named dead" if now.leader in plan.dead else ""
        added = f" ({ids(one.added)} added: by the copy no replica)" if one.added else ""
        yield printable(
            f"    {one.topic}-{one.partition} ({one.topic_id}): {knew}, {disks}; epoch {now.leader_epoch}, ISR"
            f" {ids(now.isr)}, replicas {ids(now.replicas)}{added}, {leader}"
        )
    if len(written) > _LISTED:
        yield f"    and {len(written) - _LISTED:,} more (all are in the plan's file)"
    waiting = [one for one in written if waits_for_dead(one, plan.dead)]
    if waiting:
        who = sorted({broker for one in waiting for broker in one.registration.isr or one.registration.elr})
        names = some_of(list(dict.fromkeys(f"{one.topic}-{one.partition}" for one in waiting)))
        yield printable(
            f"    {counted(len(waiting), 'partition')} of them can be led by {either(who)} alone, named dead"
            f" ({names}): without a leader until that node is back with its records (below), or another replica,"
            " if there is any, is elected and what it lacks is lost (ktriage plan --accept-unchecked)"
        )


_LISTED = 20


def rehearsed_lines(plan: RebuildPlan, file: Path) -> Iterator[str]:
    """The report of a rehearsal, and what it cannot show."""
    yield from rehearsal_lines(plan, file)
    yield from map(printable, restored_topic_lines(plan.restored_topics))


_CAUSES = (
    (
        ("UnsupportedVersionException", "MetadataParseException", "No MetadataVersion", "Unknown metadata"),
        "Kafka {kafka} cannot read this metadata log: a newer one wrote it. Give the Kafka that the controllers run"
        " with --kafka-dir",
    ),
    (
        (
            "Could not find or load main class",
            "NoClassDefFoundError",
            "ClassNotFoundException",
            "corrupt jar",
        ),
        "The folder that was given with --kafka-dir holds no whole Kafka: give an installation, or its folder libs",
    ),
    (("UnsupportedClassVersionError",), "This Java is too old for Kafka {kafka}: set JAVA_HOME"),
    (("OutOfMemoryError", "Could not reserve enough space"), "More memory: KAFKA_HEAP_OPTS=-Xmx4g"),
)
"""What the lines of a controller's log mean that did not lead."""


def rehearsal_cause(report: RehearsalReport) -> str:
    """What is wrong with the Kafka of a rehearsal; "" where its log tells nothing of that."""
    found = (text for signs, text in _CAUSES if any(sign in line for line in report.errors for sign in signs))
    return next(found, "").format(kafka=report.kafka)


def rehearsal_lines(plan: RebuildPlan, file: Path) -> Iterator[str]:
    """What the rehearsal showed; or that there was none, and how to have one."""
    report = plan.rehearsal
    if report is None:
        command = shlex.join(("ktriage", "quorum", "rebuild", str(file), "--rehearse", "--kafka-dir"))
        yield (
            f"NOT REHEARSED: whether a controller leads with it was not tried. O{where(plan)[1:]}:"
            f" {command} DIR"
        )
        return
    who = f"by {report.by} at {report.at}, Kafka {report.kafka}"
    if report.led_after_ms is None:
        ended = report.ended_after_ms
        what = (
            f"no controller led within {report.limit_ms / 1000:g} s"
            if ended is None
            else f"the controller ended after {ended / 1000:.1f} s, and had not led"
        )
        yield printable(f"REHEARSAL FAILED ({who}): {what}")
        if cause := rehearsal_cause(report):
            yield printable(f"  {cause}")
        yield "  Of its log:"
        yield from (printable(f"    {line}") for line in report.errors)
        return
    led = f"a controller led after {report.led_after_ms / 1000:.1f} s in quorum epoch {offset(report.epoch)}"
    if report.differences:
        yield printable(f"REHEARSAL FAILED ({who}): {led}, and does not have what the log implies:")
        if cause := rehearsal_cause(report):
            yield printable(f"  {cause}")
        yield from (printable(f"  {line}") for line in (*report.differences, *report.errors))
        return
    counts = report.counts
    yield printable(
        f"rehearsed {who}: {led}, with the same topics ({counts['topics']:,}), topic ids, partitions"
        f" ({counts['partitions']:,}), configurations ({counts['configs']:,}), features and ACLs"
        f" ({counts['acls']:,}) as the log implies"
    )


def ahead_lines(plan: RebuildPlan) -> Iterator[str]:
    """Whose metadata must be moved away."""
    if plan.ahead:
        nodes = f"NODE{'' if len(plan.ahead) == 1 else 'S'} {both(plan.ahead)}"
        yield (
            f"{nodes} must not start again with a snapshot above offset {offset(plan.ahead_from)} in"
            f" {METADATA_LOG}: {AHEAD_RISK}. Move such snapshots away first (see the steps afterwards)"
        )


def dead_lines(plan: RebuildPlan) -> Iterator[str]:
    """What keeps a second quorum away."""
    nodes = both(plan.dead)
    moved = old_log_moved("out of these log dirs where they still exist")
    one = len(plan.dead) == 1
    yield (
        f"Controller{'' if one else 's'} {nodes} must never start again with the metadata"
        f" {'log that it' if one else 'logs that they'} had: two quorums with one cluster id would both take"
        f" changes. {moved[0].upper()}{moved[1:]}:"
    )
    for key in dict.fromkeys(voter.key for voter in plan.other_voters):
        if key.id in plan.dead or key.id == plan.key.id:
            too = ", a broker too" if key.id in plan.brokers else ""
            new = f" (not {plan.key.directory_id}, which is the new voter's)" if key.id == plan.key.id else ""
            yield printable(f"  controller {key.id}{too}, directory id {key.directory_id}{new}")
    both_roles = [node for node in plan.dead if node in plan.brokers]
    if both_roles:
        single = len(both_roles) == 1
        who = f"{'Node' if single else 'Nodes'} {both(both_roles)}"
        back = "a broker, with its records" if single else "brokers, each with its records"
        yield f"{who} can come back as {back}. {NEW_METADATA_LOG}"


def host_lines(plan: RebuildPlan) -> Iterator[str]:
    """What is done on the hosts, once the plan is applied."""
    loses = bool(plan.losses or plan.unchecked or plan.partitions or plan.ahead or plan.strays)
    steps = after_rebuild(
        plan.voter.key.id,
        _server(plan),
        plan.cluster_id,
        tuple(plan.brokers),
        loses=loses,
        away=[broker for broker in plan.brokers if broker not in plan.dead],
        ahead=plan.ahead,
        ahead_from=plan.ahead_from,
        ahead_dirs=dict(plan.ahead_dirs),
        restored=[one.topic for one in plan.restored_topics],
    )
    yield from (f"{number}. {step.text}" for number, step in enumerate(steps, start=1))


def next_line(plan: RebuildPlan, file: Path, *, reviewed: bool = False) -> str:
    """The rehearsal, where there was none, then the rebuild; ``reviewed``: with the reviewer, but for the name."""
    words: tuple[str, ...] = ("ktriage", "quorum", "rebuild", str(file))
    rehearsal = plan.rehearsal
    if reviewed and rehearsal is not None:
        words = (*words, "--reviewed-by", "NAME", "--digest", digest(plan))
    again = (*words[:4], "--rehearse", "--kafka-dir")
    if rehearsal is not None and not rehearsal.is_passed:
        return f"next: {shlex.join(again)} DIR (a plan whose rehearsal failed is not carried out)"
    rehearse = f"{shlex.join(again)} DIR, then " if rehearsal is None else ""
    return f"next: {rehearse}{shlex.join(words)} ({where(plan)})"


def where(plan: RebuildPlan) -> str:
    """On which host the plan is rehearsed and carried out."""
    if plan.in_place:
        return f"on the host that has {plan.target}"
    return f"on the host that has both {plan.source}, which is read, and {plan.target}, which is written"


def applied_lines(done: AppliedRebuild, file: Path) -> Iterator[str]:
    """What was written, with the checksums before and after."""
    plan = done.plan
    if done.files.already:
        yield printable(f"{plan.target}: holds what this plan writes already; nothing was written")
    else:
        before = {one.name: one.sha256 for one in done.files.before}
        yield printable(f"{plan.target}: written")
        for one in done.files.after:
            if before.get(one.name) != one.sha256:
                was = before.get(one.name, "not there")
                yield printable(f"  {one.name}: sha256 {was} before, {one.sha256} after")
        yield printable(f"the back-up is {plan.backup}")
    yield (f"{WAY_BACK}: {shlex.join(('ktriage', 'quorum', 'rebuild', str(file), '--undo'))}")
    yield remember_line(file)
    yield from host_lines(plan)


def remember_line(file: Path) -> str:
    """How ktriage of another user or host learns of the rebuild, before it has seen the rebuilt quorum."""
    command = shlex.join(("ktriage", "quorum", "rebuild", file.name, "--remember"))
    return (
        f"then, on each other host and for each other user of ktriage, with a copy of {file.name}: {command}"
    )


def rebuild_markdown(plan: RebuildPlan, file: Path) -> list[str]:
    """The plan for an incident channel, in at most 40 lines: cut before the rehearsal and the dead, never after."""
    end = [*ahead_lines(plan), *rehearsal_lines(plan, file), *dead_lines(plan), f"digest {digest(plan)}"]
    head, *lines = [line for line in rebuild_lines(plan, file) if line not in end]
    end, room = end[-_CHANNEL:], max(0, _CHANNEL - len(end))
    cut = len(lines) - room
    shown = lines if cut <= 0 else [*lines[:room], f"and {cut:,} more lines: ktriage review {file}"]
    return [f"## {markdown_text(head)}", "", *(f"- {markdown_text(line.strip())}" for line in (*shown, *end))]


_CHANNEL = 36


def rebuild_document(plan: RebuildPlan, file: Path, *, applied: bool | None) -> Iterator[str]:
    """``applied`` None: it was planned."""
    return document(
        "quorum-rebuild",
        {
            "planId": plan.header.plan_id,
            "digest": digest(plan),
            "file": str(file),
            "clusterId": plan.cluster_id,
            "applied": applied,
            "source": plan.source,
            "target": plan.target,
            "backup": plan.backup,
            "node": plan.key.id,
            "directoryId": plan.key.directory_id,
            "logEndOffset": plan.log_end,
            "lastEpoch": plan.last_epoch,
            "epoch": plan.epoch,
            "cutBytes": plan.cut_bytes,
            "steps": [_ids(voters) for voters in plan.steps],
            "oldVoters": _ids(plan.old),
            "newerVoters": _ids(plan.newer),
            "replacedVoters": _ids(plan.replaced),
            "dead": list(plan.dead),
            "brokers": list(plan.brokers),
            "ahead": list(plan.ahead),
            "aheadFrom": plan.ahead_from,
            "aheadDirs": [list(one) for one in plan.ahead_dirs],
            "losses": list(plan.losses),
            "unchecked": list(plan.unchecked),
            "strays": [stray_members(one) for one in plan.strays],
            "partitions": [partition_members(written) for written in plan.partitions],
            "restoredTopics": [restored_topic_members(one) for one in plan.restored_topics],
            "rehearsal": rehearsal_members(plan.rehearsal),
        },
    )


def _ids(voters: VoterSet) -> list[int]:
    return [key.id for key in voters.keys]


def _server(plan: RebuildPlan) -> str:
    endpoint = plan.voter.endpoints[0]
    return (
        f"[{endpoint.host}]:{endpoint.port}" if ":" in endpoint.host else f"{endpoint.host}:{endpoint.port}"
    )
