"""One change of a cluster, from the lock to the end of its journal. The screens and the commands both run it."""

# ruff: noqa: ARG002  # each change uses only some of the arguments

from __future__ import annotations

import os
import platform
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from console.change.unfinished_orders import (
    SettledOrders,
    refuse_open,
    settle_first,
    unfinished_here,
)
from console.errors import NotDone, Status, status_of
from console.journal.errors import JournalError, JournalLocked
from console.journal.journal import Journal, JournalRun
from console.journal.unfinished_entries import Unfinished
from console.plan_files import OTHER_PLACE
from console.provenance import now, user, version
from console.signals import StopRequest, Supervisor, status_of_signal

if TYPE_CHECKING:
    from backends.base.protocol import Backend, Progress
    from console.change.access import Access

C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")
P_contra = TypeVar("P_contra", contravariant=True)


class Invocation(Protocol):
    """The process that changes something: ``argv`` is what the journal says was run.

    ``resume`` is the command that finishes what is in flight, empty while nothing is.
    """

    argv: tuple[str, ...]
    supervisor: Supervisor
    resume: str


class Question(NamedTuple):
    """What a person is asked before anything is sent. One of ``answers`` must be typed: what it is, and how it is
    shown, then other ways to agree.

    ``warnings`` are shown first. ``otherwise`` is the message if something else is typed. ``needs_reason``: a
    reason for the journal is asked too, unless one was given with the command. ``means`` says what is to be typed,
    for a screen.
    """

    text: str
    answers: tuple[str, ...]
    otherwise: str = "not confirmed; nothing was sent"
    warnings: tuple[str, ...] = ()
    needs_reason: bool = False
    means: str = ""

    @classmethod
    def number(cls, text: str, means: str, number: int, warnings: tuple[str, ...] = ()) -> Question:
        """A question that is answered by typing a number from the text, which is what ``means`` says."""
        otherwise = f"not confirmed (the number is {number}); nothing was sent"
        whole = f"{text} To go on, type {means}:"
        return cls(whole, (str(number), f"{number:,}"), otherwise, warnings, means=means)

    @property
    def shown(self) -> str:
        """What is to be typed, as a person reads it."""
        return self.answers[min(1, len(self.answers) - 1)]

    def accept(self, typed: str) -> str:
        """The answer. Raises NotDone if it is not one of ``answers``."""
        if typed not in self.answers:
            raise NotDone(self.otherwise)
        return typed


class Operator(Protocol[P_contra]):
    """The person who runs the change, at a terminal or at a screen."""

    @property
    def progress(self) -> Progress | None: ...

    def says(self, *lines: str) -> None:
        """Shows lines that are not part of the result."""
        ...

    def unrecorded(self, line: str) -> None:
        """Shows that the journal could not record the end of a change that was carried out."""
        ...

    def finds(self, found: Unfinished) -> None:
        """Shows what earlier runs left unfinished."""
        ...

    async def reverts_first(self, found: Unfinished) -> bool:
        """Whether to revert first the assignment orders that an earlier run left."""
        ...

    def reverted(self, settled: SettledOrders) -> None:
        """Shows the result of the revert."""
        ...

    def shows(self, prepared: P_contra) -> None:
        """Shows the prepared change before the question."""
        ...

    @property
    def asks(self) -> bool:
        """Whether anybody is asked; False if the operator agreed beforehand."""
        ...

    async def answers(self, question: Question, prepared: P_contra) -> str:
        """The answer to the question. Raises NotDone."""
        ...

    async def gives_reason(self) -> str:
        """The reason for the journal. Raises NotDone if none is given."""
        ...


@dataclass(frozen=True, slots=True)
class ChangeRun(Generic[P_contra]):
    """The context of a change while it has the lock."""

    cluster_id: str
    journal: Journal
    operator: Operator[P_contra]
    stop: StopRequest
    resume_command: str


class Conclusion(NamedTuple):
    """How a change ended: the exit status, and how many rows have each outcome.

    ``unfinished``: ``ktriage resume`` has something left to finish. ``next``: the words of the command that comes
    next, without the cluster; empty where nothing does. ``stale``: the error where every row had changed before
    anything was sent.
    """

    status: Status
    counts: Mapping[str, int] = {}
    unfinished: bool = False
    next: tuple[str, ...] = ()
    stale: str = ""


class ChangeReport(NamedTuple, Generic[P, R]):
    """How a change is shown at the terminal and on the screen, before the question and at its end.

    ``prepared``: what would be sent, and at most so many rows of it. ``ended``: what became of it. ``problems``: a
    line for each thing that is not done. ``document``: the result as JSON. ``notes``: what belongs to the question,
    and is shown too where nobody is asked.
    """

    prepared: Callable[[P, int], Iterable[str]] | None
    ended: Callable[[R], Iterable[str]]
    problems: Callable[[R], Iterable[str]]
    document: Callable[[R], Iterable[str]]
    notes: Callable[[P], Iterable[str]] = lambda _: ()


