"""ApiVersions and UpdateFeatures (KIP-584, KIP-1022).

Only kraft.version and eligible.leader.replicas.version can change; the other features have fixed levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kio.schema.errors import ErrorCode

from backends.live.codec.message_fields import Values
from backends.simulator.loop import SECOND
from backends.simulator.messages import Done, UpdateFeature
from backends.simulator.quorum.quorum_log import KRAFT_VERSION
from backends.simulator.served.handlers.quorum import ask_leader
from backends.simulator.served.served_call import ServedCall
from backends.simulator.world import World
from recovery.controller.controller_errors import ControllerRefusal
from recovery.controller.rules import ELR_FEATURE

METADATA = "metadata.version"
STANDING = {
    "group.version": 1,
    METADATA: 30,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
"""Features of Kafka 4.3.1 with fixed levels here."""
SUPPORTED = {**STANDING, KRAFT_VERSION: 1, ELR_FEATURE: 1}
"""The highest level of each."""
LOWEST = {METADATA: 7}

_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe"
    " downgrade."
)
_UNSUPPORTED = "Unsupported"
UPGRADE = 1
PATIENCE = 30 * SECOND
_FAILED = "The update failed for all features since the following feature had an error: "


async def api_versions(call: ServedCall) -> Values:
    """ApiVersions with the finalised features (KIP-584); v3 leaves out those whose lowest level is 0."""
    offered = call.context.offered[call.node.role]
    return {
        "api_keys": [
            {"api_key": key, "min_version": low, "max_version": high}
            for key, (low, high) in sorted(offered.items())
        ],
        "supported_features": [
            {"name": name, "min_version": LOWEST.get(name, 0), "max_version": level}
            for name, level in sorted(SUPPORTED.items())
            if call.version > 3 or name in LOWEST
        ],
        "finalized_features_epoch": _metadata_offset(call),
        "finalized_features": [
            {"name": name, "max_version_level": level, "min_version_level": level}
            for name, level in sorted(finalised(call.context.world).items())
            if level
        ],
    }


def _metadata_offset(call: ServedCall) -> int:
    """-1 where the node has read nothing yet."""
    if call.at_broker:
        process = call.context.world.brokers.get(call.node.id)
        return -1 if process is None else process.state.offset
    replica = call.context.world.quorum.replicas.get(call.node.id)
    return -1 if replica is None else (replica.state.high_watermark or 0) - 1


def finalised(world: World) -> Mapping[str, int]:
    """The current levels; 0 if a feature is off."""
    leader = world.quorum.leader
    kraft = 1 if leader is None else leader.log.kraft_version
    return {**STANDING, ELR_FEATURE: int(world.image.rules.elr), KRAFT_VERSION: kraft}


async def update_features(call: ServedCall) -> Values:
    """Needs ALTER on the cluster. If one update is refused, none is made."""
    if not call.rights.cluster("ALTER"):
        return {"error_code": ErrorCode.cluster_authorization_failed, "results": ()}
    updates = [
        (update.feature, update.max_version_level, _kind(update)) for update in call.request.feature_updates
    ]
    only_asked = call.field("validate_only", False)
    for dry_run in (True,) if only_asked else (True, False):
        for feature, level, kind in updates:
            refusal = _refusal(call, feature, level, kind) or await _put(
                call, feature, level, dry_run=dry_run
            )
            if refusal is not None:
                error, message = refusal
                return {"error_code": error, "error_message": _FAILED + message, "results": ()}
    results = [{"feature": feature, "error_code": ErrorCode.none} for feature, _, _ in updates]
    return {"error_code": ErrorCode.none, "results": results}


def _kind(update: Any) -> int:
    """v0 says only whether a downgrade is allowed."""
    upgrade_type = getattr(update, "upgrade_type", None)
    return int(upgrade_type) if upgrade_type is not None else UPGRADE + int(update.allow_downgrade)


def _refusal(call: ServedCall, feature: str, level: int, kind: int) -> tuple[ErrorCode, str] | None:
    message = _unsupported(call, feature, level, kind)
    if message is None:
        now = finalised(call.context.world)[feature]
        message = _downgrade_refusal(feature, level, now, kind) if level < now else None
        if message is None and level != now and feature in STANDING:
            message = f"It stays at {now} in a simulated cluster."
    if message is None:
        return None
    if not message.startswith(_UNSUPPORTED):
        message = f"Invalid update version {level} for feature {feature}. {message}"
    return ErrorCode.invalid_update_version, message


def _unsupported(call: ServedCall, feature: str, level: int, kind: int) -> str | None:
    active = call.context.world.active
    local = f"Local controller {-1 if active is None else active.id}"
    highest = SUPPORTED.get(feature)
    if highest is None:
        gone = level == 0 and kind != UPGRADE
        return f"Feature {feature} not found." if gone else f"{local} does not support this feature."
    lowest = LOWEST.get(feature, 0)
    return None if lowest <= level <= highest else f"{local} only supports versions {lowest}-{highest}"


def _downgrade_refusal(feature: str, level: int, now: int, kind: int) -> str | None:
    if kind == UPGRADE:
        return _DOWNGRADE
    if feature == KRAFT_VERSION:
        return "Can't downgrade the version of this feature."
    if feature == METADATA:
        return (
            f"{_UNSUPPORTED} {METADATA} downgrade from {now} to {level}. Refusing to perform the requested"
            " downgrade because it might delete metadata information."
        )
    return None


async def _put(call: ServedCall, feature: str, level: int, *, dry_run: bool) -> tuple[ErrorCode, str] | None:
    """Send it to the quorum's leader or to the active controller; None if it is done, or would be."""
    if feature in STANDING or (feature == ELR_FEATURE and dry_run):
        return None
    body = UpdateFeature(feature, level, dry_run)
    reply = (
        await ask_leader(call, body, PATIENCE) if feature == KRAFT_VERSION else await call.ask(body, PATIENCE)
    )
    if not isinstance(reply, Done):
        return ErrorCode.not_controller, "the active controller is another one"
    if reply.refusal is None:
        return None
    refusal: ControllerRefusal = reply.refusal
    return ErrorCode[refusal.error.value.lower()], refusal.reason
