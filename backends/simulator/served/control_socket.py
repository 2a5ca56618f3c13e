"""Steps and faults of a served cluster, requested by another process: one JSON line each way."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from backends.simulator.controller.metadata_changes import RECOVERY_MANAGER
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.partition_table import topics_of
from backends.simulator.scenario.errors import MisplacedValue
from backends.simulator.scenario.fault_targets import check_fault, partition
from backends.simulator.scenario.faults import ConfigFault, Fault
from backends.simulator.scenario.timeline import Timeline
from backends.simulator.served.clock import SimulatorFailed
from backends.simulator.served.handlers.configs import ACTED_UPON, BROKER, TOPIC, wrong_config
from backends.simulator.served.served_cluster import ServedCluster
from backends.simulator.topology import TopicSpec, Topology
from recovery.yaml_text import YamlMistake, read_yaml

LONGEST_STEP = 24 * 3600.0
_LIMIT = 64 * 1024
_ANSWER_WITHIN = 60.0
_NAMED = ("nodes", "node", "partitions", "partition", "topic", "source")
_FAULT: TypeAdapter[Fault] = TypeAdapter(Fault)


class ControlError(ValueError):
    """The request cannot be done: one line for a person."""


def read_fault(words: Sequence[str]) -> dict[str, Any]:
    """Parses ``kill broker-1`` or ``set-config topic=payments name=min.insync.replicas value=1`` to a scenario
    fault.

    Words without ``=`` are the target; values are YAML. Raises ControlError.
    """
    model = _models().get(words[0]) if words else None
    if model is None:
        wrong = f"{words[0]!r} is not a fault" if words else "name the fault"
        raise ControlError(f"{wrong}: one of {', '.join(sorted(_models()))}")
    given: dict[str, Any] = {"do": words[0]}
    bare = [word for word in words[1:] if "=" not in word]
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if equals:
            try:
                given[name] = read_yaml(value).data if value else ""
            except YamlMistake:
                raise ControlError(f"{word}: not a value") from None
            if model.model_fields.get(name) is not None and name == "value":
                given[name] = value or None
    if "at" in given:
        raise ControlError(f"at={given['at']}: faults happen now; first let time pass: ktriage simulate step")
    target = next((name for name in _NAMED if name in model.model_fields), None)
    if bare and target is None:
        raise ControlError(f"{words[0]} takes no {bare[0]!r}")
    if len(bare) > 1 and target not in ("nodes", "partitions"):
        raise ControlError(f"{words[0]} takes one {target}: give one command for each of {', '.join(bare)}")
    if bare and target is not None:
        given[target] = bare if target in ("nodes", "partitions") else bare[0]
    checked(given)
    return given


def _models() -> dict[str, type[BaseModel]]:
    union = get_args(Fault)[0]
    found: dict[str, type[BaseModel]] = {}
    for model in get_args(union):
        for name in get_args(model.model_fields["do"].annotation):
            found[name] = model
    return found


def checked(given: dict[str, Any], at: float = 0.0) -> Fault:
    """The fault, at that virtual second. Raises ControlError."""
    try:
        return _FAULT.validate_python({**given, "at": at})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        raise ControlError(f"{given.get('do')}: {where}: {first['msg']}") from None


class ControlSocket:
    """The serving side. ``said`` gets a line for each thing done, for the terminal that serves."""

    def __init__(self, cluster: ServedCluster, path: Path, said: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._path = path
        self._said = said
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen, for this user only. Raises OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()  # the port is bound by this process, so the socket is a leftover
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._take, self._path, limit=_LIMIT)
        finally:
            os.umask(before)

    async def close(self) -> None:
        """May be called twice."""
        if self._server is not None:
            server, self._server = self._server, None
            server.close()
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                line = await reader.readline()
            answer = self._answered(line)
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        except (TimeoutError, ConnectionError, ValueError):
            return  # the other side is gone, or its line never ends
        finally:
            writer.close()

    def _answered(self, line: bytes) -> dict[str, Any]:
        try:
            done = self._do(json.loads(line))
        except (ControlError, SimulatorFailed, ValueError, KeyError, TypeError) as error:
            return {"error": str(error) or type(error).__name__}
        return {"done": done, "virtualMs": self._cluster.clock.now / MILLISECOND, **self._state()}

    def _state(self) -> dict[str, Any]:
        return {
            "speed": self._cluster.clock.speed,
            "offline": sum(1 for _ in self._cluster.world.image.leaderless()),
            "running": sorted(
                str(node) for node in self._cluster.ports if self._cluster.listener(node).answers
            ),
        }

    def _do(self, asked: object) -> str:
        if not isinstance(asked, dict):
            raise ControlError("expected a JSON object")
        if asked.get("do") == "step":
            seconds = float(asked["seconds"])
            if not 0 <= seconds <= LONGEST_STEP:
                raise ControlError(f"a step is between 0 and {LONGEST_STEP:g} seconds")
            self._cluster.clock.step(seconds)
            done = f"{seconds:g} s passed"
        elif asked.get("do") == "fault":
            fault = checked(asked["fault"], self._cluster.clock.now / SECOND)
            inject(self._cluster, fault)
            done = fault.note or f"{fault.do}: done"
        else:
            raise ControlError("expected do: step, or do: fault")
        self._said(done)
        return done


def inject(cluster: ServedCluster, fault: Fault) -> None:
    """Carry out the fault now. Raises ControlError if it cannot happen, or if a controller refuses it."""
    topology = _as_it_is(cluster)
    try:
        check_fault(fault, topology, ())
        for name in getattr(fault, "partitions", ()):
            partition(name, topology, ("partitions",))
    except MisplacedValue as error:
        raise ControlError(f"{fault.do}: {error}") from None
    if isinstance(fault, ConfigFault) and _only_stored(cluster, fault):
        return
    cluster.clock.step(0)
    timeline = Timeline(cluster.world, replace(cluster.scenario, faults=(), topology=topology))
    try:
        timeline.happen(fault)
    except ValueError as error:  # the state forbids it, such as a new disk for a running broker
        raise ControlError(f"{fault.do}: {error}") from None
    finally:
        cluster.clock.step(0)
    if timeline.refused:
        raise ControlError(f"{fault.do}: {timeline.refused[0]}")


def _as_it_is(cluster: ServedCluster) -> Topology:
    """The scenario's nodes with the current topics, because clients create and delete topics."""
    partitions = topics_of(cluster.world.image)
    topics = tuple(TopicSpec(name, len(rows), ()) for name, rows in partitions.items())
    return replace(cluster.scenario.topology, topics=topics)


