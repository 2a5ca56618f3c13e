"""The installed version."""

from __future__ import annotations


def version() -> str:
    """The version, or "unknown" when it runs from a tree that is not installed."""
    from importlib import metadata  # noqa: PLC0415  # costs more than most of what a command does

    try:
        return metadata.version("ktriage")
    except metadata.PackageNotFoundError:
        return "unknown"
