"""Where settings and records live: the XDG base directories."""

from __future__ import annotations

import hashlib
import os
from contextvars import ContextVar
from pathlib import Path
from urllib.parse import quote

STATE_DIR_VARIABLE = "KTRIAGE_STATE_DIR"
"""The environment's name for a state directory that is shared: see :func:`records_dir`."""

MAX_NAME = 249
"""Characters: the longest topic name (org.apache.kafka.common.internals.Topic), which every file system takes."""

SYSTEM_PROFILES = Path("/etc/ktriage/clusters.yaml")
"""Profiles for everybody on this host, and who may change clusters from it."""

_named: list[Path] = []
_beside: list[Path] = []
_of_task: ContextVar[Path | None] = ContextVar("state directory of a task", default=None)


def state_dir() -> Path:
    """What is one user's own, crash files say: ``$XDG_STATE_HOME/ktriage``, by default ~/.local/state/ktriage."""
    return _base("XDG_STATE_HOME", Path(".local/state")) / "ktriage"


def records_dir() -> Path:
    """Journals with their locks, and saved plans: the directory that was named, else :func:`memory_dir`."""
    return named_state_dir() or memory_dir()


def memory_dir() -> Path:
    """What is remembered of clusters: beside the file of a simulation that has one of its own, for two of them are
    two clusters with one id; else :func:`state_dir`.
    """
    return _beside[0] if _beside else state_dir()


def named_state_dir() -> Path | None:
    """The state directory that was named: by --state-dir, by the cluster's profile, or in the environment."""
    of_task = _of_task.get()
    if of_task is not None:
        return of_task
    if _named:
        return _named[0]
    value = os.environ.get(STATE_DIR_VARIABLE, "")
    return Path(value).absolute() if value else None


def use_state_dir(path: Path | None, simulation: Path | None = None) -> None:
    """Decides for the rest of the process, which works on one cluster; None: the environment decides.
    ``simulation``: the file of a simulation that has one of its own.
    """
    _named[:] = [] if path is None else [path.absolute()]
    _beside[:] = [] if simulation is None else [simulation.absolute().with_name(f"{simulation.name}.records")]


def use_records(path: Path) -> None:
    """Decides for the rest of the process: journal, plans and memory lie in ``path``, a bundle's own."""
    _named[:] = [path]
    _beside[:] = [path]


def use_state_dir_in_task(path: Path | None) -> None:
    """The same for this task alone, of several that work on a cluster each; None: nothing changes."""
    if path is not None:
        _of_task.set(path.absolute())


def config_dir() -> Path:
    """The profiles: ``$XDG_CONFIG_HOME/ktriage``, by default ~/.config/ktriage."""
    return _base("XDG_CONFIG_HOME", Path(".config")) / "ktriage"


def cluster_name(cluster_id: str) -> str:
    """A cluster's directory under the state directory; empty for an empty id."""
    # A cluster id is Kafka's base64 as a rule, but an operator may have chosen any text.
    return _bounded(quote(cluster_id, safe="").replace(".", "%2E"), cluster_id)


def topic_name(topic: str) -> str:
    """A topic's name from a broker as a file name in the same directory; valid Kafka names do not change."""
    return _bounded(quote(topic, safe=""), topic)


def _bounded(name: str, text: str) -> str:
    """``name``, or one of its own for a text that is too long for a file system."""
    if len(name) <= MAX_NAME:
        return name
    return f"{name[:100]}-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:32]}"


def _base(variable: str, default: Path) -> Path:
    # The base directory specification has relative values ignored.
    value = Path(os.environ.get(variable, ""))
    return value if value.is_absolute() else Path.home() / default


def unused(wanted: str | Path = "recovery.json") -> str:
    """``wanted``, or the same with a number where that is there already: a command to be copied must work."""
    path = Path(wanted)
    number = 2
    while path.exists():
        path = Path(wanted).with_name(f"{Path(wanted).stem}-{number}{Path(wanted).suffix}")
        number += 1
    return str(path)
