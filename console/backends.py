"""Makes the backend for a target: one factory for each kind."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from backends.base.protocol import Backend
from console.target import Target

Say = Callable[[str], None]
"""Tells the person a line: a key of client.properties that is not used, say."""

Factory = Callable[[Target, Say], Backend]

# kind → "module:function" of this package, imported when it is asked for: a command pays for its own backend only.
FACTORIES = {
    "live": "live_backend:backend",
    "controllers": "quorum_backend:backend",
    "simulated": "simulator_backend:backend",
}


def backend(target: Target, say: Say) -> Backend:
    """The backend for that cluster, which contacts nothing yet. Raises InputError."""
    module, name = FACTORIES[target.kind].split(":")
    factory: Factory = getattr(importlib.import_module(f".{module}", __package__), name)
    return factory(target, say)
