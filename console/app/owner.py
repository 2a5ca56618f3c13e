"""What the main screen asks of the app that it is in."""

from __future__ import annotations

from typing import Protocol

from console.program import Program


class Owner(Protocol):
    """``take_warnings`` returns what opening the cluster had to say, once."""

    program: Program

    def take_warnings(self) -> list[str]: ...

    def is_leaving(self) -> bool: ...

    def report(self, error: BaseException) -> str: ...

    def pick(self) -> None: ...

    def leave(self, status: int = 0) -> None: ...
