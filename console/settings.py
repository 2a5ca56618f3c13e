"""Profiles of clusters, ``~/.config/ktriage/clusters.yaml`` and, for a whole host, /etc/ktriage/clusters.yaml::

clusters:
  production:
    bootstrap: kafka-1.example:9092,kafka-2.example:9092
    command-config: ~/production.properties   # a Java client.properties file
    colour: red                                # of the console's frame
    read-only: true                            # nothing that changes this cluster is run
    state-dir: /srv/ktriage                    # journal and lock, shared by all who operate it
    tiers:                                     # these topics come first, after Kafka's own
      critical: [payments*, ledger]            # a name, and patterns as a shell writes them
      standard: [orders*]
    brokers:                                   # addresses that differ from the advertised ones
      3: 127.0.0.1:19093
    controllers:                               # their own listener, and addresses as for brokers
      bootstrap: controller-1.example:9093
      command-config: ~/controllers.properties
      addresses: {100: "127.0.0.1:19100"}
  in-kubernetes:
    kube:                                      # instead of bootstrap: kubectl finds the brokers, and forwards ports
      namespace: kafka
      cluster: my-cluster                      # the name of the Kafka resource of Strimzi
      port: 9092                               # of the brokers' listener
      context: eu-1                            # kubectl's own, if not given

The file of the host may have ``change-groups: [kafka-operators]``: all others only read, whatever names a cluster.
"""

from __future__ import annotations

import grp
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from console.errors import InputError
from console.paths import SYSTEM_PROFILES, config_dir
from recovery.yaml_text import YamlMistake, read_yaml

Colour = Literal["red", "orange", "yellow", "green", "blue", "magenta", "grey"]


class ControllersProfile(BaseModel):
    """Controllers that are not reached as the brokers are. ``addresses`` are as those of ``--controller``."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    bootstrap: str | None = Field(default=None, min_length=1)
    command_config: Path | None = Field(default=None, alias="command-config")
    addresses: dict[int, str] = Field(default_factory=dict)

    @field_validator("command_config")
    @classmethod
    def _expand(cls, value: Path | None) -> Path | None:
        return value.expanduser() if value is not None else None


class KubeProfile(BaseModel):
    """A cluster in Kubernetes, whose brokers kubectl finds and forwards ports to (console/port_forwards.py)."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    namespace: str = Field(min_length=1, pattern=r"^[a-z0-9][a-z0-9-]*$")
    cluster: str = Field(min_length=1, pattern=r"^[a-z0-9][a-z0-9.-]*$")
    port: int = Field(default=9092, ge=1, le=65535)
    context: str = Field(default="", pattern=r"^[^-]?.*$")
    selector: str = Field(default="", pattern=r"^[^-]?.*$")


class Profile(BaseModel):
    """One cluster by name, with ``bootstrap`` or ``kube``. ``brokers`` maps a broker's id to HOST:PORT, as
    ``--broker`` does. ``tiers``: names to patterns of topics, the most important tier first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    bootstrap: str = Field(default="")
    kube: KubeProfile | None = None
    command_config: Path | None = Field(default=None, alias="command-config")
    colour: Colour | None = None
    read_only: bool = Field(default=False, alias="read-only")
    state_dir: Path | None = Field(default=None, alias="state-dir")
    tiers: dict[str, tuple[Annotated[str, Field(min_length=1)], ...]] = Field(default_factory=dict)
    brokers: dict[int, str] = Field(default_factory=dict)
    controllers: ControllersProfile = Field(default_factory=ControllersProfile)

    @model_validator(mode="after")
    def _reached_one_way(self) -> Profile:
        if bool(self.bootstrap) == (self.kube is not None):
            raise ValueError("give bootstrap, or kube for a cluster in Kubernetes")
        return self

    @field_validator("command_config", "state_dir")
    @classmethod
    def _expand(cls, value: Path | None) -> Path | None:
        return value.expanduser() if value is not None else None

    @field_validator("state_dir")
    @classmethod
    def _refuse_relative(cls, value: Path | None) -> Path | None:
        """Two people in two working directories would have two locks and two journals."""
        if value is not None and not value.is_absolute():
            raise ValueError(f"{value}: give the whole path, such as /srv/ktriage")
        return value


class Settings(BaseModel):
    """The whole file. ``change_groups``: only members of these groups of the operating system may change a cluster
    (in the file of the host only); None: everybody may.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    clusters: dict[str, Profile] = Field(default_factory=dict)
    change_groups: tuple[Annotated[str, Field(min_length=1)], ...] | None = Field(
        default=None, alias="change-groups"
    )


