"""Converts the text of options to values, without pydantic.

typer checks every value with a pydantic adapter. Importing pydantic and building the adapters takes longer
than reading the whole state of a small cluster, and the few types of our options do not need it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import Enum
from typing import Any, get_args, get_origin

import typer

from console.errors import InputError
from console.provenance import now


def quicken(parameters: list[Any]) -> list[Any]:
    """Replaces the parameters' converters; returns the same list.

    If typer has no such hook, its own conversion is used and gives the same values.
    """
    for parameter in parameters:
        if hasattr(parameter, "get_runtime_param") and hasattr(parameter, "type_descriptor"):
            descriptor = parameter.type_descriptor
            conversion = _Conversion(descriptor.annotation, descriptor.parameter_info)
            parameter.get_runtime_param = lambda conversion=conversion: conversion
    return parameters


class _Conversion:
    """One parameter's conversion, called by typer."""

    def __init__(self, annotation: Any, limits: Any) -> None:
        several = get_origin(annotation) is list
        self._kind = get_args(annotation)[0] if several else annotation
        self._least, self._most = limits.min, limits.max

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of the parameter's type. Raises typer.BadParameter."""
        try:
            if param.multiple or isinstance(value, (list, tuple)):
                return [self._one(word) for word in value or ()]
            return None if value is None else self._one(value)
        except ValueError as error:
            raise typer.BadParameter(str(error), ctx=ctx, param=param) from None

    def _one(self, value: Any) -> Any:
        kind = self._kind
        if isinstance(value, kind):
            return value
        if issubclass(kind, Enum):
            # Kafka's own tools take PREFERRED as well as preferred.
            if value.lower() not in {member.value for member in kind}:
                raise ValueError(f"{value!r} is not one of {', '.join(str(member.value) for member in kind)}")
            return kind(value.lower())
        return self._number(value) if kind in (int, float) else kind(value)

    def _number(self, text: str) -> int | float:
        try:
            number: int | float = self._kind(text)
        except ValueError:
            what = "a whole number" if self._kind is int else "a number"
            raise ValueError(f"{text!r} is not {what}") from None
        if self._least is not None and number < self._least:
            raise ValueError(f"{number} is below {self._least}")
        if self._most is not None and number > self._most:
            raise ValueError(f"{number} is above {self._most}")
        return number


_AGO = re.compile(r"(\d+)\s*([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def moment_ms(option: str, text: str) -> int:
    """``15m`` ago, or an ISO date and time, in UTC where it names no zone. Raises InputError."""
    ago = _AGO.fullmatch(text.strip())
    if ago:
        return int((now().timestamp() - int(ago[1]) * _SECONDS[ago[2]]) * 1000)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InputError(f"{option} {text!r}: give 90s, 15m, 2h, 3d, or 2026-11-22T18:13 (UTC)") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
