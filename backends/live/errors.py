"""Errors of a broker or a connection, each with a one-line message.

:class:`BrokerError` is the only error of a connection. Kafka's error codes become values by :func:`unknown`, or
errors by :func:`check`; a missing permission is named with its operation and resource.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from backends.base.check_report import CLUSTER_RESOURCE
from backends.base.errors import BackendError, NotAllowed, NotAsked, NotOffered, Unreachable
from recovery.model import Unknown, Why

if TYPE_CHECKING:
    from kio.schema.errors import ErrorCode


class ConnectionProblem(StrEnum):
    """Why a connection, or a request on it, failed."""

    UNRESOLVED = "name not resolved"
    REFUSED = "connection refused"
    NO_ROUTE = "no route"
    CONNECT_TIMEOUT = "connect timed out"
    TLS = "TLS failed"
    AUTHENTICATION = "authentication failed"
    CLOSED = "closed by peer"
    NO_ANSWER = "no answer"
    UNDECODABLE = "answer not understood"
    WRONG_NODE = "another node answers there"
    NO_ADDRESS = "address not known"
    STARTING = "metadata not read yet"


NEVER_REACHED = frozenset(
    (
        ConnectionProblem.UNRESOLVED,
        ConnectionProblem.REFUSED,
        ConnectionProblem.NO_ROUTE,
        ConnectionProblem.CONNECT_TIMEOUT,
        ConnectionProblem.NO_ADDRESS,
    )
)
"""Nothing at that address took the connection: what a dead host looks like from outside."""

_WHY = {
    ConnectionProblem.AUTHENTICATION: Why.NOT_ALLOWED,
    ConnectionProblem.UNDECODABLE: Why.FAILED,
    ConnectionProblem.WRONG_NODE: Why.FAILED,
}


class BrokerError(BackendError):
    """A broker could not be asked. ``trouble`` says how, the message is one line with the address.

    ``sent`` is True where the request may have reached the broker: it may have been carried out. ``remembered``: it
    was seen a moment ago, and nobody has waited for it again. ``behind``: an earlier request on the same connection
    was not answered, and this one waited for it.
    """

    remembered = False
    behind = False

    def __init__(self, trouble: ConnectionProblem, where: str, detail: str, *, sent: bool = False) -> None:
        super().__init__(f"{where}: {detail}")
        self.trouble = trouble
        self.where = where
        self.detail = detail
        self.sent = sent

    def again(self) -> BrokerError:
        """The same for who asks after it was seen: certainly nothing is sent now."""
        error = BrokerError(self.trouble, self.where, self.detail)
        error.remembered = True
        return error

    def behind_another(self) -> BrokerError:
        """This error, of a request that waited for another one."""
        self.behind = True
        return self

    @property
    def reached(self) -> bool:
        """True where something took the connection at that address."""
        return self.trouble not in NEVER_REACHED

    @property
    def unknown(self) -> Unknown:
        """This error as a value."""
        return Unknown(_WHY.get(self.trouble, Why.NOT_ANSWERED), str(self))


def one_line(text: object, limit: int = 200) -> str:
    """``text`` without line breaks and control characters, cut to ``limit`` characters."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


class NobodyReached(Unreachable):
    """No broker could be asked. ``sent`` as in :class:`BrokerError`."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Permission(NamedTuple):
    """What a call needs: Kafka's operation and resource, as its authorizer logs them."""

    operation: str
    resource: str

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource}"


def on_cluster(operation: str) -> Permission:
    """The permission for ``operation`` on the cluster."""
    return Permission(operation, CLUSTER_RESOURCE)


def on_topic(operation: str, topic: str) -> Permission:
    """The permission for ``operation`` on ``topic``."""
    return Permission(operation, f"Topic:{topic}")


_NOT_ALLOWED = frozenset((29, 30, 31, 53, 65))
_NOT_OFFERED = frozenset((35, 43))


def unknown(code: ErrorCode, call: str, need: Permission, message: str | None = None) -> Unknown:
    """What an error code of ``call`` means, as a value; ``need`` is the permission that it asks for."""
    if code in _NOT_ALLOWED:
        return Unknown(Why.NOT_ALLOWED, f"{call} needs {need}")
    detail = f": {one_line(message)}" if message else ""
    why = Why.NOT_OFFERED if code in _NOT_OFFERED else Why.FAILED
    return Unknown(why, f"{call} answered {code.name.upper()}{detail}")


def check(code: ErrorCode, call: str, need: Permission, message: str | None = None) -> None:
    """Raise what an error code of ``call`` means: NotAllowed, NotOffered or BackendError; nothing for 0."""
    if not code:
        return
    if code in _NOT_ALLOWED:
        raise NotAllowed(need.operation, need.resource, f"call {call}")
    reported = unknown(code, call, need, message)
    raise (NotOffered if reported.why is Why.NOT_OFFERED else BackendError)(reported.detail)


def as_unknown(error: BackendError) -> Unknown:
    """An error of this package as a value."""
    match error:
        case BrokerError():
            return error.unknown
        case Unreachable():
            return Unknown(Why.NOT_ANSWERED, str(error))
        case NotAllowed():
            return Unknown(Why.NOT_ALLOWED, str(error))
        case NotAsked():
            return Unknown(Why.NOT_ASKED, str(error))
        case NotOffered():
            return Unknown(Why.NOT_OFFERED, str(error))
    return Unknown(Why.FAILED, str(error))
