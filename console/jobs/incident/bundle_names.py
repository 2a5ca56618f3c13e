"""Other names in a bundle: of topics, groups, hosts and racks; and back again, in a plan that was made from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from backends.base.consumer_groups import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from backends.base.membership import EveryAddress
from backends.recorded_answers import SECRET, RecordedAnswers, RecordedGroups
from console.cli.base.run import Run
from console.errors import InputError, Status
from console.jobs.elect.recover_view import refuse_existing
from console.new_files import write_new
from console.plan_files import read
from recovery.metadata_log.records import (
    ClearElrRecord,
    ConfigRecord,
    Endpoint,
    MetadataRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    ResourceType,
    TopicRecord,
)
from recovery.model import Unknown, Why
from recovery.plan.read import from_json
from recovery.plan.values import BarePlan, PlanError
from recovery.plan.write import digest, to_json

SCHEMA = "ktriage.bundle-names/1"
_OWN = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__cluster_metadata", "__share_group_state"))
"""Kafka's own topics: everybody knows their names, and rules go by them."""
_PLAIN = re.compile(
    r"(min\.insync\.replicas|cleanup\.policy|unclean\.leader\.election\.enable|remote\.storage\.enable"
    r"|(log\.)?(local\.)?(retention|segment|delete\.retention|min\.compaction\.lag|max\.compaction\.lag)\.(ms|bytes)"
    r"|.*replication\.throttled\.(rate|replicas)|replica\.alter\.log\.dirs\.io\.max\.bytes\.per\.second)"
)
"""Configurations whose values hold no name."""
_NAMED = frozenset(
    ("topic", "host", "address", "rack", "detail", "hidden", "group", "bootstrap_servers", "static_voters")
)
"""Fields that hold names, or a sentence with names. A group's name is in ``name``, which other values have too."""

_APART = Unknown(Why.NOT_ASKED, "")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OtherNames:
    """What stands for each name."""

    topics: Mapping[str, str]
    groups: Mapping[str, str]
    hosts: Mapping[str, str]
    racks: Mapping[str, str]

    @classmethod
    def of(cls, answers: RecordedAnswers) -> OtherNames:
        """Numbers, in the order of the names."""
        brokers = answers.cluster.brokers
        groups = answers.groups.listing.groups if isinstance(answers.groups, RecordedGroups) else ()
        members = answers.groups.members.values() if isinstance(answers.groups, RecordedGroups) else ()
        clients = (one for found in members if not isinstance(found, Unknown) for one in found.members)
        hosts = {*(broker.host for broker in brokers), *(client.host.lstrip("/") for client in clients)}
        if isinstance(answers.addresses, EveryAddress):
            nodes = (*answers.addresses.brokers, *answers.addresses.controllers)
            hosts.update(node.address.rpartition(":")[0].strip("[]") for node in nodes)
        if not isinstance(answers.controllers, Unknown):
            hosts.update(controller.host for controller in answers.controllers)
        topics = {state.topic for state in answers.partitions.states} | set(answers.partitions.hidden)
        return cls(
            _numbered("topic", topics - _OWN),
            _numbered("group", (group.name for group in groups)),
            _numbered("host", hosts),
            _numbered("rack", (broker.rack for broker in brokers if broker.rack)),
        )

    def with_more(self, topics: Iterable[str], hosts: Iterable[str]) -> OtherNames:
        """Also for those that only the metadata log still names: deleted topics, former hosts."""
        return replace(
            self,
            topics={**self.topics, **_numbered("former-topic", set(topics) - set(self.topics) - _OWN)},
            hosts={**self.hosts, **_numbered("former-host", set(hosts) - set(self.hosts))},
        )

    def to_json(self, cluster_id: str) -> str:
        kinds = {field.name: dict(getattr(self, field.name)) for field in fields(self)}
        return json.dumps({"schema": SCHEMA, "clusterId": cluster_id, **kinds}, indent=2)


def _numbered(kind: str, names: Iterable[str]) -> dict[str, str]:
    ordered = sorted(set(filter(None, names)))
    width = len(str(len(ordered)))
    return {name: f"{kind}-{number:0{width}}" for number, name in enumerate(ordered, 1)}


