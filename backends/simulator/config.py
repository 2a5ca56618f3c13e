"""The configuration of a simulated cluster. Names follow Kafka's; times are microseconds of virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field

from backends.simulator.loop import MILLISECOND, SECOND
from recovery.controller.rules import ControllerRules
from recovery.membership.quorum import MembershipRules


@dataclass(frozen=True, slots=True)
class Config:
    """Kafka's defaults, unless a scenario says otherwise.

    - ``rules``: the controller's, shipped 4.3 by default.
    - ``broker_epoch_check``: KIP-903; off, leaders send -1 and neither side checks, as before 3.5.
    - ``high_watermark_needs_min_isr``: KIP-966. No feature guards it: 3.9.1 and 4.3.1 have it without the ELR too.
    - ``clean_shutdown_detection``: off, every registration counts as unclean, as before KIP-966.
    - ``flush_interval``: how long the operating system keeps written pages before they are on the disk.
    - ``unclean_recovery_timeout``: KIP-966 ``unclean.recovery.timeout.ms``.
    - ``controller_election_timeout``, ``controller_fetch_timeout``, ``controller_request_timeout``: the
      controller.quorum.*.timeout.ms; ``metadata_idle_interval``: metadata.max.idle.interval.ms.
    - ``metadata_records_retained``: so many committed records stay in a metadata log when a snapshot is taken.
    - ``auto_join``: controller.quorum.auto.join.enable of every controller.
    - ``kraft_version``: the level at the start; 0 has static voters without directory ids. ``membership``: the
      rules for changes of the voters, shipped 4.3 by default.
    - ``publish_time``: how long a broker takes for each of its partitions that a metadata delta changes, before it
      comes to the delta's configurations (0.35 s for 1,200 partitions of a quiet 4.3.1).
    - ``released_calls``: nodes serve what Kafka 4.4 does, UnregisterController among it, and not the calls of the
      recovery tool's specification.
    - ``denied``: what the operator may not do, as "READ topic payments" or "CLUSTER_ACTION cluster".
    """

    rules: ControllerRules = field(default_factory=ControllerRules)
    broker_epoch_check: bool = True
    high_watermark_needs_min_isr: bool = True
    clean_shutdown_detection: bool = True
    broker_heartbeat_interval: int = 2 * SECOND
    broker_session_timeout: int = 9 * SECOND
    replica_lag_time_max: int = 30 * SECOND
    replica_fetch_wait_max: int = 500 * MILLISECOND
    replica_fetch_records: int = 10_000
    replica_fetch_backoff: int = 1 * SECOND
    metadata_fetch_wait_max: int = 500 * MILLISECOND
    flush_interval: int = 30 * SECOND
    high_watermark_checkpoint_interval: int = 5 * SECOND
    request_timeout: int = 2 * SECOND
    alter_partition_backoff: int = 50 * MILLISECOND
    unclean_election_interval: int = 300 * SECOND
    unclean_election_limit: int = 1000
    leader_rebalance_interval: int = 300 * SECOND
    leader_imbalance_percentage: int = 10
    auto_leader_rebalance: bool = True
    unclean_recovery_timeout: int = 300 * SECOND
    controller_election_timeout: int = 1 * SECOND
    controller_fetch_timeout: int = 2 * SECOND
    controller_request_timeout: int = 2 * SECOND
    metadata_idle_interval: int = 500 * MILLISECOND
    metadata_records_retained: int = 512
    auto_join: bool = False
    kraft_version: int = 1
    membership: MembershipRules = field(default_factory=MembershipRules)
    partition_limit: int = 2000
    publish_time: int = 300
    released_calls: bool = False
    denied: tuple[str, ...] = ()
