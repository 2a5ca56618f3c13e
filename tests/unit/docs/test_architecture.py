"""docs/architecture.md leads a reader to files: every one of them exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PATHS = re.findall(
    r"`([\w./-]+(?:\.py|\.yaml|/))`", (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
)


def test_every_file_and_directory_that_it_names_exists() -> None:
    assert len(PATHS) > 40
    assert [path for path in PATHS if not (ROOT / path).exists()] == []
