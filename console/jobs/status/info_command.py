"""``ktriage info``."""

from __future__ import annotations

from pathlib import Path

from console.cli.base import declared
from console.cli.base.options import without_cluster
from console.cli.base.run import Run
from console.paths import use_state_dir


def info(run: Run, *, state_dir: Path | None = declared.STATE_DIR) -> int:
    """Shows which ktriage this is: version, commit and Python, where its files lie (journal, profiles, pages of the
    documentation), which extras are installed, and how to install those that are missing. No cluster is contacted.

    \b
    Examples:
      ktriage info
      ktriage info --output json
    """
    from console.jobs.status.installation import installation_document, installation_lines  # noqa: PLC0415

    use_state_dir(state_dir)
    run.screen.out(installation_document() if run.json else installation_lines())
    return 0


command = without_cluster(info)
