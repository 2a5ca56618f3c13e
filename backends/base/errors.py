"""What a backend raises. Each message is one line for a person, with what to do; none holds a secret."""

from __future__ import annotations


class BackendError(Exception):
    """Anything that a backend could not do."""


class Unreachable(BackendError):
    """No broker of the cluster could be asked: exit status 3."""


class NotAllowed(BackendError):
    """The caller lacks a permission: exit status 3. ``operation`` and ``resource`` are Kafka's names."""

    def __init__(self, operation: str, resource: str, doing: str) -> None:
        super().__init__(f"not allowed to {doing}: needs {operation} on {resource}")
        self.operation = operation
        self.resource = resource


class NotOffered(BackendError):
    """This cluster does not have the call (or has it switched off)."""


class NotAsked(BackendError):
    """Nobody is asked that: the cluster is read from disks, or from a bundle."""


class Refused(BackendError):
    """The request may not be sent: a precondition does not hold. Nothing was sent."""


class ElectionInDoubt(BackendError):
    """The elections were sent and not answered: they may have been carried out, or may still be."""


class LogDiverged(BackendError):
    """The cluster's metadata log is another one before ``offset`` than what was read of it before."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the metadata log has changed before offset {offset}: read it again")
        self.offset = offset


class NoLeader(BackendError):
    """Controllers answer, but none of them is the leader: nothing can be committed now."""
