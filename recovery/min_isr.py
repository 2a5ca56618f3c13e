"""The effective min.insync.replicas (KIP-966, "Additional High Watermark advancement requirement")."""

from __future__ import annotations

from collections.abc import Mapping

from recovery.controller.rules import effective_min_isr
from recovery.model import PartitionState, Unknown, Why

MIN_ISR = "min.insync.replicas"


def min_isr_from_config(state: PartitionState, config: Mapping[str, str] | Unknown) -> int | Unknown:
    """min(min.insync.replicas, replication factor), or why it is not known."""
    if isinstance(config, Unknown):
        return config
    value = config.get(MIN_ISR, "")
    if not value.isdecimal():
        return Unknown(Why.FAILED, f"{MIN_ISR} of topic {state.topic} is {value!r}")
    return effective_min_isr(int(value), len(state.replicas))
