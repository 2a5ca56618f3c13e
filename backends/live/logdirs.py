"""A broker's log dirs: DescribeLogDirs, which only that broker can answer (KIP-113, KIP-827)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from backends.base.answers import LogDir, LogDirReplica
from backends.live.connection import BrokerConnection
from backends.live.errors import check, on_cluster
from backends.live.names import numbers
from backends.live.refusals import by_topic
from recovery.model import TopicPartition

if TYPE_CHECKING:
    from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResponse as Answer4
    from kio.schema.describe_log_dirs.v5.response import DescribeLogDirsResponse as Answer5

DESCRIBE_LOG_DIRS = 35
_CALL = "DescribeLogDirs"
_NEED = on_cluster("DESCRIBE")


async def describe_log_dirs(
    conn: BrokerConnection,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    timeout: float | None = None,
) -> tuple[LogDir, ...]:
    """Every log dir of the broker behind ``conn``, with its replicas (of ``partitions``, or all).

    A failed dir has ``error`` (KAFKA_STORAGE_ERROR), bytes -1 and no replicas. Needs DESCRIBE on the cluster.
    Raises BrokerError, NotAllowed, NotOffered, BackendError.
    """
    version = conn.require(DESCRIBE_LOG_DIRS, (4, 5), _CALL)
    answer = await (_ask_v5 if version == 5 else _ask_v4)(conn, partitions, timeout)
    check(answer.error_code, _CALL, _NEED)
    broker = -1 if conn.broker is None else conn.broker
    found = []
    for result in answer.results:
        replicas = tuple(
            LogDirReplica(names[p.partition_index], p.partition_size, p.offset_lag, p.is_future_key)
            for topic in result.topics
            for names in (numbers(str(topic.name)),)
            for p in topic.partitions
        )
        error = result.error_code.name.upper() if result.error_code else None
        found.append(LogDir(broker, result.log_dir, error, result.total_bytes, result.usable_bytes, replicas))
    return tuple(found)


async def _ask_v5(
    conn: BrokerConnection, partitions: Iterable[TopicPartition] | None, timeout: float | None
) -> Answer5:
    from kio.schema.describe_log_dirs.v5 import request as v5
    from kio.schema.describe_log_dirs.v5.response import DescribeLogDirsResponse

    return await conn.send(_request(v5, partitions), DescribeLogDirsResponse, timeout=timeout)


async def _ask_v4(
    conn: BrokerConnection, partitions: Iterable[TopicPartition] | None, timeout: float | None
) -> Answer4:
    from kio.schema.describe_log_dirs.v4 import request as v4
    from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResponse

    return await conn.send(_request(v4, partitions), DescribeLogDirsResponse, timeout=timeout)


def _request(module: Any, partitions: Iterable[TopicPartition] | None) -> Any:
    if partitions is None:
        return module.DescribeLogDirsRequest(topics=None)
    return module.DescribeLogDirsRequest(
        topics=tuple(
            module.DescribableLogDirTopic(topic=topic, partitions=tuple(indexes))
            for topic, indexes in by_topic(partitions).items()
        )
    )
