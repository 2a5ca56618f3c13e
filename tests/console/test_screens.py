"""The pictures that are committed are what the code draws: python -m testbed.screenshots.panes makes them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.screenshots.panes import PICTURES, Screenshot, drawn
from tests.console.robot import screen_text

pytestmark = pytest.mark.long

DIRECTORY = Path(__file__).parents[2] / "screenshots"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_pane_is_drawn_as_it_was(picture: Screenshot) -> None:
    committed = (DIRECTORY / f"{picture.name}.svg").read_text(encoding="utf-8")
    now = drawn(picture)
    assert screen_text(now) == screen_text(committed)
    assert now == committed, "the same text in other colours"