class NamedProfile(NamedTuple):
    """A profile, the file that has it, and the file that makes it read-only (None: none does)."""

    name: str
    profile: Profile
    path: Path
    read_only_by: Path | None


def named_profiles() -> tuple[NamedProfile, ...]:
    """The profiles of the user, then those of the host that have another name. Raises InputError for a mistake, and
    where neither file is there.

    A user's profile that has the name of one of the host is used in its place, and stays read-only where that is.
    """
    path = config_dir() / "clusters.yaml"
    of_host = _of_host()
    if of_host is not None and not path.exists():
        own = Settings()
    else:
        own = load(path)
        if own.change_groups is not None:
            raise InputError(f"{path}: change-groups is a setting of {SYSTEM_PROFILES} only")
    shared = {} if of_host is None else of_host.clusters
    found = []
    for name, one in own.clusters.items():
        by_host = SYSTEM_PROFILES if name in shared and shared[name].read_only else None
        found.append(NamedProfile(name, one, path, path if one.read_only else by_host))
    for name, one in shared.items():
        if name not in own.clusters:
            by_host = SYSTEM_PROFILES if one.read_only else None
            found.append(NamedProfile(name, one, SYSTEM_PROFILES, by_host))
    return tuple(found)


def named_profile(name: str) -> NamedProfile:
    """The profile of that name. Raises InputError: no such file or profile, or a mistake with its line."""
    several = named_profiles()
    found = next((one for one in several if one.name == name), None)
    if found is None:
        known = ", ".join(sorted(one.name for one in several)) or "none"
        path = config_dir() / "clusters.yaml"
        raise InputError(f"{path}: no cluster named {name!r}; it has: {known}")
    return found


def why_only_read() -> str | None:
    """Why this user may change no cluster from this host, whatever names it; None: nothing forbids it.

    A file of the host that cannot be read forbids it too: InputError. It keeps from mistakes; what is really
    allowed, the cluster's ACLs say.
    """
    of_host = _of_host()
    if of_host is None or of_host.change_groups is None:
        return None
    if set(of_host.change_groups) & _own_groups():
        return None
    groups = " or ".join(of_host.change_groups) or "nobody"
    return f"{SYSTEM_PROFILES} says change-groups: you are not in {groups}"


def _of_host() -> Settings | None:
    return load(SYSTEM_PROFILES) if SYSTEM_PROFILES.exists() else None


def _own_groups() -> set[str]:
    found = set()
    for number in {os.getegid(), *os.getgroups()}:
        try:
            found.add(grp.getgrgid(number).gr_name)
        except KeyError:  # a number without a name is no group that the file could mean
            continue
    return found


def load(path: Path) -> Settings:
    """Reads and checks the file. Raises InputError with file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; profiles of clusters are read from there") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    try:
        root, data = read_yaml(text)
    except YamlMistake as error:
        raise InputError(f"{path}:{error.line}: {error}") from None
    try:
        found = Settings.model_validate(data if data is not None else {})
    except ValidationError as error:
        # A setting that is misspelt is also one that is missing: the first says more.
        mistakes = error.errors(include_url=False, include_input=False)
        first = min(mistakes, key=lambda mistake: mistake["type"] != "extra_forbidden")
        where = tuple(part for part in first["loc"] if part != "[key]")
        name = ".".join(str(part) for part in where) or "the file"
        what = (
            "there is no such setting"
            if first["type"] == "extra_forbidden"
            else first["msg"].removeprefix("Value error, ")
        )
        raise InputError(f"{path}:{_line(root, where)}: {name}: {what}") from None
    if not found.clusters and found.change_groups is None:
        raise InputError(f"{path}:1: clusters: no cluster is in it")
    return found


def _line(node: yaml.Node | None, where: Sequence[int | str]) -> int:
    """The line (from 1) of the deepest part of ``where`` that the file has."""
    if node is None:
        return 1
    line = node.start_mark.line + 1
    for part in where:
        if not isinstance(node, yaml.MappingNode):
            break
        found = next(((k, v) for k, v in node.value if k.value == str(part)), None)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line
