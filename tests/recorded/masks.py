"""What differs from run to run and means nothing: it is named instead of shown."""

from __future__ import annotations

import hashlib
import platform
import re
from pathlib import Path

from console.provenance import made_by, user, version

_MOST_LINES = 90
_HEAD, _TAIL = 60, 10
_NOW = re.compile(r"20\d\d-\d\d-\d\d[T\s]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?")
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")
_EPOCH_MS = re.compile(r"\b1[789]\d{11}\b")
_RUN = re.compile(r"\b\d{8}T\d{6}Z-[0-9a-f]{8}\b|(?<=\"pid\":)\d+")
_SECONDS = re.compile(r"\b(in|after) \d+(\.\d+)? (s|seconds)\b")


def masked(text: str, home: Path, today: str) -> str:
    """The text without paths of this machine, the present time, and ids that a run draws for itself.

    Times of a simulated cluster stay: only those of the day ``today``, and milliseconds of these years, go; none if
    it is "".
    """
    text = text.replace(str(home), "~").replace(made_by(), "somebody").replace(version(), "VERSION")
    text = _NOW.sub(lambda at: "TIME" if today and at[0].startswith(today) else at[0], text)
    if today:
        text = _RUN.sub("RUN", _EPOCH_MS.sub("EPOCH-MS", text))
        text = text.replace(
            f'"user":"{user()}","host":"{platform.node()}"', '"user":"somebody","host":"here"'
        )
    return _SECONDS.sub(r"\1 N s", _SHA256.sub("SHA256", _UUID.sub("UUID", text)))


def shortened(text: str) -> str:
    """Beginning and end of a long text, and a digest of all of it."""
    lines = text.splitlines()
    if len(lines) <= _MOST_LINES:
        return text
    left = len(lines) - _HEAD - _TAIL
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return "\n".join([*lines[:_HEAD], f"… {left} lines more, all of them: {digest}", *lines[-_TAIL:], ""])
