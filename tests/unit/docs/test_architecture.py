"""docs/architecture.md and docs/internals.md lead a reader to files: all of them exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PATHS = [
    path
    for page in ("architecture.md", "internals.md")
    for path in re.findall(
        r"`([\w./-]+(?:\.py|\.yaml|/))`", (ROOT / "docs" / page).read_text(encoding="utf-8")
    )
]


def test_every_file_and_directory_that_it_names_exists() -> None:
    assert len(PATHS) > 40
    assert [path for path in PATHS if not (ROOT / path).exists()] == []
