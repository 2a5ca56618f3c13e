"""Telling somebody who waits: a command, a webhook."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from console.errors import InputError
from console.redaction import redact
from recovery.wording.quantity_text import printable

COMMAND_SECONDS = 30.0
WEBHOOK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Notifications:
    """Where messages go beside the terminal. ``command`` gets the message in KTRIAGE_MESSAGE and all fields as JSON
    on standard input; no shell sees it, so a topic's name cannot become a command. ``webhook`` gets the JSON as the
    body of a POST.
    """

    command: tuple[str, ...] = ()
    webhook: str = ""

    @classmethod
    def given(cls, command: str | None, webhook: str | None) -> Notifications:
        """From the options. Raises InputError."""
        try:
            words = tuple(shlex.split(command or ""))
        except ValueError as error:
            raise InputError(f"--notify {command!r}: {error}") from None
        if command is not None and not words:
            raise InputError("--notify: give a command")
        parts = urlsplit(webhook or "")
        if webhook is not None and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise InputError("--webhook: give an http:// or https:// address")
        return cls(words, webhook or "")

    async def send(self, fields: Mapping[str, str]) -> tuple[str, ...]:
        """``fields["text"]`` is the message. What did not arrive, one line each; never raises."""
        body = json.dumps(dict(fields)).encode()
        problems = await asyncio.gather(self._run(fields["text"], body), self._post(body))
        return tuple(problem for problem in problems if problem)

    async def _run(self, message: str, body: bytes) -> str:
        if not self.command:
            return ""
        quiet, environment = asyncio.subprocess.DEVNULL, {**os.environ, "KTRIAGE_MESSAGE": printable(message)}
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command, stdin=asyncio.subprocess.PIPE, stdout=quiet, stderr=quiet, env=environment
            )
        except (OSError, ValueError) as error:
            return f"--notify {self.command[0]}: {error}"
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                await process.communicate(body)
        except TimeoutError:
            process.kill()
            return f"--notify {self.command[0]}: ended after {COMMAND_SECONDS:.0f} s without a result"
        return f"--notify {self.command[0]}: exit status {process.returncode}" if process.returncode else ""

    async def _post(self, body: bytes) -> str:
        if not self.webhook:
            return ""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.webhook, body, headers)  # noqa: S310  # http or https, checked

        def post() -> str:
            try:
                with urllib.request.urlopen(request, timeout=WEBHOOK_SECONDS):  # noqa: S310  # as above
                    return ""
            except (OSError, ValueError) as error:
                # The address may be a secret itself.
                return f"--webhook {urlsplit(self.webhook).hostname}: {redact(str(error))}"

        return await asyncio.to_thread(post)
