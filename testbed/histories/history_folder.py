"""The metadata log of a running simulation, folded as its records are committed."""

from __future__ import annotations

from backends.simulator.committed_records import CommittedRecords, OffsetCounter
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import DecodedRecord


class HistoryFolder:
    """Folds committed records into ``history`` as they come, without bytes between."""

    def __init__(self, records: CommittedRecords) -> None:
        self.history = MetadataHistory()
        self._records = records
        self._folded = 0
        self._offsets = OffsetCounter()

    def catch_up(self) -> MetadataHistory:
        """Folds what was committed since the last time."""
        for batch in self._records.batches(self._folded):
            base = self._offsets.place(batch)
            self.history.extend_decoded(
                DecodedRecord(base + at, batch.time_ms, base, record)
                for at, record in enumerate(batch.records)
            )
        self._folded = len(self._records)
        return self.history
