"""What is done after ``quorum rebuild``, one step after the other: the list that the commands print, and in the
console what is seen of each step.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from recovery.membership.after_rebuild import (
    WANTED_VOTERS,
    AfterRebuild,
    AfterRebuildProgress,
    AfterRebuildStep,
    old_logs,
)
from recovery.membership.controllers_asked import NEW_METADATA_LOG, old_log_moved
from recovery.membership.quorum_health import QuorumHealth
from recovery.membership.rewritten_partitions import RewrittenPartition
from recovery.membership.voters import ReplicaKey
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.model import PartitionState, TopicPartition, Unknown
from recovery.wording.quantity_text import both, brokers_are, counted, either, ids, some_of

Connected = Callable[..., str]
"""A command line of ktriage with these words, for the cluster in question."""


METADATA_LOG = "__cluster_metadata-0"
AHEAD_RISK = (
    "it may be of changes that the quorum does not have. Kafka cuts the log off and keeps the snapshot: the node"
    " starts from that one, without the quorum's own changes; topics that were kept become strays, or the node ends"
    " (seen on 4.3.1)"
)


WITHOUT_THE_DEAD = (
    "A plan that elects nothing, because it waits for a broker that is gone for good, is made once more with"
    " --accept-unchecked --reason TEXT"
)
ENDS_ALONE = (
    "One that was started while no controller led ends itself after a minute"
    " (initial.broker.registration.timeout.ms)"
)
TWO_STARTS = (
    "A broker whose metadata log was cut off may not learn a voter with a new node id: it logs that it is unable to"
    " register, and ends after a minute. Start it again: then it reads who votes (seen on 4.3.1)"
)


class NextStep(NamedTuple):
    """``commands``: on this side; whole lines."""

    step: AfterRebuildStep
    title: str
    why: str = ""
    commands: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """In one line."""
        why = f". {self.why}" if self.why else ""
        return f"{self.title}{why}{': ' if self.commands else ''}{', then '.join(self.commands)}"


def unconnected(*words: str) -> str:
    """For a cluster whose address is not known."""
    return f"{shlex.join(('ktriage', *words))} --bootstrap-server HOST:PORT"


def after_rebuild(
    voter: int | None,
    server: str,
    cluster_id: str,
    brokers: Sequence[int] = (),
    *,
    loses: bool = False,
    away: Sequence[int] = (),
    restored: Sequence[str] = (),
    joining: Sequence[int] = (),
    ahead: Sequence[int] = (),
    ahead_from: int = 0,
    ahead_dirs: Mapping[int, str] | None = None,
    connected: Connected = unconnected,
) -> tuple[NextStep, ...]:
    """The steps in their order. ``voter``: the new one, None: not known. ``server``: its listener, host:port;
    ``loses``: whether the copy that was taken lacks anything that a broker may have applied. ``away``: the brokers
    that are waited for; none: not known. ``restored``: topics that only brokers' disks knew.
    ``joining``: controllers that are formatted and fetch. ``ahead``: nodes that may have a snapshot of changes that
    the quorum lacks, above the offset ``ahead_from``; none: not known. ``ahead_dirs``: their metadata logs, as far
    as these were given.
    """
    who = "the new voter" if voter is None else f"controller {voter}"
    which = f"brokers {ids(brokers)}" if brokers else "every broker"
    status = shlex.join(("ktriage", "quorum", "status", "--bootstrap-controller", server))
    waited = [word for broker in away for word in ("--broker-id", str(broker))] or ["--broker-id", "BROKER"]
    stop = NextStep(
        AfterRebuildStep.STOP,
        "Stop the brokers that run: one that has applied more metadata than the quorum now has ends itself when it"
        " finds the quorum (seen on Kafka 4.3.1). Start them again once the controller leads. It lets a killed"
        " broker register only after it has fenced the former process (broker.session.timeout.ms, 9 s)",
    )
    which_ahead = f"node{'' if len(ahead) == 1 else 's'} {both(ahead)}" if ahead else "every other node"
    known = ahead_dirs or {}
    at = [known.get(node, f"LOG_DIR/{METADATA_LOG}") for node in ahead] or [f"LOG_DIR/{METADATA_LOG}"]
    pick = f"awk -F- '/[.]checkpoint$/ && $1+0 > {ahead_from}'"
    moved = NextStep(
        AfterRebuildStep.MOVE,
        f"On {which_ahead}, while it is stopped, move the snapshots above offset {ahead_from:,} (*.checkpoint) out"
        f" of {METADATA_LOG}, and leave its log there. Each of them: {AHEAD_RISK}",
        "Where its log begins above that offset, start the node without the whole directory, and only once the"
        " controller has a snapshot that is newer than the rebuild: else topics that are newer become strays",
        tuple(_moved_away(path, pick) for path in dict.fromkeys(at)),
    )
    compared = NextStep(
        AfterRebuildStep.RESTORED,
        f"Compare the configurations and ACLs of {some_of(restored)} with what you know of them",
        "These topics were kept from brokers' disks; the plan says what was known of them",
        (
            "kafka-configs.sh --entity-type topics --describe --bootstrap-server HOST:PORT",
            "kafka-acls.sh --list --bootstrap-server HOST:PORT",
        ),
    )
    moved_out = old_log_moved("out of the log dirs of the old voters wherever they still exist")
    return (
        *((stop, moved) if loses else ()),
        NextStep(AfterRebuildStep.START, f"Start {who}, and wait until it leads", "", (status,)),
        NextStep(
            AfterRebuildStep.SETTINGS,
            f"On {which}, and on each controller that is added later: controller.quorum.bootstrap.servers must name"
            f" {server}, and the voters that you add. Where it does not, set it, and restart the node if it"
            " runs, once the controller leads",
            "Who names only dead nodes never finds the quorum",
        ),
        NextStep(
            AfterRebuildStep.BROKERS,
            "Start each broker that does not run, and wait until all are registered and unfenced",
            f"{ENDS_ALONE}{f'. {TWO_STARTS}' if loses else ''}",
            (connected("watch", *waited),),
        ),
        NextStep(
            AfterRebuildStep.SURVEY,
            "Look at what has no leader, and what an election would lose",
            "",
            (connected("status"), connected("replicas", "--all-offline-partitions")),
        ),
        NextStep(
            AfterRebuildStep.ELECT,
            "Elect what waits, each with the loss that the plan names",
            WITHOUT_THE_DEAD,
            (
                connected("plan", "--all-offline-partitions", "plan.json"),
                connected("apply", "plan.json"),
            ),
        ),
        *((compared,) if restored else ()),
        NextStep(
            AfterRebuildStep.OLD_LOGS,
            f"{moved_out[0].upper()}{moved_out[1:]}",
            "Two of them that name only each other would elect a leader of their own",
        ),
        NextStep(
            AfterRebuildStep.GROW,
            "Grow to three voters: format and start a controller on each of two hosts, and add it",
            f"On the host of an old voter: {NEW_METADATA_LOG[0].lower()}{NEW_METADATA_LOG[1:]}",
            growth_commands(cluster_id, joining, connected),
        ),
        NextStep(
            AfterRebuildStep.CHECK,
            "Look at the whole again. It names brokers that would not find the next leader",
            "",
            (connected("check"),),
        ),
    )


def growth_commands(cluster_id: str, joining: Sequence[int], connected: Connected) -> tuple[str, ...]:
    """What makes a controller, on its own host, and gives it a vote; of those ``joining`` already the first."""
    formatted = ("--config", "controller.properties", "--no-initial-controllers", "--cluster-id", cluster_id)
    storage = shlex.join(("kafka-storage.sh", "format", *formatted))
    return (*(() if joining else (storage,)), connected("quorum", "add", next(map(str, joining), "NODE")))


def _moved_away(path: str, pick: str) -> str:
    """Beside the log dir, not in it: Kafka starts with no directory there that is no partition. The shell finds the
    name, so that a log dir may be given with a slash at its end.
    """
    away = 'away="$(cd .. && pwd).snapshots-before-rebuild" && mkdir -p "$away"'
    return (
        f'(cd {shlex.quote(path)} && {away} && ls | {pick} | while read -r one; do mv "$one" "$away"; done)'
    )


_MARKS = {
    AfterRebuildProgress.DONE: "done",
    AfterRebuildProgress.NOW: "NOW",
    AfterRebuildProgress.LATER: "later",
    AfterRebuildProgress.NOT_SEEN: "not seen from here",
}


def _steps(after: AfterRebuild, connected: Connected) -> Iterator[tuple[NextStep, AfterRebuildProgress]]:
    voters = after.quorum.voters.voters
    one = voters[0] if len(voters) == 1 else None
    servers = ",".join(v.endpoints[0].address for v in voters if v.endpoints)
    steps = after_rebuild(
        None if one is None else one.key.id,
        servers or "HOST:PORT",
        after.quorum.cluster_id,
        loses=bool(after.partitions),
        away=after.awaited,
        restored=after.restored_topics,
        joining=after.joining,
        ahead_from=after.log.offset,
        connected=connected,
    )
    progress = after.steps
    return ((step, progress[step.step]) for step in steps)


def now_line(after: AfterRebuild, connected: Connected) -> str:
    """The step that comes next, with its number and its first command. Where nothing is seen to be open: whose
    metadata logs must not be used again.
    """
    steps = list(_steps(after, connected))
    for number, (step, progress) in enumerate(steps, 1):
        if progress is AfterRebuildProgress.NOW:
            now = "; ".join(_observations(after, step.step)) or step.title
            command = f": {step.commands[0]}" if step.commands else ""
            return f"After the rebuild, step {number} of {len(steps)}: {now}{command}"
    return (
        f"The quorum was rebuilt at offset {after.log.offset:,}: {_old_logs_text(after.log, after.old_logs)}"
    )


def growth_line(rebuilt: RebuiltLog | Unknown | None, health: QuorumHealth) -> str:
    """That a rebuilt quorum needs more voters, and how; "" where it has them, or was not rebuilt."""
    count = len(health.quorum.voters.keys)
    if rebuilt is None or isinstance(rebuilt, Unknown) or count >= WANTED_VOTERS:
        return ""
    more = "two more voters" if count == 1 else "a third voter"
    return (
        f"the quorum was rebuilt at offset {rebuilt.offset:,} and has {counted(count, 'voter')} of"
        f" {WANTED_VOTERS}: no failure is tolerated. Add {more}: format a controller with"
        " --no-initial-controllers, start it, then ktriage quorum add NODE"
    )


def rebuilt_line(rebuilt: RebuiltLog | Unknown, health: QuorumHealth) -> str:
    """Where the quorum was rebuilt, and whose metadata logs must not be used again."""
    if isinstance(rebuilt, Unknown):
        return f"whether the quorum was rebuilt is not known, its epoch is high enough for it: {rebuilt}"
    text = _old_logs_text(rebuilt, old_logs(rebuilt, health))
    return f"rebuilt at offset {rebuilt.offset:,}, in quorum epoch {rebuilt.epoch:,}: {text}"


def _old_logs_text(rebuilt: RebuiltLog, old: Sequence[ReplicaKey]) -> str:
    if rebuilt.gone and not old:
        gone = both([str(voter.key) for voter in rebuilt.gone])
        return (
            f"each old voter runs with another metadata log by now; none must start again with that of {gone}"
        )
    # Who goes on with another one has it done; a copy of the former one may still exist.
    former = [str(voter.key) for voter in rebuilt.gone if voter.key not in old]
    too = f", nor with the former one of {both(former)}" if former else ""
    never = both([str(key) for key in old]) or "the old voters"
    return f"no node must start again with a metadata log of {never}{too}"


def standing_lines(after: AfterRebuild, connected: Connected) -> Iterator[str]:
    """The whole list, with what is seen of each step."""
    log = after.log
    yield (
        f"The quorum was rebuilt at offset {log.offset:,} of its log, in quorum epoch {log.epoch:,}."
        " What the list says is as of the last reading."
    )
    yield from (f"! {text}" for text in after.alarms)
    yield ""
    for number, (step, progress) in enumerate(_steps(after, connected), 1):
        yield f"{number}. [{_MARKS[progress]}] {step.title}{f'. {step.why}' if step.why else ''}"
        if progress in (AfterRebuildProgress.NOW, AfterRebuildProgress.NOT_SEEN):
            yield from (f"     {line}" for line in _observations(after, step.step))
        if progress is not AfterRebuildProgress.DONE:
            yield from (f"     {command}" for command in step.commands)
    if after.partitions:
        yield ""
        yield f"WRITTEN BY THE REBUILD: {counted(len(after.partitions), 'partition')}"
        shown = after.partitions[:_LISTED]
        yield from (f"  {partition_text(one, after.states)}" for one in shown)
        if len(after.partitions) > _LISTED:
            yield f"  and {len(after.partitions) - _LISTED:,} more (ktriage timeline shows all)"


_LISTED = 20


def _observations(after: AfterRebuild, step: AfterRebuildStep) -> Iterator[str]:
    """What is seen of a step that is open."""
    match step:
        case AfterRebuildStep.SETTINGS:
            yield from after.wrong_settings
            if after.away and not after.wrong_settings:
                yield f"{brokers_are(after.away, 'not back')}: look at this setting there"
        case AfterRebuildStep.BROKERS:
            yield f"{brokers_are(after.awaited, 'not back')}: not running, not registered, or fenced"
        case AfterRebuildStep.SURVEY | AfterRebuildStep.ELECT:
            waiting = counted(after.offline, "partition")
            yield f"{waiting} without a leader; what each choice loses is in pane 1"
        case AfterRebuildStep.GROW:
            yield f"{counted(len(after.quorum.voters.keys), 'voter')} of {WANTED_VOTERS}: no failure is tolerated"
            if after.joining:
                yield f"controller {after.joining[0]} fetches, and can be added"
        case AfterRebuildStep.CHECK:
            if not after.findings:
                yield "the controllers were not asked one by one"
        case AfterRebuildStep.OLD_LOGS:
            for key in after.old_logs:
                yield f"controller {key.id}, directory id {key.directory_id}"
                if key.id in after.away:
                    yield f"  broker {key.id} can come back with its records. {NEW_METADATA_LOG}"
        case (
            AfterRebuildStep.STOP | AfterRebuildStep.MOVE | AfterRebuildStep.START | AfterRebuildStep.RESTORED
        ):
            yield from ()


def partition_text(one: RewrittenPartition, states: dict[TopicPartition, PartitionState]) -> str:
    """Why the rebuild wrote the partition, which replicas have the newest log, and who leads now."""
    now, tp = one.registration, TopicPartition(one.topic, one.partition)
    holders = both(now.isr)
    if one.is_new:
        why = f"the copy did not know it; kept from the disks of {both(now.replicas)}"
    elif one.disk_epoch > one.known_epoch:
        have = "replica" if len(now.isr) == 1 else "replicas"
        verb = "disagrees" if len(now.isr) == 1 else "disagree"
        why = (
            f"the copy ended before its last leader change; {have} {holders} {verb} with it: epoch"
            f" {one.disk_epoch} there, {one.known_epoch} in the copy"
        )
    else:
        why = f"not every disk, or not every change, was known; the newest log is on {holders}"
    state = states.get(tp)
    if state is None:
        led = "not there now"
    elif not state.offline:
        led = f"led by {state.leader} now"
    else:
        first = state.isr or state.elr
        led = f"no leader now: {f'it waits for {either(first)}' if first else 'nobody is in ISR or ELR'}"
    return f"{tp}: {why}; {led}"
