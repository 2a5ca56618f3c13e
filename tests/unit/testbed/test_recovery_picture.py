"""``make screenshots`` cuts the picture of a recovery out of what the demo prints: by words that the demo says."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_picture_begins_and_ends_with_words_of_the_demo() -> None:
    """Otherwise it goes on to the end, or shows an older demo for good."""
    words = re.search(r"sed -n '/\^(.+)/,/(.+)/p' \$\(VENV\)/demo.txt", (ROOT / "Makefile").read_text())
    assert words is not None
    demo = (ROOT / "testbed" / "demo.py").read_text()
    assert all(word in demo for word in words.groups()), words.groups()