class Redaction:
    """Gives values, records and texts their other names."""

    def __init__(self, names: OtherNames) -> None:
        self._names = names
        self._own_kind = {"topic": names.topics, "group": names.groups, "rack": names.racks}
        self._all = {**names.racks, **names.groups, **names.topics, **names.hosts}
        longest = sorted(self._all, key=len, reverse=True)
        anything = "|".join(map(re.escape, longest)) or r"(?!)"
        self._pattern = re.compile(rf"(?<![A-Za-z0-9._])(?:{anything})(?![A-Za-z0-9_])(?!\.[A-Za-z0-9])")

    def text(self, text: str) -> str:
        """A name, or a sentence that holds names."""
        return self._all.get(text) or self._pattern.sub(lambda name: self._all[name[0]], text)

    def answers(self, answers: RecordedAnswers) -> RecordedAnswers:
        """Everything that was answered, with other names; of configurations only the values that can hold none."""
        configs = {
            self._names.topics.get(topic, topic): found
            if isinstance(found, Unknown)
            else _without_names(found)
            for topic, found in answers.configs.items()
        }
        groups: RecordedGroups | Unknown = answers.groups
        if isinstance(groups, RecordedGroups):
            members = {self._names.groups[name]: self._value(found) for name, found in groups.members.items()}
            listed = tuple(one._replace(name=self._names.groups[one.name]) for one in groups.listing.groups)
            listing = replace(
                groups.listing, groups=listed, not_listed=self._value(groups.listing.not_listed)
            )
            groups = RecordedGroups(listing, self._value(groups.committed), members)
        addresses = answers.addresses
        if isinstance(addresses, EveryAddress):
            led = {self.text(at): self._value(quorum) for at, quorum in addresses.led.items()}
            addresses = EveryAddress(self._value(addresses.brokers), self._value(addresses.controllers), led)
        rest = replace(answers, configs={}, groups=_APART, addresses=_APART)
        return replace(self._value(rest), configs=configs, groups=groups, addresses=addresses)

    def record(self, record: MetadataRecord) -> MetadataRecord:
        """A record of the metadata log."""
        topics = self._names.topics
        match record:
            case TopicRecord(name):
                return record._replace(name=topics.get(name, name))
            case ClearElrRecord(topic):
                return record._replace(topic=topics.get(topic, topic))
            case ConfigRecord(kind, resource, key, value):
                own = kind == ResourceType.TOPIC
                other = topics.get(resource, resource) if own else self.text(resource)
                harmless = value if value is None or _PLAIN.fullmatch(key) else SECRET
                return record._replace(resource=other, value=harmless)
            case RegisterBrokerRecord():
                rack = None if record.rack is None else self._names.racks.get(record.rack, record.rack)
                return record._replace(endpoints=self._endpoints(record.endpoints), rack=rack)
            case RegisterControllerRecord():
                return record._replace(endpoints=self._endpoints(record.endpoints))
        return record

    def _endpoints(self, endpoints: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
        return tuple(one._replace(host=self._names.hosts.get(one.host, one.host)) for one in endpoints)

    def _value(self, value: T) -> T:
        changed: T = self._renamed(value, named=False)
        return changed

    def _renamed(self, value: Any, *, named: bool) -> Any:
        """``named``: it is the value of a field that holds names."""
        if type(value) is str:  # no enumeration
            return self.text(value) if named else value
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self._field, value._fields, value))
        if isinstance(value, tuple):
            return tuple(self._renamed(one, named=named) for one in value)
        if isinstance(value, Mapping):
            return {key: self._renamed(one, named=False) for key, one in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            return replace(
                value,
                **{f.name: self._field(f.name, getattr(value, f.name)) for f in fields(value) if f.init},
            )
        return value

    def _field(self, name: str, value: Any) -> Any:
        if name == "client_id":
            return "client"
        if name in self._own_kind and type(value) is str:  # a group may have a topic's name
            return self._own_kind[name].get(value, value)
        return self._renamed(value, named=name in _NAMED)


def _without_names(config: Mapping[str, str]) -> dict[str, str]:
    return {key: value if _PLAIN.fullmatch(key) else SECRET for key, value in config.items()}


def names_in(record: MetadataRecord) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The topics and the hosts that a record of the metadata log names."""
    match record:
        case TopicRecord(name):
            return (name,), ()
        case RegisterBrokerRecord() | RegisterControllerRecord():
            return (), tuple(endpoint.host for endpoint in record.endpoints)
    return (), ()


def own_names(run: Run, names: Path, plan: Path, to: Path) -> int:
    """Writes a plan that was made from a bundle with other names, with the cluster's own. Raises InputError."""
    refuse_existing(to)
    made = read(plan)
    if isinstance(made, BarePlan):
        raise InputError(f"{plan}: the file names only leaders; a plan of ktriage is needed")
    try:
        document = json.loads(names.read_text("utf-8"))
        known = {
            other: name
            for kind in ("topics", "groups", "hosts", "racks")
            for name, other in document[kind].items()
        }
        schema, cluster_id = document["schema"], document["clusterId"]
    except OSError as error:
        raise InputError(f"{names}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        schema = cluster_id = ""
    if schema != SCHEMA:
        raise InputError(f"{names}: is no file of names that ktriage bundle --redact wrote")
    if cluster_id != made.header.cluster_id:
        raise InputError(
            f"{names}: is of cluster {cluster_id}, and {plan} of cluster {made.header.cluster_id}"
        )
    everything = re.compile("|".join(sorted(map(re.escape, known), key=len, reverse=True)) or r"(?!)")
    text = everything.sub(lambda other: json.dumps(known[other[0]])[1:-1], to_json(made))
    try:
        own = from_json(text)
    except PlanError as error:
        raise InputError(f"{plan}: {error}") from None
    assert not isinstance(own, BarePlan)
    write_new(to, text)
    run.screen.out(
        [f"{to}: {plan} (digest {digest(made)}) with the names of the cluster; its own digest: {digest(own)}"]
    )
    run.screen.say(f"next: ktriage review {to} --bootstrap-server HOST:PORT")
    return Status.DONE
