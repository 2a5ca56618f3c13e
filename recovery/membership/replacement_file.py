"""The file of a replacement: the request, and the steps that follow from it.

The request decides. The file's steps are for reading, and must be those that this version takes: kind, node, voter,
and the voters afterwards. Their sentences may be those of another version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from recovery.membership.replacement import (
    ReplacementError,
    ReplacementHeader,
    ReplacementKind,
    ReplacementPlan,
    ReplacementRequest,
    ReplacementStep,
)
from recovery.membership.replacement_steps import notes, steps
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint

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
