"""TLS: what a connection presents and what it accepts."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any


class _NamedContext(ssl.SSLContext):
    """Asks for ``server_name`` whatever address was dialled: we dial IP addresses, certificates bear names."""

    server_name: str

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        kwargs["server_hostname"] = self.server_name
        return super().wrap_bio(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS settings. ``check_names`` False where ssl.endpoint.identification.algorithm is empty."""

    check_names: bool = True

    def context(self, host: str) -> ssl.SSLContext:
        """A context for connections to ``host``."""
        context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
        context.server_name = host
        context.check_hostname = self.check_names
        return context
