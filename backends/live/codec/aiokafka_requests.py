"""kio's messages as the request objects that aiokafka's connection sends.

aiokafka expects of a request ``prepare``, ``build_request_header``, ``encode``, ``parse_response_header`` and
``RESPONSE_TYPE.decode``; kio has typed messages for every call that is needed here, and a native decoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import Any, TypeVar

from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload, ResponsePayload

from backends.live.codec.apis import Versions
from backends.live.codec.field_lengths import check_lengths
from backends.live.codec.message_fields import response_type

R = TypeVar("R", bound=ResponsePayload)


def read(response_type: type[R], data: bytes, offset: int) -> tuple[R, int]:
    """The answer that begins at ``offset``, and its size. Raises whatever kio raises where the bytes do not fit."""
    check_lengths(response_type, data, offset)
    try:
        return entity_reader(response_type)(memoryview(data), offset)
    except ValueError as error:
        if "ErrorCode" not in str(error):
            raise
        from backends.live.codec.unknown_error_codes import read_with_unknown_codes

        return read_with_unknown_codes(response_type, data, offset)


def read_exactly(response_type: type[R], data: bytes, offset: int) -> R:
    """Decodes what is in ``data`` from ``offset`` to its end.

    Raises ValueError where bytes are left over, and whatever kio raises where they do not fit.
    """
    answer, size = read(response_type, data, offset)
    left = len(data) - offset - size
    if left:
        raise ValueError(f"{left} bytes are left over")
    return answer


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer's bytes, still undecoded behind its header, which ends at ``offset``."""

    data: bytes
    offset: int

    @classmethod
    def decode(cls, buffer: BytesIO) -> RawAnswer:
        """What is left of ``buffer`` behind the header (aiokafka's hook)."""
        return cls(buffer.getvalue(), buffer.tell())

    def read(self, response_type: type[R]) -> R:
        """Decode. Raises whatever kio raises where the bytes do not fit."""
        return read(response_type, self.data, self.offset)[0]


@dataclass(frozen=True, slots=True)
class Packed:
    """A request of that type, encoded already."""

    request_type: type[RequestPayload]
    body: bytes


Sendable = RequestPayload | Packed


class _Header:
    """An encoded request header (aiokafka's hook)."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def encode(self) -> bytes:
        return self._data


class CarriedRequest:
    """One request, encoded when it is made: a value that does not fit fails before anything is sent."""

    RESPONSE_TYPE = RawAnswer

    def __init__(self, request: Sendable) -> None:
        if isinstance(request, Packed):
            self._request, self._body = request.request_type, request.body
        else:
            self._request = type(request)
            body = BytesIO()
            entity_writer(self._request)(body, request)
            self._body = body.getvalue()
        response = response_type(self._request.__api_key__, self._request.__version__)
        self._read_header = entity_reader(response.__header_schema__)

    @property
    def name(self) -> str:
        """Kafka's name of the call, with the version."""
        return f"{self._request.__name__.removesuffix('Request')} v{self._request.__version__}"

    def prepare(self, _versions: Versions) -> CarriedRequest:
        return self

    def build_request_header(self, correlation_id: int, client_id: str) -> _Header:
        header_type: Any = self._request.__header_schema__
        header = header_type(
            request_api_key=self._request.__api_key__,
            request_api_version=self._request.__version__,
            correlation_id=i32(correlation_id),
            client_id=client_id,
        )
        buffer = BytesIO()
        entity_writer(header_type)(buffer, header)
        return _Header(buffer.getvalue())

    def encode(self) -> bytes:
        return self._body

    def parse_response_header(self, buffer: BytesIO) -> Any:
        header, size = self._read_header(buffer.getvalue(), 0)
        buffer.seek(size)
        return header
