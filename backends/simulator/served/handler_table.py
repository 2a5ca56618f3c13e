"""The handler of every API, in one place."""

from __future__ import annotations

from backends.live.codec.apis import Api
from backends.live.codec.message_fields import Values
from backends.simulator.served.fast_path import FAST_PATHS
from backends.simulator.served.handlers.configs import describe_configs, incremental_alter_configs
from backends.simulator.served.handlers.consumer_groups import (
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_fetch,
    sync_group,
)
from backends.simulator.served.handlers.elections import (
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
)
from backends.simulator.served.handlers.features import api_versions, update_features
from backends.simulator.served.handlers.fetch import fetch
from backends.simulator.served.handlers.metadata import (
    describe_acls,
    describe_cluster,
    describe_topic_partitions,
    metadata,
)
from backends.simulator.served.handlers.metadata_log import fetch_metadata_log, fetch_snapshot
from backends.simulator.served.handlers.offsets import list_offsets, offset_for_leader_epoch
from backends.simulator.served.handlers.produce import produce
from backends.simulator.served.handlers.quorum import (
    add_raft_voter,
    describe_quorum,
    remove_raft_voter,
    unregister_controller,
    update_raft_voter,
)
from backends.simulator.served.handlers.replica_logs import describe_log_dirs, get_replica_log_info
from backends.simulator.served.handlers.topics import create_topics, delete_topics
from backends.simulator.served.handlers.transactional_clients import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    find_coordinator,
    init_producer_id,
    txn_offset_commit,
)
from backends.simulator.served.handlers.transactions import (
    describe_producers,
    describe_transactions,
    list_transactions,
    write_txn_markers,
)
from backends.simulator.served.served_call import Handler, HandlerTable, ServedCall


async def _fetch(call: ServedCall) -> Values | bytes:
    """Brokers have the topics' logs, controllers the metadata log."""
    return await (fetch(call) if call.at_broker else fetch_metadata_log(call))


HANDLERS: dict[Api, Handler] = {
    Api.ApiVersions: api_versions,
    Api.Produce: produce,
    Api.Fetch: _fetch,
    Api.ListOffsets: list_offsets,
    Api.Metadata: metadata,
    Api.FindCoordinator: find_coordinator,
    Api.JoinGroup: join_group,
    Api.Heartbeat: heartbeat,
    Api.LeaveGroup: leave_group,
    Api.SyncGroup: sync_group,
    Api.DescribeGroups: describe_groups,
    Api.OffsetCommit: offset_commit,
    Api.OffsetFetch: offset_fetch,
    Api.ListGroups: list_groups,
    Api.CreateTopics: create_topics,
    Api.DeleteTopics: delete_topics,
    Api.InitProducerId: init_producer_id,
    Api.OffsetForLeaderEpoch: offset_for_leader_epoch,
    Api.AddPartitionsToTxn: add_partitions_to_txn,
    Api.AddOffsetsToTxn: add_offsets_to_txn,
    Api.EndTxn: end_txn,
    Api.WriteTxnMarkers: write_txn_markers,
    Api.TxnOffsetCommit: txn_offset_commit,
    Api.DescribeAcls: describe_acls,
    Api.DescribeConfigs: describe_configs,
    Api.DescribeLogDirs: describe_log_dirs,
    Api.ElectLeaders: elect_leaders,
    Api.IncrementalAlterConfigs: incremental_alter_configs,
    Api.AlterPartitionReassignments: alter_partition_reassignments,
    Api.ListPartitionReassignments: list_partition_reassignments,
    Api.DescribeQuorum: describe_quorum,
    Api.UpdateFeatures: update_features,
    Api.FetchSnapshot: fetch_snapshot,
    Api.DescribeCluster: describe_cluster,
    Api.DescribeProducers: describe_producers,
    Api.DescribeTransactions: describe_transactions,
    Api.ListTransactions: list_transactions,
    Api.DescribeTopicPartitions: describe_topic_partitions,
    Api.AddRaftVoter: add_raft_voter,
    Api.RemoveRaftVoter: remove_raft_voter,
    Api.UpdateRaftVoter: update_raft_voter,
    Api.UnregisterController: unregister_controller,
    Api.GetReplicaLogInfo: get_replica_log_info,
}

HANDLER_TABLE = HandlerTable(HANDLERS, FAST_PATHS)
