"""What of an incident is still open, what is waited for and since when, and the commands that come next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice

from backends.base.answers import Outcome
from console.change.resume_report import open_lines
from console.jobs.consumers.transactions_report import endings_text
from console.jobs.heal.heal_survey import heal_command
from console.jobs.incident.affected_groups import affected_groups
from console.jobs.incident.incident import Incident
from console.jobs.status.overview_report import offline_lines
from console.journal.change_kinds import HEAL, RESTORE_RECORDS, Left
from console.paths import unused
from console.reading.cluster_reading import ClusterReading
from recovery.advice import AdviceKind
from recovery.cluster_health import QuorumState, short_of_replicas
from recovery.log_preservation import taken_out
from recovery.membership.after_rebuild import quorum_findings
from recovery.membership.possible_only_voter import BrokersFollowing
from recovery.membership.quorum_health import QuorumHealth
from recovery.model import NO_LEADER, TopicPartition, Unknown
from recovery.plan.values import NotElected
from recovery.unread_disks import (
    UnreadDisk,
    UnreadDiskState,
    before_start,
    still_to_read,
    with_outcome,
)
from recovery.wording.advice_text import steps_lines, without_reasons
from recovery.wording.after_rebuild_text import Connected, growth_commands, growth_line, rebuilt_line
from recovery.wording.cluster_advice import replaceable, wait_for_vote
from recovery.wording.cluster_health_text import health_lines, hidden_topic_texts
from recovery.wording.lost_quorum_text import EVIDENCE, last_resort
from recovery.wording.quantity_text import both, counted, printable, some_of, time_text
from recovery.wording.unread_disk_text import not_judged_text, unread_disk_lines

MOST_TOPICS = 5
"""More are not named in a command: it is about all of the cluster then."""
MOST_DISKS = 5
"""So many brokers have a line of their own; the others are counted."""


def open_items(incident: Incident) -> Iterator[str]:
    """One line each, the worst first."""
    if not incident.recorded:
        yield "Whether a run left something unfinished is not known: the journal was not read (below)."
    elif not incident.unfinished.nothing:
        until = datetime.fromtimestamp(incident.sources.until_ms / 1000, UTC)
        yield from open_lines(incident.unfinished, incident.going_on, until)
    elif incident.going_on is not None:
        yield f"A run is still going on: {incident.going_on}"
    now = incident.sources.now
    if now is not None:
        health = now.health
        if not health.well:
            yield from health_lines(health)
        if now.lost is not None:
            yield sentence(now.lost.sentence)
        if not health.current:
            yield from without_reasons(steps_lines((), before=now.cluster_advice.first))
        else:
            for_resume = incident.unfinished.without(Left.REQUEST, Left.RECORDS)
            after = incident.recorded and not for_resume.nothing
            advice = now.cluster_advice
            then = () if after else advice.then
            yield from without_reasons(steps_lines(now.steps, before=advice.first, then=then, after=after))
        yield from offline_lines(now, _offline_until(incident, now))
    yield from _after_rebuild(incident)
    yield from _without_leader(incident)
    yield from disks_to_read(incident)
    yield from _brokers_away(incident)
    yield from _waits(incident)
    yield from _not_elected(incident)
    yield from _unclean_without_plan(incident)
    yield from _other_log_dirs(incident)
    yield from _transactions(incident)
    yield from _groups(incident)
    yield from _rescues(incident)
    yield from _out_of_isr(incident)


def gap_lines(incident: Incident) -> Iterator[str]:
    """What was not read or not looked at, one line each."""
    yield from incident.sources.gaps
    now = incident.sources.now
    if now is not None:
        found = now.partitions
        yield from map(sentence, hidden_topic_texts(found.hidden, found.not_compared))
    if now is not None and (unjudged := not_judged_text(now.unread)):
        yield f"{unjudged[0].upper()}{unjudged[1:]}."
    if incident.earlier:
        newest = str(incident.earlier[-1].header.get("at"))
        yield (
            f"What {counted(len(incident.earlier), 'run')} before this period left open was not checked"
            f" (the newest began {newest}; --since)."
        )
    if incident.transactions is None:
        yield "Transactions were not read (ktriage transactions shows which are hanging)."
    for one in incident.transactions or ():
        yield from (f"Other transactions may hang, of {one.file.path}: {why}" for why in one.unread)


def _offline_until(incident: Incident, now: ClusterReading) -> float:
    """Never before the reading: what is said to be a limit must not be shorter than the outage. Virtual time stands
    still meanwhile.
    """
    return now.began if incident.sources.virtual else max(now.began, incident.sources.until_ms / 1000)


def _transactions(incident: Incident) -> Iterator[str]:
    for one in incident.transactions or ():
        found = one.found
        if isinstance(found, Unknown) or not found.hanging:
            continue
        names = some_of(list(dict.fromkeys(row.transaction.tp for row in found.hanging)))
        groups = sorted({group for waiting in found.waiting.values() for group in waiting})
        still = (
            f" Standing still there, if they read committed records only: {some_of(groups)}."
            if groups
            else ""
        )
        yield (
            f"{counted(len(found.hanging), 'transaction')} not ended ({endings_text(found.hanging)}):"
            f" {printable(names)}.{printable(still)}"
        )


def _unclean_without_plan(incident: Incident) -> Iterator[str]:
    found = _elected_without_plan(incident)
    if found:
        yield (
            f"{counted(len(found), 'partition')} had an unclean election that is in no plan here:"
            f" {printable(some_of(found))}. Consumer groups may have read what is gone, and transactions may hang:"
            " that was not checked."
        )


def _other_log_dirs(incident: Incident) -> Iterator[str]:
    found = [outage for outage in incident.outages if outage.other_log_dir]
    if found:
        names = some_of(list(dict.fromkeys(outage.tp for outage in found)))
        brokers = both(sorted({outage.leader_after for outage in found}))
        yield (
            f"{counted(len(found), 'partition')} led again by broker {brokers}, from another log dir than before:"
            f" {printable(names)}. If that was empty, every record from before the outage is gone, from the other"
            " replicas too, and consumer groups have read what is gone. Keep the old disk: ktriage rescue read"
            " --from-disk reads it."
        )


def _elected_without_plan(incident: Incident) -> list[TopicPartition]:
    """By Kafka itself, or by another tool; not what a rebuild of the quorum wrote by its own plan."""
    planned = {row.tp for file in incident.plans if file.plan is not None for row in file.plan.rows}
    unclean = (
        one.tp for one in incident.outages if one.unclean and not one.rebuilt and one.tp not in planned
    )
    return list(dict.fromkeys(unclean))


def _out_of_isr(incident: Incident) -> Iterator[str]:
    """Of partitions that somebody leads."""
    now = incident.sources.now
    found = () if now is None else short_of_replicas(now.partitions.states)
    short = [state for state in found if not state.offline]
    if short:
        brokers = sorted({broker for state in short for broker in state.replicas if broker not in state.isr})
        names = some_of([state.tp for state in short])
        count = counted(len(short), "partition")
        yield f"{count} led, but not fully replicated: {names}. Not in ISR: {both(brokers)}."


def _offline_now(incident: Incident) -> frozenset[TopicPartition] | None:
    """None: it is not known."""
    now = incident.sources.now
    if now is not None:
        return frozenset(state.tp for state in now.partitions.states if state.offline)
    if incident.sources.timeline is not None:
        return frozenset(outage.tp for outage in incident.outages if outage.until_ms is None)
    return None


def disk_states(incident: Incident) -> Mapping[UnreadDisk, UnreadDiskState] | None:
    """What became of the disks that nobody read before an election; None: the cluster was not asked."""
    now = incident.sources.now
    if now is None:
        return None
    return {disk: now.disks[disk] for disk in incident.unfinished.unread_disks if disk in now.disks}


def disks_to_read(incident: Incident) -> Iterator[str]:
    """The disks that can still be read before their brokers start, one line for each broker."""
    states = disk_states(incident)
    disks = still_to_read(incident.unfinished.unread_disks, states)
    now = incident.sources.now
    if now is not None and now.health.current:  # the steps tell of the others
        in_steps = before_start(now.disks)
        disks = tuple(disk for disk in disks if disk not in in_steps)
    yield from map(sentence, _capped(unread_disk_lines(disks, states)))


def _capped(lines: Iterator[str]) -> Iterator[str]:
    """The first lines, each of a broker; the others are counted."""
    yield from islice(lines, MOST_DISKS)
    if left := sum(1 for _ in lines):
        yield f"and of {counted(left, 'more broker')} (ktriage verify and ktriage journal name all)"


def disks_lost(incident: Incident) -> Iterator[str]:
    """The brokers that came back and whose disks were not read before."""
    states = disk_states(incident) or {}
    back = with_outcome(states, UnreadDiskState.CAME_BACK)
    yield from map(sentence, _capped(unread_disk_lines(back, states)))


def sentence(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}."


def _after_rebuild(incident: Incident) -> Iterator[str]:
    """Where the quorum was rebuilt, and what of the steps afterwards is seen to be open."""
    rebuilt, now = incident.sources.rebuilt, incident.sources.now
    if rebuilt is None or now is None:
        return
    found = now.members_health
    if isinstance(found, QuorumHealth):
        yield sentence(f"the quorum was {rebuilt_line(rebuilt, found)}")
        yield from (sentence(one.text) for one in quorum_findings(found, incident.sources.asked, rebuilt))
        yield from (sentence(line) for line in (growth_line(rebuilt, found),) if line)


def _without_leader(incident: Incident) -> Iterator[str]:
    offline = _offline_now(incident)
    still = [one for one in incident.outages if one.until_ms is None and one.tp in (offline or ())]
    if still:
        first = min(still, key=lambda one: one.since_ms)
        names = some_of([one.tp for one in still])
        count = counted(len(still), "partition")
        yield f"{count} without a leader, the first since {time_text(first.since_ms)}: {names}"


def _brokers_away(incident: Incident) -> Iterator[str]:
    for broker, since in sorted(incident.fenced.items()):
        yield f"Broker {broker} is fenced since {time_text(since)}, as the metadata log has it."


def _waits(incident: Incident) -> Iterator[str]:
    """What the plans left without a leader, by the brokers that they wait for; not what has a leader by now."""
    offline = _offline_now(incident)
    waiting: dict[tuple[int, ...], list[NotElected]] = {}
    for file in incident.plans:
        for row in () if file.plan is None else file.plan.not_elected:
            if row.waits_for and (offline is None or row.tp in offline):
                waiting.setdefault(row.waits_for, []).append(row)
    for brokers, rows in waiting.items():
        names = some_of([row.tp for row in rows])
        many = "brokers" if len(brokers) > 1 else "broker"
        yield f"{counted(len(rows), 'partition')} waiting for {many} {both(brokers)}: {names}. {rows[0].reason}"


def _not_elected(incident: Incident) -> Iterator[str]:
    offline = _offline_now(incident)
    newest = {election.tp: election for one in incident.rounds for election in one.elections}
    good = (Outcome.ELECTED, Outcome.ALREADY_ONLINE)
    for tp, election in newest.items():
        if election.outcome not in good and (offline is None or tp in offline):
            outcome = election.outcome or not_recorded(incident, tp)
            planned = election.planned_leader
            elected = "elected by Kafka" if planned == NO_LEADER else f"led by {planned}"
            yield f"{tp} was to be {elected}: {outcome}"


def not_recorded(incident: Incident, tp: TopicPartition) -> str:
    """Of an election whose run was killed: what is seen of the partition now."""
    now = incident.sources.now
    leader = None if now is None else next((s.leader for s in now.partitions.states if s.tp == tp), None)
    if leader is None:
        return "result not known"
    return (
        "result not recorded, nobody leads now" if leader < 0 else f"result not recorded, {leader} leads now"
    )


def _groups(incident: Incident) -> Iterator[str]:
    left = [one for one in affected_groups(incident) if not one.put_right]
    if left:
        names = list(dict.fromkeys(one.group.group for one in left))
        yield (
            f"{counted(len(names), 'consumer group')} affected by the elections and not put right with ktriage:"
            f" {some_of(names)}"
        )


def _rescues(incident: Incident) -> Iterator[str]:
    # What these could not read is followed by broker, until it is read or waived.
    followed = {one.begun.detail.get("planId") for one in incident.rounds if "unread" in one.begun.detail}
    for rescue in incident.rescues:
        if rescue.problem:
            yield f"The rescue in {rescue.directory} cannot be read: {rescue.problem}"
        for branch in rescue.branches:
            if not branch.whole:
                yield f"Rescue {rescue.directory}: {branch.name} was not read as a whole"
        if rescue.header is None or rescue.header.plan_id not in followed:
            yield from (
                f"Not rescued: {line}. The rescue is {rescue.directory}" for line in rescue.unread_by_broker
            )
        if rescue.branches and not rescue.restored:
            yield f"The rescue in {rescue.directory} was not restored to a topic."


def next_commands(incident: Incident, *arguments: str) -> Iterator[str]:
    """Lines to be copied into a shell; ``arguments`` name the cluster. None where nothing is known to be wrong."""
    commands = tuple(_commands(incident, *arguments))
    yield from commands
    now = incident.sources.now
    if not commands and now is not None and not now.health.well:
        yield shlex.join(("ktriage", "status", *arguments))


def _commands(incident: Incident, *arguments: str) -> Iterator[str]:
    def line(*words: str) -> str:
        return shlex.join(("ktriage", *words, *arguments))

    stuck = _quorum_first(incident)
    yield from _quorum_commands(incident, stuck, line)
    if incident.going_on is None and not stuck:
        if not incident.unfinished.without(Left.RECORDS).nothing:
            yield line(*incident.unfinished.resume)
        for restore in (one for one in incident.unfinished.of(RESTORE_RECORDS) if not one.waits):
            yield line(*restore.command)
    before_elections = () if stuck else tuple(_before_elections(incident))
    yield from (line(*words) for words in before_elections)
    for file in incident.plans:
        if file.plan is not None and file.plan.rows:
            yield line("verify", str(file.path))
    for words in (
        *_rebuild_commands(incident, stuck),
        *(words for words in _disk_commands(incident) if words not in before_elections),
        *_fix_commands(incident),
        *_client_commands(incident),
        *(() if stuck else _replacements(incident)),
    ):
        yield line(*words)
    yield from () if stuck else _growth_commands(incident, line)
    for rescue in incident.rescues:
        if rescue.branches and not rescue.restored:
            yield shlex.join(("ktriage", "rescue", "show", str(rescue.directory)))
    for broker, healed in _healed_brokers(incident):
        # What is left may need something else first: heal show says what, and prints apply where it moves anything.
        yield line(*heal_command("unregister" if healed else "show", (broker,)))
    if incident.earlier:
        # The whole day of the newest one, not run by run.
        day = str(incident.earlier[-1].header.get("at"))[:10]
        yield line("handover", "--since", f"{day}T00:00")


def _client_commands(incident: Incident) -> Iterator[tuple[str, ...]]:
    """To look at who read or wrote what an election without a plan, or an empty log dir, cut off."""
    emptied = (outage.tp for outage in incident.outages if outage.other_log_dir)
    topics = list(dict.fromkeys(tp.topic for tp in (*_elected_without_plan(incident), *emptied)))
    if topics:
        named = (
            [word for topic in topics for word in ("--topic", topic)] if len(topics) <= MOST_TOPICS else []
        )
        yield "groups", "show", *named
        yield "transactions", "show", *named


def _rebuild_commands(incident: Incident, stuck: bool) -> tuple[tuple[str, ...], ...]:
    """What shows how far a rebuilt quorum is."""
    return () if stuck or incident.sources.rebuilt is None else (("quorum", "status"), ("check",))


def _growth_commands(incident: Incident, connected: Connected) -> tuple[str, ...]:
    """What gives a rebuilt quorum its further voters; nothing while old voters lead beside it."""
    rebuilt, now = incident.sources.rebuilt, incident.sources.now
    found = None if now is None else now.members_health
    if rebuilt is None or now is None or now.second_quorum or not isinstance(found, QuorumHealth):
        return ()
    waiting = wait_for_vote(found, [voter.key for voter in rebuilt.gone])
    return growth_commands(found.quorum.cluster_id, waiting, connected) if growth_line(rebuilt, found) else ()


def _replacements(incident: Incident) -> Iterator[tuple[str, ...]]:
    """The plan of a replacement for each voter that is down, where the advice offers it and no run comes before."""
    now = incident.sources.now
    busy = incident.going_on is not None or not incident.unfinished.without(Left.RECORDS).nothing
    nodes = () if now is None or busy else replaceable(now.members_health, now.known_brokers)
    yield from (("quorum", "replace", str(node), "--why", "disk", "--dry-run") for node in nodes)


def _quorum_commands(incident: Incident, stuck: bool, connected: Connected) -> Iterator[str]:
    """What shows the quorum, where it comes before everything else. The evidence reads directories only; a rebuild
    is decided on by whoever read what it costs.
    """
    now = incident.sources.now
    lost = None if now is None else now.lost
    in_doubt = _may_be_rebuilt(incident)
    if stuck or in_doubt:
        yield connected("quorum", "status")
    if lost is not None:
        in_doubt = bool(
            lost.possible_rebuild if lost.leading is not None else lost.proved and last_resort(lost)
        )
    if in_doubt:
        yield shlex.join(EVIDENCE)


def _may_be_rebuilt(incident: Incident) -> bool:
    """Whether the brokers speak for another quorum than the one that leads, so that somebody has to look first."""
    now = incident.sources.now
    found = None if now is None else now.members_health
    if now is None or not isinstance(found, QuorumHealth):
        return False
    following = BrokersFollowing(found, now.known_brokers)
    return bool(following.possible_only_voters) and following.evidence_first


def _quorum_first(incident: Incident) -> bool:
    """Whether nothing can be elected, or moved, until controllers are back."""
    now = incident.sources.now
    led_or_not_known = (QuorumState.LED, QuorumState.UNKNOWN, QuorumState.NOT_ASKED)
    return now is not None and now.health.quorum.state not in led_or_not_known


def _disk_commands(incident: Incident) -> Iterator[tuple[str, ...]]:
    """To read the disks that wait for it, then to assign replicas again whose logs were kept. That nobody will read
    a disk is a decision and no next step: who pasted it would silence the warning.
    """
    if still_to_read(incident.unfinished.unread_disks, disk_states(incident)):
        yield _READ_DISK
    if _can_assign_again(incident):
        yield "heal", "assign-again"


_READ_DISK = ("rescue", "read", "--to", "DIR", "--from-disk", "LOG_DIR")


def _before_elections(incident: Incident) -> Iterator[tuple[str, ...]]:
    """For partitions without a leader: a failed disk that may hold what no other replica has is read before leaders
    are planned.
    """
    now = incident.sources.now
    advised = () if now is None else (step.advice for step in now.steps)
    if any(one.kind is AdviceKind.READ_DISK or any(b.failed_disk for b in one.keep_down) for one in advised):
        yield _READ_DISK
    if _offline_now(incident):
        yield "plan", "--all-offline-partitions", unused()


def _can_assign_again(incident: Incident) -> bool:
    """Whether a broker is up again whose log was kept, and read: as ``heal assign-again`` judges it."""
    now = incident.sources.now
    if now is None:
        return False
    up = {broker.id for broker in now.cluster.brokers if not broker.fenced}
    replicas = {state.tp: state.replicas for state in now.partitions.states}
    unread = {disk.tp for disk in incident.unfinished.unread_disks}
    return any(
        replicas.get(tp) == keep.after and up.issuperset(taken_out(keep)) and tp not in unread
        for tp, keep in incident.keeps.items()
    )


def _fix_commands(incident: Incident) -> Iterator[tuple[str, ...]]:
    for one in incident.transactions or ():
        if not isinstance(one.found, Unknown) and one.found.hanging:
            yield "transactions", "fix", str(one.file.path), "--dry-run"
    for path in dict.fromkeys(one.file.path for one in affected_groups(incident) if not one.put_right):
        yield "groups", "fix", str(path), "--dry-run"


def _healed_brokers(incident: Incident) -> Iterator[tuple[int, bool]]:
    """The brokers of the newest heal that are registered still and not up, and whether nothing has a replica on
    them any more. None while a heal is unfinished, or where it was undone or topics may be hidden.
    """
    now = incident.sources.now
    virtual = incident.sources.virtual
    heals = [begun for run in incident.runs for begun, _ in run.entries(HEAL)]
    unseen = now is not None and now.partitions.may_hide_topics
    if now is None or unseen or not heals or heals[-1].detail.get("undo") or incident.unfinished.of(HEAL):
        return
    assigned = {broker for state in now.partitions.states for broker in state.replicas}
    for broker in heals[-1].detail.get("gone", ()):
        listed = now.cluster.broker(broker)
        healed = broker not in assigned
        # A simulated cluster does not unregister brokers: nothing is left to do there.
        if listed is not None and listed.fenced and not (healed and virtual):
            yield broker, healed
