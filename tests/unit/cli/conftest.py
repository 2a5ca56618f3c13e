"""Commands in this process, with settings and records in a directory of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.command_process import Caller


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)
