"""The file of a replacement: the request, and the steps that follow from it.

The request decides. The file's steps are for reading, and must be those that this version takes: kind, node, voter,
and the voters afterwards. Their sentences may be those of another version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recovery.membership import replacement_text as words
from recovery.membership.replacement import (
    ReplacementError,
    ReplacementHeader,
    ReplacementKind,
    ReplacementPlan,
    ReplacementRequest,
    ReplacementStep,
    StepKind,
)
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint

# The steps of a replacement, in the order that keeps a majority at every moment. KIP-853's text adds the
# new disk first and removes the old one after; released Kafka refuses a second voter of the same node, so
# there the old one is removed first. A new node is added before the old one is removed.


def steps(wanted: ReplacementRequest) -> tuple[ReplacementStep, ...]:
    """The steps, numbered from 1. Raises ReplacementError where the request makes no sense."""
    check(wanted)
    return _numbered(wanted, tuple(_bare(wanted)))


def notes(wanted: ReplacementRequest) -> tuple[str, ...]:
    """Notes on the replacement as a whole."""
    return tuple(_notes(wanted))


def check(wanted: ReplacementRequest) -> None:
    """Raises ReplacementError: one line that says what is wrong with the request."""
    voters = {v.key.id for v in wanted.voters}
    if wanted.static and wanted.kind is not ReplacementKind.DISK:
        raise ReplacementError(
            "kraft.version is 0: the voters are the setting controller.quorum.voters of every node. Only a disk can"
            " be replaced by steps; for anything else upgrade first (quorum upgrade)"
        )
    missing = [key for key in wanted.leaving if key not in {v.key for v in wanted.voters}]
    if missing:
        raise ReplacementError(f"{missing[0]} is not a voter")
    shapes = {
        ReplacementKind.DISK: (1, 1, "one voter, which stays (the node whose disk failed)"),
        ReplacementKind.HOST: (1, 1, "one voter that goes, and --with the node that comes"),
        ReplacementKind.PLANNED: (1, 1, "one voter that goes, and --with the node that comes"),
        ReplacementKind.GROW: (0, None, "--with at least one node that comes, and no voter"),
        ReplacementKind.SHRINK: (None, 0, "at least one voter that goes, and none that comes"),
    }
    go, come, text = shapes[wanted.kind]
    for count, needed in ((len(wanted.leaving), go), (len(wanted.joining), come)):
        if count != needed and (needed is not None or not count):
            raise ReplacementError(f"--why {wanted.kind} needs {text}")
    same = {key.id for key in wanted.leaving} == set(wanted.joining)
    if (wanted.kind is ReplacementKind.DISK) != same and wanted.leaving and wanted.joining:
        raise ReplacementError(
            "a disk is replaced under the same node id: leave out --with, or give --why host for another node"
            if wanted.kind is ReplacementKind.DISK
            else "a new host needs a new node id"
        )
    twice = [node for node in wanted.joining if node in voters and wanted.kind is not ReplacementKind.DISK]
    if twice:
        raise ReplacementError(f"node {twice[0]} is a voter already")
    if len(set(wanted.joining)) < len(wanted.joining):
        raise ReplacementError("a node is named twice")
    if len(wanted.leaving) >= len(voters) + len(wanted.joining):
        raise ReplacementError("nobody would be left: the last voter cannot be removed")


_Bare = tuple[StepKind, int, ReplicaKey | None]
"""Kind, node and voter of a step that has no text yet."""


def _bare(wanted: ReplacementRequest) -> Iterator[_Bare]:
    if wanted.static:
        node = wanted.joining[0]
        yield StepKind.SWAP, node, wanted.leaving[0]
        yield StepKind.CATCH_UP, node, None
        yield StepKind.CHECK, node, None
        return
    if wanted.kind is ReplacementKind.DISK:
        yield from _disk(wanted, wanted.leaving[0])
    else:
        for node in wanted.joining:
            yield from _joining(wanted, node)
        if wanted.kind in (ReplacementKind.PLANNED, ReplacementKind.SHRINK):
            # Other nodes may find the quorum through a voter that goes: change their setting first.
            yield StepKind.SERVERS, -1, None
        size = len(wanted.voters) + len(wanted.joining)
        for gone, key in enumerate(wanted.leaving):
            yield from _leaving(wanted, key, size - gone)
        if wanted.kind in (ReplacementKind.HOST, ReplacementKind.GROW):
            yield StepKind.SERVERS, -1, None
    yield StepKind.CHECK, -1, None


def _disk(wanted: ReplacementRequest, old: ReplicaKey) -> Iterator[_Bare]:
    yield StepKind.STOP, old.id, old
    yield StepKind.START, old.id, None
    yield StepKind.CATCH_UP, old.id, None
    if wanted.auto_join:
        yield StepKind.JOIN, old.id, old
    elif wanted.add_first:
        yield StepKind.ADD, old.id, None
        yield StepKind.REMOVE, old.id, old
    else:
        yield StepKind.REMOVE, old.id, old
        yield StepKind.ADD, old.id, None


def _joining(wanted: ReplacementRequest, node: int) -> Iterator[_Bare]:
    yield StepKind.START, node, None
    yield StepKind.CATCH_UP, node, None
    yield (StepKind.JOIN if wanted.auto_join else StepKind.ADD), node, None


def _leaving(wanted: ReplacementRequest, key: ReplicaKey, size: int) -> Iterator[_Bare]:
    # A dead host must stay dead, and a controller with auto-join would come back as soon as it is removed. Of two
    # voters neither can be stopped first, so auto-join is switched off there.
    stop_first = wanted.kind is ReplacementKind.HOST or (wanted.auto_join and size > 2)
    if wanted.auto_join and not stop_first:
        yield StepKind.STAY_OUT, key.id, key
    if stop_first:
        yield StepKind.STOP, key.id, key
    yield StepKind.REMOVE, key.id, key
    if not stop_first:
        yield StepKind.STOP, key.id, key


def _numbered(wanted: ReplacementRequest, bare: Sequence[_Bare]) -> tuple[ReplacementStep, ...]:
    voters = [v.key.id for v in wanted.voters]
    made = []
    for number, (kind, node, key) in enumerate(bare, 1):
        if kind is StepKind.REMOVE:
            voters.remove(node)
        elif kind is StepKind.ADD or (kind is StepKind.JOIN and node not in voters):
            voters.append(node)
        text = words.of(wanted, kind, node, key)
        made.append(ReplacementStep(number, kind, node, key, *text, tuple(voters)))
    return tuple(made)


def _notes(wanted: ReplacementRequest) -> Iterator[str]:
    if wanted.static:
        yield (
            "the voters are static (kraft.version 0): no voter change is sent. A voter with an empty disk votes and"
            " counts as before, though it has forgotten what it acknowledged: one at a time, and only while every"
            " other voter is up and caught up"
        )
        return
    size = len(wanted.voters)
    if wanted.kind is ReplacementKind.DISK and not wanted.add_first and not wanted.auto_join:
        spare = size - 1 - ((size - 1) // 2 + 1)
        may = f"of which {spare} may fail" if spare else "all of which must be up"
        yield f"between remove and add the set has {size - 1} voters, {may}"
    if wanted.leader in {key.id for key in wanted.leaving}:
        yield f"{wanted.leader} leads now: it resigns once its removal is committed, and another is elected"
    if wanted.auto_join:
        yield "controller.quorum.auto.join.enable is on: a removed controller that still runs adds itself again"
    after = size + len(wanted.joining) - len(wanted.leaving)
    if after % 2 == 0:
        yield f"{after} voters tolerate no more failures than {after - 1}"


FORMAT = "ktriage.replacement/1"
WARNING = "each step is checked against the cluster before it is taken; the texts here are for people"


def make(header: ReplacementHeader, wanted: ReplacementRequest) -> ReplacementPlan:
    """The plan for that request. Raises ReplacementError."""
    return ReplacementPlan(header, wanted, steps(wanted), notes(wanted))


def to_json(plan: ReplacementPlan) -> str:
    """The file's text; the same plan gives the same bytes."""
    header, wanted = plan.header, plan.wanted
    members = {
        "format": FORMAT,
        "warning": WARNING,
        "planId": header.plan_id,
        "clusterId": wanted.cluster_id,
        "madeAt": header.made_at,
        "madeBy": header.made_by,
        "toolVersion": header.tool_version,
        "wanted": _wanted_members(wanted),
        "notes": list(plan.notes),
        "steps": [_step_members(step) for step in plan.steps],
    }
    return json.dumps(members, indent=2, ensure_ascii=False) + "\n"


