"""Settings and records of the consoles under test are in a directory of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import parsed_styles
from tests.console import pilot_waits

parsed_styles.keep()
pilot_waits.wait_for_the_busy()


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path
