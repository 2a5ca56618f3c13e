"""The console in a browser: textual-serve on loopback, for whoever has the token of its address. It has no
log-in, so its consoles can never be armed.
"""

from __future__ import annotations

import re
import secrets
import socket
from collections.abc import Awaitable, Callable

from aiohttp import web
from textual_serve.server import Server

from console.errors import InputError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class OwnPagesOnly(Server):
    """Answers only requests for its own address that come from its own page: any page in a browser can send
    requests to a loopback address, and any name can be made to resolve to one. A client without an Origin
    header is not a browser.

    Every user of this machine reaches loopback, and the console would show what this user may read: so a request
    needs the token of the printed address, which the page then sends as a cookie.
    """

    token = ""

    @property
    def address(self) -> str:
        """With the token: for the person who started it."""
        return f"{self.public_url}/?{_TOKEN}={self.token}"

    def initialize_logging(self) -> None:
        """No banner of the library, and no command line that only this program uses."""

    async def on_startup(self, app: web.Application) -> None:  # noqa: ARG002  # the library's signature
        """Says where the console is."""
        print(f"ktriage: the console (read-only) is at {self.address}; Ctrl+C ends it", flush=True)

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        self.token = secrets.token_urlsafe(16)
        own_name = f"{self.host}:{self.port}"
        names = (own_name, f"localhost:{self.port}")
        cookie = f"ktriage-{self.port}"

        @web.middleware
        async def own(request: web.Request, handler: Handler) -> web.StreamResponse:
            origin = request.headers.get("Origin")
            if request.headers.get("Host") not in names:
                raise web.HTTPForbidden(text=f"this console is at {self.public_url} only\n")
            if origin is not None and origin not in {f"http://{name}" for name in names}:
                raise web.HTTPForbidden(text="another site's page may not open this console\n")
            in_address = _same(request.query.get(_TOKEN), self.token)
            if not in_address and not _same(request.cookies.get(cookie), self.token):
                raise web.HTTPForbidden(
                    text="open the whole address that ktriage --serve printed: it has a token\n"
                )
            if in_address and request.headers["Host"] != own_name and request.path == "/":
                raise web.HTTPFound(self.address)  # a cookie belongs to one name
            answer = await handler(request)
            if request.path == "/" and isinstance(answer, web.Response):
                answer.set_cookie(cookie, self.token, httponly=True, samesite="Strict")
                answer.text = _EXTERNAL.sub("", answer.text or "")
                answer.headers["Content-Security-Policy"] = (
                    f"{_OWN_CONTENT}; connect-src 'self' ws://{own_name}"
                )
            return answer

        app.middlewares.append(own)
        return app


_TOKEN = "token"  # noqa: S105  # the name of the parameter
_EXTERNAL = re.compile(r"<link[^>]*https?://(?!127\.0\.0\.1)[^>]*>")
"""The library's page asks another site for a font."""
_OWN_CONTENT = "default-src 'self' 'unsafe-inline' data: blob:"


def _same(given: str | None, token: str) -> bool:
    return given is not None and secrets.compare_digest(given.encode(), token.encode())


def serve(command: str, host: str, port: int) -> int:
    """Serves until it is interrupted; each browser gets its own console. Raises InputError if it cannot
    listen.
    """
    try:
        with socket.create_server((host, port)):
            pass  # before anything is printed about serving
        OwnPagesOnly(command, host=host, port=port, title="ktriage (read-only)").serve()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(f"--port {port}: cannot listen at {host}: {why}; give another --port") from None
    return 0
