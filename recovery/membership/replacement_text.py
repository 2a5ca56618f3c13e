"""The text of each step: the commands to type on the host, what is sent, what ends the step, what can go wrong."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import NamedTuple

from recovery.membership.preflight import REMOVES_ITSELF
from recovery.membership.replacement import ReplacementKind, ReplacementRequest, StepKind, gone_nodes
from recovery.membership.voters import ReplicaKey
from recovery.wording.quantity_text import both

PROPERTIES = "controller.properties"


class StepText(NamedTuple):
    """The text of a step; the fields have the order of :class:`recovery.membership.replacement.ReplacementStep`."""

    title: str
    commands: tuple[str, ...]
    sends: str
    waits_for: str
    risks: tuple[str, ...]
    back: str


def of(wanted: ReplacementRequest, kind: StepKind, node: int, key: ReplicaKey | None) -> StepText:
    """The text of one step."""
    made: Mapping[StepKind, Callable[[], StepText]] = {
        StepKind.STOP: lambda: _stop(wanted, node),
        StepKind.START: lambda: _start(wanted, node),
        StepKind.SWAP: lambda: _swap(wanted, node),
        StepKind.CATCH_UP: lambda: _catch_up(node),
        StepKind.ADD: lambda: _add(node),
        StepKind.REMOVE: lambda: _remove(wanted, node, key),
        StepKind.STAY_OUT: lambda: _stay_out(node),
        StepKind.JOIN: lambda: _join(node, key),
        StepKind.SERVERS: lambda: _servers(wanted),
        StepKind.CHECK: lambda: _check(wanted),
    }
    return made[kind]()


def format_command(cluster_id: str, *, static: bool = False) -> str:
    """``kafka-storage format`` for a controller that joins an existing quorum."""
    joining = () if static else ("--no-initial-controllers",)
    own = ("--cluster-id", cluster_id, "--config", PROPERTIES, "--ignore-formatted")
    return shlex.join(("kafka-storage.sh", "format", *own, *joining))


def stop_command(node: int) -> str:
    return f"kafka-server-stop.sh --process-role=controller --node-id={node}"


def start_command() -> str:
    return f"kafka-server-start.sh -daemon {PROPERTIES}"


def _stop(wanted: ReplacementRequest, node: int) -> StepText:
    gone = node not in wanted.joining
    last = gone and wanted.kind in (ReplacementKind.PLANNED, ReplacementKind.SHRINK) and not wanted.auto_join
    title = f"stop controller {node}" + (" permanently" if gone else "")
    risks = (
        ["it is the leader: another voter is elected within a few seconds"] if wanted.leader == node else []
    )
    if gone and wanted.auto_join:
        risks.append("if it is started again, it adds itself again: remove it from the service manager")
    back = "start it again" if not last else "start it again: it is an observer, and can be added"
    return StepText(title, (stop_command(node),), "", f"node {node} has stopped fetching", tuple(risks), back)


def _start(wanted: ReplacementRequest, node: int) -> StepText:
    disk = wanted.kind is ReplacementKind.DISK
    own = wanted.endpoints_of(node)
    where = f"{own[0].listener}://{own[0].host}:{own[0].port}" if own else "CONTROLLER://HOST:PORT"
    settings = (
        f"# in {PROPERTIES}: process.roles=controller, node.id={node}, advertised.listeners={where},",
        f"#   controller.quorum.bootstrap.servers={','.join(wanted.servers)}",
    )
    before = (
        ("# put the new, empty disk where metadata.log.dir (or the first of log.dirs) is",)
        if disk
        else settings
    )
    return StepText(
        f"{'put the new disk in and start' if disk else 'format and start'} controller {node}",
        (*before, format_command(wanted.cluster_id), start_command()),
        "",
        f"node {node} fetches from the leader with a new directory id",
        (
            "if it was formatted with --standalone or --initial-controllers, it forms a quorum of its own: do not"
            " connect it to this one, format it again",
            "if it finds no leader: controller.quorum.bootstrap.servers must name a controller that is up",
        ),
        "stop it: only its own disk has changed",
    )


def _swap(wanted: ReplacementRequest, node: int) -> StepText:
    return StepText(
        f"replace the disk of controller {node}",
        (
            stop_command(node),
            "# put the new, empty disk where metadata.log.dir (or the first of log.dirs) is",
            format_command(wanted.cluster_id, static=True),
            start_command(),
        ),
        "",
        f"node {node} fetches from the leader again",
        (
            "until it has caught up, a second failure can lose committed metadata: a majority could then be made of"
            " voters that never held it",
        ),
        "put the old disk back, if it can still be read",
    )


def _catch_up(node: int) -> StepText:
    return StepText(
        f"controller {node} catches up",
        (),
        "",
        f"node {node} is at the end of the leader's log",
        ("it fetches a snapshot first; until that is done, its log end offset does not move",),
        f"stop controller {node}: nothing has changed",
    )


def _add(node: int) -> StepText:
    return StepText(
        f"make controller {node} a voter",
        (),
        f"AddRaftVoter {node}, with the directory id that it fetches with and the endpoints that answer",
        f"{node} is a voter, and the new set has committed it",
        (
            "an endpoint that nobody can reach would be persisted in the VotersRecord: each is contacted first",
            "if it stops before the change is committed, the change stays in the log and waits for it",
        ),
        f"ktriage quorum remove {node}",
    )


def _remove(wanted: ReplacementRequest, node: int, key: ReplicaKey | None) -> StepText:
    risks = []
    if wanted.leader == node:
        risks.append(REMOVES_ITSELF)
    if node in wanted.joining and not wanted.add_first:
        risks.append("until the next step the set is one voter short")
    if wanted.auto_join:
        risks.append("stop it first: a running controller adds itself again")
    back = (
        f"no undo is needed: the next step adds {node} again"
        if node in wanted.joining
        else f"start controller {node} with its disk: it is an observer; ktriage quorum add {node}"
    )
    return StepText(
        f"remove voter {key}",
        (),
        f"RemoveRaftVoter {node}, directory id {key.directory_id if key else ''}",
        f"{key} is neither a voter nor the leader",
        tuple(risks),
        back,
    )


def _stay_out(node: int) -> StepText:
    return StepText(
        f"switch off auto-join on controller {node}",
        (
            f"# in {PROPERTIES}:",
            "controller.quorum.auto.join.enable=false",
            stop_command(node),
            start_command(),
        ),
        "",
        f"controller {node} runs with that setting",
        ("it is one of two voters: nothing is committed until it is back",),
        "put the old value back and restart",
    )


def _join(node: int, old: ReplicaKey | None) -> StepText:
    first = f"removes {old}, then " if old is not None else ""
    return StepText(
        f"controller {node} joins by itself",
        (),
        f"nothing: with controller.quorum.auto.join.enable the controller {first}adds itself",
        f"{node} is a voter with its new directory",
        ("if it does not join, read its log; ktriage quorum add does the same by hand",),
        f"stop controller {node}, then ktriage quorum remove {node}",
    )


def _servers(wanted: ReplacementRequest) -> StepText:
    value = ",".join(wanted.servers)
    return StepText(
        "change controller.quorum.bootstrap.servers everywhere",
        (
            "# on every broker and every controller, in the file that it is started with:",
            f"controller.quorum.bootstrap.servers={value}",
            "# then restart them one by one; after each: ktriage quorum status",
        ),
        "",
        "every broker and controller runs with the new value",
        (
            "a node that knows only controllers that are gone cannot find the quorum when it starts",
            "do not restart controllers together: the quorum has no leader until a majority is back",
        ),
        "put the old value back and restart",
    )


def _check(wanted: ReplacementRequest) -> StepText:
    staying = ", ".join(str(v.key.id) for v in wanted.voters if v.key not in wanted.leaving)
    joining = ", ".join(map(str, wanted.joining))
    voters = ", ".join(part for part in (staying, joining) if part)
    gone = gone_nodes(wanted)
    unregister = (
        f"then UnregisterController {both(gone)}, where the cluster offers it (Kafka 4.4)" if gone else ""
    )
    return StepText(
        "check the result",
        (),
        unregister,
        f"voters {voters}, all of them up and caught up",
        (),
        "nothing to undo",
    )
