"""Tasks that decode whole files, to find those that are damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.spark_tasks import TaskSource
from pipeline.undecodable_files import decoding_problem


class DecodingTasks(TaskSource):
    """A task is a list of (cluster, snapshot, URI); a row is a snapshot that cannot be decoded, and why."""

    @classmethod
    def name(cls) -> str:
        return "ktriage-decoding"

    def schema(self) -> str:
        return "cluster_id string, snapshot string, reason string"

    def answered(self, task: Any) -> Iterator[tuple[str, str, str]]:
        for cluster_id, snapshot, uri in task:
            why = decoding_problem(uri)
            if why:
                yield cluster_id, snapshot, why
