"""A mark in the cluster's metadata: a broker that shows it has heard of all that was decided before it.

Brokers follow the controller's log each at its own pace. A client's answer comes from the controller, so the next
question, put to a broker, may still be answered as things were before. The mark is the quota of a client that
nobody is, as it changes nothing else, and a broker shows it from the same image as its partitions.
"""

from __future__ import annotations

from kio.schema.alter_client_quotas.v1.request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse
from kio.schema.describe_client_quotas.v1.request import ComponentData, DescribeClientQuotasRequest
from kio.schema.describe_client_quotas.v1.response import DescribeClientQuotasResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import f64, i8

from testbed.kafka.connection import NoAnswer

_TYPE, _NOBODY, _QUOTA = "client-id", "ktriage-testbed-mark", "producer_byte_rate"
_EXACTLY = i8(0)


def setting(mark: int) -> AlterClientQuotasRequest:
    entry = EntryData(
        entity=(EntityData(entity_type=_TYPE, entity_name=_NOBODY),),
        ops=(OpData(key=_QUOTA, value=f64(float(mark)), remove=False),),
    )
    return AlterClientQuotasRequest(entries=(entry,), validate_only=False)


def check_set(answer: AlterClientQuotasResponse) -> None:
    """Raises NoAnswer where the mark was refused, as it is while there is no controller."""
    for entry in answer.entries:
        if entry.error_code is not ErrorCode.none:
            raise NoAnswer(f"the mark was refused: {entry.error_code.name} {entry.error_message or ''}")


def asking() -> DescribeClientQuotasRequest:
    nobody = ComponentData(entity_type=_TYPE, match_type=_EXACTLY, match=_NOBODY)
    return DescribeClientQuotasRequest(components=(nobody,), strict=True)


def shown(answer: DescribeClientQuotasResponse) -> float:
    """The last mark that the broker has heard of; 0 before the first."""
    return max((float(kept.value) for entry in answer.entries or () for kept in entry.values), default=0.0)
