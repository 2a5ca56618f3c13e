"""What every command prints and every pane shows, on every incident that is recorded."""

from __future__ import annotations

from benchmarks.soak import SoakOptions
from tests.recorded.__main__ import compare
from tests.recorded.records import recorded_incidents


def run(options: SoakOptions) -> int:
    """1 if anything is shown that is not as recorded."""
    return compare(recorded_incidents(), options.jobs or 1)
