"""ApiVersions, the first request on a connection, with the finalized features (KIP-584)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any

from backends.live.codec.aiokafka_requests import CarriedRequest, RawAnswer
from backends.live.codec.apis import Api, Versions, documented

CLIENT_SOFTWARE = "ktriage"
CLIENT_SOFTWARE_VERSION = "0.1.0"

_REFUSAL, _VERSION = Struct(">hi"), Struct(">hhh")


@dataclass(frozen=True, slots=True)
class ApiVersionsAnswer:
    """The broker's versions. ``features`` (name to finalized level) is None if the broker has none.

    ``versions``: api key to (lowest, highest).
    """

    versions: Versions
    features: Mapping[str, int] | None


_UNSUPPORTED_VERSION = 35
NEWEST, _LOWEST = 4, 3
"""Versions of ApiVersions."""


def api_versions_request(version: int) -> CarriedRequest:
    """ApiVersions v4, or v3."""
    if version >= 4:
        from kio.schema.api_versions.v4 import ApiVersionsRequest as Request4

        return CarriedRequest(_named(Request4))
    from kio.schema.api_versions.v3 import ApiVersionsRequest as Request3

    return CarriedRequest(_named(Request3))


def asks_again_with(answer: RawAnswer) -> int | None:
    """The version to ask with instead, where the broker does not serve the one that was sent; None: it does.

    Such an answer is one of v0, whatever was asked (KIP-511), and lists ApiVersions itself. Raises ValueError where
    the broker serves neither v3 nor v4.
    """
    data = answer.data[answer.offset :]
    code, count = _REFUSAL.unpack_from(data) if len(data) >= _REFUSAL.size else (0, 0)
    if code != _UNSUPPORTED_VERSION:
        return None
    rows = data[_REFUSAL.size :]
    if not 0 <= count <= len(rows) // _VERSION.size:
        raise ValueError("the list of requests breaks off")
    served = {key: highest for key, _, highest in _VERSION.iter_unpack(rows[: count * _VERSION.size])}
    if served.get(Api.ApiVersions, 0) < _LOWEST:
        raise ValueError(f"ApiVersions: only below version {_LOWEST}")
    return _LOWEST


def read_api_versions(answer: RawAnswer, version: int) -> ApiVersionsAnswer:
    """Decode the answer to a request of that version. Raises whatever kio raises; ValueError for an error code."""
    from kio.schema.api_versions.v3 import ApiVersionsResponse as Response3
    from kio.schema.api_versions.v4 import ApiVersionsResponse as Response4

    response = answer.read(Response4) if version == 4 else answer.read(Response3)
    if response.error_code:
        raise ValueError(f"ApiVersions: {response.error_code.name}")
    reported = response.finalized_features_epoch >= 0
    return ApiVersionsAnswer(
        documented({k.api_key: (k.min_version, k.max_version) for k in response.api_keys}),
        {f.name: f.max_version_level for f in response.finalized_features} if reported else None,
    )


def _named(request_type: Any) -> Any:
    return request_type(client_software_name=CLIENT_SOFTWARE, client_software_version=CLIENT_SOFTWARE_VERSION)
