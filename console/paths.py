"""Where settings and records live: the XDG base directories."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote


def state_dir() -> Path:
    """Journals, saved plans and crash files: ``$XDG_STATE_HOME/ktriage``, by default ~/.local/state/ktriage."""
    return _base("XDG_STATE_HOME", Path(".local/state")) / "ktriage"


def config_dir() -> Path:
    """The profiles: ``$XDG_CONFIG_HOME/ktriage``, by default ~/.config/ktriage."""
    return _base("XDG_CONFIG_HOME", Path(".config")) / "ktriage"


def cluster_name(cluster_id: str) -> str:
    """A cluster's directory under the state directory; empty for an empty id."""
    # A cluster id is Kafka's base64 as a rule, but an operator may have chosen any text.
    return quote(cluster_id, safe="").replace(".", "%2E")


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
