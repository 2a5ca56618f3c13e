"""One blocking connection to one broker.

librdkafka chooses the broker itself and may wait for one that hangs; the testbed knows which nodes it has stopped
and chooses the broker here. Framing: Kafka protocol guide, "Protocol primitives" and KIP-152 (SASL).
"""

from __future__ import annotations

import socket
import struct
from io import BytesIO
from typing import Any, Self, TypeVar

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload, ResponsePayload

from testbed.kafka.config import LOOPBACK

R = TypeVar("R", bound=ResponsePayload)
_SIZE = struct.Struct(">i")


class NoAnswer(Exception):
    """The broker did not answer in time, closed the connection, or refused it."""


class Connection:
    """Sends one request at a time and reads its response; after NoAnswer the connection cannot be used again."""

    def __init__(self, port: int, credentials: tuple[str, str] | None, timeout: float) -> None:
        try:
            self._socket = socket.create_connection((LOOPBACK, port), timeout)
        except OSError as error:
            raise NoAnswer(f"127.0.0.1:{port}: {error}") from None
        self._port = port
        self._correlation = 0
        if credentials is not None:
            self._authenticate(*credentials)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: RequestPayload, answer: type[R]) -> R:
        """Send the request and decode the response. Raises NoAnswer."""
        self._correlation += 1
        try:
            self._socket.sendall(_encode(request, self._correlation))
            size = _SIZE.unpack(self._receive(_SIZE.size))[0]
            data = memoryview(self._receive(size))
        except OSError as error:
            self.close()
            raise NoAnswer(f"127.0.0.1:{self._port}: {error or type(error).__name__}") from None
        _, header_size = entity_reader(answer.__header_schema__)(data, 0)
        decoded, _ = entity_reader(answer)(data, header_size)
        return decoded

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            block = self._socket.recv(size - len(received))
            if not block:
                raise ConnectionResetError("closed by the broker")
            received += block
        return bytes(received)

    def _authenticate(self, user: str, password: str) -> None:
        self.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        token = f"\0{user}\0{password}".encode()
        response = self.ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
        if response.error_code:
            self.close()
            raise NoAnswer(f"127.0.0.1:{self._port}: {response.error_message}")


def _encode(request: RequestPayload, correlation: int) -> bytes:
    header_type: Any = request.__header_schema__
    header = header_type(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=i32(correlation),
        client_id="testbed",
    )
    buffer = BytesIO()
    entity_writer(header_type)(buffer, header)
    entity_writer(type(request))(buffer, request)
    return _SIZE.pack(buffer.tell()) + buffer.getvalue()
