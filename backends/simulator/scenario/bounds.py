"""Limits of a scenario's size and length; a larger one would run for days, or not at all."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

LONGEST = 1_000_000
"""Seconds of virtual time, eleven days and a half."""
BROKERS = 100
CONTROLLERS = 15
PARTITIONS = 1_000_000
"""Of all topics."""
LARGEST_SETTING = 2**63 - 1
MOST_RECORDS = 1_000_000
"""In one batch of a transaction."""

_TOPIC = re.compile(r"(?:[A-Za-z0-9._-]|\{n\}){1,249}")

Seconds = Annotated[float, Field(ge=0, le=LONGEST)]
Interval = Annotated[float, Field(ge=0.001, le=LONGEST)]
Milliseconds = Annotated[float, Field(ge=0, le=LONGEST * 1_000)]


def _topic(name: str) -> str:
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        raise ValueError("a topic's name is expected: at most 249 letters, digits, '.', '_' and '-'")
    return name


def _setting(value: object) -> object:
    if isinstance(value, str):
        return value
    if not isinstance(value, (bool, int, float)):
        raise ValueError("a number, true or false is expected")  # noqa: TRY004  # what pydantic tells by its place
    if not 0 <= value <= LARGEST_SETTING:  # also refuses nan
        raise ValueError(f"a number from 0 to {LARGEST_SETTING} is expected")
    return value


TopicName = Annotated[str, AfterValidator(_topic)]
Setting = Annotated[bool | int | float | str, BeforeValidator(_setting)]
