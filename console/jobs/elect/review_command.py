"""``ktriage review``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from console.cli.base import declared
from console.cli.base.declaration import option
from console.cli.base.options import connected
from console.cli.base.run import Run


class ReviewOutput(StrEnum):
    """How a review is written; markdown has at most 40 lines, for an incident channel."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


def review(
    run: Run,
    *,
    plan: Path = declared.PLAN_FILE,
    rows: int = declared.ROWS,
    output: ReviewOutput = option(
        "--output",
        "table for people; json for programs; markdown, at most 40 lines, for an incident channel.",
        ReviewOutput.TABLE,
    ),
) -> int:
    """Shows a plan before it is applied: counts and losses, every candidate and what its election would
    destroy, who would lead if the chosen leader failed, the requests that will be sent, and the digest with
    which a second person can approve the plan. Nothing is sent. No cluster is needed; if you name one, each
    row is compared with it. A plan of quorum rebuild is shown too: what is written where, what is lost, what was
    not checked, and its rehearsal.

    \b
    Examples:
      ktriage review recovery.json
      ktriage review rebuild.json
      ktriage review recovery.json --bootstrap-server kafka-1:9092
      ktriage review recovery.json --output markdown
    """
    from console.jobs.elect.plan_views import review_file  # noqa: PLC0415  # not for --help

    return review_file(run, plan, rows, markdown_wanted=output is ReviewOutput.MARKDOWN)


command = connected(review, needed=False)