def _only_stored(cluster: ServedCluster, fault: ConfigFault) -> bool:
    """Checks the change like a client's. True if nothing depends on the configuration: then it is only stored."""
    if fault.topic and fault.topic not in topics_of(cluster.world.image):
        raise ControlError(f"{fault.do}: The topic '{fault.topic}' does not exist.")
    # The cluster's own name, which no topic has.
    known = not fault.topic and fault.name == RECOVERY_MANAGER
    wrong = None if known else wrong_config(fault.name, fault.value)
    if wrong is not None:
        raise ControlError(f"{fault.do}: {wrong}")
    if known or fault.name in ACTED_UPON:
        return False
    broker = "" if fault.broker is None else str(fault.broker)
    configs = cluster.inert_configs[(TOPIC, fault.topic) if fault.topic else (BROKER, broker)]
    if fault.value is None:
        configs.pop(fault.name, None)
    else:
        configs[fault.name] = fault.value
    return True


async def send_control(path: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """Send a request from another process. Raises ControlError if no simulator is served there, or with the
    reason of a refusal.
    """
    try:
        async with asyncio.timeout(_ANSWER_WITHIN):
            reader, writer = await asyncio.open_unix_connection(path, limit=_LIMIT)
            try:
                writer.write(json.dumps(asked).encode() + b"\n")
                await writer.drain()
                answer = json.loads(await reader.readline())
            finally:
                writer.close()
    except (FileNotFoundError, ConnectionRefusedError):
        raise ControlError("no simulator is served there: ktriage simulate serve SCENARIO") from None
    except (OSError, TimeoutError, ValueError) as error:
        raise ControlError(f"the served simulator did not answer ({error or type(error).__name__})") from None
    if "error" in answer:
        raise ControlError(answer["error"])
    return dict(answer)
