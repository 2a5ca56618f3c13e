"""Whether brokers check permissions at all: without an authorizer they refuse DescribeAcls (KIP-140)."""

from __future__ import annotations

from backends.live.codec.apis import Api
from backends.live.connections.connection import BrokerConnection

_SECURITY_DISABLED = 54
_ANY, _TOPIC, _LITERAL = 1, 2, 3
_NO_NAME = "."
"""No topic can have this name, so that no ACL is listed."""


async def has_no_authorizer(conn: BrokerConnection) -> bool:
    """Whether that broker runs without an authorizer, so that nothing is hidden from anybody. False where it may
    have one. Raises BrokerError.
    """
    from kio.schema.describe_acls.v3.request import DescribeAclsRequest
    from kio.schema.describe_acls.v3.response import DescribeAclsResponse
    from kio.static.primitive import i8

    if conn.highest(Api.DescribeAcls) is None:
        return False
    request = DescribeAclsRequest(
        resource_type_filter=i8(_TOPIC),
        resource_name_filter=_NO_NAME,
        pattern_type_filter=i8(_LITERAL),
        principal_filter=None,
        host_filter=None,
        operation=i8(_ANY),
        permission_type=i8(_ANY),
    )
    answer = await conn.send(request, DescribeAclsResponse, ahead=True)
    return int(answer.error_code) == _SECURITY_DISABLED