class Change(ABC, Generic[C, P, R]):
    """One kind of change: how it is prepared, confirmed, compared again and sent. ``C`` is the type of the
    cluster or its quorum, ``P`` of the prepared change, ``R`` of the result.
    """

    reason: str
    reviewed: str = ""
    """Who reviewed the change, for the journal; the reason is still asked for."""

    def without_lock(self, cluster_id: str) -> R | None:
        """The result if there is nothing to do; None: take the lock and continue.

        Raises InputError where the change is for another cluster.
        """
        return None

    async def settle(self, access: Access[C], run: ChangeRun[P]) -> None:
        """Finishes what earlier runs left, where that matters to this change. Raises NotDone if it cannot be
        finished.
        """

    @abstractmethod
    async def prepare(self, cluster: C, cluster_id: str, operator: Operator[P]) -> P:
        """Reads the cluster and decides what to send. Raises ConsoleError and BackendError."""

    @abstractmethod
    def nothing_to_send(self, prepared: P) -> R | None:
        """The result if there is nothing to send; None: the question is asked, and the change is sent."""

    def question(self, prepared: P) -> Question | None:
        """The question to the operator; None: no question is needed."""
        return None

    async def recheck(
        self,
        cluster: C,
        prepared: P,
        answer: str,
        operator: Operator[P],
    ) -> P:
        """Runs after the answer, which may have taken long: rows that changed meanwhile are refused.

        A change whose rows are judged one by one right before they are sent returns ``prepared``.
        """
        raise NotImplementedError("a change that asks a question compares again after the answer")

    @abstractmethod
    async def execute(self, cluster: C, prepared: P, run: ChangeRun[P]) -> R:
        """Sends the change, and reads the result."""

    @abstractmethod
    def conclusion(self, result: R) -> Conclusion: ...


async def run_change(
    change: Change[C, P, R],
    access: Access[C],
    cluster_id: str,
    operator: Operator[P],
    *,
    invocation: Invocation,
    stop: StopRequest,
    resume_command: str,
) -> R:
    """Lock, journal, settle, prepare, ask, compare again, carry out, conclude.

    Raises JournalLocked while another run on this host may change the same cluster, ConsoleError and BackendError.
    """
    access.refuse()
    nothing_to_do = change.without_lock(cluster_id)
    if nothing_to_do is not None:
        return nothing_to_do
    recorded = _recorded(change, change.reason)
    directories = await access.directories()
    with open_journal(invocation, cluster_id, recorded, operator.unrecorded, directories) as journal:
        run = ChangeRun(cluster_id, journal, operator, stop, resume_command)
        invocation.resume = resume_command
        await change.settle(access, run)
        prepared = await change.prepare(access.reading, cluster_id, operator)
        operator.shows(prepared)
        result = change.nothing_to_send(prepared)
        if result is None:
            question = change.question(prepared) if operator.asks else None
            if question is not None:
                answer = await operator.answers(question, prepared)
                if question.needs_reason and not change.reason:
                    journal.reason(_recorded(change, await operator.gives_reason()))
                prepared = await change.recheck(access.reading, prepared, answer, operator)
                result = change.nothing_to_send(prepared)
        if result is None:
            result = await change.execute(access.changing(), prepared, run)
        conclusion = change.conclusion(result)
        if not conclusion.unfinished:
            invocation.resume = ""
        journal.conclude(conclusion.status, conclusion.counts)
        return result


def _recorded(change: Change[C, P, R], reason: str) -> str:
    return "; ".join(filter(None, (reason, change.reviewed)))


async def settle_orders(access: Access[Backend], run: ChangeRun[P]) -> None:
    """Before an election: reverts the assignment orders that an earlier run left, if the operator agrees.

    Raises HalfDone if the operator does not agree, NotDone if an order could not be reverted, and
    BackendError.
    """
    found, operator = await unfinished_here(access.reading, run.cluster_id), run.operator
    operator.finds(found)
    revert = bool(found.orders) and await operator.reverts_first(found)
    settled = await settle_first(
        access.changing(), found, run.journal, run.stop, put_back=revert, resume=run.resume_command
    )
    if found.orders:
        operator.reverted(settled)
    refuse_open(settled)


@contextmanager
def open_journal(
    invocation: Invocation,
    cluster_id: str,
    reason: str,
    incomplete: Callable[[str], None] | None = None,
    directories: Collection[str] = (),
) -> Iterator[Journal]:
    """Opens the cluster's journal on this host and takes its lock; ``directories`` are those of the cluster's
    nodes, where they are known. Raises JournalError, JournalLocked.

    If the work ended well but its last lines cannot be written, ``incomplete`` is called, if given, and the
    result of the work is still returned.
    """
    journal = _opened(invocation, cluster_id, reason, directories)
    try:
        yield journal
    except BaseException as error:
        status = _signalled(invocation) or (status_of(error) if isinstance(error, Exception) else None)
        with suppress(JournalError):
            journal.close(status)
        raise
    try:
        journal.close(_signalled(invocation))
    except JournalError as error:
        if incomplete is None:
            raise
        incomplete(f"the journal is not complete; only this output shows what was done: {error}")


def _signalled(invocation: Invocation) -> int | None:
    signum = invocation.supervisor.stop.signum
    return None if signum is None else status_of_signal(signum)


def _opened(invocation: Invocation, cluster_id: str, reason: str, directories: Collection[str]) -> Journal:
    run = JournalRun(
        run_id=str(uuid.uuid4()),
        command=invocation.argv,
        user=user(),
        host=platform.node(),
        pid=os.getpid(),
        reason=reason,
        tool_version=version(),
        directories=directories,
    )
    try:
        return Journal.open(cluster_id, run, now)
    except JournalLocked:
        raise
    except JournalError as error:
        raise JournalError(f"{error}; nothing was sent. {OTHER_PLACE}") from None
