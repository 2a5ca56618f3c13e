"""DescribeLogDirs of simulated brokers, all asked at once."""

from __future__ import annotations

from collections.abc import Sequence

from backends.base.answers import LogDir
from backends.simulator.network import broker as node
from backends.simulator.operate.operator_client import OperatorClient, denied, silence
from backends.simulator.operator_messages import DescribeLogDirs, LogDirsDescribed
from recovery.model import Unknown


def described_log_dirs(
    client: OperatorClient, brokers: Sequence[int]
) -> dict[int, tuple[LogDir, ...] | Unknown]:
    """Every log dir of each broker, or why it is not known."""
    answers = client.all([(node(number), DescribeLogDirs()) for number in brokers])
    found: dict[int, tuple[LogDir, ...] | Unknown] = {}
    for number, answer in zip(brokers, answers, strict=True):
        if not isinstance(answer, LogDirsDescribed):
            found[number] = silence(answer)
        elif answer.error is not None:
            found[number] = denied(answer.error, "DESCRIBE", "the cluster", "DescribeLogDirs")
        else:
            found[number] = answer.log_dirs
    return found
