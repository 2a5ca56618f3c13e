"""The tests that leave something out in ``make test`` (``tests/repetitions.py``), whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.soak import SoakOptions
from tests.repetitions import SOAK

ROOT = Path(__file__).parents[2]
USED = ("from tests.repetitions import ", "\n@given(")
"""The second: how many examples Hypothesis tries is set for all tests in tests/conftest.py."""


def files() -> list[str]:
    """The test files that leave something out."""
    found = sorted((ROOT / "tests").rglob("test_*.py"))
    texts = ((path, path.read_text(encoding="utf-8")) for path in found)
    return [str(path.relative_to(ROOT)) for path, text in texts if any(word in text for word in USED)]


def run(options: SoakOptions) -> int:  # noqa: ARG001  # the tests have their own numbers
    """0 if all of them pass."""
    command = [sys.executable, "-m", "pytest", "--quiet", "--timeout=0", *files()]
    ended = subprocess.run(command, cwd=ROOT, env=os.environ | {SOAK: "1"}, check=False)
    print(f"repetitions: {len(files())} files, pytest's status {ended.returncode}")
    return 1 if ended.returncode else 0
