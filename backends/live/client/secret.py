"""A secret value: it appears in no repr, str, format, exception or pickle."""

from __future__ import annotations

from typing import NoReturn


class Secret:
    """Holds a password, key or token. Only :meth:`reveal` gives it away; everything else shows ``***``."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself, for the one call that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return "***"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(("secret", self._value))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")
