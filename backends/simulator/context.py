"""What every node of one simulated cluster shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from backends.simulator.config import Config
from backends.simulator.history import History
from backends.simulator.loop import Loop
from backends.simulator.metadata_log import MetadataLog
from backends.simulator.network import Network
from backends.simulator.watch import Watch


@dataclass(frozen=True, slots=True)
class Context:
    """The loop, the network, the configuration and the observers. ``controllers`` are all controllers' ids;
    ``topic_configs`` are configurations that nothing depends on (``cleanup.policy``, say).
    """

    loop: Loop
    network: Network
    config: Config
    history: History
    watch: Watch
    metadata: MetadataLog
    controllers: tuple[int, ...]
    topic_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
