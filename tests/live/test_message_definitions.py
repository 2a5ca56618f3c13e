"""Every message that ktriage sends and reads, against the definitions in Kafka's own jars, release by release.

A number is not an API: 4.4.0 gave the number of GetReplicaLogInfo to another call, which changes something.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import backends.live
from backends.live.codec import recovery_tool_messages
from backends.live.codec.apis import USES, Api, documented
from testbed.kafka import jars
from testbed.kafka.maven_jars import Jar

LOCK = jars.read_clients_lock()
SOURCE = Path(backends.live.__file__).parent
NO_CALLS = ("errors", "types", "request_header", "response_header")
WIRE_TYPES = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
"""What kio makes of a number."""
IN_RECORDS = ("records", "bytes")

Ranges = Mapping[int, tuple[int, int]]


class Release(NamedTuple):
    """One release's messages, by name; ``offered`` is what its nodes answer to ApiVersions."""

    version: str
    messages: Mapping[str, Mapping[str, Any]]
    requests: Mapping[int, str]
    offered: Ranges


class Field(NamedTuple):
    """One field on the wire. ``inner`` are those of a structure."""

    name: str
    kind: str
    array: bool
    inner: tuple[Any, ...] = ()


@cache
def release_of(jar: Jar) -> Release:
    messages: dict[str, Mapping[str, Any]] = {}
    with zipfile.ZipFile(jars.clients_jar(jar)) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"common/message/\w+(Request|Response)\.json", name):
                lines = archive.read(name).decode().splitlines()
                found = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
                messages[found["name"]] = found
    requests = {found["apiKey"]: name for name, found in messages.items() if found["type"] == "request"}
    offered = {key: _range(messages[name]["validVersions"], -1) for key, name in requests.items()}
    return Release(jar.version, messages, requests, offered)


def _range(text: str, last: int) -> tuple[int, int]:
    """``0-3``, ``2``, ``1+`` (to ``last``, the newest there is) or ``none``."""
    if text == "none":
        return (0, -1)
    low, _, high = text.rstrip("+").partition("-")
    return int(low), int(high) if high else 10**6 if text.endswith("+") else int(low)


def _holds(versions: str, version: int) -> bool:
    low, high = _range(versions, version)
    return low <= version <= high


def _sent() -> Iterator[tuple[str, int]]:
    """Every call that the product imports kio's messages of."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        for name, version in re.findall(r"kio\.schema\.(\w+)\.v(\d+)", text):
            if name not in NO_CALLS:
                yield name, int(version)
        for loaded in re.findall(r"response_type\(Api\.(\w+)", text):
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", loaded).lower()
            yield from ((name, number) for number in USES[Api[loaded]].sent)


def _classes() -> Iterator[type]:
    for name, version in sorted(set(_sent())):
        module = import_module(f"kio.schema.{name}.v{version}")
        title = name.title().replace("_", "")
        for found in vars(module).values():
            if isinstance(found, type) and found.__name__ in (f"{title}Request", f"{title}Response"):
                yield found
    yield from (
        found
        for found in vars(recovery_tool_messages).values()
        if isinstance(found, type)
        and found.__module__ == recovery_tool_messages.__name__
        and re.fullmatch(
            r"(GetReplicaLogInfo|ElectLeaders|UnregisterController)(Request|Response)", found.__name__
        )
    )


CLASSES: tuple[Any, ...] = tuple(_classes())


def would_be_sent(message: Any, offered: Ranges) -> bool:
    """Whether the product sends it to a broker that offers that, or reads it from it."""
    low, high = documented(offered).get(message.__api_key__, (0, -1))
    return bool(low <= message.__version__ <= high)


def differences(message: Any, release: Release) -> list[str]:
    """Where that class is not the release's message of that number and version."""
    request = release.requests[message.__api_key__]
    name = request if message.__name__.endswith("Request") else request.replace("Request", "Response")
    if name != message.__name__:
        return [f"{release.version}: key {message.__api_key__} is {name}, not {message.__name__}"]
    found = release.messages[name]
    theirs = _theirs(found["fields"], message.__version__, found.get("commonStructs", ()))
    ours = _ours(message)
    return (
        [] if _alike(ours, theirs) else [f"{release.version}: {name} v{message.__version__}: {ours} {theirs}"]
    )


