"""The upgrade of kraft.version as text and as JSON (``ktriage.quorum-upgrade/1``)."""

from __future__ import annotations

from collections.abc import Iterator

from backends.base.membership import ChangeAnswer, ClusterNode, NodeProbe
from console.operations.voters.kraft_upgrade import UpgradeCheck, supports
from console.output.json_document import document
from console.output.text_table import TextColumn, table
from recovery.wording.quantity_text import printable

AFTERWARDS = (
    "afterwards: replace controller.quorum.voters by controller.quorum.bootstrap.servers in every node's settings,"
    " and restart them one by one"
)


def upgrade_lines(check: UpgradeCheck) -> Iterator[str]:
    """Every node with what it supports, then the problems that prevent the upgrade."""
    yield f"kraft.version {check.quorum.kraft_version}, level 1 requested"
    rows = [(str(n.role), str(n.id), n.address, printable(_support(n))) for n in check.nodes]
    yield from table(
        [TextColumn("ROLE"), TextColumn("NODE"), TextColumn("ADDRESS"), TextColumn("KRAFT.VERSION")],
        rows,
        "  ",
    )
    if check.already:
        yield "the cluster already has this level: the voters are dynamic"
        return
    for reason in check.refused:
        yield printable(f"  refused: {reason}")
    for warning in check.warnings:
        yield f"  note: {warning}"
    if not check.refused:
        yield "  no problem found; the controller would accept it"
        yield f"  {AFTERWARDS}"


def upgrade_document(check: UpgradeCheck, answer: ChangeAnswer | None, confirmed: bool) -> Iterator[str]:
    """``ktriage.quorum-upgrade/1``."""
    return document(
        "quorum-upgrade",
        {
            "kraftVersion": 1 if confirmed else check.quorum.kraft_version,
            "already": check.already,
            "refused": list(check.refused),
            "warnings": list(check.warnings),
            "sent": answer is not None,
            "done": confirmed,
            "error": "" if answer is None else answer.error,
            "nodes": [
                {"id": n.id, "role": str(n.role), "address": n.address, "supports": _support(n)}
                for n in check.nodes
            ],
        },
    )


def _support(node: ClusterNode) -> str:
    if not isinstance(node.answer, NodeProbe):
        return str(node.answer)
    if not supports(node.answer):
        return "no"
    assert node.answer.kraft_versions is not None
    return "{}-{}".format(*node.answer.kraft_versions)
