"""Answers of every kind that the adapter reads, with wrong bytes in them: an error of Python's, or a value.

kio's decoder is native: what it cannot bear ends the process, and so this test run with it.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from backends.base.answers import Depth, SurveyRequest
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.codec import aiokafka_requests, field_lengths
from backends.live.connections.connection import BrokerConnection
from backends.simulator.scenario.files import read
from backends.simulator.served.api_versions import hidden
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions

SCENARIO = read(str(Path(__file__).parent / "scenarios" / "one-dead-of-four.yaml"))
INPUTS = 6_000
Answers = dict[Any, tuple[bytes, int]]
WORST = [b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\xff" * 9 + b"\x01", b"\0"]
"""Lengths: the longest of four bytes, 2^32 - 1, beyond 32 bits, of ten bytes, and null."""


async def answered(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """One answer of each kind that a picture of the cluster takes, and where its message begins."""
    seen: Answers = {}
    check = field_lengths.check_lengths

    def noted(kind: Any, data: bytes, offset: int) -> None:
        seen.setdefault(kind, (data, offset))
        check(kind, data, offset)

    with monkeypatch.context() as patch:
        patch.setattr(aiokafka_requests, "check_lengths", noted)
        # Where responses can be read as columns, the full decoder reads them only if that does not work.
        patch.setattr(BrokerConnection, "columns", lambda *_: None)
        for without in ("", "GetReplicaLogInfo,DescribeTopicPartitions"):
            async with ServedCluster(SCENARIO, ServedClusterOptions(without=hidden(without))) as served:
                backend = LiveBackend(ClientSettings(parse_addresses(served.bootstrap)))
                try:
                    await backend.open()
                    states = (await backend.partitions()).states
                    await backend.survey(SurveyRequest(states, 5.0, Depth.FULL))
                    await backend.quorum()
                finally:
                    await backend.close()
    return seen


def garbled(random: Random, data: bytes, offset: int) -> bytes:
    """Up to three places changed, mostly near the front, where the lengths of arrays are; often cut short."""
    wrong = bytearray(data)
    if random.random() < 0.5:
        del wrong[offset + random.choice((60, 400, 3_000)) :]
    for _ in range(random.randint(1, 3)):
        at = offset + random.randrange(max(1, min(len(wrong) - offset, random.choice((40, 4_000)))))
        other = bytes(random.choice((0xFF, 0x80, 0, 1, 0x0F, 7)) for _ in range(random.randint(0, 9)))
        wrong[at : at + random.randrange(10)] = random.choice((*WORST, other, other))
    return bytes(wrong)


async def test_wrong_bytes_in_any_answer_are_an_error_or_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = await answered(monkeypatch)
    names = {kind.__name__ for kind in answers}
    assert {"FetchResponse", "ListOffsetsResponse", "GetReplicaLogInfoResponse", "MetadataResponse"} <= names
    random = Random(1)
    refused = 0
    for _ in range(INPUTS):
        kind, (data, offset) = random.choice(list(answers.items()))
        try:
            aiokafka_requests.read(kind, garbled(random, data, offset), offset)
        except Exception:  # kio raises as many kinds of errors as there are formats
            refused += 1
    print(f"\ngarbled answers: {INPUTS:,} of {len(answers)} kinds, {refused:,} refused")
    assert INPUTS > refused > INPUTS // 2
