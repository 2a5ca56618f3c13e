"""Which ktriage this is, and where its files lie: for ``ktriage info``, and whoever is asked for it in a report."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from console.journal.state_access import why_unusable
from console.output.json_document import document
from console.paths import SYSTEM_PROFILES, config_dir, records_dir, state_dir
from console.provenance import commit, version
from recovery.wording.quantity_text import printable
from widgets.fields import Field, json_of, text_rows


class InstalledPath(NamedTuple):
    """A file or directory that ktriage reads or writes."""

    what: str
    path: Path
    note: str = ""


class Extra(NamedTuple):
    """An extra of the package. ``missing``: its libraries that are not installed."""

    name: str
    used_for: str
    missing: tuple[str, ...]


PATHS: tuple[Field[InstalledPath], ...] = (
    Field("what", "WHAT", lambda p: p.what),
    Field("path", "PATH", lambda p: str(p.path), lambda p: printable(str(p.path))),
    Field("note", "NOTE", lambda p: p.note, lambda p: printable(p.note)),
)
EXTRA: tuple[Field[Extra], ...] = (
    Field("extra", "EXTRA", lambda e: e.name),
    Field(
        "missing",
        "INSTALLED",
        lambda e: list(e.missing),
        lambda e: f"no: pip install 'ktriage[{e.name}]'" if e.missing else "yes",
    ),
    Field("usedFor", "USED FOR", lambda e: e.used_for),
)
_EXTRAS = {
    "large": ("snapshot; records compressed with snappy, lz4 or zstd", ("numpy", "pyarrow", "deltalake")),
    "metrics": ("watch --metrics-port and --metrics-file", ("prometheus_client",)),
    "notify": ("watch --notify-urls", ("apprise",)),
    "jwt": ("the JWT bearer grant (KIP-1139)", ("cryptography",)),
    "kerberos": ("logins by Kerberos (GSSAPI)", ("gssapi",)),
    "pkcs12": ("key stores and trust stores in PKCS12 format", ("cryptography",)),
    "serve": ("the console in a browser", ("textual_serve",)),
    "spark": ("the pipeline", ("pyspark", "pandas", "pyarrow", "deltalake")),
}
_LIBRARIES = ("aiokafka", "confluent-kafka", "kio", "textual", "rich", "typer", "pydantic")


def places() -> tuple[InstalledPath, ...]:
    """The note says what is wrong there, or that nothing is there yet."""
    profiles = config_dir() / "clusters.yaml"
    return (
        InstalledPath("journal, lock and plans", records_dir(), why_unusable() or ""),
        InstalledPath("crash reports", state_dir() / "crashes"),
        InstalledPath("simulations", state_dir() / "simulations"),
        InstalledPath("profiles", profiles, "" if profiles.is_file() else "not there"),
        InstalledPath(
            "profiles of this host", SYSTEM_PROFILES, "" if SYSTEM_PROFILES.is_file() else "not there"
        ),
        InstalledPath("pages", Path(__file__).parents[3] / "docs"),
    )


def extras() -> tuple[Extra, ...]:
    return tuple(
        Extra(name, used_for, tuple(library for library in libraries if find_spec(library) is None))
        for name, (used_for, libraries) in _EXTRAS.items()
    )


def _libraries() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def installation_lines() -> Iterator[str]:
    """For a person."""
    source = commit()
    yield f"ktriage {version()}{f', commit {source}' if source else ''}"
    yield f"Python {platform.python_version()} ({sys.executable}), {platform.platform()}"
    yield ", ".join(f"{name} {number}" for name, number in _libraries().items())
    yield ""
    yield from text_rows(PATHS, places())
    yield ""
    yield from text_rows(EXTRA, extras())


def installation_document() -> Iterator[str]:
    """``ktriage.info/1``."""
    return document(
        "info",
        {
            "version": version(),
            "commit": commit(),
            "python": platform.python_version(),
            "executable": sys.executable,
            "platform": platform.platform(),
            "libraries": _libraries(),
            "places": list(map(json_of(PATHS), places())),
            "extras": list(map(json_of(EXTRA), extras())),
        },
    )
