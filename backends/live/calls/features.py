"""Feature levels: what a node supports, what the cluster has finalized, and an upgrade (KIP-584, KIP-1022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from backends.base.membership import ChangeAnswer
from backends.live.calls.raft_voters import answered
from backends.live.connections.api_versions import CLIENT_SOFTWARE, CLIENT_SOFTWARE_VERSION
from backends.live.connections.connection import BrokerConnection

_UPGRADE = 1


@dataclass(frozen=True, slots=True)
class Features:
    """``supported``: name to (lowest, highest) level of that node. ``finalised``: name to the cluster's level.

    ``offset`` is that of the metadata that they were read from, -1 where the node has not read any.
    """

    supported: Mapping[str, tuple[int, int]]
    finalised: Mapping[str, int]
    offset: int


async def describe_features(conn: BrokerConnection) -> Features:
    """What the node behind ``conn`` knows now. Raises BrokerError, NotOffered.

    It takes ApiVersions v4: v3 leaves out features whose lowest level is 0, kraft.version among them.
    """
    from kio.schema.api_versions.v4.request import ApiVersionsRequest
    from kio.schema.api_versions.v4.response import ApiVersionsResponse

    request = ApiVersionsRequest(
        client_software_name=CLIENT_SOFTWARE, client_software_version=CLIENT_SOFTWARE_VERSION
    )
    response = await conn.send(request, ApiVersionsResponse)
    return Features(
        {f.name: (f.min_version, f.max_version) for f in response.supported_features},
        {f.name: f.max_version_level for f in response.finalized_features},
        response.finalized_features_epoch,
    )


async def upgrade_feature(
    conn: BrokerConnection, feature: str, level: int, *, dry_run: bool, timeout: float
) -> ChangeAnswer:
    """Upgrade a feature's finalized level, or only validate the upgrade. Needs ALTER on the cluster.

    Raises BrokerError (``sent``: it may have been done), NotAllowed, NotOffered.
    """
    from kio.schema.update_features.v1.request import FeatureUpdateKey, UpdateFeaturesRequest
    from kio.schema.update_features.v1.response import UpdateFeaturesResponse
    from kio.static.primitive import i8, i16, i32Timedelta

    update = FeatureUpdateKey(feature=feature, max_version_level=i16(level), upgrade_type=i8(_UPGRADE))
    request = UpdateFeaturesRequest(
        timeout=i32Timedelta.parse(timedelta(seconds=timeout)),
        feature_updates=(update,),
        validate_only=dry_run,
    )
    response = await conn.send(request, UpdateFeaturesResponse, timeout=timeout)
    for result in response.results:
        if result.error_code:
            return answered(result.error_code, result.error_message, "UpdateFeatures")
    return answered(response.error_code, response.error_message, "UpdateFeatures")