def _theirs(fields: Any, version: int, common: Any) -> tuple[Field, ...]:
    found = []
    for field in fields:
        if not _holds(field["versions"], version) or _holds(field.get("taggedVersions", "none"), version):
            continue
        kind = field["type"].removeprefix("[]")
        inner = field.get("fields") or next((one["fields"] for one in common if one["name"] == kind), ())
        array = field["type"].startswith("[]")
        found.append(
            Field(_plain(field["name"]), "" if inner else kind, array, _theirs(inner, version, common))
        )
    return tuple(found)


def _ours(message: Any) -> tuple[Field, ...]:
    hints = typing.get_type_hints(message)
    found = []
    for field in dataclasses.fields(message):
        if "tag" in field.metadata:
            continue
        hint = hints[field.name]
        if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
            hint = next(one for one in typing.get_args(hint) if one is not type(None))
        array = typing.get_origin(hint) is tuple
        one = typing.get_args(hint)[0] if array else hint
        nested = dataclasses.is_dataclass(one)
        kind = "" if nested else field.metadata["kafka_type"]
        inner = _ours(one) if nested else ()
        found.append(Field(_plain(field.name), WIRE_TYPES.get(kind, kind), array, inner))
    return tuple(found)


def _plain(name: str) -> str:
    """A name as both write it: kio takes the unit of a time out of it."""
    return name.replace("_", "").lower().removesuffix("ms")


def _alike(ours: tuple[Field, ...], theirs: tuple[Field, ...]) -> bool:
    return len(ours) == len(theirs) and all(
        a.name == b.name
        and a.array == b.array
        and (a.kind == b.kind or {a.kind, b.kind} <= set(IN_RECORDS))
        and _alike(a.inner, b.inner)
        for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize("jar", LOCK, ids=lambda jar: jar.version)
def test_what_is_sent_to_a_release_is_a_call_of_that_release(jar: Jar) -> None:
    release = release_of(jar)
    sent = [message for message in CLASSES if would_be_sent(message, release.offered)]
    assert len(sent) > 60
    assert [line for message in sent for line in differences(message, release)] == []


def test_the_native_calls_are_sent_to_no_release_and_would_be_noticed() -> None:
    own = [
        found
        for found in CLASSES
        if found.__module__ == recovery_tool_messages.__name__
        and found.__api_key__ != Api.UnregisterController
    ]
    assert len(own) == 4
    for jar in LOCK:
        assert not any(would_be_sent(message, release_of(jar).offered) for message in own)
    last = release_of(LOCK[-1])
    assert last.offered[Api.GetReplicaLogInfo] == (0, 0)
    there = {**last.offered, Api.ElectLeaders: (0, 3)}
    noticed = [line for found in own if would_be_sent(found, there) for line in differences(found, last)]
    other = "StreamsGroupTopologyDescriptionUpdate"
    assert noticed[:2] == [
        f"4.4.0: key 93 is {other}Request, not GetReplicaLogInfoRequest",
        f"4.4.0: key 93 is {other}Response, not GetReplicaLogInfoResponse",
    ]


PAGE = Path(__file__).parents[2] / "docs" / "kafka-versions.md"


def support_table() -> str:
    """For each call by its name, the highest version that is sent to a release; what the release calls it counts,
    not its number.
    """
    versions: dict[str, set[int]] = {}
    for message in CLASSES:
        if message.__name__.endswith("Request"):
            versions.setdefault(message.__name__.removesuffix("Request"), set()).add(message.__version__)
    releases = [release_of(jar) for jar in LOCK]
    lines = [["call", *(release.version for release in releases)], ["---"] * (len(releases) + 1)]
    for name in sorted(versions):
        row = [name]
        for release in releases:
            served = release.messages.get(f"{name}Request", {}).get("validVersions", "none")
            if name == "GetReplicaLogInfo":
                assert served == "none", "a release has it now"
            sent = [version for version in versions[name] if _holds(served, version)]
            row.append(f"v{max(sent)}" if sent else "no")
        lines.append(row)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def test_the_page_of_the_kafka_versions_has_what_is_sent_to_each_release() -> None:
    assert support_table() in PAGE.read_text(encoding="utf-8"), support_table()
