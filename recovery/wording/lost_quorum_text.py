"""A quorum without a leader: who is gone, what survives where, and the ways back, the least harm first.

``quorum status``, ``status``, the hand-over, pane 4 and its guide (M) all tell it from here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from recovery.membership.controllers_asked import FEW, controllers_text, node_names
from recovery.membership.possible_only_voter import rebuild_evidence
from recovery.membership.quorum_without_leader import QuorumWithoutLeader, VoterHost
from recovery.wording.after_rebuild_text import Connected, after_rebuild, unconnected
from recovery.wording.quantity_text import both, counted, either

EVIDENCE = ("ktriage", "quorum", "evidence", "LOG_DIR", "LOG_DIR")
"""LOG_DIR: each that is left, of controllers and brokers."""
RUNBOOK = "docs/runbook-lost-quorum.md"


class WayBack(NamedTuple):
    """One way to a quorum that commits again: what it is, what it costs, and the commands, if any."""

    title: str
    cost: str
    commands: tuple[str, ...] = ()


def leader_state(lost: QuorumWithoutLeader) -> str:
    """That no controller leads, where that is proved; else no more than that none which leads was reached."""
    return "NO LEADER" if lost.proved else "LEADER NOT REACHED"


def asked_text(lost: QuorumWithoutLeader) -> str:
    """How many controllers were asked, and who was not reached, with the reasons."""
    stopped = [host for host in lost.hosts if not host.answers and host.stopped]
    unclear = [host for host in lost.hosts if host.may_be_up]
    old = [host for host in lost.hosts if host.key.id in lost.old_running]
    new = [
        host
        for host in lost.hosts
        if host not in old and host.answers and (host.other or host in lost.without_metadata)
    ]
    noun = "voter" if lost.certain else "controller"
    parts = [f"{counted(len(lost.hosts), noun)} asked: {sum(host.answers for host in lost.hosts)} answered"]
    parts += [f"{both([host.name for host in new])} without metadata"] if new else []
    parts += [f"{both([host.name for host in old])} with what a rebuild replaced"] if old else []
    parts += [f"nothing listens at {both([host.name for host in stopped])}"] if stopped else []
    parts += [f"{both([host.name for host in unclear])} not reached (may run)"] if unclear else []
    return ", ".join(parts)


def action(lost: QuorumWithoutLeader) -> str:
    """What to do first, in one sentence; "" where nothing is missing, or somebody leads."""
    if not _stuck(lost):
        return ""
    if lost.starts_only_voter:
        return f"{_in_order(lost, lost.rebuilt)}."
    unclear = [host.name for host in lost.hosts if host.may_be_up]
    if not lost.proved and unclear:
        return f"Find out whether {either(unclear)} runs: it may lead, and only this side may be cut off."
    if not lost.certain and not lost.up:
        return "Name every controller there may be with --bootstrap-controller: one that was added later may lead."
    which = either(_old_disks(lost)) if lost.short == 1 else f"{lost.short} of {both(_old_disks(lost))}"
    if not lost.certain:  # whoever has not seen the quorum has not seen whether it was rebuilt either
        them = "it" if lost.short == 1 else "them"
        return f"Start {which} with {_disks(lost)}, unless a rebuild replaced {them}."
    return _in_order(lost, f"Start {which} with {_disks(lost)}: a leader is elected, nothing is lost.")


def _in_order(lost: QuorumWithoutLeader, way: str) -> str:
    """A way back, after old voters that lead were stopped: beside them Kafka cuts a log off."""
    if not lost.old_running:
        return way
    old = controllers_text([str(node) for node in lost.old_running])
    return f"Stop {old}, then {way[0].lower()}{way[1:]}"


WARNING = "Never format: an empty disk has neither vote nor log."


def warnings(lost: QuorumWithoutLeader) -> Iterator[str]:
    """What goes before that, or against it."""
    yield from (f"{one[0].upper()}{one[1:]}." for one in lost.old_sentences[1:])
    if lost.replaced:
        yield f"{lost.never_again}."
    if bare := [host.name for host in lost.without_metadata]:
        runs = f"{both(bare)} {'runs' if len(bare) == 1 else 'run'} without metadata"
        disks = "its disk is new" if len(bare) == 1 else "their disks are new"
        yield f"{runs}: {disks}, or nobody led when {'it' if len(bare) == 1 else 'they'} started."
    yield WARNING


_NO_DISK = (
    " The plan below is for no controller's disk left; where one is whole, quorum evidence prints another, which"
    " goes on with it. Who has carried a rebuild out on another host starts the new voter, and nobody else."
)


def ways_back(lost: QuorumWithoutLeader) -> tuple[WayBack, ...]:
    """The least harm first; empty where nothing is missing, or somebody leads."""
    if not _stuck(lost):
        return ()
    if lost.rebuilt_at:
        # Of a rebuild that was read from a disk nobody has the plan here.
        back = shlex.join(("ktriage", "quorum", "rebuild", lost.plan_file or "PLAN", "--undo"))
        cost = "Refused once that controller has led. Then the old voters count again, short of a majority."
        return (_only_voter_started(lost), WayBack("Take the rebuild back", cost, (back,)))
    old = _old_disks(lost)
    need = f"{lost.short} of {both(old)}" if lost.short < len(old) else both(old)
    return (
        _only_voter_started(lost)
        if lost.starts_only_voter
        else WayBack(
            _in_order(lost, f"Bring back {need}, with {_disks(lost)}"),
            f"{_cost_of_old_disk(lost)} Whoever holds the highest offset should be among those that lead again: a"
            " majority without it can lose the newest metadata.",
        ),
        WayBack(
            "Move a disk: where the host is gone and its disk is whole, put the disk into another host",
            f"{_cost_of_old_disk(lost)} The same node.id, directory and address (or the same DNS name).",
        ),
        WayBack(
            f"Rebuild: only where {_gone_disks(lost)} gone for good",
            "The quorum goes on from one copy, with one voter. What this copy lacks is lost (quorum evidence names"
            f" it), and no old voter may ever start again with its disk.{_NO_DISK if not _voting(lost) else ''}"
            f" Read first: {RUNBOOK}",
            last_resort(lost),
        ),
    )


def _cost_of_old_disk(lost: QuorumWithoutLeader) -> str:
    """That a disk which comes back loses nothing, as far as it is known to have a vote."""
    if lost.certain:
        return "Nothing is lost."
    return (
        "Nothing is lost where it is a voter's and no rebuild replaced it. Only a disk that a rebuild replaced must"
        " never start."
        f" {rebuild_evidence()}."
    )


def last_resort(lost: QuorumWithoutLeader) -> tuple[str, ...]:
    """``quorum evidence``, and ``quorum rebuild`` three times: the plan, with every voter but one named as dead,
    the rehearsal, the apply. Directories are not known from here. Empty where nothing is missing, or somebody
    leads.
    """
    if not _stuck(lost) or lost.rebuilt_at:
        return ()
    rest = max(_voting(lost), key=lambda host: host.offset, default=None)
    voter = f"{rest.key.id}@{rest.address}" if rest is not None else "NODE@HOST:PORT"
    into = () if rest is not None else ("--into", "NEW_LOG_DIR")
    gone = [_id(host) for host in lost.hosts if host is not rest]
    # A rebuild before this one: their disks may still come back together.
    replaced = dict.fromkeys(key.id for key in lost.replaced)
    gone += [str(node) for node in replaced if not any(host.key.id == node for host in lost.hosts)]
    dead = [word for node in gone for word in ("--dead", node)]
    disks = [f"LOG_DIR_OF_BROKER_{broker}" for broker in lost.known_brokers]
    data = [word for disk in disks or ["LOG_DIR_OF_EACH_BROKER"] for word in ("--data", disk)]
    words = ("ktriage", "quorum", "rebuild", "--from", "LOG_DIR", *into, "--voter", voter, *dead, *data)
    plan = ("ktriage", "quorum", "rebuild", "rebuild.json")
    return (
        shlex.join(EVIDENCE),
        shlex.join((*words, "--plan-out", "rebuild.json")),
        shlex.join((*plan, "--rehearse", "--kafka-dir", "KAFKA_DIR")),
        shlex.join(plan),
    )


def survives(lost: QuorumWithoutLeader) -> Iterator[str]:
    """Where a copy of the metadata is, as far as it is known from here."""
    for host in lost.hosts:
        end = f"at least to offset {host.offset:,}" if host.offset >= 0 else "its end is not known"
        if host.key.id in lost.old_running:
            yield f"controller {host.name} answers, with a disk that a rebuild replaced: {host.other}"
        elif host in lost.without_metadata or host.other:
            why = "a new disk, or it started without a leader"
            yield f"controller {host.name} answers, and reports no metadata: {why}"
        elif host.answers:
            yield f"controller {host.name} answers: {end}"
        else:
            yield f"controller {host.name}, if its disk is whole: {end}"
    if lost.brokers:
        answer = "answers" if len(lost.brokers) == 1 else "answer"
        yield f"every broker keeps a copy as it last fetched it; {node_names(tuple(lost.brokers))} {answer}"
    else:
        yield "every broker keeps a copy as it last fetched it; none was asked"


def guide_lines(lost: QuorumWithoutLeader, connected: Connected = unconnected) -> Iterator[str]:
    """The whole guide: who is gone, the first action, what survives where, the ways back, and what comes after."""
    ways = ways_back(lost)
    if not ways:
        yield from (f"{one[0].upper()}{one[1:]}." for one in lost.sentences)
        return
    yield f"{asked_text(lost)}. {lost.majority} {'is' if lost.majority == 1 else 'are'} needed."
    yield action(lost)
    yield from warnings(lost)
    yield ""
    yield "WHAT SURVIVES WHERE"
    yield from (f"  {one}" for one in survives(lost))
    yield ""
    yield from way_lines(lost)
    yield ""
    yield "AFTER A REBUILD, one after the other"
    rest = lost.hosts if lost.rebuilt_at else _voting(lost)
    server = rest[0].address if len(rest) == 1 else "HOST:PORT"
    few = lost.known_brokers if len(lost.known_brokers) <= FEW else ()
    away = [broker for broker in few if not any(key.id == broker for key in lost.replaced)]
    steps = after_rebuild(
        rest[0].key.id if len(rest) == 1 else None,
        server,
        lost.cluster_id,
        few,
        away=away,
        connected=connected,
    )
    yield from (f"  {number}. {step.text}" for number, step in enumerate(steps, 1))


def way_lines(lost: QuorumWithoutLeader) -> Iterator[str]:
    """The ways back."""
    ways = ways_back(lost)
    if ways:
        yield "WAYS BACK, the least harm first"
    for number, way in enumerate(ways, 1):
        yield f"  {number}. {way.title}. {way.cost}"
        yield from (f"       {command}" for command in way.commands)


def _voting(lost: QuorumWithoutLeader) -> list[VoterHost]:
    """Who answers with a disk that has a vote, as far as is known."""
    return [
        host for host in lost.hosts if host.votes and host.key.id >= 0 and host not in lost.without_metadata
    ]


def _stuck(lost: QuorumWithoutLeader) -> bool:
    return bool(lost.hosts) and lost.short > 0 and not any(host.leads for host in lost.hosts)


def _old_disks(lost: QuorumWithoutLeader) -> list[str]:
    """The nodes whose former disks have a vote and do not run now."""
    return [host.name for host in (*lost.down, *lost.without_metadata)]


def _disks(lost: QuorumWithoutLeader) -> str:
    """Which disks come back: after a rebuild a node may have an older one, which must never start."""
    if lost.replaced:
        return "the disk that it had last" if lost.short == 1 else "the disks that they had last"
    return "its old disk" if lost.short == 1 else "their old disks"


def _only_voter_started(lost: QuorumWithoutLeader) -> WayBack:
    return WayBack(_in_order(lost, lost.rebuilt), f"Brokers follow once it leads. {lost.never_again}.")


def _gone_disks(lost: QuorumWithoutLeader) -> str:
    if lost.is_only_voter:
        return f"the disk of controller {lost.hosts[0].name} is"
    return "the disks of a majority are"


def _id(host: VoterHost) -> str:
    return str(host.key.id) if host.key.id >= 0 else "NODE"
