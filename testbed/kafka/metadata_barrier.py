"""A barrier in the cluster's metadata: a broker that shows it has applied every earlier change too.

Each broker follows the metadata log at its own pace. The controller answers a change, so the next request to a
broker may still show the state before it. The barrier is a number, stored as the quota of a client id that nobody
uses, because this affects nothing else; a broker shows it from the same metadata image as its partitions.
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

_TYPE, _NOBODY, _QUOTA = "client-id", "ktriage-testbed-barrier", "producer_byte_rate"
_EXACTLY = i8(0)


def set_request(number: int) -> AlterClientQuotasRequest:
    entry = EntryData(
        entity=(EntityData(entity_type=_TYPE, entity_name=_NOBODY),),
        ops=(OpData(key=_QUOTA, value=f64(float(number)), remove=False),),
    )
    return AlterClientQuotasRequest(entries=(entry,), validate_only=False)


def check_set(answer: AlterClientQuotasResponse) -> None:
    """Raises NoAnswer if the change was refused, for example while there is no active controller."""
    for entry in answer.entries:
        if entry.error_code is not ErrorCode.none:
            raise NoAnswer(f"the barrier was refused: {entry.error_code.name} {entry.error_message or ''}")


def read_request() -> DescribeClientQuotasRequest:
    nobody = ComponentData(entity_type=_TYPE, match_type=_EXACTLY, match=_NOBODY)
    return DescribeClientQuotasRequest(components=(nobody,), strict=True)


def last_applied(answer: DescribeClientQuotasResponse) -> float:
    """The number of the last barrier that the broker has applied; 0 before the first."""
    return max((float(quota.value) for entry in answer.entries or () for quota in entry.values), default=0.0)
