"""What a broker answers to records that are written back."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.produce.v9.response import BatchIndexAndErrorMessage, PartitionProduceResponse
from kio.static.primitive import i32, i64

from backends.live.record_writer import _result

WHOLE = "One or more records have been rejected"
NO_KEY = "Compacted topic cannot accept message without key"


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ((), f"INVALID_RECORD {WHOLE}"),
        (((3, NO_KEY),), f"INVALID_RECORD {WHOLE}; record 3 of the batch: {NO_KEY}"),
        (
            ((3, NO_KEY), (4, NO_KEY)),
            f"INVALID_RECORD {WHOLE}; record 3 of the batch, and 1 more record: {NO_KEY}",
        ),
        (((0, None),), f"INVALID_RECORD {WHOLE}; record 0 of the batch: without a reason"),
    ],
)
def test_the_record_that_a_broker_refuses_is_named_with_the_reason(
    refused: tuple[tuple[int, str | None], ...], said: str
) -> None:
    answer = PartitionProduceResponse(
        index=i32(0),
        error_code=ErrorCode.invalid_record,
        base_offset=i64(-1),
        record_errors=tuple(
            BatchIndexAndErrorMessage(batch_index=i32(index), batch_index_error_message=why)
            for index, why in refused
        ),
        error_message=WHOLE,
    )
    assert _result(answer).error == said
