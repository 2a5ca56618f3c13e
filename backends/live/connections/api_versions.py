"""ApiVersions, the first request on a connection, with the finalized features (KIP-584)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backends.live.codec.aiokafka_requests import CarriedRequest, RawAnswer
from backends.live.codec.apis import Api, Versions, documented

CLIENT_SOFTWARE = "ktriage"
CLIENT_SOFTWARE_VERSION = "0.1.0"


@dataclass(frozen=True, slots=True)
class ApiVersionsAnswer:
    """The broker's versions. ``features`` (name to finalized level) is None if the broker has none.

    ``versions``: api key to (lowest, highest).
    """

    versions: Versions
    features: Mapping[str, int] | None


class ApiVersionsRequest:
    """ApiVersions v4, or v3. aiokafka itself asks with v0, which has no features, and gives us its answer."""

    RESPONSE_TYPE = RawAnswer

    def __init__(self) -> None:
        self._version = 3

    def prepare(self, versions: Versions) -> CarriedRequest:
        """The request in the highest version that the broker serves (aiokafka's hook)."""
        _, highest = versions[Api.ApiVersions]
        if highest >= 4:
            from kio.schema.api_versions.v4 import ApiVersionsRequest as Request4

            self._version = 4
            return CarriedRequest(_named(Request4))
        from kio.schema.api_versions.v3 import ApiVersionsRequest as Request3

        return CarriedRequest(_named(Request3))

    def read(self, answer: RawAnswer) -> ApiVersionsAnswer:
        """Decode the answer to it. Raises whatever kio raises; ValueError for an error code."""
        from kio.schema.api_versions.v3 import ApiVersionsResponse as Response3
        from kio.schema.api_versions.v4 import ApiVersionsResponse as Response4

        response = answer.read(Response4) if self._version == 4 else answer.read(Response3)
        if response.error_code:
            raise ValueError(f"ApiVersions: {response.error_code.name}")
        reported = response.finalized_features_epoch >= 0
        return ApiVersionsAnswer(
            documented({k.api_key: (k.min_version, k.max_version) for k in response.api_keys}),
            {f.name: f.max_version_level for f in response.finalized_features} if reported else None,
        )


def _named(request_type: Any) -> Any:
    return request_type(client_software_name=CLIENT_SOFTWARE, client_software_version=CLIENT_SOFTWARE_VERSION)