def from_json(text: str) -> ReplacementPlan:
    """The plan of a file. Raises ReplacementError: no such plan, of another format, or with its steps edited."""
    try:
        members = json.loads(text)
    except ValueError as error:
        raise ReplacementError(f"not JSON: {error}") from None
    if not isinstance(members, dict) or members.get("format") != FORMAT:
        raise ReplacementError(f"not a replacement plan of format {FORMAT}")
    try:
        header = ReplacementHeader(
            str(members["planId"]),
            str(members["madeAt"]),
            str(members["madeBy"]),
            str(members["toolVersion"]),
        )
        wanted = _wanted(members["clusterId"], members["wanted"])
        written = members["steps"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReplacementError(f"broken ({type(error).__name__}: {error})") from None
    plan = make(header, wanted)
    if not isinstance(written, list) or [_taken(step) for step in written] != _steps_taken(plan):
        raise ReplacementError("its steps are not those that follow from what it wants: make a new plan")
    return plan


def is_replacement(text: str) -> bool:
    """Whether a file's text is a replacement plan, not a plan of elections."""
    return f'"{FORMAT}"' in text[:200]


def digest(plan: ReplacementPlan) -> str:
    """SHA-256 of the header, the request and the steps, without their sentences: the same in every version."""
    header, wanted = plan.header, plan.wanted
    about = (header.plan_id, header.made_at, header.made_by, header.tool_version, wanted.cluster_id)
    members = [*about, _wanted_members(wanted), _steps_taken(plan)]
    return hashlib.sha256(json.dumps(members, ensure_ascii=False).encode()).hexdigest()


def _steps_taken(plan: ReplacementPlan) -> list[list[object]]:
    return [_taken(_step_members(step)) for step in plan.steps]


def _taken(step: Any) -> list[object]:
    """What a step of the file does; its sentences are left out."""
    members = step if isinstance(step, dict) else {}
    return [members.get(name) for name in ("number", "kind", "node", "voter", "votersAfter")]


def _wanted_members(wanted: ReplacementRequest) -> dict[str, object]:
    return {
        "kind": str(wanted.kind),
        "voters": [_voter_members(voter) for voter in wanted.voters],
        "leaving": [list(key) for key in wanted.leaving],
        "joining": list(wanted.joining),
        "endpoints": [[node, [list(e) for e in at]] for node, at in wanted.endpoints],
        "leader": wanted.leader,
        "autoJoin": wanted.auto_join,
        "addFirst": wanted.add_first,
        "static": wanted.static,
    }


def _wanted(cluster_id: Any, members: Mapping[str, Any]) -> ReplacementRequest:
    return ReplacementRequest(
        ReplacementKind(members["kind"]),
        str(cluster_id),
        tuple(_voter(voter) for voter in members["voters"]),
        tuple(_key(key) for key in members["leaving"]),
        tuple(_int(node) for node in members["joining"]),
        tuple((_int(node), tuple(_endpoint(e) for e in at)) for node, at in members["endpoints"]),
        _int(members["leader"]),
        bool(members["autoJoin"]),
        bool(members["addFirst"]),
        bool(members["static"]),
    )


def _voter_members(voter: Voter) -> dict[str, object]:
    return {"key": list(voter.key), "endpoints": [list(e) for e in voter.endpoints]}


def _voter(members: Mapping[str, Any]) -> Voter:
    return Voter(_key(members["key"]), tuple(_endpoint(e) for e in members["endpoints"]))


def _key(members: Any) -> ReplicaKey:
    node, directory = members
    return ReplicaKey(_int(node), str(directory))


def _endpoint(members: Any) -> VoterEndpoint:
    listener, host, port = members
    return VoterEndpoint(str(listener), str(host), _int(port))


def _int(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _step_members(step: ReplacementStep) -> dict[str, object]:
    return {
        "number": step.number,
        "kind": str(step.kind),
        "node": step.node,
        "voter": None if step.key is None else list(step.key),
        "title": step.title,
        "onHost": list(step.commands),
        "sends": step.sends,
        "waitsFor": step.waits_for,
        "canGoWrong": list(step.risks),
        "back": step.back,
        "votersAfter": list(step.voters),
    }
