"""The console in a browser: textual-serve on loopback. It has no log-in, so what it starts can never be armed."""

from __future__ import annotations

from textual_serve.server import Server


def serve(command: str, host: str, port: int) -> int:
    """Serves until it is interrupted; each browser gets a console of its own."""
    Server(command, host=host, port=port, title="ktriage (read-only)").serve()
    return 0
