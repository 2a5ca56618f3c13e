"""Telling somebody who waits: a command, a webhook, the services that apprise knows."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from console.errors import InputError
from console.redaction import redact
from recovery.wording.missing_extra import missing_extra
from recovery.wording.quantity_text import printable

if TYPE_CHECKING:
    from apprise import Apprise

COMMAND_SECONDS = 30.0
WEBHOOK_SECONDS = 10.0
SERVICE_SECONDS = 60.0
"""For one service, with all its attempts."""
RETRIES = 2
URLS_VARIABLE = "KTRIAGE_NOTIFY_URLS"


@dataclass(frozen=True, slots=True)
class Notifications:
    """Where messages go beside the terminal. ``command`` gets the message in KTRIAGE_MESSAGE and all fields as JSON
    on standard input; no shell sees it, so a topic's name cannot become a command. ``webhook`` gets the JSON as the
    body of a POST. ``services`` get the text. What did not arrive there is sent again, ``RETRIES`` times at the
    most, after ``pause`` seconds; a redirect is no delivery.
    """

    command: tuple[str, ...] = ()
    webhook: str = ""
    services: Apprise | None = None
    pause: float = 1.0

    @classmethod
    def given(
        cls, command: str | None, webhook: str | None, urls_file: Path | None = None, *, pause: float = 1.0
    ) -> Notifications:
        """From the options, and from the environment's KTRIAGE_NOTIFY_URLS. Raises InputError."""
        try:
            words = tuple(shlex.split(command or ""))
        except ValueError as error:
            raise InputError(f"--notify {command!r}: {error}") from None
        if command is not None and not words:
            raise InputError("--notify: give a command")
        parts = urlsplit(webhook or "")
        if webhook is not None and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise InputError("--webhook: give an http:// or https:// address")
        return cls(words, webhook or "", _services(urls_file, pause), pause)

    async def send(self, fields: Mapping[str, str]) -> tuple[str, ...]:
        """``fields["text"]`` is the message. What did not arrive, one line each; never raises."""
        body = json.dumps(dict(fields)).encode()
        problems = await asyncio.gather(
            self._run(fields["text"], body), self._post(body), self._tell_services(fields["text"])
        )
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
        opener = urllib.request.build_opener(_NoRedirect)

        def post() -> str:
            try:
                with opener.open(request, timeout=WEBHOOK_SECONDS):
                    return ""
            except (OSError, ValueError) as error:
                # The address may be a secret itself.
                return f"--webhook {urlsplit(self.webhook).hostname}: {redact(str(error))}"

        problem = await asyncio.to_thread(post)
        for _ in range(RETRIES):
            if not problem:
                break
            await asyncio.sleep(self.pause)
            problem = await asyncio.to_thread(post)
        return problem

    async def _tell_services(self, text: str) -> str:
        """The addresses have tokens in them: only the services' names are said."""
        if self.services is None:
            return ""
        result = await self.services.async_notify(body=printable(text), title="ktriage")
        failed = sorted({one.name or "?" for one in result.results if one.status != result.status.SUCCESS})
        if not failed and not result:
            return "--notify-urls: nothing was delivered"
        return f"--notify-urls: not delivered to {', '.join(failed)}" if failed else ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A POST that is redirected would become a GET of another page, which arrives nowhere and succeeds."""

    def redirect_request(self, *_: object) -> None:
        return None


def _services(urls_file: Path | None, pause: float) -> Apprise | None:
    """Those of the file and of the environment, one URL a line. None: there are none. Raises InputError."""
    sources = [(f"--notify-urls {urls_file}", _text(urls_file))] if urls_file is not None else []
    sources.append((URLS_VARIABLE, os.environ.get(URLS_VARIABLE, "")))
    lines = [
        (f"{source}, line {number}", line.strip())
        for source, text in sources
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#")
    ]
    if urls_file is not None and not any(where.startswith("--") for where, _ in lines):
        raise InputError(f"--notify-urls {urls_file}: no URL")
    if not lines:
        return None
    try:
        import apprise  # noqa: PLC0415  # slow, and seldom needed
    except ImportError:
        what = "--notify-urls needs" if urls_file is not None else f"{URLS_VARIABLE} needs"
        raise InputError(missing_extra(what, "apprise", "notify")) from None
    asset = apprise.AppriseAsset(
        http_redirects=False,
        default_service_retry=RETRIES,
        default_service_wait=pause,
        service_timeout=SERVICE_SECONDS,
    )
    services = apprise.Apprise(asset=asset)
    for where, url in lines:
        if not services.add(url):
            raise InputError(f"{where}: no address of a service that apprise {apprise.__version__} knows")
    return services


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"--notify-urls {path}: {getattr(error, 'strerror', None) or error}") from None
