"""The run of a command: its cluster, its output streams and its signals."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from console.errors import InputError, StalePlan
from console.output.screen import Screen
from console.program import Program
from console.signals import StopRequest
from console.target import Target

if TYPE_CHECKING:
    from backends.base.protocol import Backend
    from console.change.change import Change, Conclusion, Operator
    from console.output.report_blocks import ReportBlock


async def read_line(descriptor: int) -> str:
    """The next line, "" at the end of input. If it is cancelled, no thread stays behind that still reads."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def readable() -> None:
        if not answer.done():
            answer.set_result(os.read(descriptor, 4096).decode(errors="replace"))

    loop.add_reader(descriptor, readable)
    try:
        return await answer
    finally:
        loop.remove_reader(descriptor)


T = TypeVar("T")
P = TypeVar("P")
R = TypeVar("R")


class Output(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"


class PageOutput(StrEnum):
    """How a result is written that is also a page."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Run:
    """One command on one cluster; ``named`` is None only if the command needs no cluster.

    ``changes``: the registry says that the command can change a cluster. No other command can.
    """

    program: Program
    named: Target | None
    json: bool
    changes: bool = False

    @property
    def target(self) -> Target:
        if self.named is None:
            raise InputError("this needs a cluster: give --bootstrap-server, --cluster or --simulate")
        return self.named

    @property
    def screen(self) -> Screen:
        return self.program.screen

    def refuse_if_read_only(self) -> None:
        """Raises InputError if the profile forbids changes of the cluster."""
        assert self.changes, "a command that changes a cluster says so in the registry"
        if self.target.read_only:
            raise InputError(f"this would change the cluster, and {self.target.read_only}; nothing was sent")

    def out_page(
        self,
        form: PageOutput,
        title: str,
        blocks: Iterable[ReportBlock],
        lines: Iterable[str],
        document: Callable[[], Iterable[str]],
    ) -> None:
        """Prints a result: its ``blocks`` as Markdown, or as a page with that title; ``lines`` as text, and the
        ``document`` as JSON, which is made for that alone.
        """
        from console.output.report_html import html_page  # noqa: PLC0415  # not for commands without a page
        from console.output.report_markdown import markdown_lines  # noqa: PLC0415  # likewise

        match form:
            case PageOutput.JSON:
                self.screen.out(document())
            case PageOutput.HTML:
                self.screen.out(html_page(title, blocks).splitlines())
            case PageOutput.MARKDOWN:
                self.screen.out(markdown_lines(blocks))
            case PageOutput.TEXT:
                self.screen.out(lines)

    def refuse_bundle(self, what: str) -> None:
        """Raises InputError where nothing can be asked; ``what`` asks a cluster."""
        if self.target.kind == "bundle":
            raise InputError(
                f"{what} asks a cluster, and a bundle is the cluster as it was. Name the cluster itself"
                " (--bootstrap-server, --cluster)"
            )

    def read(self, job: Callable[[Backend, StopRequest], Awaitable[T]]) -> T:
        """Runs ``job``, which can only read the cluster. Raises what the job raises, and Stopped."""
        from backends.base.read_only import ReadOnlyBackend  # noqa: PLC0415  # not before a cluster is asked

        only_reads = replace(self.target, only_reads=True)
        return self._on_cluster(only_reads, lambda cluster, stop: job(ReadOnlyBackend(cluster), stop))

    def change(self, change: Change[Backend, P, R], operator: Operator[P]) -> R:
        """Carries out the change. Raises what it raises, and Stopped."""
        from console.change.access import backend_access  # noqa: PLC0415  # for changes only
        from console.change.change import run_change  # noqa: PLC0415

        self.refuse_if_read_only()

        async def job(cluster: Backend, stop: StopRequest) -> R:
            return await run_change(
                change,
                backend_access(cluster, self.refuse_if_read_only),
                (await cluster.open()).cluster_id,
                operator,
                invocation=self.program,
                stop=stop,
                resume_command=self.target.command("resume"),
            )

        return self._on_cluster(self.target, job)

    def _on_cluster(self, target: Target, job: Callable[[Backend, StopRequest], Awaitable[T]]) -> T:
        """Runs ``job`` on the cluster, then closes the backend."""
        from console.backends import backend  # noqa: PLC0415  # not before a cluster is asked

        cluster = backend(target, self.screen.say)

        async def supervised(stop: StopRequest) -> T:
            try:
                return await job(cluster, stop)
            finally:
                await cluster.close()

        return self.program.supervisor.run(supervised)

    def next(self, *words: str) -> None:
        """Prints the next command on stderr, ready to be copied."""
        self.screen.say(f"next: {self.target.command(*words)}")

    def conclude(self, conclusion: Conclusion) -> int:
        """Prints the command that comes next, if any; returns the exit status. Raises StalePlan where every row had
        changed before anything was sent.
        """
        if conclusion.next:
            self.next(*conclusion.next)
        if conclusion.stale:
            raise StalePlan(conclusion.stale)
        return conclusion.status

    def refuse_unless_interactive(self, instead: str) -> None:
        """Raises InputError if nobody can be asked, and the option that replaces the question is missing."""
        if not self.screen.interactive:
            raise InputError(f"there is no terminal to ask on: give {instead}; nothing was sent")

    async def ask(self, question: str) -> str:
        """The line that a person types, stripped; "" at the end of input. A signal ends the wait."""
        self.screen.say(question)
        return (await read_line(0)).strip()
