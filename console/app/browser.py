"""The console in a browser: textual-serve on loopback. It has no log-in, so its consoles can never be armed."""

from __future__ import annotations

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
    """

    def initialize_logging(self) -> None:
        """No banner of the library, and no command line that only this program uses."""

    async def on_startup(self, app: web.Application) -> None:  # noqa: ARG002  # the library's signature
        """Says where the console is."""
        print(f"ktriage: the console (read-only) is at {self.public_url}; Ctrl+C ends it", flush=True)

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        names = {f"{host}:{self.port}" for host in (self.host, "localhost")}

        @web.middleware
        async def own(request: web.Request, handler: Handler) -> web.StreamResponse:
            origin = request.headers.get("Origin")
            if request.headers.get("Host") not in names:
                raise web.HTTPForbidden(text=f"this console is at {self.public_url} only\n")
            if origin is not None and origin not in {f"http://{name}" for name in names}:
                raise web.HTTPForbidden(text="another site's page may not open this console\n")
            return await handler(request)

        app.middlewares.append(own)
        return app


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
