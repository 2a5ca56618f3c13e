"""One client connection: requests are answered one after the other, as in Kafka."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kio.schema.errors import ErrorCode

from backends.live.codec.apis import Api
from backends.live.codec.message_fields import Values, request_type, response_type
from backends.simulator.network import NetworkNode
from backends.simulator.served.clock import SimulatorFailed
from backends.simulator.served.entities import Undecodable, decode, encode
from backends.simulator.served.frames import ConnectionCut, Frame, FrameFaults, answer, parse, read_frame
from backends.simulator.served.principals import Principal, PrincipalRights
from backends.simulator.served.served_call import HandlerTable, NodeSilent, ServedCall, ServedContext

log = logging.getLogger(__name__)

_PLAIN = "PLAIN"
_GREETING = frozenset((Api.ApiVersions, Api.SaslHandshake, Api.SaslAuthenticate))


@dataclass(frozen=True, slots=True)
class NodeService:
    """What one node serves its clients with. ``answers``: the node is up and the clients reach it.

    With ``users`` clients authenticate by SASL PLAIN. ``frame_faults`` change what goes out, in tests.
    ``handler_failed`` gets an exception that no client can have caused.
    """

    context: ServedContext
    node: NetworkNode
    users: Mapping[str, Principal]
    table: HandlerTable
    answers: Callable[[], bool]
    frame_faults: FrameFaults
    handler_failed: Callable[[Exception], None]


class ClientConnection:
    """``_principal`` is None until it is known: at once, or with users after SASL PLAIN."""

    def __init__(
        self, service: NodeService, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._service = service
        self._context = service.context
        self._reader = reader
        self._writer = writer
        self._principal: Principal | None = None if service.users else Principal()
        self._bare_token = False
        peer = writer.get_extra_info("peername")
        self._host = str(peer[0]) if peer else ""

    def reset(self) -> None:
        """Close at once, with a connection reset."""
        self._writer.transport.abort()

    async def serve(self) -> None:
        """Serve until the client leaves, sends an undecodable frame, or fails to authenticate."""
        try:
            while True:
                data = await read_frame(self._reader)
                if not self._service.answers():
                    await (
                        asyncio.Event().wait()
                    )  # a node that is cut off accepts everything and answers nothing
                if not await self._one(data):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            return
        except Undecodable as error:
            log.info("%s: closed: %s", self._service.node, error)
        except NodeSilent:
            await asyncio.Event().wait()
        except SimulatorFailed:
            return  # the cluster stops, and its owner raises it
        except Exception as defect:
            # Nothing that a client sends may end more than its own connection; a test that ends here fails.
            log.exception("%s: closed", self._service.node)
            self._service.handler_failed(defect)

    async def _one(self, data: bytes) -> bool:
        """Answer one frame; False if the connection ends."""
        if self._bare_token:
            self._bare_token = False
            return await self._token(data)
        served = self._context.offered[self._service.node.role]
        frame = parse(data, dict(served))
        if self._principal is None and frame.api_key not in _GREETING:
            raise Undecodable(f"api key {frame.api_key} before authentication")
        if frame.api_key == Api.ApiVersions and not _within(served, frame):
            # KIP-511: an unknown version gets an answer of version 0, with the versions of ApiVersions only.
            lowest, highest = served[Api.ApiVersions]
            own = {"api_key": int(Api.ApiVersions), "min_version": lowest, "max_version": highest}
            refused = {"error_code": ErrorCode.unsupported_version, "api_keys": (own,)}
            body = encode(response_type(frame.api_key, 0), refused)
            return await self._send(frame, body, flexible=False)
        return await self._answer(frame)

    async def _answer(self, frame: Frame) -> bool:
        kind = response_type(frame.api_key, frame.version)
        fast_path = self._service.table.fast_paths.get((Api(frame.api_key), frame.version))
        if fast_path is not None:
            done = await fast_path(self._call(frame, None), frame.body)
            if done is not None:
                return await self._send(frame, done, flexible=kind.__flexible__)
        request = decode(request_type(frame.api_key, frame.version), frame.body)
        goes_on = True
        values: Values | bytes | None
        if frame.api_key == Api.SaslHandshake:
            values = self._handshake(frame.version, request)
        elif frame.api_key == Api.SaslAuthenticate:
            goes_on, values = self._authenticate(bytes(request.auth_bytes))
        else:
            values = await self._service.table.handlers[Api(frame.api_key)](self._call(frame, request))
        if values is None:
            return goes_on
        body = values if isinstance(values, bytes) else encode(kind, values)
        return await self._send(frame, body, flexible=kind.__flexible__) and goes_on

    def _call(self, frame: Frame, request: Any) -> ServedCall:
        rights = PrincipalRights(self._principal or Principal(), self._context.world.context.denied)
        return ServedCall(
            self._context, self._service.node, rights, frame.version, request, frame.client, self._host
        )

    async def _send(self, frame: Frame, body: bytes, *, flexible: bool) -> bool:
        data: bytes | None = answer(frame, body, flexible=flexible)
        if not self._service.answers():
            await asyncio.Event().wait()
        if self._service.frame_faults.change is not None and data is not None:
            try:
                data = await self._service.frame_faults.change(frame.api_key, data)
            except ConnectionCut as cut:
                self._writer.write(cut.data)
                await self._writer.drain()
                self._writer.close()
                return False
            if data is None:
                await asyncio.Event().wait()
        self._writer.write(data or b"")
        await self._writer.drain()
        return True

    # Authentication.

    def _handshake(self, version: int, request: Any) -> Values:
        known = request.mechanism == _PLAIN
        self._bare_token = known and version == 0
        error = ErrorCode.none if known else ErrorCode.unsupported_sasl_mechanism
        return {"error_code": error, "mechanisms": (_PLAIN,)}

    def _authenticate(self, token: bytes) -> tuple[bool, Values]:
        self._principal = self._known(token)
        if self._principal is not None:
            return True, {"auth_bytes": b"", "session_lifetime": 0}
        return False, {
            "error_code": ErrorCode.sasl_authentication_failed,
            "error_message": "Authentication failed: Invalid username or password",
            "auth_bytes": b"",
            "session_lifetime": 0,
        }

    async def _token(self, data: bytes) -> bool:
        """SASL without SaslAuthenticate, after SaslHandshake v0: an empty frame means success."""
        self._principal = self._known(data)
        if self._principal is None:
            return False
        self._writer.write(b"\0\0\0\0")
        await self._writer.drain()
        return True

    def _known(self, token: bytes) -> Principal | None:
        parts = token.split(b"\0")
        if len(parts) != 3:
            return None
        _, name, password = parts
        user = self._service.users.get(name.decode("utf-8", "replace"))
        if user is None or not hmac.compare_digest(password, user.password.encode()):
            return None
        return user


def _within(served: Any, frame: Frame) -> bool:
    lowest, highest = served[frame.api_key]
    return bool(lowest <= frame.version <= highest)
