"""``ktriage simulate serve``, ``step`` and ``fault``: serves a scenario on the network, moves its time and
injects faults.
"""

from __future__ import annotations

import asyncio
import fcntl
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

from backends.simulator.network import NetworkRole
from backends.simulator.served.api_versions import NoSuchCall, hidden
from backends.simulator.served.clock import SimulatorFailed
from backends.simulator.served.control_socket import ControlError, ControlSocket, read_fault, send_control
from backends.simulator.served.principals import Principal, principals
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions, cluster_id_of
from console.errors import InputError, NotDone, Status
from console.output.json_document import document
from console.paths import state_dir
from console.program import Program
from console.signals import StopRequest
from console.simulator_backend import scenario as scenario_of
from recovery.yaml_text import read_yaml

LAST_PORT = 65_535
FASTEST = 1_000
"""Virtual seconds per real second."""
_CLUSTER_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}")


def control_path(port_base: int) -> Path:
    """The control socket (step, fault) of the cluster that is served from that port on."""
    return state_dir() / "served" / f"{port_base}.sock"


@contextmanager
def reserved(ports: Iterable[int]) -> Iterator[None]:
    """Reserves the ports, so that no other simulator is served on them: a node that is down does not listen,
    so another process could bind its port. Raises InputError, and OSError if the lock file cannot be written.
    """
    with ExitStack() as locks:
        for port in ports:
            path = control_path(port).with_suffix(".lock")
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = locks.enter_context(path.open("w"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"cannot listen: another simulator is served at port {port}; give another --port-base"
                ) from None
            locks.callback(path.unlink, missing_ok=True)
        yield


def serve(program: Program, name: str, options: ServedClusterOptions, *, json: bool) -> int:
    """Serves until a signal ends it."""
    scenario = scenario_of(name)
    last = LAST_PORT - len(scenario.topology.brokers) - len(scenario.topology.every_controller)
    if not 0 <= options.port_base <= last:
        raise InputError(f"--port-base: between 1 and {last}, or 0 for any free ports")

    async def job(_stop: StopRequest) -> int:
        return await _serve_until_stopped(program, name, ServedCluster(scenario, options), json=json)

    return program.supervisor.run(job)


async def _serve_until_stopped(
    program: Program, name: str, cluster: ServedCluster, *, json: bool
) -> NoReturn:
    try:
        await cluster.start()
    except OSError as error:
        raise InputError(f"cannot listen: {error.strerror or error}; give another --port-base") from None
    control = ControlSocket(cluster, control_path(min(cluster.ports.values())), program.screen.say)
    try:
        with reserved(cluster.ports.values()):
            await control.start()
            _print_ready(program, cluster, json=json)
            await cluster.run_until_failure()
    except OSError as error:
        raise InputError(f"cannot be stepped: {error.strerror or error}") from None
    except SimulatorFailed as failure:
        replay = f"ktriage simulate serve {name} --seed {failure.seed}"
        raise NotDone(f"{failure}; replay: {replay}") from failure
    finally:
        await control.close()
        await cluster.close()


def served_options(
    seed: int, speed: float, port_base: int, *, without: str, users: Path | None, cluster_id: str
) -> ServedClusterOptions:
    """How a scenario is served: ``speed`` in virtual seconds per second, ``cluster_id`` "" for a new id.

    Raises InputError.
    """
    try:
        hidden_calls = hidden(without)
    except NoSuchCall as error:
        raise InputError(f"--without: {error}") from None
    if not 0 <= speed <= FASTEST:  # nor is nan
        raise InputError(f"--speed: from 0 to {FASTEST:,} virtual seconds a second, not {speed}")
    if cluster_id and not _CLUSTER_ID.fullmatch(cluster_id):
        raise InputError(
            "--cluster-id: give 22 letters, digits, '_' or '-', as in Kafka's ids; the first must not be '-'"
        )
    # The next served scenario is another cluster: the journal and warnings of this one do not apply to it.
    known_as = cluster_id or cluster_id_of(secrets.token_bytes(16))
    return ServedClusterOptions(seed, speed, port_base, hidden_calls, _read_users(users), known_as)


def _print_ready(program: Program, cluster: ServedCluster, *, json: bool) -> None:
    base = min(cluster.ports.values())
    if json:
        fields = {
            "scenario": cluster.scenario.name,
            "clusterId": cluster.cluster_id,
            "bootstrapServers": cluster.bootstrap,
            "bootstrapControllers": cluster.bootstrap_controllers,
            "portBase": base,
            "nodes": {str(node): port for node, port in cluster.ports.items()},
        }
        program.screen.out(document("simulate-serve", fields))
    else:
        brokers = sum(1 for node in cluster.ports if node.role is NetworkRole.BROKER)
        program.screen.out(
            [
                f"ready: {cluster.scenario.name}, cluster {cluster.cluster_id},"
                f" {brokers} brokers at {cluster.bootstrap}, controllers at {cluster.bootstrap_controllers}"
            ]
        )
    at = "" if base == DEFAULT_PORT else f" --port-base {base}"
    if not cluster.clock.speed:
        program.screen.say(f"virtual time is stopped; to move it: ktriage simulate step SECONDS{at}")
    program.screen.say(
        f"next: ktriage status --bootstrap-server {cluster.bootstrap}",
        f"or from another terminal: ktriage simulate fault kill broker-1{at}",
    )


DEFAULT_PORT = 19_092


def _read_users(path: Path | None) -> Mapping[str, Principal]:
    if path is None:
        return {}
    try:
        return principals(read_yaml(path.read_text(encoding="utf-8")).data)
    except (OSError, ValueError) as error:
        words = " ".join(str(error).split())
        raise InputError(f"--users {path}: {words}") from None


def step(program: Program, seconds: float, port_base: int, *, json: bool) -> int:
    """Lets virtual time pass in a served cluster."""
    return _ask_served(program, {"do": "step", "seconds": seconds}, port_base, json=json)


def fault(program: Program, words: Sequence[str], port_base: int, *, json: bool) -> int:
    """Makes a fault happen in a served cluster."""
    try:
        asked = {"do": "fault", "fault": read_fault(words)}
    except ControlError as error:
        raise InputError(f"simulate fault: {error}") from None
    return _ask_served(program, asked, port_base, json=json)


def _ask_served(program: Program, asked: dict[str, Any], port_base: int, *, json: bool) -> int:
    try:
        answer = asyncio.run(send_control(control_path(port_base), asked))
    except ControlError as error:
        raise InputError(str(error)) from None
    if json:
        program.screen.out(document(f"simulate-{asked['do']}", answer))
    else:
        running = ", ".join(answer["running"]) or "nobody"
        program.screen.out(
            [
                f"{answer['done']}: {answer['virtualMs'] / 1000:.3f} s of virtual time,"
                f" {answer['offline']} partitions offline",
                f"answering: {running}",
            ]
        )
    return Status.DONE
