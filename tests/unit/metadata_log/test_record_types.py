"""Every metadata record type and version of Kafka 4.3.1 and 4.4.0, as Kafka's own code wrote it and shows it.

``every_record_type.tsv`` has a line for each record: the value in hexadecimal, and what MetadataJsonConverters
prints of it. The fields were set at random in Kafka's generated classes, and MetadataRecordSerde wrote the values.
Releases 3.9 to 4.3 write some of these types and versions, and no others.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from recovery.metadata_log.record_codec import decode
from recovery.metadata_log.records import HIGHEST_VERSIONS, RecordType, Skipped
from tests.unit.metadata_log.dump import record_shown


class Written(NamedTuple):
    value: bytes
    shown: dict[str, Any]

    @property
    def kind(self) -> RecordType:
        return RecordType[self.shown["type"].removesuffix("_RECORD")]


def _written() -> list[Written]:
    text = Path(__file__).with_name("every_record_type.tsv").read_text(encoding="utf-8")
    lines = (line.split("\t", 1) for line in text.splitlines())
    return [Written(bytes.fromhex(value), json.loads(shown)) for value, shown in lines]


WRITTEN = _written()


@pytest.mark.parametrize("kind", RecordType, ids=lambda kind: kind.name)
def test_a_record_is_what_kafka_shows_of_it_in_every_version(kind: RecordType) -> None:
    mine = [one for one in WRITTEN if one.kind is kind]
    assert mine
    for one in mine:
        assert decode(one.value) == record_shown(one.shown)


def test_the_versions_that_are_decoded_are_those_that_kafka_writes() -> None:
    versions = {(one.kind, one.shown["version"]) for one in WRITTEN}
    for kind, highest in HIGHEST_VERSIONS.items():
        assert {version for found, version in versions if found is kind} == set(range(highest + 1))


def test_what_is_not_decoded_says_nothing_of_topics_brokers_or_settings() -> None:
    skipped = Counter(one.kind for one in WRITTEN if isinstance(decode(one.value), Skipped))
    assert set(skipped) == {
        RecordType.DELEGATION_TOKEN,
        RecordType.USER_SCRAM_CREDENTIAL,
        RecordType.CLIENT_QUOTA,
        RecordType.PRODUCER_IDS,
        RecordType.ACCESS_CONTROL_ENTRY,
        RecordType.REMOVE_ACCESS_CONTROL_ENTRY,
        RecordType.NO_OP,
        RecordType.ZK_MIGRATION_STATE,
        RecordType.REMOVE_USER_SCRAM_CREDENTIAL,
        RecordType.REMOVE_DELEGATION_TOKEN,
    }
