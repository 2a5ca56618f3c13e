"""Inert configs, which clients bring and the simulator does not act on."""

from __future__ import annotations

from collections import defaultdict


class ClientState:
    """``configs`` are the values of resources, by (type, name), that the simulator does not act on."""

    def __init__(self) -> None:
        self.configs: dict[tuple[int, str], dict[str, str]] = defaultdict(dict)

    def forget(self, topic: str, resource: int) -> None:
        """The topic was deleted: a new one of its name starts with nothing."""
        self.configs.pop((resource, topic), None)
