"""The hand-over page of the console: the same as ``ktriage handover`` prints."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from backends.base.errors import BackendError
from backends.base.protocol import Progress
from console.app.session.session import Session
from console.jobs.incident.handover_report import handover_blocks
from console.jobs.incident.incident import Incident, IncidentSources, collect_for_handover
from console.jobs.incident.plan_transactions import read_plan_transactions
from console.output.report_markdown import plain_lines
from console.provenance import made_text, now_ms
from console.reading.cluster_reading import ClusterReading
from console.reading.read_cluster import read_cluster
from console.reading.remembered_voters import applied_rebuild

ANSWERS_SECONDS = 10.0
LAST_MS = 24 * 3600 * 1000
"""Runs of the last day are shown."""


async def handover_lines(session: Session, progress: Progress) -> tuple[str, ...]:
    """Reads the cluster and the journal."""
    at_ms = now_ms()
    gaps = ["The metadata log was read only for how long partitions are offline (pane 7 shows the timeline)."]
    present: ClusterReading | None = None
    try:
        present = await session.run(
            lambda backend: read_cluster(backend, ANSWERS_SECONDS, at_ms / 1000, progress)
        )
    except BackendError as error:
        gaps.append(f"The cluster's present state was not read: {error}")
    after = session.view.after_rebuild
    if present is not None and after is not None:
        present = present.with_parts(second_quorum=after.second_quorum)
    sources = IncidentSources(
        session.view.cluster_id,
        at_ms - LAST_MS,
        at_ms,
        now=present,
        virtual=session.simulated,
        gaps=tuple(gaps),
        rebuilt=None if after is None else after.log,
        asked=None if after is None else after.asked,
        rebuild=applied_rebuild(session.view.cluster_id),
    )
    incident: Incident = await asyncio.to_thread(collect_for_handover, sources)
    if present is not None:
        with suppress(BackendError):
            found = await session.run(
                lambda backend: read_plan_transactions(backend, incident.plans, ANSWERS_SECONDS, progress)
            )
            incident = replace(incident, transactions=found or None)
    return tuple(plain_lines(handover_blocks(incident, made_text(at_ms), session.target.arguments)))
