"""What the main screen needs from its app."""

from __future__ import annotations

from typing import Protocol

from console.program import Program


class Owner(Protocol):
    """``take_warnings`` returns the warnings from opening the cluster, once."""

    program: Program

    def take_warnings(self) -> list[str]: ...

    def is_leaving(self) -> bool: ...

    def report(self, error: BaseException) -> str: ...

    def pick(self) -> None: ...

    def leave(self, status: int = 0) -> None: ...
