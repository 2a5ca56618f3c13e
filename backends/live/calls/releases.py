"""What the finalised metadata.version says of the release that a cluster has been upgraded to."""

from __future__ import annotations

from collections.abc import Mapping

METADATA_VERSION = "metadata.version"

# MetadataVersion of Kafka 4.3: the level of each release's first version.
_FIRST_LEVELS = (
    (7, "3.3"),
    (8, "3.4"),
    (9, "3.5"),
    (12, "3.6"),
    (15, "3.7"),
    (20, "3.8"),
    (21, "3.9"),
    (22, "4.0"),
    (26, "4.1"),
    (28, "4.2"),
    (30, "4.3"),
    (31, "4.4"),
)


def release(features: Mapping[str, int] | None) -> str:
    """Kafka's release in a few words, as far as metadata.version tells it; empty where it is not told.

    It is what the cluster was finalised to: its brokers may run something newer.
    """
    level = (features or {}).get(METADATA_VERSION, 0)
    name = next((name for first, name in reversed(_FIRST_LEVELS) if level >= first), "")
    newest = _FIRST_LEVELS[-1][0]
    if not name:
        return ""
    return (
        f"{name} or later (metadata.version {level})"
        if level > newest
        else f"{name} (metadata.version {level})"
    )
